/* SPDX-License-Identifier: MIT */
#include "h2_session_internal.h"

#include "h2_memory.h"

#include <stdlib.h>

#define CONTINUATIONS_MAX 8u
#define ACKS_MAX          1000u /* that wait for a peer who does not read */

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

void h2_end_session(struct h2_session *session, enum h2_end end, uint32_t code)
{
    if (session->end == H2_END_NONE) {
        session->end = end;
        (void)nghttp2_session_terminate_session(session->http2, code); /* without memory it ends all the same */
    }
}

int h2_flood(struct h2_session *session, enum h2_end end)
{
    h2_end_session(session, end, NGHTTP2_ENHANCE_YOUR_CALM);
    return 0;
}

static nghttp2_session_callbacks *make_callbacks(void)
{
    nghttp2_session_callbacks *callbacks;
    if (nghttp2_session_callbacks_new(&callbacks) != 0) {
        return NULL;
    }
    h2_receive_callbacks(callbacks);
    h2_send_callbacks(callbacks);
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
    nghttp2_mem memory = h2_memory(session->scratch->blocks);
    int error = NGHTTP2_ERR_NOMEM;
    if (callbacks != NULL && option != NULL) {
        error = (session->role == H2_SERVER ? nghttp2_session_server_new3 : nghttp2_session_client_new3)(
            &session->http2, callbacks, session, option, &memory);
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
    session->watch.left = role == H2_SERVER ? NGHTTP2_CLIENT_MAGIC_LEN : 0;
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
        h2_stream_free(session->streams);
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
        h2_flood(session, H2_END_CONTINUATIONS);
        break;
    case NGHTTP2_ERR_FLOODED:
        h2_flood(session, H2_END_ACKS);
        break;
    case NGHTTP2_ERR_NOMEM:
        session->end = session->end == H2_END_NONE ? H2_END_MEMORY : session->end;
        session->dead = true;
        break;
    default:
        h2_end_session(session, H2_END_PROTOCOL, NGHTTP2_PROTOCOL_ERROR);
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
    ssize_t used = h2_receive(session, bytes, length);
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
    h2_end_session(session, H2_END_GOAWAY, code);
}

void h2_unacknowledged(struct h2_session *session)
{
    h2_end_session(session, H2_END_UNACKNOWLEDGED, NGHTTP2_SETTINGS_TIMEOUT);
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
