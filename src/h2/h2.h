/* SPDX-License-Identifier: MIT */
#ifndef BECALM_H2_H2_H
#define BECALM_H2_H2_H

/* The HTTP/2 codec: bytes of one connection into heads, bodies and trailers of many streams, and back. It knows no
 * sockets and no clock. Heads must obey the rules of HTTP/1, too: a request is put into the form of HTTP/1 and parsed
 * by h1_parse_request(), so that every accepted request can be written to a host. docs/http2.md lists the refusals and
 * the bounds.
 *
 * A session never writes by itself: every frame (an answer, a window, a reset) waits until h2_write() is called, so
 * that many streams share one write. */

#include "h1/h1.h"
#include "loop/blocks.h"

#include <becalm/ns.h>

#include <sys/uio.h>

struct h2_session;
struct h2_stream;

enum h2_role { H2_SERVER, H2_CLIENT };

/* The error codes of RFC 9113, 7 that the gateway sends or looks for. */
enum {
    H2_NO_ERROR = 0,
    H2_PROTOCOL_ERROR = 1,
    H2_INTERNAL_ERROR = 2,
    H2_SETTINGS_TIMEOUT = 4,
    H2_REFUSED_STREAM = 7,
    H2_CANCEL = 8,
    H2_ENHANCE_YOUR_CALM = 11,
    H2_HTTP_1_1_REQUIRED = 13
};

/* Why a session was ended by this side. */
enum h2_end {
    H2_END_NONE,
    H2_END_GOAWAY,        /* the owner ended it */
    H2_END_PROTOCOL,      /* the peer does not speak HTTP/2 properly */
    H2_END_MEMORY,        /* out of memory */
    H2_END_RESETS,        /* floods: streams that were reset as soon as they were opened */
    H2_END_FAULTS,        /* streams that had to be reset because of the peer's faults */
    H2_END_CONTINUATIONS, /* a head in too many frames */
    H2_END_HEADS,         /* heads that become far larger than they may be */
    H2_END_SETTINGS,      /* frames that carry nothing: more than the useful frames beside them justify */
    H2_END_PINGS,
    H2_END_PRIORITIES,
    H2_END_EMPTY,
    H2_END_WINDOWS,
    H2_END_UNKNOWN,
    H2_END_ACKS,           /* the peer asks for answers to its frames and does not read them */
    H2_END_UNACKNOWLEDGED, /* the peer never acknowledged our SETTINGS */
    H2_END_COUNT
};
const char *h2_end_word(enum h2_end); /* "resets"; for logs and metrics */

struct h2_limits {
    uint32_t streams;    /* that the peer may have open at once */
    uint32_t window;     /* bytes of one stream that may wait here */
    uint32_t head_bytes; /* of a head in the form of HTTP/1 */
    bool secure;         /* a client's: its requests are https */
};

/* Room in which heads are put together, shared by all sessions of a thread. */
struct h2_scratch {
    char *bytes;
    size_t size;           /* twice the largest head, and a line */
    struct blocks *blocks; /* the memory of streams; NULL: malloc() */
    struct head head;
};

/* The callbacks of a session, called while it is fed or asked for bytes. They may answer streams, reset them and so on,
 * but must neither feed the session nor ask it for bytes. */
struct h2_calls {
    /* A server's: a request. Returns the stream's owner; NULL: the stream is refused. */
    void *(*request)(void *owner, struct h2_stream *, const struct head *, bool end);
    /* A server's: a request that is well formed for HTTP/2 and breaks a rule of HTTP/1, or is too large: the verdict
     * has a status to answer with. Returns the stream's owner; NULL: the stream is refused. */
    void *(*unfit)(void *owner, struct h2_stream *, struct h1_verdict, bool end);
    /* A client's: an answer, or a 1xx before it. */
    void (*answer)(void *stream, const struct head *, bool end);
    /* A client's: an answer that breaks a rule. The stream has been reset, and its owner hears no more of it. */
    void (*broken)(void *stream, const char *rule);
    /* More of the body. These bytes count against the stream's window until h2_took(). */
    void (*data)(void *stream, const char *bytes, size_t length);
    /* The fields behind the body, in the form of HTTP/1 with the empty line: h1_parse_trailers() says which of them may
     * be passed on to whom. Of length 0: there was no room for them. `end` follows. */
    void (*trailers)(void *stream, const char *bytes, size_t length);
    void (*end)(void *stream);
    /* Few bytes are left to be sent: the owner may add more. */
    void (*drained)(void *stream);
    /* The stream is over and gone. H2_NO_ERROR: both sides had said all. Not called for streams that were refused. */
    void (*closed)(void *stream, uint32_t code);
    /* A client's. settings: the peer's SETTINGS are known, or have changed. goaway: the peer goes away; streams that it
     * will not process are closed with H2_REFUSED_STREAM. pong: the peer has answered a PING. */
    void (*settings)(void *owner);
    /* The peer knows our SETTINGS. */
    void (*acknowledged)(void *owner);
    void (*goaway)(void *owner, uint32_t code);
    void (*pong)(void *owner);
};

