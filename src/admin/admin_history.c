/* SPDX-License-Identifier: MIT */
#include "admin_internal.h"
#include "history.h"

#include "meter/metrics.h"
#include "proxy/gateway_shared.h"

/* /api/sample, /api/events and /api/history: rows of numbers, with the names of their columns beside them once. With
 * two hundred services a second of objects would be ten times as long. docs/admin.md explains each column. */

/* ---- rows ---- */

static const char *const columns[] = {
    "time",           "spanMs",  "arrivals", "firstAttempt", "afterRetry",  "failed",   "attempts",
    "failedAttempts", "retries", "hedges",   "budgetEmpty",  "breakerOpen", "deadline", "limited",
    "stopped",        "shed",    "opened",   "inFlight",     "waiting",     "limit",    "budgetLeft",
    "budgetCap",      "p50",     "p95",      "p99",          "breaker",
};

static void put_columns(struct buffer *page)
{
    buffer_json_open(page, "columns", '[');
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        buffer_json_chars(page, NULL, columns[i]);
    }
    buffer_json_close(page, ']');
}

static void put_known(struct buffer *page, uint32_t value, unsigned decimals)
{
    if (value == UINT32_MAX) {
        buffer_json_null(page, NULL);
    } else {
        buffer_json_decimal(page, NULL, value, decimals);
    }
}

static void put_row(struct buffer *page, const char *key, const struct history_sample *s)
{
    const uint32_t counts[] = {
        s->span_ms,  s->arrivals,        s->first_attempt, s->after_retry, s->failed,
        s->attempts, s->attempts_failed, s->retries,       s->hedges,
    };
    buffer_json_open(page, key, '[');
    buffer_json_number(page, NULL, s->wall_ms);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        buffer_json_number(page, NULL, counts[i]);
    }
    for (uint32_t i = 0; i < HISTORY_REFUSALS; i++) {
        buffer_json_number(page, NULL, s->refused[i]);
    }
    buffer_json_number(page, NULL, s->shed);
    buffer_json_number(page, NULL, s->opened);
    buffer_json_number(page, NULL, s->in_flight);
    buffer_json_number(page, NULL, s->waiting);
    put_known(page, s->limit, 0);
    put_known(page, s->budget_left, 3);
    put_known(page, s->budget_cap, 3);
    put_known(page, s->p50_us, 3);
    put_known(page, s->p95_us, 3);
    put_known(page, s->p99_us, 3);
    buffer_json_chars(page, NULL, becalm_breaker_word((enum becalm_breaker_state)s->breaker));
    buffer_json_close(page, ']');
}

/* ---- the latest second of all ---- */

static void put_storm(struct buffer *page, const struct history_storm *storm)
{
    buffer_json_open(page, "storm", '{');
    buffer_json_decimal(page, "retryShare", storm->retry_ppm, 6);
    if (storm->has_growth) {
        buffer_json_decimal(page, "growth", storm->growth_ppm, 6);
    }
    buffer_json_number(page, "inFlightMost", storm->in_flight);
    buffer_json_open(page, "signs", '[');
    if (storm->attempts >= HISTORY_STORM_ATTEMPTS && storm->retry_ppm > HISTORY_STORM_RETRY) {
        buffer_json_chars(page, NULL, "retryShare");
    }
    if (storm->has_growth && storm->growth_ppm > HISTORY_STORM_GROWTH) {
        buffer_json_chars(page, NULL, "growth");
    }
    if (storm->in_flight > HISTORY_STORM_IN_FLIGHT) {
        buffer_json_chars(page, NULL, "inFlightMost");
    }
    buffer_json_close(page, ']');
    buffer_json_close(page, '}');
}

