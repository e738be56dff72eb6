/* SPDX-License-Identifier: MIT */
#include "login.h"
#include "upstream.h"

#include "http/keep_alive.h"
#include "proxy/buffered.h"
#include "proxy/gateway_shared.h"
#include "unfilled.h"

#include <string.h>

/* HTTP/1 with a host: one stream at a time on a connection, which goes back to the pool behind a whole answer. */

#define INTERIM_READ 64 /* 1xx of one attempt: a host that sends more is not about to answer */

static struct worker *worker_of(const struct host_stream *stream)
{
    return stream->host->worker;
}

/* Gives the connection back, to be used again if the answer on it ended well. */
static void release(struct host_stream *stream, bool clean)
{
    struct upstream *upstream = stream->upstream;
    bool good = clean && stream->h1.keep_alive && stream->h1.said && !wire_blocked(&upstream->wire);
    buffered_free(worker_of(stream), &stream->h1.part);
    upstream->stream = NULL;
    if (good && upstream->personal == 0) {
        upstream_put(upstream);
    } else if (good) {
        upstream_own(upstream, stream->calls->owner(stream));
    } else {
        upstream_close(upstream);
    }
    host_stream_over(stream);
}

static void fail(struct host_stream *stream, enum becalm_http_failure failure)
{
    release(stream, false);
    stream->calls->failed(stream, &(struct host_failure){.failure = failure});
}

/* The host's answer breaks a rule of HTTP/1, and can't be passed on, or not to its end. */
static void refuse(struct host_stream *stream, const char *rule)
{
    release(stream, false);
    stream->calls->failed(stream, &(struct host_failure){.failure = BECALM_HTTP_BAD_ANSWER, .rule = rule});
}

static void broken(struct host_stream *stream)
{
    bool unsent = !stream->h1.wrote || stream->h1.unread;
    struct host_failure failure = {
        .failure = stream->h1.answers ? BECALM_HTTP_CUT
                   : unsent           ? BECALM_HTTP_RESET_BEFORE_REQUEST
                                      : BECALM_HTTP_RESET,
        .unsent = unsent,
        .stale = stream->upstream->reused && !stream->h1.heard,
    };
    release(stream, false);
    stream->calls->failed(stream, &failure);
}

/* Writing the request. */

static bool blocked(const struct host_stream *stream)
{
    return wire_blocked(&stream->upstream->wire);
}

static size_t held(const struct host_stream *stream)
{
    return (size_t)stream->upstream->wire.out.size + stream->h1.part.size;
}

/* Writes all, or keeps the rest for later. Below 0: the connection is broken, or there is no memory for the rest. */
static ssize_t put(struct host_stream *stream, struct iovec *part, int count)
{
    ssize_t sent = buffered_write(worker_of(stream), &stream->upstream->wire, part, count);
    stream->h1.uncounted |= sent == WIRE_FULL || sent == WIRE_TORN;
    stream->h1.wrote |= sent > 0 || stream->h1.uncounted;
    stream->h1.written += sent > 0 ? (size_t)sent : 0;
    return sent;
}

/* A host that has heard enough answers and closes. The request can't be written to its end, but reading tells whether
 * there is an answer. */
static void read_instead(struct host_stream *stream)
{
    stream->h1.said = false;
    wire_again(&stream->upstream->wire);
    loop_later(&worker_of(stream)->loop, &stream->task);
}

/* The body: as it is, or as a chunk where its length was not known beforehand. */
static int body_parts(struct host_stream *stream, const struct stream_part *body, char *chunk_head, struct iovec *part)
{
    struct worker *worker = worker_of(stream);
    size_t length = body->pieces->bytes;
    bool chunks = stream->h1.chunks;
    int count = 0;
    if (chunks && length > 0) {
        part[count++] = (struct iovec){chunk_head, h1_chunk_head(chunk_head, length)};
    }
    if (length > 0) {
        part[count++] = (struct iovec){(char *)(uintptr_t)body->pieces->piece[0].at, length};
    }
    if (chunks && body->ended) {
        struct text_sink end = {.at = worker->out + WORKER_TRAILERS, .size = WORKER_OUT - WORKER_TRAILERS};
        text_put_chars(&end, length > 0 ? "\r\n0\r\n" : "0\r\n");
        if (body->trailers != NULL) {
            h1_put_fields(&end, body->trailers, 0);
        }
        text_put_chars(&end, "\r\n");
        part[count++] = (struct iovec){end.at, end.length};
    } else if (chunks && length > 0) {
        part[count++] = (struct iovec){(char *)(uintptr_t) "\r\n", 2};
    }
    return count;
}

