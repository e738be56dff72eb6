/* SPDX-License-Identifier: MIT */
#include "apart_internal.h"
#include "limit_internal.h"

/* Rejections of a caller's own bursts. A service with a short queue takes the first calls of a page and rejects the
 * rest, each time. Sent one after the other, all of them would succeed. So the limit notes by the number in flight
 * beside an attempt whether it succeeded or was rejected, and is cut to a number with which hardly any was rejected.
 * Rejections that do not depend on that number (a service that is down, or overloaded by others, or of which one host
 * is bad) cut nothing.
 *
 * Rejections come at once and successes later. So that the rejections of a burst are not compared with the successes of
 * other moments, the limit is judged when an attempt succeeds that was sent before the latest rejection, and attempts
 * in flight count as successes. A service that goes down in the middle of a burst also rejects its last attempts, but
 * not those of three bursts: the first one begins the notes, and two more must be noted. And a few successes in the
 * lower rows show nothing: if all attempts were rejected equally often, some of these would have been, too.
 *
 * Two threads may lose a note to each other when notes are halved. A burst is counted once, and one thread cuts. */

#define BURSTS_ENOUGH 2   /* with fewer rejected bursts nothing is known, */
#define FEW_REJECTED  5   /* nor with fewer rejections in the higher rows */
#define ENOUGH_BELOW  8   /* rejections in the lower rows, if their share were that of the higher rows */
#define ROW_REJECTS   8   /* one in so many of a row was rejected: the limit should be below it */
#define TIMES_RARER   4   /* the share of rejections in the lower rows, and in the higher ones */
#define NOTES_MOST    512 /* then all notes count half */
#define WAIT_PART     8   /* of the timeout: the last call of a burst may wait in line for so long */
#define LONG_ENOUGH   4   /* times an attempt's mean latency must have passed */

/* A cut limit stays for so many successes, then it may widen for as many; four times as many after each further cut. */
#define HOLDS_FOR  1024
#define HOLDS_MOST 3

#define PER becalm__units_per_slot(BECALM_LIMIT_AIMD)

struct ends {
    uint64_t succeeded;
    uint64_t rejected;
};

#define ONE_SUCCEEDED (UINT64_C(1) << 32)
#define ONE_REJECTED  UINT64_C(1)

static struct ends ends_of(uint64_t word)
{
    return (struct ends){.succeeded = word >> 32, .rejected = word & UINT32_MAX};
}

static struct ends row_at(const struct becalm_limit *limit, uint32_t row)
{
    return ends_of(atomic_load_explicit(&limit->among[row], memory_order_relaxed));
}

static uint64_t count(struct ends ends)
{
    return ends.succeeded + ends.rejected;
}

static struct ends with(struct ends a, struct ends b)
{
    return (struct ends){.succeeded = a.succeeded + b.succeeded, .rejected = a.rejected + b.rejected};
}

static struct ends rows_from(const struct becalm_limit *limit, uint32_t from)
{
    struct ends all = {0, 0};
    for (uint32_t row = from; row < BECALM_AMONG; row++) {
        all = with(all, row_at(limit, row));
    }
    return all;
}

/* `bursts`: {bursts of which some attempts succeeded and some were rejected:63, one was rejected since the last:1}. */
#define REJECTED  UINT64_C(1)
#define ONE_BURST UINT64_C(2)

/* Notes begin anew, with attempts that are sent from now on. */
static void notes_begin(struct becalm_limit *limit, becalm_ns now)
{
    for (uint32_t row = 0; row < BECALM_AMONG; row++) {
        atomic_store_explicit(&limit->among[row], 0, memory_order_relaxed);
    }
    atomic_store_explicit(&limit->bursts_notes, 0, memory_order_relaxed);
    atomic_store_explicit(&limit->bursts_took, 0, memory_order_relaxed);
    atomic_store_explicit(&limit->bursts_from, now, memory_order_relaxed);
    atomic_store_explicit(&limit->bursts_since, now, memory_order_relaxed);
    atomic_store_explicit(&limit->bursts, 0, memory_order_relaxed);
    atomic_fetch_or_explicit(&limit->evidence, BECALM__NOTES_BURSTS, memory_order_relaxed);
}

static void notes_end(struct becalm_limit *limit)
{
    atomic_fetch_and_explicit(&limit->evidence, ~BECALM__NOTES_BURSTS, memory_order_relaxed);
}

/* Not the number of bursts: a single burst may have more notes than are halved. */
static void notes_halve(struct becalm_limit *limit, becalm_ns now)
{
    uint64_t all = 0;
    for (uint32_t row = 0; row < BECALM_AMONG; row++) {
        struct ends ends = row_at(limit, row);
        uint64_t half = ends.succeeded / 2 * ONE_SUCCEEDED + ends.rejected / 2;
        atomic_store_explicit(&limit->among[row], half, memory_order_relaxed);
        all += half;
    }
    atomic_store_explicit(&limit->bursts_notes, all, memory_order_relaxed);
    uint64_t took = atomic_load_explicit(&limit->bursts_took, memory_order_relaxed);
    atomic_store_explicit(&limit->bursts_took, took / 2, memory_order_relaxed);
    becalm_ns from = atomic_load_explicit(&limit->bursts_from, memory_order_relaxed);
    atomic_store_explicit(&limit->bursts_from, now - becalm_ns_since(now, from) / 2, memory_order_relaxed);
}

