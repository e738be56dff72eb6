/* SPDX-License-Identifier: MIT */
#include "h2_session_internal.h"

#include <stdlib.h>
#include <string.h>

#define FIRST 512u /* bytes: what most connections ever have waiting */

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

/* A stream that is reset because of what the peer did on it has cost it nothing: "made you reset". */
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

static bool is_unsent(const struct h2_stream *stream)
{
    return stream->head_at >= stream->session->taken && stream->head_length > 0;
}

/* Of the requests that wait, the one whose head stands first behind this place; NULL: none. */
static const struct h2_stream *first_behind(const struct h2_session *session, uint64_t place)
{
    const struct h2_stream *first = NULL;
    for (const struct h2_stream *stream = session->streams; stream != NULL; stream = stream->next) {
        if (is_unsent(stream) && stream->head_at >= place && (first == NULL || stream->head_at < first->head_at)) {
            first = stream;
        }
    }
    return first;
}

/* What is behind the heads moves up. The tables of HPACK have entries then that the peer never sees: they are emptied,
 * and the peer is told so with the next head. */
void h2_queue_cut(struct h2_session *session)
{
    struct bytes *queue = &session->queue;
    uint64_t begin = session->taken - queue->from; /* of the first byte of the buffer */
    uint64_t from = session->taken;
    uint32_t kept = queue->from;
    const struct h2_stream *stream = first_behind(session, from);
    if (stream == NULL) {
        return;
    }
    for (; stream != NULL; stream = first_behind(session, from)) {
        memmove(queue->at + kept, queue->at + (from - begin), stream->head_at - from);
        kept += (uint32_t)(stream->head_at - from);
        from = stream->head_at + stream->head_length;
    }
    memmove(queue->at + kept, queue->at + (from - begin), begin + queue->length - from);
    queue->length = kept + (uint32_t)(begin + queue->length - from);
    if (nghttp2_hd_deflate_change_table_size(session->deflater, 0) != 0 ||
        nghttp2_hd_deflate_change_table_size(session->deflater, session->table_bytes) != 0) {
        h2_out_of_memory(session);
    }
}
