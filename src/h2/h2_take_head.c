/* SPDX-License-Identifier: MIT */
#include "h2_session_internal.h"

/* ---- a head begins ---- */

static enum h2_heading drop(void)
{
    return H2_HEADING_DROPPED;
}

static enum h2_heading wrong(struct h2_session *session, uint32_t code)
{
    h2_wrong(session, code);
    return H2_HEADING_DROPPED;
}

/* A stream that can't be had: its client may ask again. */
static enum h2_heading refuse(struct h2_session *session, int32_t id, uint32_t code)
{
    h2_queue_reset(session, id, code);
    return H2_HEADING_DROPPED;
}

/* The peer has as many streams as it may have. Streams whose end the peer may have read do not count any more, although
 * this side closes them only at the next h2_write(). */
static bool is_full(const struct h2_session *session)
{
    uint32_t open = session->stream_count;
    if (open < session->limits.streams) {
        return false;
    }
    for (const struct h2_stream *stream = session->streams; stream != NULL; stream = stream->next) {
        bool written = stream->end_queued && !stream->failed && stream->end_at <= session->taken;
        open -= written && stream->state == H2_STATE_HEARD;
    }
    return open >= session->limits.streams;
}

/* A client opens a stream: those that it has left out are closed by that (RFC 9113, 5.1.1). */
static enum h2_heading begin_request(struct h2_session *session, int32_t id)
{
    h2_past_opened(&session->past, id);
    if (id > session->last_said) {
        return drop(); /* after our GOAWAY the client sends its requests elsewhere: nothing is begun here */
    }
    if (is_full(session)) {
        return session->acknowledged ? wrong(session, H2_PROTOCOL_ERROR) : refuse(session, id, H2_REFUSED_STREAM);
    }
    if (h2_stream_new(session, id) == NULL) {
        return refuse(session, id, H2_INTERNAL_ERROR);
    }
    session->last_taken = id;
    h2_block_begin(&session->block, H2_BLOCK_REQUEST, session->scratch);
    return H2_HEADING_TAKEN;
}

/* A head for a stream that is over. Of our reset its peer may not have heard. */
static enum h2_heading begin_late(struct h2_session *session, int32_t id)
{
    if (session->role == H2_CLIENT) {
        return drop();
    }
    return h2_past_skipped(&session->past, id)     ? wrong(session, H2_PROTOCOL_ERROR)
           : h2_past_has_ended(&session->past, id) ? wrong(session, H2_STREAM_CLOSED)
                                                   : drop();
}

static enum h2_heading begin(struct h2_session *session, const struct h2_frame *frame)
{
    bool server = session->role == H2_SERVER;
    const struct h2_stream *stream = h2_stream_find(session, frame->id);
    if (frame->id % 2 == 0 || (!server && h2_is_idle(session, frame->id))) {
        return wrong(session, H2_PROTOCOL_ERROR);
    }
    if (stream != NULL) {
        if (stream->state == H2_STATE_HEARD) {
            return wrong(session, H2_STREAM_CLOSED);
        }
        h2_block_begin(&session->block, server || stream->answered ? H2_BLOCK_TRAILERS : H2_BLOCK_ANSWER,
                       session->scratch);
        return H2_HEADING_TAKEN;
    }
    return server && frame->id > session->past.highest ? begin_request(session, frame->id)
                                                       : begin_late(session, frame->id);
}

void h2_take_head_begin(struct h2_session *session)
{
    const struct h2_frame *frame = &session->reader.frame;
    h2_block_begin(&session->block, H2_BLOCK_TRAILERS, session->scratch);
    session->heading_id = frame->id;
    session->heading_flags = frame->flags;
    session->continuations = 0;
    session->heading = begin(session, frame);
}

void h2_take_head_goes_on(struct h2_session *session)
{
    session->heading_flags |= session->reader.frame.flags & H2_FLAG_END_HEADERS;
    if (++session->continuations > H2_CONTINUATIONS_MAX) {
        h2_flood(session, H2_END_CONTINUATIONS);
    }
}

/* ---- all of it is here ---- */

static void take_request(struct h2_session *session, struct h2_stream *stream, bool end)
{
    struct head *head = &session->scratch->head;
    struct h1_verdict verdict = h2_block_end(&session->block, &session->limits, end, false, head);
    h2_guard_asked(&session->guard);
    stream->owner = verdict.kind == H1_OK ? session->calls->request(session->owner, stream, head, end)
                                          : session->calls->unfit(session->owner, stream, verdict, end);
    if (stream->owner == NULL && !session->doomed && !stream->said && stream->state != H2_STATE_CLOSED) {
        h2_stream_fail(stream, H2_REFUSED_STREAM); /* no owner took the request */
    }
}