/* Was this attempt sent before the latest rejection, and did it succeed? Then it and the rejected one are of the same
 * burst. */
static bool is_beside_rejected(const struct becalm_limit *limit, const struct becalm_slot *slot)
{
    return slot->sent_at <= atomic_load_explicit(&limit->rejected_at, memory_order_relaxed);
}

/* A burst counts when the first of its successes comes beside a rejection. The next burst is sent after that. */
static void burst_note(struct becalm_limit *limit, becalm_ns now, const struct becalm_slot *slot, bool rejected)
{
    if (rejected) {
        atomic_store_explicit(&limit->rejected_at, now, memory_order_relaxed);
    }
    if (slot->sent_at <= atomic_load_explicit(&limit->burst_at, memory_order_relaxed)) {
        return;
    }
    if (rejected) {
        atomic_fetch_or_explicit(&limit->bursts, REJECTED, memory_order_relaxed);
        return;
    }
    uint64_t word = atomic_load_explicit(&limit->bursts, memory_order_relaxed);
    if ((word & REJECTED) != 0 && is_beside_rejected(limit, slot)) {
        atomic_store_explicit(&limit->burst_at, now, memory_order_relaxed);
        atomic_compare_exchange_strong_explicit(&limit->bursts, &word, (word & ~REJECTED) + ONE_BURST,
                                                memory_order_relaxed, memory_order_relaxed);
    }
}

static void note(struct becalm_limit *limit, becalm_ns now, const struct becalm_slot *slot, bool rejected)
{
    uint32_t row = (uint32_t)(63 - __builtin_clzll(slot->beside + UINT64_C(1)));
    uint64_t one = rejected ? ONE_REJECTED : ONE_SUCCEEDED;
    burst_note(limit, now, slot, rejected);
    atomic_fetch_add_explicit(&limit->among[row], one, memory_order_relaxed);
    if (!rejected) {
        uint64_t took = becalm_ns_since(now, slot->sent_at) / BECALM_US;
        atomic_fetch_add_explicit(&limit->bursts_took, took, memory_order_relaxed);
    }
    struct ends all = ends_of(atomic_fetch_add_explicit(&limit->bursts_notes, one, memory_order_relaxed) + one);
    if (count(all) >= NOTES_MOST) {
        notes_halve(limit, now);
        if (all.rejected == 0) {
            notes_end(limit);
        }
    }
}

/* About the most attempts in flight at once, also before the first cut. */
static uint64_t burst_size(const struct becalm_limit *limit, const struct becalm_slot *slot)
{
    bool cut = atomic_load_explicit(&limit->narrowed, memory_order_relaxed) != 0;
    uint64_t most = cut ? atomic_load_explicit(&limit->burst, memory_order_relaxed) : 0;
    most = most > slot->beside ? most : slot->beside + UINT64_C(1);
    for (uint32_t row = 0; row < BECALM_AMONG; row++) {
        if (count(row_at(limit, row)) > 0 && UINT64_C(1) << row > most) {
            most = UINT64_C(1) << row;
        }
    }
    return most;
}

/* So many units at least, or the last call of a burst of this size waits in line for more than an eighth of its
 * timeout; and no fewer than were in flight on average. UINT64_MAX: too little time has passed to know that average. */
static uint64_t units_least(const struct becalm_limit *limit, becalm_ns now, const struct becalm_slot *slot,
                            uint64_t burst)
{
    uint64_t all = atomic_load_explicit(&limit->bursts_took, memory_order_relaxed);
    uint64_t succeeded = ends_of(atomic_load_explicit(&limit->bursts_notes, memory_order_relaxed)).succeeded;
    uint64_t passed = becalm_ns_since(now, atomic_load_explicit(&limit->bursts_from, memory_order_relaxed)) / BECALM_US;
    if (succeeded == 0 || passed <= LONG_ENOUGH * (all / succeeded)) {
        return UINT64_MAX; /* no success: another thread has just cut the limit */
    }
    uint64_t took = all / succeeded;
    uint64_t wait = slot->timeout / BECALM_US / WAIT_PART;
    uint64_t for_wait = took >= wait ? burst * PER : burst * PER * took / wait;
    uint64_t open = becalm__in_flight_with(limit); /* without these the average would be too low */
    uint64_t on_average = (all + open * took) * PER / passed;
    return for_wait > on_average ? for_wait : on_average;
}

/* `narrowed`: {successes left in which the limit holds and then widens:56, cuts before this one:8}. */
static uint64_t holds_for(uint64_t cuts)
{
    return (uint64_t)HOLDS_FOR << 2 * cuts;
}

