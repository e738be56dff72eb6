/* SPDX-License-Identifier: MIT */
#include "cmd_sim.h"

/* Six decimals of a double are exactly the parts per million that it was made of. */
static void json_ppm(struct json *json, const char *key, uint64_t ppm)
{
    json_number(json, key, (double)ppm / 1e6, 6);
}

/* Null where there were no calls to have a share of. */
static void json_share(struct json *json, const char *key, uint64_t ppm)
{
    if (ppm != MEASURE_NO_SHARE) {
        json_ppm(json, key, ppm);
    } else {
        json_null(json, key);
    }
}

static void json_ms(struct json *json, const char *key, uint64_t us)
{
    json_number(json, key, (double)us / 1e3, 3);
}

static void json_after(struct json *json, const char *key, uint32_t seconds)
{
    if (seconds >= MEASURE_TOO_SHORT) {
        json_null(json, key);
    } else {
        json_integer(json, key, seconds);
    }
}

/* Operations that must be executed once, and how often they were. */
static void json_effects(struct json *json, const struct scenario_service *service, const struct world_effects *effects)
{
    if (service->effect) {
        json_object(json, "effects");
        json_integer(json, "operations", effects->operations);
        json_integer(json, "executed", effects->executed);
        json_integer(json, "more_than_once", effects->repeated);
        json_integer(json, "most_often", effects->most);
        json_object_end(json);
    }
}

/* The connects that arrived each time that the service was up again, for services that too many connects bring down. */
static void json_recoveries(struct json *json, const struct scenario_service *service,
                            const struct world_service *counts)
{
    if (service->accept_max == SCENARIO_NONE) {
        return;
    }
    json_array(json, "recoveries");
    for (uint32_t i = 0; i < counts->recovery_count; i++) {
        const struct world_recovery *recovery = &counts->recovery[i];
        json_object(json, NULL);
        json_number(json, "at_s", (double)recovery->at / 1e9, 3);
        json_integer(json, "worst_100ms", recovery->worst_100ms);
        if (recovery->fell_at == BECALM_NEVER) {
            json_null(json, "fell_after_s");
        } else {
            json_number(json, "fell_after_s", (double)(recovery->fell_at - recovery->at) / 1e9, 3);
        }
        json_object_end(json);
    }
    json_array_end(json);
}

/* Only of services that refused some. */
static void json_refused(struct json *json, const struct measure_service *service)
{
    if (service->refused_1s_ppm == 0) {
        return;
    }
    json_object(json, "connections_refused");
    json_share(json, "mean", service->refused_ppm);
    json_ppm(json, "peak_1s", service->refused_1s_ppm);
    json_ppm(json, "peak_5s", service->refused_5s_ppm);
    json_object_end(json);
}

static void json_services(struct json *json, const struct scenario *plan, const struct report_run *run)
{
    const struct measure *measure = run->measure;
    json_object(json, "services");
    for (uint32_t i = 0; i < plan->service_count; i++) {
        json_object(json, plan->services[i].name);
        json_object(json, "amplification");
        json_share(json, "mean", measure->service[i].mean_ppm);
        json_ppm(json, "peak_1s", measure->service[i].peak_1s_ppm);
        json_ppm(json, "peak_5s", measure->service[i].peak_5s_ppm);
        json_object_end(json);
        json_refused(json, &measure->service[i]);
        json_number(json, "offered", (double)measure->service[i].offered_milli / 1e3, 3);
        json_integer(json, "queue_max", measure->service[i].queue_most);
        if (plan->pool_max > 0) {
            json_integer(json, "connections_max", run->result->service[i].connected_most);
            json_integer(json, "waited_for_connection", run->result->service[i].waited);
        }
        if (plan->services[i].quota_milli > 0) {
            json_integer(json, "rate_limited", run->result->service[i].limited);
        }
        if (scenario_streams(&plan->services[i])) {
            json_integer(json, "answers_max", run->result->service[i].answers_most);
        }
        if (measure_is_bounded(plan)) {
            json_integer(json, "attempts", measure->service[i].attempts);
        }
        json_effects(json, &plan->services[i], &measure->service[i].effects);
        json_recoveries(json, &plan->services[i], &run->result->service[i]);
        json_object_end(json);
    }
    json_object_end(json);
}

/* When clients that make so many calls and no more had made them; null for never. */
static void json_completed(struct json *json, const struct scenario *plan, const struct measure *measure)
{
    if (!measure_is_bounded(plan)) {
        return;
    }
    if (measure->completed_us == MEASURE_NEVER_US) {
        json_null(json, "completed_after_ms");
    } else {
        json_number(json, "completed_after_ms", (double)measure->completed_us / 1e3, 3);
    }
}

