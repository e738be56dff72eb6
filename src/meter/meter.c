/* SPDX-License-Identifier: MIT */
#include "meter.h"

#include <string.h>

const uint32_t meter_bound_us[METER_BUCKETS - 1] = {5000,   10000,  25000,   50000,   75000,   100000,  250000,
                                                    500000, 750000, 1000000, 2500000, 5000000, 7500000, 10000000};

static unsigned bucket_of(becalm_ns value)
{
    unsigned i = 0;
    while (i < METER_BUCKETS - 1 && value > meter_bound_us[i] * BECALM_US) {
        i++;
    }
    return i;
}

void meter_observe(struct meter_histogram *histogram, becalm_ns value)
{
    meter_add(&histogram->bucket[bucket_of(value)], 1);
    meter_add(&histogram->sum_us, value / BECALM_US);
}

/* A place that is free is taken; the last one is for all that find none, and its number stays 0. */
void meter_code(struct meter *meter, uint32_t status)
{
    unsigned i = 0;
    BECALM_ASSERT(status > 0);
    for (; i < METER_CODES - 1; i++) {
        uint32_t number = atomic_load_explicit(&meter->code_number[i], memory_order_relaxed);
        if (number == 0) { /* a reader may see the number before the count, which is then 0 */
            atomic_store_explicit(&meter->code_number[i], status, memory_order_relaxed);
        }
        if (number == status || number == 0) {
            break;
        }
    }
    meter_add(&meter->code[i], 1);
}

void meter_attempt(struct meter *meter, const struct becalm_outcome *outcome)
{
    enum meter_status status = METER_SUCCESS;
    if (outcome->status == 0) {
        status = METER_ERROR;
    } else if (outcome->status >= 500) {
        status = METER_SERVER_ERROR;
    }
    meter_add(&meter->attempts[status], 1);
}

void meter_retry(struct meter *meter, uint32_t retry, becalm_ns waited)
{
    BECALM_ASSERT(retry > 0);
    meter_add(&meter->retries[retry < METER_ATTEMPTS ? retry - 1 : METER_ATTEMPTS - 1], 1);
    meter_observe(&meter->delay, waited);
}

void meter_breaker(struct meter *meter, enum becalm_breaker_state from, enum becalm_breaker_state to)
{
    if (from != to) {
        meter_add(&meter->transitions[from][to], 1);
    }
}

/* An attempt that the service answered for good: with success, or with an error that is the caller's. */
static bool is_answered(const struct becalm_record_attempt *attempt)
{
    return !attempt->open && becalm_outcome_traits(attempt->outcome)->verdict == BECALM_VERDICT_OK;
}

static enum meter_result result_of(const struct becalm_record *record)
{
    bool ended_well = record->reason == BECALM_WHY_OK || record->reason == BECALM_WHY_PERMANENT;
    if (!ended_well || record->attempts == 0) {
        return METER_FAILED;
    }
    if (is_answered(&record->attempt[0])) {
        return METER_FIRST_ATTEMPT; /* also where a hedge was sent in vain */
    }
    const struct becalm_record_attempt *last = becalm_record_last(record);
    bool tls = record->reason == BECALM_WHY_PERMANENT && !is_answered(last); /* permanent, but without an answer */
    return tls ? METER_FAILED : METER_AFTER_RETRY;
}

/* Was a retry due that the remaining attempts, budget or time did not allow? */
static bool is_overflow(const struct becalm_record *record)
{
    const struct becalm_record_attempt *last = record->reason == BECALM_WHY_OK ? NULL : becalm_record_last(record);
    if (last == NULL || last->open) {
        return false;
    }
    switch (record->reason) {
    case BECALM_WHY_BUDGET_EMPTY:
    case BECALM_WHY_BREAKER_OPEN:
    case BECALM_WHY_PROBE_FAILED:
    case BECALM_WHY_LIMIT:
    case BECALM_WHY_ANSWERS:
    case BECALM_WHY_RATE:
    case BECALM_WHY_STOPPED:
        return true;
    case BECALM_WHY_DEADLINE: /* an attempt that the deadline cut leaves nothing to retry in */
        return last->outcome != BECALM_OUTCOME_CANCELLED;
    case BECALM_WHY_NONE:
    case BECALM_WHY_OK:
    case BECALM_WHY_BACKOFF:
    case BECALM_WHY_HINT:
    case BECALM_WHY_HEDGE:
    case BECALM_WHY_QUEUED:
    case BECALM_WHY_ATTEMPTS_SPENT:
    case BECALM_WHY_NOT_IDEMPOTENT:
    case BECALM_WHY_NOT_REPLAYABLE:
    case BECALM_WHY_NOT_LISTED:
    case BECALM_WHY_PERMANENT:
    case BECALM_WHY_ANSWER_DELIVERED:
    case BECALM_WHY_THROTTLED:
    case BECALM_WHY_SHED:
    case BECALM_WHY_CANCELLED:
    case BECALM_WHY_RETRIES_OFF:
    case BECALM_WHY_NO_HOST:
    case BECALM_WHY_NO_CONNECTION:
        return false;
    }
    BECALM_UNREACHABLE();
}

