/* SPDX-License-Identifier: MIT */
#include "h2.h"

#include "h2_guard.h"
#include "h2_head.h"

#include "http/text_internal.h"
#include "loop/bytes.h"
#include "message/packed.h"
#include "unfilled.h"

#include <nghttp2/nghttp2.h>
#include <stdlib.h>

/* The only file that knows nghttp2. */

#define CONTINUATIONS_MAX 8u
#define ACKS_MAX          1000u        /* that wait for a peer who does not read */
#define PAYLOAD_MAX       16384u       /* of one frame, either way */
#define DRAINED           (16u * 1024) /* of a body wait: more is welcome */
#define FRAME_HEAD        9u
/* Of a stream's own fields: those of a head and what is added, and :status, or :method and its friends. */
#define FIELDS_MAX (HEAD_FIELDS_MAX + DRAFT_ADDED_MAX + 8)

#define ENDED_MAX 16u /* streams that are remembered as ended */

struct h2_stream {
    struct h2_session *session;
    void *owner; /* NULL: nobody hears of it any more */
    struct h2_stream *next;
    struct h2_stream **link;
    struct bytes out;      /* the body, as far as the peer did not take it yet */
    struct bytes trailers; /* behind it, packed */
    becalm_ns opened_at;
    int32_t id;
    uint32_t untaken; /* bytes that came and hold the window shut */
    bool answered;    /* a client's: its answer's head has come */
    bool said;        /* a server's: the answer's head was written */
    bool to_head;     /* a client's: it asked by HEAD */
    bool sent;        /* a client's: its head was written */
    bool left;        /* a client's: nobody hears of it, and its window stays shut */
    bool out_ended;   /* nothing more is said */
    bool waits;       /* nghttp2 waits until there is more to send */
    bool full;        /* more waits than DRAINED */
    bool drained;     /* not any more, which is to be told */
};

struct h2_session {
    nghttp2_session *http2;
    const struct h2_calls *calls;
    void *owner;
    struct h2_scratch *scratch;
    struct h2_limits limits;
    enum h2_role role;
    enum h2_end end;
    struct h2_guard guard;
    becalm_ns now;
    struct h2_stream *streams;
    uint32_t stream_count;
    size_t held;
    struct h2_block block;    /* the head that is coming */
    struct bytes part;        /* of it, while the rest has not come */
    int32_t ended[ENDED_MAX]; /* streams that the peer itself has ended, the latest ones */
    uint32_t ended_at;        /* where the next goes */
    int32_t highest;          /* stream that the peer has opened ... */
    int32_t skipped;          /* ... and the lowest of those that it left out right before */
    struct text_sink *out;    /* while frames are written */
    bool busy;                /* nghttp2 is at work: it must not be freed */
    bool doomed;              /* and is freed behind that */
    bool going;               /* it has said that it will end ... */
    bool gone;                /* ... and which stream was the last; or the peer has */
    bool has_settings;        /* the peer's */
    bool drains;              /* a stream that was full is not so any more */
    bool dead;                /* nghttp2 can't go on */
};

const char *h2_end_word(enum h2_end end)
{
    static const char *const word[H2_END_COUNT] = {
        [H2_END_NONE] = "none",
        [H2_END_GOAWAY] = "goaway",
        [H2_END_PROTOCOL] = "protocol",
        [H2_END_MEMORY] = "memory",
        [H2_END_RESETS] = "resets",
        [H2_END_FAULTS] = "faults",
        [H2_END_HEADS] = "heads",
        [H2_END_CONTINUATIONS] = "continuations",
        [H2_END_SETTINGS] = "settings",
        [H2_END_PINGS] = "pings",
        [H2_END_PRIORITIES] = "priorities",
        [H2_END_EMPTY] = "empty_data",
        [H2_END_WINDOWS] = "windows",
        [H2_END_UNKNOWN] = "unknown_frames",
        [H2_END_ACKS] = "acks",
        [H2_END_UNACKNOWLEDGED] = "settings_timeout",
    };
    return word[end];
}

