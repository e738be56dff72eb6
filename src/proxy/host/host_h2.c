/* SPDX-License-Identifier: MIT */
#include "upstream.h"

#include "h2_room.h"

#include "container.h"
#include "proxy/buffered.h"
#include "proxy/gateway_shared.h"
#include "unfilled.h"

#include <stdlib.h>
#include <string.h>

/* HTTP/2 with a host: many streams on a connection, which the pool lends to as many attempts as the host allows.
 *
 * While the session is fed or asked for bytes it reports events of its streams; these are only noted here. deliver()
 * passes them on to the attempts afterwards: so a whole answer is delivered in one piece, and an attempt may do
 * anything, even end the connection. Frames for the host are written once, when the events of a wake-up are done. */

#define PING_AFTER   (10 * BECALM_S) /* without a byte from the host, while streams wait for it */
#define PING_WAIT    (5 * BECALM_S)  /* for its answer */
#define INTERIM_READ 64              /* 1xx of one attempt: a host that sends more is not about to answer */

/* Servers of gRPC end a connection with too_many_pings if more than two PINGs come within five minutes of the one
 * before, and nothing of an answer went out between them. So a host that has answered a PING is asked again only for
 * requests that it got after that, at most so often until it says something of an answer, and else after more than
 * these five minutes. */
#define PINGS      3u
#define PING_AGAIN (310 * BECALM_S)

/* Servers end connections that reset many streams soon after opening them (CVE-2023-44487). So hedging and deadlines
 * have so many resets, and so many more each second; beyond that a cancelled stream is left to end by itself. */
#define RESETS        500u
#define RESETS_SECOND 16u

/* A connection. */
struct host_h2 {
    struct upstream *upstream;
    struct h2_session *session;
    struct task task;            /* writes the queued frames */
    struct host_stream *streams; /* all that are open */
    struct host_stream *noted;   /* those that something has happened on */
    uint64_t feeds;              /* how often the host has said anything */
    becalm_ns heard_at;          /* when it did so last */
    becalm_ns pinged_at;         /* 0: no PING waits for its answer */
    becalm_ns last_ping_at;      /* the latest, answered or not ... */
    becalm_ns asked_at;          /* ... and the first request after it; 0: none */
    uint32_t pings;              /* since it last said anything of an answer */
    uint64_t looked_in;          /* the turn of the loop in which it was last looked at; 0: none ... */
    bool silent;                 /* ... and it had nothing to say then */
    uint64_t resets;             /* that are left, in thousandths */
    becalm_ns resets_at;
    uint32_t most;  /* the most streams at once, even if the host allows more: the connection's window has room for this
                       many */
    size_t counted; /* bytes of requests that wait, as maxBuffered knows them */
    bool settled;   /* its SETTINGS have come */
    bool going;     /* the connection takes no more streams */
    bool dead;      /* no frames are written to it any more */
};

static struct worker *worker_of(const struct host_h2 *h2)
{
    return h2->upstream->host->worker;
}

static struct host_h2 *h2_of(const struct host_stream *stream)
{
    return stream->upstream->h2;
}

static void write_later(struct host_h2 *h2)
{
    if (!h2->dead) {
        loop_later(&worker_of(h2)->loop, &h2->task);
    }
}

static void count_held(struct host_h2 *h2)
{
    size_t held = h2_held(h2->session);
    buffered_changed(worker_of(h2), h2->counted, held);
    h2->counted = held;
}

/* Something has happened on a stream: deliver() tells it. */
static void note(struct host_stream *stream)
{
    struct host_h2 *h2 = h2_of(stream);
    if (!stream->h2.noted) {
        stream->h2.noted = true;
        stream->h2.noted_next = h2->noted;
        h2->noted = stream;
    }
}

/* ---- the end of a stream ---- */

static void drop_copy(struct worker *worker, struct head *head)
{
    blocks_give(&worker->loop.blocks, head, head == NULL ? 0 : head_copy_size(head));
}

