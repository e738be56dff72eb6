/* SPDX-License-Identifier: MIT */
#include "apart_internal.h"
#include "limit_internal.h"

/* The limit of a single caller: timeouts in a row cut it, successes widen it. Of `evidence` it uses the run alone. */

/* Moves the run of timeouts in a row, and returns it. */
static uint32_t run_move(struct becalm_limit *limit, enum becalm_evidence kind)
{
    uint64_t word = atomic_load_explicit(&limit->evidence, memory_order_relaxed);
    uint32_t run;
    do {
        run = becalm__run_after(becalm__evidence_run(word), kind);
    } while (run != becalm__evidence_run(word) &&
             !atomic_compare_exchange_weak_explicit(&limit->evidence, &word, becalm__evidence_with_run(word, run),
                                                    memory_order_relaxed, memory_order_relaxed));
    return run;
}

static void success_note(struct becalm_limit *limit, const struct becalm_limit_policy *policy, becalm_ns now,
                         becalm_ns timeout)
{
    (void)run_move(limit, BECALM_EVIDENCE_SUCCESS);
    becalm__success_stamp(limit, now, timeout);
    becalm__pace_end(limit);
    becalm__units_grow(limit, policy, false);
}

static void timeout_note(struct becalm_limit *limit, const struct becalm_limit_policy *policy, becalm_ns now,
                         becalm_ns timeout)
{
    uint32_t run = run_move(limit, BECALM_EVIDENCE_TIMEOUT);
    if (!becalm__run_tells(limit, now, timeout, run)) {
        return;
    }
    if (becalm__cut_is_ours(limit, now)) {
        becalm__units_cut(limit, policy);
    }
    becalm__pace_at_one(limit, policy, now);
}

BECALM__SELDOM void becalm__aimd_note(struct becalm_limit *limit, const struct becalm_limit_policy *policy,
                                      const struct becalm_moment *at, struct becalm_slot *slot,
                                      enum becalm_evidence evidence)
{
    if (slot->noted || evidence == BECALM_EVIDENCE_NONE) {
        return;
    }
    slot->noted = true;
    switch (evidence) {
    case BECALM_EVIDENCE_SUCCESS:
        success_note(limit, policy, at->now, slot->timeout);
        return;
    case BECALM_EVIDENCE_TIMEOUT:
        timeout_note(limit, policy, at->now, slot->timeout);
        return;
    case BECALM_EVIDENCE_ANSWER:
    case BECALM_EVIDENCE_GIVEN_UP:
    case BECALM_EVIDENCE_NONE:
        return;
    }
    BECALM_UNREACHABLE();
}
