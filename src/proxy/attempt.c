/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "buffered.h"
#include "exchange.h"
#include "gateway_shared.h"
#include "login.h"
#include "tunnel.h"

#include "container.h"
#include "http/keep_alive.h"
#include "unfilled.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INTERIM_READ 64 /* 1xx of one attempt: a host that sends more is not about to answer */

static void attempt_write(struct attempt *);
static bool attempt_read(struct attempt *);
static bool take_body(struct attempt *, const char *bytes, size_t length);

void attempt_free(struct attempt *attempt)
{
    struct exchange *exchange = attempt->exchange;
    exchange->reached |= attempt->wrote && !attempt->unread;
    upstream_leave(attempt);
    tunnel_host_give(attempt);
    loop_not_later(&exchange->worker->loop, &attempt->task);
    buffered_free(exchange->worker, &attempt->buffer);
    bytes_free(&attempt->trailers);
    exchange->attempt[attempt->slot] = NULL;
    if (attempt->state != ATTEMPT_NONE) {
        meter_add(&exchange->meter->in_flight, UINT64_MAX);
        if (attempt->answers) {
            meter_add(&exchange->meter->answers, UINT64_MAX);
        }
        attempt->state = ATTEMPT_NONE;
    }
    if (attempt != &exchange->first) {
        free(attempt);
    }
}

/* Gives the connection back, to be used again if the exchange on it ended well. */
static void release(struct attempt *attempt, bool clean)
{
    struct upstream *upstream = attempt->upstream;
    attempt->upstream = NULL;
    if (upstream == NULL) {
        return;
    }
    upstream->attempt = NULL;
    if (upstream->state == UPSTREAM_CONNECTING_NOW) {
        return; /* it goes on, for the next one who wants it, or until its timeout */
    }
    struct client_stream *stream = attempt->exchange->stream;
    struct client *client = stream->ops->connection(stream);
    bool good = clean && attempt->keep_alive && attempt->through;
    if (good && !upstream->login) {
        upstream_put(upstream);
    } else if (good && client != NULL) {
        upstream_own(upstream, client);
    } else {
        upstream_close(upstream);
    }
}

/* Timed out, or not wanted any more: the engine is not told of its end, but it was sent, and counts. */
void attempt_abandon(struct attempt *attempt)
{
    if (attempt->state >= ATTEMPT_SENT) {
        meter_attempt(attempt->exchange->meter, &(struct becalm_outcome){.status = attempt->status});
    }
    release(attempt, false);
    attempt_free(attempt);
}

/* How an attempt failed, as far as it is not the outcome's to say. */
struct why_failed {
    const char *rule; /* of HTTP/1, that the host's answer breaks; NULL: none */
    bool no_listener; /* nobody listens at the host */
};

static void fail_as(struct attempt *attempt, enum becalm_http_failure failure, struct why_failed why)
{
    struct exchange *exchange = attempt->exchange;
    release(attempt, false);
    struct becalm_outcome outcome;
    exchange->failure = failure;
    exchange->rule = why.rule;
    becalm_http_fail(&exchange->target->rules->retry_on, failure, &outcome);
    outcome.delivered = attempt->state == ATTEMPT_PASSING;
    outcome.no_listener = why.no_listener;
    exchange_attempt_ended(exchange, attempt->slot, &outcome);
}

static void fail(struct attempt *attempt, enum becalm_http_failure failure)
{
    fail_as(attempt, failure, (struct why_failed){0});
}

/* The host's answer breaks a rule of HTTP/1, and can't be passed on, or not to its end. */
static void refuse_answer(struct attempt *attempt, const char *rule)
{
    exchange_log_broken(attempt->exchange, attempt->host, rule);
    fail_as(attempt, attempt->state == ATTEMPT_PASSING ? BECALM_HTTP_CUT : BECALM_HTTP_BAD_ANSWER,
            (struct why_failed){.rule = rule});
}

void attempt_stalled(struct attempt *attempt)
{
    fail(attempt, attempt->state == ATTEMPT_PASSING ? BECALM_HTTP_CUT : BECALM_HTTP_TIMEOUT);
}

