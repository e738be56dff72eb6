/* SPDX-License-Identifier: MIT */
#include "h2_session_internal.h"

/* ---- a frame begins ---- */

/* The reason to end the session if there are too many frames of this kind. H2_END_NONE: the frame is useful. */
static enum h2_end idle_kind(const struct h2_frame *frame)
{
    switch (frame->type) {
    case H2_DATA:
        return frame->length == 0 && (frame->flags & H2_FLAG_END_STREAM) == 0 ? H2_END_EMPTY : H2_END_NONE;
    case H2_HEADERS:
    case H2_CONTINUATION:
    case H2_PUSH_PROMISE:
    case H2_RST_STREAM:
    case H2_GOAWAY:
    case H2_WINDOW_UPDATE: /* by how much it opens is known later */
        return H2_END_NONE;
    case H2_PRIORITY:
        return H2_END_PRIORITIES;
    case H2_SETTINGS:
        return H2_END_SETTINGS;
    case H2_PING:
        return H2_END_PINGS;
    default: /* a type is any byte */
        return H2_END_UNKNOWN;
    }
}

/* Which length the frame must have; a multiple of it: SETTINGS; at least: GOAWAY. */
static uint32_t length_of(uint8_t type)
{
    switch (type) {
    case H2_PRIORITY:
        return 5;
    case H2_RST_STREAM:
    case H2_WINDOW_UPDATE:
        return 4;
    case H2_SETTINGS:
        return 6;
    case H2_PING:
    case H2_GOAWAY:
        return 8;
    default: /* frames of other types may have any length */
        return 0;
    }
}

uint32_t h2_part_length(const struct h2_session *session)
{
    return length_of(session->reader.frame.type);
}

static bool has_right_length(const struct h2_frame *frame)
{
    uint32_t length = length_of(frame->type);
    switch (frame->type) {
    case H2_SETTINGS:
        return (frame->flags & H2_FLAG_ACK) != 0 ? frame->length == 0 : frame->length % length == 0;
    case H2_GOAWAY:
        return frame->length >= length;
    default:
        return length == 0 || frame->length == length;
    }
}

/* Is the frame about a stream, or about the connection? H2_NO_ERROR: it is right. */
static uint32_t wrong_stream(const struct h2_session *session, const struct h2_frame *frame)
{
    switch (frame->type) {
    case H2_DATA:
    case H2_RST_STREAM:
        return frame->id == 0 || h2_is_idle(session, frame->id) ? H2_PROTOCOL_ERROR : H2_NO_ERROR;
    case H2_HEADERS:
    case H2_CONTINUATION:
    case H2_PRIORITY:
        return frame->id == 0 ? H2_PROTOCOL_ERROR : H2_NO_ERROR;
    case H2_WINDOW_UPDATE:
        return frame->id != 0 && h2_is_idle(session, frame->id) ? H2_PROTOCOL_ERROR : H2_NO_ERROR;
    case H2_SETTINGS:
    case H2_PING:
    case H2_GOAWAY:
        return frame->id != 0 ? H2_PROTOCOL_ERROR : H2_NO_ERROR;
    case H2_PUSH_PROMISE: /* we say that we take none, before anything is asked */
        return H2_PROTOCOL_ERROR;
    default:
        return H2_NO_ERROR;
    }
}

/* The error of a frame whose head has arrived; H2_NO_ERROR: none so far. */
static uint32_t wrong_frame(const struct h2_session *session, const struct h2_frame *frame)
{
    bool first = !session->has_settings;
    if (first && (frame->type != H2_SETTINGS || (frame->flags & H2_FLAG_ACK) != 0)) {
        return H2_PROTOCOL_ERROR;
    }
    if (frame->length > H2_FRAME_MAX) {
        return H2_FRAME_SIZE_ERROR;
    }
    bool continues = frame->type == H2_CONTINUATION && frame->id == session->heading_id;
    if ((session->heading != H2_HEADING_NONE) ? !continues : frame->type == H2_CONTINUATION) {
        return H2_PROTOCOL_ERROR; /* nothing comes between the frames of a head */
    }
    uint32_t wrong = wrong_stream(session, frame);
    return wrong != H2_NO_ERROR || has_right_length(frame) ? wrong : H2_FRAME_SIZE_ERROR;
}

/* DATA for a stream that is over. The peer knows the streams that it has ended itself or never opened; it may not know
 * yet that this side has reset a stream. */
static uint32_t wrong_data(const struct h2_session *session, const struct h2_stream *stream, int32_t id)
{
    if (stream != NULL) {
        return stream->state == H2_STATE_HEARD ? H2_STREAM_CLOSED : H2_NO_ERROR;
    }
    bool server = session->role == H2_SERVER;
    return server && h2_past_skipped(&session->past, id)     ? H2_PROTOCOL_ERROR
           : server && h2_past_has_ended(&session->past, id) ? H2_STREAM_CLOSED
                                                             : H2_NO_ERROR;
}

