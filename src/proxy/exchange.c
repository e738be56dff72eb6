/* SPDX-License-Identifier: MIT */
#include "exchange.h"

#include "buffered.h"
#include "gateway_shared.h"
#include "login.h"
#include "tunnel.h"

#include "container.h"
#include "message/own.h"
#include "message/phrase.h"
#include "meter/buffer.h"
#include "unfilled.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SPARE_MAX         256u
#define ORPHAN_STEP       (16u * 1024) /* of an answer for the store alone: as much must come in each idleTimeout */
#define NO_ANSWER         UINT64_MAX
#define STREAM_IDLE       (5 * 60 * BECALM_S) /* as Envoy's streams; servers send a comment every 15 s or so */
#define BODY_GRACE        (500 * BECALM_MS)   /* nothing is slow before */
#define BODY_STEP_LONGEST (60 * BECALM_S)     /* for what is slow, where bodyTimeout is longer or none */

/* Memory: exchanges are all of one size, and used again. */

static void timer_fires(struct timer *timer)
{
    struct exchange *exchange = CONTAINER_OF(timer, struct exchange, timer);
    exchange_event(exchange, BECALM_EVENT_TIMER, 0, NULL);
}

static struct exchange *exchange_make(struct worker *worker, struct client_stream *stream)
{
    struct exchange *exchange = worker->spare;
    if (exchange != NULL) {
        worker->spare = exchange->next;
        worker->spare_count--;
    } else {
        exchange = malloc(EXCHANGE_BYTES);
    }
    if (exchange == NULL) {
        return NULL;
    }
    memset(exchange, 0, offsetof(struct exchange, call));
    exchange->first.state = ATTEMPT_NONE;
    exchange->retry_after[0] = '\0';
    exchange->timer.fire = timer_fires;
    exchange->stream = stream;
    exchange->worker = worker;
    exchange->arrived_at = worker->loop.now;
    exchange->arrived_wall = worker->loop.wall;
    exchange->grpc_status = BECALM_GRPC_NONE;
    stream->exchange = exchange;
    atomic_fetch_add_explicit(&worker->exchange_count, 1, memory_order_relaxed);
    return exchange;
}

/* Calls that hold a key and have no client any more. With a client its timer ends an answer that has stopped; without
 * one the exchange does it. */

static void silence_arm(struct exchange *exchange)
{
    struct loop *loop = &exchange->worker->loop;
    becalm_ns most = exchange->view->snapshot->settings->idle_timeout;
    exchange->silence_bytes = exchange->answer == ANSWER_NONE ? NO_ANSWER : exchange->answer_bytes;
    wheel_arm(&loop->wheel, &exchange->silence, becalm_ns_after(loop->now, most));
}

static void silence_fires(struct timer *timer)
{
    struct exchange *exchange = CONTAINER_OF(timer, struct exchange, silence);
    if (exchange->passing != NULL) { /* else the engine times it */
        attempt_stalled(exchange->passing);
    }
}

static void orphan_begin(struct exchange *exchange)
{
    struct worker *worker = exchange->worker;
    exchange->silence = (struct timer){.fire = silence_fires};
    exchange->next = worker->orphans;
    exchange->orphan_link = &worker->orphans;
    if (exchange->next != NULL) {
        exchange->next->orphan_link = &exchange->next;
    }
    worker->orphans = exchange;
    silence_arm(exchange);
    if (exchange->passing != NULL) { /* it may have waited for the client to read */
        loop_later(&worker->loop, &exchange->passing->task);
    }
}

static void orphan_end(struct exchange *exchange)
{
    if (exchange->orphan_link != NULL) {
        timer_disarm(&exchange->silence);
        *exchange->orphan_link = exchange->next;
        if (exchange->next != NULL) {
            exchange->next->orphan_link = exchange->orphan_link;
        }
    }
}

bool exchange_orphan_moves(struct exchange *exchange)
{
    if (!exchange->storing && exchange->answer < ANSWER_ENDED) {
        return false;
    }
    if (exchange->silence_bytes == NO_ANSWER || exchange->answer_bytes - exchange->silence_bytes >= ORPHAN_STEP) {
        silence_arm(exchange);
    }
    return true;
}

static void exchange_free(struct exchange *exchange)
{
    struct worker *worker = exchange->worker;
    timer_disarm(&exchange->timer);
    orphan_end(exchange);
    for (uint32_t i = 0; i < BECALM_SLOTS; i++) {
        if (exchange->attempt[i] != NULL) {
            attempt_abandon(exchange->attempt[i]);
        }
    }
    key_end(exchange, false);
    if (exchange->expect != NULL) {
        expect_drop(exchange);
    }
    tunnel_place_give(exchange);
    exchange_release_body(exchange);
    buffered_free(worker, &exchange->kept.bytes);
    buffered_free(worker, &exchange->stored);
    if (exchange->large != NULL) {
        free(exchange->large);
    }
    if (exchange->view != NULL) {
        view_leave(worker, exchange->view);
    }
    atomic_fetch_sub_explicit(&worker->exchange_count, 1, memory_order_relaxed);
    if (worker->spare_count < SPARE_MAX) {
        exchange->next = worker->spare;
        worker->spare = exchange;
        worker->spare_count++;
    } else {
        free(exchange);
    }
}

/* What is told of a call when it is over. */

static struct becalm_text request_id(const struct exchange *exchange)
{
    return head_find(exchange->head, FIELD_REQUEST_ID);
}

