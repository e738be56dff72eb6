/* SPDX-License-Identifier: MIT */
#include <becalm/window.h>

#include <string.h>

#include "apart_internal.h"
#include "window_internal.h"

/* COUNT. A ring of one byte per note: its lanes but lane 0, which every note has. `marked` is the sum over the ring,
 * kept by this rule: lanes are added to `marked` before they go into a slot, and subtracted after they were taken out
 * of it. Each slot changes by atomic exchange, so each note that goes in comes out exactly once, in any interleaving.
 * Hence `marked` is never below the sum of the ring and equal to it when no thread is in the middle of a note: nothing
 * drifts.
 *
 * TIME. One word {number of the slice:32, count:32} per cell, slice and lane. The number makes the word forget by
 * itself: a foreign number reads as 0, and the next note there replaces it. */

#define LINE 64u
#define FIELD_BITS                                                                                     \
    21u /* per lane in `marked`: twice BECALM_WINDOW_SIZE_MAX, so a million notes in mid-write fit too \
         */
#define FIELD_MASK ((UINT64_C(1) << FIELD_BITS) - 1)
#define UNWRITTEN  (UINT64_C(1) << 63) /* in a note's number: the no-write rule left it out of the ring */

#define COUNT_BITS_MIN 16u /* for virtual clocks, which stand still while many notes are made */

_Static_assert(sizeof(struct becalm_window) == LINE, "what follows the struct begins on a line");
_Static_assert(sizeof(_Atomic(uint8_t)) == 1, "a slot of the ring is one byte");

/* ---- shape ---- */

static int refuse(const char **why, const char *sentence)
{
    if (why != NULL) {
        *why = sentence;
    }
    return BECALM_EINVAL;
}

static int check_time(const struct becalm_window_shape *shape, const char **why)
{
    if (shape->slices < 1 || shape->slices > BECALM_WINDOW_SLICES_MAX) {
        return refuse(why, "slices must be from 1 to 128");
    }
    if (shape->span < shape->slices * BECALM_US) {
        return refuse(why, "span must be at least 1 us per slice");
    }
    if (shape->cells < 1 || shape->cells > BECALM_WINDOW_CELLS_MAX) {
        return refuse(why, "cells must be from 1 to 64");
    }
    return 0;
}

int becalm_window_check(const struct becalm_window_shape *shape, const char **why)
{
    if (shape->lanes < 1 || shape->lanes > BECALM_LANES_MAX) {
        return refuse(why, "lanes must be from 1 to 4");
    }
    switch (shape->kind) {
    case BECALM_WINDOW_COUNT:
        if (shape->size < 1 || shape->size > BECALM_WINDOW_SIZE_MAX) {
            return refuse(why, "size must be from 1 to 1000000");
        }
        return 0;
    case BECALM_WINDOW_TIME:
        return check_time(shape, why);
    }
    return refuse(why, "kind must be COUNT or TIME");
}

/* Cells begin on lines of their own, so that two threads in two cells never write the same line. */
static uint32_t stride_of(const struct becalm_window_shape *shape)
{
    const uint32_t line = LINE / sizeof(uint64_t);
    return (shape->slices * shape->lanes + line - 1) / line * line;
}

static becalm_ns width_of(const struct becalm_window_shape *shape)
{
    return shape->span / shape->slices;
}

static uint32_t count_bits_of(const struct becalm_window_shape *shape)
{
    uint32_t bits = 63u - (uint32_t)__builtin_clzll(width_of(shape));
    return bits > COUNT_BITS_MIN ? bits : COUNT_BITS_MIN;
}

size_t becalm_window_bytes(const struct becalm_window_shape *shape)
{
    if (becalm_window_check(shape, NULL) != 0) {
        return 0;
    }
    if (shape->kind == BECALM_WINDOW_COUNT) {
        return sizeof(struct becalm_window) + sizeof(struct becalm__window_ring) +
               ((size_t)shape->size + LINE - 1) / LINE * LINE;
    }
    return sizeof(struct becalm_window) + (size_t)stride_of(shape) * shape->cells * sizeof(uint64_t);
}