static void forget(struct host_stream *stream)
{
    struct host_h2 *h2 = h2_of(stream);
    struct host_stream **link = &h2->noted;
    while (stream->h2.noted && *link != NULL) {
        if (*link == stream) {
            *link = stream->h2.noted_next;
            break;
        }
        link = &(*link)->h2.noted_next;
    }
    stream->h2.noted = false;
    *stream->h2.link = stream->h2.next;
    if (stream->h2.next != NULL) {
        stream->h2.next->h2.link = stream->h2.link;
    }
    drop_copy(worker_of(h2), stream->h2.head);
    drop_copy(worker_of(h2), stream->h2.interim);
    stream->h2.head = stream->h2.interim = NULL;
    buffered_free(worker_of(h2), &stream->h2.in);
}

/* May one more stream be reset now? */
static bool may_reset(struct host_h2 *h2)
{
    becalm_ns now = worker_of(h2)->loop.now;
    uint64_t more = becalm_ns_since(now, h2->resets_at) / BECALM_MS * RESETS_SECOND;
    h2->resets = h2->resets + more > RESETS * 1000u ? RESETS * 1000u : h2->resets + more;
    h2->resets_at = more > 0 ? now : h2->resets_at;
    if (h2->resets < 1000) {
        return false;
    }
    h2->resets -= 1000;
    return true;
}

/* The stream is over for its attempt; its remaining frames are handled here. */
static void release(struct host_stream *stream)
{
    struct host_h2 *h2 = h2_of(stream);
    struct h2_stream *left = stream->h2.stream;
    stream->h2.stream = NULL;
    forget(stream);
    host_stream_over(stream);
    if (left != NULL && stream->h2.ended) {
        h2_reset(left, H2_NO_ERROR); /* answered before all was asked */
    } else if (left != NULL && !may_reset(h2) && h2_said_all(left)) {
        h2_leave(left);
    } else if (left != NULL) {
        h2_reset(left, H2_CANCEL); /* a request that is not whole is reset in any case, or it would be taken for one */
    }
    write_later(h2);
    if (!h2->dead) {
        upstream_shared_ended(h2->upstream, h2->streams == NULL);
    }
}

static void fail(struct host_stream *stream, const struct host_failure *failure)
{
    release(stream);
    stream->calls->failed(stream, failure);
}

/* The connection takes no more streams. */
static void leave(struct host_h2 *h2)
{
    if (!h2->going) {
        h2->going = true;
        upstream_shared_leave(h2->upstream);
    }
}

/* The failure of a stream that ended without a complete answer. */
static void fail_closed(struct host_stream *stream)
{
    struct host_h2 *h2 = h2_of(stream);
    bool silent = !stream->h2.told && stream->h2.head == NULL; /* a host that has begun to answer has acted on it */
    struct host_failure failure = {
        .failure = stream->h2.told ? BECALM_HTTP_CUT : BECALM_HTTP_RESET, .reset = true, .code = stream->h2.code};
    if (stream->h2.rule != NULL) {
        failure = (struct host_failure){.failure = BECALM_HTTP_BAD_ANSWER, .rule = stream->h2.rule, .h2 = true};
    } else if (stream->h2.code == H2_REFUSED_STREAM && silent) {
        /* The host has not looked at it. If the host goes away, that is no failure. */
        failure = (struct host_failure){.failure = BECALM_HTTP_REFUSED_STREAM, .unsent = true, .stale = h2->going};
    } else if (stream->h2.code == H2_ENHANCE_YOUR_CALM && silent) {
        failure.failure = BECALM_HTTP_OVERLOADED;
    } else if (stream->h2.code == H2_HTTP_1_1_REQUIRED && silent && upstream_goes_h1(h2->upstream)) {
        /* The host asks for HTTP/1.1, and has not executed the request. */
        failure = (struct host_failure){.failure = BECALM_HTTP_REFUSED_STREAM, .unsent = true, .stale = true};
        leave(h2);
    }
    fail(stream, &failure);
}

/* ---- from the session ---- */