static const char *endpoint_name(const struct exchange *exchange)
{
    return exchange->target->endpoint == NULL ? NULL : exchange->target->endpoint->name;
}

static void copy_text(char *to, size_t size, struct becalm_text from)
{
    size_t length = from.length < size - 1 ? from.length : size - 1;
    if (length > 0) {
        memcpy(to, from.at, length);
    }
    to[length] = '\0';
}

/* Tokens and names of people stand in queries: they are shown only where the policy says so. */
static struct becalm_text shown(const struct exchange *exchange, struct becalm_text target)
{
    const char *query = target.length == 0 || exchange->view->snapshot->settings->log_query
                            ? NULL
                            : memchr(target.at, '?', target.length);
    return query == NULL ? target : (struct becalm_text){target.at, (size_t)(query - target.at)};
}

static void keep_decision(struct exchange *exchange)
{
    struct decision decision = {
        .wall = exchange->arrived_wall,
        .snapshot = exchange->view->snapshot->number,
        .status = exchange->status,
        .record = exchange->call.record,
    };
    const struct snapshot_target *target = exchange->target;
    copy_text(decision.service, sizeof decision.service, text_of(target->service->name));
    copy_text(decision.endpoint, sizeof decision.endpoint, text_of(endpoint_name(exchange)));
    copy_text(decision.method, sizeof decision.method, exchange_method(exchange));
    copy_text(decision.path, sizeof decision.path, shown(exchange, exchange->path));
    copy_text(decision.request_id, sizeof decision.request_id, request_id(exchange));
    decisions_keep(&exchange->worker->decisions, &decision);
}

static __attribute__((noinline)) void write_access(const struct exchange *exchange, const char *reason)
{
    char peer[ADDRESS_TEXT_MAX];
    const struct snapshot_target *target = exchange->target;
    const struct head *head = exchange->head;
    struct log_access line = {
        .wall = exchange->arrived_wall,
        .method = exchange_method(exchange),
        .target = shown(exchange, head_target(head)),
        .host = exchange->host_name,
        .referer = shown(exchange, head_find(head, FIELD_REFERER)),
        .user_agent = head_find(head, FIELD_USER_AGENT),
        .request_id = request_id(exchange),
        .service = text_of(target == NULL ? NULL : target->service->name),
        .endpoint = text_of(target == NULL ? NULL : endpoint_name(exchange)),
        .version = head->version,
        .status = exchange->status,
        .body_bytes = exchange->answer_bytes,
        .took = becalm_ns_since(exchange->worker->loop.now, exchange->arrived_at),
        .attempts = exchange->phase == EXCHANGE_OPEN ? 0 : exchange->call.record.attempts,
        .reason = reason,
        .detail = exchange->rule,
    };
    line.peer = exchange->stream->ops->peer(exchange->stream, peer, sizeof peer);
    log_access_line(exchange->worker->log, &line);
}

/* Whoever put us in front of a slow service did not choose when we give up: says so, once. */
static void tell_default_timeout(const struct exchange *exchange)
{
    struct worker *worker = exchange->worker;
    const struct snapshot_target *target = exchange->target;
    const struct becalm_policy *policy = &target->state->policy;
    const char *endpoint = endpoint_name(exchange);
    char text[320]; /* two names of at most 128 */
    struct buffer key = {.at = text, .size = sizeof text};
    if (!log_wants(worker->log, BECALM_LOG_WARN) || !snapshot_tells_timeout(exchange->view->snapshot, target)) {
        return;
    }
    buffer_chars(&key, "services.");
    buffer_chars(&key, target->service->name);
    if (endpoint != NULL) {
        buffer_chars(&key, ".endpoints.");
        buffer_chars(&key, endpoint);
    }
    buffer_chars(&key, ".attemptTimeout");
    const struct log_pair pairs[] = {
        {"service", LOG_TEXT, text_of(target->service->name), 0},
        {"endpoint", LOG_TEXT, text_of(endpoint), 0},
        {"timeout_ms", LOG_MS, {0}, policy->attempt_timeout},
        {"set", LOG_TEXT, {key.at, key.length}, 0},
        {"deadline_ms", policy->deadline == BECALM_NEVER ? LOG_TEXT : LOG_MS, {0}, policy->deadline},
        {"request_id", LOG_TEXT, request_id(exchange), 0},
    };
    log_line(
        worker->log, BECALM_LOG_WARN, worker->loop.wall,
        "an attempt was given up after the default timeout: if such answers are slow but healthy, set a longer one",
        pairs, sizeof pairs / sizeof pairs[0]);
}

static __attribute__((noinline)) void look_at_timeouts(const struct exchange *exchange)
{
    const struct becalm_record *record = &exchange->call.record;
    uint32_t count = becalm_record_kept(record);
    if (exchange->failure == BECALM_HTTP_TIMEOUT) { /* an upload that stopped: that is idleTimeout's */
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!record->attempt[i].open && record->attempt[i].outcome == BECALM_OUTCOME_TIMED_OUT) {
            tell_default_timeout(exchange);
            return;
        }
    }
}

void exchange_log(const struct exchange *exchange, const char *reason)
{
    if (log_wants_access(exchange->worker->log)) {
        write_access(exchange, reason);
    }
}

/* The one writer. */
static void exchange_client_enter(struct exchange *exchange, enum client_phase phase)
{
    BECALM_ASSERT(phase > exchange->client);
    exchange->client = phase;
}