struct becalm_window *becalm_window_init(void *memory, const struct becalm_window_shape *shape)
{
    BECALM_ASSERT(becalm_window_check(shape, NULL) == 0);
    BECALM_ASSERT((uintptr_t)memory % LINE == 0);
    memset(memory, 0, becalm_window_bytes(shape));
    struct becalm_window *w = memory;
    w->shape = *shape;
    if (shape->kind == BECALM_WINDOW_COUNT) {
        return w;
    }
    w->width = width_of(shape);
    w->stride = stride_of(shape);
    w->count_bits = count_bits_of(shape);
    return w;
}

/* ---- COUNT ---- */

/* One in the field of each lane of a slot. */
static inline uint64_t spread(unsigned slot)
{
    return (uint64_t)(slot & 1) | (uint64_t)(slot >> 1 & 1) << FIELD_BITS | (uint64_t)(slot >> 2 & 1) << 2 * FIELD_BITS;
}

static inline uint64_t marked_load(const struct becalm_window *w)
{
    return atomic_load_explicit(&becalm__window_ring(w)->marked,
                                memory_order_relaxed); /* relaxed: a count guards no other memory */
}

/* Relaxed: the order of these two against a slot's exchange comes from the exchange, which is a release after the one
 * and an acquire before the other. So `marked` never dips below 0 and never borrows from its neighbour field. */
static inline void marked_add(struct becalm_window *w, unsigned slot)
{
    atomic_fetch_add_explicit(&becalm__window_ring(w)->marked, spread(slot), memory_order_relaxed);
}

static inline void marked_subtract(struct becalm_window *w, unsigned slot)
{
    if (slot != 0) {
        atomic_fetch_sub_explicit(&becalm__window_ring(w)->marked, spread(slot), memory_order_relaxed);
    }
}

/* Notes since the last clear. Two relaxed loads may be of different age, so an older `next` is possible. */
static inline uint64_t noted_since_clear(const struct becalm_window *w, uint64_t next)
{
    uint64_t base = atomic_load_explicit(&becalm__window_ring(w)->base, memory_order_relaxed);
    return next > base ? next - base : 0;
}

/* The slot of a note. The hint is the number of the latest note known to be in slot 0: it saves the division, and the
 * wait for it, on all notes but one per lap. Any value is right; one that does not fit only costs the division. */
static inline _Atomic(uint8_t) *slot_of(struct becalm_window *w, uint64_t number)
{
    uint64_t hint = atomic_load_explicit(&w->hint, memory_order_relaxed);
    uint64_t slot = number - hint;
    if (slot >= w->shape.size) {
        slot = number % w->shape.size;
        if (number > hint) {
            atomic_store_explicit(&w->hint, number - slot, memory_order_relaxed);
        }
    }
    return &becalm__window_ring(w)->slot[slot];
}

static void slot_empty(struct becalm_window *w, _Atomic(uint8_t) *slot)
{
    /* The look first: most slots are empty, and reading one is much cheaper than exchanging it. */
    if (atomic_load_explicit(slot, memory_order_relaxed) != 0) {
        marked_subtract(w, atomic_exchange_explicit(slot, 0, memory_order_acq_rel));
    }
}

static inline uint64_t count_write(struct becalm_window *w, unsigned lanes)
{
    unsigned mark = lanes >> 1;
    if (mark != 0) {
        marked_add(w, mark);
    }
    /* Looking at the slot of a guessed number before taking it was tried and was slower: either way one load waits for
     * the atomic addition. */
    uint64_t number =
        atomic_fetch_add_explicit(&becalm__window_ring(w)->next, 1, memory_order_relaxed); /* only uniqueness matters */
    _Atomic(uint8_t) *slot = slot_of(w, number);
    if (mark != 0) {
        marked_subtract(w, atomic_exchange_explicit(slot, (uint8_t)mark, memory_order_acq_rel));
    } else {
        slot_empty(w, slot);
    }
    return number;
}

