/* SPDX-License-Identifier: MIT */
#include <becalm/sketch.h>

#include "apart_internal.h"

#include <string.h>

/* Relaxed throughout: counts guard no other memory. The one exception is the turn of a generation, see sketch_turn().
 */

#define PART_BITS 5u /* a power of two has 2^5 buckets */
#define PARTS     (1u << PART_BITS)
#define POWER_MAX 30u             /* 2^30 us and more are in the last bucket */
#define HALF_US   (BECALM_US / 2) /* the middle of every bucket is a whole number of these */

_Static_assert(BECALM_SKETCH_BUCKETS == PARTS * (POWER_MAX - PART_BITS + 1), "one row of units, then one per power");

/* ---- buckets ---- */

static unsigned log2_of(uint64_t value)
{
    return 63u - (unsigned)__builtin_clzll(value);
}

static uint32_t bucket_of(becalm_ns latency)
{
    uint64_t us = latency / BECALM_US;
    if (us < PARTS) {
        return (uint32_t)us;
    }
    if (us >> POWER_MAX != 0) {
        return BECALM_SKETCH_BUCKETS - 1;
    }
    /* Of the value's bits the first says the row, the next five the bucket in it, and the rest is forgotten. */
    unsigned forgotten = log2_of(us) - PART_BITS;
    return forgotten * PARTS + (uint32_t)(us >> forgotten);
}

/* The middle of a bucket, in half microseconds: below 2^31. */
static uint32_t bucket_middle(uint32_t bucket)
{
    if (bucket < PARTS) {
        return 2 * bucket + 1;
    }
    unsigned forgotten = bucket / PARTS - 1;
    uint32_t first = (PARTS + bucket % PARTS) << forgotten;
    return 2 * first + (UINT32_C(1) << forgotten);
}

/* ---- generations ---- */

/* turn = {number of the present span, 2 bits}. While one of the bits is set, the thread that turned the sketch is
 * emptying that generation. No thread waits for that: meanwhile all other threads drop their notes, and read the
 * generation that is not being emptied. */
#define EMPTYING_ONE  UINT64_C(1) /* the present generation */
#define EMPTYING_BOTH UINT64_C(2) /* and the one before */
#define TURN_BITS     2u

static uint64_t span_of(becalm_ns now)
{
    return now / BECALM_SKETCH_SPAN;
}

static void generation_empty(struct becalm_sketch *s, uint64_t span)
{
    atomic_store_explicit(&s->count[span & 1], 0, memory_order_relaxed);
    for (uint32_t i = 0; i < BECALM_SKETCH_BUCKETS; i++) {
        atomic_store_explicit(&s->bucket[span & 1][i], 0, memory_order_relaxed);
    }
}

/* Begins the span of the clock, unless another thread does. Returns the present value of `turn`. */
static uint64_t sketch_turn(struct becalm_sketch *s, uint64_t turn, uint64_t span)
{
    bool one = span == (turn >> TURN_BITS) + 1; /* else the generation before is stale, too */
    uint64_t emptying = span << TURN_BITS | (one ? EMPTYING_ONE : EMPTYING_BOTH);
    if ((turn & (EMPTYING_ONE | EMPTYING_BOTH)) != 0 ||
        !atomic_compare_exchange_strong_explicit(&s->turn, &turn, emptying, memory_order_relaxed,
                                                 memory_order_relaxed)) {
        return turn;
    }
    generation_empty(s, span);
    if (!one) {
        generation_empty(s, span - 1);
    }
    /* Release: a thread that sees the new turn (acquire) sees empty buckets, and adds to them after they were emptied.
     */
    atomic_store_explicit(&s->turn, span << TURN_BITS, memory_order_release);
    return span << TURN_BITS;
}

void becalm_sketch_init(struct becalm_sketch *s)
{
    memset(s, 0, sizeof *s);
}

void becalm_sketch_note(struct becalm_sketch *s, becalm_ns now, becalm_ns latency)
{
    uint64_t span = span_of(now);
    uint64_t turn = atomic_load_explicit(&s->turn, memory_order_acquire);
    if (span > turn >> TURN_BITS) { /* an older now turns nothing back: it notes in the present generation */
        turn = sketch_turn(s, turn, span);
    }
    if ((turn & (EMPTYING_ONE | EMPTYING_BOTH)) != 0) {
        return;
    }
    uint64_t generation = turn >> TURN_BITS & 1;
    atomic_fetch_add_explicit(&s->bucket[generation][bucket_of(latency)], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->count[generation], 1, memory_order_relaxed);
}

