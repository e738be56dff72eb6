/* SPDX-License-Identifier: MIT */
#include "exchange.h"

#include "container.h"
#include "proxy/buffered.h"
#include "proxy/gateway_shared.h"
#include "proxy/host/login.h"
#include "unfilled.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct host_stream_calls calls;

static struct attempt *attempt_of(const struct host_stream *stream)
{
    return CONTAINER_OF((struct host_stream *)(uintptr_t)stream, struct attempt, stream);
}

/* The head of a gRPC answer that waits for the next bytes. */
struct early {
    struct timer timer;
    struct attempt *attempt;
    struct head *head;
};

static struct early *early_take(struct attempt *attempt)
{
    struct early *early = attempt->early;
    attempt->early = NULL;
    if (early != NULL) {
        timer_disarm(&early->timer);
    }
    return early;
}

static void early_free(struct early *early)
{
    if (early != NULL) {
        free(early->head);
        free(early);
    }
}

void attempt_free(struct attempt *attempt)
{
    struct exchange *exchange = attempt->exchange;
    exchange->reached |= attempt->reached;
    attempt->stream.ops->drop(&attempt->stream);
    ask_drop(attempt);
    if (attempt->early != NULL) {
        early_free(early_take(attempt));
    }
    tunnel_host_give(attempt);
    if (attempt->borrowed || attempt->unnamed_link != NULL) {
        attempt_unplace(attempt);
    }
    loop_not_later(&exchange->worker->loop, &attempt->stream.task);
    buffered_free(exchange->worker, &attempt->buffer);
    bytes_give(&attempt->stream.trailers, &exchange->worker->loop.blocks);
    exchange->attempt[attempt->slot] = NULL;
    if (attempt->state != ATTEMPT_NONE) {
        meter_add(&exchange->meter->in_flight, UINT64_MAX);
        if (attempt->answers) {
            meter_add(&exchange->meter->answers, UINT64_MAX);
        }
        attempt_enter(attempt, ATTEMPT_NONE);
    }
    if (attempt != &exchange->first) {
        free(attempt);
    }
}

/* Timed out, or not wanted any more: the engine is not told of its end, but it was sent, and counts. */
void attempt_abandon(struct attempt *attempt)
{
    if (attempt->state >= ATTEMPT_SENT) {
        meter_attempt(attempt->exchange->meter, &(struct becalm_outcome){.status = attempt->status});
    }
    attempt_free(attempt);
}

/* How an attempt failed, beyond the outcome. */
struct why_failed {
    const char *rule; /* the rule of the protocol that the host's answer breaks; NULL: none */
    bool no_listener; /* no process listens on the host's port */
    bool reset;       /* the host has reset the stream of HTTP/2, with `code` */
    uint32_t code;
};

/* The attempt ends without an answer, or with an answer that was only partly passed on. */
static void fail_as(struct attempt *attempt, enum becalm_http_failure failure, struct why_failed why)
{
    struct exchange *exchange = attempt->exchange;
    struct becalm_outcome outcome;
    attempt->stream.ops->drop(&attempt->stream);
    exchange->failure = failure;
    exchange->rule = why.rule;
    if (why.reset && exchange->grpc) {
        grpc_classify_reset(exchange, why.code, &outcome);
    } else {
        becalm_http_fail(&exchange->target->rules->retry_on, failure, &outcome);
    }
    outcome.delivered = attempt->state == ATTEMPT_PASSING;
    outcome.no_listener = why.no_listener;
    exchange_attempt_ended(exchange, attempt->slot, &outcome);
}

static void fail(struct attempt *attempt, enum becalm_http_failure failure)
{
    fail_as(attempt, failure, (struct why_failed){0});
}

/* The attempt ends because the gateway has no memory or descriptor left: that is not the host's fault. */
static void give_up(struct attempt *attempt)
{
    struct becalm_outcome ours = {.kind = BECALM_OUTCOME_CANCELLED};
    exchange_attempt_ended(attempt->exchange, attempt->slot, &ours);
}

void attempt_stalled(struct attempt *attempt)
{
    fail(attempt, attempt->state == ATTEMPT_PASSING ? BECALM_HTTP_CUT : BECALM_HTTP_TIMEOUT);
}

