/* SPDX-License-Identifier: MIT */
#ifndef BECALM_WINDOW_INTERNAL_H
#define BECALM_WINDOW_INTERNAL_H

#include <becalm/window.h>

/* Follows the first cache line of a COUNT window; the ring of notes is after it. */
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

/* The no-write rule: one more plain note does not change a COUNT window that is full of plain notes. Inline for the hot
 * path. The three loads may be of different age; then the answer was right a moment ago. */
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

/* The rest is about TIME windows. */

/* Sequentially consistent throughout: a thread that adds first and then reads, as a budget does that reserves before it
 * checks, must see every other thread's addition or be seen by it, also when the two are in different slices. On x86
 * these are the same instructions as relaxed ones. */
#define BECALM__WINDOW_ORDER memory_order_seq_cst

/* A place: the number of a slice from time 0, for ever, and its row in every cell, in one word. */
#define BECALM__ROW_BITS 7u

static inline uint64_t becalm__place_slice(uint64_t place)
{
    return place >> BECALM__ROW_BITS;
}

static inline size_t becalm__place_row(uint64_t place)
{
    return place & ((1u << BECALM__ROW_BITS) - 1);
}

/* Is the instant in this slice? */
static inline bool becalm__place_holds(const struct becalm_window *w, uint64_t place, becalm_ns now)
{
    return now - becalm__place_slice(place) * w->width < w->width;
}

/* The word of a slice without notes. Words compare as their slices do: a word that is not below this one belongs to
 * this slice or a later one. */
static inline uint64_t becalm__window_first(const struct becalm_window *w, uint64_t slice)
{
    return slice << w->count_bits;
}

/* A word with this count takes no more notes. The rest of its range is for threads that have added and not yet checked.
 */
static inline uint64_t becalm__window_most(const struct becalm_window *w)
{
    return (UINT64_C(1) << w->count_bits) - 4096u;
}

/* The words of a place in one cell, by lane. */
static inline _Atomic(uint64_t) *becalm__window_row(struct becalm_window *w, uint64_t place, uint32_t cell)
{
    /* A hint in range is the usual one and needs no division. */
    size_t index = cell < w->shape.cells ? cell : cell % w->shape.cells;
    return (_Atomic(uint64_t) *)(w + 1) + index * w->stride + becalm__place_row(place) * w->shape.lanes;
}

/* The rare cases of becalm__window_add(), whose addition gave `word`: the word is of another slice, mostly of one long
 * past, or it is full. */
void becalm__window_turn(struct becalm_window *, _Atomic(uint64_t) *at, uint64_t word, uint64_t first);

/* Adds first and checks afterwards: a check first would make the addition wait for the load, and nearly double its
 * price. A note that was added to a slice long past vanishes with it. A word of a later slice stays, because an older
 * now never moves anything back: the note counts there. */
static inline void becalm__window_add(struct becalm_window *w, _Atomic(uint64_t) *at, uint64_t first)
{
    uint64_t word = atomic_fetch_add_explicit(at, 1, BECALM__WINDOW_ORDER);
    if (word - first >= becalm__window_most(w)) { /* a word below `first` wraps around, and is far above the bound */
        becalm__window_turn(w, at, word + 1, first);
    }
}

/* becalm_window_note() of one lane, with the two usual paths inlined: in the slice of the previous note; and one more
 * note of lane 0 alone in a COUNT window that it would not change. */
static inline void becalm__window_note_one(struct becalm_window *w, const struct becalm_moment *at, unsigned lane)
{
    uint64_t hint = atomic_load_explicit(&w->hint, memory_order_relaxed);
    if (becalm__place_holds(w, hint, at->now)) { /* never true for a COUNT window, whose slices have no width */
        uint64_t first = becalm__window_first(w, becalm__place_slice(hint));
        becalm__window_add(w, becalm__window_row(w, hint, at->cell) + lane, first);
    } else if (lane != 0 || !becalm__window_settled(w)) {
        (void)becalm_window_note(w, at, 1u << lane);
    }
}

/* The slice of a TIME window that this instant is in: notes fall out of the window only when it changes. */
uint64_t becalm__window_slice(const struct becalm_window *, becalm_ns now);

#endif