BECALM__OUTLINE static uint64_t count_note(struct becalm_window *w, unsigned lanes)
{
    BECALM_ASSERT((lanes & 1) != 0);
    if (lanes == 1 && becalm__window_settled(w)) {
        return (atomic_load_explicit(&becalm__window_ring(w)->next, memory_order_relaxed) - 1) | UNWRITTEN;
    }
    return count_write(w, lanes);
}

static void count_amend(struct becalm_window *w, uint64_t note, unsigned lanes)
{
    unsigned mark = lanes >> 1;
    uint64_t number = note & ~UNWRITTEN;
    uint64_t next = atomic_load_explicit(&becalm__window_ring(w)->next, memory_order_relaxed);
    if (mark == 0 || next - number > w->shape.size ||
        number < atomic_load_explicit(&becalm__window_ring(w)->base, memory_order_relaxed)) {
        return;
    }
    if ((note & UNWRITTEN) != 0) {
        /* This note has no slot to itself: another note has the same number. */
        count_write(w, lanes | 1);
        return;
    }
    /* If the ring comes round in this very moment, a younger note gets the lanes: off by one note, and not for long. */
    _Atomic(uint8_t) *slot = slot_of(w, number);
    marked_add(w, mark);
    unsigned before = atomic_fetch_or_explicit(slot, (uint8_t)mark, memory_order_acq_rel);
    marked_subtract(w, before & mark);
}

static void count_clear(struct becalm_window *w)
{
    if (marked_load(w) != 0) { /* 0 means that every slot is empty already */
        for (uint32_t i = 0; i < w->shape.size; i++) {
            slot_empty(w, &becalm__window_ring(w)->slot[i]);
        }
    }
    uint64_t next = atomic_load_explicit(&becalm__window_ring(w)->next, memory_order_relaxed);
    atomic_store_explicit(&becalm__window_ring(w)->base, next, memory_order_relaxed);
}

static uint64_t count_sum(const struct becalm_window *w, uint64_t marked, unsigned lane)
{
    uint64_t next = atomic_load_explicit(&becalm__window_ring(w)->next, memory_order_relaxed);
    uint64_t notes = noted_since_clear(w, next);
    notes = notes < w->shape.size ? notes : w->shape.size;
    if (lane == 0) {
        return notes;
    }
    /* A thread that has added to `marked` and not yet taken its number must not make a lane larger than lane 0. */
    uint64_t sum = marked >> (lane - 1) * FIELD_BITS & FIELD_MASK;
    return sum < notes ? sum : notes;
}

/* ---- TIME ---- */

_Static_assert(BECALM_WINDOW_SLICES_MAX <= 1u << BECALM__ROW_BITS, "a row fits its bits");
_Static_assert(UINT64_MAX / BECALM_US <= UINT64_MAX >> BECALM__ROW_BITS,
               "and the number of a slice, which is 1 us or more, the rest");

static uint64_t place_divide(const struct becalm_window *w, becalm_ns now)
{
    /* The bound is for slices below 65 us alone: theirs would run out of bits after 8.9 years and more, and stand
     * still. */
    uint64_t slice = becalm_ns_min(now / w->width, UINT64_MAX >> w->count_bits);
    return slice << BECALM__ROW_BITS | slice % w->shape.slices;
}

/* The slice of an instant. The hint is the latest slice that was noted in: it saves two divisions on all notes but the
 * first of each slice. */
static inline uint64_t place_of(const struct becalm_window *w, becalm_ns now)
{
    uint64_t hint = atomic_load_explicit(&w->hint, memory_order_relaxed);
    return becalm__place_holds(w, hint, now) ? hint : place_divide(w, now);
}

