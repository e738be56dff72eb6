/* SPDX-License-Identifier: MIT */
#include "exchange.h"

#include "meter/buffer.h"
#include "proxy/gateway_shared.h"
#include "proxy/host/upstream.h"

#include <string.h>

/* Logging and metrics of a finished call. */

struct becalm_text exchange_request_id(const struct exchange *exchange)
{
    if (exchange->phase < EXCHANGE_CALLING || head_has(exchange->head, FIELD_REQUEST_ID)) {
        return head_find(exchange->head, FIELD_REQUEST_ID);
    }
    return (struct becalm_text){exchange->request_id, sizeof exchange->request_id};
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

/* The fallback that answered: "answer", or the name of the service that was called; NULL: none. */
static const char *fallback_told(const struct exchange *exchange)
{
    switch (exchange->fallback) {
    case FALLBACK_NONE:
        return NULL;
    case FALLBACK_ANSWER:
        return "answer";
    case FALLBACK_SERVICE:
        return exchange->fell_from == NULL ? exchange->target->fallback->service->name
                                           : exchange->target->service->name;
    }
    BECALM_UNREACHABLE();
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
    copy_text(decision.request_id, sizeof decision.request_id, exchange_request_id(exchange));
    if (target->service->unlisted) {
        copy_text(decision.asked, sizeof decision.asked, exchange->host_name);
    }
    if (exchange->fallback != FALLBACK_NONE) {
        copy_text(decision.fallback, sizeof decision.fallback, text_of(fallback_told(exchange)));
    }
    if (exchange->faulted) {
        copy_text(decision.fault, sizeof decision.fault, text_of(exchange->fault));
    }
    decisions_keep(&exchange->worker->decisions, &decision);
}

static __attribute__((noinline)) void write_access(const struct exchange *exchange, const char *reason)
{
    char peer[ADDRESS_TEXT_MAX];
    char trace_id[TRACE_ID_LENGTH];
    const struct snapshot_target *target = exchange->target;
    const struct head *head = exchange->head;
    struct log_access line = {
        .wall = exchange->arrived_wall,
        .method = exchange_method(exchange),
        .target = shown(exchange, head_target(head)),
        .host = exchange->host_name,
        .referer = shown(exchange, head_find(head, FIELD_REFERER)),
        .user_agent = head_find(head, FIELD_USER_AGENT),
        .request_id = exchange_request_id(exchange),
        .trace_id = exchange_trace_id(exchange, trace_id),
        .service = text_of(target == NULL ? NULL : target->service->name),
        .endpoint = text_of(target == NULL ? NULL : endpoint_name(exchange)),
        .version = head->version,
        .status = exchange->status,
        .grpc_status = exchange->grpc && exchange->grpc_status != BECALM_GRPC_NONE
                           ? becalm_grpc_word(exchange->grpc_status)
                           : NULL,
        .body_bytes = exchange->answer_bytes,
        .took = becalm_ns_since(exchange->worker->loop.now, exchange->arrived_at),
        .attempts = exchange->phase < EXCHANGE_CALLING ? 0 : exchange->call.record.attempts,
        .reason = reason,
        .detail = exchange->rule,
        .fault = text_of(exchange->faulted ? exchange->fault : NULL),
        .fallback = text_of(fallback_told(exchange)),
    };
    line.peer = exchange->stream->ops->peer(exchange->stream, peer, sizeof peer);
    log_access_line(exchange->worker->log, &line);
}

/* The policy of a slow service may not say when an attempt is given up: tells that the default did it, once. */
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
        {"timeout_ms", LOG_MS, {0}, becalm_target_timeout(&target->state->target, policy)},
        {"set", LOG_TEXT, {key.at, key.length}, 0},
        {"deadline_ms", policy->deadline == BECALM_NEVER ? LOG_TEXT : LOG_MS, {0}, policy->deadline},
        {"request_id", LOG_TEXT, exchange_request_id(exchange), 0},
    };
    log_line(worker->log, BECALM_LOG_WARN, worker->loop.wall,
             "an attempt was given up: it took longer than learned from other answers, and the policy has no timeout",
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

static struct becalm_text host_name(const struct snapshot_service *service, uint32_t host)
{
    return text_of(host < service->host_count ? service->host[host].name : NULL);
}

void exchange_log_retry(struct exchange *exchange, const struct becalm_action *action)
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
                               .request_id = exchange_request_id(exchange),
                               .reason = exchange->steps.why,
                           });
}

void exchange_log_broken(const struct exchange *exchange, struct upstream_host *host, const struct host_failure *why)
{
    const char *rule = why->rule;
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
        {"request_id", LOG_TEXT, exchange_request_id(exchange), 0},
    };
    const char *message = why->h2 ? "a host's answer breaks HTTP/2" : "a host's answer breaks HTTP/1";
    log_line(worker->log, BECALM_LOG_WARN, worker->loop.wall, message, pairs, sizeof pairs / sizeof pairs[0]);
}

void exchange_log_fell(struct exchange *exchange)
{
    keep_decision(exchange);
    if (exchange->span != NULL) {
        exchange_trace_end(exchange);
    }
}

/* Counts the decisions of the step, and logs them. */
void exchange_log_end(struct exchange *exchange)
{
    const struct becalm_record *record = &exchange->call.record;
    if (decisions_want(&exchange->worker->decisions, record) || exchange->faulted) {
        keep_decision(exchange);
    }
    if (record->reason != BECALM_WHY_OK || record->attempts > 1) {
        look_at_timeouts(exchange);
    }
    if (exchange->span != NULL) {
        exchange_trace_end(exchange);
    }
    exchange_log(exchange, becalm_reason_word(record->reason));
}