/* Beginning. */

static struct host_owner owner_of(struct host_stream *stream)
{
    struct client_stream *asker = attempt_of(stream)->exchange->stream;
    return asker->ops->owner(asker);
}

/* A client that has gone is known by its address alone. */
static size_t introduces(const struct host_stream *stream, uint32_t version, char header[PROXY_HEADER_WRITTEN])
{
    const struct exchange *exchange = attempt_of(stream)->exchange;
    union address_socket from;
    union address_socket to = {.any.sa_family = AF_UNIX};
    if (!exchange->stream->ops->ends(exchange->stream, &from, &to)) {
        origin_ip_socket(&exchange->origin.ip, &from);
    }
    return proxy_header_write(version, &from, &to, header);
}

/* Takes the connection on which the client has logged in or is about to, if it leads to a host of this service. False:
 * there is none. This connection overrides the engine's choice of a host, so the engine is told the host that is used
 * instead. */
static bool get_own(struct attempt *attempt)
{
    struct exchange *exchange = attempt->exchange;
    const struct view *view = exchange->view;
    uint32_t service = exchange->target->service_index;
    struct upstream *login = exchange_login(exchange);
    if (login == NULL || exchange->is_connect || attempt->probe) {
        return false;
    }
    for (uint32_t i = 0; i < view->snapshot->service[service].host_count; i++) {
        if (view->host[view->first_host[service] + i] == login->host) {
            bool got = upstream_get_own(login, &attempt->stream);
            if (got) {
                attempt->host = attempt->stream.host;
                becalm_call_sent_to(&exchange->call, attempt->slot, i, exchange->worker->loop.now);
            }
            return got;
        }
    }
    return false;
}

/* Asks for a connection. */
static void get(struct attempt *attempt)
{
    struct host_stream *stream = &attempt->stream;
    switch (attempt->host->get(attempt->host, stream)) {
    case UPSTREAM_READY:
        calls.connected(stream);
        break;
    case UPSTREAM_LATER:
        break;
    case UPSTREAM_REFUSED:
        calls.failed(stream, &(struct host_failure){.failure = BECALM_HTTP_CONNECT, .error = errno, .untried = true});
        break;
    }
}

static void go_on(struct task *task)
{
    struct host_stream *stream = CONTAINER_OF(task, struct host_stream, task);
    stream->ops->resume(stream);
}

/* Sets its requirements for the connection. */
static void stream_init(struct attempt *attempt)
{
    struct exchange *exchange = attempt->exchange;
    struct host_stream *stream = &attempt->stream;
    bool again = exchange_may_repeat(exchange);
    memset(stream, 0, offsetof(struct host_stream, h1));
    stream->ops = &host_stream_none;
    stream->calls = &calls;
    stream->task.run = go_on;
    stream->connect_timeout = exchange->target->rules->connect_timeout;
    stream->fresh =
        exchange->is_connect || attempt->probe; /* a tunnel has a connection of its own, a probe makes one */
    stream->careful = !again;
    stream->watch = !again && !exchange->body_streams && !exchange->upgrades;
    stream->login = exchange->login && login_seen(exchange->head, LOGIN_ASKED);
    stream->to_head = exchange->is_head;
}

/* A name that was not resolved, or a host that no service names. False: the attempt has ended, or goes on later. */
static __attribute__((noinline)) bool find_host(struct attempt *attempt)
{
    const char *rule = NULL;
    enum attempt_place place = ATTEMPT_NOWHERE;
    if (attempt->exchange->target->service->unlisted) {
        place = attempt_place(attempt, &rule);
    }
    if (place == ATTEMPT_NOWHERE) {
        fail_as(attempt, BECALM_HTTP_DNS, (struct why_failed){.rule = rule});
    }
    return place == ATTEMPT_PLACED;
}