BECALM__COLD static uint64_t place_turn(struct becalm_window *w, becalm_ns now, uint64_t hint)
{
    uint64_t place = place_divide(w, now);
    if (place > hint) {
        atomic_store_explicit(&w->hint, place, memory_order_relaxed); /* a race may store the older of two: a hint */
    }
    return place;
}

/* The same for a note, which moves the hint on. */
static inline uint64_t place_enter(struct becalm_window *w, becalm_ns now)
{
    uint64_t hint = atomic_load_explicit(&w->hint, memory_order_relaxed);
    return becalm__place_holds(w, hint, now) ? hint : place_turn(w, now, hint);
}

static inline uint64_t word_count(const struct becalm_window *w, uint64_t word)
{
    return word & ((UINT64_C(1) << w->count_bits) - 1);
}

static inline bool word_full(const struct becalm_window *w, uint64_t word)
{
    return word_count(w, word) >= becalm__window_most(w);
}

/* Takes one off, if the word is still of the slice that begins with `first` and counts any. */
static void word_take(struct becalm_window *w, _Atomic(uint64_t) *at, uint64_t first)
{
    uint64_t word = atomic_load_explicit(at, memory_order_relaxed);
    while (word > first && word - word_count(w, word) == first) {
        if (atomic_compare_exchange_weak_explicit(at, &word, word - 1, BECALM__WINDOW_ORDER, memory_order_relaxed)) {
            return;
        }
    }
}

BECALM__COLD void becalm__window_turn(struct becalm_window *w, _Atomic(uint64_t) *at, uint64_t word, uint64_t first)
{
    while (word < first) {
        if (atomic_compare_exchange_weak_explicit(at, &word, first + 1, BECALM__WINDOW_ORDER, memory_order_relaxed)) {
            return;
        }
        if (word >= first) {
            word = atomic_fetch_add_explicit(at, 1, BECALM__WINDOW_ORDER) + 1; /* another thread has turned it */
        }
    }
    if (word_full(w, word - 1)) {
        word_take(w, at, word - word_count(w, word));
    }
}

static inline void time_note(struct becalm_window *w, becalm_ns now, uint32_t cell, unsigned lanes)
{
    uint64_t place = place_enter(w, now);
    uint64_t first = becalm__window_first(w, becalm__place_slice(place));
    _Atomic(uint64_t) *at = becalm__window_row(w, place, cell);
    for (; lanes != 0; lanes >>= 1, at++) {
        if ((lanes & 1) != 0) {
            becalm__window_add(w, at, first);
        }
    }
}

static void time_undo(struct becalm_window *w, becalm_ns noted_at, uint32_t cell, unsigned lanes)
{
    uint64_t place = place_of(w, noted_at);
    uint64_t first = becalm__window_first(w, becalm__place_slice(place));
    _Atomic(uint64_t) *at = becalm__window_row(w, place, cell);
    for (; lanes != 0; lanes >>= 1, at++) {
        if ((lanes & 1) != 0) {
            word_take(w, at, first);
        }
    }
}

uint64_t becalm__window_slice(const struct becalm_window *w, becalm_ns now)
{
    return becalm__place_slice(place_of(w, now));
}

static uint64_t time_sum(const struct becalm_window *w, becalm_ns now, unsigned lane)
{
    uint64_t slice = becalm__place_slice(place_of(w, now));
    uint64_t oldest = becalm__window_first(w, slice < w->shape.slices ? 0 : slice - w->shape.slices + 1);
    const _Atomic(uint64_t) *cell = (const _Atomic(uint64_t) *)(w + 1);
    const uint32_t lanes = w->shape.lanes; /* these are constant, but an ordered load does not let the compiler know */
    const uint32_t slices = w->shape.slices;
    const uint64_t count = word_count(w, UINT64_MAX);
    uint64_t sum = 0;
    for (uint32_t c = 0; c < w->shape.cells; c++, cell += w->stride) {
        const _Atomic(uint64_t) *at = cell + lane;
        const _Atomic(uint64_t) *end = at + (size_t)slices * lanes;
        for (; at < end; at += lanes) {
            uint64_t word = atomic_load_explicit(at, BECALM__WINDOW_ORDER);
            sum += word >= oldest ? word & count : 0; /* `>=`: slices ahead of this thread's clock count, too */
        }
    }
    return sum;
}