/* ---- streams ---- */

static struct h2_stream *stream_new(struct h2_session *session, int32_t id)
{
    struct h2_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL) {
        return NULL;
    }
    stream->session = session;
    stream->id = id;
    stream->opened_at = session->now;
    stream->next = session->streams;
    stream->link = &session->streams;
    if (stream->next != NULL) {
        stream->next->link = &stream->next;
    }
    session->streams = stream;
    session->stream_count++;
    return stream;
}

static void stream_free(struct h2_stream *stream)
{
    *stream->link = stream->next;
    if (stream->next != NULL) {
        stream->next->link = stream->link;
    }
    stream->session->stream_count--;
    stream->session->held -= bytes_left(&stream->out);
    bytes_free(&stream->out);
    bytes_free(&stream->trailers);
    free(stream);
}

static struct h2_stream *stream_of(struct h2_session *session, int32_t id)
{
    return nghttp2_session_get_stream_user_data(session->http2, id);
}

/* ---- the end ---- */

static void end_session(struct h2_session *session, enum h2_end end, uint32_t code)
{
    if (session->end == H2_END_NONE) {
        session->end = end;
        (void)nghttp2_session_terminate_session(session->http2, code); /* without memory it ends all the same */
    }
}

/* A flood: the peer is asked to calm down, and hears no more. */
static int flood(struct h2_session *session, enum h2_end end)
{
    end_session(session, end, NGHTTP2_ENHANCE_YOUR_CALM);
    return 0;
}

/* ---- frames that come ---- */

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
    session->ended[session->ended_at++ % ENDED_MAX] = id;
}

/* A client opens a stream: those that it has left out are closed by that (RFC 9113, 5.1.1). */
static void note_opened(struct h2_session *session, int32_t id)
{
    if (id > session->highest) {
        session->skipped = session->highest == 0 ? 1 : session->highest + 2;
        session->highest = id;
    }
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
    for (uint32_t i = 0; i < ENDED_MAX; i++) {
        if (session->ended[i] == id) {
            return NGHTTP2_STREAM_CLOSED;
        }
    }
    return NGHTTP2_NO_ERROR;
}

static int on_begin_frame(nghttp2_session *http2, const nghttp2_frame_hd *hd, void *user)
{
    struct h2_session *session = user;
    enum h2_end kind = idle_kind(hd);
    uint32_t wrong = wrong_frame(session, hd);
    (void)http2;
    if (wrong != NGHTTP2_NO_ERROR) {
        end_session(session, H2_END_PROTOCOL, wrong);
        return 0;
    }
    if (hd->type == NGHTTP2_HEADERS && session->role == H2_SERVER && hd->stream_id % 2 == 1) {
        note_opened(session, hd->stream_id);
    }
    if (hd->type != NGHTTP2_CONTINUATION) {
        session->block.text.length = 0; /* a head that came before is through, or was given up */
    }
    return kind == H2_END_NONE || h2_guard_frame(&session->guard) ? 0 : flood(session, kind);
}

/* The first head of a stream that a client opened, or an answer's, or trailers. */
static enum h2_block_kind kind_of(const struct h2_session *session, const nghttp2_frame *frame)
{
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        return H2_BLOCK_REQUEST;
    }
    const struct h2_stream *stream = stream_of((struct h2_session *)(uintptr_t)session, frame->hd.stream_id);
    bool answers = session->role == H2_CLIENT && stream != NULL && !stream->answered;
    return answers ? H2_BLOCK_ANSWER : H2_BLOCK_TRAILERS;
}