static void json_clients(struct json *json, const struct scenario *plan, const struct measure *measure)
{
    json_object(json, "clients");
    json_integer(json, "calls", measure->calls);
    bool faulty = plan->fault_count > 0;
    json_share(json, "success", measure->success_ppm);
    json_share(json, "success_before_fault", faulty ? measure->success_before_ppm : MEASURE_NO_SHARE);
    json_share(json, "success_in_fault", measure->success_in_fault_ppm);
    json_share(json, "success_after_fault", measure->success_after_ppm);
    json_share(json, "failed_locally", measure->calls > 0 ? measure->failed_locally_ppm : MEASURE_NO_SHARE);
    json_after(json, "recovered_after_s", measure->recovered_after_s);
    json_after(json, "retries_stop_after_s", measure->retries_stop_after_s);
    json_ms(json, "latency_mean_ms", measure->latency_mean_us);
    json_completed(json, plan, measure);
    json_ms(json, "latency_p50_ms", measure->latency_p50_us);
    if (plan->fault_count > 0 && measure->latency_p50_in_fault_us > 0) {
        json_ms(json, "latency_p50_in_fault_ms", measure->latency_p50_in_fault_us);
    } else {
        json_null(json, "latency_p50_in_fault_ms");
    }
    json_ms(json, "latency_p99_ms", measure->latency_p99_us);
    json_ms(json, "latency_p999_ms", measure->latency_p999_us);
    json_object_end(json);
}

static uint64_t tally_ppm(const struct world_tally *tally)
{
    return tally->begun == 0 ? MEASURE_NO_SHARE : tally->good * 1000000 / tally->begun;
}

/* Where there are several: how each of them fared. */
static void json_each_client(struct json *json, const struct scenario *plan, const struct report_run *run)
{
    if (plan->client_count < 2) {
        return;
    }
    json_object(json, "by_client");
    for (uint32_t i = 0; i < plan->client_count; i++) {
        const struct world_client *client = &run->result->client[i];
        struct world_tally all = {0, 0};
        for (int phase = 0; phase < WORLD_PHASES; phase++) {
            all.begun += client->phase[phase].begun;
            all.good += client->phase[phase].good;
        }
        bool faulty = plan->fault_count > 0;
        json_object(json, plan->clients[i].name);
        json_integer(json, "calls", client->calls);
        json_share(json, "success", tally_ppm(&all));
        json_share(json, "success_before_fault", faulty ? tally_ppm(&client->phase[WORLD_BEFORE]) : MEASURE_NO_SHARE);
        json_share(json, "success_in_fault", tally_ppm(&client->phase[WORLD_IN_FAULT]));
        json_share(json, "success_after_fault", tally_ppm(&client->phase[WORLD_AFTER]));
        json_integer(json, "attempts", client->sent.first + client->sent.retries);
        json_integer(json, "retries", client->sent.retries);
        json_ms(json, "latency_mean_ms",
                client->latency.count == 0 ? 0 : client->latency.sum_us / client->latency.count);
        json_ms(json, "latency_p50_ms", world_latency_us(&client->latency, 500000));
        json_ms(json, "latency_p99_ms", world_latency_us(&client->latency, 990000));
        json_object_end(json);
    }
    json_object_end(json);
    json_share(json, "fairness", run->measure->fairness_ppm);
}

/* Only of services that have any. */
static void json_endpoints(struct json *json, const struct scenario_service *service,
                           const struct world_service *counts)
{
    if (service->endpoint_count == 0) {
        return;
    }
    json_object(json, "endpoints");
    for (uint32_t i = 0; i < service->endpoint_count; i++) {
        json_object(json, service->endpoints[i].name);
        json_ppm(json, "retry_ratio", measure_retry_ratio_ppm(&counts->endpoint[i]));
        json_object_end(json);
    }
    json_object_end(json);
}

/* Calls without success, by reason: those that were refused, at the first attempt or at a retry that was due; or all
 * the rest. */
static void json_reasons(struct json *json, const char *key, const uint64_t *ended, bool refused)
{
    json_object(json, key);
    for (int why = 0; why < BECALM_REASON_COUNT; why++) {
        enum becalm_reason reason = (enum becalm_reason)why;
        if (reason != BECALM_WHY_OK && ended[why] > 0 && figures_is_refusal(reason) == refused) {
            json_integer(json, becalm_reason_word(reason), ended[why]);
        }
    }
    json_object_end(json);
}

/* Only of services that have a shared budget. Seconds without a lease are those of one instance, in the mean. */
static void json_shared(struct json *json, const struct world_shared *shared)
{
    if (shared->instances == 0) {
        return;
    }
    json_object(json, "shared");
    json_integer(json, "instances", shared->instances);
    json_number(json, "degraded_s", (double)shared->degraded / (double)shared->instances / 1e9, 3);
    json_integer(json, "asked", shared->asked);
    json_integer(json, "answered", shared->answered);
    json_object_end(json);
}

