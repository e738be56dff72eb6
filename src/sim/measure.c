/* SPDX-License-Identifier: MIT */
#include "measure.h"

#include <stdlib.h>
#include <string.h>

#define PPM 1000000u

static uint64_t share(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : part * PPM / whole;
}

/* Client calls begun, and those that went well, in the seconds [from, to). */
struct tally {
    uint64_t begun;
    uint64_t good;
};

static struct tally tally(const struct scenario *plan, const struct world_result *result, uint32_t from, uint32_t to)
{
    struct tally sum = {0, 0};
    for (uint32_t c = 0; c < plan->client_count; c++) {
        for (uint32_t s = from; s < to && s < result->seconds; s++) {
            sum.begun += result->client[c].begun[s];
            sum.good += result->client[c].good[s];
        }
    }
    return sum;
}

static uint64_t success(const struct scenario *plan, const struct world_result *result, uint32_t from, uint32_t to)
{
    struct tally sum = tally(plan, result, from, to);
    return share(sum.good, sum.begun);
}

static uint32_t recovered(const struct scenario *plan, const struct world_result *result, uint32_t from)
{
    uint32_t well = 0;
    for (uint32_t s = from; s < result->seconds; s++) {
        struct tally one = tally(plan, result, s, s + 1);
        well = one.good * 100 >= one.begun * 99 ? well + 1 : 0;
        if (well == 10) {
            return s - 9 - from;
        }
    }
    return MEASURE_NEVER;
}

/* Some seconds of a run; or one second as it is planned. */
struct span {
    const struct scenario *plan;
    const struct world_result *result;
    uint32_t from;
    uint32_t to;
    bool planned;
};

static uint64_t begun_milli(const struct span *span, uint32_t client)
{
    const struct scenario_client *plan = &span->plan->clients[client];
    const struct world_client *counts = &span->result->client[client];
    uint64_t sum = 0;
    if (plan->connections > 0) {
        return 0; /* it does not call */
    }
    if (span->planned) { /* the pace of a loop is what came of it */
        return plan->rate_milli > 0 ? plan->rate_milli : counts->calls * 1000 / span->result->seconds;
    }
    for (uint32_t s = span->from; s < span->to; s++) {
        sum += counts->begun[s] * 1000;
    }
    return sum;
}

/* Offered load on a service: what would reach it if every hop made one attempt. */
static uint64_t offered_milli(const struct span *span, uint32_t service, uint32_t depth)
{
    const struct scenario *plan = span->plan;
    uint64_t sum = 0;
    for (uint32_t c = 0; c < plan->client_count; c++) {
        sum += strcmp(plan->clients[c].to, plan->services[service].name) == 0 ? begun_milli(span, c) : 0;
    }
    for (uint32_t s = 0; depth > 0 && s < plan->service_count; s++) {
        for (uint32_t i = 0; plan->services[s].calls != NULL && plan->services[s].calls[i] != NULL; i++) {
            if (strcmp(plan->services[s].calls[i], plan->services[service].name) == 0) {
                sum += offered_milli(span, s, depth - 1) * plan->services[s].fan_out;
            }
        }
    }
    return sum;
}

uint64_t measure_offered_milli(const struct scenario *plan, const struct world_result *result, uint32_t service,
                               uint32_t from, uint32_t to)
{
    const struct span span = {.plan = plan, .result = result, .from = from, .to = to};
    return offered_milli(&span, service, plan->service_count);
}

static uint64_t arrivals(const struct world_result *result, uint32_t service)
{
    uint64_t sum = 0;
    for (uint32_t s = 0; s < result->seconds; s++) {
        sum += result->service[service].arrivals[s];
    }
    return sum;
}

/* The worst of all bins of so many whole seconds. */
static uint64_t peak(const struct world_result *result, uint32_t service, uint32_t bin, uint64_t offered)
{
    uint64_t worst = 0;
    for (uint32_t s = 0; s + bin <= result->seconds; s += bin) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < bin; i++) {
            sum += result->service[service].arrivals[s + i];
        }
        worst = sum > worst ? sum : worst;
    }
    return offered == 0 ? 0 : worst * 1000 * PPM / (offered * bin);
}

/* Since when, after `from`, every 5 s stay within 1.02 of what is offered. It is compared with the calls that clients
 * did begin in these very seconds: their number varies by more than 2 %. */