static int on_begin_headers(nghttp2_session *http2, const nghttp2_frame *frame, void *user)
{
    struct h2_session *session = user;
    h2_block_begin(&session->block, kind_of(session, frame), session->scratch);
    /* Behind a GOAWAY that was said, if only to nghttp2 yet, the peer may ask somebody else: nothing is begun here. */
    if (session->block.kind == H2_BLOCK_REQUEST && session->end == H2_END_NONE && !session->gone) {
        struct h2_stream *stream = stream_new(session, frame->hd.stream_id);
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
    return h2_block_bomb(&session->block, &session->limits) ? flood(session, H2_END_HEADS) : 0;
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
    struct h2_stream *stream = stream_of(session, frame->hd.stream_id);
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
    struct h2_stream *stream = end && carries && !session->doomed ? stream_of(session, frame->hd.stream_id) : NULL;
    if (stream != NULL && stream->owner != NULL && session->end == H2_END_NONE) {
        session->calls->end(stream->owner);
    }
}

static int take_reset(struct h2_session *session, const nghttp2_frame *frame)
{
    const struct h2_stream *stream = stream_of(session, frame->hd.stream_id);
    becalm_ns age = stream == NULL ? 0 : becalm_ns_since(session->now, stream->opened_at);
    note_ended(session, frame->hd.stream_id);
    return session->role == H2_CLIENT || h2_guard_reset(&session->guard, age) ? 0 : flood(session, H2_END_RESETS);
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
            return flood(session, H2_END_WINDOWS);
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
    struct h2_stream *stream = stream_of(session, id);
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
        flood(session, H2_END_UNKNOWN);
    }
    return NGHTTP2_ERR_CANCEL;
}

static int on_close(nghttp2_session *http2, int32_t id, uint32_t code, void *user)
{
    struct h2_session *session = user;
    struct h2_stream *stream = stream_of(session, id);
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
    stream_free(stream);
    if (owner != NULL && !session->doomed) {
        session->calls->closed(owner, code);
    }
    return 0;
}

/* ---- frames that go ---- */

/* A stream that is reset because of what the peer did on it has cost it nothing: "made you reset". */
static int note_reset(struct h2_session *session, uint32_t code)
{
    switch (code) {
    case NGHTTP2_NO_ERROR:
    case NGHTTP2_CANCEL:
    case NGHTTP2_INTERNAL_ERROR:
        return 0;
    case NGHTTP2_REFUSED_STREAM: /* before it knows how many it may have, the peer can't be blamed */
        return h2_guard_frame(&session->guard) ? 0 : flood(session, H2_END_FAULTS);
    default:
        return h2_guard_fault(&session->guard) ? 0 : flood(session, H2_END_FAULTS);
    }
}