/* Takes the client's side and the exchange apart, and returns the side. */
static struct client_stream *exchange_part(struct exchange *exchange)
{
    struct client_stream *stream = exchange->stream;
    if (stream != &stream_nobody) {
        stream->exchange = NULL;
        exchange->stream = &stream_nobody;
    }
    return stream;
}

/* The call and its answer are over: counts, tells, and lets the client go on. */
static void exchange_end(struct exchange *exchange)
{
    struct worker *worker = exchange->worker;
    const struct becalm_record *record = &exchange->call.record;
    meter_end(exchange->meter, &exchange->steps, record, exchange->status == 0 ? METER_CLIENT_LEFT : exchange->status);
    if (decisions_want(&worker->decisions, record)) {
        keep_decision(exchange);
    }
    if (record->reason != BECALM_WHY_OK || record->attempts > 1) {
        look_at_timeouts(exchange);
    }
    exchange_log(exchange, becalm_reason_word(record->reason));
    bool keep = !exchange->wants_close && exchange->request == REQUEST_WHOLE;
    enum answer_phase answer = exchange->answer;
    bool broken = exchange->client_broke;
    struct client_stream *stream = exchange_part(exchange);
    exchange_free(exchange);
    if (broken) {
        stream->ops->cut(stream);
        return;
    }
    switch (answer) {
    case ANSWER_BEGUN:
        stream->ops->cut(stream);
        break;
    case ANSWER_NONE:
    case ANSWER_ENDED:
        stream->ops->done(stream, keep);
        break;
    case ANSWER_TUNNEL: /* the client is the tunnel's now */
        break;
    }
}

/* Steps. */

static void exchange_enter(struct exchange *exchange, enum exchange_phase phase)
{
    BECALM_ASSERT(phase > exchange->phase);
    exchange->phase = phase;
}

static struct becalm_text host_name(const struct snapshot_service *service, uint32_t host)
{
    return text_of(host < service->host_count ? service->host[host].name : NULL);
}

static void log_retry_line(struct exchange *exchange, const struct becalm_action *action)
{
    struct worker *worker = exchange->worker;
    if (!log_wants(worker->log, BECALM_LOG_INFO)) {
        return;
    }
    const struct becalm_record *record = &exchange->call.record;
    const struct becalm_policy *policy = &exchange->target->state->policy;
    const struct becalm_record_attempt *attempt = &record->attempt[becalm_record_place(action->attempt - 1)];
    const struct snapshot_service *service = &exchange->view->snapshot->service[exchange->target->service_index];
    log_retry(worker->log, &(struct log_retry){
                               .wall = worker->loop.wall,
                               .method = exchange_method(exchange),
                               .service = text_of(exchange->target->service->name),
                               .endpoint = text_of(endpoint_name(exchange)),
                               .host = host_name(service, attempt->host),
                               .to = host_name(service, action->host),
                               .retry = action->attempt,
                               .of = policy->max_retries,
                               .wait = exchange->steps.wait,
                               .slept = exchange->steps.waited,
                               .outcome = attempt->outcome,
                               .status = attempt->status,
                               .grpc_status = exchange->grpc_status,
                               .retry_after = text_of(exchange->retry_after[0] == '\0' ? NULL : exchange->retry_after),
                               .request_id = request_id(exchange),
                               .reason = exchange->steps.why,
                           });
}

void exchange_log_broken(const struct exchange *exchange, struct upstream_host *host, const char *rule)
{
    struct worker *worker = exchange->worker;
    char address[ADDRESS_TEXT_MAX];
    bool again = host->rule == rule && becalm_ns_since(worker->loop.now, host->rule_at) < BECALM_S;
    if (again || !log_wants(worker->log, BECALM_LOG_WARN)) {
        return; /* a host that breaks it in every answer does not fill the log */
    }
    host->rule = rule;
    host->rule_at = worker->loop.now;
    const struct log_pair pairs[] = {
        {"service", LOG_TEXT, text_of(exchange->target->service->name), 0},
        {"endpoint", LOG_TEXT, text_of(endpoint_name(exchange)), 0},
        {"host", LOG_TEXT, {address, address_write(&host->address, address, sizeof address)}, 0},
        {"rule", LOG_TEXT, text_of(rule), 0},
        {"request_id", LOG_TEXT, request_id(exchange), 0},
    };
    log_line(worker->log, BECALM_LOG_WARN, worker->loop.wall, "a host's answer breaks HTTP/1", pairs,
             sizeof pairs / sizeof pairs[0]);
}

/* Counts what the step has decided, and logs it. */
static void note_action(struct exchange *exchange, const struct becalm_action *action)
{
    unsigned means = meter_step_means(&exchange->steps, action);
    if (means == 0) {
        return;
    }
    meter_step(exchange->meter, &exchange->steps, means, action, exchange->worker->loop.now);
    if ((means & METER_STEP_BREAKER) != 0) {
        gateway_breaker_moved(exchange->worker, exchange->target, action->breaker_from, action->breaker_to);
    }
    if ((means & METER_STEP_SENDS) != 0) {
        if (exchange->steps.why != BECALM_WHY_HEDGE) {
            log_retry_line(exchange, action);
        }
        exchange->retry_after[0] = '\0';
        exchange->grpc_status = BECALM_GRPC_NONE;
    }
}