/* A pooled connection was found dead before the first byte of an answer: that is nobody's failure, and is mended on a
 * fresh one, if nothing can be done twice by that. */
static bool redo(struct attempt *attempt)
{
    struct exchange *exchange = attempt->exchange;
    struct upstream *upstream = attempt->upstream;
    if (attempt->redone || upstream == NULL || !upstream->reused || attempt->heard || attempt->state != ATTEMPT_SENT ||
        (attempt->wrote && !attempt->unread && !exchange_may_repeat(exchange))) {
        return false;
    }
    attempt->redone = true;
    attempt->wrote = attempt->through = false;
    attempt->written = 0;
    attempt->unread = false;
    attempt->fin_at = 0;
    attempt->state = ATTEMPT_CONNECTING;
    release(attempt, false);
    meter_add(&exchange->meter->redone, 1);
    attempt_pool_result(attempt, upstream_get(attempt->host, attempt, attempt->connect_timeout, true, false));
    return true;
}

static void broken(struct attempt *attempt)
{
    if (!redo(attempt)) {
        bool answering = attempt->state == ATTEMPT_HOLDING || attempt->state == ATTEMPT_PASSING;
        fail(attempt, answering                            ? BECALM_HTTP_CUT
                      : !attempt->wrote || attempt->unread ? BECALM_HTTP_RESET_BEFORE_REQUEST
                                                           : BECALM_HTTP_RESET);
    }
}

/* Beginning. */

static void go_on_reading(struct task *task)
{
    struct attempt *attempt = CONTAINER_OF(task, struct attempt, task);
    attempt_read(attempt);
}

/* The connection that the client has logged in by, or is about to, if it leads to a host of this service. False: there
 * is none. The engine's choice of a host does not count then; it is told where the attempt goes instead. */
static bool get_own(struct attempt *attempt)
{
    struct exchange *exchange = attempt->exchange;
    const struct view *view = exchange->view;
    uint32_t service = exchange->target->service_index;
    struct client *client = exchange->stream->ops->connection(exchange->stream);
    if (client == NULL || client->login == NULL || exchange->is_connect || attempt->probe) {
        return false;
    }
    for (uint32_t i = 0; i < view->snapshot->service[service].host_count; i++) {
        if (view->host[view->first_host[service] + i] == client->login->host) {
            bool got = upstream_get_own(client, attempt, exchange->target->rules->connect_timeout);
            if (got) {
                becalm_call_sent_to(&exchange->call, attempt->slot, i, exchange->worker->loop.now);
            }
            return got;
        }
    }
    return false;
}

void attempt_start(struct exchange *exchange, const struct becalm_action *action)
{
    const struct view *view = exchange->view;
    bool spare = exchange->first.state == ATTEMPT_NONE;
    struct attempt *attempt = spare ? &exchange->first : malloc(sizeof *attempt);
    if (attempt == NULL) {
        struct becalm_outcome nothing_sent = {.kind = BECALM_OUTCOME_CANCELLED};
        exchange_attempt_ended(exchange, action->slot, &nothing_sent);
        return;
    }
    memset(attempt, 0, offsetof(struct attempt, connect_timeout));
    attempt->exchange = exchange;
    attempt->task.run = go_on_reading;
    attempt->slot = action->slot;
    attempt->number = action->attempt;
    attempt->timeout_at = action->timeout_at;
    attempt->connect_timeout = exchange->target->rules->connect_timeout;
    attempt->state = ATTEMPT_CONNECTING;
    attempt->probe = action->why == BECALM_WHY_NO_HOST;
    exchange->attempt[action->slot] = attempt;
    meter_add(&exchange->meter->in_flight, 1);
    uint32_t host = action->host == BECALM_NO_HOST ? 0 : action->host;
    attempt->host = view->host[view->first_host[exchange->target->service_index] + host];
    bool own = exchange->login && get_own(attempt);
    if (attempt->host == NULL) {
        fail(attempt, BECALM_HTTP_DNS);
        return;
    }
    if (exchange->tunnel_place && !tunnel_host_take(attempt)) {
        struct becalm_outcome ours = {.kind = BECALM_OUTCOME_CANCELLED};
        if (own) { /* nothing was sent on it: it stays logged in */
            upstream_own(attempt->upstream, exchange->stream->ops->connection(exchange->stream));
            attempt->upstream = NULL;
        }
        exchange->host_full = true;
        exchange_attempt_ended(exchange, attempt->slot, &ours);
        return;
    }
    if (own) {
        attempt_pool_result(attempt, UPSTREAM_READY);
        return;
    }
    bool fresh = exchange->is_connect || attempt->probe; /* a tunnel has a connection of its own, a probe makes one */
    attempt_pool_result(
        attempt, upstream_get(attempt->host, attempt, attempt->connect_timeout, fresh, !exchange_may_repeat(exchange)));
}

