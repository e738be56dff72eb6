/* SPDX-License-Identifier: MIT */
#include "h2_fields.h"
#include "h2_session_internal.h"

#include "unfilled.h"

#include <string.h>

/* Frames that wait, as far as there is room. False: some are left. */
static bool take_queue(struct h2_session *session, struct text_sink *out)
{
    struct bytes *queue = &session->queue;
    size_t left = bytes_left(queue);
    size_t room = out->size - out->length;
    size_t length = left < room ? left : room;
    if (length > 0) {
        text_put(out, (struct becalm_text){bytes_at(queue), length});
        queue->from += (uint32_t)length;
        session->taken += length;
    }
    if (length < left) {
        return false;
    }
    bytes_give(queue, session->scratch->blocks);
    session->acks = 0;
    return true;
}

static void say_trailers(struct h2_stream *stream)
{
    UNFILLED struct h2_fields fields;
    h2_fields_begin(&fields);
    h2_fields_add_packed(&fields, (struct becalm_text){bytes_at(&stream->trailers), bytes_left(&stream->trailers)});
    stream->failed = !h2_queue_head(stream->session, stream->id, &fields, true);
    h2_stream_end_queued(stream);
}

/* So many bytes of a body have been written. */
static void note_written(struct h2_stream *stream, uint32_t length)
{
    struct h2_session *session = stream->session;
    stream->out.from += length;
    stream->window -= (int32_t)length;
    session->window -= (int32_t)length;
    session->held -= length;
    if (bytes_left(&stream->out) == 0) {
        bytes_give(&stream->out, session->scratch->blocks);
    }
    if (stream->full && bytes_left(&stream->out) <= H2_DRAINED) {
        stream->full = false;
        session->drains += !stream->drained;
        stream->drained = true;
    }
    h2_guard_sent(&session->guard);
}

/* How much of its body may go into the next frame, by both windows. */
static uint32_t may_send(const struct h2_stream *stream)
{
    int64_t most = bytes_left(&stream->out) < H2_FRAME_MAX ? (int64_t)bytes_left(&stream->out) : H2_FRAME_MAX;
    most = most < stream->window ? most : stream->window;
    most = most < stream->session->window ? most : stream->session->window;
    return most > 0 ? (uint32_t)most : 0;
}

static void put_data(struct h2_stream *stream, struct text_sink *out, uint32_t length, bool end)
{
    char head[H2_FRAME_HEAD];
    h2_frame_put(head, (struct h2_frame){
                           .type = H2_DATA, .id = stream->id, .length = length, .flags = end ? H2_FLAG_END_STREAM : 0});
    text_put(out, (struct becalm_text){head, sizeof head});
    if (length > 0) {
        text_put(out, (struct becalm_text){bytes_at(&stream->out), length});
        note_written(stream, length);
    }
}

/* One more frame, of bytes that stand elsewhere. */
static void pass_frame(struct h2_stream *stream, struct h2_pass *pass, struct becalm_text bytes, bool end)
{
    char *head = pass->heads + (size_t)pass->count / 2 * H2_FRAME_HEAD;
    h2_frame_put(head, (struct h2_frame){.type = H2_DATA,
                                         .id = stream->id,
                                         .length = (uint32_t)bytes.length,
                                         .flags = end ? H2_FLAG_END_STREAM : 0});
    pass->part[pass->count++] = (struct iovec){head, H2_FRAME_HEAD};
    pass->part[pass->count++] = (struct iovec){(char *)(uintptr_t)bytes.at, bytes.length};
    stream->window -= (int32_t)bytes.length;
    stream->session->window -= (int32_t)bytes.length;
    h2_guard_sent(&stream->session->guard);
}

/* Frames that wait go before it. Their memory stays valid until the next frame is queued. */
static void pass_queue(struct h2_session *session, struct h2_pass *pass)
{
    struct bytes *queue = &session->queue;
    pass->part[0] = (struct iovec){(char *)(uintptr_t)bytes_at(queue), bytes_left(queue)};
    pass->count = bytes_left(queue) > 0;
    session->taken += bytes_left(queue);
    queue->from = queue->length;
    session->acks = 0;
}

