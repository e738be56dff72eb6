/* SPDX-License-Identifier: MIT */
#include "admin_internal.h"
#include "admin_tls.h"
#include "history.h"

#include "journal/log_text.h"
#include "meter/metrics.h"
#include "policy/schema.h"
#include "proxy/gateway_shared.h"

#include <becalm/version.h>

#include <stdlib.h>

/* /api/state. docs/admin.md promises its names: add, but do not rename. Members that do not apply are left out. */

struct telling {
    const struct admin *admin;
    struct buffer *page;
    const struct snapshot *snapshot;
    becalm_ns now;
    const struct history *history;
};

static void put_ms(struct buffer *page, const char *key, becalm_ns duration)
{
    buffer_json_decimal(page, key, duration / BECALM_US, 3);
}

static void put_share(struct buffer *page, const char *key, uint64_t ppm)
{
    buffer_json_decimal(page, key, ppm, 6);
}

static void put_time(struct buffer *page, const char *key, uint64_t wall)
{
    char text[24];
    struct buffer time = {.at = text, .size = sizeof text};
    log_text_time(&time, wall);
    buffer_json_string(page, key, (struct becalm_text){time.at, time.length});
}

/* ---- counts ---- */

static uint64_t total(const struct snapshot_target *target, size_t offset)
{
    return meter_total((const struct meter *const *)target->meters->meter, target->meters->count, offset);
}

#define TOTAL(target, field) total(target, offsetof(struct meter, field))

/* Counts by reason; those that are 0 are left out. Returns their sum. */
static uint64_t put_reasons(struct buffer *page, const char *key, const struct snapshot_target *target, size_t offset)
{
    uint64_t sum = 0;
    buffer_json_open(page, key, '{');
    for (uint32_t i = 0; i < BECALM_REASON_COUNT; i++) {
        uint64_t count = total(target, offset + i * sizeof(meter_count));
        if (count > 0) {
            buffer_json_number(page, becalm_reason_word((enum becalm_reason)i), count);
        }
        sum += count;
    }
    buffer_json_close(page, '}');
    return sum;
}

static void put_histogram(struct buffer *page, const char *key, const struct snapshot_target *target, size_t offset)
{
    uint64_t count = 0;
    buffer_json_open(page, key, '{');
    buffer_json_open(page, "counts", '[');
    for (uint32_t i = 0; i < METER_BUCKETS; i++) {
        uint64_t bucket = total(target, offset + offsetof(struct meter_histogram, bucket[i]));
        buffer_json_number(page, NULL, bucket);
        count += bucket;
    }
    buffer_json_close(page, ']');
    buffer_json_number(page, "count", count);
    buffer_json_decimal(page, "sumMs", total(target, offset + offsetof(struct meter_histogram, sum_us)), 3);
    buffer_json_close(page, '}');
}

static void put_transitions(struct buffer *page, const struct snapshot_target *target)
{
    buffer_json_open(page, "transitions", '[');
    for (uint32_t from = 0; from < METER_STATES; from++) {
        for (uint32_t to = 0; to < METER_STATES; to++) {
            uint64_t count = TOTAL(target, transitions[from][to]);
            if (count > 0) {
                buffer_json_open(page, NULL, '{');
                buffer_json_chars(page, "from", becalm_breaker_word((enum becalm_breaker_state)from));
                buffer_json_chars(page, "to", becalm_breaker_word((enum becalm_breaker_state)to));
                buffer_json_number(page, "count", count);
                buffer_json_close(page, '}');
            }
        }
    }
    buffer_json_close(page, ']');
}

/* Returns how many calls have ended. */
static uint64_t put_calls(struct buffer *page, const struct snapshot_target *target)
{
    uint64_t sum = 0;
    buffer_json_open(page, "calls", '{');
    for (uint32_t i = 0; i < METER_RESULT_COUNT; i++) {
        sum += put_reasons(page, meter_result_word((enum meter_result)i), target, offsetof(struct meter, calls[i]));
    }
    buffer_json_close(page, '}');
    return sum;
}

/* Returns how many retries were sent. */
static uint64_t put_retries(struct buffer *page, const struct snapshot_target *target)
{
    uint64_t sum = 0;
    buffer_json_open(page, "retries", '[');
    for (uint32_t i = 0; i < METER_ATTEMPTS; i++) {
        uint64_t count = TOTAL(target, retries[i]);
        buffer_json_number(page, NULL, count);
        sum += count;
    }
    buffer_json_close(page, ']');
    return sum;
}