static void put_hosts(struct buffer *page, const struct snapshot *snapshot, const struct snapshot_service *service,
                      becalm_ns now)
{
    const struct snapshot_target *own = &snapshot->target[service->first_target];
    const struct becalm_hosts *hosts = own->state->target.hosts;
    uint32_t usable = 0;
    uint32_t ejected = 0;
    uint32_t unhealthy = 0;
    for (uint32_t i = 0; i < service->host_count; i++) {
        usable += (service->host[i].known || service->service->unlisted) &&
                  becalm_host_usable(hosts, &own->state->policy.outlier, i, now);
        ejected += becalm_host_ejected(hosts, i, now);
        unhealthy += becalm_host_fails_checks(hosts, i);
    }
    buffer_json_number(page, "hosts", service->host_count);
    buffer_json_number(page, "usable", usable);
    buffer_json_number(page, "ejected", ejected);
    buffer_json_number(page, "unhealthy", unhealthy);
}

static void put_service(struct admin *admin, struct buffer *page, const struct snapshot *snapshot, uint32_t index)
{
    const struct history *history = admin->place.history;
    const struct snapshot_service *service = &snapshot->service[index];
    const struct becalm_target *own = &snapshot->target[service->first_target].state->target;
    struct history_storm storm;
    struct history_sample sample;
    buffer_json_open(page, NULL, '{');
    buffer_json_chars(page, "name", service->service->name);
    put_hosts(page, snapshot, service, admin->place.loop->now);
    history_storm(history, snapshot, index, &storm);
    put_storm(page, &storm);
    buffer_json_open(page, "endpoints", '[');
    for (uint32_t i = 0; i <= service->service->endpoint_count; i++) {
        const struct snapshot_target *target = &snapshot->target[service->first_target + i];
        if (!history_latest(history, snapshot, service->first_target + i, &sample)) {
            break; /* reloaded within this second */
        }
        buffer_json_open(page, NULL, '{');
        buffer_json_chars(page, "name", target->endpoint == NULL ? METRICS_DEFAULT : target->endpoint->name);
        buffer_json_bool(page, "ownGate", i == 0 || target->state->target.gate != own->gate);
        buffer_json_bool(page, "overloaded", becalm_gate_overloaded(target->state->target.gate));
        put_row(page, "row", &sample);
        buffer_json_close(page, '}');
    }
    buffer_json_close(page, ']');
    buffer_json_close(page, '}');
}

static void put_gateway(struct buffer *page, struct gateway *gateway, const struct snapshot *snapshot)
{
    pthread_mutex_lock(&gateway->lock);
    bool reloaded = gateway->reload.successful;
    uint64_t reloads = gateway->reload.count;
    pthread_mutex_unlock(&gateway->lock);
    buffer_json_chars(page, "id", gateway->id);
    buffer_json_number(page, "started", gateway->started_wall / BECALM_MS);
    buffer_json_number(page, "snapshot", snapshot->number);
    buffer_json_number(page, "reloads", reloads);
    buffer_json_bool(page, "reloaded", reloaded);
    buffer_json_bool(page, "draining", atomic_load_explicit(&gateway->draining, memory_order_relaxed));
    buffer_json_number(page, "connections", atomic_load_explicit(&gateway->connections, memory_order_relaxed));
    buffer_json_number(page, "unrouted", atomic_load_explicit(&gateway->unrouted, memory_order_relaxed));
}

void admin_put_sample(struct admin *admin, struct buffer *page)
{
    struct snapshot *snapshot = gateway_snapshot(admin->place.gateway);
    buffer_json_open(page, NULL, '{');
    buffer_json_number(page, "number", history_number(admin->place.history));
    buffer_json_number(page, "time", admin->place.loop->wall / BECALM_MS);
    put_gateway(page, admin->place.gateway, snapshot);
    admin_put_faults(page, admin->place.gateway, admin->place.loop->now);
    put_columns(page);
    buffer_json_open(page, "services", '[');
    for (uint32_t i = 0; i < snapshot->service_count; i++) {
        put_service(admin, page, snapshot, i);
    }
    buffer_json_close(page, ']');
    buffer_json_close(page, '}');
    snapshot_drop(snapshot);
}