static int on_frame_send(nghttp2_session *http2, const nghttp2_frame *frame, void *user)
{
    struct h2_session *session = user;
    if (session->role == H2_CLIENT) {
        struct h2_stream *stream = frame->hd.type == NGHTTP2_HEADERS ? stream_of(session, frame->hd.stream_id) : NULL;
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
    stream_free(stream);
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
    struct h2_stream *stream = frame->hd.type == NGHTTP2_HEADERS ? stream_of(session, frame->hd.stream_id) : NULL;
    if (stream != NULL && stream->owner != NULL && session->role == H2_SERVER && session->end == H2_END_NONE) {
        (void)nghttp2_submit_rst_stream(session->http2, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_INTERNAL_ERROR);
    }
    if (stream == NULL && session->role == H2_CLIENT && frame->hd.type == NGHTTP2_HEADERS &&
        frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        not_opened(session, frame->hd.stream_id);
    }
    return 0;
}

static nghttp2_nv field_of(struct becalm_text name, struct becalm_text value, uint8_t flags)
{
    return (nghttp2_nv){
        .name = (uint8_t *)(uintptr_t)name.at,
        .namelen = name.length,
        .value = (uint8_t *)(uintptr_t)(value.length == 0 ? "" : value.at),
        .valuelen = value.length,
        .flags = flags,
    };
}

/* Secrets never enter a table of a connection (RFC 7541, 7.1.3), and what is new in each message would only push out
 * what is not. */
#define NEVER_INDEXED                                                                                    \
    (FIELD_BIT(FIELD_AUTHORIZATION) | FIELD_BIT(FIELD_PROXY_AUTHORIZATION) | FIELD_BIT(FIELD_COOKIE) |   \
     FIELD_BIT(FIELD_IDEMPOTENCY_KEY) | FIELD_BIT(FIELD_REQUEST_ID) | FIELD_BIT(FIELD_TRACEPARENT) |     \
     FIELD_BIT(FIELD_DEADLINE_MS) | FIELD_BIT(FIELD_GRPC_TIMEOUT) | FIELD_BIT(FIELD_ENVOY_EXPECTED_MS) | \
     FIELD_BIT(FIELD_BECALM_EXPLAIN))

static uint8_t flags_of(uint32_t id)
{
    return (NEVER_INDEXED >> id & 1) != 0 ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
}

struct fields {
    nghttp2_nv field[FIELDS_MAX];
    size_t count;
};

static void add(struct fields *fields, struct becalm_text name, struct becalm_text value, uint8_t flags)
{
    if (fields->count < FIELDS_MAX) {
        fields->field[fields->count++] = field_of(name, value, flags);
    }
}

static void add_chars(struct fields *fields, const char *name, struct becalm_text value)
{
    add(fields, (struct becalm_text){name, strlen(name)}, value, NGHTTP2_NV_FLAG_NONE);
}

/* Fields that were kept; the phrase among them has no name, and HTTP/2 no phrase. */
static void add_packed(struct fields *fields, struct becalm_text packed)
{
    struct becalm_text name;
    struct becalm_text value;
    while (packed_next(&packed, &name, &value)) {
        if (name.length > 0) {
            add(fields, name, value, flags_of(field_find(name.at, name.length)));
        }
    }
}

static void add_draft(struct fields *fields, const struct draft *draft)
{
    const struct head *head = draft->passed;
    for (uint32_t i = 0; head != NULL && i < head->field_count; i++) {
        const struct field *field = &head->field[i];
        if (!field->hop && (draft->skip >> field->id & 1) == 0) {
            add(fields, field_name(head, field), field_value(head, field), flags_of(field->id));
        }
    }
    add_packed(fields, draft->packed);
    for (uint32_t i = 0; i < draft->count; i++) {
        const struct draft_field *added = &draft->added[i];
        add(fields, added->name, added->value, flags_of(field_find(added->name.at, added->name.length)));
    }
}

static struct becalm_text status_text(char text[3], uint32_t status)
{
    text[0] = (char)('0' + status / 100 % 10);
    text[1] = (char)('0' + status / 10 % 10);
    text[2] = (char)('0' + status % 10);
    return (struct becalm_text){text, 3};
}

static void send_trailers(struct h2_stream *stream)
{
    UNFILLED struct fields fields;
    fields.count = 0;
    add_packed(&fields, (struct becalm_text){bytes_at(&stream->trailers), bytes_left(&stream->trailers)});
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
        bytes_free(&stream->out);
    }
    if (stream->full && bytes_left(&stream->out) <= DRAINED) {
        stream->full = false;
        stream->drained = session->drains = true;
    }
    h2_guard_sent(&session->guard);
    return 0;
}

/* ---- a session ---- */

static nghttp2_session_callbacks *make_callbacks(void)
{
    nghttp2_session_callbacks *callbacks;
    if (nghttp2_session_callbacks_new(&callbacks) != 0) {
        return NULL;
    }
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, on_invalid_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_unpack_extension_callback(callbacks, on_extension);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_send);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_frame_not_send);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, send_data);
    return callbacks;
}