static struct head *copy_of(struct worker *worker, const struct head *head)
{
    void *memory = blocks_take(&worker->loop.blocks, head_copy_size(head));
    return memory == NULL ? NULL : head_copy(memory, head);
}

/* The stream can't go on: the host is told so, and its attempt later. */
static void give_up(struct host_stream *stream, const char *rule)
{
    if (stream->h2.stream != NULL) {
        h2_reset(stream->h2.stream, H2_INTERNAL_ERROR);
        stream->h2.stream = NULL;
    }
    stream->h2.rule = rule;
    stream->h2.closed = true;
    note(stream);
}

static void on_answer(void *owner, const struct head *head, bool end)
{
    struct host_stream *stream = owner;
    struct head *copy = NULL;
    (void)end; /* which is told by itself */
    h2_of(stream)->pings = 0;
    if (head->status == 101) {
        give_up(stream, "101 is not known to HTTP/2");
        return;
    }
    if (head->status < 200 && ++stream->h2.interims > INTERIM_READ) {
        give_up(stream, "too many 1xx answers before the last one");
        return;
    }
    copy = copy_of(worker_of(h2_of(stream)), head);
    if (copy == NULL) {
        give_up(stream, NULL);
        return;
    }
    struct head **at = head->status < 200 ? &stream->h2.interim : &stream->h2.head;
    stream->h2.continues |= *at != NULL && (*at)->status == 100;
    drop_copy(worker_of(h2_of(stream)), *at);
    *at = copy;
    note(stream);
}

static void on_broken(void *owner, const char *rule)
{
    struct host_stream *stream = owner;
    stream->h2.stream = NULL;
    give_up(stream, rule);
}

static void on_data(void *owner, const char *bytes, size_t length)
{
    struct host_stream *stream = owner;
    h2_of(stream)->pings = 0;
    if (!buffered_add(worker_of(h2_of(stream)), &stream->h2.in, bytes, length)) {
        give_up(stream, NULL);
        return;
    }
    note(stream);
}

static void on_trailers(void *owner, const char *bytes, size_t length)
{
    struct host_stream *stream = owner;
    const char *wrong = length == 0 ? "the trailers are too large" : h1_trailers_wrong(bytes, length);
    if (wrong != NULL || !bytes_add_from(&stream->trailers, &worker_of(h2_of(stream))->loop.blocks, bytes, length)) {
        give_up(stream, wrong);
    }
}

static void on_end(void *owner)
{
    struct host_stream *stream = owner;
    stream->h2.ended = true;
    note(stream);
}

static void on_drained(void *owner)
{
    struct host_stream *stream = owner;
    stream->h2.drained = true;
    note(stream);
}

static void on_closed(void *owner, uint32_t code)
{
    struct host_stream *stream = owner;
    stream->h2.stream = NULL;
    stream->h2.code = code;
    stream->h2.closed = true;
    note(stream);
}

static void on_settings(void *owner)
{
    struct host_h2 *h2 = owner;
    h2->settled = true;
    upstream_shared_room(h2->upstream);
}

static void on_goaway(void *owner, uint32_t code)
{
    struct host_h2 *h2 = owner;
    if (code == H2_HTTP_1_1_REQUIRED) {
        (void)upstream_goes_h1(h2->upstream);
    }
    leave(h2);
}

static void on_pong(void *owner)
{
    struct host_h2 *h2 = owner;
    h2->pinged_at = 0;
}

static const struct h2_calls session_calls = {
    .answer = on_answer,
    .broken = on_broken,
    .data = on_data,
    .trailers = on_trailers,
    .end = on_end,
    .drained = on_drained,
    .closed = on_closed,
    .settings = on_settings,
    .goaway = on_goaway,
    .pong = on_pong,
};

/* ---- to attempts ---- */

/* False: the stream may be gone. */
static bool tell_interim(struct host_stream *stream)
{
    struct worker *worker = worker_of(h2_of(stream));
    struct head *head = stream->h2.interim;
    bool continues = stream->h2.continues && head->status != 100;
    struct head only = {.bytes = "", .status = 100, .version = HTTP_2};
    stream->h2.interim = NULL;
    stream->h2.continues = false;
    bool goes_on = (!continues || stream->calls->interim(stream, &only)) && stream->calls->interim(stream, head);
    drop_copy(worker, head);
    return goes_on;
}