/* Attempts that hosts get per call that sent any: 1 plus a share. Calls in progress have sent their first attempt. */
static void put_amplification(struct buffer *page, uint64_t calls, uint64_t more)
{
    if (calls > 0) {
        uint64_t ppm = more > UINT64_MAX / 1000000 ? UINT64_MAX / 2 : more * 1000000 / calls;
        put_share(page, "amplification", 1000000 + ppm);
    }
}

static void put_protocols(struct buffer *page, const char *side, const struct snapshot_target *target, size_t offset)
{
    buffer_json_open(page, side, '{');
    for (uint32_t i = 0; i < METER_PROTOCOL_COUNT; i++) {
        buffer_json_number(page, meter_protocol_word((enum meter_protocol)i),
                           total(target, offset + i * sizeof(meter_count)));
    }
    buffer_json_close(page, '}');
}

static void put_counts(struct buffer *page, const struct snapshot_target *target)
{
    uint64_t active = TOTAL(target, active);
    uint64_t hedges = TOTAL(target, hedges[METER_HEDGE_SENT]);
    buffer_json_number(page, "arrivals",
                       meter_arrivals((const struct meter *const *)target->meters->meter, target->meters->count));
    buffer_json_open(page, "protocols", '{');
    put_protocols(page, "clients", target, offsetof(struct meter, arrivals));
    put_protocols(page, "hosts", target, offsetof(struct meter, sent));
    buffer_json_close(page, '}');
    uint64_t calls = put_calls(page, target);
    buffer_json_open(page, "attempts", '{');
    for (uint32_t i = 0; i < METER_STATUS_COUNT; i++) {
        buffer_json_number(page, meter_status_word((enum meter_status)i), TOTAL(target, attempts[i]));
    }
    buffer_json_close(page, '}');
    uint64_t retries = put_retries(page, target);
    put_reasons(page, "overflow", target, offsetof(struct meter, overflow));
    uint64_t shed = put_reasons(page, "shed", target, offsetof(struct meter, shed));
    put_reasons(page, "shadow", target, offsetof(struct meter, would));
    buffer_json_open(page, "hedges", '{');
    for (uint32_t i = 0; i < METER_HEDGE_COUNT; i++) {
        buffer_json_number(page, meter_hedge_word((enum meter_hedge)i), TOTAL(target, hedges[i]));
    }
    buffer_json_close(page, '}');
    put_amplification(page, calls + active > shed ? calls + active - shed : 0, retries + hedges);
    buffer_json_number(page, "redone", TOTAL(target, redone));
    buffer_json_number(page, "active", active);
    buffer_json_number(page, "inFlight", TOTAL(target, in_flight));
    buffer_json_number(page, "activeRetries", TOTAL(target, active_retries));
}

/* ---- the state of the engine's objects ---- */

/* Is this part its service's, and so told there too? */
static void put_shared(struct buffer *page, const struct snapshot_target *target, const void *part,
                       const void *of_service)
{
    buffer_json_bool(page, "shared", target->endpoint != NULL && part == of_service);
}

static void put_budget(const struct telling *t, const char *key, const struct becalm_budget *budget,
                       const struct becalm_budget_policy *policy)
{
    uint64_t left = becalm_budget_left(budget, policy, t->now);
    uint64_t cap = becalm_budget_cap(budget, policy, t->now);
    buffer_json_open(t->page, key, '{');
    buffer_json_chars(t->page, "kind", schema_budget_kinds[policy->kind]);
    if (left != UINT64_MAX) {
        put_share(t->page, "left", left);
    }
    if (cap != UINT64_MAX) {
        put_share(t->page, "cap", cap);
    }
    put_share(t->page, "retryRatio", becalm_budget_retry_ratio(budget, t->now));
}

static void put_budgets(const struct telling *t, const struct snapshot_target *target,
                        const struct becalm_target *service)
{
    const struct becalm_target *parts = &target->state->target;
    put_budget(t, "budget", parts->budget, &target->state->policy.budget);
    put_shared(t->page, target, parts->budget, service->budget);
    buffer_json_close(t->page, '}');
    if (parts->lease != NULL) {
        buffer_json_open(t->page, "sharedBudget", '{');
        put_shared(t->page, target, parts->lease, service->lease);
        buffer_json_decimal(t->page, "percent", target->state->policy.lease.share_ppm, 4);
        buffer_json_number(t->page, "left", becalm_lease_left(parts->lease));
        buffer_json_number(t->page, "live", becalm_lease_live(parts->lease));
        buffer_json_bool(t->page, "degraded", becalm_lease_degraded(parts->lease));
        buffer_json_close(t->page, '}');
    }
    if (parts->service_budget != NULL) {
        put_budget(t, "serviceBudget", parts->service_budget, &target->state->policy.service_budget);
        buffer_json_close(t->page, '}');
    }
}

