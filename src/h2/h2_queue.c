/* SPDX-License-Identifier: MIT */
#include "h2_session_internal.h"

#include <stdlib.h>
#include <string.h>

#define FIRST 512u /* bytes: enough for most connections */

char *h2_queue_room(struct h2_session *session, size_t length)
{
    struct bytes *queue = &session->queue;
    bytes_make_room(queue, length);
    if (queue->size - queue->length >= length) {
        return queue->at + queue->length;
    }
    size_t need = queue->length + length;
    if (queue->at == NULL && need <= FIRST) {
        queue->at = blocks_take(session->scratch->blocks, FIRST);
        queue->size = queue->at == NULL ? 0 : FIRST;
        return queue->at;
    }
    size_t size = need < 2 * (size_t)queue->size ? 2 * (size_t)queue->size : (need / FIRST + 1) * FIRST;
    char *larger = size > UINT32_MAX ? NULL : realloc(queue->at, size);
    if (larger == NULL) {
        return NULL;
    }
    queue->at = larger;
    queue->size = (uint32_t)size;
    return queue->at + queue->length;
}

void h2_queue_frame(struct h2_session *session, struct h2_frame frame, const char *payload)
{
    char *to = h2_queue_room(session, H2_FRAME_HEAD + frame.length);
    if (to == NULL) {
        h2_out_of_memory(session);
        return;
    }
    h2_frame_put(to, frame);
    if (frame.length > 0) {
        memcpy(to + H2_FRAME_HEAD, payload, frame.length);
    }
    h2_queue_used(session, H2_FRAME_HEAD + frame.length);
}

void h2_queue_number(struct h2_session *session, enum h2_frame_type type, int32_t id, uint32_t number)
{
    char payload[4];
    h2_put_number(payload, number);
    h2_queue_frame(session, (struct h2_frame){.type = (uint8_t)type, .id = id, .length = sizeof payload}, payload);
}

/* A reset that the peer provoked has cost the peer nothing: "made you reset". */
static void note_reset(struct h2_session *session, uint32_t code)
{
    bool bears = true;
    switch (code) {
    case H2_NO_ERROR:
    case H2_CANCEL:
    case H2_INTERNAL_ERROR:
        break;
    case H2_REFUSED_STREAM: /* before it knows how many it may have, the peer can't be blamed */
        bears = h2_guard_frame(&session->guard);
        break;
    default:
        bears = h2_guard_fault(&session->guard);
        break;
    }
    if (!bears) {
        h2_flood(session, H2_END_FAULTS);
    }
}

void h2_queue_reset(struct h2_session *session, int32_t id, uint32_t code)
{
    if (session->end != H2_END_NONE) {
        return; /* the peer hears of the connection's end */
    }
    h2_queue_number(session, H2_RST_STREAM, id, code);
    if (session->role == H2_SERVER) {
        note_reset(session, code);
    }
}

void h2_queue_goaway(struct h2_session *session, int32_t last, uint32_t code)
{
    char payload[8];
    h2_put_number(payload, (uint32_t)last);
    h2_put_number(payload + 4, code);
    h2_queue_frame(session, (struct h2_frame){.type = H2_GOAWAY, .length = sizeof payload}, payload);
}

/* The first request of which no byte has been written; NULL: there is none. */
static const struct h2_stream *first_unsent(const struct h2_session *session)
{
    const struct h2_stream *first = NULL;
    for (const struct h2_stream *stream = session->streams; stream != NULL; stream = stream->next) {
        if (!h2_sent(stream) && (first == NULL || stream->id < first->id)) {
            first = stream;
        }
    }
    return first;
}

/* From the first of these heads on all frames of its stream and of later ones go, also of those that were reset since:
 * their heads may name fields that only heads before them have. HPACK's table has entries then that the peer never
 * sees: it is emptied, and the peer is told so with the next head. */
void h2_queue_cut(struct h2_session *session)
{
    struct bytes *queue = &session->queue;
    const struct h2_stream *first = first_unsent(session);
    if (first == NULL) {
        return;
    }
    const char *at = bytes_at(queue) + (first->head_at - session->taken);
    const char *end = bytes_at(queue) + bytes_left(queue);
    char *to = queue->at + (at - queue->at);
    while (at < end) {
        struct h2_frame frame = h2_frame_read((const uint8_t *)at);
        size_t length = H2_FRAME_HEAD + frame.length;
        if (frame.id < first->id) {
            memmove(to, at, length);
            to += length;
        }
        at += length;
    }
    queue->length = (uint32_t)(to - queue->at);
    h2_packer_forget(&session->packer);
}
