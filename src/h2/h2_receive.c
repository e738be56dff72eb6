/* SPDX-License-Identifier: MIT */
#include "h2_session_internal.h"

/* What the frame's kind is called when there are too many of it. H2_END_NONE: it carries something. */
static enum h2_end idle_kind(const nghttp2_frame_hd *hd)
{
    switch (hd->type) {
    case NGHTTP2_DATA:
        return hd->length == 0 && (hd->flags & NGHTTP2_FLAG_END_STREAM) == 0 ? H2_END_EMPTY : H2_END_NONE;
    case NGHTTP2_HEADERS:
    case NGHTTP2_CONTINUATION:
    case NGHTTP2_PUSH_PROMISE:
    case NGHTTP2_RST_STREAM:
    case NGHTTP2_GOAWAY:
    case NGHTTP2_WINDOW_UPDATE: /* by how much it opens is known later */
        return H2_END_NONE;
    case NGHTTP2_PRIORITY:
        return H2_END_PRIORITIES;
    case NGHTTP2_SETTINGS:
        return H2_END_SETTINGS;
    case NGHTTP2_PING:
        return H2_END_PINGS;
    default: /* a type is any byte: on_extension() counts the others */
        return H2_END_NONE;
    }
}

static void note_ended(struct h2_session *session, int32_t id)
{
    session->ended[session->ended_at++ % H2_ENDED_MAX] = id;
}

/* A client opens a stream: those that it has left out are closed by that (RFC 9113, 5.1.1). */
static void note_opened(struct h2_session *session, int32_t id)
{
    if (id > session->highest) {
        session->skipped = session->highest == 0 ? 1 : session->highest + 2;
        session->highest = id;
    }
}

/* Has the peer itself ended this stream? */
static bool has_ended(const struct h2_session *session, int32_t id)
{
    for (uint32_t i = 0; i < H2_ENDED_MAX; i++) {
        if (session->ended[i] == id) {
            return true;
        }
    }
    return false;
}

/* What breaks a rule of RFC 9113 and nghttp2 lets pass. NGHTTP2_NO_ERROR: nothing. Streams that this side has reset are
 * another matter: what their peer had sent before it heard of that is welcome to come. */
static uint32_t wrong_frame(const struct h2_session *session, const nghttp2_frame_hd *hd)
{
    int32_t id = hd->stream_id;
    if (hd->type == NGHTTP2_PRIORITY && id == 0) {
        return NGHTTP2_PROTOCOL_ERROR;
    }
    if (session->role == H2_CLIENT || hd->type != NGHTTP2_HEADERS || id == 0) {
        return NGHTTP2_NO_ERROR;
    }
    if (id % 2 == 1 && id >= session->skipped && id < session->highest) {
        return NGHTTP2_PROTOCOL_ERROR;
    }
    return has_ended(session, id) ? NGHTTP2_STREAM_CLOSED : NGHTTP2_NO_ERROR;
}

static int on_begin_frame(nghttp2_session *http2, const nghttp2_frame_hd *hd, void *user)
{
    struct h2_session *session = user;
    enum h2_end kind = idle_kind(hd);
    uint32_t wrong = wrong_frame(session, hd);
    (void)http2;
    if (wrong != NGHTTP2_NO_ERROR) {
        h2_end_session(session, H2_END_PROTOCOL, wrong);
        return 0;
    }
    if (hd->type == NGHTTP2_HEADERS && session->role == H2_SERVER && hd->stream_id % 2 == 1) {
        note_opened(session, hd->stream_id);
    }
    if (hd->type != NGHTTP2_CONTINUATION) {
        session->block.text.length = 0; /* a head that came before is through, or was given up */
    }
    return kind == H2_END_NONE || h2_guard_frame(&session->guard) ? 0 : h2_flood(session, kind);
}

/* The first head of a stream that a client opened, or an answer's, or trailers. */
static enum h2_block_kind kind_of(const struct h2_session *session, const nghttp2_frame *frame)
{
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        return H2_BLOCK_REQUEST;
    }
    const struct h2_stream *stream = h2_stream_of((struct h2_session *)(uintptr_t)session, frame->hd.stream_id);
    bool answers = session->role == H2_CLIENT && stream != NULL && !stream->answered;
    return answers ? H2_BLOCK_ANSWER : H2_BLOCK_TRAILERS;
}