static void act(struct exchange *exchange, const struct becalm_action *action)
{
    for (uint32_t slot = 0; action->cancel >> slot != 0; slot++) {
        if ((action->cancel >> slot & 1) != 0 && exchange->attempt[slot] != NULL) {
            attempt_abandon(exchange->attempt[slot]);
            exchange->pending &= ~(1u << slot);
        }
    }
    if ((action->flags & BECALM_DO_SEND) != 0) {
        attempt_start(exchange, action);
    }
    if ((action->flags & BECALM_DO_ANSWER) != 0 && exchange->offer != NULL) {
        exchange->passing = exchange->attempt[action->slot];
        answer_begin(exchange, exchange->offer, action);
    }
    if ((action->flags & BECALM_DO_FINISH) != 0) {
        if (exchange->answer == ANSWER_NONE && exchange->client != CLIENT_GONE) {
            answer_finish(exchange, action);
        }
        exchange_enter(exchange, EXCHANGE_OVER);
    }
}

static void step(struct exchange *exchange, struct becalm_event *event, bool *serve)
{
    UNFILLED struct becalm_action action;
    bool done = event->kind == BECALM_EVENT_DONE;
    struct attempt *attempt = done ? exchange->attempt[event->slot] : NULL;
    event->at = worker_moment(exchange->worker);
    becalm_call_step(&exchange->call, event, &action);
    if (done) {
        meter_attempt_ended(exchange->meter, &action, event->outcome.status);
    }
    note_action(exchange, &action);
    if (attempt != NULL && (action.flags & BECALM_DO_ANSWER) == 0) {
        attempt_free(attempt); /* it is over, and its slot may be needed again */
        attempt = NULL;
    }
    act(exchange, &action);
    if (attempt != NULL) {
        exchange->passing = NULL;
        attempt_free(attempt);
    }
    if (exchange->phase != EXCHANGE_OVER && action.wake_at != exchange->timer_at) {
        exchange->timer_at = action.wake_at;
        wheel_arm(&exchange->worker->loop.wheel, &exchange->timer, action.wake_at);
    }
    *serve |= (action.flags & BECALM_DO_SERVE) != 0;
    if ((action.flags & BECALM_DO_PARK) != 0) {
        worker_serve_lines(exchange->worker);
    }
}

bool exchange_event(struct exchange *exchange, enum becalm_event_kind kind, uint32_t slot,
                    const struct becalm_outcome *outcome)
{
    struct worker *worker = exchange->worker;
    struct view *view = exchange->view;
    struct state *state = exchange->target->state;
    bool serve = false;
    struct becalm_event event = {.kind = kind, .slot = slot};
    if (outcome != NULL) {
        event.outcome = *outcome;
    }
    BECALM_ASSERT(exchange->phase == EXCHANGE_CALLING);
    if (kind == BECALM_EVENT_TIMER) {
        exchange->timer_at = BECALM_NEVER; /* it has fired */
    }
    exchange->in_step = true;
    step(exchange, &event, &serve);
    exchange->offer = NULL;
    while (exchange->pending != 0 && exchange->phase != EXCHANGE_OVER) {
        uint32_t failed = (uint32_t)__builtin_ctz(exchange->pending);
        exchange->pending &= exchange->pending - 1;
        event = (struct becalm_event){.kind = BECALM_EVENT_DONE, .slot = failed, .outcome = exchange->end[failed]};
        step(exchange, &event, &serve);
    }
    if (exchange->client_broke && exchange->phase != EXCHANGE_OVER && !exchange_outlives(exchange)) {
        event = (struct becalm_event){.kind = BECALM_EVENT_CANCEL};
        step(exchange, &event, &serve);
    }
    exchange->in_step = false;
    bool over = exchange->phase == EXCHANGE_OVER;
    if (exchange->client_broke && !over) {
        exchange->client_broke = false;
        exchange->stream->ops->cut(exchange->stream); /* the call goes on without it */
    }
    if (serve) {
        view_enter(view); /* the end of this call must not take the view away */
    }
    if (over) {
        exchange_end(exchange);
    }
    if (serve) {
        worker_serve(worker, state);
        view_leave(worker, view);
    }
    return !over;
}

void exchange_discard(struct exchange *exchange, bool keep)
{
    bool broken = exchange->client_broke;
    struct client_stream *stream = exchange_part(exchange);
    exchange_free(exchange);
    if (broken) {
        stream->ops->cut(stream);
    } else {
        stream->ops->done(stream, keep);
    }
}

void exchange_attempt_ended(struct exchange *exchange, uint32_t slot, const struct becalm_outcome *outcome)
{
    if (exchange->in_step) {
        exchange->end[slot] = *outcome;
        exchange->pending |= 1u << slot;
    } else {
        exchange_event(exchange, BECALM_EVENT_DONE, slot, outcome);
    }
}

void exchange_serve(struct exchange *exchange)
{
    exchange_event(exchange, BECALM_EVENT_SERVE, 0, NULL);
}

/* With a key, as long as there will be something to store: what was asked for must not be done twice. */
bool exchange_outlives(const struct exchange *exchange)
{
    return exchange->holds_key && exchange->request == REQUEST_WHOLE &&
           (exchange->answer == ANSWER_NONE || exchange->storing);
}

void exchange_cancel(struct exchange *exchange)
{
    if (exchange->client != CLIENT_GONE) {
        exchange_part(exchange);
        exchange_client_enter(exchange, CLIENT_GONE);
    }
    BECALM_ASSERT(!exchange->in_step && exchange->orphan_link == NULL);
    if (exchange_outlives(exchange)) {
        orphan_begin(exchange);
    } else if (exchange->phase == EXCHANGE_CALLING) {
        exchange_event(exchange, BECALM_EVENT_CANCEL, 0, NULL);
    } else {
        exchange_free(exchange);
    }
}