static nghttp2_option *make_options(void)
{
    nghttp2_option *option;
    if (nghttp2_option_new(&option) != 0) {
        return NULL;
    }
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_max_reserved_remote_streams(option, 0);
    nghttp2_option_set_max_outbound_ack(option, ACKS_MAX);
    nghttp2_option_set_max_continuations(option, CONTINUATIONS_MAX);
    nghttp2_option_set_stream_reset_rate_limit(option, UINT32_MAX, UINT32_MAX); /* the guard counts them */
    nghttp2_option_set_peer_max_concurrent_streams(option, 1);                  /* until its SETTINGS say more */
    for (unsigned type = NGHTTP2_CONTINUATION + 1; type <= UINT8_MAX; type++) {
        nghttp2_option_set_user_recv_extension_type(option, (uint8_t)type); /* else they would not be counted */
    }
    return option;
}

static int make_http2(struct h2_session *session)
{
    nghttp2_session_callbacks *callbacks = make_callbacks();
    nghttp2_option *option = make_options();
    int error = NGHTTP2_ERR_NOMEM;
    if (callbacks != NULL && option != NULL) {
        error = session->role == H2_SERVER ? nghttp2_session_server_new2(&session->http2, callbacks, session, option)
                                           : nghttp2_session_client_new2(&session->http2, callbacks, session, option);
    }
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    return error;
}

/* What this side can hold, and nothing beyond it. */
static int say_settings(struct h2_session *session)
{
    const struct h2_limits *limits = &session->limits;
    const nghttp2_settings_entry entry[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits->window},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits->head_bytes},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
        session->role == H2_SERVER ? (nghttp2_settings_entry){NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits->streams}
                                   : (nghttp2_settings_entry){NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
    };
    uint64_t all = (uint64_t)limits->window * limits->streams;
    int32_t window = all > INT32_MAX ? INT32_MAX : (int32_t)all;
    int error = nghttp2_submit_settings(session->http2, NGHTTP2_FLAG_NONE, entry, sizeof entry / sizeof *entry);
    return error != 0 ? error : nghttp2_session_set_local_window_size(session->http2, NGHTTP2_FLAG_NONE, 0, window);
}

struct h2_session *h2_session_new(enum h2_role role, const struct h2_limits *limits, const struct h2_calls *calls,
                                  void *owner, struct h2_scratch *scratch)
{
    struct h2_session *session = calloc(1, sizeof *session);
    if (session == NULL) {
        return NULL;
    }
    session->role = role;
    session->limits = *limits;
    session->calls = calls;
    session->owner = owner;
    session->scratch = scratch;
    h2_guard_init(&session->guard);
    if (make_http2(session) != 0) {
        free(session);
        return NULL;
    }
    if (say_settings(session) != 0) {
        h2_session_free(session);
        return NULL;
    }
    return session;
}

void h2_session_free(struct h2_session *session)
{
    session->doomed = true;
    if (session->busy) {
        return;
    }
    while (session->streams != NULL) {
        stream_free(session->streams);
    }
    bytes_free(&session->part);
    nghttp2_session_del(session->http2);
    free(session);
}

/* nghttp2 has returned: what was put off. False: the session is gone. */
static bool idle_again(struct h2_session *session)
{
    session->busy = false;
    if (session->doomed) {
        h2_session_free(session);
        return false;
    }
    return true;
}

/* Streams that have room again. */
static bool tell_drained(struct h2_session *session)
{
    struct h2_stream *next;
    if (!session->drains) {
        return true;
    }
    session->drains = false;
    session->busy = true;
    for (struct h2_stream *stream = session->streams; stream != NULL && !session->doomed; stream = next) {
        next = stream->next;
        if (stream->drained && stream->owner != NULL) {
            session->calls->drained(stream->owner);
        }
        stream->drained = false;
    }
    return idle_again(session);
}

/* The head that is coming stands in memory that others use, too. Keeps what there is of it, and puts it back. */
static bool keep_part(struct h2_session *session)
{
    struct h2_block *block = &session->block;
    bytes_free(&session->part);
    return bytes_add(&session->part, block->text.at, block->text.length);
}

static void restore_part(struct h2_session *session)
{
    struct h2_block *block = &session->block;
    if (bytes_left(&session->part) > 0) {
        memcpy(session->scratch->bytes, bytes_at(&session->part), bytes_left(&session->part));
        block->text.at = session->scratch->bytes;
    }
}