/* A fault on order may have delayed it until now, or the name of its host. */
void attempt_go(struct attempt *attempt)
{
    struct exchange *exchange = attempt->exchange;
    bool own = exchange->login && get_own(attempt);
    if (attempt->host == NULL && !find_host(attempt)) {
        return;
    }
    if (exchange->tunnel_place && !tunnel_host_take(attempt)) {
        if (own) { /* nothing was sent on it: it stays logged in */
            upstream_own(attempt->stream.upstream, owner_of(&attempt->stream));
            host_stream_over(&attempt->stream);
        }
        exchange->host_full = true;
        give_up(attempt);
        return;
    }
    if (own) {
        calls.connected(&attempt->stream);
    } else {
        get(attempt);
    }
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
    memset(attempt, 0, offsetof(struct attempt, tunnel_key));
    attempt->exchange = exchange;
    attempt->slot = action->slot;
    attempt->number = action->attempt;
    attempt->timeout_at = action->timeout_at;
    attempt_enter(attempt, ATTEMPT_CONNECTING);
    attempt->probe = action->why == BECALM_WHY_NO_HOST;
    stream_init(attempt);
    exchange->attempt[action->slot] = attempt;
    meter_add(&exchange->meter->in_flight, 1);
    uint32_t host = action->host == BECALM_NO_HOST ? 0 : action->host;
    attempt->host = view->host[view->first_host[exchange->target->service_index] + host];
    if (!exchange_faults(exchange) || !attempt_fault(attempt, host)) {
        attempt_go(attempt);
    }
}

static bool has_no_host(const struct host_stream *stream)
{
    const struct attempt *attempt = attempt_of(stream);
    const struct state *state = attempt->exchange->target->state;
    return !attempt->probe && state->policy.restart.enabled &&
           becalm_restart_peek(state->target.restart, state->policy.attempt_timeout,
                               attempt->exchange->worker->loop.now) == BECALM_RESTART_DOWN;
}

static void waits(struct host_stream *stream)
{
    struct attempt *attempt = attempt_of(stream);
    struct exchange *exchange = attempt->exchange;
    const struct state *state = exchange->target->state;
    becalm_ns leave_at = attempt->timeout_at;
    if (exchange->body_streams) { /* its length is unknown, but it has not begun */
        becalm_ns longest = becalm_target_timeout(&state->target, &state->policy);
        leave_at = becalm_ns_min(leave_at, becalm_ns_after(exchange->worker->loop.now, longest));
        attempt->leave_at = leave_at;
    }
    becalm_call_unsent(&exchange->call, attempt->slot, leave_at);
}

static void goes(struct host_stream *stream)
{
    struct attempt *attempt = attempt_of(stream);
    struct exchange *exchange = attempt->exchange;
    attempt->timeout_at = becalm_call_goes(&exchange->call, attempt->slot, exchange->worker->loop.now);
}

/* The connection is a new one: its host is there, and calls that wait for the host may go. */
static void accepted(struct host_stream *stream)
{
    struct attempt *attempt = attempt_of(stream);
    struct exchange *exchange = attempt->exchange;
    struct worker *worker = exchange->worker;
    if (becalm_call_accepted(&exchange->call, attempt->slot, worker->loop.now)) {
        gateway_order_all(worker->gateway, WORKER_PARKED);
    }
}

/* The end without an answer. */

/* A pooled connection was found dead before the first byte of an answer. That does not count as a failure: the request
 * is sent again on a new connection, if it can't be executed twice by that. */
static bool redo(struct attempt *attempt, const struct host_failure *failure)
{
    struct exchange *exchange = attempt->exchange;
    bool unsent = failure->unsent && !attempt->body_gone;
    if (!failure->stale || attempt->redone || attempt->state != ATTEMPT_SENT ||
        (!unsent && !exchange_may_repeat(exchange))) {
        return false;
    }
    exchange->reached |= attempt->reached;
    attempt->redone = true;
    attempt->through = attempt->reached = false;
    attempt->body_given = 0;
    attempt_enter(attempt, ATTEMPT_CONNECTING);
    attempt->stream.fresh = true;
    attempt->stream.careful = false;
    meter_add(&exchange->meter->redone, 1);
    get(attempt);
    return true;
}

/* Does this error prove that no process listens at the address, so that the request was certainly not sent? ENOENT is
 * for Unix sockets. A connect without a reply (ETIMEDOUT), or a full backlog (EAGAIN), is no proof: the host may be
 * overloaded. */