/* Does this error say that nobody listens at the address, so that the request was certainly not sent? ENOENT is a Unix
 * socket's. A connection that is not answered (ETIMEDOUT), or a full backlog (EAGAIN), is another matter: somebody may
 * be there who has much to do. */
static bool says_no_listener(int error)
{
    return error == ECONNREFUSED || error == ENOENT || error == EHOSTUNREACH || error == ENETUNREACH;
}

/* The connection could not even be tried: errno says why. If that is for want of our own means, it is not the host's
 * fault. */
static void attempt_refused(struct attempt *attempt)
{
    struct exchange *exchange = attempt->exchange;
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM && errno != EADDRNOTAVAIL) {
        fail_as(attempt, BECALM_HTTP_CONNECT, (struct why_failed){.no_listener = says_no_listener(errno)});
        return;
    }
    struct becalm_outcome ours = {.kind = BECALM_OUTCOME_CANCELLED};
    exchange->no_means = true;
    exchange_attempt_ended(exchange, attempt->slot, &ours);
}

void attempt_not_connected(struct attempt *attempt, int error)
{
    attempt->exchange->connect_late = error == ETIMEDOUT;
    fail_as(attempt, BECALM_HTTP_CONNECT, (struct why_failed){.no_listener = says_no_listener(error)});
}

void attempt_not_secured(struct attempt *attempt)
{
    fail(attempt, BECALM_HTTP_TLS);
}

bool attempt_has_no_host(const struct attempt *attempt)
{
    const struct state *state = attempt->exchange->target->state;
    return !attempt->probe && state->policy.restart.enabled &&
           becalm_restart_peek(state->target.restart, state->policy.attempt_timeout,
                               attempt->exchange->worker->loop.now) == BECALM_RESTART_DOWN;
}

void attempt_waits(struct attempt *attempt)
{
    becalm_call_unsent(&attempt->exchange->call, attempt->slot, attempt->timeout_at);
}

void attempt_goes(struct attempt *attempt)
{
    struct exchange *exchange = attempt->exchange;
    attempt->timeout_at = becalm_call_goes(&exchange->call, attempt->slot, exchange->worker->loop.now);
}

/* The connection is a new one: its host is there, and whoever waits for that may go. */
void attempt_accepted(struct attempt *attempt)
{
    struct exchange *exchange = attempt->exchange;
    struct worker *worker = exchange->worker;
    if (becalm_call_accepted(&exchange->call, attempt->slot, worker->loop.now)) {
        gateway_order_all(worker->gateway, WORKER_PARKED);
    }
}

void attempt_connected(struct attempt *attempt)
{
    struct exchange *exchange = attempt->exchange;
    attempt->state = ATTEMPT_SENT;
    if (exchange->is_connect) {
        attempt->status = 200;
        tunnel_open(exchange, attempt, NULL, (struct becalm_text){0});
        return;
    }
    attempt_write(attempt);
}

void attempt_pool_result(struct attempt *attempt, enum upstream_result result)
{
    switch (result) {
    case UPSTREAM_READY:
        attempt_connected(attempt);
        break;
    case UPSTREAM_LATER:
        break;
    case UPSTREAM_REFUSED:
        attempt_refused(attempt);
        break;
    }
}

/* Writing the request. */

bool attempt_blocked(const struct attempt *attempt)
{
    return attempt->upstream != NULL && wire_blocked(&attempt->upstream->wire);
}

