/* SPDX-License-Identifier: MIT */
#ifndef BECALM_LIMIT_INTERNAL_H
#define BECALM_LIMIT_INTERNAL_H

#include <becalm/limit.h>

/* What a success must ask before it can leave a limit as it is. Here, so that a hot path can ask without a call. */

#define BECALM__PACE_FULL      UINT32_C(1000000) /* of the pace word: every attempt is admitted */
#define BECALM__OK_FRESH       BECALM_MS         /* last_ok_at is not written again for so long, ... */
#define BECALM__OK_FRESH_SHARE 64                /* ... or for this part of the timeout */
#define BECALM__RUN_MAX        UINT32_C(0xffff)

/* Of the evidence word: timeouts since the last success. */
static inline uint32_t becalm__evidence_run(uint64_t word)
{
    return (uint32_t)(word >> 16 & BECALM__RUN_MAX);
}

/* Integer steps per slot, so that the smallest growth is one of them. A fixed limit does not use its units. */
static inline uint64_t becalm__units_per_slot(enum becalm_limit_kind kind)
{
    return kind == BECALM_LIMIT_SLOTS ? 4 : 20;
}

/* The attempts in flight including the one now ending, which has not given its place back yet. */
static inline uint64_t becalm__in_flight_with(const struct becalm_limit *limit)
{
    uint32_t in_flight = (uint32_t)atomic_load_explicit(&limit->places, memory_order_relaxed);
    return in_flight > 0 ? in_flight : 1;
}

/* Only while half of the limit is used: otherwise nobody knows yet what the present one is good for. */
static inline bool becalm__units_can_grow(const struct becalm_limit *limit, enum becalm_limit_kind kind, uint64_t max,
                                          uint64_t units)
{
    uint64_t per = becalm__units_per_slot(kind);
    return 2 * per * becalm__in_flight_with(limit) >= units && units < max * per;
}

static inline bool becalm__success_is_news(const struct becalm_limit *limit, becalm_ns now, becalm_ns timeout)
{
    becalm_ns ok_at = atomic_load_explicit(&limit->last_ok_at, memory_order_relaxed);
    return becalm_ns_since(now, ok_at) >= becalm_ns_min(BECALM__OK_FRESH, timeout / BECALM__OK_FRESH_SHARE);
}

/* Would a success, as far as its latency does not count, change nothing? */
static inline bool becalm__limit_rests(const struct becalm_limit *limit, enum becalm_limit_kind kind, uint32_t max,
                                       becalm_ns now, const struct becalm_slot *slot)
{
    return !becalm__success_is_news(limit, now, slot->timeout) &&
           atomic_load_explicit(&limit->pace, memory_order_relaxed) == BECALM__PACE_FULL &&
           !becalm__units_can_grow(limit, kind, max, atomic_load_explicit(&limit->units, memory_order_relaxed)) &&
           becalm__evidence_run(atomic_load_explicit(&limit->evidence, memory_order_relaxed)) == 0;
}

/* becalm_limit_note() for a slot that is held, in any case. */
void becalm__limit_note_any(struct becalm_limit *, const struct becalm_limit_policy *, const struct becalm_moment *,
                            struct becalm_slot *, enum becalm_evidence);

/* The same with the usual way of aimd inlined. */
static inline void becalm__limit_note(struct becalm_limit *limit, const struct becalm_limit_policy *policy,
                                      const struct becalm_moment *at, struct becalm_slot *slot,
                                      enum becalm_evidence evidence)
{
    if (evidence == BECALM_EVIDENCE_SUCCESS && policy->kind == BECALM_LIMIT_AIMD &&
        becalm__limit_rests(limit, BECALM_LIMIT_AIMD, policy->max, at->now, slot)) {
        slot->noted = true;
    } else {
        becalm__limit_note_any(limit, policy, at, slot, evidence);
    }
}

#endif
