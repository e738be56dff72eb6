/* SPDX-License-Identifier: MIT */
#include <becalm/due.h>

#include "due_internal.h"

/* Relaxed throughout: the word guards no other memory. A note that loses a race against another one is dropped: one
 * answer of many does not matter. */

#define SINCE_SHIFT 24u
#define SINCE_MASK  UINT64_C(0xfffff)
#define SINCE_STEP  26u
#define COUNT_SHIFT 44u
#define COUNT_MASK  UINT64_C(0x7f)
#define LONG_SHIFT  51u
#define HALF_SHIFT  57u
#define SHARE_MASK  UINT64_C(0x3f)
#define SOME_SHIFT  63u

#define ENOUGH    16u                   /* answers of an epoch, at least */
#define SHARE     8u                    /* one of so many may be longer */
#define REST_MOST (8 * BECALM_DUE_RARE) /* of a page's calls several are overdue at once */

/* The word, taken apart. */
struct epoch {
    becalm_ns level;
    bool floor; /* the level is the lowest that matters */
    uint64_t since;
    uint64_t count;
    uint64_t longer;
    uint64_t half;
    bool some;
};

static struct epoch epoch_of(uint64_t word, becalm_ns least)
{
    uint64_t level = word & DUE_LEVEL_MASK;
    return (struct epoch){
        .level = level == 0           ? BECALM_DUE_START / DUE_FACTOR
                 : level == DUE_FLOOR ? least / DUE_FACTOR
                                      : level * BECALM_MS,
        .floor = level == DUE_FLOOR,
        .since = word >> SINCE_SHIFT & SINCE_MASK,
        .count = word >> COUNT_SHIFT & COUNT_MASK,
        .longer = word >> LONG_SHIFT & SHARE_MASK,
        .half = word >> HALF_SHIFT & SHARE_MASK,
        .some = word >> SOME_SHIFT != 0,
    };
}

static uint64_t step_of(becalm_ns now)
{
    return now >> SINCE_STEP & SINCE_MASK;
}

/* Of a quick service one answer is noted for 16. */
static uint64_t weight_of(const struct epoch *e, becalm_ns took)
{
    return e->floor && took <= e->level / 2 ? UINT64_C(1) << DUE_SAMPLE : 1;
}

/* Counts an answer; all counts are halved when one of them is full, so that their shares stay. */
static void epoch_count(struct epoch *e, becalm_ns now, becalm_ns took)
{
    uint64_t weight = weight_of(e, took);
    e->since = e->count == 0 ? step_of(now) : e->since;
    if (e->count + weight > COUNT_MASK || e->half == SHARE_MASK) {
        e->count /= 2;
        e->longer /= 2;
        e->half /= 2;
    }
    e->count += weight;
    e->longer += took > e->level;
    e->half += took > e->level / 2;
    e->some |= took > e->level / 64;
}

/* An epoch lasts as long as the level: of calls that begin together the quick ones are answered first, and say little
 * about the slow ones. If all answers are far quicker than the level, a 16th of it is long enough. */
static bool epoch_ended(const struct epoch *e, becalm_ns now)
{
    becalm_ns age = ((step_of(now) - e->since) & SINCE_MASK) << SINCE_STEP;
    return e->count >= ENOUGH && age >= (e->some ? e->level : e->level / 16);
}

static uint64_t level_next(const struct epoch *e, becalm_ns least)
{
    becalm_ns level = e->longer * SHARE > e->count  ? e->level + e->level / 2
                      : e->half * SHARE <= e->count ? e->level / 2
                                                    : e->level;
    return level <= least / DUE_FACTOR ? DUE_FLOOR : becalm_ns_min(level / BECALM_MS + 1, DUE_LEVEL_MASK);
}

void becalm_due_init(struct becalm_due *due)
{
    atomic_init(&due->word, 0);
    atomic_init(&due->rest, 0);
}

void becalm_due_carry(struct becalm_due *to, const struct becalm_due *from)
{
    atomic_store_explicit(&to->word, atomic_load_explicit(&from->word, memory_order_relaxed), memory_order_relaxed);
    atomic_store_explicit(&to->rest, atomic_load_explicit(&from->rest, memory_order_relaxed), memory_order_relaxed);
}

/* A quick service writes this only while it is not full. */
static void rest_add(struct becalm_due *due, uint64_t weight)
{
    uint64_t rest = atomic_load_explicit(&due->rest, memory_order_relaxed);
    if (rest < REST_MOST) {
        uint64_t more = rest + weight < REST_MOST ? rest + weight : REST_MOST;
        (void)atomic_compare_exchange_strong_explicit(&due->rest, &rest, more, memory_order_relaxed,
                                                      memory_order_relaxed);
    }
}

BECALM__COLD bool becalm_due_is_rare(struct becalm_due *due)
{
    uint64_t rest = atomic_load_explicit(&due->rest, memory_order_relaxed);
    uint64_t less;
    do {
        less = rest < BECALM_DUE_RARE ? 0 : rest - BECALM_DUE_RARE;
    } while (
        !atomic_compare_exchange_weak_explicit(&due->rest, &rest, less, memory_order_relaxed, memory_order_relaxed));
    return rest >= BECALM_DUE_RARE;
}

BECALM__COLD void becalm__due_learn(struct becalm_due *due, const struct becalm_moment *at, becalm_ns least,
                                    becalm_ns took)
{
    uint64_t word = atomic_load_explicit(&due->word, memory_order_relaxed);
    struct epoch e = epoch_of(word, least);
    rest_add(due, weight_of(&e, took));
    epoch_count(&e, at->now, took);
    uint64_t next = epoch_ended(&e, at->now)
                        ? level_next(&e, least)
                        : (word & DUE_LEVEL_MASK) | e.since << SINCE_SHIFT | e.count << COUNT_SHIFT |
                              e.longer << LONG_SHIFT | e.half << HALF_SHIFT | (uint64_t)e.some << SOME_SHIFT;
    (void)atomic_compare_exchange_strong_explicit(&due->word, &word, next, memory_order_relaxed, memory_order_relaxed);
}

void becalm_due_note(struct becalm_due *due, const struct becalm_moment *at, becalm_ns least, becalm_ns took)
{
    becalm__due_note(due, at, least, took);
}

becalm_ns becalm_due_time(const struct becalm_due *due, becalm_ns least)
{
    return becalm__due_time(due, least);
}

bool becalm_due_known(const struct becalm_due *due)
{
    return (atomic_load_explicit(&due->word, memory_order_relaxed) & DUE_LEVEL_MASK) != 0;
}