uint64_t attempt_held(const struct attempt *attempt)
{
    return (attempt->upstream == NULL ? 0 : (uint64_t)attempt->upstream->wire.out.size) + attempt->buffer.size;
}

/* Writes all, or keeps the rest for later. False: the connection is broken, or there is no memory for the rest. */
static bool attempt_put(struct attempt *attempt, struct iovec *part, int count)
{
    ssize_t sent = buffered_write(attempt->exchange->worker, &attempt->upstream->wire, part, count);
    attempt->wrote |= sent > 0 || sent == WIRE_FULL;
    attempt->written += sent > 0 ? (size_t)sent : 0;
    return sent >= 0;
}

/* The collected body: as it is, or as a chunk where its length was not known beforehand. */
static int body_parts(struct exchange *exchange, char *chunk_head, struct iovec *part)
{
    size_t length = bytes_left(&exchange->body);
    bool chunked = exchange_sends_chunks(exchange);
    int count = 0;
    if (chunked && length > 0) {
        part[count++] = (struct iovec){chunk_head, h1_chunk_head(chunk_head, length)};
    }
    if (length > 0) {
        part[count++] = (struct iovec){(char *)(uintptr_t)bytes_at(&exchange->body), length};
    }
    if (chunked && exchange->request == REQUEST_WHOLE) {
        struct text_sink end = {.at = exchange->worker->out + WORKER_TRAILERS, .size = WORKER_OUT - WORKER_TRAILERS};
        text_put_chars(&end, length > 0 ? "\r\n0\r\n" : "0\r\n");
        exchange_put_trailers(&end, &exchange->trailers, exchange->head->names_fields);
        text_put_chars(&end, "\r\n");
        part[count++] = (struct iovec){end.at, end.length};
    } else if (chunked && length > 0) {
        part[count++] = (struct iovec){(char *)(uintptr_t) "\r\n", 2};
    }
    return count;
}

static void attempt_write(struct attempt *attempt)
{
    struct exchange *exchange = attempt->exchange;
    struct worker *worker = exchange->worker;
    attempt->upstream->login |= login_seen(exchange->head, LOGIN_ASKED);
    struct text_sink out = {.at = worker->out, .size = WORKER_OUT / 2};
    UNFILLED struct draft draft;
    UNFILLED struct iovec part[4];
    UNFILLED char chunk_head[20];
    exchange_draft_request(exchange, attempt, &draft);
    h1_put_request(&out, &draft);
    if (out.full) {
        fail(attempt, BECALM_HTTP_RESET_BEFORE_REQUEST);
        return;
    }
    part[0] = (struct iovec){out.at, out.length};
    int count = exchange->head->framing == BODY_NONE ? 1 : 1 + body_parts(exchange, chunk_head, part + 1);
    if (!attempt_put(attempt, part, count)) {
        broken(attempt);
        return;
    }
    attempt->through = exchange->request == REQUEST_WHOLE && !attempt_blocked(attempt);
    if (exchange->body_streams) {
        expect_sent(exchange);
        /* What streams is here once. Even if the socket took nothing of it, no other connection could have it. */
        attempt->wrote |= bytes_left(&exchange->body) > 0;
        exchange_drop_body(exchange);
        exchange_feed(exchange);
    }
}

/* A request that streamed is through: the host's time begins. False: the exchange is over. */
static bool tell_through(struct attempt *attempt)
{
    struct exchange *exchange = attempt->exchange;
    return !attempt->through || !exchange->body_streams ||
           exchange_event(exchange, BECALM_EVENT_SENT, attempt->slot, NULL);
}

void attempt_body(struct attempt *attempt)
{
    struct exchange *exchange = attempt->exchange;
    struct iovec part[3];
    char chunk_head[20];
    if (attempt->state < ATTEMPT_SENT || attempt->through || attempt->upstream == NULL) {
        return;
    }
    int count = body_parts(exchange, chunk_head, part);
    if (!attempt_put(attempt, part, count)) {
        /* A host that has heard enough answers and closes: reading tells whether there is an answer. */
        wire_again(&attempt->upstream->wire);
        loop_later(&exchange->worker->loop, &attempt->task);
        return;
    }
    exchange_drop_body(exchange);
    attempt->through = exchange->request == REQUEST_WHOLE && !attempt_blocked(attempt);
    tell_through(attempt);
}