static bool says_no_listener(int error)
{
    return error == ECONNREFUSED || error == ENOENT || error == EHOSTUNREACH || error == ENETUNREACH;
}

/* There is no connection. */
static void not_connected(struct attempt *attempt, const struct host_failure *failure)
{
    struct exchange *exchange = attempt->exchange;
    int error = failure->error;
    if (failure->untried && (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM ||
                             error == EADDRNOTAVAIL)) { /* for want of our own means: that is not the host's fault */
        exchange->no_means = true;
        give_up(attempt);
        return;
    }
    if (!failure->untried) {
        exchange->connect_late = error == ETIMEDOUT;
    }
    fail_as(attempt, BECALM_HTTP_CONNECT, (struct why_failed){.no_listener = says_no_listener(error)});
}

/* Adjusts the failure: part of an answer was passed on, or the body can't be sent again. */
static enum becalm_http_failure failure_of(const struct attempt *attempt, const struct host_failure *failure)
{
    if (failure->rule != NULL && attempt->state == ATTEMPT_PASSING) {
        return BECALM_HTTP_CUT;
    }
    return failure->unsent && attempt->body_gone ? BECALM_HTTP_RESET : failure->failure;
}

/* A host that was asked whether it wants the body, and closed the connection instead, has not acted on the request. */
static struct host_failure unasked(const struct host_failure *failure)
{
    struct host_failure known = *failure;
    if (failure->failure == BECALM_HTTP_RESET) {
        known.failure = BECALM_HTTP_RESET_BEFORE_REQUEST;
        known.unsent = true;
    }
    return known;
}

static void failed(struct host_stream *stream, const struct host_failure *failure)
{
    struct attempt *attempt = attempt_of(stream);
    struct exchange *exchange = attempt->exchange;
    struct host_failure known;
    if (attempt->ask != NULL) {
        known = unasked(failure);
        failure = &known;
        ask_drop(attempt);
    }
    attempt->reached &= !failure->unsent;
    if (redo(attempt, failure)) {
        return;
    }
    if (failure->failure == BECALM_HTTP_CONNECT) {
        not_connected(attempt, failure);
        return;
    }
    if (failure->rule != NULL) {
        exchange_log_broken(exchange, attempt->host, failure);
    }
    fail_as(attempt, failure_of(attempt, failure),
            (struct why_failed){.rule = failure->rule, .reset = failure->reset, .code = failure->code});
}

/* The request. */

bool attempt_blocked(const struct attempt *attempt)
{
    return attempt->stream.ops->blocked(&attempt->stream);
}

uint64_t attempt_held(const struct attempt *attempt)
{
    return attempt->stream.ops->held(&attempt->stream) + attempt->buffer.size;
}

/* Is the request through, now that more of it was given to the host's side? */
static void look_whether_through(struct attempt *attempt)
{
    attempt->through = attempt->exchange->request == REQUEST_WHOLE && attempt->ask == NULL && !attempt_blocked(attempt);
}

/* A request that streamed is through: the host's time begins. False: the exchange is over. */
static bool tell_through(struct attempt *attempt)
{
    struct exchange *exchange = attempt->exchange;
    return !attempt->through || !exchange->body_streams ||
           exchange_event(exchange, BECALM_EVENT_SENT, attempt->slot, NULL);
}

static bool put(struct attempt *attempt, const struct draft *draft, const struct stream_part *part)
{
    struct host_stream *stream = &attempt->stream;
    return draft == NULL ? stream->ops->more(stream, part) : stream->ops->send(stream, draft, part);
}

/* Most requests have no trailers: only those that do pay for a head on the stack. */
static __attribute__((noinline)) bool put_with_trailers(struct attempt *attempt, const struct draft *draft,
                                                        struct stream_part *part)
{
    UNFILLED struct head head;
    const struct bytes *trailers = &attempt->exchange->trailers;
    if (h1_parse_trailers(trailers->at, bytes_left(trailers), &head).kind == H1_OK) {
        part->trailers = &head;
    }
    return put(attempt, draft, part);
}

