/* SPDX-License-Identifier: MIT */
#include "history.h"

#include <stdlib.h>
#include <string.h>

/* ---- steps of seconds become steps of minutes ---- */

static const struct {
    uint32_t steps;  /* of the range before that make one of this */
    uint32_t length; /* how many are kept */
} ranges[HISTORY_RANGES] = {
    [HISTORY_MINUTES] = {1, 360},
    [HISTORY_HOUR] = {10, 360},
    [HISTORY_DAY] = {18, 480},
};
#define SAMPLES (360u + 360u + 480u)

struct ring {
    uint32_t first; /* of `sample` in its target */
    uint32_t count; /* ever; the next goes to count % length */
    uint32_t steps; /* that are in `sum` */
    struct history_sample sum;
};

struct history_target {
    struct ring ring[HISTORY_RANGES];
    uint32_t move_count; /* ever */
    struct history_move move[HISTORY_MOVES];
    uint32_t stay_count; /* ever */
    struct history_stay stay[HISTORY_STAYS];
    uint64_t success_ms; /* 0: no call has succeeded */
    struct history_sample sample[SAMPLES];
};

size_t history_target_bytes(void)
{
    return sizeof(struct history_target);
}

struct history_target *history_target_new(void)
{
    struct history_target *target = calloc(1, sizeof *target);
    uint32_t first = 0;
    for (uint32_t i = 0; target != NULL && i < HISTORY_RANGES; i++) {
        target->ring[i].first = first;
        first += ranges[i].length;
    }
    BECALM_ASSERT(target == NULL || first == SAMPLES);
    return target;
}

void history_target_free(struct history_target *target)
{
    free(target);
}

