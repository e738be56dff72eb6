/* SPDX-License-Identifier: MIT */
#include "h2_session_internal.h"

#include <string.h>

static struct h2_stream **slot_of(struct h2_session *session, int32_t id)
{
    return &session->slot[(uint32_t)id / 2 % H2_STREAM_SLOTS]; /* ids come one by one: they share as few as can be */
}

struct h2_stream *h2_stream_find(const struct h2_session *session, int32_t id)
{
    struct h2_stream *stream = session->slot[(uint32_t)id / 2 % H2_STREAM_SLOTS];
    while (stream != NULL && stream->id != id) {
        stream = stream->chain;
    }
    return stream;
}

bool h2_is_idle(const struct h2_session *session, int32_t id)
{
    if (id % 2 == 0) {
        return true; /* nothing is pushed */
    }
    if (session->role == H2_SERVER) {
        return id > session->past.highest;
    }
    const struct h2_stream *stream = h2_stream_find(session, id);
    return stream != NULL ? !h2_sent(stream) : session->next_id != 0 && id >= session->next_id;
}

struct h2_stream *h2_stream_new(struct h2_session *session, int32_t id)
{
    struct h2_stream *stream = blocks_take(session->scratch->blocks, sizeof *stream);
    if (stream == NULL) {
        return NULL;
    }
    memset(stream, 0, sizeof *stream);
    stream->session = session;
    stream->id = id;
    stream->opened_at = session->now;
    stream->window = session->stream_window;
    stream->peers_window = session->peers_stream_window;
    stream->expected = H2_LENGTH_UNKNOWN;
    stream->next = session->streams;
    stream->link = &session->streams;
    if (stream->next != NULL) {
        stream->next->link = &stream->next;
    }
    session->streams = stream;
    stream->chain = *slot_of(session, id);
    *slot_of(session, id) = stream;
    session->stream_count++;
    return stream;
}

static void take_out(struct h2_stream *stream)
{
    struct h2_session *session = stream->session;
    struct h2_stream **chain = slot_of(session, stream->id);
    while (*chain != stream) {
        chain = &(*chain)->chain;
    }
    *chain = stream->chain;
    *stream->link = stream->next;
    if (stream->next != NULL) {
        stream->next->link = stream->link;
    }
    h2_stream_unqueue(stream);
    session->drains -= stream->drained;
    session->stream_count--;
    session->held -= bytes_left(&stream->out);
    bytes_give(&stream->out, session->scratch->blocks);
    bytes_give(&stream->trailers, session->scratch->blocks);
    stream->next = session->closed;
    session->closed = stream;
    if (!session->busy) {
        h2_streams_bury(session);
    }
}

void h2_streams_bury(struct h2_session *session)
{
    while (session->closed != NULL) {
        struct h2_stream *stream = session->closed;
        session->closed = stream->next;
        blocks_give(session->scratch->blocks, stream, sizeof *stream);
    }
}

void h2_stream_enter(struct h2_stream *stream, enum h2_state state)
{
    bool heard = stream->state == H2_STATE_HEARD;
    BECALM_ASSERT(stream->state != H2_STATE_CLOSED);
    stream->state = state;
    if (state == H2_STATE_CLOSED) {
        if (heard && stream->session->role == H2_SERVER) {
            h2_past_ended(&stream->session->past, stream->id);
        }
        take_out(stream);
    }
}

void h2_stream_close(struct h2_stream *stream, uint32_t code)
{
    struct h2_session *session = stream->session;
    void *owner = stream->owner;
    if (session->role == H2_CLIENT && !h2_sent(stream)) {
        code = H2_REFUSED_STREAM; /* the peer knows nothing of it */
    }
    if (code == H2_NO_ERROR) {
        h2_guard_answered(&session->guard);
    }
    stream->owner = NULL;
    h2_stream_enter(stream, H2_STATE_CLOSED);
    if (owner != NULL && !session->doomed) {
        session->calls->closed(owner, code);
    }
}

void h2_stream_fail(struct h2_stream *stream, uint32_t code)
{
    h2_queue_reset(stream->session, stream->id, code);
    h2_stream_close(stream, code);
}

void h2_stream_said_all(struct h2_stream *stream)
{
    struct h2_session *session = stream->session;
    if (stream->state == H2_STATE_HEARD) {
        h2_stream_close(stream, H2_NO_ERROR);
    } else if (session->role == H2_SERVER) {
        /* Answered before all was asked: the rest is not wanted (RFC 9113, 8.1). */
        h2_stream_fail(stream, H2_NO_ERROR);
    } else {
        h2_stream_enter(stream, H2_STATE_SAID);
    }
}

void h2_stream_heard_all(struct h2_stream *stream)
{
    if (stream->state == H2_STATE_SAID) {
        h2_stream_close(stream, H2_NO_ERROR);
    }
}

void h2_stream_end_queued(struct h2_stream *stream)
{
    stream->end_queued = true;
    stream->end_at = h2_queue_end(stream->session);
    h2_stream_queue(stream);
}

void h2_stream_queue(struct h2_stream *stream)
{
    struct h2_session *session = stream->session;
    if (!stream->queued) {
        stream->queued = true;
        stream->queue_next = NULL;
        stream->queue_link = session->last;
        *session->last = stream;
        session->last = &stream->queue_next;
        session->queue_size++;
    }
}

void h2_stream_unqueue(struct h2_stream *stream)
{
    struct h2_session *session = stream->session;
    if (stream->queued) {
        stream->queued = false;
        *stream->queue_link = stream->queue_next;
        if (stream->queue_next != NULL) {
            stream->queue_next->queue_link = stream->queue_link;
        } else {
            session->last = stream->queue_link;
        }
        session->queue_size--;
    }
}

bool h2_sent(const struct h2_stream *stream)
{
    return stream->session->taken > stream->head_at;
}

bool h2_blocked(const struct h2_stream *stream)
{
    return stream->full;
}

size_t h2_stream_held(const struct h2_stream *stream)
{
    return bytes_left(&stream->out);
}

void h2_took(struct h2_stream *stream, size_t length)
{
    size_t taken = length < stream->untaken ? length : stream->untaken;
    stream->untaken -= (uint32_t)taken;
    h2_flow_taken(stream, (uint32_t)taken);
}

void h2_reset(struct h2_stream *stream, uint32_t code)
{
    stream->owner = NULL;
    if (stream->state != H2_STATE_CLOSED) {
        h2_stream_fail(stream, code);
    }
}

void h2_abandon(struct h2_stream *stream)
{
    stream->owner = NULL;
}

void h2_leave(struct h2_stream *stream)
{
    stream->owner = NULL;
    stream->left = true;
}

bool h2_said_all(const struct h2_stream *stream)
{
    return stream->out_ended && bytes_left(&stream->out) == 0;
}
