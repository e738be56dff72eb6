/* SPDX-License-Identifier: MIT */
#include "h2_fields.h"
#include "h2_session_internal.h"

#include "http/text_internal.h"
#include "message/packed.h"
#include "unfilled.h"

#include <stdlib.h>

#define FRAME_HEAD 9u /* bytes before a frame's payload */

static void give_up_stream(struct h2_stream *stream)
{
    (void)nghttp2_submit_rst_stream(stream->session->http2, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_INTERNAL_ERROR);
}

static void send_trailers(struct h2_stream *stream)
{
    UNFILLED struct h2_fields fields;
    fields.count = 0;
    h2_fields_add_packed(&fields, (struct becalm_text){bytes_at(&stream->trailers), bytes_left(&stream->trailers)});
    if (nghttp2_submit_trailer(stream->session->http2, stream->id, fields.field, fields.count) != 0) {
        (void)nghttp2_submit_rst_stream(stream->session->http2, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_INTERNAL_ERROR);
    }
}

/* How much of a body goes into the next frame. The bytes themselves are written by send_data(). */
static ssize_t next_data(nghttp2_session *http2, int32_t id, uint8_t *bytes, size_t length, uint32_t *flags,
                         nghttp2_data_source *source, void *user)
{
    struct h2_stream *stream = source->ptr;
    size_t left = bytes_left(&stream->out);
    (void)http2;
    (void)id;
    (void)bytes;
    (void)user;
    if (left == 0 && !stream->out_ended) {
        stream->waits = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (left <= length && stream->out_ended) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (bytes_left(&stream->trailers) > 0) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            send_trailers(stream);
        }
    }
    return (ssize_t)(left < length ? left : length);
}

static int send_data(nghttp2_session *http2, nghttp2_frame *frame, const uint8_t *head, size_t length,
                     nghttp2_data_source *source, void *user)
{
    struct h2_session *session = user;
    struct h2_stream *stream = source->ptr;
    struct text_sink *out = session->out;
    (void)http2;
    (void)frame;
    if (out->size - out->length < FRAME_HEAD + length) {
        return NGHTTP2_ERR_WOULDBLOCK;
    }
    text_put(out, (struct becalm_text){(const char *)head, FRAME_HEAD});
    text_put(out, (struct becalm_text){bytes_at(&stream->out), length});
    stream->out.from += (uint32_t)length;
    session->held -= length;
    if (bytes_left(&stream->out) == 0) {
        bytes_give(&stream->out, session->scratch->blocks);
    }
    if (stream->full && bytes_left(&stream->out) <= H2_DRAINED) {
        stream->full = false;
        stream->drained = session->drains = true;
    }
    h2_guard_sent(&session->guard);
    return 0;
}

/* A stream that is reset because of what the peer did on it has cost it nothing: "made you reset". */
static int note_reset(struct h2_session *session, uint32_t code)
{
    switch (code) {
    case NGHTTP2_NO_ERROR:
    case NGHTTP2_CANCEL:
    case NGHTTP2_INTERNAL_ERROR:
        return 0;
    case NGHTTP2_REFUSED_STREAM: /* before it knows how many it may have, the peer can't be blamed */
        return h2_guard_frame(&session->guard) ? 0 : h2_flood(session, H2_END_FAULTS);
    default:
        return h2_guard_fault(&session->guard) ? 0 : h2_flood(session, H2_END_FAULTS);
    }
}

static int on_frame_send(nghttp2_session *http2, const nghttp2_frame *frame, void *user)
{
    struct h2_session *session = user;
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR &&
        session->end == H2_END_NONE) {
        session->end = H2_END_PROTOCOL; /* nghttp2 says so by itself */
    }
    if (session->role == H2_CLIENT) {
        struct h2_stream *stream =
            frame->hd.type == NGHTTP2_HEADERS ? h2_stream_of(session, frame->hd.stream_id) : NULL;
        if (stream != NULL) {
            stream->sent = true;
        }
        return 0;
    }
    if (frame->hd.type == NGHTTP2_RST_STREAM) {
        return note_reset(session, frame->rst_stream.error_code);
    }
    if (frame->hd.type == NGHTTP2_GOAWAY && session->going && !session->gone && session->end == H2_END_NONE) {
        h2_ping(session); /* not earlier: nghttp2 would send it before the GOAWAY */
        return 0;
    }
    bool carries = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
    if (carries && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 &&
        nghttp2_session_get_stream_remote_close(http2, frame->hd.stream_id) == 0) {
        /* Answered before all was asked: the rest is not wanted (RFC 9113, 8.1). */
        (void)nghttp2_submit_rst_stream(http2, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
    }
    return 0;
}

/* A request that could not be written any more, since the peer goes away: nghttp2 has not even opened its stream. */
static void not_opened(struct h2_session *session, int32_t id)
{
    struct h2_stream *stream = session->streams;
    while (stream != NULL && stream->id != id) {
        stream = stream->next;
    }
    if (stream == NULL || stream->sent) {
        return;
    }
    void *owner = stream->owner;
    h2_stream_free(stream);
    if (owner != NULL && !session->doomed) {
        session->calls->closed(owner, H2_REFUSED_STREAM);
    }
}