/* So much of a body that streams was given away. */
static __attribute__((noinline)) void gave(struct attempt *attempt, size_t bytes)
{
    if (attempt->exchange->body_recorded) {
        attempt->body_given += (uint32_t)bytes;
        return;
    }
    /* A streamed body is not kept. Even if the host took nothing of it, no other attempt can get it. */
    attempt->body_gone |= bytes > 0;
    exchange_drop_body(attempt->exchange);
}

/* Gives the part of the body that is here to the host's side, unless the host is first asked whether it wants it;
 * `draft` is NULL if the head was sent before. */
static bool put_body(struct attempt *attempt, const struct draft *draft)
{
    struct exchange *exchange = attempt->exchange;
    UNFILLED struct pieces pieces;
    bool asks = attempt->ask != NULL;
    struct stream_part part = {.pieces = &pieces, .ended = exchange->request == REQUEST_WHOLE && !asks};
    pieces.bytes = asks ? 0 : bytes_left(&exchange->body) - attempt->body_given;
    pieces.count = pieces.bytes > 0;
    pieces.piece[0] = (struct becalm_text){bytes_at(&exchange->body) + attempt->body_given, pieces.bytes};
    bool trailers = part.ended && bytes_left(&exchange->trailers) > 0 && !exchange->head->names_fields;
    bool fine = trailers ? put_with_trailers(attempt, draft, &part) : put(attempt, draft, &part);
    if (fine && exchange->body_streams) {
        gave(attempt, pieces.bytes);
    }
    return fine;
}

static void connected(struct host_stream *stream)
{
    struct attempt *attempt = attempt_of(stream);
    struct exchange *exchange = attempt->exchange;
    UNFILLED struct draft draft;
    attempt_enter(attempt, ATTEMPT_SENT);
    if (exchange->is_connect && stream->ops->take == NULL) {
        failed(stream, &(struct host_failure){.failure = BECALM_HTTP_BAD_ANSWER, .rule = "a tunnel needs HTTP/1"});
        return;
    }
    attempt->reached = true; /* unless its end says otherwise */
    meter_add(&exchange->meter->sent[exchange_protocol(exchange, stream->ops == &host_h2_ops)], 1);
    if (exchange->is_connect) {
        attempt->status = 200;
        exchange_tunnel(attempt, NULL, (struct becalm_text){0});
        return;
    }
    if (exchange->target->rules->expect_continue) {
        (void)ask_begin(attempt);
    }
    exchange_draft_request(exchange, attempt, &draft);
    if (!put_body(attempt, &draft)) {
        return;
    }
    look_whether_through(attempt);
    if (exchange->body_streams) {
        expect_sent(exchange);
        exchange_feed(exchange);
    }
}

void attempt_body(struct attempt *attempt)
{
    if (attempt->state < ATTEMPT_SENT || attempt->through || !put_body(attempt, NULL)) {
        return;
    }
    look_whether_through(attempt);
    tell_through(attempt);
}

static void moves(struct host_stream *stream)
{
    struct client_stream *asker = attempt_of(stream)->exchange->stream;
    asker->ops->moves(asker);
}

static void drained(struct host_stream *stream)
{
    struct attempt *attempt = attempt_of(stream);
    attempt->through = attempt->exchange->request == REQUEST_WHOLE && attempt->ask == NULL;
    exchange_feed(attempt->exchange);
    tell_through(attempt);
}

/* The answer. */

static bool full(const struct host_stream *stream)
{
    const struct attempt *attempt = attempt_of(stream);
    const struct client_stream *asker = attempt->exchange->stream;
    return attempt->state == ATTEMPT_PASSING && asker->ops->blocked(asker);
}

