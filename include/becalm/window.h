/* SPDX-License-Identifier: MIT */
#ifndef BECALM_WINDOW_H
#define BECALM_WINDOW_H

/* A sliding window that counts notes in up to four lanes: over the last N notes, or over the last span of time in
 * slices. The breaker, the budgets, the throttle and the ejection of hosts all count with it.
 *
 * Shared by threads without locks. When quiet it is exact. While n threads write, one reading may miss n notes;
 * nothing ever drifts. A healthy window of the COUNT kind (full, and nothing but plain notes in it) is not written
 * at all, so it costs the same from two threads as from one.
 *
 * A window's size depends on its shape, so the caller supplies becalm_window_bytes() of memory, aligned to 64. */

#include <becalm/ns.h>

#ifndef __cplusplus
#include <stdalign.h>
#endif

BECALM_BEGIN_DECLS

#define BECALM_LANES_MAX         4
#define BECALM_WINDOW_SIZE_MAX   1000000u /* notes of a COUNT window */
#define BECALM_WINDOW_SLICES_MAX 128u
#define BECALM_WINDOW_CELLS_MAX  64u

enum becalm_window_kind {
    BECALM_WINDOW_COUNT, /* the last `size` notes; every note has lane 0 */
    BECALM_WINDOW_TIME   /* the last `span`, to the granularity of span / slices */
};

struct becalm_window_shape {
    enum becalm_window_kind kind;
    uint32_t size;   /* COUNT: notes kept, 1 to BECALM_WINDOW_SIZE_MAX */
    becalm_ns span;  /* TIME: at least 1 us per slice */
    uint32_t slices; /* TIME: 1 to BECALM_WINDOW_SLICES_MAX */
    uint32_t lanes;  /* 1 to BECALM_LANES_MAX */
    uint32_t cells;  /* TIME: copies for as many threads, 1 to BECALM_WINDOW_CELLS_MAX; COUNT ignores it */
};

/* Touch it only through the functions below. One cache line, which is hardly ever written, so that writers do not take
 * it from readers. The counters and the ring of notes (COUNT) or the slices of each cell (TIME) follow on lines of
 * their own. */
struct becalm_window {
    alignas(64) struct becalm_window_shape shape;
    becalm_ns width;              /* TIME: of a slice: span / slices, rounded down */
    uint32_t stride;              /* TIME: words from one cell to the next */
    uint32_t count_bits;          /* TIME: the number of bits in a word that hold the count; the rest hold the slice */
    BECALM_ATOMIC(uint64_t) hint; /* the latest lap (COUNT) or slice (TIME), so that a note need not divide */
};

struct becalm_window_sums {
    uint64_t lane[BECALM_LANES_MAX];
};

/* 0, or BECALM_EINVAL with a sentence in *why (if why is not NULL) that names the field. */
BECALM_API int becalm_window_check(const struct becalm_window_shape *, const char **why);

/* Bytes for one window of this shape, a multiple of 64; 0 for a shape that does not pass its check. */
BECALM_API size_t becalm_window_bytes(const struct becalm_window_shape *);

/* Makes an empty window in `memory`, 64-aligned and of becalm_window_bytes(). The shape must pass its check. */
BECALM_API struct becalm_window *becalm_window_init(void *memory, const struct becalm_window_shape *);

/* For memory that another process may have damaged: does it hold a window of exactly this shape that is safe to use?
 * The counts themselves are not checked. */
BECALM_API bool becalm_window_sound(const struct becalm_window *, const struct becalm_window_shape *);

/* Adds one to each lane whose bit is set in `lanes` (bit 0 is lane 0). Returns the note's number, for _amend.
 * COUNT: `lanes` has bit 0. Bits beyond the shape's lanes are a bug. */
BECALM_API uint64_t becalm_window_note(struct becalm_window *, const struct becalm_moment *, unsigned lanes);

/* Adds more lanes to an earlier note. COUNT: to that very note, if it is still in the window; lane 0 it has already.
 * That is exact for a note that had another lane; a plain one that a healthy window did not write down becomes a new
 * note instead. TIME: adds them now. */
BECALM_API void becalm_window_amend(struct becalm_window *, const struct becalm_moment *, uint64_t note,
                                    unsigned lanes);

/* TIME: subtracts one from each of `lanes`, for a _note that the same cell made at `noted_at`, if that slice is still
 * there. Never below 0. COUNT: does nothing. */
BECALM_API void becalm_window_undo(struct becalm_window *, becalm_ns noted_at, uint32_t cell, unsigned lanes);

/* The sums over the window as it stands at `now`. */
BECALM_API void becalm_window_read(const struct becalm_window *, becalm_ns now, struct becalm_window_sums *);

/* One lane alone. */
BECALM_API uint64_t becalm_window_sum(const struct becalm_window *, becalm_ns now, unsigned lane);

/* Empties the window; a note made at the same time by another thread is in or out. */
BECALM_API void becalm_window_clear(struct becalm_window *);

BECALM_END_DECLS

#endif