/* ---- reading ---- */

/* Which generations count at `now`: bit n for bucket[n]. */
static unsigned generations_fresh(const struct becalm_sketch *s, becalm_ns now)
{
    uint64_t turn = atomic_load_explicit(&s->turn, memory_order_acquire);
    uint64_t present = turn >> TURN_BITS;
    uint64_t span = span_of(now);
    if (span > present + 1 || (turn & EMPTYING_BOTH) != 0) {
        return 0;
    }
    unsigned latest = 1u << (present & 1);
    if (span == present + 1) {
        /* No thread has noted in this span yet, so the latest generation is the one before it. */
        return (turn & EMPTYING_ONE) != 0 ? 0 : latest;
    }
    return (turn & EMPTYING_ONE) != 0 ? 3u ^ latest : 3u;
}

static uint64_t notes_in(const struct becalm_sketch *s, unsigned fresh)
{
    uint64_t notes = 0;
    for (unsigned g = 0; g < 2; g++) {
        if ((fresh >> g & 1) != 0) {
            notes += atomic_load_explicit(&s->count[g], memory_order_relaxed);
        }
    }
    return notes;
}

static uint64_t notes_in_bucket(const struct becalm_sketch *s, unsigned fresh, uint32_t bucket)
{
    uint64_t notes = 0;
    for (unsigned g = 0; g < 2; g++) {
        if ((fresh >> g & 1) != 0) {
            notes += atomic_load_explicit(&s->bucket[g][bucket], memory_order_relaxed);
        }
    }
    return notes;
}

BECALM__OUTLINE static uint64_t notes_fresh(const struct becalm_sketch *s, becalm_ns now)
{
    return notes_in(s, generations_fresh(s, now));
}

uint64_t becalm_sketch_count(const struct becalm_sketch *s, becalm_ns now)
{
    /* Nearly always a thread has noted in this span and nothing is being emptied: then all of it counts. */
    uint64_t turn = atomic_load_explicit(&s->turn, memory_order_acquire);
    bool in_span = now - (turn >> TURN_BITS) * BECALM_SKETCH_SPAN < BECALM_SKETCH_SPAN;
    return in_span && (turn & (EMPTYING_ONE | EMPTYING_BOTH)) == 0 ? notes_in(s, 3u) : notes_fresh(s, now);
}

/* In half microseconds. */
static uint32_t quantile_of(const struct becalm_sketch *s, becalm_ns now, uint32_t ppm)
{
    unsigned fresh = generations_fresh(s, now);
    uint64_t notes = notes_in(s, fresh);
    if (notes == 0) {
        return 0;
    }
    uint64_t rank = (notes * (ppm < 1000000 ? ppm : 1000000) + 999999) / 1000000;
    rank = rank > 0 ? rank : 1;
    uint64_t seen = 0;
    uint32_t found = 0;
    for (uint32_t i = 0; i < BECALM_SKETCH_BUCKETS && seen < rank; i++) {
        uint64_t here = notes_in_bucket(s, fresh, i);
        if (here > 0) {
            found = bucket_middle(i); /* kept, since `count` may lead the buckets by a note that is being made */
        }
        seen += here;
    }
    return found;
}

becalm_ns becalm_sketch_quantile(const struct becalm_sketch *s, becalm_ns now, uint32_t ppm)
{
    return quantile_of(s, now, ppm) * HALF_US;
}

/* A cached word is {number of the refresh, half microseconds}. Several threads may refresh it at once: they find the
 * same. Without a quantile every call looks for one, which is cheap in an empty sketch. */
static becalm_ns cached(struct becalm_sketch *s, _Atomic(uint64_t) *cache, becalm_ns now, uint32_t ppm)
{
    uint64_t refresh = now / BECALM_SKETCH_REFRESH; /* 32 bits last for 34 years; then every call is a refresh */
    uint64_t word = atomic_load_explicit(cache, memory_order_relaxed);
    if (word >> 32 < refresh || (uint32_t)word == 0) { /* an older now uses the quantile that a newer one has cached */
        word = refresh << 32 | quantile_of(s, now, ppm);
        atomic_store_explicit(cache, word, memory_order_relaxed);
    }
    return (uint32_t)word * HALF_US;
}

becalm_ns becalm_sketch_typical(struct becalm_sketch *s, becalm_ns now)
{
    return cached(s, &s->typical, now, 500000);
}

becalm_ns becalm_sketch_live(struct becalm_sketch *s, becalm_ns now, uint32_t ppm)
{
    return cached(s, &s->live, now, ppm);
}