void admin_sample(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    (void)request;
    admin_put_sample(admin, &answer->page);
    buffer_chars(&answer->page, "\n");
}

void admin_events(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    (void)request;
    if (admin->stream_count >= ADMIN_STREAMS_MAX) {
        admin_problem(answer, 503, "16 clients follow the events already; poll /api/sample instead.");
        return;
    }
    answer->streams = true;
    buffer_chars(&answer->page, "retry: 2000\n\n");
}

/* ---- the past of one target ---- */

static const struct {
    const char *word;
    enum history_range range;
    uint64_t span_ms;
} ranges[] = {
    {"5m", HISTORY_MINUTES, 300000},
    {"1h", HISTORY_HOUR, 3600000},
    {"6h", HISTORY_DAY, 6 * 3600000},
    {"24h", HISTORY_DAY, 24 * 3600000},
};
#define RANGES (sizeof ranges / sizeof ranges[0])

struct ask {
    char service[ADMIN_NAME_MAX]; /* "": all */
    char endpoint[ADMIN_NAME_MAX];
    size_t range; /* of `ranges` */
};

/* False: the answer has the error. */
static bool ask_read(const struct admin_request *request, struct ask *ask, struct admin_answer *answer)
{
    char text[8];
    if (!admin_name(request, "service", ask->service, answer) ||
        !admin_name(request, "endpoint", ask->endpoint, answer)) {
        return false;
    }
    if (ask->endpoint[0] == '\0') {
        memcpy(ask->endpoint, METRICS_DEFAULT, sizeof METRICS_DEFAULT);
    }
    ask->range = 0;
    if (admin_query(request->query, "range", text, sizeof text) == ADMIN_ABSENT) {
        return true;
    }
    while (ask->range < RANGES && strcmp(text, ranges[ask->range].word) != 0) {
        ask->range++;
    }
    if (ask->range == RANGES) {
        admin_problem(answer, 400, "range is 5m, 1h, 6h or 24h.");
    }
    return ask->range < RANGES;
}

static bool find(const struct snapshot *snapshot, const struct ask *ask, uint32_t *index)
{
    for (uint32_t i = 0; i < snapshot->target_count; i++) {
        const struct snapshot_target *target = &snapshot->target[i];
        const char *endpoint = target->endpoint == NULL ? METRICS_DEFAULT : target->endpoint->name;
        if (strcmp(target->service->name, ask->service) == 0 && strcmp(endpoint, ask->endpoint) == 0) {
            *index = i;
            return true;
        }
    }
    return false;
}

static void put_moves(struct buffer *page, const struct history_target *past)
{
    buffer_json_open(page, "moves", '[');
    for (uint32_t i = 0; past != NULL && i < history_target_moves(past); i++) {
        const struct history_move *move = history_target_move_at(past, i);
        buffer_json_open(page, NULL, '{');
        buffer_json_number(page, "time", move->wall_ms);
        buffer_json_chars(page, "from", becalm_breaker_word((enum becalm_breaker_state)move->from));
        buffer_json_chars(page, "to", becalm_breaker_word((enum becalm_breaker_state)move->to));
        buffer_json_number(page, "count", move->count);
        buffer_json_close(page, '}');
    }
    buffer_json_close(page, ']');
}

static void put_stays(struct buffer *page, const struct history_target *past)
{
    buffer_json_open(page, "states", '[');
    for (uint32_t i = 0; past != NULL && i < history_target_stays(past); i++) {
        const struct history_stay *stay = history_target_stay_at(past, i);
        buffer_json_open(page, NULL, '{');
        buffer_json_chars(page, "state", becalm_breaker_word((enum becalm_breaker_state)stay->state));
        buffer_json_number(page, "since", stay->since_ms);
        if (stay->until_ms > 0) {
            buffer_json_number(page, "until", stay->until_ms);
        }
        buffer_json_number(page, "probesFailed", stay->probes_failed);
        buffer_json_close(page, '}');
    }
    buffer_json_close(page, ']');
}