static void begin_data(struct h2_session *session)
{
    const struct h2_frame *frame = &session->reader.frame;
    struct h2_stream *stream = h2_stream_find(session, frame->id);
    bool whole = true;
    uint32_t wrong = wrong_data(session, stream, frame->id);
    if (wrong == H2_NO_ERROR) {
        wrong = h2_flow_came(session, stream, frame->length, &whole);
    }
    if (wrong != H2_NO_ERROR && whole) {
        h2_wrong(session, wrong);
        return;
    }
    if (stream != NULL && wrong == H2_NO_ERROR && session->role == H2_CLIENT && !stream->answered) {
        wrong = H2_PROTOCOL_ERROR; /* the answer's head comes first */
    }
    if (wrong != H2_NO_ERROR) {
        h2_stream_fail(stream, wrong);
    }
    h2_guard_came(&session->guard, frame->length);
}

void h2_take_frame(struct h2_session *session)
{
    struct h2_reader *reader = &session->reader;
    const struct h2_frame *frame = &reader->frame;
    uint32_t wrong = wrong_frame(session, frame);
    if (wrong != H2_NO_ERROR) {
        h2_wrong(session, wrong);
        return;
    }
    enum h2_end kind = idle_kind(frame);
    if (kind != H2_END_NONE && !h2_guard_frame(&session->guard)) {
        h2_flood(session, kind);
        return;
    }
    switch (frame->type) {
    case H2_DATA:
        begin_data(session);
        h2_payload_begin(session);
        break;
    case H2_HEADERS:
        h2_take_head_begin(session);
        h2_payload_begin(session);
        break;
    case H2_CONTINUATION:
        h2_take_head_goes_on(session);
        reader->reading = H2_READS_BLOCK;
        break;
    case H2_SETTINGS:
        reader->reading = H2_READS_PART;
        if (frame->length > H2_SETTINGS_MAX * length_of(H2_SETTINGS)) {
            h2_flood(session, H2_END_SETTINGS);
        }
        break;
    case H2_PRIORITY:
    case H2_RST_STREAM:
    case H2_PING:
    case H2_GOAWAY:
    case H2_WINDOW_UPDATE:
        reader->reading = H2_READS_PART;
        break;
    default: /* an unknown type */
        reader->reading = H2_READS_REST;
        break;
    }
}

/* ---- bodies ---- */

void h2_take_data(struct h2_session *session, const char *bytes, uint32_t length)
{
    struct h2_stream *stream = h2_stream_find(session, session->reader.frame.id);
    if (stream == NULL) {
        return;
    }
    stream->received += length;
    if (stream->expected != H2_LENGTH_UNKNOWN && stream->received > (uint64_t)stream->expected) {
        h2_stream_fail(stream, H2_PROTOCOL_ERROR);
        return;
    }
    if (stream->owner == NULL) {
        h2_flow_taken(stream, length);
        return;
    }
    stream->untaken += length;
    session->calls->data(stream->owner, bytes, length);
}

void h2_take_data_end(struct h2_session *session)
{
    const struct h2_reader *reader = &session->reader;
    struct h2_stream *stream = h2_stream_find(session, reader->frame.id);
    if (stream == NULL) {
        return;
    }
    if ((reader->frame.flags & H2_FLAG_PADDED) != 0) {
        h2_flow_taken(stream, reader->padding + 1);
    }
    if ((reader->frame.flags & H2_FLAG_END_STREAM) != 0) {
        h2_take_end(stream);
    }
}

void h2_take_end(struct h2_stream *stream)
{
    struct h2_session *session = stream->session;
    if (stream->expected != H2_LENGTH_UNKNOWN && stream->received != (uint64_t)stream->expected) {
        h2_stream_fail(stream, H2_PROTOCOL_ERROR);
        return;
    }
    if (stream->state == H2_STATE_OPEN) {
        h2_stream_enter(stream, H2_STATE_HEARD);
    }
    if (stream->owner != NULL) {
        session->calls->end(stream->owner);
    }
    h2_stream_heard_all(stream);
}

/* ---- frames of a fixed length ---- */

/* The peer is answered: SETTINGS and PING. */
static void acknowledge(struct h2_session *session, const char *payload)
{
    if (++session->acks > H2_ACKS_MAX) {
        h2_flood(session, H2_END_ACKS);
        return;
    }
    struct h2_frame frame = {
        .type = session->reader.frame.type, .flags = H2_FLAG_ACK, .length = payload == NULL ? 0 : 8};
    h2_queue_frame(session, frame, payload);
}

