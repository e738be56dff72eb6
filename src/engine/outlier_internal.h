/* SPDX-License-Identifier: MIT */
#ifndef BECALM_OUTLIER_INTERNAL_H
#define BECALM_OUTLIER_INTERNAL_H

#include <becalm/outlier.h>

/* Took this answer a quarter of the attempt's time or longer? Then its host may have a queue. */
static inline bool becalm__is_slow(becalm_ns took, becalm_ns timeout)
{
    return took >= timeout / 4;
}

/* The end of an attempt. */
struct becalm__result {
    const struct becalm_outcome *outcome;
    becalm_ns took; /* until now; 0: not known */
    bool slow;      /* its answer was: see becalm__is_slow() */
};

/* becalm_hosts_note() with more knowledge. */
void becalm__hosts_note(struct becalm_hosts *, const struct becalm_outlier_policy *, const struct becalm_moment *,
                        uint32_t host, const struct becalm__result *);

/* A host's failures in a row. The last one was at calm_since. */
struct becalm__streak {
    uint32_t failures;
    becalm_ns fresh; /* so long after the last failure the host is a second choice */
};

/* In the host's word: `failures` in the low half, `fresh` in microseconds in the high half. A success makes all of it
 * 0. */
static inline uint64_t becalm__streak_word(struct becalm__streak streak)
{
    return streak.fresh / BECALM_US << 32 | streak.failures;
}

static inline struct becalm__streak becalm__streak_of(uint64_t word)
{
    return (struct becalm__streak){.failures = (uint32_t)word, .fresh = (word >> 32) * BECALM_US};
}

static inline struct becalm__streak becalm__streak_read(const struct becalm_host *h)
{
    /* relaxed: calm_since may be of the failure before; a choice by that is still a choice */
    return becalm__streak_of(atomic_load_explicit(&h->streak, memory_order_relaxed));
}

#endif