static void narrowed_begin(struct becalm_limit *limit, uint64_t units)
{
    uint64_t word = atomic_load_explicit(&limit->narrowed, memory_order_relaxed);
    uint64_t cuts = word == 0 ? 0 : (word & 0xff) + 1;
    cuts = cuts < HOLDS_MOST ? cuts : HOLDS_MOST;
    atomic_store_explicit(&limit->narrowed, 2 * holds_for(cuts) << 8 | cuts, memory_order_relaxed);
    atomic_store_explicit(&limit->narrowed_to, units, memory_order_relaxed);
    atomic_store_explicit(&limit->well, units << BECALM__WELL_BITS | BECALM__WELL_ANSWERED, memory_order_relaxed);
}

/* False: the limit is as low already. Timeouts may cut it at the same time, and that cut must not be undone. */
static bool units_lower(struct becalm_limit *limit, uint64_t units)
{
    uint64_t had = atomic_load_explicit(&limit->units, memory_order_relaxed);
    while (units < had) {
        if (atomic_compare_exchange_weak_explicit(&limit->units, &had, units, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

/* Of the threads that see the same bursts, one cuts. */
static bool cut_is_ours(struct becalm_limit *limit)
{
    uint64_t word = atomic_load_explicit(&limit->bursts, memory_order_relaxed);
    return word / ONE_BURST >= BURSTS_ENOUGH &&
           atomic_compare_exchange_strong_explicit(&limit->bursts, &word, 0, memory_order_relaxed,
                                                   memory_order_relaxed);
}

/* The limit becomes the highest number below the row, but no less than units_least(). */
static void narrow(struct becalm_limit *limit, const struct becalm_limit_policy *policy, becalm_ns now,
                   const struct becalm_slot *slot, uint32_t row)
{
    uint64_t units = ((UINT64_C(1) << row) - 1) * PER;
    uint64_t burst = burst_size(limit, slot);
    uint64_t least = units_least(limit, now, slot, burst);
    if (least == UINT64_MAX || !cut_is_ours(limit)) {
        return;
    }
    least = least > policy->min * PER ? least : policy->min * PER;
    units = units > least ? units : least;
    if (units < burst * PER && units_lower(limit, units)) {
        narrowed_begin(limit, units);
        atomic_store_explicit(&limit->burst, burst, memory_order_relaxed);
    }
    notes_begin(limit, now);
}

/* Are rejections rarer below a row than from this row on, and not by chance? With the same share there would be enough
 * of them below, and at most a quarter of so many is there. Attempts in flight may succeed yet. */
static bool is_rarer(struct ends below, struct ends above, uint64_t open)
{
    uint64_t all = count(above) + open;
    uint64_t same_share = above.rejected * count(below); /* times `all` */
    return same_share >= ENOUGH_BELOW * all && below.rejected * TIMES_RARER * all <= same_share;
}

/* The lowest row in which attempts are rejected, while in those below it hardly any was; BECALM_AMONG: none. Attempts
 * in flight may succeed yet: those that were sent last are left, so any of them may be in this row. */
static uint32_t lowest_that_rejects(const struct becalm_limit *limit)
{
    uint64_t open = becalm__in_flight_with(limit);
    struct ends below = {0, 0};
    for (uint32_t row = 1; row < BECALM_AMONG; row++) {
        struct ends here = row_at(limit, row);
        struct ends above = rows_from(limit, row);
        uint64_t still = open >> row > 0 ? UINT64_C(1) << row : open;
        below = with(below, row_at(limit, row - 1));
        if (above.rejected < FEW_REJECTED) {
            break;
        }
        if (here.rejected * ROW_REJECTS >= count(here) + still && is_rarer(below, above, open)) {
            return row;
        }
    }
    return BECALM_AMONG;
}

BECALM__COLD void becalm__bursts_note(struct becalm_limit *limit, const struct becalm_limit_policy *policy,
                                      becalm_ns now, const struct becalm_slot *slot, bool rejected)
{
    if (!becalm__bursts_are_noted(limit)) {
        if (rejected) {
            notes_begin(limit, now);
        }
        return;
    }
    if (slot->sent_at <= atomic_load_explicit(&limit->bursts_since, memory_order_relaxed)) {
        return;
    }
    note(limit, now, slot, rejected);
    bool again = atomic_load_explicit(&limit->bursts, memory_order_relaxed) / ONE_BURST >= BURSTS_ENOUGH;
    if (!rejected && again && is_beside_rejected(limit, slot) && !becalm__is_below_well(limit)) {
        uint32_t row = lowest_that_rejects(limit);
        if (row < BECALM_AMONG) {
            narrow(limit, policy, now, slot, row);
        }
    }
}

bool becalm__bursts_hold(struct becalm_limit *limit)
{
    uint64_t word = atomic_load_explicit(&limit->narrowed, memory_order_relaxed);
    uint64_t next;
    do {
        if (word == 0) {
            return false;
        }
        next = word >> 8 > 1 ? word - (UINT64_C(1) << 8) : 0;
    } while (!atomic_compare_exchange_weak_explicit(&limit->narrowed, &word, next, memory_order_relaxed,
                                                    memory_order_relaxed));
    return next >> 8 >= holds_for(next & 0xff);
}