/* Delivers the part of the answer that is here. */
static void tell_answer(struct host_stream *stream)
{
    struct worker *worker = worker_of(h2_of(stream));
    struct bytes in = stream->h2.in;
    struct head *head = stream->h2.head;
    bool ended = stream->h2.ended;
    struct pieces pieces = {.count = bytes_left(&in) > 0, .bytes = bytes_left(&in)};
    pieces.piece[0] = (struct becalm_text){bytes_at(&in), bytes_left(&in)};
    stream->h2.in = (struct bytes){0};
    stream->h2.head = NULL;
    stream->h2.told = true;
    if (!ended && stream->h2.stream != NULL) {
        h2_took(stream->h2.stream, pieces.bytes);
        write_later(h2_of(stream));
    }
    if (ended) {
        release(stream);
    }
    (void)(head != NULL ? stream->calls->head(stream, head, &pieces, ended)
                        : stream->calls->body(stream, &pieces, ended));
    drop_copy(worker, head);
    buffered_free(worker, &in);
}

/* Is the stream still the one that something was noted of? */
static bool lives(const struct host_h2 *h2, const struct host_stream *stream)
{
    const struct host_stream *each = h2->streams;
    while (each != NULL && each != stream) {
        each = each->h2.next;
    }
    return each != NULL;
}

static void tell(struct host_stream *stream)
{
    struct host_h2 *h2 = h2_of(stream);
    if (stream->h2.drained) {
        stream->h2.drained = false;
        stream->calls->moves(stream);
        stream->calls->drained(stream);
        if (!lives(h2, stream)) {
            return;
        }
    }
    if (stream->h2.interim != NULL && (!tell_interim(stream) || !lives(h2, stream))) {
        return;
    }
    bool whole = stream->h2.ended && (stream->h2.told || stream->h2.head != NULL);
    if (stream->h2.closed && !whole && (!stream->h2.told || bytes_left(&stream->h2.in) == 0)) {
        fail_closed(stream); /* if nothing of the answer was delivered, it is dropped */
        return;
    }
    bool more = stream->h2.head != NULL || bytes_left(&stream->h2.in) > 0 || whole;
    if (!more || (stream->h2.told && stream->calls->full(stream))) {
        return; /* it resumes */
    }
    tell_answer(stream);
    if (lives(h2, stream) && stream->h2.closed) {
        note(stream); /* that was the last of a cut answer */
    }
}

static void deliver(struct host_h2 *h2)
{
    while (h2->noted != NULL) {
        struct host_stream *stream = h2->noted;
        h2->noted = stream->h2.noted_next;
        stream->h2.noted = false;
        tell(stream);
    }
}

/* ---- the connection ---- */

/* The connection is lost, or its host does not speak HTTP/2: `rule`. */
static void broken(struct host_h2 *h2, const char *rule)
{
    struct upstream *upstream = h2->upstream;
    if (h2->dead) {
        return;
    }
    h2->dead = true;
    if (rule != NULL) {
        enum h2_end end = h2_ended(h2->session);
        gateway_count_h2_host_end(worker_of(h2)->gateway, end == H2_END_NONE ? H2_END_PROTOCOL : end);
    }
    if (!h2->going) {
        upstream_shared_leave(upstream);
    }
    while (h2->streams != NULL) {
        struct host_stream *stream = h2->streams;
        bool unsent = stream->h2.stream != NULL && !h2_sent(stream->h2.stream);
        struct host_failure failure = {
            .failure = stream->h2.told ? BECALM_HTTP_CUT
                       : rule != NULL  ? BECALM_HTTP_BAD_ANSWER
                       : unsent        ? BECALM_HTTP_RESET_BEFORE_REQUEST
                                       : BECALM_HTTP_RESET,
            .rule = rule,
            .h2 = true,
            .unsent = unsent,
            .stale = unsent || (rule == NULL && upstream->reused && stream->h2.feeds == h2->feeds),
        };
        fail(stream, &failure);
    }
    upstream_close(upstream);
}