/* Nobody would read it, since the session ends; or a stream could not be opened any more. */
static int on_frame_not_send(nghttp2_session *http2, const nghttp2_frame *frame, int error, void *user)
{
    struct h2_session *session = user;
    (void)http2;
    (void)error;
    struct h2_stream *stream = frame->hd.type == NGHTTP2_HEADERS ? h2_stream_of(session, frame->hd.stream_id) : NULL;
    if (stream != NULL && stream->owner != NULL && session->role == H2_SERVER && session->end == H2_END_NONE) {
        (void)nghttp2_submit_rst_stream(session->http2, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_INTERNAL_ERROR);
    }
    if (stream == NULL && session->role == H2_CLIENT && frame->hd.type == NGHTTP2_HEADERS &&
        frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        not_opened(session, frame->hd.stream_id);
    }
    return 0;
}

static struct becalm_text status_text(char text[3], uint32_t status)
{
    text[0] = (char)('0' + status / 100 % 10);
    text[1] = (char)('0' + status / 10 % 10);
    text[2] = (char)('0' + status % 10);
    return (struct becalm_text){text, 3};
}

struct h2_stream *h2_request(struct h2_session *session, const struct draft *draft, bool end, void *owner)
{
    UNFILLED struct h2_fields fields;
    struct h2_stream *stream = h2_stream_new(session, 0);
    if (stream == NULL) {
        return NULL;
    }
    fields.count = 0;
    h2_fields_add(&fields, ":method", draft->method);
    h2_fields_add(&fields, ":scheme",
                  session->limits.secure ? (struct becalm_text){"https", 5} : (struct becalm_text){"http", 4});
    h2_fields_add(&fields, ":authority", draft->authority);
    h2_fields_add(&fields, ":path", draft->path);
    h2_fields_add_draft(&fields, draft);
    if (draft->te_trailers) {
        h2_fields_add(&fields, "te", (struct becalm_text){"trailers", 8});
    }
    nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = next_data};
    int32_t id =
        nghttp2_submit_request(session->http2, NULL, fields.field, fields.count, end ? NULL : &provider, stream);
    if (id < 0) {
        h2_stream_free(stream);
        return NULL;
    }
    stream->id = id;
    stream->owner = owner;
    stream->to_head = text_is(draft->method, "HEAD");
    stream->said = true;
    stream->out_ended = end;
    return stream;
}

void h2_interim(struct h2_stream *stream, const struct draft *draft)
{
    UNFILLED struct h2_fields fields;
    char status[3];
    fields.count = 0;
    h2_fields_add(&fields, ":status", status_text(status, draft->status));
    h2_fields_add_draft(&fields, draft);
    (void)nghttp2_submit_headers(stream->session->http2, NGHTTP2_FLAG_NONE, stream->id, NULL, fields.field,
                                 fields.count, NULL); /* hints promise nothing: without memory there are none */
}

void h2_answer(struct h2_stream *stream, const struct draft *draft, bool end)
{
    UNFILLED struct h2_fields fields;
    char status[3];
    nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = next_data};
    fields.count = 0;
    h2_fields_add(&fields, ":status", status_text(status, draft->status));
    h2_fields_add_draft(&fields, draft);
    stream->said = true;
    stream->out_ended = end;
    if (nghttp2_submit_response(stream->session->http2, stream->id, fields.field, fields.count,
                                end ? NULL : &provider) != 0) {
        give_up_stream(stream);
    }
}

/* nghttp2 asks again. */
static void wake(struct h2_stream *stream)
{
    if (stream->waits) {
        stream->waits = false;
        (void)nghttp2_session_resume_data(stream->session->http2, stream->id);
    }
}

bool h2_data(struct h2_stream *stream, const char *bytes, size_t length)
{
    if (length == 0) {
        return true;
    }
    if (!bytes_add_from(&stream->out, stream->session->scratch->blocks, bytes, length)) {
        return false;
    }
    stream->session->held += length;
    stream->full = bytes_left(&stream->out) > H2_DRAINED;
    wake(stream);
    return true;
}

static bool pack_trailers(struct h2_stream *stream, const struct head *trailers)
{
    size_t size = 0;
    for (uint32_t i = 0; i < trailers->field_count; i++) {
        size += 2 * sizeof(uint32_t) + trailers->field[i].name_length + trailers->field[i].value_length;
    }
    size_t all = (size / BLOCKS_STEP + 1) * BLOCKS_STEP;
    char *room = blocks_take(stream->session->scratch->blocks, all);
    struct text_sink out = {.at = room, .size = size};
    for (uint32_t i = 0; room != NULL && i < trailers->field_count; i++) {
        packed_put(&out, field_name(trailers, &trailers->field[i]), field_value(trailers, &trailers->field[i]));
    }
    stream->trailers = (struct bytes){.at = room, .length = (uint32_t)out.length, .size = (uint32_t)all};
    return room != NULL;
}

void h2_end(struct h2_stream *stream, const struct head *trailers)
{
    if (trailers != NULL && trailers->field_count > 0 && !pack_trailers(stream, trailers)) {
        stream->trailers = (struct bytes){0};
        give_up_stream(stream);
    }
    stream->out_ended = true;
    wake(stream);
}

void h2_send_callbacks(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_send);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_frame_not_send);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, send_data);
}
