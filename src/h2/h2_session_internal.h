/* SPDX-License-Identifier: MIT */
#ifndef BECALM_H2_H2_SESSION_INTERNAL_H
#define BECALM_H2_H2_SESSION_INTERNAL_H

/* What the files of a session share: h2_session.c has its life and its bytes, h2_stream.c its streams, h2_receive.c the
 * frames that come and h2_send.c those that go. Only these files and h2_fields.c know nghttp2. */

#include "h2_guard.h"
#include "h2_head.h"

#include "loop/bytes.h"

#include <nghttp2/nghttp2.h>

#define H2_DRAINED   (16u * 1024) /* of a body wait: more is welcome */
#define H2_ENDED_MAX 16u          /* streams that are remembered as ended */

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
    bool full;        /* more waits than H2_DRAINED */
    bool drained;     /* not any more, which is to be told */
};

/* Where frames begin and end in the bytes that come, of a server: nghttp2 passes over some without a word. */
#define H2_WATCH_HEAD     9u        /* of a frame ... */
#define H2_WATCH_PRIORITY (9u + 4u) /* ... and what a PRIORITY depends on */
struct h2_watch {
    uint32_t left; /* bytes until the next one begins */
    uint8_t have;  /* of its head */
    bool unsure;   /* a stream may be over that nghttp2 has not heard of: a reset was seen, and not given to it yet */
    uint8_t head[H2_WATCH_PRIORITY];
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
    struct h2_stream *latest; /* that was looked for; NULL: none, or it has gone */
    uint32_t stream_count;
    size_t held;
    struct h2_block block;       /* the head that is coming */
    struct bytes part;           /* of it, while the rest has not come */
    int32_t ended[H2_ENDED_MAX]; /* streams that the peer itself has ended, the latest ones */
    uint32_t ended_at;           /* where the next goes */
    int32_t highest;             /* stream that the peer has opened ... */
    int32_t skipped;             /* ... and the lowest of those that it left out right before */
    struct h2_watch watch;
    struct text_sink *out; /* while frames are written */
    bool busy;             /* nghttp2 is at work: it must not be freed */
    bool doomed;           /* and is freed behind that */
    bool going;            /* it has said that it will end ... */
    bool gone;             /* ... and which stream was the last; or the peer has */
    bool has_settings;     /* the peer's */
    bool drains;           /* a stream that was full is not so any more */
    bool dead;             /* nghttp2 can't go on */
};

static inline struct h2_stream *h2_stream_of(struct h2_session *session, int32_t id)
{
    if (session->latest == NULL || session->latest->id != id) { /* frames of one stream often follow each other */
        session->latest = nghttp2_session_get_stream_user_data(session->http2, id);
    }
    return session->latest;
}

/* NULL: no memory. */
struct h2_stream *h2_stream_new(struct h2_session *, int32_t id);
void h2_stream_free(struct h2_stream *);

/* This side ends the session, if it has not ended yet: GOAWAY with this code. */
void h2_end_session(struct h2_session *, enum h2_end, uint32_t code);
/* A flood: the peer is asked to calm down, and hears no more. Returns 0, as nghttp2's callbacks do. */
int h2_flood(struct h2_session *, enum h2_end);

/* Gives bytes that came to nghttp2. As nghttp2_session_mem_recv(); what breaks a rule that nghttp2 does not know ends
 * the session, and the rest is not given. */
ssize_t h2_receive(struct h2_session *, const char *bytes, size_t length);

/* The callbacks for frames that come (h2_receive.c), and for those that go (h2_send.c). */
void h2_receive_callbacks(nghttp2_session_callbacks *);
void h2_send_callbacks(nghttp2_session_callbacks *);

#endif