void exchange_left(struct exchange *exchange)
{
    if (exchange->client == CLIENT_THERE) {
        exchange_client_enter(exchange, CLIENT_LEFT);
    }
    if (exchange->phase == EXCHANGE_CALLING &&
        !exchange->holds_key) { /* with a key it goes on, also when its client is gone for certain */
        exchange_event(exchange, BECALM_EVENT_LEFT, 0, NULL);
    }
}

void exchange_feed(struct exchange *exchange)
{
    if (exchange->body_streams && exchange_wants_body(exchange)) {
        exchange->stream->ops->took(exchange->stream);
    }
}

void exchange_unblocked(struct exchange *exchange)
{
    if (exchange->passing != NULL) {
        attempt_resume(exchange->passing);
    }
}

/* Beginning. */

static struct becalm_queue *queue_of(struct exchange *exchange)
{
    return &exchange->target->state->waiting[exchange->worker->number].queue;
}

static struct becalm_parking *parking_of(struct exchange *exchange)
{
    return &exchange->view->parking[exchange->target - exchange->view->snapshot->target];
}

/* Whose call it is by the field that `clientKey` names, if its peer may say so and does. What a proxy has added comes
 * behind what its own client wrote, so the last line counts. */
static __attribute__((noinline)) uint64_t client_named(struct exchange *exchange)
{
    struct client_stream *stream = exchange->stream;
    struct becalm_text name = head_find_last(exchange->head, exchange->view->snapshot->client_field);
    return name.length == 0 || !stream->ops->trusted(stream) ? stream->ops->identity(stream)
                                                             : peer_of_name(&exchange->worker->gateway->peer_key, name);
}

/* What a caller further up says about this call, if it may. */
static void read_deadline(struct exchange *exchange, struct becalm_request *request)
{
    const struct head *head = exchange->head;
    const uint64_t said = FIELD_BIT(FIELD_GRPC_TIMEOUT) | FIELD_BIT(FIELD_DEADLINE_MS) |
                          FIELD_BIT(FIELD_ENVOY_EXPECTED_MS) | FIELD_BIT(FIELD_BAGGAGE) |
                          FIELD_BIT(FIELD_ENVOY_ATTEMPT_COUNT);
    if ((head->seen & said) == 0 || !exchange->stream->ops->trusted(exchange->stream)) {
        return;
    }
    struct becalm_deadline_headers headers = {
        .grpc_timeout = head_find(head, FIELD_GRPC_TIMEOUT),
        .request_deadline_ms = head_find(head, FIELD_DEADLINE_MS),
        .envoy_expected_ms = head_find(head, FIELD_ENVOY_EXPECTED_MS),
        .baggage = head_find(head, FIELD_BAGGAGE),
    };
    becalm_ns left = becalm_deadline_read(&headers, &exchange->dialects);
    if (left != BECALM_NEVER) {
        request->deadline_at = becalm_ns_max(1, becalm_ns_after(exchange->arrived_at, left));
    }
    request->retry_from_above = exchange_attempt_from_above(exchange) > 1;
}

/* The request is here, or as much of it as is needed: the call begins. */
static void exchange_begin(struct exchange *exchange)
{
    const struct snapshot_target *target = exchange->target;
    struct client_stream *stream = exchange->stream;
    struct client *connection = stream->ops->connection(stream);
    exchange->login = (connection != NULL && connection->login != NULL) || login_seen(exchange->head, LOGIN_ASKED);
    struct becalm_request request = {
        .deadline_at = BECALM_NEVER,
        .idempotent = becalm_http_idempotent(exchange_method(exchange)),
        .keyed = exchange->keyed,
        .not_replayable = exchange->body_streams || exchange->upgrades || exchange->login,
        .streams = exchange->body_streams && exchange->request != REQUEST_WHOLE,
        .queue = queue_of(exchange),
        .parking = parking_of(exchange),
        .flow =
            exchange->view->snapshot->client_field.length == 0 ? stream->ops->identity(stream) : client_named(exchange),
        .owner = exchange,
    };
    read_deadline(exchange, &request);
    exchange_enter(exchange, EXCHANGE_CALLING);
    stream->ops->began(stream);
    exchange->timer_at = BECALM_NEVER;
    becalm_call_init(&exchange->call, &target->state->policy, &target->state->target, &request);
    meter_begin(exchange->meter, &exchange->steps);
    exchange_event(exchange, BECALM_EVENT_BEGIN, 0, NULL);
    /* It may have been put in line, been served at once, and be over: the client knows. */
    if (stream->exchange == exchange && stream->ops->left(stream)) {
        exchange_left(exchange);
    }
}

/* An answer of our own, before there is a call. */
static void refuse(struct exchange *exchange, uint32_t status, const char *error, const char *reason,
                   const char *detail)
{
    struct worker *worker = exchange->worker;
    struct draft draft;
    char room[OWN_ROOM];
    bool keep = !exchange->wants_close && exchange->request == REQUEST_WHOLE;
    struct becalm_text body = own_draft(&draft,
                                        &(struct own){
                                            .status = status,
                                            .error = error,
                                            .reason = reason,
                                            .title = status_phrase(status),
                                            .detail = detail,
                                            .retry_after = BECALM_NEVER,
                                            .random = becalm_rand_next(&worker->loop.random),
                                            .grpc_status = BECALM_GRPC_NONE,
                                            .date = worker_date(worker),
                                        },
                                        room);
    draft.close = !keep;
    if (exchange->meter != NULL) {
        meter_code(exchange->meter, status);
    } else {
        gateway_count_refusal(worker->gateway, status);
    }
    exchange_answer(exchange, &draft, body);
    exchange->status = status;
    exchange->rule = detail;
    exchange_log(exchange, reason);
    exchange_discard(exchange, keep);
}

