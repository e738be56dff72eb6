/* SPDX-License-Identifier: MIT */
#ifndef BECALM_DUE_INTERNAL_H
#define BECALM_DUE_INTERNAL_H

/* Inline functions for the hot path. The bits of the word, from the lowest on:
 *   24 bits  the level in ms; 0: nothing is known; 1: half of `least`, below which it does not matter
 *   20 bits  when the present epoch began, in steps of 2^26 ns (67 ms); it wraps after 19 h, which is as good as idle
 *    7 bits  answers in it
 *    6 bits  of them longer than the level
 *    6 bits  longer than half of it, those above among them
 *    1 bit   some was longer than a 64th of it */

#include <becalm/due.h>
#include <becalm/policy.h>

#include "apart_internal.h"

#define DUE_LEVEL_MASK UINT64_C(0xffffff)
#define DUE_FLOOR      UINT64_C(1)
#define DUE_FACTOR     2u
#define DUE_SAMPLE     4u /* bits of chance: of quick answers of a quick service one of 16 is counted, for all of them */

void becalm__due_learn(struct becalm_due *, const struct becalm_moment *, becalm_ns least, becalm_ns took);

static inline void becalm__due_note(struct becalm_due *due, const struct becalm_moment *at, becalm_ns least,
                                    becalm_ns took)
{
    uint64_t word = atomic_load_explicit(&due->word, memory_order_relaxed);
    bool quick = (word & DUE_LEVEL_MASK) == DUE_FLOOR && took <= least / (2 * DUE_FACTOR);
    if (!quick || at->random >> (64 - DUE_SAMPLE) == 0) {
        becalm__due_learn(due, at, least, took);
    }
}

/* The least time after which an attempt is overdue. A written timeout ends an attempt, so its second half is left to a
 * second attempt. */
static inline becalm_ns becalm__due_least(const struct becalm_policy *policy)
{
    return policy->timeout_kind == BECALM_TIMEOUT_EXACT ? policy->attempt_timeout / 2 : policy->attempt_timeout;
}

static inline becalm_ns becalm__due_time(const struct becalm_due *due, becalm_ns least)
{
    uint64_t level = atomic_load_explicit(&due->word, memory_order_relaxed) & DUE_LEVEL_MASK;
    if (level == DUE_FLOOR) {
        return least;
    }
    return becalm_ns_max(least, level == 0 ? BECALM_DUE_START : level * BECALM_MS * DUE_FACTOR);
}

#endif