/* Neither an answer to HEAD nor 204 and 304 has a body, with any Content-Length. */
static bool is_bodiless(const struct h2_stream *stream, uint32_t status)
{
    return stream->to_head || status == 204 || status == 304;
}

static void take_answer(struct h2_session *session, struct h2_stream *stream, bool end)
{
    struct head *head = &session->scratch->head;
    struct h1_verdict verdict = h2_block_end(&session->block, &session->limits, end, stream->to_head, head);
    void *owner = stream->owner;
    h2_guard_asked(&session->guard);
    if (verdict.kind != H1_OK) {
        h2_reset(stream, H2_PROTOCOL_ERROR);
        if (owner != NULL) {
            session->calls->broken(owner, verdict.what);
        }
        return;
    }
    stream->answered = head->status >= 200;
    stream->expected = is_bodiless(stream, head->status) ? 0 : stream->expected;
    if (end && !stream->answered) {
        h2_stream_fail(stream, H2_PROTOCOL_ERROR); /* 1xx is not all */
    } else if (owner != NULL) {
        session->calls->answer(owner, head, end);
    }
}

static void take_trailers(struct h2_session *session, struct h2_stream *stream)
{
    if (stream->owner != NULL) {
        struct becalm_text text = h2_block_trailers(&session->block);
        session->calls->trailers(stream->owner, text.at, session->block.text.full ? 0 : text.length);
    }
}

/* Is the head well formed (RFC 9113, 8.1.1)? */
static bool is_well_formed(const struct h2_block *block, bool end)
{
    bool lengthy = end && block->kind == H2_BLOCK_REQUEST && block->length > 0;
    bool last = end || block->kind != H2_BLOCK_TRAILERS; /* nothing follows trailers */
    return h2_block_is_whole(block) && !lengthy && last;
}

static void take_whole(struct h2_session *session)
{
    struct h2_stream *stream = h2_stream_find(session, session->heading_id);
    bool end = (session->heading_flags & H2_FLAG_END_STREAM) != 0;
    if (stream == NULL) {
        return;
    }
    if (!is_well_formed(&session->block, end)) {
        h2_stream_fail(stream, H2_PROTOCOL_ERROR);
        return;
    }
    switch (session->block.kind) {
    case H2_BLOCK_REQUEST:
        stream->expected = session->block.length;
        if (end) {
            h2_stream_enter(stream, H2_STATE_HEARD); /* an owner that answers at once has the whole request */
        }
        take_request(session, stream, end);
        break;
    case H2_BLOCK_ANSWER:
        stream->expected = session->block.length;
        take_answer(session, stream, end);
        break;
    case H2_BLOCK_TRAILERS:
        take_trailers(session, stream);
        break;
    }
    if (end && h2_goes_on(session) && stream->state != H2_STATE_CLOSED) {
        h2_take_end(stream);
    }
}

/* ---- fields ---- */

static void take_field(struct h2_session *session, const nghttp2_nv *field)
{
    struct becalm_text name = {(const char *)field->name, field->namelen};
    struct becalm_text value = {(const char *)field->value, field->valuelen};
    if (session->heading == H2_HEADING_TAKEN) {
        h2_block_field(&session->block, name, value);
        if ((field->flags & NGHTTP2_NV_FLAG_NO_INDEX) != 0) {
            h2_block_hide(&session->block, name, value);
        }
    } else {
        h2_block_count(&session->block, name, value);
    }
    if (h2_block_bomb(&session->block, &session->limits)) {
        h2_flood(session, H2_END_HEADS);
    }
}

static void end_head(struct h2_session *session)
{
    enum h2_heading heading = session->heading;
    (void)nghttp2_hd_inflate_end_headers(session->inflater);
    session->heading = H2_HEADING_NONE;
    if (heading == H2_HEADING_TAKEN) {
        take_whole(session);
    }
}

void h2_take_head(struct h2_session *session, const uint8_t *bytes, uint32_t length)
{
    bool last = session->reader.left == 0 && (session->heading_flags & H2_FLAG_END_HEADERS) != 0;
    int flags;
    do {
        nghttp2_nv field;
        flags = 0;
        ssize_t used = nghttp2_hd_inflate_hd2(session->inflater, &field, &flags, bytes, length, last);
        if (used < 0) {
            if (used == NGHTTP2_ERR_NOMEM) {
                h2_out_of_memory(session);
            } else {
                h2_wrong(session, H2_COMPRESSION_ERROR);
            }
            return;
        }
        bytes += used;
        length -= (uint32_t)used;
        if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) {
            take_field(session, &field);
        }
        if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) {
            end_head(session);
            return;
        }
    } while (h2_goes_on(session) && (length > 0 || (flags & NGHTTP2_HD_INFLATE_EMIT) != 0));
}