/* Writes what waited. True: all of it is gone. */
static bool flush_rest(struct attempt *attempt)
{
    struct exchange *exchange = attempt->exchange;
    size_t before = attempt->written;
    if (!attempt_put(attempt, NULL, 0)) {
        wire_again(&attempt->upstream->wire); /* reading tells what happened, and whether there was an answer */
        return false;
    }
    if (attempt->written > before) {
        exchange->stream->ops->moves(exchange->stream);
    }
    if (attempt_blocked(attempt)) {
        return false;
    }
    attempt->through = exchange->request == REQUEST_WHOLE;
    return true;
}

void attempt_ready(struct attempt *attempt, uint32_t events)
{
    struct exchange *exchange = attempt->exchange;
    if ((events & EPOLLOUT) != 0 && attempt_blocked(attempt) && flush_rest(attempt)) {
        exchange_feed(exchange);
        if (!tell_through(attempt)) {
            return;
        }
    }
    if (attempt->upstream != NULL && wire_readable(&attempt->upstream->wire)) {
        attempt_read(attempt);
    }
}

void attempt_resume(struct attempt *attempt)
{
    if (attempt->upstream != NULL && wire_readable(&attempt->upstream->wire)) {
        attempt_read(attempt);
    }
}

/* Reading the answer. */

/* NULL: there are none, or they are well formed; or which rule they break. */
static const char *trailers_wrong(const struct attempt *attempt)
{
    return bytes_left(&attempt->trailers) == 0 ? NULL : exchange_trailers_wrong(&attempt->trailers);
}

/* Takes pieces until there are no more, or no more room for them. NULL, or what is wrong with them. */
static const char *collect(struct attempt *attempt, const char **at, const char *end, struct pieces *pieces)
{
    pieces->count = 0;
    pieces->bytes = 0;
    while (pieces->count < PIECES_MAX) {
        struct h1_piece piece = h1_body_next(&attempt->body, at, end);
        switch (piece.kind) {
        case H1_PIECE_NONE:
            return NULL;
        case H1_PIECE_END:
            return trailers_wrong(attempt);
        case H1_PIECE_DATA:
            pieces->piece[pieces->count++] = (struct becalm_text){piece.at, piece.length};
            pieces->bytes += piece.length;
            break;
        case H1_PIECE_TRAILER:
            if (!bytes_add(&attempt->trailers, piece.at, piece.length)) {
                return "no memory for its trailers";
            }
            break;
        case H1_PIECE_BAD:
            return piece.what;
        }
    }
    return NULL;
}

static bool tell(struct attempt *attempt, enum becalm_event_kind kind, const struct offer *offer,
                 const struct becalm_outcome *outcome)
{
    struct exchange *exchange = attempt->exchange;
    exchange->offer = offer;
    return exchange_event(exchange, kind, attempt->slot, outcome);
}

/* The head of an answer that has not ended is passed on, or held back: from now on it is an answer in progress. */
static void begin_answer(struct attempt *attempt)
{
    if (!attempt->answers) {
        attempt->answers = true;
        meter_add(&attempt->exchange->meter->answers, 1);
    }
}

/* False: the attempt is over, or the exchange. */
static bool tell_head(struct attempt *attempt, const struct offer *offer, const struct becalm_outcome *outcome)
{
    struct exchange *exchange = attempt->exchange;
    if (!tell(attempt, BECALM_EVENT_HEAD, offer, outcome) || exchange->passing != attempt) {
        return false;
    }
    begin_answer(attempt);
    return true;
}

/* Passes more of the body on. False: nobody wants it, and the exchange is gone. */
static bool pass(struct attempt *attempt, const struct pieces *pieces)
{
    struct exchange *exchange = attempt->exchange;
    if (answer_more(exchange, pieces, attempt->body.ended)) {
        return true;
    }
    if (exchange->client == CLIENT_GONE) {
        exchange_event(exchange, BECALM_EVENT_CANCEL, 0, NULL);
        return false;
    }
    bool goes_on = exchange_outlives(exchange);
    exchange->stream->ops->cut(exchange->stream);
    return goes_on;
}