_Static_assert(BECALM_HEADER_BYTES_MAX + BECALM_HEADER_BYTES_MAX / 4 <= WORKER_OUT / 2,
               "the largest head of a client fits where it is written, with our own fields");

static bool send_request(struct host_stream *stream, const struct draft *draft, const struct stream_part *body)
{
    struct text_sink out = {.at = worker_of(stream)->out, .size = WORKER_OUT / 2};
    UNFILLED struct iovec part[4];
    UNFILLED char chunk_head[20];
    stream->h1.chunks = draft->framing == BODY_OPEN;
    stream->h1.said = body->ended;
    stream->upstream->personal |= stream->login;
    h1_put_request(&out, draft);
    if (out.full) {
        release(stream, false);
        stream->calls->failed(stream,
                              &(struct host_failure){.failure = BECALM_HTTP_RESET_BEFORE_REQUEST, .unsent = true});
        return false;
    }
    part[0] = (struct iovec){out.at, out.length};
    int count = draft->framing == BODY_NONE ? 1 : 1 + body_parts(stream, body, chunk_head, part + 1);
    ssize_t sent = put(stream, part, count);
    if (sent == WIRE_TORN) {
        read_instead(stream);
    } else if (sent < 0) {
        broken(stream);
    }
    return sent >= 0;
}

static bool more(struct host_stream *stream, const struct stream_part *body)
{
    struct iovec part[3];
    char chunk_head[20];
    int count = body_parts(stream, body, chunk_head, part);
    if (put(stream, part, count) < 0) {
        read_instead(stream);
        return false;
    }
    stream->h1.said = body->ended;
    return true;
}

/* Writes the waiting bytes. True: all are written. */
static bool flush_rest(struct host_stream *stream)
{
    size_t before = stream->h1.written;
    if (put(stream, NULL, 0) < 0) {
        wire_again(&stream->upstream->wire); /* a read shows the error, and whether there was an answer before it */
        return false;
    }
    if (stream->h1.written > before) {
        stream->calls->moves(stream);
    }
    return !blocked(stream);
}

/* Reading the answer. */

/* Takes pieces until there are no more, or no more room for them. NULL, or the rule that they break. */
static const char *collect(struct host_stream *stream, const char **at, const char *end, struct pieces *pieces)
{
    pieces->count = 0;
    pieces->bytes = 0;
    while (pieces->count < PIECES_MAX) {
        struct h1_piece piece = h1_body_next(&stream->h1.body, at, end);
        switch (piece.kind) {
        case H1_PIECE_NONE:
            return NULL;
        case H1_PIECE_END:
            return h1_trailers_wrong(stream->trailers.at, bytes_left(&stream->trailers));
        case H1_PIECE_DATA:
            pieces->piece[pieces->count++] = (struct becalm_text){piece.at, piece.length};
            pieces->bytes += piece.length;
            break;
        case H1_PIECE_TRAILER:
            if (!bytes_add(&stream->trailers, piece.at, piece.length)) {
                return "no memory for its trailers";
            }
            break;
        case H1_PIECE_BAD:
            return piece.what;
        }
    }
    return NULL;
}

/* How long the host keeps this connection when it is idle. */
static __attribute__((noinline)) void read_keep_alive(struct host_stream *stream, const struct head *head)
{
    struct becalm__keep_alive keep = {0};
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (head->field[i].id == FIELD_KEEP_ALIVE) {
            (void)becalm__keep_alive_read(field_value(head, &head->field[i]), &keep); /* a malformed value is ignored */
        }
    }
    if (keep.spent || (keep.has_timeout && keep.timeout == 0)) {
        stream->h1.keep_alive = false;
    } else if (keep.has_timeout) {
        upstream_keep_for(stream->upstream, keep.timeout * BECALM_S);
    }
}

