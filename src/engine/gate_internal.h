/* SPDX-License-Identifier: MIT */
#ifndef BECALM_GATE_INTERNAL_H
#define BECALM_GATE_INTERNAL_H

#include <becalm/gate.h>

/* The defaults, if the policy does not say. */
#define BECALM__GATE_MAX_WAIT    BECALM_S
#define BECALM__GATE_TARGET_WAIT (20 * BECALM_MS)

/* How long a ticket in line waits before it is asked whether it stays on. */
becalm_ns becalm__ticket_patience(const struct becalm_ticket *, const struct becalm_gate_policy *);

/* Inline functions for the hot path. */

/* Does a call wait, at any worker? */
static inline bool becalm__gate_waits(const struct becalm_gate *gate)
{
    return atomic_load_explicit(&gate->waiting, memory_order_relaxed) > 0;
}

/* One more call waits for news, outside of the queue. False: there is no gate, or the maximum number of calls waits
 * already. Two threads may each find the last place taken by the other thread; then the one that gives it back later
 * tries again, as in place_take() of limit.c. */
static inline bool becalm__gate_await(struct becalm_gate *gate, const struct becalm_gate_policy *policy)
{
    if (gate == NULL) {
        return false;
    }
    for (;;) {
        uint64_t waiting = atomic_load_explicit(&gate->waiting, memory_order_relaxed);
        if (waiting >= policy->max_queue) {
            return false;
        }
        uint64_t room = policy->max_queue - waiting;
        if (atomic_fetch_add_explicit(&gate->awaiting, 1, memory_order_relaxed) < room) {
            return true;
        }
        if (atomic_fetch_sub_explicit(&gate->awaiting, 1, memory_order_relaxed) > room) {
            return false;
        }
    }
}

static inline void becalm__gate_await_end(struct becalm_gate *gate)
{
    uint64_t had = atomic_fetch_sub_explicit(&gate->awaiting, 1, memory_order_relaxed);
    BECALM_ASSERT(had > 0);
}

#endif