/* Why a session was ended by its host's fault; NULL: it was not. */
static const char *rule_of(const struct host_h2 *h2)
{
    enum h2_end end = h2_ended(h2->session);
    return h2->going || end == H2_END_GOAWAY || end == H2_END_MEMORY ? NULL
           : h2->settled                                             ? "the host's bytes are not HTTP/2"
                                                                     : "the host does not speak HTTP/2";
}

/* Writes all that there is to be said, as far as the socket takes it, by way of `room`. False: the connection is lost.
 */
static bool write_by(struct host_h2 *h2, char *room, size_t size)
{
    struct worker *worker = worker_of(h2);
    struct wire *wire = &h2->upstream->wire;
    while (!wire_blocked(wire)) {
        size_t length = h2_write(h2->session, room, size);
        if (length == 0) {
            break;
        }
        if (buffered_write(worker, wire, &(struct iovec){room, length}, 1) < 0) {
            wire_again(wire); /* reading tells whether there is a GOAWAY, or an answer */
            return false;
        }
    }
    count_held(h2);
    return true;
}

static bool write_out(struct host_h2 *h2)
{
    struct h2_room *room = worker_of(h2)->h2;
    return write_by(h2, room->out, sizeof room->out);
}

/* No stream or view needs it any more. */
static bool is_over(const struct host_h2 *h2)
{
    const struct upstream_host *host = h2->upstream->host;
    return h2_stream_count(h2->session) == 0 && h2->streams == NULL &&
           (h2->going || host->users == 0 || host->worker->closing);
}

/* The host or an error has ended the connection while streams wait for it; or it ran out of memory, and would fail the
 * next stream. */
static bool has_ended(const struct host_h2 *h2)
{
    return h2_over(h2->session) && (h2->streams != NULL || h2_ended(h2->session) == H2_END_MEMORY);
}

static void say_goodbye(struct host_h2 *h2)
{
    UNFILLED char last[H2_WRITE_MIN]; /* not the worker's shared room: that may still hold bytes for the client of the
                                         exchange that used it last */
    h2_terminate(h2->session, H2_NO_ERROR);
    (void)write_by(h2, last, sizeof last);
    h2->dead = true;
    if (!h2->going) {
        upstream_shared_leave(h2->upstream);
    }
    upstream_close(h2->upstream);
}

static void task_runs(struct task *task)
{
    struct host_h2 *h2 = CONTAINER_OF(task, struct host_h2, task);
    if (!write_out(h2)) {
        host_h2_ready(h2->upstream, EPOLLIN);
        return;
    }
    deliver(h2);
    if (!h2->dead && has_ended(h2)) {
        broken(h2, rule_of(h2));
    } else if (!h2->dead && is_over(h2)) {
        say_goodbye(h2);
    } else if (!h2->dead && wire_readable(&h2->upstream->wire)) {
        host_h2_ready(h2->upstream, 0); /* goes on reading where it stopped to let other connections have their turn */
    }
}

/* Reads all bytes that are there. */
static void read_in(struct host_h2 *h2)
{
    struct upstream *upstream = h2->upstream;
    struct worker *worker = worker_of(h2);
    for (int turn = 0; !h2->dead && wire_readable(&upstream->wire); turn++) {
        if (turn == WIRE_TURN) {
            write_later(h2);
            return;
        }
        ssize_t got = wire_read(&upstream->wire, worker->in, buffered_piece(worker));
        if (got == WIRE_LATER) {
            return;
        }
        if (got <= 0) {
            deliver(h2);
            broken(h2, NULL);
            return;
        }
        h2->feeds++;
        h2->looked_in = 0;
        h2->heard_at = worker->loop.now;
        h2->pinged_at = 0;
        bool goes_on = h2_feed(h2->session, worker->in, (size_t)got, worker->loop.now);
        deliver(h2);
        if (!goes_on && !h2->dead) {
            (void)write_out(h2); /* the GOAWAY that says why */
            broken(h2, rule_of(h2));
            return;
        }
    }
}