/* Delivers the part of a body that is here, with `head` if the head was not delivered yet. True: go on reading. */
static bool take_body(struct host_stream *stream, const struct head *head, const char *at, const char *end)
{
    UNFILLED struct pieces pieces;
    do {
        const char *wrong = collect(stream, &at, end, &pieces);
        if (wrong != NULL) {
            refuse(stream, wrong);
            return false;
        }
        bool ended = stream->h1.body.ended;
        if (ended) {
            release(stream, at == end);
        }
        stream->h1.answers = true;
        if (head == NULL && pieces.bytes == 0 && !ended) {
            return true; /* bytes between payloads alone are no progress of the answer */
        }
        bool goes_on = head == NULL ? stream->calls->body(stream, &pieces, ended)
                                    : stream->calls->head(stream, head, &pieces, ended);
        if (!goes_on || ended) {
            return false;
        }
        head = NULL;
    } while (at < end); /* more pieces than one list holds */
    return true;
}

/* The head is here, and `at` .. `end` behind it. True: go on reading. */
static bool take_answer(struct host_stream *stream, const char *at, const char *end, const struct head *head)
{
    stream->h1.keep_alive = head->keep_alive;
    stream->upstream->personal |= login_seen(head, LOGIN_WANTED);
    if (head_has(head, FIELD_KEEP_ALIVE)) {
        read_keep_alive(stream, head);
    }
    h1_body_init(&stream->h1.body, head);
    return take_body(stream, head, at, end);
}

/* Some hosts send an empty line before their status line. One empty line is skipped; it can't have another meaning. */
static const char *skip_blank(struct host_stream *stream, const char *bytes, const char *end)
{
    if (stream->h1.blank || end - bytes < 2 || bytes[0] != '\r' || bytes[1] != '\n') {
        return bytes;
    }
    stream->h1.blank = true;
    stream->h1.scanned = 0;
    return bytes + 2;
}

/* A head has not come to its end. True: wait for more of it. */
static bool keep_part(struct host_stream *stream, const char *bytes, size_t length)
{
    struct worker *worker = worker_of(stream);
    if (length > GATEWAY_ANSWER_HEAD) {
        refuse(stream, "the answer's head is too large");
        return false;
    }
    stream->h1.scanned = length;
    buffered_free(worker, &stream->h1.part);
    if (!buffered_add(worker, &stream->h1.part, bytes, length)) {
        fail(stream, BECALM_HTTP_RESET);
        return false;
    }
    return true;
}

/* Part of an answer, from its beginning. True: go on reading. */
static bool take_head(struct host_stream *stream, const char *bytes, size_t length)
{
    struct worker *worker = worker_of(stream);
    struct h1_limits limits = {.head_bytes = GATEWAY_ANSWER_HEAD};
    const char *end = bytes + length;
    stream->h1.heard = true;
    for (;;) {
        bytes = skip_blank(stream, bytes, end);
        size_t head_length = h1_head_end(bytes, (size_t)(end - bytes), stream->h1.scanned);
        if (head_length == 0) {
            return keep_part(stream, bytes, (size_t)(end - bytes));
        }
        stream->h1.scanned = 0;
        buffered_free(worker, &stream->h1.part);
        struct head *head = &worker->head;
        struct h1_verdict verdict = h1_parse_answer(bytes, head_length, &limits, stream->to_head, false, head);
        if (verdict.kind != H1_OK) {
            refuse(stream, verdict.what);
            return false;
        }
        bytes += head_length;
        if (head->status == 101) {
            stream->calls->switched(stream, head, (struct becalm_text){bytes, (size_t)(end - bytes)});
            return false;
        }
        if (head->status >= 200) {
            return take_answer(stream, bytes, end, head);
        }
        if (++stream->h1.interim > INTERIM_READ) {
            refuse(stream, "too many 1xx answers before the last one");
            return false;
        }
        if (!stream->calls->interim(stream, head)) {
            return false;
        }
        stream->h1.blank = false;
    }
}