static void take_reset(struct h2_session *session, uint32_t code)
{
    int32_t id = session->reader.frame.id;
    struct h2_stream *stream = h2_stream_find(session, id);
    becalm_ns age = stream == NULL ? 0 : becalm_ns_since(session->now, stream->opened_at);
    if (session->role == H2_SERVER) {
        h2_past_ended(&session->past, id);
        if (!h2_guard_reset(&session->guard, age)) {
            h2_flood(session, H2_END_RESETS);
            return;
        }
    }
    if (stream != NULL) {
        h2_stream_close(stream, code);
    }
}

static void take_window(struct h2_session *session, uint32_t more)
{
    int32_t id = session->reader.frame.id;
    struct h2_stream *stream = id == 0 ? NULL : h2_stream_find(session, id);
    int32_t *window = id == 0 ? &session->window : stream != NULL ? &stream->window : NULL;
    if (more < H2_GUARD_WINDOW_MIN && !h2_guard_frame(&session->guard)) {
        h2_flood(session, H2_END_WINDOWS);
        return;
    }
    if (window == NULL) {
        return; /* the stream is over */
    }
    uint32_t wrong = more == 0                       ? H2_PROTOCOL_ERROR
                     : !h2_flow_opened(window, more) ? H2_FLOW_CONTROL_ERROR
                                                     : H2_NO_ERROR;
    if (wrong != H2_NO_ERROR && stream == NULL) {
        h2_wrong(session, wrong);
    } else if (wrong != H2_NO_ERROR) {
        h2_stream_fail(stream, wrong);
    } else if (stream != NULL && stream->window > 0 && bytes_left(&stream->out) > 0) {
        h2_stream_queue(stream);
    }
}

/* The peer looks at no stream behind `last`, and at none that it has not heard of. */
static void take_goaway(struct h2_session *session, int32_t last, uint32_t code)
{
    if (session->role == H2_CLIENT) {
        if (last > session->last_told) {
            h2_wrong(session, H2_PROTOCOL_ERROR);
            return;
        }
        session->last_told = last;
        h2_queue_cut(session);
        session->gone = true;
        struct h2_stream *stream = session->streams;
        while (stream != NULL && h2_goes_on(session)) {
            bool over = stream->id > last || !h2_sent(stream);
            if (over) {
                h2_stream_close(stream, H2_REFUSED_STREAM);
            }
            stream = over ? session->streams : stream->next; /* the callback may have ended other streams */
        }
    }
    session->gone = true;
    if (h2_goes_on(session) && session->calls->goaway != NULL) {
        session->calls->goaway(session->owner, code);
    }
}

static void tell(struct h2_session *session, void (*told)(void *))
{
    if (told != NULL) {
        told(session->owner);
    }
}

static void take_setting(struct h2_session *session, const uint8_t *part)
{
    uint32_t wrong = h2_settings_take(session, (uint16_t)(part[0] << 8 | part[1]), h2_number(part + 2));
    if (wrong != H2_NO_ERROR) {
        h2_wrong(session, wrong);
    }
}

void h2_take_settings_end(struct h2_session *session)
{
    if ((session->reader.frame.flags & H2_FLAG_ACK) == 0) {
        session->has_settings = true;
        h2_settings_taken(session);
        acknowledge(session, NULL);
        tell(session, h2_goes_on(session) ? session->calls->settings : NULL);
    } else if (h2_settings_acknowledged(session)) {
        tell(session, session->calls->acknowledged);
    } else {
        h2_wrong(session, H2_PROTOCOL_ERROR);
    }
}

static void take_ping(struct h2_session *session)
{
    if ((session->reader.frame.flags & H2_FLAG_ACK) != 0) {
        tell(session, session->calls->pong);
    } else {
        acknowledge(session, (const char *)session->reader.part);
    }
}

void h2_take_part(struct h2_session *session)
{
    const struct h2_reader *reader = &session->reader;
    const uint8_t *part = reader->part;
    switch (reader->frame.type) {
    case H2_PRIORITY: /* out of use; but no stream depends on itself */
        if (h2_number31(part) == (uint32_t)reader->frame.id) {
            h2_wrong(session, H2_PROTOCOL_ERROR);
        }
        break;
    case H2_RST_STREAM:
        take_reset(session, h2_number(part));
        break;
    case H2_SETTINGS:
        take_setting(session, part);
        break;
    case H2_PING:
        take_ping(session);
        break;
    case H2_GOAWAY:
        take_goaway(session, (int32_t)h2_number31(part), h2_number(part + 4));
        break;
    case H2_WINDOW_UPDATE:
        take_window(session, h2_number31(part));
        break;
    default: /* frames of other types are not read in parts */
        break;
    }
}