size_t h2_data_pass(struct h2_stream *stream, struct becalm_text bytes, bool end, struct h2_pass *pass)
{
    struct h2_session *session = stream->session;
    int64_t most = stream->window < session->window ? stream->window : session->window;
    bool waits = session->busy || session->held > 0 || session->end != H2_END_NONE || stream->failed;
    size_t length = most < 0 || waits ? 0 : (size_t)most;
    length = length < H2_PASS_MOST ? length : H2_PASS_MOST;
    length = length < bytes.length ? length : bytes.length;
    if (length == 0) {
        return 0;
    }
    pass_queue(session, pass);
    end = end && length == bytes.length;
    for (size_t at = 0, piece; at < length; at += piece) {
        piece = length - at < H2_FRAME_MAX ? length - at : H2_FRAME_MAX;
        pass_frame(stream, pass, (struct becalm_text){bytes.at + at, piece}, end && at + piece == length);
    }
    if (end) { /* which is noted with the next h2_write(), as that of a head */
        stream->out_ended = true;
        h2_stream_end_queued(stream);
    }
    return length;
}

enum served { SERVED, SERVED_NOTHING, SERVED_NO_ROOM };

/* One frame of a body. The stream's next turn comes after all other streams. */
static enum served serve_body(struct h2_stream *stream, struct text_sink *out)
{
    size_t left = bytes_left(&stream->out);
    uint32_t length = may_send(stream);
    if (left == 0 && !stream->out_ended) {
        return SERVED_NOTHING;
    }
    if (length == 0 && left > 0) {
        if (stream->window > 0) {
            h2_stream_queue(stream); /* only the connection's window is shut */
        }
        return SERVED_NOTHING;
    }
    if (out->size - out->length < H2_FRAME_HEAD + length) {
        h2_stream_queue(stream);
        return SERVED_NO_ROOM;
    }
    bool last = length == left && stream->out_ended;
    bool trailers = bytes_left(&stream->trailers) > 0;
    if (length > 0 || !trailers) {
        put_data(stream, out, length, last && !trailers);
    }
    if (last && trailers) {
        say_trailers(stream);
    } else if (last) {
        h2_stream_said_all(stream);
    } else if (bytes_left(&stream->out) > 0) {
        h2_stream_queue(stream);
    }
    return SERVED;
}

/* The stream whose turn it is; all that waits has been written. */
static enum served serve(struct h2_stream *stream, struct text_sink *out)
{
    h2_stream_unqueue(stream);
    if (stream->failed) {
        h2_stream_fail(stream, H2_INTERNAL_ERROR);
        return SERVED;
    }
    if (stream->end_queued) { /* by a head, which has been written */
        h2_stream_said_all(stream);
        return SERVED;
    }
    return serve_body(stream, out);
}

/* Streams by turns, a frame each. */
static void write_all(struct h2_session *session, struct text_sink *out)
{
    uint32_t passed = 0; /* streams that had their turn since anything was written */
    while (take_queue(session, out) && h2_goes_on(session) && session->first != NULL && passed < session->queue_size) {
        switch (serve(session->first, out)) {
        case SERVED:
            passed = 0;
            break;
        case SERVED_NOTHING:
            passed++;
            break;
        case SERVED_NO_ROOM:
            return;
        }
    }
}

/* Tells streams that have room again. The callback may end any stream. */
static void tell_drained(struct h2_session *session)
{
    struct h2_stream *stream = session->streams;
    while (session->drains > 0 && h2_goes_on(session)) {
        while (!stream->drained) {
            stream = stream->next;
        }
        stream->drained = false;
        session->drains--;
        if (stream->owner != NULL) {
            session->calls->drained(stream->owner);
        }
        stream = session->streams;
    }
}

size_t h2_write(struct h2_session *session, char *to, size_t size)
{
    struct text_sink out = {.at = to, .size = size};
    if (session->dead) {
        return 0;
    }
    session->busy = true;
    write_all(session, &out);
    tell_drained(session);
    return h2_idle_again(session) ? out.length : 0;
}

bool h2_wants_write(const struct h2_session *session)
{
    bool streams = session->end == H2_END_NONE && session->first != NULL;
    return !session->dead && (bytes_left(&session->queue) > 0 || streams);
}