/* Since when it is as it is, as far as the history knows. */
static void put_stay(struct buffer *page, const struct history_target *past)
{
    if (past != NULL && history_target_stays(past) > 0) {
        const struct history_stay *stay = history_target_stay_at(past, history_target_stays(past) - 1);
        put_time(page, "since", stay->since_ms * BECALM_MS);
        buffer_json_number(page, "probesFailed", stay->probes_failed);
    }
}

static void put_breaker(const struct telling *t, const struct snapshot_target *target,
                        const struct history_target *past)
{
    const struct becalm_breaker *breaker = target->state->target.breaker;
    becalm_ns retest_at = becalm_breaker_retest_at(breaker);
    struct becalm_window_sums sums;
    becalm_breaker_read(breaker, t->now, &sums);
    buffer_json_open(t->page, "breaker", '{');
    buffer_json_chars(t->page, "state", becalm_breaker_word(becalm_breaker_state(breaker)));
    if (retest_at != BECALM_NEVER) {
        put_ms(t->page, "retestInMs", becalm_ns_left(t->now, retest_at));
    }
    buffer_json_number(t->page, "calls", sums.lane[0]);
    buffer_json_number(t->page, "failed", sums.lane[1]);
    buffer_json_number(t->page, "slow", sums.lane[2]);
    buffer_json_number(t->page, "late", becalm_breaker_late(breaker));
    put_stay(t->page, past);
    put_transitions(t->page, target);
    buffer_json_close(t->page, '}');
}

static void put_limit(struct buffer *page, const struct snapshot_target *target, const struct becalm_target *service)
{
    const struct becalm_limit *limit = target->state->target.limit;
    const struct becalm_limit_policy *policy = &target->state->policy.limit;
    uint32_t now = becalm_limit_now(limit, policy);
    buffer_json_open(page, "limit", '{');
    buffer_json_chars(page, "kind", schema_limit_kinds[policy->kind + 1]);
    if (now != UINT32_MAX) {
        buffer_json_number(page, "now", now);
    }
    buffer_json_number(page, "inFlight", becalm_limit_in_flight(limit));
    buffer_json_number(page, "answers", becalm_limit_answers(limit));
    if (policy->kind != BECALM_LIMIT_NONE && policy->max_answers != 0) {
        buffer_json_number(page, "maxAnswers", policy->max_answers);
    }
    put_shared(page, target, limit, service->limit);
    buffer_json_close(page, '}');
}

static void put_restart(struct buffer *page, const struct snapshot_target *target, becalm_ns now)
{
    static const char *const words[] = {
        [BECALM_RESTART_UP] = "up", [BECALM_RESTART_DOWN] = "down", [BECALM_RESTART_GONE] = "gone"};
    const struct becalm_restart *restart = target->state->target.restart;
    buffer_json_open(page, "restart", '{');
    buffer_json_chars(page, "state", words[becalm_restart_peek(restart, target->state->policy.attempt_timeout, now)]);
    buffer_json_number(page, "parked", becalm_restart_parked(restart));
    buffer_json_close(page, '}');
}

static void put_gate(struct buffer *page, const struct snapshot_target *target, const struct becalm_target *service)
{
    const struct becalm_gate *gate = target->state->target.gate;
    buffer_json_open(page, "gate", '{');
    buffer_json_number(page, "waiting", becalm_gate_waiting(gate));
    put_share(page, "shedShare", becalm_gate_shed_ppm(gate));
    buffer_json_bool(page, "overloaded", becalm_gate_overloaded(gate));
    put_shared(page, target, gate, service->gate);
    buffer_json_close(page, '}');
}

/* After how long an attempt is given up or overdue, and how that is known. */
static void put_timeout(struct buffer *page, const struct snapshot_target *target)
{
    const struct becalm_target *state = &target->state->target;
    const struct becalm_policy *policy = &target->state->policy;
    const char *word = becalm_target_timeout_is_written(state, policy) ? "written"
                       : policy->timeout_kind == BECALM_TIMEOUT_NONE   ? "none"
                       : becalm_due_known(state->due)                  ? "learned"
                                                                       : "start";
    buffer_json_open(page, "attemptTimeout", '{');
    buffer_json_chars(page, "kind", word);
    put_ms(page, "ms", becalm_target_timeout(state, policy));
    becalm_ns overdue = becalm_target_overdue(state, policy);
    if (overdue != BECALM_NEVER) {
        put_ms(page, "overdueMs", overdue);
    }
    buffer_json_close(page, '}');
}

