/* SPDX-License-Identifier: MIT */
#include "world_internal.h"

#include <stdlib.h>
#include <string.h>

#define MILLION     1000000u
#define SAMPLES_MAX 1024u /* callers of a hop that are looked at each second: more would cost more than the world */

/* All series of a service are one block, in this order. */
static bool service_series(struct world_service *service, uint32_t seconds)
{
    uint64_t **each[] = {&service->arrivals, &service->refused,  &service->retried,    &service->good,
                         &service->failed,   &service->queue,    &service->budget_ppm, &service->breaker_open_ppm,
                         &service->limit,    &service->degraded, &service->answers};
    size_t count = sizeof each / sizeof *each;
    uint64_t *block = calloc(count * seconds, sizeof *block);
    for (size_t i = 0; block != NULL && i < count; i++) {
        *each[i] = block + i * seconds;
    }
    return block != NULL;
}

bool series_make(const struct scenario *plan, struct world_result *result)
{
    memset(result, 0, sizeof *result);
    result->seconds = (uint32_t)(plan->length / BECALM_S);
    result->stuck_at = BECALM_NEVER;
    result->service = calloc(plan->service_count, sizeof *result->service);
    result->client = calloc(plan->client_count, sizeof *result->client);
    if (result->service == NULL || result->client == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < plan->service_count; i++) {
        struct world_service *service = &result->service[i];
        service->endpoint = calloc(1 + plan->services[i].endpoint_count, sizeof *service->endpoint);
        if (service->endpoint == NULL || !service_series(service, result->seconds)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < plan->client_count; i++) {
        result->client[i].begun = calloc(result->seconds, sizeof(uint64_t));
        result->client[i].good = calloc(result->seconds, sizeof(uint64_t));
        if (result->client[i].begun == NULL || result->client[i].good == NULL) {
            return false;
        }
    }
    return true;
}

void world_result_free(const struct scenario *plan, struct world_result *result)
{
    for (uint32_t i = 0; result->service != NULL && i < plan->service_count; i++) {
        free(result->service[i].endpoint);
        free(result->service[i].arrivals); /* the block of all its series */
        free(result->service[i].recovery);
    }
    for (uint32_t i = 0; result->client != NULL && i < plan->client_count; i++) {
        free(result->client[i].begun);
        free(result->client[i].good);
    }
    free(result->service);
    free(result->client);
    result->service = NULL;
    result->client = NULL;
}

/* 64 buckets for every power of two of microseconds: a quantile is too high by 1/64 at most. */
static uint32_t latency_bucket(uint64_t us)
{
    if (us < 64) {
        return (uint32_t)us;
    }
    uint32_t power = 63 - (uint32_t)__builtin_clzll(us);
    uint32_t bucket = (power - 5) * 64 + (uint32_t)(us >> (power - 6)) - 64;
    return bucket < WORLD_LATENCIES ? bucket : WORLD_LATENCIES - 1;
}

/* The longest latency of a bucket: the output says "up to". */
static uint64_t bucket_most(uint32_t bucket)
{
    if (bucket < 128) {
        return bucket;
    }
    uint32_t power = bucket / 64 + 5;
    uint64_t width = UINT64_C(1) << (power - 6);
    return (64 + bucket % 64) * width + width - 1;
}

void series_latency(struct world_latency *latency, becalm_ns took)
{
    uint64_t us = took / BECALM_US;
    latency->sum_us += us;
    latency->count++;
    latency->most_us = us > latency->most_us ? us : latency->most_us;
    latency->bucket[latency_bucket(us)]++;
}

uint64_t world_latency_us(const struct world_latency *latency, uint32_t ppm)
{
    uint64_t rank = (latency->count * ppm + MILLION - 1) / MILLION;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < WORLD_LATENCIES; i++) {
        seen += latency->bucket[i];
        if (seen >= rank && seen > 0) {
            return bucket_most(i) < latency->most_us ? bucket_most(i) : latency->most_us;
        }
    }
    return 0;
}

/* The sums over all callers of one service. */
struct look {
    uint64_t callers;
    uint64_t fill_ppm;
    uint64_t open;
    uint64_t limit;
};

static void target_look(const struct world *w, const struct becalm_target *target, const struct becalm_policy *policy,
                        struct look *look)
{
    look->callers++;
    look->fill_ppm +=
        target->budget == NULL ? MILLION : becalm_budget_fill_ppm(target->budget, &policy->budget, w->clock.now);
    look->open += target->breaker != NULL && !becalm_breaker_closed(target->breaker);
}

static uint64_t limit_look(const struct state *state, const struct becalm_policy *policy)
{
    return state->target.limit == NULL ? UINT32_MAX : becalm_limit_now(state->target.limit, &policy->limit);
}

/* Of many callers a part, of each of these all kinds. */
static void hop_look(const struct world *w, const struct hop *hop, struct look *look)
{
    uint32_t most = SAMPLES_MAX > hop->kinds ? SAMPLES_MAX / hop->kinds : 1;
    uint32_t step = (hop->callers + most - 1) / most;
    for (uint32_t caller = 0; caller < hop->callers; caller += step) {
        for (uint32_t kind = 0; kind < hop->kinds; kind++) {
            const struct state *state = hop->state[(size_t)caller * hop->kinds + kind];
            if (state != NULL && state->used) { /* a caller that has not called yet has lost nothing yet */
                const struct becalm_policy *policy = &hop->rules[kind].policy;
                target_look(w, &state->target, policy, look);
                /* For callers this becomes the mean. The limits of a gate are added up, and a limit that endpoints
                 * share counts once. */
                look->limit += hop->is_gate && state->limited != state ? 0 : limit_look(state, policy);
            }
        }
    }
}

static uint64_t waiting(const struct world *w, const struct service *service)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < service->plan->hosts; i++) {
        sum += service->host[i].queue.count;
    }
    return service->gate == NOTHING ? sum : sum + gate_waiting(&w->hop[service->gate]);
}

void series_second(struct world *w, uint32_t second)
{
    for (uint32_t i = 0; i < w->plan->service_count; i++) {
        struct world_service *counts = &w->result->service[i];
        struct look look = {0, 0, 0, 0};
        struct look gate = {0, 0, 0, 0};
        for (uint32_t h = 0; h < w->hop_count; h++) {
            if (w->hop[h].to == i) {
                hop_look(w, &w->hop[h], w->hop[h].is_gate ? &gate : &look);
            }
        }
        counts->queue[second] = waiting(w, &w->service[i]);
        counts->answers[second] = w->service[i].answers;
        counts->budget_ppm[second] = look.callers == 0 ? MILLION : look.fill_ppm / look.callers;
        counts->breaker_open_ppm[second] = look.callers == 0 ? 0 : look.open * MILLION / look.callers;
        counts->limit[second] = gate.callers > 0   ? gate.limit
                                : look.callers > 0 ? look.limit / look.callers
                                                   : UINT32_MAX;
    }
}