/* A failed answer that may be retried is kept back, as long as it is small: its connection can then be used again, and
 * the client gets it if nothing better comes. True: go on reading. */
static bool hold(struct attempt *attempt, const struct pieces *pieces, bool ended, bool clean)
{
    struct exchange *exchange = attempt->exchange;
    for (int i = 0; i < pieces->count; i++) {
        if (!buffered_add(exchange->worker, &attempt->buffer, pieces->piece[i].at, pieces->piece[i].length)) {
            fail(attempt, BECALM_HTTP_CUT);
            return false;
        }
    }
    size_t length = bytes_left(&attempt->buffer) - attempt->fields_length;
    if (!ended && length <= KEEP_BYTES) {
        return true;
    }
    struct pieces all = {.count = length > 0, .bytes = length};
    all.piece[0] = (struct becalm_text){attempt->buffer.at + attempt->fields_length, length};
    struct offer offer = {
        .attempt = attempt,
        .fields = {attempt->buffer.at, attempt->fields_length},
        .pieces = &all,
        .ended = ended,
    };
    struct becalm_outcome outcome = attempt->held;
    answer_keep(exchange, &offer);
    if (ended) {
        release(attempt, clean);
        tell(attempt, BECALM_EVENT_DONE, &offer, &outcome);
        return false;
    }
    return tell_head(attempt, &offer, &outcome);
}

/* How long the host keeps this connection when it is idle. */
static __attribute__((noinline)) void read_keep_alive(struct attempt *attempt, const struct head *head)
{
    struct becalm__keep_alive keep = {0};
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (head->field[i].id == FIELD_KEEP_ALIVE) {
            (void)becalm__keep_alive_read(field_value(head, &head->field[i]),
                                          &keep); /* what is malformed says nothing */
        }
    }
    if (keep.spent || (keep.has_timeout && keep.timeout == 0)) {
        attempt->keep_alive = false;
    } else if (keep.has_timeout) {
        upstream_keep_for(attempt->upstream, keep.timeout * BECALM_S);
    }
}

/* The head is here, and `at` .. `end` behind it. True: go on reading. */
static bool take_answer(struct attempt *attempt, const char *at, const char *end, const struct head *head)
{
    struct exchange *exchange = attempt->exchange;
    UNFILLED struct pieces pieces;
    const char *wrong;
    attempt->status = head->status;
    attempt->keep_alive = head->keep_alive;
    attempt->names_fields = head->names_fields;
    attempt->upstream->login |= login_seen(head, LOGIN_WANTED);
    if (head_has(head, FIELD_KEEP_ALIVE)) {
        read_keep_alive(attempt, head);
    }
    attempt->framing = head->framing;
    attempt->content_length = head->content_length;
    h1_body_init(&attempt->body, head);
    buffered_free(exchange->worker, &attempt->buffer);
    wrong = collect(attempt, &at, end, &pieces);
    if (wrong != NULL) {
        refuse_answer(attempt, wrong);
        return false;
    }
    bool ended = attempt->body.ended;
    struct becalm_outcome outcome;
    struct offer offer = {.attempt = attempt, .head = head, .pieces = &pieces, .ended = ended};
    answer_classify(attempt, head, &outcome);
    bool good = outcome.kind == BECALM_OUTCOME_OK || outcome.kind == BECALM_OUTCOME_PERMANENT;
    if (!good && !(ended && pieces.bytes > KEEP_BYTES)) {
        attempt->state = ATTEMPT_HOLDING;
        attempt->held = outcome;
        if (!answer_fields(exchange->worker, head, &attempt->buffer)) {
            fail(attempt, BECALM_HTTP_CUT);
            return false;
        }
        attempt->fields_length = bytes_left(&attempt->buffer);
        if (!ended) {
            tell(attempt, BECALM_EVENT_HELD, NULL, &outcome); /* which ends nothing */
            begin_answer(attempt);
        }
        return hold(attempt, &pieces, ended, at == end) &&
               (at == end || take_body(attempt, at, (size_t)(end - at))); /* more pieces than one list holds */
    }
    if (ended) {
        release(attempt, at == end);
        if (!good) {
            answer_keep(exchange, &offer);
        }
        tell(attempt, BECALM_EVENT_DONE, &offer, &outcome);
        return false;
    }
    if (!tell_head(attempt, &offer, &outcome)) {
        return false;
    }
    while (at < end) { /* more pieces than one list holds */
        wrong = collect(attempt, &at, end, &pieces);
        if (wrong != NULL) {
            refuse_answer(attempt, wrong);
            return false;
        }
        if (!pass(attempt, &pieces)) {
            return false;
        }
        if (attempt->body.ended) {
            struct becalm_outcome done = outcome;
            release(attempt, at == end);
            tell(attempt, BECALM_EVENT_DONE, NULL, &done);
            return false;
        }
    }
    return true;
}