void attempt_resume(struct attempt *attempt)
{
    attempt->stream.ops->resume(&attempt->stream);
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

/* Passes more of the body on. False: it is no longer wanted, and the exchange is freed. */
static bool pass(struct attempt *attempt, const struct pieces *pieces, bool ended)
{
    struct exchange *exchange = attempt->exchange;
    if (answer_more(exchange, pieces, ended)) {
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
static bool hold(struct attempt *attempt, const struct pieces *pieces, bool ended)
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
        tell(attempt, BECALM_EVENT_DONE, &offer, &outcome);
        return false;
    }
    return tell_head(attempt, &offer, &outcome);
}

/* Begins to hold it back. True: go on reading. */
static bool hold_head(struct attempt *attempt, const struct offer *offer, const struct becalm_outcome *outcome)
{
    attempt_enter(attempt, ATTEMPT_HOLDING);
    attempt->held = *outcome;
    if (!answer_fields(attempt->exchange->worker, offer->head, &attempt->buffer)) {
        fail(attempt, BECALM_HTTP_CUT);
        return false;
    }
    attempt->fields_length = bytes_left(&attempt->buffer);
    if (!offer->ended) {
        tell(attempt, BECALM_EVENT_HELD, NULL, outcome); /* which ends nothing */
        begin_answer(attempt);
    }
    return hold(attempt, offer->pieces, offer->ended);
}

/* A host that can't meet Expect gets the request without it (RFC 9110, 15.5.18). False: that is no matter here. */
static bool refuses_expect(struct attempt *attempt, const struct head *head)
{
    bool asked = attempt->ask != NULL;
    ask_drop(attempt); /* an answer without the body: the body is not wanted */
    if (!asked || head->status != 417) {
        return false;
    }
    attempt->stream.ops->drop(&attempt->stream);
    attempt->asked_in_vain = true;
    attempt_enter(attempt, ATTEMPT_CONNECTING);
    get(attempt);
    return true;
}

/* The outcome of the answer is known, by its head or its end. */
static inline bool take_offer(struct attempt *attempt, const struct offer *offer, const struct becalm_outcome *outcome)
{
    bool good = outcome->kind == BECALM_OUTCOME_OK || outcome->kind == BECALM_OUTCOME_PERMANENT;
    if (!good && !(offer->ended && offer->pieces->bytes > KEEP_BYTES)) {
        return hold_head(attempt, offer, outcome);
    }
    if (!offer->ended) {
        return tell_head(attempt, offer, outcome);
    }
    if (!good) {
        answer_keep(attempt->exchange, offer);
    }
    tell(attempt, BECALM_EVENT_DONE, offer, outcome);
    return false;
}

/* gRPC. */

#define AWAIT (5 * BECALM_MS) /* a client may wait for the head before it says more, so it is not kept for longer */

/* More than a head has come, or the client may wait for the head: it is passed on, and its end will tell how it went.
 */
static bool tell_provisional(struct attempt *attempt, const struct offer *offer)
{
    return tell_head(attempt, offer, &(struct becalm_outcome){.status = attempt->status, .provisional = true});
}

static const struct pieces no_pieces;

static void awaited(struct timer *timer)
{
    struct attempt *attempt = CONTAINER_OF(timer, struct early, timer)->attempt;
    struct early *early = early_take(attempt);
    struct offer offer = {.attempt = attempt, .head = early->head, .pieces = &no_pieces};
    (void)tell_provisional(attempt, &offer);
    early_free(early);
}

/* Keeps a head back. False: no memory. */
static bool await(struct attempt *attempt, const struct head *head)
{
    struct loop *loop = &attempt->exchange->worker->loop;
    struct early *early = calloc(1, sizeof *early);
    void *copy = malloc(head_copy_size(head));
    if (early == NULL || copy == NULL) {
        free(early);
        free(copy);
        return false;
    }
    early->timer.fire = awaited;
    early->attempt = attempt;
    early->head = head_copy(copy, head);
    attempt->early = early;
    attempt_enter(attempt, ATTEMPT_AWAITING);
    wheel_arm(&loop->wheel, &early->timer, becalm_ns_after(loop->now, AWAIT));
    return true;
}

/* A head that is followed by more of the answer should carry no gRPC status. A failure there is believed. A success
 * there does not count: the trailers must say it. */
static bool says_failure(const struct head *head)
{
    uint32_t code = head_grpc_status(head);
    return code != BECALM_GRPC_NONE && code != BECALM_GRPC_OK;
}

/* The beginning of an answer to a call of gRPC, or all of it. */
static __attribute__((noinline)) bool take_grpc(struct attempt *attempt, const struct offer *offer)
{
    struct becalm_outcome outcome;
    attempt->grpc = attempt->status == 200 && grpc_is_call(offer->head);
    bool failed = attempt->grpc && says_failure(offer->head); /* also where trailers came that say otherwise */
    if (attempt->grpc && !offer->ended && !failed) {
        return (offer->pieces->bytes == 0 && await(attempt, offer->head)) || tell_provisional(attempt, offer);
    }
    bool alien = !attempt->grpc && attempt->status < 400; /* no answer of gRPC, and none of HTTP's failures */
    bool only = offer->pieces->bytes == 0;                /* where messages follow a head, trailers tell */
    if (alien || (attempt->grpc && !failed)) {
        grpc_classify(attempt, alien || only ? offer->head : NULL, &outcome);
    } else {
        answer_classify(attempt, offer->head, &outcome);
    }
    return take_offer(attempt, offer, &outcome);
}

/* The bytes after a head that was held back. */
static __attribute__((noinline)) bool take_awaited(struct attempt *attempt, const struct pieces *pieces, bool ended)
{
    struct early *early = early_take(attempt);
    struct offer offer = {.attempt = attempt, .head = early->head, .pieces = pieces, .ended = ended};
    attempt_enter(attempt, ATTEMPT_SENT);
    bool goes_on = take_grpc(attempt, &offer);
    early_free(early);
    return goes_on;
}

static bool take_head(struct host_stream *stream, const struct head *head, const struct pieces *pieces, bool ended)
{
    struct attempt *attempt = attempt_of(stream);
    if (attempt->ask != NULL && refuses_expect(attempt, head)) {
        return false;
    }
    struct becalm_outcome outcome;
    struct offer offer = {.attempt = attempt, .head = head, .pieces = pieces, .ended = ended};
    attempt->status = head->status;
    attempt->names_fields = head->names_fields;
    attempt->framing = head->framing;
    attempt->content_length = head->content_length;
    if (attempt->exchange->grpc) {
        return take_grpc(attempt, &offer);
    }
    answer_classify(attempt, head, &outcome);
    return take_offer(attempt, &offer, &outcome);
}

static bool take_body(struct host_stream *stream, const struct pieces *pieces, bool ended)
{
    struct attempt *attempt = attempt_of(stream);
    if (attempt->state == ATTEMPT_HOLDING) {
        return hold(attempt, pieces, ended);
    }
    if (attempt->state == ATTEMPT_AWAITING) {
        return take_awaited(attempt, pieces, ended);
    }
    if (!pass(attempt, pieces, ended)) {
        return false;
    }
    if (ended) {
        struct becalm_outcome done = {.status = attempt->status};
        if (attempt->grpc) {
            grpc_classify(attempt, NULL, &done);
            done.delivered = true;
        }
        tell(attempt, BECALM_EVENT_DONE, NULL, &done);
    }
    return !ended;
}

static bool interim(struct host_stream *stream, const struct head *head)
{
    struct attempt *attempt = attempt_of(stream);
    struct exchange *exchange = attempt->exchange;
    if (head->status == 100 && attempt->ask != NULL) {
        ask_drop(attempt);
        attempt_body(attempt);
        return true;
    }
    return head->status == 100 ? expect_met(exchange) : answer_interim(exchange, head);
}

static void switched(struct host_stream *stream, const struct head *head, struct becalm_text behind)
{
    struct attempt *attempt = attempt_of(stream);
    const char *wrong = exchange_switch_wrong(attempt->exchange, head);
    if (wrong != NULL) {
        failed(stream, &(struct host_failure){.failure = BECALM_HTTP_BAD_ANSWER, .rule = wrong});
        return;
    }
    attempt->status = 101;
    exchange_tunnel(attempt, head, behind);
}

static const struct host_stream_calls calls = {
    .waits = waits,
    .goes = goes,
    .has_no_host = has_no_host,
    .accepted = accepted,
    .connected = connected,
    .moves = moves,
    .drained = drained,
    .full = full,
    .interim = interim,
    .head = take_head,
    .body = take_body,
    .switched = switched,
    .failed = failed,
    .owner = owner_of,
    .introduces = introduces,
};
