/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SKETCH_H
#define BECALM_SKETCH_H

/* A live latency quantile in fixed memory: a histogram whose buckets grow with the value, 32 per power of two of
 * microseconds, as in HdrHistogram. A quantile is the middle of a bucket: it is off by at most 1/64 (1.6 %) of the
 * latency that stands at that rank, or by 0.5 us where that is more (below 32 us). A latency of 2^30 us (1073 s) or
 * more is counted in the last bucket.
 *
 * Two generations, each of one span of the clock (from n to n + 1 times BECALM_SKETCH_SPAN): a quantile is taken over
 * the present one and the one before it. So it follows a change within two spans, never rests on less than a span's
 * worth of notes while there is traffic, and after two idle spans it is empty.
 *
 * Shared by threads without locks. When quiet it is exact; notes that arrive in the microsecond in which the generation
 * turns may be lost. */

#include <becalm/ns.h>

BECALM_BEGIN_DECLS

#define BECALM_SKETCH_BUCKETS 832 /* 32 of 1 us each, then 32 per power of two from 2^5 us to 2^30 us */
#define BECALM_SKETCH_SPAN    (10 * BECALM_S)
#define BECALM_SKETCH_REFRESH (250 * BECALM_MS) /* a cached quantile is at most this old */

/* Touch it only through the functions below. */
struct becalm_sketch {
    BECALM_ATOMIC(uint64_t) turn;     /* number of the present span, and which part is being emptied just now */
    BECALM_ATOMIC(uint64_t) typical;  /* cached: half microseconds, and when it was taken */
    BECALM_ATOMIC(uint64_t) live;     /* the same */
    BECALM_ATOMIC(uint32_t) count[2]; /* notes in each generation */
    BECALM_ATOMIC(uint32_t) bucket[2][BECALM_SKETCH_BUCKETS];
};

BECALM_API void becalm_sketch_init(struct becalm_sketch *);

/* Notes one latency. */
BECALM_API void becalm_sketch_note(struct becalm_sketch *, becalm_ns now, becalm_ns latency);

/* How many notes the next quantile rests on. Cheap. */
BECALM_API uint64_t becalm_sketch_count(const struct becalm_sketch *, becalm_ns now);

/* The latency that `ppm` of the notes do not exceed (950000 is p95; of n notes the one of rank n * ppm / 1e6, rounded
 * up, at least 1), to the middle of its bucket; 0 without notes, and only then. Above 1000000 counts as 1000000. Walks
 * the histogram: about a microsecond. */
BECALM_API becalm_ns becalm_sketch_quantile(const struct becalm_sketch *, becalm_ns now, uint32_t ppm);

/* The same, but taken anew only every BECALM_SKETCH_REFRESH, so that a hot path may ask every time: the median, and one
 * quantile of the caller's choice (always ask for the same one). An empty sketch is not remembered. */
BECALM_API becalm_ns becalm_sketch_typical(struct becalm_sketch *, becalm_ns now);
BECALM_API becalm_ns becalm_sketch_live(struct becalm_sketch *, becalm_ns now, uint32_t ppm);

BECALM_END_DECLS

#endif