void host_h2_ready(struct upstream *upstream, uint32_t events)
{
    struct host_h2 *h2 = upstream->h2;
    if ((events & EPOLLOUT) != 0 && wire_blocked(&upstream->wire) &&
        buffered_write(worker_of(h2), &upstream->wire, NULL, 0) < 0) {
        wire_again(&upstream->wire);
    }
    read_in(h2);
    if (!h2->dead) {
        write_later(h2);
        upstream_shared_room(upstream); /* the waiting bytes were read */
    }
}

/* When its timer has to look again. */
static becalm_ns look_at(const struct host_h2 *h2)
{
    const struct upstream *upstream = h2->upstream;
    if (h2->streams == NULL) {
        return becalm_ns_after(upstream->idle_since, upstream->host->pool.idle);
    }
    return h2->pinged_at != 0 ? becalm_ns_after(h2->pinged_at, PING_WAIT) : becalm_ns_after(h2->heard_at, PING_AFTER);
}

/* May a host that has been silent be asked whether it lives? */
static bool may_ping(const struct host_h2 *h2, becalm_ns now)
{
    bool asked = h2->asked_at != 0 && becalm_ns_since(now, h2->asked_at) >= PING_AFTER;
    return h2->pings == 0 || (asked && h2->pings < PINGS) || becalm_ns_since(now, h2->last_ping_at) >= PING_AGAIN;
}

static void ping(struct host_h2 *h2, becalm_ns now)
{
    h2->pinged_at = h2->last_ping_at = now;
    h2->asked_at = 0;
    h2->pings++;
    h2_ping(h2->session);
    write_later(h2);
}

void host_h2_time(struct upstream *upstream)
{
    struct host_h2 *h2 = upstream->h2;
    struct loop *loop = &worker_of(h2)->loop;
    becalm_ns next = look_at(h2);
    if (next <= loop->now) {
        if (h2->streams == NULL) {
            say_goodbye(h2);
            return;
        }
        if (h2->pinged_at != 0) {
            broken(h2, NULL);
            return;
        }
        next = becalm_ns_after(loop->now, PING_AFTER);
        if (may_ping(h2, loop->now)) {
            ping(h2, loop->now);
            next = look_at(h2);
        }
    }
    wheel_arm(&loop->wheel, &upstream->timer, next);
}

bool host_h2_begin(struct upstream *upstream)
{
    struct worker *worker = upstream->host->worker;
    struct h2_room *room = h2_room(worker);
    struct host_h2 *h2 = calloc(1, sizeof *h2);
    const struct h2_limits limits = {
        .streams = upstream->host->pool.streams,
        .window = upstream->host->pool.window,
        .head_bytes = GATEWAY_ANSWER_HEAD,
        .secure = upstream->host->tls != NULL,
    };
    if (h2 == NULL || room == NULL) {
        free(h2);
        return false;
    }
    h2->upstream = upstream;
    h2->task.run = task_runs;
    h2->most = limits.streams;
    h2->heard_at = h2->resets_at = worker->loop.now;
    h2->resets = RESETS * 1000u;
    h2->session = h2_session_new(H2_CLIENT, &limits, &session_calls, h2, &room->scratch);
    if (h2->session == NULL) {
        free(h2);
        return false;
    }
    upstream->h2 = h2;
    write_later(h2);
    return true;
}

void host_h2_free(struct upstream *upstream)
{
    struct host_h2 *h2 = upstream->h2;
    h2->dead = true;
    loop_not_later(&worker_of(h2)->loop, &h2->task);
    buffered_changed(worker_of(h2), h2->counted, 0);
    h2_session_free(h2->session);
    loop_free_later(&worker_of(h2)->loop, h2);
    upstream->h2 = NULL;
}