static void put_rows(struct buffer *page, const struct ask *ask, const struct history_target *past, uint64_t wall_ms)
{
    enum history_range range = ranges[ask->range].range;
    uint64_t begin = wall_ms > ranges[ask->range].span_ms ? wall_ms - ranges[ask->range].span_ms : 0;
    struct history_sample running;
    buffer_json_open(page, "rows", '[');
    for (uint32_t i = 0; past != NULL && i < history_target_count(past, range); i++) {
        const struct history_sample *sample = history_target_at(past, range, i);
        if (sample->wall_ms >= begin) {
            put_row(page, NULL, sample);
        }
    }
    if (past != NULL && history_target_running(past, range, &running)) {
        put_row(page, NULL, &running);
    }
    buffer_json_close(page, ']');
}

static void put_past(struct admin *admin, struct buffer *page, const struct ask *ask, const struct history_target *past)
{
    buffer_json_open(page, NULL, '{');
    buffer_json_chars(page, "service", ask->service);
    buffer_json_chars(page, "endpoint", ask->endpoint);
    buffer_json_chars(page, "range", ranges[ask->range].word);
    buffer_json_bool(page, "history", past != NULL || !history_is_full(admin->place.history));
    put_columns(page);
    put_rows(page, ask, past, admin->place.loop->wall / BECALM_MS);
    put_moves(page, past);
    put_stays(page, past);
    if (past != NULL && history_target_success_at(past) > 0) {
        buffer_json_number(page, "lastSuccess", history_target_success_at(past));
    }
    buffer_json_close(page, '}');
    buffer_chars(page, "\n");
}

/* ---- the last minute of all services ---- */

#define RECENT 60u

static void put_recent(struct buffer *page, const struct history_service *past)
{
    uint32_t arrivals[RECENT];
    uint32_t attempts[RECENT];
    uint32_t count = 0;
    while (past != NULL && count < RECENT && history_service_second(past, count, &arrivals[count], &attempts[count])) {
        count++;
    }
    buffer_json_open(page, "arrivals", '[');
    for (uint32_t i = count; i > 0; i--) {
        buffer_json_number(page, NULL, arrivals[i - 1]);
    }
    buffer_json_close(page, ']');
    buffer_json_open(page, "attempts", '[');
    for (uint32_t i = count; i > 0; i--) {
        buffer_json_number(page, NULL, attempts[i - 1]);
    }
    buffer_json_close(page, ']');
}

static void put_all_recent(struct admin *admin, struct buffer *page, const struct snapshot *snapshot)
{
    buffer_json_open(page, NULL, '{');
    buffer_json_open(page, "services", '[');
    for (uint32_t i = 0; i < snapshot->service_count; i++) {
        buffer_json_open(page, NULL, '{');
        buffer_json_chars(page, "name", snapshot->service[i].service->name);
        put_recent(page, history_service_of(admin->place.history, snapshot, i));
        buffer_json_close(page, '}');
    }
    buffer_json_close(page, ']');
    buffer_json_close(page, '}');
    buffer_chars(page, "\n");
}

void admin_history(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    struct ask ask;
    uint32_t index;
    if (!ask_read(request, &ask, answer)) {
        return;
    }
    struct snapshot *snapshot = gateway_snapshot(admin->place.gateway);
    if (ask.service[0] == '\0') {
        put_all_recent(admin, &answer->page, snapshot);
    } else if (find(snapshot, &ask, &index)) {
        put_past(admin, &answer->page, &ask, history_of(admin->place.history, snapshot, index));
    } else {
        admin_problem(answer, 404, "The policy has no service or endpoint of this name.");
    }
    snapshot_drop(snapshot);
}