/* Some hosts send an empty line before their status line. One is left out; it can't be anything else. */
static const char *skip_blank(struct attempt *attempt, const char *bytes, const char *end)
{
    if (attempt->blank || end - bytes < 2 || bytes[0] != '\r' || bytes[1] != '\n') {
        return bytes;
    }
    attempt->blank = true;
    attempt->scanned = 0;
    return bytes + 2;
}

/* Part of an answer, from its beginning. True: go on reading. */
static bool take_head(struct attempt *attempt, const char *bytes, size_t length)
{
    struct exchange *exchange = attempt->exchange;
    struct worker *worker = exchange->worker;
    struct h1_limits limits = {.head_bytes = GATEWAY_ANSWER_HEAD};
    const char *end = bytes + length;
    attempt->heard = true;
    for (;;) {
        bytes = skip_blank(attempt, bytes, end);
        size_t head_length = h1_head_end(bytes, (size_t)(end - bytes), attempt->scanned);
        if (head_length == 0) {
            if ((size_t)(end - bytes) > limits.head_bytes) {
                refuse_answer(attempt, "the answer's head is too large");
                return false;
            }
            attempt->scanned = (size_t)(end - bytes);
            buffered_free(worker, &attempt->buffer);
            if (!buffered_add(worker, &attempt->buffer, bytes, (size_t)(end - bytes))) {
                fail(attempt, BECALM_HTTP_RESET);
                return false;
            }
            return true;
        }
        attempt->scanned = 0;
        struct head *head = &worker->head;
        struct h1_verdict verdict = h1_parse_answer(bytes, head_length, &limits, exchange->is_head, false, head);
        if (verdict.kind != H1_OK) {
            refuse_answer(attempt, verdict.what);
            return false;
        }
        if (head->status == 101) {
            const char *wrong = exchange_switch_wrong(exchange, head);
            if (wrong != NULL) {
                refuse_answer(attempt, wrong);
                return false;
            }
            attempt->status = 101;
            tunnel_open(exchange, attempt, head,
                        (struct becalm_text){bytes + head_length, (size_t)(end - bytes) - head_length});
            return false;
        }
        if (head->status >= 200) {
            return take_answer(attempt, bytes + head_length, end, head);
        }
        if (++attempt->interim > INTERIM_READ) {
            refuse_answer(attempt, "too many 1xx answers before the last one");
            return false;
        }
        if (!(head->status == 100 ? expect_met(exchange) : answer_interim(exchange, head))) {
            return false;
        }
        bytes += head_length;
        attempt->blank = false;
        buffered_free(exchange->worker, &attempt->buffer);
    }
}

/* More of the body of an answer whose head is through. True: go on reading. */
static bool take_body(struct attempt *attempt, const char *bytes, size_t length)
{
    const char *at = bytes;
    const char *end = bytes + length;
    UNFILLED struct pieces pieces;
    do {
        const char *wrong = collect(attempt, &at, end, &pieces);
        if (wrong != NULL) {
            refuse_answer(attempt, wrong);
            return false;
        }
        bool ended = attempt->body.ended;
        if (attempt->state == ATTEMPT_HOLDING) {
            if (!hold(attempt, &pieces, ended, at == end)) {
                return false;
            }
            continue;
        }
        if (!pass(attempt, &pieces)) {
            return false;
        }
        if (ended) {
            struct becalm_outcome done = {.status = attempt->status};
            release(attempt, at == end);
            tell(attempt, BECALM_EVENT_DONE, NULL, &done);
            return false;
        }
    } while (at < end);
    return true;
}