static void json_targets(struct json *json, const struct scenario *plan, const struct report_run *run)
{
    json_object(json, "targets");
    for (uint32_t i = 0; i < plan->service_count; i++) {
        const struct world_service *service = &run->result->service[i];
        json_object(json, plan->services[i].name);
        json_ppm(json, "retry_ratio", run->measure->service[i].retry_ratio_ppm);
        json_endpoints(json, &plan->services[i], &run->result->service[i]);
        json_shared(json, &service->shared);
        json_reasons(json, "refused", service->ended, true);
        json_reasons(json, "ended", service->ended, false);
        if (plan->services[i].gate) {
            json_object(json, "gate");
            json_reasons(json, "refused", service->gate_ended, true);
            json_reasons(json, "ended", service->gate_ended, false);
            json_object_end(json);
        }
        json_object_end(json);
    }
    json_object_end(json);
}

/* The sum over all clients of one of their counts, by the second. */
static void json_client_series(struct json *json, const char *key, const struct scenario *plan,
                               const struct world_result *result, bool good)
{
    json_array(json, key);
    for (uint32_t s = 0; s < result->seconds; s++) {
        uint64_t sum = 0;
        for (uint32_t c = 0; c < plan->client_count; c++) {
            sum += good ? result->client[c].good[s] : result->client[c].begun[s];
        }
        json_integer(json, NULL, sum);
    }
    json_array_end(json);
}

static void json_counts(struct json *json, const char *key, const uint64_t *by_second, uint32_t seconds)
{
    json_array(json, key);
    for (uint32_t s = 0; s < seconds; s++) {
        json_integer(json, NULL, by_second[s]);
    }
    json_array_end(json);
}

static void json_shares(struct json *json, const char *key, const uint64_t *by_second, uint32_t seconds)
{
    json_array(json, key);
    for (uint32_t s = 0; s < seconds; s++) {
        json_ppm(json, NULL, by_second[s]);
    }
    json_array_end(json);
}

static void json_limits(struct json *json, const uint64_t *by_second, uint32_t seconds)
{
    json_array(json, "limit");
    for (uint32_t s = 0; s < seconds; s++) {
        if (by_second[s] == UINT32_MAX) {
            json_null(json, NULL);
        } else {
            json_integer(json, NULL, by_second[s]);
        }
    }
    json_array_end(json);
}

static void json_service_series(struct json *json, const struct world_service *service, uint32_t seconds, bool streams,
                                bool refused)
{
    json_counts(json, "arrivals", service->arrivals, seconds);
    json_counts(json, "retries", service->retried, seconds);
    json_counts(json, "good", service->good, seconds);
    json_counts(json, "failed", service->failed, seconds);
    json_counts(json, "queue", service->queue, seconds);
    json_shares(json, "budget", service->budget_ppm, seconds);
    json_shares(json, "breaker_open", service->breaker_open_ppm, seconds);
    json_limits(json, service->limit, seconds);
    if (refused) {
        json_counts(json, "connections_refused", service->refused, seconds);
    }
    if (service->shared.instances > 0) {
        json_counts(json, "degraded", service->degraded, seconds);
    }
    if (streams) {
        json_counts(json, "answers", service->answers, seconds);
    }
}

static void json_series(struct json *json, const struct scenario *plan, const struct report_run *run)
{
    const struct world_result *result = run->result;
    json_object(json, "series");
    json_object(json, "clients");
    json_client_series(json, "calls", plan, result, false);
    json_client_series(json, "successes", plan, result, true);
    json_object_end(json);
    if (plan->client_count > 1) {
        json_object(json, "by_client");
        for (uint32_t i = 0; i < plan->client_count; i++) {
            json_object(json, plan->clients[i].name);
            json_counts(json, "calls", result->client[i].begun, result->seconds);
            json_counts(json, "successes", result->client[i].good, result->seconds);
            json_object_end(json);
        }
        json_object_end(json);
    }
    json_object(json, "services");
    for (uint32_t i = 0; i < plan->service_count; i++) {
        json_object(json, plan->services[i].name);
        bool refused = run->measure->service[i].refused_1s_ppm > 0;
        bool streams = scenario_streams(&plan->services[i]);
        json_service_series(json, &result->service[i], result->seconds, streams, refused);
        json_object_end(json);
    }
    json_object_end(json);
    json_object_end(json);
}

void sim_json_run(struct json *json, const struct scenario *plan, const struct report_run *run, bool series)
{
    json_object(json, NULL);
    json_text(json, "scenario", plan->name);
    json_integer(json, "seed", run->seed);
    json_text(json, "policy", run->policy);
    json_array(json, "set");
    for (const char *const *set = run->set; *set != NULL; set++) {
        json_text(json, NULL, *set);
    }
    json_array_end(json);
    json_integer(json, "events", run->result->events);
    json_services(json, plan, run);
    json_clients(json, plan, run->measure);
    json_each_client(json, plan, run);
    json_targets(json, plan, run);
    if (series) {
        json_series(json, plan, run);
    }
    json_object_end(json);
}