/* What nghttp2 gave up for. */
static void give_up(struct h2_session *session, int error)
{
    switch (error) {
    case NGHTTP2_ERR_TOO_MANY_CONTINUATIONS:
        flood(session, H2_END_CONTINUATIONS);
        break;
    case NGHTTP2_ERR_FLOODED:
        flood(session, H2_END_ACKS);
        break;
    case NGHTTP2_ERR_NOMEM:
        session->end = session->end == H2_END_NONE ? H2_END_MEMORY : session->end;
        session->dead = true;
        break;
    default:
        end_session(session, H2_END_PROTOCOL, NGHTTP2_PROTOCOL_ERROR);
        break;
    }
}

bool h2_feed(struct h2_session *session, const char *bytes, size_t length, becalm_ns now)
{
    session->now = now;
    h2_guard_time(&session->guard, now);
    if (session->end != H2_END_NONE) {
        return false;
    }
    restore_part(session);
    session->busy = true;
    ssize_t used = nghttp2_session_mem_recv(session->http2, (const uint8_t *)bytes, length);
    if (!idle_again(session)) {
        return false;
    }
    if (used < 0) {
        give_up(session, (int)used);
        return false;
    }
    if (session->block.text.length > 0 && !keep_part(session)) {
        give_up(session, NGHTTP2_ERR_NOMEM);
        return false;
    }
    if (session->end == H2_END_NONE && !session->gone && nghttp2_session_want_read(session->http2) == 0) {
        session->end = H2_END_PROTOCOL; /* nghttp2 has said GOAWAY by itself */
    }
    return session->end == H2_END_NONE;
}

size_t h2_write(struct h2_session *session, char *to, size_t size)
{
    struct text_sink out = {.at = to, .size = size};
    session->out = &out;
    session->busy = true;
    while (!session->dead && !session->doomed && out.size - out.length >= H2_WRITE_MIN) {
        const uint8_t *bytes;
        size_t before = out.length;
        ssize_t got = nghttp2_session_mem_send(session->http2, &bytes);
        if (got < 0) {
            give_up(session, NGHTTP2_ERR_NOMEM);
        }
        if (got <= 0 && out.length == before) {
            break;
        }
        if (got > 0) {
            text_put(&out, (struct becalm_text){(const char *)bytes, (size_t)got});
        }
    }
    session->out = NULL;
    return idle_again(session) && tell_drained(session) ? out.length : 0;
}

bool h2_wants_write(const struct h2_session *session)
{
    return !session->dead && nghttp2_session_want_write(session->http2) != 0;
}

bool h2_over(const struct h2_session *session)
{
    return session->dead ||
           (nghttp2_session_want_read(session->http2) == 0 && nghttp2_session_want_write(session->http2) == 0);
}

enum h2_end h2_ended(const struct h2_session *session)
{
    return session->end;
}

uint32_t h2_stream_count(const struct h2_session *session)
{
    return session->stream_count;
}

uint32_t h2_streams_max(const struct h2_session *session)
{
    return session->has_settings
               ? nghttp2_session_get_remote_settings(session->http2, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
               : 0;
}

size_t h2_held(const struct h2_session *session)
{
    return session->held;
}

/* ---- what is said ---- */

static void give_up_stream(struct h2_stream *stream)
{
    (void)nghttp2_submit_rst_stream(stream->session->http2, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_INTERNAL_ERROR);
}

struct h2_stream *h2_request(struct h2_session *session, const struct draft *draft, bool end, void *owner)
{
    UNFILLED struct fields fields;
    struct h2_stream *stream = stream_new(session, 0);
    if (stream == NULL) {
        return NULL;
    }
    fields.count = 0;
    add_chars(&fields, ":method", draft->method);
    add_chars(&fields, ":scheme",
              session->limits.secure ? (struct becalm_text){"https", 5} : (struct becalm_text){"http", 4});
    add_chars(&fields, ":authority", draft->authority);
    add_chars(&fields, ":path", draft->path);
    add_draft(&fields, draft);
    if (draft->te_trailers) {
        add_chars(&fields, "te", (struct becalm_text){"trailers", 8});
    }
    nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = next_data};
    int32_t id =
        nghttp2_submit_request(session->http2, NULL, fields.field, fields.count, end ? NULL : &provider, stream);
    if (id < 0) {
        stream_free(stream);
        return NULL;
    }
    stream->id = id;
    stream->owner = owner;
    stream->to_head = text_is(draft->method, "HEAD");
    stream->said = true;
    stream->out_ended = end;
    return stream;
}