#define RESET_WAIT BECALM_S /* the longest way to a host and back */

/* The host has closed the connection at the very moment when a request that may not be repeated was on its way.
 * Finds out whether anybody can have read that, so that it is repeated after all. True: wait, that is not known yet. */
static __attribute__((noinline)) bool unread_wait(struct attempt *attempt)
{
    struct exchange *exchange = attempt->exchange;
    struct upstream *upstream = attempt->upstream;
    becalm_ns now = exchange->worker->loop.now;
    if (attempt->heard || !attempt->wrote || exchange->body_streams || exchange->upgrades ||
        exchange_may_repeat(exchange)) {
        return false;
    }
    attempt->fin_at = attempt->fin_at == 0 ? now : attempt->fin_at;
    switch (upstream_fate(upstream, attempt->written)) {
    case UPSTREAM_FATE_UNREAD:
        attempt->unread = true;
        return false;
    case UPSTREAM_FATE_UNKNOWN:
        return false;
    case UPSTREAM_FATE_OPEN:
        break;
    }
    if (becalm_ns_since(now, attempt->fin_at) >= RESET_WAIT) {
        return false;
    }
    wire_wait(&upstream->wire);
    upstream_look_again(upstream);
    return true;
}

/* The host has closed the connection. */
static void ended(struct attempt *attempt)
{
    bool answering = attempt->state == ATTEMPT_HOLDING || attempt->state == ATTEMPT_PASSING;
    if (attempt->state == ATTEMPT_SENT && unread_wait(attempt)) {
        return;
    }
    if (!answering || wire_cut(&attempt->upstream->wire) || !h1_body_closed(&attempt->body)) {
        broken(attempt);
        return;
    }
    struct pieces none = {.count = 0};
    if (attempt->state == ATTEMPT_HOLDING) {
        hold(attempt, &none, true, false);
        return;
    }
    struct becalm_outcome done = {.status = attempt->status};
    if (!pass(attempt, &none)) {
        return;
    }
    release(attempt, false);
    tell(attempt, BECALM_EVENT_DONE, NULL, &done);
}

/* Reads until there is no more, or the client does not take more. False: the attempt is over and gone. */
static bool attempt_read(struct attempt *attempt)
{
    struct exchange *exchange = attempt->exchange;
    struct worker *worker = exchange->worker;
    for (int turn = 0; attempt->upstream != NULL && wire_readable(&attempt->upstream->wire); turn++) {
        struct upstream *upstream = attempt->upstream;
        if (attempt->state == ATTEMPT_PASSING && exchange->stream->ops->blocked(exchange->stream)) {
            return true; /* attempt_resume() */
        }
        if (turn == WIRE_TURN) {
            loop_later(&worker->loop, &attempt->task);
            return true;
        }
        size_t had = attempt->state == ATTEMPT_SENT ? bytes_left(&attempt->buffer) : 0;
        if (had > 0) {
            memcpy(worker->in, bytes_at(&attempt->buffer), had);
        }
        size_t piece = buffered_piece(worker);
        size_t room = piece < WORKER_IN - had ? piece : WORKER_IN - had;
        ssize_t got = wire_read(&upstream->wire, worker->in + had, room);
        if (got == WIRE_LATER) {
            return true;
        }
        if (got == WIRE_BROKEN) {
            broken(attempt);
            return false;
        }
        if (got == WIRE_END) {
            ended(attempt);
            return false;
        }
        size_t length = had + (size_t)got;
        bool more = attempt->state == ATTEMPT_SENT ? take_head(attempt, worker->in, length)
                                                   : take_body(attempt, worker->in, length);
        if (!more) {
            return false;
        }
    }
    return true;
}