/* May the body be kept in full? Counts it towards the gateway's total. */
static bool reserve_body(struct exchange *exchange, size_t length)
{
    const struct becalm_settings *settings = exchange->view->snapshot->settings;
    struct gateway *gateway = exchange->worker->gateway;
    if (length > settings->replay_per_request) {
        return false;
    }
    if (length <= exchange->body_reserved) {
        return true;
    }
    uint64_t more = length - exchange->body_reserved;
    if (atomic_fetch_add_explicit(&gateway->replay_bytes, more, memory_order_relaxed) + more > settings->replay_total) {
        atomic_fetch_sub_explicit(&gateway->replay_bytes, more, memory_order_relaxed);
        return false;
    }
    exchange->body_reserved = length;
    return true;
}

void exchange_release_body(struct exchange *exchange)
{
    if (exchange->body_reserved > 0) {
        atomic_fetch_sub_explicit(&exchange->worker->gateway->replay_bytes, exchange->body_reserved,
                                  memory_order_relaxed);
        exchange->body_reserved = 0;
    }
    exchange_drop_body(exchange);
    bytes_free(&exchange->trailers);
}

void exchange_drop_body(struct exchange *exchange)
{
    buffered_changed(exchange->worker, exchange->body_buffered, 0);
    exchange->body_buffered = 0;
    bytes_free(&exchange->body);
}

uint64_t exchange_held(const struct exchange *exchange)
{
    uint64_t held = exchange->body_buffered + exchange->kept.bytes.size + exchange->stored.size;
    for (uint32_t i = 0; i < BECALM_SLOTS; i++) {
        const struct attempt *attempt = exchange->attempt[i];
        held += attempt == NULL ? 0 : attempt_held(attempt);
    }
    return held;
}

/* A body that streams waits for its turn. False: there is no memory for that, and the request is refused. */
static bool buffer_body(struct exchange *exchange)
{
    if (buffered_over(exchange->worker)) {
        gateway_count_bound(exchange->worker->gateway, METRICS_BUFFERED_REFUSED);
        exchange->wants_close = true;
        refuse(exchange, 503, "proxy_internal_response", "buffered",
               "more is waiting in this gateway than maxBuffered allows");
        return false;
    }
    exchange->body_buffered = exchange->body.size;
    buffered_changed(exchange->worker, 0, exchange->body_buffered);
    return true;
}

static void refuse_body(struct exchange *exchange)
{
    refuse(exchange, 413, "http_request_error", "body_too_large", "the request's body is larger than maxBody allows");
}

/* What may become a tunnel ends with its client's connection, and there is no answer of it to be stored. */
static bool wants_tunnel(const struct exchange *exchange)
{
    return exchange->is_connect || exchange->upgrades;
}

/* The body is here in full: then a key can be looked up, too. */
static void body_ended(struct exchange *exchange)
{
    if (exchange->target->rules->key == BECALM_KEY_REQUIRED && !wants_tunnel(exchange)) {
        switch (key_begin(exchange)) {
        case KEY_GO:
            break;
        case KEY_ANSWERED:
            return;
        case KEY_IN_FLIGHT:
            refuse(exchange, 409, "http_request_denied", "key_in_flight",
                   "a request with this idempotency key is being answered");
            return;
        case KEY_MISMATCH:
            refuse(exchange, 422, "http_request_denied", "key_mismatch",
                   "this idempotency key belongs to another request");
            return;
        case KEY_FULL:
            refuse(exchange, 503, "proxy_internal_response", "key_store_full",
                   "no room to remember this idempotency key");
            return;
        }
    }
    exchange_begin(exchange);
}

bool exchange_wants_body(const struct exchange *exchange)
{
    if (exchange->request == REQUEST_WHOLE || exchange->phase == EXCHANGE_OVER) {
        return false;
    }
    if (exchange->phase == EXCHANGE_OPEN) {
        return true;
    }
    const struct attempt *attempt = exchange->attempt[0];
    return exchange->body_streams && exchange->expect == NULL && attempt != NULL && attempt->state >= ATTEMPT_SENT &&
           !attempt_blocked(attempt) && bytes_left(&exchange->body) == 0;
}

enum upload exchange_upload(const struct exchange *exchange)
{
    const struct attempt *attempt = exchange->attempt[0];
    if (exchange->phase == EXCHANGE_OPEN || !exchange->body_streams || attempt == NULL || attempt->through ||
        attempt->state < ATTEMPT_SENT) {
        return UPLOAD_NONE;
    }
    return exchange_wants_body(exchange) ? UPLOAD_CLIENT : UPLOAD_HOST;
}

/* Awaited from the client: not held up by the host, nor answered before it was read. */
static bool body_awaited(const struct exchange *exchange)
{
    return exchange->request != REQUEST_WHOLE && exchange->answer == ANSWER_NONE &&
           (exchange->phase == EXCHANGE_OPEN || exchange_upload(exchange) == UPLOAD_CLIENT);
}

becalm_ns exchange_silence_or(becalm_ns written, becalm_ns usual, const struct becalm_settings *settings)
{
    return written > 0 ? written : becalm_ns_max(usual, settings->idle_timeout);
}

becalm_ns exchange_stream_idle(const struct becalm_settings *settings)
{
    return exchange_silence_or(settings->stream_idle_timeout, STREAM_IDLE, settings);
}

