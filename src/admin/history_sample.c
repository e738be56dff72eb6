/* SPDX-License-Identifier: MIT */
#include "history.h"

#include <stdlib.h>
#include <string.h>

/* Reads meters and gauges into samples, once a second. Counts are kept as they were, for the difference. */

struct counts {
    uint64_t arrivals;
    uint64_t calls[METER_RESULT_COUNT];
    uint64_t attempts[METER_STATUS_COUNT];
    uint64_t retries, hedges, shed;
    uint64_t refused[HISTORY_REFUSALS];
    uint64_t transitions[METER_STATES][METER_STATES];
};

/* The history of a target. In the next snapshot the target is found by its meters, which live as long as its name. */
struct entry {
    struct meters *meters; /* only to compare */
    struct counts before;
    struct history_sample latest;
    struct history_target *past; /* NULL: none yet */
};

struct service_entry {
    struct meters *meters; /* of its own rules: only to compare */
    struct history_service *past;
};

struct history {
    struct snapshot *snapshot; /* that the entries belong to; held, so that no new meters have an old one's address */
    struct entry *entry;
    uint32_t entry_count;
    struct service_entry *service;
    uint32_t service_count;
    size_t bytes; /* that the pasts of targets take */
    becalm_ns noted_at;
    uint64_t number; /* of seconds noted */
};

/* ---- counts ---- */

static uint64_t total(const struct meters *meters, size_t offset)
{
    return meter_total((const struct meter *const *)meters->meter, meters->count, offset);
}

#define TOTAL(meters, field) total(meters, offsetof(struct meter, field))

/* A meter's overflow has no other reasons than these and the budget. */
static const enum history_refusal refusal_of[BECALM_REASON_COUNT] = {
    [BECALM_WHY_BUDGET_EMPTY] = HISTORY_BUDGET_EMPTY,
    [BECALM_WHY_BREAKER_OPEN] = HISTORY_BREAKER_OPEN,
    [BECALM_WHY_PROBE_FAILED] = HISTORY_BREAKER_OPEN,
    [BECALM_WHY_DEADLINE] = HISTORY_DEADLINE,
    [BECALM_WHY_LIMIT] = HISTORY_LIMIT,
    [BECALM_WHY_ANSWERS] = HISTORY_LIMIT,
    [BECALM_WHY_RATE] = HISTORY_LIMIT,
    [BECALM_WHY_STOPPED] = HISTORY_STOPPED,
};

static void counts_read(const struct meters *meters, struct counts *counts)
{
    memset(counts, 0, sizeof *counts);
    counts->arrivals = meter_arrivals((const struct meter *const *)meters->meter, meters->count);
    for (uint32_t reason = 0; reason < BECALM_REASON_COUNT; reason++) {
        for (uint32_t i = 0; i < METER_RESULT_COUNT; i++) {
            counts->calls[i] += TOTAL(meters, calls[i][reason]);
        }
        counts->refused[refusal_of[reason]] += TOTAL(meters, overflow[reason]);
        counts->shed += TOTAL(meters, shed[reason]);
    }
    for (uint32_t i = 0; i < METER_STATUS_COUNT; i++) {
        counts->attempts[i] = TOTAL(meters, attempts[i]);
    }
    for (uint32_t i = 0; i < METER_ATTEMPTS; i++) {
        counts->retries += TOTAL(meters, retries[i]);
    }
    counts->hedges = TOTAL(meters, hedges[METER_HEDGE_SENT]);
    for (uint32_t from = 0; from < METER_STATES; from++) {
        for (uint32_t to = 0; to < METER_STATES; to++) {
            counts->transitions[from][to] = TOTAL(meters, transitions[from][to]);
        }
    }
}