static void put_latency(const struct telling *t, const struct becalm_sketch *sketch)
{
    static const struct {
        const char *key;
        uint32_t ppm;
    } quantiles[] = {{"p50", 500000}, {"p90", 900000}, {"p95", 950000}, {"p99", 990000}, {"p999", 999000}};
    uint64_t count = becalm_sketch_count(sketch, t->now);
    buffer_json_open(t->page, "latencyMs", '{');
    buffer_json_number(t->page, "count", count);
    for (size_t i = 0; count > 0 && i < sizeof quantiles / sizeof quantiles[0]; i++) {
        put_ms(t->page, quantiles[i].key, becalm_sketch_quantile(sketch, t->now, quantiles[i].ppm));
    }
    buffer_json_close(t->page, '}');
}

static void put_target(const struct telling *t, const struct snapshot_target *target)
{
    const struct snapshot_service *service = &t->snapshot->service[target->service_index];
    const struct becalm_target *of_service = &t->snapshot->target[service->first_target].state->target;
    const struct becalm_target *parts = &target->state->target;
    const struct becalm_policy *policy = &target->state->policy;
    const struct history_target *past =
        t->history == NULL ? NULL : history_of(t->history, t->snapshot, (uint32_t)(target - t->snapshot->target));
    buffer_json_open(t->page, NULL, '{');
    buffer_json_chars(t->page, "name", target->endpoint == NULL ? METRICS_DEFAULT : target->endpoint->name);
    put_counts(t->page, target);
    put_budgets(t, target, of_service);
    if (past != NULL && history_target_success_at(past) > 0) {
        put_time(t->page, "lastSuccess", history_target_success_at(past) * BECALM_MS);
    }
    put_breaker(t, target, past);
    put_limit(t->page, target, of_service);
    put_gate(t->page, target, of_service);
    put_restart(t->page, target, t->now);
    put_timeout(t->page, target);
    if (parts->throttle != NULL) {
        put_share(t->page, "throttleShare", becalm_throttle_chance(parts->throttle, &policy->throttle, t->now));
    }
    if (parts->rate != NULL) {
        buffer_json_decimal(t->page, "ratePerSecond", becalm_rate_now(parts->rate), 3);
    }
    put_latency(t, parts->sketch);
    put_histogram(t->page, "delay", target, offsetof(struct meter, delay));
    put_histogram(t->page, "duration", target, offsetof(struct meter, duration));
    buffer_json_close(t->page, '}');
}

/* ---- services and their hosts ---- */

/* The result of the host's health checks, if it is checked. */
static void put_health(const struct telling *t, const struct snapshot_target *own, const struct snapshot_host *host)
{
    struct admin_health health;
    if (!host->known || !admin_health(t->admin, own->service->name, &host->address, &health)) {
        return;
    }
    buffer_json_open(t->page, "healthCheck", '{');
    buffer_json_bool(t->page, "passes", health.passes);
    buffer_json_number(t->page, "passed", health.passed);
    buffer_json_number(t->page, "failed", health.failed);
    buffer_json_chars(t->page, "why", health.why);
    if (health.status != 0) {
        buffer_json_number(t->page, "status", health.status);
    }
    buffer_json_close(t->page, '}');
}