void host_h2_open(struct host_stream *stream)
{
    struct host_h2 *h2 = h2_of(stream);
    struct loop *loop = &worker_of(h2)->loop;
    bool first = h2->streams == NULL;
    memset(&stream->h2, 0, sizeof stream->h2);
    stream->ops = &host_h2_ops;
    stream->h2.next = h2->streams;
    stream->h2.link = &h2->streams;
    if (stream->h2.next != NULL) {
        stream->h2.next->h2.link = &stream->h2.next;
    }
    h2->streams = stream;
    h2->asked_at = h2->asked_at == 0 ? loop->now : h2->asked_at;
    if (first) {
        h2->heard_at = loop->now; /* before, it had nothing to say */
        wheel_arm(&loop->wheel, &h2->upstream->timer, look_at(h2));
    }
}

void host_h2_quiet(struct upstream *upstream)
{
    struct host_h2 *h2 = upstream->h2;
    if (h2->streams == NULL) {
        say_goodbye(h2);
    }
}

/* All that is said in a turn of the loop is written at its end: one look at the socket is as good as one per stream. */
bool host_h2_silent(struct upstream *upstream)
{
    struct host_h2 *h2 = upstream->h2;
    uint64_t turn = worker_of(h2)->loop.turns;
    if (h2->looked_in != turn) {
        h2->looked_in = turn;
        h2->silent = wire_peek(&upstream->wire) == WIRE_QUIET;
    }
    return h2->silent;
}

bool host_h2_settled(const struct upstream *upstream)
{
    return upstream->h2->settled;
}

uint32_t host_h2_room(const struct upstream *upstream)
{
    const struct host_h2 *h2 = upstream->h2;
    uint32_t most =
        h2->settled ? h2_streams_max(h2->session) : 1; /* before its SETTINGS arrive, the number is unknown */
    uint32_t used = h2_stream_count(h2->session);
    most = most < h2->most ? most : h2->most;
    return h2->going || h2->dead || used >= most ? 0 : most - used;
}

/* ---- from attempts ---- */

static bool say_body(struct host_stream *stream, const struct stream_part *part)
{
    bool kept = true;
    for (int i = 0; kept && i < part->pieces->count; i++) {
        kept = h2_data(stream->h2.stream, part->pieces->piece[i].at, part->pieces->piece[i].length);
    }
    if (part->ended) {
        h2_end(stream->h2.stream, part->trailers);
    }
    count_held(h2_of(stream));
    write_later(h2_of(stream));
    return kept;
}

static bool send_request(struct host_stream *stream, const struct draft *draft, const struct stream_part *part)
{
    struct host_h2 *h2 = h2_of(stream);
    /* A body that was announced and is empty ends in a DATA frame, as it came: gRPC asks for that, and its servers in
     * Go wait for ever for the end of a request whose head ends it. */
    bool announced = draft->framing == BODY_OPEN;
    bool bodiless = part->ended && part->pieces->bytes == 0 && part->trailers == NULL && !announced;
    stream->h2.feeds = h2->feeds;
    stream->h2.stream = h2_request(h2->session, draft, bodiless, stream);
    if (stream->h2.stream == NULL || (!bodiless && !say_body(stream, part))) {
        fail(stream, &(struct host_failure){.failure = BECALM_HTTP_RESET_BEFORE_REQUEST, .unsent = true});
        return false;
    }
    write_later(h2);
    return true;
}

static bool more(struct host_stream *stream, const struct stream_part *part)
{
    return stream->h2.stream != NULL && say_body(stream, part);
}

static bool blocked(const struct host_stream *stream)
{
    return stream->h2.stream != NULL && h2_blocked(stream->h2.stream);
}

static size_t held(const struct host_stream *stream)
{
    return stream->h2.in.size + (stream->h2.stream == NULL ? 0 : h2_stream_held(stream->h2.stream));
}

static void resume(struct host_stream *stream)
{
    tell(stream);
}

const struct host_stream_ops host_h2_ops = {
    .send = send_request,
    .more = more,
    .blocked = blocked,
    .held = held,
    .resume = resume,
    .drop = release,
};