static uint32_t added(uint32_t a, uint32_t b)
{
    return a < UINT32_MAX - b ? a + b : UINT32_MAX;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Counts are added up, in_flight and waiting take the maximum; all other values are those of `next`, the later sample.
 */
static void sample_add(struct history_sample *sum, const struct history_sample *next)
{
    struct history_sample before = *sum;
    *sum = *next;
    sum->span_ms = added(before.span_ms, next->span_ms);
    sum->arrivals = added(before.arrivals, next->arrivals);
    sum->first_attempt = added(before.first_attempt, next->first_attempt);
    sum->after_retry = added(before.after_retry, next->after_retry);
    sum->failed = added(before.failed, next->failed);
    sum->attempts = added(before.attempts, next->attempts);
    sum->attempts_failed = added(before.attempts_failed, next->attempts_failed);
    sum->retries = added(before.retries, next->retries);
    sum->hedges = added(before.hedges, next->hedges);
    for (uint32_t i = 0; i < HISTORY_REFUSALS; i++) {
        sum->refused[i] = added(before.refused[i], next->refused[i]);
    }
    sum->shed = added(before.shed, next->shed);
    sum->opened = added(before.opened, next->opened);
    sum->in_flight = larger(before.in_flight, next->in_flight);
    sum->waiting = larger(before.waiting, next->waiting);
}

void history_target_note(struct history_target *target, const struct history_sample *sample)
{
    struct history_sample step = *sample;
    target->success_ms = sample->first_attempt + sample->after_retry > 0 ? sample->wall_ms : target->success_ms;
    for (uint32_t i = 0; i < HISTORY_RANGES; i++) {
        struct ring *ring = &target->ring[i];
        sample_add(&ring->sum, &step);
        if (++ring->steps < ranges[i].steps) {
            return;
        }
        step = ring->sum;
        target->sample[ring->first + ring->count++ % ranges[i].length] = step;
        ring->steps = 0;
        memset(&ring->sum, 0, sizeof ring->sum);
    }
}

uint32_t history_target_count(const struct history_target *target, enum history_range range)
{
    uint32_t count = target->ring[range].count;
    return count < ranges[range].length ? count : ranges[range].length;
}

const struct history_sample *history_target_at(const struct history_target *target, enum history_range range,
                                               uint32_t index)
{
    const struct ring *ring = &target->ring[range];
    uint32_t oldest = ring->count - history_target_count(target, range);
    return &target->sample[ring->first + (oldest + index) % ranges[range].length];
}

bool history_target_running(const struct history_target *target, enum history_range range,
                            struct history_sample *sample)
{
    uint32_t steps = 0;
    *sample = (struct history_sample){0};
    /* The longer steps first: samples since the last complete long step are in the running steps of the shorter rings.
     */
    for (uint32_t i = range + 1; i-- > 0;) {
        if (target->ring[i].steps > 0) {
            sample_add(sample, &target->ring[i].sum);
            steps += target->ring[i].steps;
        }
    }
    return steps > 0;
}

void history_target_move(struct history_target *target, const struct history_move *move)
{
    target->move[target->move_count++ % HISTORY_MOVES] = *move;
}

uint32_t history_target_moves(const struct history_target *target)
{
    return target->move_count < HISTORY_MOVES ? target->move_count : HISTORY_MOVES;
}

const struct history_move *history_target_move_at(const struct history_target *target, uint32_t index)
{
    uint32_t oldest = target->move_count - history_target_moves(target);
    return &target->move[(oldest + index) % HISTORY_MOVES];
}

/* ---- how long a breaker stayed as it was ---- */

static struct history_stay *stay_now(struct history_target *target)
{
    return target->stay_count == 0 ? NULL : &target->stay[(target->stay_count - 1) % HISTORY_STAYS];
}

static struct history_stay *stay_begin(struct history_target *target, uint32_t state, uint64_t wall_ms)
{
    struct history_stay *before = stay_now(target);
    if (before != NULL) {
        before->until_ms = wall_ms;
    }
    struct history_stay *stay = &target->stay[target->stay_count++ % HISTORY_STAYS];
    *stay = (struct history_stay){.since_ms = wall_ms, .state = state};
    return stay;
}

void history_target_stay(struct history_target *target, const struct history_sample *sample, uint32_t opened,
                         uint32_t failed)
{
    uint32_t state = sample->breaker == BECALM_BREAKER_HALF_OPEN ? BECALM_BREAKER_OPEN : sample->breaker;
    struct history_stay *stay = stay_now(target);
    bool was_open = stay != NULL && stay->state == BECALM_BREAKER_OPEN;
    if (!was_open && (state == BECALM_BREAKER_OPEN || opened > 0)) { /* and if it has closed again within the second */
        stay = stay_begin(target, BECALM_BREAKER_OPEN, sample->wall_ms);
    }
    if (stay != NULL && stay->state == BECALM_BREAKER_OPEN) {
        stay->probes_failed = added(stay->probes_failed, failed);
    }
    if (stay == NULL || stay->state != state) {
        stay_begin(target, state, sample->wall_ms);
    }
}

uint32_t history_target_stays(const struct history_target *target)
{
    return target->stay_count < HISTORY_STAYS ? target->stay_count : HISTORY_STAYS;
}

const struct history_stay *history_target_stay_at(const struct history_target *target, uint32_t index)
{
    uint32_t oldest = target->stay_count - history_target_stays(target);
    return &target->stay[(oldest + index) % HISTORY_STAYS];
}

uint64_t history_target_success_at(const struct history_target *target)
{
    return target->success_ms;
}

/* ---- is it a storm? ---- */

#define MINUTE 60u
#define WINDOW 300u              /* the seconds that the queries of the alerts use */
#define KEPT   (WINDOW + MINUTE) /* the queries compare with a minute that ended that long ago */

struct second {
    uint32_t arrivals, attempts, retries, in_flight;
};

struct history_service {
    uint32_t count; /* ever */
    struct second second[KEPT];
};

struct history_service *history_service_new(void)
{
    return calloc(1, sizeof(struct history_service));
}

void history_service_free(struct history_service *service)
{
    free(service);
}

void history_service_note(struct history_service *service, const struct history_sample *sum)
{
    service->second[service->count++ % KEPT] = (struct second){
        .arrivals = sum->arrivals,
        .attempts = sum->attempts,
        .retries = sum->retries,
        .in_flight = sum->in_flight,
    };
}

/* `age` 0 is the latest. */
static const struct second *second_at(const struct history_service *service, uint32_t age)
{
    return &service->second[(service->count - 1 - age) % KEPT];
}

static uint64_t arrivals_in(const struct history_service *service, uint32_t age)
{
    uint64_t sum = 0;
    for (uint32_t i = age; i < age + MINUTE; i++) {
        sum += second_at(service, i)->arrivals;
    }
    return sum;
}

void history_service_storm(const struct history_service *service, struct history_storm *storm)
{
    uint64_t retries = 0;
    *storm = (struct history_storm){0};
    for (uint32_t i = 0; i < WINDOW && i < service->count; i++) {
        const struct second *second = second_at(service, i);
        storm->attempts += second->attempts;
        retries += second->retries;
        storm->in_flight = larger(storm->in_flight, second->in_flight);
    }
    /* A retry is counted when it is sent and an attempt when it ends, so there may be more of the former. */
    uint64_t attempts = storm->attempts;
    storm->retry_ppm = attempts == 0 ? 0 : (uint32_t)((retries < attempts ? retries : attempts) * 1000000 / attempts);
    if (service->count < KEPT) {
        return;
    }
    uint64_t before = arrivals_in(service, WINDOW);
    storm->has_growth = before > 0;
    if (before > 0) {
        uint64_t ppm = arrivals_in(service, 0) * 1000000 / before;
        storm->growth_ppm = ppm < UINT32_MAX ? (uint32_t)ppm : UINT32_MAX;
    }
}

bool history_service_second(const struct history_service *service, uint32_t age, uint32_t *arrivals, uint32_t *attempts)
{
    if (age >= service->count || age >= KEPT) {
        return false;
    }
    *arrivals = second_at(service, age)->arrivals;
    *attempts = second_at(service, age)->attempts;
    return true;
}
