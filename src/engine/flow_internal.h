/* SPDX-License-Identifier: MIT */
#ifndef BECALM_FLOW_INTERNAL_H
#define BECALM_FLOW_INTERNAL_H

#include <becalm/gate.h>

/* A small table of flows that threads share without a lock. A place belongs to a flow while that has something there;
 * an idle one may be taken by any flow. A caller of this remembers the place that it found, so that a race costs
 * fairness for a moment and nothing else: two flows in one place, or one flow in two. */

#define BECALM__FLOW_EPOCH_BITS 34u /* 2^34 ns: 17 s */

/* The finaliser of SplitMix64. */
static inline uint64_t becalm__flow_mix(uint64_t bits)
{
    bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
    return bits ^ bits >> 31;
}

/* An owner of 0 means no client: all calls without a client's name are one flow like any other. */
static inline uint64_t becalm__flow_key(uint64_t flow)
{
    return flow == 0 ? UINT64_MAX : flow;
}

/* The flow's own place, or else the first idle one after that which its bits and the time choose. BECALM_FLOWS: none is
 * idle. The time is there for those that have to share a place: whom with changes every 17 s. */
static inline uint32_t becalm__flow_find(const struct becalm_flow *table, uint64_t flow, becalm_ns now,
                                         bool (*is_idle)(uint64_t word, becalm_ns now))
{
    uint64_t key = becalm__flow_key(flow);
    uint32_t home = (uint32_t)becalm__flow_mix(key + (now >> BECALM__FLOW_EPOCH_BITS));
    uint32_t idle = BECALM_FLOWS;
    for (uint32_t i = 0; i < BECALM_FLOWS; i++) {
        uint32_t place = (home + i) % BECALM_FLOWS;
        /* Relaxed, here and below: the words of a table stand for themselves. */
        if (atomic_load_explicit(&table[place].owner, memory_order_relaxed) == key) {
            return place;
        }
        if (idle == BECALM_FLOWS && is_idle(atomic_load_explicit(&table[place].word, memory_order_relaxed), now)) {
            idle = place;
        }
    }
    return idle;
}

/* The same, and makes it the flow's; with none idle it shares one. */
static inline uint32_t becalm__flow_claim(struct becalm_flow *table, uint64_t flow, becalm_ns now,
                                          bool (*is_idle)(uint64_t word, becalm_ns now))
{
    uint64_t key = becalm__flow_key(flow);
    uint32_t place = becalm__flow_find(table, flow, now, is_idle);
    if (place == BECALM_FLOWS) {
        return (uint32_t)becalm__flow_mix(key + (now >> BECALM__FLOW_EPOCH_BITS)) % BECALM_FLOWS;
    }
    if (atomic_load_explicit(&table[place].owner, memory_order_relaxed) != key) {
        atomic_store_explicit(&table[place].owner, key, memory_order_relaxed);
    }
    return place;
}

#endif