/* NULL: no memory. */
struct h2_session *h2_session_new(enum h2_role, const struct h2_limits *, const struct h2_calls *, void *owner,
                                  struct h2_scratch *);
/* Streams that are left are not told. May be called from an up-call: then the memory goes when that has returned. */
void h2_session_free(struct h2_session *);

/* Takes received bytes. False: the session is over; the bytes of h2_write() after that, maybe a GOAWAY, are its last.
 */
bool h2_feed(struct h2_session *, const char *bytes, size_t length, becalm_ns now);

/* Bytes for the peer, at most `size`, which is at least H2_WRITE_MIN. 0: nothing waits, or only bodies whose window is
 * closed. */
#define H2_WRITE_MIN (16384u + 64u)
size_t h2_write(struct h2_session *, char *to, size_t size);
bool h2_wants_write(const struct h2_session *);

/* Is there no more to be done: told or been told to go, and all streams are over? */
bool h2_over(const struct h2_session *);
enum h2_end h2_ended(const struct h2_session *);
uint32_t h2_stream_count(const struct h2_session *);
/* Streams that the peer lets us open at once; 0: its SETTINGS have not come. */
uint32_t h2_streams_max(const struct h2_session *);
/* Bytes of bodies that wait for the peer to take them. */
size_t h2_held(const struct h2_session *);

/* A client's: opens a stream, which belongs to `owner`. NULL: no memory, or the peer takes no more streams. */
struct h2_stream *h2_request(struct h2_session *, const struct draft *, bool end, void *owner);
/* A client's: has its head been written? Before, the peer knows nothing of it. */
bool h2_sent(const struct h2_stream *);

/* A server's: 1xx, or the answer. `end`: there is no body. */
void h2_interim(struct h2_stream *, const struct draft *);
void h2_answer(struct h2_stream *, const struct draft *, bool end);

/* More of the body, which is copied. False: no memory. */
bool h2_data(struct h2_stream *, const char *bytes, size_t length);
/* Bytes for the peer in several places: the bytes of a body are written from the buffer that they arrived in. */
#define H2_PASS_FRAMES 4u
#define H2_PASS_MOST   (H2_PASS_FRAMES * 16384u)
struct h2_pass {
    struct iovec part[1 + 2 * H2_PASS_FRAMES];
    int count;
    char heads[H2_PASS_FRAMES * 9u];
};
/* The same without a copy, if nothing of any body waits: all waiting frames, and after them as many of these bytes as
 * both windows and H2_PASS_MOST allow. `end`: they are the last of the body, which ends if all of them are passed.
 * Returns how many are; 0: use h2_data() instead. The parts must be written before any other call for this session, as
 * if h2_write() had returned them. */
size_t h2_data_pass(struct h2_stream *, struct becalm_text, bool end, struct h2_pass *);
/* Nothing follows but maybe these fields; NULL: none. */
void h2_end(struct h2_stream *, const struct head *trailers);
/* Has enough been said for now, so that more should wait for `drained`? */
bool h2_blocked(const struct h2_stream *);
size_t h2_stream_held(const struct h2_stream *);

/* So many bytes of the body need no more room here. */
void h2_took(struct h2_stream *, size_t length);

/* Ends the stream. Its owner hears no more of it: `closed` is not called. */
void h2_reset(struct h2_stream *, uint32_t code);
/* The owner has gone, but bytes that were queued are still written. */
void h2_abandon(struct h2_stream *);
/* A client's: the owner has gone, and the stream is left to end by itself: received bytes are dropped, and the peer
 * gets no window for more. Its request has been queued completely. */
void h2_leave(struct h2_stream *);
/* Has all been said? */
bool h2_said_all(const struct h2_stream *);

/* A server goes away in two steps (RFC 9113, 6.8): first it announces the end, and still accepts requests that are on
 * their way; then it names the last stream. A PING follows the first step: at its `pong` all requests that were on
 * their way have arrived. */
void h2_going(struct h2_session *);
void h2_goaway(struct h2_session *, uint32_t code);
/* Ends it now: behind the next h2_write() nothing follows. */
void h2_terminate(struct h2_session *, uint32_t code);
/* Ends the session, because the peer does not acknowledge our SETTINGS. */
void h2_unacknowledged(struct h2_session *);
void h2_ping(struct h2_session *);

/* Is this the beginning of HTTP/2's preface, as far as it goes? */
bool h2_preface(const char *bytes, size_t length);
#define H2_PREFACE_HEAD 18u /* the part of the preface that HTTP/1 reads as a head */

#endif