static void time_clear(struct becalm_window *w)
{
    _Atomic(uint64_t) *words = (_Atomic(uint64_t) *)(w + 1);
    for (size_t i = 0; i < (size_t)w->stride * w->shape.cells; i++) {
        if (atomic_load_explicit(&words[i], memory_order_relaxed) != 0) {
            atomic_store_explicit(&words[i], 0, memory_order_relaxed); /* guards nothing; see the header for races */
        }
    }
}

/* ---- both kinds ---- */

/* Damage elsewhere only miscounts; a wrong value of these fields would lead to reads out of bounds. */
bool becalm_window_sound(const struct becalm_window *w, const struct becalm_window_shape *shape)
{
    const struct becalm_window_shape *is = &w->shape;
    if (is->kind != shape->kind || is->size != shape->size || is->span != shape->span || is->slices != shape->slices ||
        is->lanes != shape->lanes || is->cells != shape->cells) {
        return false;
    }
    if (shape->kind == BECALM_WINDOW_COUNT) {
        return w->width == 0; /* else it would be noted in as if it had slices */
    }
    uint64_t hint = atomic_load_explicit(&w->hint, memory_order_relaxed);
    return w->width == width_of(shape) && w->stride == stride_of(shape) && w->count_bits == count_bits_of(shape) &&
           becalm__place_row(hint) < shape->slices;
}

uint64_t becalm_window_note(struct becalm_window *w, const struct becalm_moment *at, unsigned lanes)
{
    BECALM_ASSERT(lanes >> w->shape.lanes == 0);
    if (w->shape.kind == BECALM_WINDOW_COUNT) {
        return count_note(w, lanes);
    }
    time_note(w, at->now, at->cell, lanes);
    return 0;
}

void becalm_window_amend(struct becalm_window *w, const struct becalm_moment *at, uint64_t note, unsigned lanes)
{
    BECALM_ASSERT(lanes >> w->shape.lanes == 0);
    if (w->shape.kind == BECALM_WINDOW_COUNT) {
        count_amend(w, note, lanes);
        return;
    }
    time_note(w, at->now, at->cell, lanes);
}

void becalm_window_undo(struct becalm_window *w, becalm_ns noted_at, uint32_t cell, unsigned lanes)
{
    BECALM_ASSERT(lanes >> w->shape.lanes == 0);
    if (w->shape.kind == BECALM_WINDOW_TIME) {
        time_undo(w, noted_at, cell, lanes);
    }
}

uint64_t becalm_window_sum(const struct becalm_window *w, becalm_ns now, unsigned lane)
{
    BECALM_ASSERT(lane < w->shape.lanes);
    if (w->shape.kind == BECALM_WINDOW_COUNT) {
        return count_sum(w, marked_load(w), lane);
    }
    return time_sum(w, now, lane);
}

void becalm_window_read(const struct becalm_window *w, becalm_ns now, struct becalm_window_sums *sums)
{
    memset(sums, 0, sizeof *sums);
    bool counts = w->shape.kind == BECALM_WINDOW_COUNT;
    uint64_t marked = counts ? marked_load(w) : 0; /* once, so that the lanes are of one moment */
    for (unsigned lane = 0; lane < w->shape.lanes; lane++) {
        sums->lane[lane] = counts ? count_sum(w, marked, lane) : time_sum(w, now, lane);
    }
}

void becalm_window_clear(struct becalm_window *w)
{
    if (w->shape.kind == BECALM_WINDOW_COUNT) {
        count_clear(w);
    } else {
        time_clear(w);
    }
}