static void put_host(const struct telling *t, const struct snapshot_target *own, const struct snapshot_host *host,
                     uint32_t index)
{
    const struct becalm_hosts *hosts = own->state->target.hosts;
    const struct becalm_outlier_policy *policy = &own->state->policy.outlier;
    const struct becalm_host *seen = &hosts->host[index];
    becalm_ns until = atomic_load_explicit(&seen->ejected_until, memory_order_relaxed);
    buffer_json_open(t->page, NULL, '{');
    buffer_json_chars(t->page, "name", host->name);
    if (host->known) {
        char address[ADDRESS_TEXT_MAX];
        size_t length = address_write(&host->address, address, sizeof address);
        buffer_json_string(t->page, "address", (struct becalm_text){address, length});
    }
    buffer_json_number(t->page, "inFlight", atomic_load_explicit(&seen->in_flight, memory_order_relaxed));
    buffer_json_bool(t->page, "usable",
                     (host->known || own->service->unlisted) && becalm_host_usable(hosts, policy, index, t->now));
    bool ejected = becalm_host_ejected(hosts, index, t->now);
    buffer_json_bool(t->page, "ejected", ejected);
    if (ejected) {
        put_ms(t->page, "ejectedForMs", becalm_ns_left(t->now, until));
    }
    buffer_json_bool(t->page, "unhealthy", becalm_host_fails_checks(hosts, index));
    put_health(t, own, host);
    buffer_json_number(t->page, "timesEjected", atomic_load_explicit(&seen->times, memory_order_relaxed));
    put_ms(t->page, "askedForQuietMs", becalm_hosts_hint(hosts, index, t->now));
    uint64_t results;
    uint64_t failed;
    if (becalm_host_read(hosts, index, t->now, &results, &failed)) {
        buffer_json_number(t->page, "attempts", results);
        buffer_json_number(t->page, "failed", failed);
    }
    buffer_json_close(t->page, '}');
}

static void put_service(const struct telling *t, const struct snapshot_service *service)
{
    const struct snapshot_target *own = &t->snapshot->target[service->first_target];
    buffer_json_open(t->page, NULL, '{');
    buffer_json_chars(t->page, "name", service->service->name);
    buffer_json_open(t->page, "hosts", '[');
    for (uint32_t i = 0; i < service->host_count; i++) {
        put_host(t, own, &service->host[i], i);
    }
    buffer_json_close(t->page, ']');
    buffer_json_bool(t->page, "ejectionsIgnored",
                     becalm_hosts_ignored(own->state->target.hosts, &own->state->policy.outlier));
    buffer_json_open(t->page, "endpoints", '[');
    for (uint32_t i = 0; i <= service->service->endpoint_count; i++) {
        put_target(t, &t->snapshot->target[service->first_target + i]);
    }
    buffer_json_close(t->page, ']');
    buffer_json_close(t->page, '}');
}

/* ---- the gateway ---- */

static void put_reload(struct buffer *page, struct gateway *gateway)
{
    pthread_mutex_lock(&gateway->lock);
    struct gateway_reload reload = gateway->reload;
    pthread_mutex_unlock(&gateway->lock);
    buffer_json_open(page, "reload", '{');
    buffer_json_bool(page, "successful", reload.successful);
    put_time(page, "time", reload.wall);
    put_time(page, "lastSuccess", reload.good_wall);
    buffer_json_number(page, "count", reload.count);
    buffer_json_chars(page, "why", reload.why[0] == '\0' ? NULL : reload.why);
    buffer_json_close(page, '}');
}

/* Hosts that no service names, and that requests asked for. */
static void put_strangers(struct buffer *page, const char *key, struct strangers *strangers)
{
    struct stranger list[STRANGERS];
    uint32_t count = strangers_read(strangers, list);
    buffer_json_open(page, key, '[');
    for (uint32_t i = 0; i < count; i++) {
        buffer_json_open(page, NULL, '{');
        buffer_json_chars(page, "host", list[i].host);
        buffer_json_number(page, "requests", list[i].requests);
        buffer_json_close(page, '}');
    }
    buffer_json_close(page, ']');
}

/* Connections that speak HTTP/2 and were ended, by why; those that are 0 are left out. */
static void put_h2_ends(struct buffer *page, const char *key, BECALM_ATOMIC(uint64_t) ends[H2_END_COUNT])
{
    buffer_json_open(page, key, '{');
    for (enum h2_end why = H2_END_GOAWAY; why < H2_END_COUNT; why++) {
        uint64_t count = atomic_load_explicit(&ends[why], memory_order_relaxed);
        if (count > 0) {
            buffer_json_number(page, h2_end_word(why), count);
        }
    }
    buffer_json_close(page, '}');
}