#define RESET_WAIT BECALM_S /* the longest way to a host and back */

/* The host has closed the connection at the very moment when a request that may not be repeated was on its way.
 * Finds out whether the host can have read it; if not, it is repeated after all. True: wait, that is not known yet. */
static __attribute__((noinline)) bool unread_wait(struct host_stream *stream)
{
    struct upstream *upstream = stream->upstream;
    becalm_ns now = worker_of(stream)->loop.now;
    if (stream->h1.heard || !stream->h1.wrote || stream->h1.uncounted || !stream->watch) {
        return false;
    }
    stream->h1.fin_at = stream->h1.fin_at == 0 ? now : stream->h1.fin_at;
    switch (upstream_fate(upstream, stream->h1.written)) {
    case UPSTREAM_FATE_UNREAD:
        stream->h1.unread = true;
        return false;
    case UPSTREAM_FATE_UNKNOWN:
        return false;
    case UPSTREAM_FATE_OPEN:
        break;
    }
    if (becalm_ns_since(now, stream->h1.fin_at) >= RESET_WAIT) {
        return false;
    }
    wire_wait(&upstream->wire);
    upstream_look_again(upstream);
    return true;
}

/* The host has closed the connection. */
static void ended(struct host_stream *stream)
{
    static const struct pieces none;
    if (!stream->h1.answers && unread_wait(stream)) {
        return;
    }
    if (!stream->h1.answers || wire_cut(&stream->upstream->wire) || !h1_body_closed(&stream->h1.body)) {
        broken(stream);
        return;
    }
    release(stream, false);
    stream->calls->body(stream, &none, true);
}

/* Reads until there are no more bytes, or the exchange takes no more. */
static void read_answer(struct host_stream *stream)
{
    struct upstream *upstream = stream->upstream;
    struct worker *worker = worker_of(stream);
    for (int turn = 0; wire_readable(&upstream->wire); turn++) {
        if (stream->h1.answers && stream->calls->full(stream)) {
            return; /* resume() goes on when the client has read */
        }
        if (turn == WIRE_TURN) {
            loop_later(&worker->loop, &stream->task);
            return;
        }
        size_t had = bytes_left(&stream->h1.part);
        if (had > 0) {
            memcpy(worker->in, bytes_at(&stream->h1.part), had);
        }
        size_t piece = buffered_piece(worker);
        size_t room = piece < WORKER_IN - had ? piece : WORKER_IN - had;
        ssize_t got = wire_read(&upstream->wire, worker->in + had, room);
        if (got == WIRE_LATER) {
            return;
        }
        if (got == WIRE_BROKEN) {
            broken(stream);
            return;
        }
        if (got == WIRE_END) {
            ended(stream);
            return;
        }
        size_t length = had + (size_t)got;
        if (!(stream->h1.answers ? take_body(stream, NULL, worker->in, worker->in + length)
                                 : take_head(stream, worker->in, length))) {
            return;
        }
    }
}

static void resume(struct host_stream *stream)
{
    if (wire_readable(&stream->upstream->wire)) {
        read_answer(stream);
    }
}

void host_h1_ready(struct host_stream *stream, uint32_t events)
{
    struct upstream *upstream = stream->upstream;
    if ((events & EPOLLOUT) != 0 && blocked(stream) && flush_rest(stream)) {
        stream->calls->drained(stream);
        if (upstream->stream != stream) { /* it ended in drained(); the connection stays for this turn */
            return;
        }
    }
    resume(stream);
}

/* The end. */

static void drop(struct host_stream *stream)
{
    release(stream, false);
}

static void take(struct host_stream *stream, struct wire *wire)
{
    struct upstream *upstream = stream->upstream;
    loop_forget(&worker_of(stream)->loop, &upstream->wire.source);
    *wire = upstream->wire; /* including bytes that the host has not read yet */
    upstream->wire = (struct wire){.source = {.ready = upstream->wire.source.ready, .fd = -1}};
    release(stream, false);
}

const struct host_stream_ops host_h1_ops = {
    .send = send_request,
    .more = more,
    .blocked = blocked,
    .held = held,
    .resume = resume,
    .drop = drop,
    .take = take,
};
