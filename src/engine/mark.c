/* SPDX-License-Identifier: MIT */
#include <becalm/mark.h>

#define ONE    UINT64_C(1000000) /* a callee that always fails */
#define WEIGHT 10u               /* one attempt moves the average by a tenth of the way */

void becalm_mark_init(struct becalm_mark *mark)
{
    atomic_init(&mark->failing, 0);
}

/* Everything here is relaxed: the average guards no other memory. */

void becalm_mark_carry(struct becalm_mark *to, const struct becalm_mark *from)
{
    uint64_t failing = atomic_load_explicit(&from->failing, memory_order_relaxed);
    atomic_store_explicit(&to->failing, failing, memory_order_relaxed);
}

/* Rounded away from where it was, so that the average reaches both its ends: 0 exactly, after which a healthy callee is
 * not written any more, and ONE exactly. */
static uint64_t tenth(uint64_t distance)
{
    return (distance + WEIGHT - 1) / WEIGHT;
}

static void note(struct becalm_mark *mark, bool failed)
{
    const uint64_t goal = failed ? ONE : 0;
    uint64_t was = atomic_load_explicit(&mark->failing, memory_order_relaxed);
    while (was != goal) { /* already there: no write */
        uint64_t then = failed ? was + tenth(goal - was) : was - tenth(was);
        if (atomic_compare_exchange_weak_explicit(&mark->failing, &was, then, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            return;
        }
    }
}

void becalm_mark_note(struct becalm_mark *mark, const struct becalm_outcome *outcome)
{
    switch (becalm_outcome_traits(outcome->kind)->verdict) {
    case BECALM_VERDICT_OK:
        note(mark, false);
        return;
    case BECALM_VERDICT_FAILED:
        note(mark, true);
        return;
    case BECALM_VERDICT_NEUTRAL:
        return; /* a rate limit or a conflict is an answer, and says nothing about the callee's health */
    }
    BECALM_UNREACHABLE();
}

bool becalm_mark_failing(const struct becalm_mark *mark)
{
    return atomic_load_explicit(&mark->failing, memory_order_relaxed) > ONE / 2;
}

bool becalm_mark_honour(const struct becalm_mark *mark, enum becalm_mark_kind kind)
{
    switch (kind) {
    case BECALM_MARK_NONE:
    case BECALM_MARK_OVERLOADED_HOST:
        return false;
    case BECALM_MARK_OVERLOADED:
        return true;
    case BECALM_MARK_SPENT:
    case BECALM_MARK_UNASKED:
        return becalm_mark_failing(mark);
    }
    BECALM_UNREACHABLE();
}

bool becalm_mark_unasked(enum becalm_mark_kind kind)
{
    switch (kind) {
    case BECALM_MARK_NONE:
    case BECALM_MARK_SPENT:
        return false;
    case BECALM_MARK_OVERLOADED_HOST:
    case BECALM_MARK_OVERLOADED:
    case BECALM_MARK_UNASKED:
        return true;
    }
    BECALM_UNREACHABLE();
}

enum becalm_mark_kind becalm_mark_for(enum becalm_reason reason, const struct becalm_gate *gate)
{
    const bool overloaded = gate != NULL && becalm_gate_overloaded(gate);
    switch (reason) {
    case BECALM_WHY_ATTEMPTS_SPENT:
    case BECALM_WHY_BUDGET_EMPTY:
    case BECALM_WHY_BREAKER_OPEN:
    case BECALM_WHY_PROBE_FAILED:
    case BECALM_WHY_DEADLINE:
    case BECALM_WHY_THROTTLED:
    case BECALM_WHY_RATE:
    case BECALM_WHY_LIMIT:
    case BECALM_WHY_ANSWERS:
    case BECALM_WHY_NO_CONNECTION:
    case BECALM_WHY_NO_HOST: /* the call waited here for the host: a retry of the layer above would only wait again */
    case BECALM_WHY_STOPPED: /* a lower layer said so already: the mark goes on travelling up */
        return overloaded ? BECALM_MARK_OVERLOADED : BECALM_MARK_SPENT;
    case BECALM_WHY_SHED:        /* a gate that only sheds a call now and then wants the layer above to retry */
    case BECALM_WHY_RETRIES_OFF: /* nothing was spent here: the layer above is the one to retry */
        return overloaded ? BECALM_MARK_OVERLOADED : BECALM_MARK_NONE;
    case BECALM_WHY_OK:
    case BECALM_WHY_PERMANENT:
    case BECALM_WHY_NOT_IDEMPOTENT:
    case BECALM_WHY_NOT_REPLAYABLE:
    case BECALM_WHY_NOT_LISTED:
    case BECALM_WHY_ANSWER_DELIVERED:
    case BECALM_WHY_CANCELLED:
    case BECALM_WHY_NONE: /* from here on: no end of a call */
    case BECALM_WHY_BACKOFF:
    case BECALM_WHY_HINT:
    case BECALM_WHY_HEDGE:
    case BECALM_WHY_QUEUED:
        return BECALM_MARK_NONE;
    }
    BECALM_UNREACHABLE();
}