/* Until the answer's head the engine times the call; after it silence counts, on either side. */
becalm_ns exchange_patience(const struct exchange *exchange)
{
    const struct becalm_settings *settings = exchange->worker->view->snapshot->settings;
    if (exchange->passing != NULL && exchange->event_stream) {
        return exchange_stream_idle(settings);
    }
    return exchange->passing != NULL || exchange_upload(exchange) != UPLOAD_NONE ? settings->idle_timeout
                                                                                 : BECALM_NEVER;
}

bool exchange_stalled(struct exchange *exchange)
{
    if (exchange->passing != NULL) {
        attempt_stalled(exchange->passing);
        return true;
    }
    if (exchange_upload(exchange) == UPLOAD_HOST) {
        attempt_stalled(exchange->attempt[0]);
        return true;
    }
    return false;
}

becalm_ns exchange_body_due(const struct exchange *exchange)
{
    return body_awaited(exchange) ? becalm_ns_after(exchange->body_at, exchange->view->snapshot->settings->body_timeout)
                                  : BECALM_NEVER;
}

bool exchange_body_slow(const struct exchange *exchange)
{
    becalm_ns step = becalm_ns_min(exchange->view->snapshot->settings->body_timeout, BODY_STEP_LONGEST);
    becalm_ns age = becalm_ns_min(becalm_ns_since(exchange->worker->loop.now, exchange->body_at), step);
    return body_awaited(exchange) && age >= BODY_GRACE && exchange->body_step * step < EXCHANGE_BODY_STEP * age;
}

void exchange_body_resumes(struct exchange *exchange)
{
    exchange->body_at = exchange->worker->loop.now;
    exchange->body_step = 0;
}

static void body_came(struct exchange *exchange, uint64_t bytes)
{
    exchange->body_bytes += bytes;
    uint64_t step = exchange->body_step + bytes;
    if (step < EXCHANGE_BODY_STEP) {
        exchange->body_step = (uint32_t)step;
    } else {
        exchange_body_resumes(exchange);
    }
}

/* The client's body is malformed: nothing behind it can be told from it. */
static void refuse_malformed(struct exchange *exchange, const char *what)
{
    exchange->wants_close = true;
    if (exchange->phase != EXCHANGE_OPEN) {
        exchange->stream->ops->cut(exchange->stream);
    } else {
        refuse(exchange, 400, "http_request_error", "bad_request", what);
    }
}

/* NULL, or what is wrong: bad trailers say that the request was not meant as it was read. */
static const char *trailers_wrong(const struct exchange *exchange)
{
    return bytes_left(&exchange->trailers) == 0 ? NULL : exchange_trailers_wrong(&exchange->trailers);
}

void exchange_body_wrong(struct exchange *exchange, const char *what)
{
    refuse_malformed(exchange, what);
}

bool exchange_trailers(struct exchange *exchange, struct becalm_text piece)
{
    if (bytes_add(&exchange->trailers, piece.at, piece.length)) {
        return true;
    }
    exchange->stream->ops->cut(exchange->stream);
    return false;
}

bool exchange_body(struct exchange *exchange, struct becalm_text piece)
{
    body_came(exchange, piece.length);
    if (exchange->body_bytes > exchange->view->snapshot->settings->max_body) {
        exchange->wants_close = true;
        if (exchange->phase != EXCHANGE_OPEN) {
            exchange->stream->ops->cut(exchange->stream);
        } else {
            refuse_body(exchange);
        }
        return false;
    }
    if (bytes_add(&exchange->body, piece.at, piece.length)) {
        return true;
    }
    exchange->stream->ops->cut(exchange->stream);
    return false;
}

/* Before the call: is the body collected, does it stream, or is it too large for its key? */
static bool collect_body(struct exchange *exchange)
{
    exchange->body_streams = !reserve_body(exchange, bytes_left(&exchange->body));
    if (exchange->body_streams && exchange->target->rules->key == BECALM_KEY_REQUIRED) {
        exchange->wants_close = true;
        refuse(exchange, 413, "http_request_error", "body_too_large",
               "the body is too large to be remembered with its idempotency key");
        return false;
    }
    if (exchange->body_streams && !buffer_body(exchange)) {
        return false;
    }
    if (exchange->request == REQUEST_WHOLE) {
        body_ended(exchange);
    } else if (exchange->body_streams) {
        exchange_begin(exchange);
    }
    return true;
}

bool exchange_body_came(struct exchange *exchange, bool ended)
{
    const char *wrong = ended ? trailers_wrong(exchange) : NULL;
    if (wrong != NULL) {
        refuse_malformed(exchange, wrong);
        return false;
    }
    if (ended) {
        exchange->request = REQUEST_WHOLE;
    }
    if (exchange->phase == EXCHANGE_OPEN) {
        return collect_body(exchange);
    }
    if (exchange->attempt[0] != NULL) {
        attempt_body(exchange->attempt[0]); /* may end the exchange */
    }
    return true;
}