/* A hedge has won if it brought the answer. */
static void note_hedges(struct meter *meter, const struct becalm_record *record)
{
    uint32_t kept = becalm_record_kept(record);
    uint32_t won = 0;
    for (uint32_t i = 0; record->reason == BECALM_WHY_OK && i < kept; i++) {
        const struct becalm_record_attempt *attempt = &record->attempt[i];
        won |= attempt->hedge && !attempt->open && becalm_outcome_traits(attempt->outcome)->earns;
    }
    meter_add(&meter->hedges[METER_HEDGE_SENT], record->hedges);
    meter_add(&meter->hedges[METER_HEDGE_WON], won);
    meter_add(&meter->hedges[METER_HEDGE_LOST], record->hedges - won);
}

static becalm_ns duration_of(const struct becalm_record *record)
{
    return becalm_ns_since(record->ended_at, record->began_at);
}

void meter_call(struct meter *meter, const struct becalm_record *record)
{
    if (record->hedges > 0) {
        note_hedges(meter, record);
    }
    meter_add(&meter->calls[result_of(record)][record->reason], 1);
    if (is_overflow(record)) {
        meter_add(&meter->overflow[record->reason], 1);
    }
    if (record->attempts == 0 && record->reason != BECALM_WHY_CANCELLED) {
        meter_add(&meter->shed[record->reason], 1);
    }
    if (record->parked > 0) {
        meter_add(&meter->parked, 1);
    }
    if (record->would != BECALM_WHY_NONE) {
        meter_add(&meter->would[record->would], 1);
    }
    meter_observe(&meter->duration, duration_of(record));
}

/* Release: a reader that sees one of these words, or the even turn, also sees the odd turn before it. */
static void put_word(meter_count *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}

void meter_exemplar(struct meter *meter, const struct becalm_record *record, uint64_t wall,
                    const char trace_id[METER_TRACE])
{
    becalm_ns took = duration_of(record);
    struct meter_exemplar *exemplar = &meter->exemplar[bucket_of(took)];
    uint32_t turn = atomic_load_explicit(&exemplar->turn, memory_order_relaxed); /* only this thread writes it */
    uint64_t words[METER_TRACE_WORDS];
    memcpy(words, trace_id, sizeof words);
    atomic_store_explicit(&exemplar->turn, turn + 1, memory_order_relaxed);
    put_word(&exemplar->value_us, took / BECALM_US);
    put_word(&exemplar->wall_ms, wall / BECALM_MS);
    for (size_t i = 0; i < METER_TRACE_WORDS; i++) {
        put_word(&exemplar->trace[i], words[i]);
    }
    turn = turn + 2 == 0 ? 2 : turn + 2;
    atomic_store_explicit(&exemplar->turn, turn, memory_order_release);
}

/* Acquire: the second look at the turn comes after the words, and the words after the first. */
static bool exemplar_read(const struct meter_exemplar *exemplar, struct meter_example *example)
{
    uint64_t words[METER_TRACE_WORDS];
    uint32_t turn = atomic_load_explicit(&exemplar->turn, memory_order_acquire);
    example->value_us = atomic_load_explicit(&exemplar->value_us, memory_order_acquire);
    example->wall_ms = atomic_load_explicit(&exemplar->wall_ms, memory_order_acquire);
    for (size_t i = 0; i < METER_TRACE_WORDS; i++) {
        words[i] = atomic_load_explicit(&exemplar->trace[i], memory_order_acquire);
    }
    memcpy(example->trace_id, words, METER_TRACE);
    example->trace_id[METER_TRACE] = '\0';
    return turn != 0 && turn % 2 == 0 && turn == atomic_load_explicit(&exemplar->turn, memory_order_relaxed);
}

bool meter_example(const struct meter *const *meters, uint32_t count, uint32_t bucket, struct meter_example *example)
{
    bool found = false;
    for (uint32_t i = 0; i < count; i++) {
        struct meter_example one;
        if (exemplar_read(&meters[i]->exemplar[bucket], &one) && (!found || one.wall_ms > example->wall_ms)) {
            *example = one;
            found = true;
        }
    }
    return found;
}

uint64_t meter_total(const struct meter *const *meters, uint32_t count, size_t offset)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        const meter_count *one = (const meter_count *)((const char *)meters[i] + offset);
        sum += atomic_load_explicit(one, memory_order_relaxed);
    }
    return sum;
}

uint64_t meter_arrivals(const struct meter *const *meters, uint32_t count)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < METER_PROTOCOL_COUNT; i++) {
        sum += meter_total(meters, count, offsetof(struct meter, arrivals[i]));
    }
    return sum;
}

const char *meter_result_word(enum meter_result result)
{
    static const char *const word[METER_RESULT_COUNT] = {"first_attempt", "after_retry", "failed"};
    return word[result];
}

const char *meter_status_word(enum meter_status status)
{
    static const char *const word[METER_STATUS_COUNT] = {"success", "server_error", "error"};
    return word[status];
}

const char *meter_hedge_word(enum meter_hedge result)
{
    static const char *const word[METER_HEDGE_COUNT] = {"sent", "won", "lost"};
    return word[result];
}

const char *meter_protocol_word(enum meter_protocol protocol)
{
    static const char *const word[METER_PROTOCOL_COUNT] = {"h1", "h2", "grpc"};
    return word[protocol];
}

void meter_totals(const struct meter *meter, uint64_t *calls, uint64_t *retries)
{
    *calls += meter_arrivals(&meter, 1);
    for (uint32_t n = 0; n < METER_ATTEMPTS; n++) {
        *retries += atomic_load_explicit(&meter->retries[n], memory_order_relaxed);
    }
}
