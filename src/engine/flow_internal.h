/* SPDX-License-Identifier: MIT */
#ifndef BECALM_FLOW_INTERNAL_H
#define BECALM_FLOW_INTERNAL_H

#include <becalm/gate.h>

/* A small table of flows (clients) that threads share without a lock. A place belongs to a flow while the flow has
 * something there; any flow may take an idle place. A caller remembers the place that it found. A race can put two
 * flows into one place, or one flow into two, which only costs fairness for a moment. */

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

/* The flow's own place, or else the first idle place, starting from one that the flow's bits and the time choose.
 * BECALM_FLOWS: no place is idle. Because of the time, flows that have to share a place share with others every 17 s.
 */
static inline uint32_t becalm__flow_find(const struct becalm_flow *table, uint64_t flow, becalm_ns now,
                                         bool (*is_idle)(uint64_t word, becalm_ns now))
{
    uint64_t key = becalm__flow_key(flow);
    uint32_t home = (uint32_t)becalm__flow_mix(key + (now >> BECALM__FLOW_EPOCH_BITS));
    uint32_t idle = BECALM_FLOWS;
    for (uint32_t i = 0; i < BECALM_FLOWS; i++) {
        uint32_t place = (home + i) % BECALM_FLOWS;
        /* Relaxed, here and below: the words of the table guard no other memory. */
        if (atomic_load_explicit(&table[place].owner, memory_order_relaxed) == key) {
            return place;
        }
        if (idle == BECALM_FLOWS && is_idle(atomic_load_explicit(&table[place].word, memory_order_relaxed), now)) {
            idle = place;
        }
    }
    return idle;
}

/* The same, and takes the place for the flow; if none is idle, the flow shares one. */
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