/* What can be said of a request by its head alone. True: go on. */
static bool check_request(struct exchange *exchange)
{
    const struct becalm_settings *settings = exchange->view->snapshot->settings;
    const struct head *head = exchange->head;
    bool alone = exchange->stream->ops->connection(exchange->stream) != NULL; /* else nothing could be tunnelled */
    if (exchange->is_connect && (!settings->connect || !alone)) {
        refuse(exchange, 405, "http_request_denied", "connect_off", "CONNECT is not allowed here");
        return false;
    }
    if (wants_tunnel(exchange) && !tunnel_place_take(exchange)) {
        refuse(exchange, 503, "connection_limit_reached", "tunnels", "too many tunnels are open (maxTunnels)");
        return false;
    }
    if (exchange_loops(exchange)) {
        refuse(exchange, 508, "proxy_loop_detected", "loop", "this request has passed here before");
        return false;
    }
    if (head_has(head, FIELD_EXPECT) && !head->expects_continue &&
        head->version > HTTP_1_0) { /* HTTP/1.0 does not know it */
        exchange->wants_close = true;
        refuse(exchange, 417, "http_request_denied", "expectation", "only Expect: 100-continue is understood");
        return false;
    }
    if (head->framing == BODY_LENGTH && head->content_length > settings->max_body) {
        exchange->wants_close = true;
        refuse_body(exchange);
        return false;
    }
    if (exchange->target->rules->key != BECALM_KEY_OFF && head_has(head, FIELD_IDEMPOTENCY_KEY)) {
        struct becalm_text key;
        exchange->keyed = becalm_key_parse(head_find(head, FIELD_IDEMPOTENCY_KEY), &key);
    }
    if (exchange->target->rules->key == BECALM_KEY_REQUIRED && !exchange->keyed &&
        !becalm_http_idempotent(exchange_method(exchange))) {
        refuse(exchange, 400, "http_request_denied", "key_required", "this endpoint wants an Idempotency-Key");
        return false;
    }
    if (exchange->target->rules->key == BECALM_KEY_REQUIRED && exchange->upgrades &&
        !becalm_http_idempotent(exchange_method(exchange))) {
        refuse(exchange, 400, "http_request_denied", "key_on_upgrade",
               "an upgrade has no answer that could be stored with its Idempotency-Key");
        return false;
    }
    return true;
}

static bool allows_upgrade(const struct becalm_settings *settings, const struct head *head)
{
    struct becalm_text protocol = head_find(head, FIELD_UPGRADE);
    for (uint32_t i = 0; settings->upgrades[i] != NULL; i++) {
        if (strlen(settings->upgrades[i]) == protocol.length &&
            strncasecmp(settings->upgrades[i], protocol.at, protocol.length) == 0) {
            return true;
        }
    }
    return false;
}

/* Nothing of the body is collected before the call begins: the endpoint says so, or the client wants to hear from the
 * host before it sends what is too much to be kept, or may be. */
static bool streams_at_once(struct exchange *exchange)
{
    const struct becalm_rules *rules = exchange->target->rules;
    const struct head *head = exchange->head;
    uint64_t kept = rules->replay ? exchange->view->snapshot->settings->replay_per_request : 0;
    if (rules->key == BECALM_KEY_REQUIRED) {
        return false; /* its key is looked up by the body */
    }
    if (!head->expects_continue) {
        return !rules->replay;
    }
    return (head->framing == BODY_OPEN || head->content_length > kept) && expect_begin(exchange);
}

void exchange_open(struct worker *worker, struct client_stream *stream, const struct head *head)
{
    struct exchange *exchange = exchange_make(worker, stream);
    if (exchange == NULL || !exchange_copy_request(exchange, head)) {
        if (exchange != NULL) {
            exchange_free(exchange);
        }
        stream->exchange = NULL;
        stream->ops->cut(stream);
        return;
    }
    exchange->view = worker->view;
    view_enter(exchange->view);
    exchange->request = head->framing == BODY_NONE || (head->framing == BODY_LENGTH && head->content_length == 0)
                            ? REQUEST_WHOLE
                            : REQUEST_COMING;
    /* Behind a CONNECT comes what is meant for the tunnel, maybe before there is one; if it is refused, that is no
     * request. */
    exchange->wants_close = !head->keep_alive || worker->draining || exchange->is_connect;
    exchange->upgrades = head->one_protocol && stream->ops->connection(stream) != NULL &&
                         allows_upgrade(exchange->view->snapshot->settings, head);
    struct route route;
    if (!exchange_route(exchange, &route)) {
        refuse(exchange, 400, "http_request_error", "bad_path", "the request's target is not a proper path");
        return;
    }
    if (route.ambiguous) {
        refuse(exchange, 400, "http_request_denied", "ambiguous_path",
               "this path, and what a service may make of it, fall under different rules");
        return;
    }
    if (route.service == ROUTE_NONE) {
        atomic_fetch_add_explicit(&worker->gateway->unrouted, 1, memory_order_relaxed);
        refuse(exchange, 404, "destination_not_found", "no_route", "no service matches this request");
        return;
    }
    if (head_target(head).at[0] != '/' && !exchange_port_fits(exchange, &route)) {
        atomic_fetch_add_explicit(&worker->gateway->unrouted, 1, memory_order_relaxed);
        refuse(exchange, 404, "destination_not_found", "other_port", "the hosts of this service have another port");
        return;
    }
    exchange->target = &exchange->view->snapshot->target[snapshot_target_of(exchange->view->snapshot, &route)];
    exchange->meter = exchange->target->meters->meter[worker->number];
    meter_add(&exchange->meter->arrivals, 1);
    if (!check_request(exchange)) {
        return;
    }
    if (exchange->request == REQUEST_WHOLE) {
        body_ended(exchange);
    } else if (streams_at_once(exchange)) {
        exchange->body_streams = true;
        exchange_begin(exchange);
    } else {
        expect_answer(exchange);
        exchange_body_resumes(exchange);
    }
}