static int on_begin_headers(nghttp2_session *http2, const nghttp2_frame *frame, void *user)
{
    struct h2_session *session = user;
    h2_block_begin(&session->block, kind_of(session, frame), session->scratch);
    /* Behind a GOAWAY that was said, if only to nghttp2 yet, the peer may ask somebody else: nothing is begun here. */
    if (session->block.kind == H2_BLOCK_REQUEST && session->end == H2_END_NONE && !session->gone) {
        struct h2_stream *stream = h2_stream_new(session, frame->hd.stream_id);
        if (stream == NULL) {
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
        nghttp2_session_set_stream_user_data(http2, frame->hd.stream_id, stream);
    }
    return 0;
}

static int on_header(nghttp2_session *http2, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
                     const uint8_t *value, size_t value_length, uint8_t flags, void *user)
{
    struct h2_session *session = user;
    (void)http2;
    (void)frame;
    (void)flags;
    h2_block_field(&session->block, (struct becalm_text){(const char *)name, name_length},
                   (struct becalm_text){(const char *)value, value_length});
    return h2_block_bomb(&session->block, &session->limits) ? h2_flood(session, H2_END_HEADS) : 0;
}

/* nghttp2 would leave it out: but whoever wrote it meant something by it. */
static int on_invalid_header(nghttp2_session *http2, const nghttp2_frame *frame, const uint8_t *name,
                             size_t name_length, const uint8_t *value, size_t value_length, uint8_t flags, void *user)
{
    (void)http2;
    (void)frame;
    (void)name;
    (void)name_length;
    (void)value;
    (void)value_length;
    (void)flags;
    (void)user;
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

/* A stream that nobody wants. */
static void refuse(struct h2_session *session, struct h2_stream *stream)
{
    stream->owner = NULL;
    (void)nghttp2_submit_rst_stream(session->http2, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_REFUSED_STREAM);
}

static void take_request(struct h2_session *session, struct h2_stream *stream, bool end)
{
    struct head *head = &session->scratch->head;
    struct h1_verdict verdict = h2_block_end(&session->block, &session->limits, end, false, head);
    h2_guard_asked(&session->guard);
    stream->owner = verdict.kind == H1_OK ? session->calls->request(session->owner, stream, head, end)
                                          : session->calls->unfit(session->owner, stream, verdict, end);
    if (stream->owner == NULL && !session->doomed && !stream->said) {
        refuse(session, stream);
    }
}

static void take_answer(struct h2_session *session, struct h2_stream *stream, bool end)
{
    struct head *head = &session->scratch->head;
    struct h1_verdict verdict = h2_block_end(&session->block, &session->limits, end, stream->to_head, head);
    h2_guard_asked(&session->guard);
    if (stream->owner == NULL) {
        return;
    }
    if (verdict.kind != H1_OK) {
        void *owner = stream->owner;
        h2_reset(stream, H2_PROTOCOL_ERROR);
        session->calls->broken(owner, verdict.what);
        return;
    }
    stream->answered = head->status >= 200;
    session->calls->answer(stream->owner, head, end);
}

static void take_head(struct h2_session *session, const nghttp2_frame *frame)
{
    struct h2_stream *stream = h2_stream_of(session, frame->hd.stream_id);
    bool end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (stream == NULL || session->end != H2_END_NONE) {
        return;
    }
    switch (session->block.kind) {
    case H2_BLOCK_REQUEST:
        take_request(session, stream, end);
        break;
    case H2_BLOCK_ANSWER:
        take_answer(session, stream, end);
        break;
    case H2_BLOCK_TRAILERS:
        if (stream->owner != NULL) {
            struct becalm_text text = h2_block_trailers(&session->block);
            session->calls->trailers(stream->owner, text.at, session->block.text.full ? 0 : text.length);
        }
        break;
    }
}

/* The peer has said all on this stream. */
static void take_end(struct h2_session *session, const nghttp2_frame *frame)
{
    bool end = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    bool carries = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
    struct h2_stream *stream = end && carries && !session->doomed ? h2_stream_of(session, frame->hd.stream_id) : NULL;
    if (stream != NULL && stream->owner != NULL && session->end == H2_END_NONE) {
        session->calls->end(stream->owner);
    }
}

static int take_reset(struct h2_session *session, const nghttp2_frame *frame)
{
    const struct h2_stream *stream = h2_stream_of(session, frame->hd.stream_id);
    becalm_ns age = stream == NULL ? 0 : becalm_ns_since(session->now, stream->opened_at);
    note_ended(session, frame->hd.stream_id);
    return session->role == H2_CLIENT || h2_guard_reset(&session->guard, age) ? 0 : h2_flood(session, H2_END_RESETS);
}

static void take_settings(struct h2_session *session, bool ack)
{
    void (*told)(void *) = ack ? session->calls->acknowledged : session->calls->settings;
    session->has_settings |= !ack;
    if (told != NULL) {
        told(session->owner);
    }
}

static int on_frame_recv(nghttp2_session *http2, const nghttp2_frame *frame, void *user)
{
    struct h2_session *session = user;
    (void)http2;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        take_head(session, frame);
        session->block.text.length = 0;
        break;
    case NGHTTP2_RST_STREAM:
        return take_reset(session, frame);
    case NGHTTP2_WINDOW_UPDATE:
        if ((uint32_t)frame->window_update.window_size_increment < H2_GUARD_WINDOW_MIN &&
            !h2_guard_frame(&session->guard)) {
            return h2_flood(session, H2_END_WINDOWS);
        }
        break;
    case NGHTTP2_SETTINGS:
        take_settings(session, (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0);
        break;
    case NGHTTP2_PING:
        if (session->calls->pong != NULL && (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) {
            session->calls->pong(session->owner);
        }
        break;
    case NGHTTP2_GOAWAY:
        session->gone = true;
        if (session->calls->goaway != NULL) {
            session->calls->goaway(session->owner, frame->goaway.error_code);
        }
        break;
    default: /* a type is any byte, and of the others nothing is to be known */
        break;
    }
    take_end(session, frame);
    return session->doomed ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_data(nghttp2_session *http2, uint8_t flags, int32_t id, const uint8_t *bytes, size_t length, void *user)
{
    struct h2_session *session = user;
    struct h2_stream *stream = h2_stream_of(session, id);
    (void)flags;
    h2_guard_came(&session->guard, length);
    /* A stream whose owner is slow must not stop the others: the connection's window is as large as all of theirs. */
    (void)nghttp2_session_consume_connection(http2, length);
    if (stream == NULL || stream->owner == NULL || session->end != H2_END_NONE) {
        if (stream == NULL || !stream->left) {
            (void)nghttp2_session_consume_stream(http2, id, length);
        }
        return 0;
    }
    stream->untaken += (uint32_t)length;
    session->calls->data(stream->owner, (const char *)bytes, length);
    return session->doomed ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

/* A frame that nobody here knows is counted and dropped. */
static int on_extension(nghttp2_session *http2, void **payload, const nghttp2_frame_hd *hd, void *user)
{
    struct h2_session *session = user;
    (void)http2;
    (void)payload;
    (void)hd;
    if (!h2_guard_frame(&session->guard)) {
        h2_flood(session, H2_END_UNKNOWN);
    }
    return NGHTTP2_ERR_CANCEL;
}

static int on_close(nghttp2_session *http2, int32_t id, uint32_t code, void *user)
{
    struct h2_session *session = user;
    struct h2_stream *stream = h2_stream_of(session, id);
    if (stream == NULL) {
        return 0;
    }
    void *owner = stream->owner;
    if (nghttp2_session_get_stream_remote_close(http2, id) == 1) {
        note_ended(session, id);
    }
    if (session->role == H2_CLIENT && !stream->sent) {
        code = NGHTTP2_REFUSED_STREAM; /* the peer knows nothing of it */
    }
    if (code == NGHTTP2_NO_ERROR) {
        h2_guard_answered(&session->guard);
    }
    nghttp2_session_set_stream_user_data(session->http2, id, NULL);
    h2_stream_free(stream);
    if (owner != NULL && !session->doomed) {
        session->calls->closed(owner, code);
    }
    return 0;
}

/* ---- frames that nghttp2 passes over ---- */

static bool is_priority(const struct h2_watch *watch)
{
    const uint8_t *head = watch->head;
    return head[3] == NGHTTP2_PRIORITY && head[0] == 0 && head[1] == 0 && head[2] == 5;
}

static uint32_t number_at(const uint8_t *at)
{
    return ((uint32_t)at[0] & 0x7f) << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Takes more of a frame's head. True: all of it is here. */
static bool watch_take(struct h2_watch *watch, const char *bytes, size_t length, size_t *at)
{
    for (;;) {
        size_t wanted = watch->have >= H2_WATCH_HEAD && is_priority(watch) ? H2_WATCH_PRIORITY : H2_WATCH_HEAD;
        if (watch->have == wanted || *at == length) {
            return watch->have == wanted;
        }
        size_t more = wanted - watch->have < length - *at ? wanted - watch->have : length - *at;
        memcpy(watch->head + watch->have, bytes + *at, more);
        watch->have = (uint8_t)(watch->have + more);
        *at += more;
    }
}

/* What the frame breaks whose head is here, when all before it was looked at: DATA on a stream that the peer has ended
 * and that is over; a stream that depends on itself. */
static uint32_t watch_wrong(const struct h2_session *session)
{
    const struct h2_watch *watch = &session->watch;
    uint32_t id = number_at(watch->head + 5);
    if (is_priority(watch)) {
        return id == number_at(watch->head + H2_WATCH_HEAD) ? NGHTTP2_PROTOCOL_ERROR : NGHTTP2_NO_ERROR;
    }
    bool gone =
        id != 0 && has_ended(session, (int32_t)id) && nghttp2_session_find_stream(session->http2, (int32_t)id) == NULL;
    return gone ? NGHTTP2_STREAM_CLOSED : NGHTTP2_NO_ERROR;
}

/* Looks at the frame whose head is here and begins at `begins`; nghttp2 has been given all before `*given`. Negative,
 * as of nghttp2: it can't go on. */
static ssize_t watch_look(struct h2_session *session, const uint8_t *bytes, size_t begins, size_t *given)
{
    const struct h2_watch *watch = &session->watch;
    bool data = watch->head[3] == NGHTTP2_DATA;
    if (data && session->watch.unsure && begins > *given) {
        ssize_t used = nghttp2_session_mem_recv(session->http2, bytes + *given, begins - *given);
        session->watch.unsure = false;
        *given = begins;
        if (used < 0) {
            return used;
        }
    }
    uint32_t wrong = data || is_priority(watch) ? watch_wrong(session) : NGHTTP2_NO_ERROR;
    if (wrong != NGHTTP2_NO_ERROR && !session->doomed) {
        h2_end_session(session, H2_END_PROTOCOL, wrong);
    }
    session->watch.unsure |= watch->head[3] == NGHTTP2_RST_STREAM;
    return 0;
}

ssize_t h2_receive(struct h2_session *session, const char *bytes, size_t length)
{
    struct h2_watch *watch = &session->watch;
    const uint8_t *all = (const uint8_t *)bytes;
    size_t given = 0;
    size_t at = session->role == H2_SERVER ? 0 : length; /* hosts are not watched */
    while (at < length) {
        size_t skip = watch->left < length - at ? watch->left : length - at;
        watch->left -= (uint32_t)skip;
        at += skip;
        if (!watch_take(watch, bytes, length, &at)) {
            break;
        }
        ssize_t error = watch_look(session, all, at > watch->have ? at - watch->have : 0, &given);
        if (error < 0 || session->doomed || session->end != H2_END_NONE) {
            return error;
        }
        watch->left = (uint32_t)watch->head[0] << 16 | (uint32_t)watch->head[1] << 8 | watch->head[2];
        watch->left -= watch->have - H2_WATCH_HEAD;
        watch->have = 0;
    }
    watch->unsure = false;
    return nghttp2_session_mem_recv(session->http2, all + given, length - given);
}

void h2_receive_callbacks(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, on_invalid_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_unpack_extension_callback(callbacks, on_extension);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
}
