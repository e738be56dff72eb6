/* SPDX-License-Identifier: MIT */
#ifndef BECALM_WINDOW_INTERNAL_H
#define BECALM_WINDOW_INTERNAL_H

#include <becalm/window.h>

/* What follows the first line of a COUNT window; the ring of notes is behind it. */
struct becalm__window_ring {
    alignas(64) _Atomic(uint64_t) next; /* number of the next note, from 0, for ever */
    _Atomic(uint64_t) base;             /* number of the first note after the last clear */
    _Atomic(uint64_t) marked;           /* notes in the window with lane 1, 2 and 3, 21 bits each */
    alignas(64) _Atomic(uint8_t) slot[];
};

static inline struct becalm__window_ring *becalm__window_ring(const struct becalm_window *w)
{
    return (struct becalm__window_ring *)((uintptr_t)w + sizeof *w);
}

/* The no-write rule: a COUNT window that is full of plain notes is not changed by one more. Here, so that a hot path
 * can ask without a call. The three loads may be of different age; then the answer was right a moment ago. */
static inline bool becalm__window_settled(const struct becalm_window *w)
{
    const struct becalm__window_ring *ring = becalm__window_ring(w);
    if (w->shape.kind != BECALM_WINDOW_COUNT || atomic_load_explicit(&ring->marked, memory_order_relaxed) != 0) {
        return false;
    }
    uint64_t next = atomic_load_explicit(&ring->next, memory_order_relaxed);
    uint64_t base = atomic_load_explicit(&ring->base, memory_order_relaxed);
    return next > base && next - base >= w->shape.size;
}

/* Which slice of a TIME window this instant is in: what is noted falls out only when that changes. */
uint64_t becalm__window_slice(const struct becalm_window *, becalm_ns now);

#endif
