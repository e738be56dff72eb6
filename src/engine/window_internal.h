/* SPDX-License-Identifier: MIT */
#ifndef BECALM_WINDOW_INTERNAL_H
#define BECALM_WINDOW_INTERNAL_H

#include <becalm/window.h>

/* The no-write rule: a COUNT window that is full of plain notes is not changed by one more. Here, so that a hot path
 * can ask without a call. The three loads may be of different age; then the answer was right a moment ago. */
static inline bool becalm__window_settled(const struct becalm_window *w)
{
    if (w->shape.kind != BECALM_WINDOW_COUNT || atomic_load_explicit(&w->marked, memory_order_relaxed) != 0) {
        return false;
    }
    uint64_t next = atomic_load_explicit(&w->next, memory_order_relaxed);
    uint64_t base = atomic_load_explicit(&w->base, memory_order_relaxed);
    return next > base && next - base >= w->shape.size;
}

/* Which slice of a TIME window this instant is in: what is noted falls out only when that changes. */
uint64_t becalm__window_slice(const struct becalm_window *, becalm_ns now);

#endif