static uint32_t narrow(uint64_t value)
{
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static uint32_t gone_up(uint64_t now, uint64_t before)
{
    return now > before ? narrow(now - before) : 0;
}

static void sample_counts(struct history_sample *sample, const struct counts *now, const struct counts *before)
{
    sample->arrivals = gone_up(now->arrivals, before->arrivals);
    sample->first_attempt = gone_up(now->calls[METER_FIRST_ATTEMPT], before->calls[METER_FIRST_ATTEMPT]);
    sample->after_retry = gone_up(now->calls[METER_AFTER_RETRY], before->calls[METER_AFTER_RETRY]);
    sample->failed = gone_up(now->calls[METER_FAILED], before->calls[METER_FAILED]);
    for (uint32_t i = 0; i < METER_STATUS_COUNT; i++) {
        uint32_t more = gone_up(now->attempts[i], before->attempts[i]);
        sample->attempts += more;
        sample->attempts_failed += i == METER_SUCCESS ? 0 : more;
    }
    sample->retries = gone_up(now->retries, before->retries);
    sample->hedges = gone_up(now->hedges, before->hedges);
    sample->shed = gone_up(now->shed, before->shed);
    for (uint32_t i = 0; i < HISTORY_REFUSALS; i++) {
        sample->refused[i] = gone_up(now->refused[i], before->refused[i]);
    }
    for (uint32_t from = 0; from < METER_STATES; from++) {
        sample->opened +=
            gone_up(now->transitions[from][BECALM_BREAKER_OPEN], before->transitions[from][BECALM_BREAKER_OPEN]);
    }
}

/* ---- gauges ---- */

static uint32_t thousandths(uint64_t millionths)
{
    return millionths == UINT64_MAX ? UINT32_MAX : narrow(millionths / 1000);
}

static uint32_t quantile_us(const struct becalm_sketch *sketch, becalm_ns now, uint32_t ppm)
{
    return narrow(becalm_sketch_quantile(sketch, now, ppm) / BECALM_US);
}

static void sample_gauges(struct history_sample *sample, const struct snapshot_target *target, becalm_ns now)
{
    const struct becalm_target *parts = &target->state->target;
    const struct becalm_policy *policy = &target->state->policy;
    bool measured = becalm_sketch_count(parts->sketch, now) > 0;
    uint64_t in_flight = TOTAL(target->meters, in_flight);
    uint64_t answers = TOTAL(target->meters, answers); /* as the limit counts: they are not in flight any more */
    sample->in_flight = in_flight > answers ? narrow(in_flight - answers) : 0;
    sample->waiting = narrow(becalm_gate_waiting(parts->gate));
    sample->limit = becalm_limit_now(parts->limit, &policy->limit);
    sample->budget_left = thousandths(becalm_budget_left(parts->budget, &policy->budget, now));
    sample->budget_cap = thousandths(becalm_budget_cap(parts->budget, &policy->budget, now));
    sample->p50_us = measured ? quantile_us(parts->sketch, now, 500000) : UINT32_MAX;
    sample->p95_us = measured ? quantile_us(parts->sketch, now, 950000) : UINT32_MAX;
    sample->p99_us = measured ? quantile_us(parts->sketch, now, 990000) : UINT32_MAX;
    sample->breaker = (uint32_t)becalm_breaker_state(parts->breaker);
}

/* ---- moves of a breaker ---- */

/* Those that the meters counted, and an order of the operator, which they do not: the state is another one than where
 * the counted moves can have led. */
static void note_moves(struct entry *entry, const struct counts *now, const struct history_sample *sample)
{
    bool led_there = sample->breaker == entry->latest.breaker;
    for (uint32_t from = 0; from < METER_STATES; from++) {
        for (uint32_t to = 0; to < METER_STATES; to++) {
            uint32_t count = gone_up(now->transitions[from][to], entry->before.transitions[from][to]);
            if (count > 0) {
                history_target_move(entry->past, &(struct history_move){sample->wall_ms, from, to, count});
                led_there = led_there || to == sample->breaker;
            }
        }
    }
    if (!led_there) {
        history_target_move(entry->past,
                            &(struct history_move){sample->wall_ms, entry->latest.breaker, sample->breaker, 1});
    }
    history_target_stay(entry->past, sample, sample->opened,
                        gone_up(now->transitions[BECALM_BREAKER_HALF_OPEN][BECALM_BREAKER_OPEN],
                                entry->before.transitions[BECALM_BREAKER_HALF_OPEN][BECALM_BREAKER_OPEN]));
}

/* ---- targets and services ---- */

struct history *history_make(void)
{
    return calloc(1, sizeof(struct history));
}

static void entries_free(struct history *history)
{
    for (uint32_t i = 0; i < history->entry_count; i++) {
        if (history->entry[i].past != NULL) {
            history->bytes -= history_target_bytes();
        }
        history_target_free(history->entry[i].past);
    }
    for (uint32_t i = 0; i < history->service_count; i++) {
        history_service_free(history->service[i].past);
    }
    free(history->entry);
    free(history->service);
    history->entry = NULL;
    history->service = NULL;
    history->entry_count = history->service_count = 0;
}

void history_free(struct history *history)
{
    if (history != NULL) {
        entries_free(history);
        snapshot_drop(history->snapshot);
        free(history);
    }
}

/* Takes an entry of the snapshot before over into the new one's place. A new target's counts begin at 0, as do its
 * meters, and its breaker as the policy says. */
static void entry_move(struct history *history, struct entry *to, const struct snapshot_target *target)
{
    struct meters *meters = target->meters;
    to->meters = meters;
    to->latest.breaker = target->state->policy.breaker.enabled ? BECALM_BREAKER_CLOSED : BECALM_BREAKER_DISABLED;
    for (uint32_t i = 0; i < history->entry_count; i++) {
        if (history->entry[i].meters == meters) {
            *to = history->entry[i];
            history->entry[i].past = NULL;
            return;
        }
    }
}

static void service_move(struct history *history, struct service_entry *to, struct meters *meters)
{
    to->meters = meters;
    for (uint32_t i = 0; i < history->service_count; i++) {
        if (history->service[i].meters == meters) {
            *to = history->service[i];
            history->service[i].past = NULL;
            return;
        }
    }
}

/* False: no memory; the entries stay those of the snapshot before. */
static bool adopt(struct history *history, struct snapshot *snapshot)
{
    struct entry *entry = calloc(snapshot->target_count + 1, sizeof *entry);
    struct service_entry *service = calloc(snapshot->service_count + 1, sizeof *service);
    if (entry == NULL || service == NULL) {
        free(entry);
        free(service);
        return false;
    }
    for (uint32_t i = 0; i < snapshot->target_count; i++) {
        entry_move(history, &entry[i], &snapshot->target[i]);
    }
    for (uint32_t i = 0; i < snapshot->service_count; i++) {
        service_move(history, &service[i], snapshot->target[snapshot->service[i].first_target].meters);
    }
    entries_free(history); /* entries without a target in the new snapshot are freed */
    history->entry = entry;
    history->entry_count = snapshot->target_count;
    history->service = service;
    history->service_count = snapshot->service_count;
    snapshot_use(snapshot);
    snapshot_drop(history->snapshot);
    history->snapshot = snapshot;
    return true;
}

/* ---- once a second ---- */

static void note_target(struct history *history, struct entry *entry, const struct snapshot_target *target,
                        becalm_ns now, const struct history_sample *blank)
{
    struct counts counts;
    struct history_sample sample = *blank;
    counts_read(target->meters, &counts);
    sample_counts(&sample, &counts, &entry->before);
    sample_gauges(&sample, target, now);
    bool has_past = counts.arrivals > 0 || sample.breaker != entry->latest.breaker;
    if (entry->past == NULL && has_past && !history_is_full(history)) {
        entry->past = history_target_new();
        history->bytes += entry->past == NULL ? 0 : history_target_bytes();
    }
    if (entry->past != NULL) {
        note_moves(entry, &counts, &sample);
        history_target_note(entry->past, &sample);
    }
    entry->before = counts;
    entry->latest = sample;
}

static void note_service(struct history *history, struct service_entry *entry, const struct snapshot_service *service)
{
    struct history_sample sum = {0};
    for (uint32_t i = 0; i <= service->service->endpoint_count; i++) {
        const struct history_sample *latest = &history->entry[service->first_target + i].latest;
        sum.arrivals = narrow((uint64_t)sum.arrivals + latest->arrivals);
        sum.attempts = narrow((uint64_t)sum.attempts + latest->attempts);
        sum.retries = narrow((uint64_t)sum.retries + latest->retries);
        sum.in_flight = narrow((uint64_t)sum.in_flight + latest->in_flight);
    }
    if (entry->past == NULL && sum.arrivals > 0) {
        entry->past = history_service_new();
    }
    if (entry->past != NULL) {
        history_service_note(entry->past, &sum);
    }
}

void history_note(struct history *history, struct snapshot *snapshot, becalm_ns now, uint64_t wall)
{
    if (history->snapshot != snapshot && !adopt(history, snapshot)) {
        return;
    }
    struct history_sample blank = {
        .wall_ms = wall / BECALM_MS,
        .span_ms = history->number > 0 ? narrow(becalm_ns_since(now, history->noted_at) / BECALM_MS) : 1000,
    };
    for (uint32_t i = 0; i < snapshot->target_count; i++) {
        note_target(history, &history->entry[i], &snapshot->target[i], now, &blank);
    }
    for (uint32_t i = 0; i < snapshot->service_count; i++) {
        note_service(history, &history->service[i], &snapshot->service[i]);
    }
    history->noted_at = now;
    history->number++;
}

/* ---- reading ---- */

uint64_t history_number(const struct history *history)
{
    return history->number;
}

bool history_latest(const struct history *history, const struct snapshot *snapshot, uint32_t target,
                    struct history_sample *sample)
{
    if (history->snapshot != snapshot) {
        return false;
    }
    *sample = history->entry[target].latest;
    return true;
}

bool history_is_full(const struct history *history)
{
    return history->bytes + history_target_bytes() > HISTORY_BYTES_MAX;
}

void history_storm(const struct history *history, const struct snapshot *snapshot, uint32_t service,
                   struct history_storm *storm)
{
    const struct history_service *past = history_service_of(history, snapshot, service);
    *storm = (struct history_storm){0};
    if (past != NULL) {
        history_service_storm(past, storm);
    }
}

const struct history_service *history_service_of(const struct history *history, const struct snapshot *snapshot,
                                                 uint32_t service)
{
    return history->snapshot == snapshot ? history->service[service].past : NULL;
}

const struct history_target *history_of(const struct history *history, const struct snapshot *snapshot, uint32_t target)
{
    return history->snapshot == snapshot ? history->entry[target].past : NULL;
}