static void put_gateway(const struct telling *t, struct gateway *gateway, uint64_t wall)
{
    struct buffer *page = t->page;
    uint64_t exchanges = 0;
    for (uint32_t i = 0; i < gateway->worker_count; i++) {
        exchanges += atomic_load_explicit(&gateway->worker[i].exchange_count, memory_order_relaxed);
    }
    buffer_json_chars(page, "version", becalm_version());
    buffer_json_chars(page, "id", gateway->id);
    buffer_json_chars(page, "policy", gateway->path);
    buffer_json_chars(page, "role", t->snapshot->settings->role == BECALM_ROLE_SIDECAR ? "sidecar" : "gateway");
    put_time(page, "time", wall);
    put_time(page, "started", gateway->started_wall);
    buffer_json_decimal(page, "uptimeSeconds", becalm_ns_since(wall, gateway->started_wall) / BECALM_MS, 3);
    buffer_json_number(page, "workers", gateway->worker_count);
    buffer_json_number(page, "connections", atomic_load_explicit(&gateway->connections, memory_order_relaxed));
    buffer_json_number(page, "accepted", atomic_load_explicit(&gateway->accepted, memory_order_relaxed));
    buffer_json_number(page, "requests", exchanges);
    buffer_json_number(page, "unrouted", atomic_load_explicit(&gateway->unrouted, memory_order_relaxed));
    put_strangers(page, "unroutedHosts", &gateway->strangers);
    buffer_json_number(page, "passed", atomic_load_explicit(&gateway->passed, memory_order_relaxed));
    put_strangers(page, "passedHosts", &gateway->passed_hosts);
    buffer_json_number(page, "replayBytes", atomic_load_explicit(&gateway->replay_bytes, memory_order_relaxed));
    buffer_json_number(page, "logDropped", log_dropped(gateway->log));
    buffer_json_bool(page, "draining", atomic_load_explicit(&gateway->draining, memory_order_relaxed));
    put_reload(page, gateway);
    admin_put_faults(page, gateway, t->now);
    buffer_json_open(page, "http2", '{');
    put_h2_ends(page, "clientsEnded", gateway->h2_ends);
    put_h2_ends(page, "hostsEnded", gateway->h2_host_ends);
    buffer_json_close(page, '}');
    admin_tls_state(page, gateway, t->snapshot);
}

/* The stores of shared budgets. Without shared budgets the key is absent. */
static void put_stores(const struct telling *t, const struct admin *admin)
{
    struct metrics_redis redis[ADMIN_STORES];
    struct buffer *page = t->page;
    uint32_t count = admin_stores(admin, redis);
    if (count == 0) {
        return;
    }
    buffer_json_chars(page, "fleet", t->snapshot->settings->fleet);
    buffer_json_open(page, "stores", '[');
    for (uint32_t i = 0; i < count; i++) {
        buffer_json_open(page, NULL, '{');
        buffer_json_chars(page, "store", redis[i].store);
        buffer_json_bool(page, "up", redis[i].up);
        buffer_json_chars(page, "error", redis[i].error[0] == 0 ? NULL : redis[i].error);
        if (redis[i].age != BECALM_NEVER) {
            buffer_json_decimal(page, "answeredSecondsAgo", redis[i].age / BECALM_MS, 3);
        }
        buffer_json_number(page, "exchanges", redis[i].answered);
        buffer_json_number(page, "dropped", redis[i].dropped);
        buffer_json_number(page, "connects", redis[i].connects);
        buffer_json_close(page, '}');
    }
    buffer_json_close(page, ']');
}

/* All services, or the one that is asked for. */
void admin_state(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    struct gateway *gateway = admin->place.gateway;
    char wanted[ADMIN_NAME_MAX];
    bool all = admin_query(request->query, "service", wanted, sizeof wanted) == ADMIN_ABSENT;
    if (!admin_name(request, "service", wanted, answer)) {
        return;
    }
    struct snapshot *snapshot = gateway_snapshot(gateway);
    struct telling t = {admin, &answer->page, snapshot, admin->place.loop->now, admin->place.history};
    buffer_json_open(t.page, NULL, '{');
    put_gateway(&t, gateway, admin->place.loop->wall);
    put_stores(&t, admin);
    buffer_json_open(t.page, "bucketsMs", '['); /* the last bucket of a histogram has no bound */
    for (uint32_t i = 0; i < METER_BUCKETS - 1; i++) {
        buffer_json_number(t.page, NULL, meter_bound_us[i] / 1000);
    }
    buffer_json_close(t.page, ']');
    buffer_json_open(t.page, "services", '[');
    for (uint32_t i = 0; i < snapshot->service_count; i++) {
        if (all || strcmp(snapshot->service[i].service->name, wanted) == 0) {
            put_service(&t, &snapshot->service[i]);
        }
    }
    buffer_json_close(t.page, ']');
    buffer_json_close(t.page, '}');
    buffer_chars(t.page, "\n");
    snapshot_drop(snapshot);
}

void admin_fleet(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    (void)request;
    admin->place.fleet(admin->place.control, &answer->page);
}