bool h2_sent(const struct h2_stream *stream)
{
    return stream->sent;
}

void h2_interim(struct h2_stream *stream, const struct draft *draft)
{
    UNFILLED struct fields fields;
    char status[3];
    fields.count = 0;
    add_chars(&fields, ":status", status_text(status, draft->status));
    add_draft(&fields, draft);
    (void)nghttp2_submit_headers(stream->session->http2, NGHTTP2_FLAG_NONE, stream->id, NULL, fields.field,
                                 fields.count, NULL); /* hints promise nothing: without memory there are none */
}

void h2_answer(struct h2_stream *stream, const struct draft *draft, bool end)
{
    UNFILLED struct fields fields;
    char status[3];
    nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = next_data};
    fields.count = 0;
    add_chars(&fields, ":status", status_text(status, draft->status));
    add_draft(&fields, draft);
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
    if (!bytes_add(&stream->out, bytes, length)) {
        return false;
    }
    stream->session->held += length;
    stream->full = bytes_left(&stream->out) > DRAINED;
    wake(stream);
    return true;
}

static bool pack_trailers(struct h2_stream *stream, const struct head *trailers)
{
    size_t size = 0;
    for (uint32_t i = 0; i < trailers->field_count; i++) {
        size += 2 * sizeof(uint32_t) + trailers->field[i].name_length + trailers->field[i].value_length;
    }
    char *room = malloc(size + 1);
    struct text_sink out = {.at = room, .size = size};
    for (uint32_t i = 0; room != NULL && i < trailers->field_count; i++) {
        packed_put(&out, field_name(trailers, &trailers->field[i]), field_value(trailers, &trailers->field[i]));
    }
    stream->trailers = (struct bytes){.at = room, .length = (uint32_t)out.length, .size = (uint32_t)size + 1};
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
    (void)nghttp2_session_consume_stream(stream->session->http2, stream->id, taken);
}

void h2_reset(struct h2_stream *stream, uint32_t code)
{
    stream->owner = NULL;
    (void)nghttp2_submit_rst_stream(stream->session->http2, NGHTTP2_FLAG_NONE, stream->id, code);
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

void h2_going(struct h2_session *session)
{
    if (!session->going) {
        session->going = true;
        (void)nghttp2_submit_shutdown_notice(session->http2);
    }
}

void h2_goaway(struct h2_session *session, uint32_t code)
{
    if (!session->gone) {
        session->gone = true;
        (void)nghttp2_submit_goaway(session->http2, NGHTTP2_FLAG_NONE,
                                    nghttp2_session_get_last_proc_stream_id(session->http2), code, NULL, 0);
    }
}

void h2_terminate(struct h2_session *session, uint32_t code)
{
    end_session(session, H2_END_GOAWAY, code);
}

void h2_unacknowledged(struct h2_session *session)
{
    end_session(session, H2_END_UNACKNOWLEDGED, NGHTTP2_SETTINGS_TIMEOUT);
}

void h2_ping(struct h2_session *session)
{
    (void)nghttp2_submit_ping(session->http2, NGHTTP2_FLAG_NONE, NULL);
}

bool h2_preface(const char *bytes, size_t length)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    size_t known = sizeof preface - 1;
    return memcmp(bytes, preface, length < known ? length : known) == 0;
}