static uint32_t retries_stop(const struct scenario *plan, const struct world_result *result, uint32_t from)
{
    uint32_t stop = from;
    for (uint32_t service = 0; service < plan->service_count; service++) {
        for (uint32_t s = from; s + 5 <= result->seconds; s += 5) {
            uint64_t offered = measure_offered_milli(plan, result, service, s, s + 5);
            uint64_t sum = 0;
            for (uint32_t i = 0; i < 5; i++) {
                sum += result->service[service].arrivals[s + i];
            }
            if (sum * 1000 * 100 > offered * 102 && s + 5 > stop) {
                stop = s + 5;
            }
        }
    }
    return stop + 5 > result->seconds ? MEASURE_NEVER : stop - from;
}

bool measure_is_bounded(const struct scenario *plan)
{
    bool bounded = true;
    for (uint32_t c = 0; c < plan->client_count; c++) {
        bounded = bounded && plan->clients[c].rate_milli == 0 && plan->clients[c].calls > 0;
    }
    return bounded;
}

static uint64_t completed_us(const struct scenario *plan, const struct world_result *result)
{
    becalm_ns last = 0;
    for (uint32_t c = 0; c < plan->client_count; c++) {
        if (result->client[c].ended < (uint64_t)plan->clients[c].calls * plan->clients[c].callers) {
            return MEASURE_NEVER_US;
        }
        last = becalm_ns_max(last, result->client[c].ended_at);
    }
    return last / BECALM_US;
}

static void recoveries(const struct world_service *counts, struct measure_service *service)
{
    for (uint32_t i = 0; i < counts->recovery_count; i++) {
        const struct world_recovery *recovery = &counts->recovery[i];
        service->falls += recovery->fell_at != BECALM_NEVER;
        service->worst_100ms =
            recovery->worst_100ms > service->worst_100ms ? recovery->worst_100ms : service->worst_100ms;
    }
}

int measure_take(const struct scenario *plan, const struct world_result *result, struct measure *measure)
{
    memset(measure, 0, sizeof *measure);
    measure->service = calloc(plan->service_count, sizeof *measure->service);
    if (measure->service == NULL) {
        return BECALM_ENOMEM;
    }
    const struct span planned = {.plan = plan, .result = result, .planned = true};
    bool faulty = plan->fault_count > 0;
    uint32_t from = faulty ? (uint32_t)(plan->faults[0].at / BECALM_S) : result->seconds;
    becalm_ns over_at = faulty ? becalm_ns_after(plan->faults[0].at, plan->faults[0].length) : 0;
    uint32_t to = faulty ? (uint32_t)(becalm_ns_min(over_at, plan->length) / BECALM_S) : result->seconds;
    measure->success_ppm = success(plan, result, 0, result->seconds);
    measure->success_before_ppm = success(plan, result, 0, from);
    measure->success_in_fault_ppm = success(plan, result, from, to);
    measure->success_after_ppm = success(plan, result, to, to + 60);
    measure->recovered_after_s = faulty ? recovered(plan, result, to) : 0;
    measure->retries_stop_after_s = faulty ? retries_stop(plan, result, to) : 0;
    measure->latency_mean_us = result->latency_count == 0 ? 0 : result->latency_sum_us / result->latency_count;
    measure->completed_us = measure_is_bounded(plan) ? completed_us(plan, result) : MEASURE_NEVER_US;
    uint64_t calls_fault = 0;
    for (uint32_t c = 0; c < plan->client_count; c++) {
        calls_fault += result->client[c].calls_fault;
        measure->calls += result->client[c].calls;
        measure->connections += (uint64_t)plan->clients[c].connections * plan->clients[c].callers;
    }
    for (uint32_t i = 0; i < plan->service_count; i++) {
        struct measure_service *service = &measure->service[i];
        uint64_t offered = offered_milli(&planned, i, plan->service_count);
        service->offered_milli = offered;
        service->mean_ppm =
            faulty ? share(result->service[i].arrivals_fault, calls_fault) : share(arrivals(result, i), measure->calls);
        service->peak_1s_ppm = peak(result, i, 1, offered);
        service->peak_5s_ppm = peak(result, i, 5, offered);
        service->effects = result->service[i].effects;
        recoveries(&result->service[i], service);
        service->attempts = result->service[i].first + result->service[i].retries;
        service->retry_ratio_ppm = share(result->service[i].retries, result->service[i].first);
    }
    return 0;
}

void measure_free(struct measure *measure)
{
    free(measure->service);
    measure->service = NULL;
}
