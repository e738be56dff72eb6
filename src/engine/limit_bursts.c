/* SPDX-License-Identifier: MIT */
#include "apart_internal.h"
#include "limit_internal.h"

/* Rejections of a caller's own bursts. A service with a short queue takes the first calls of a page and rejects the
 * rest, each time. Sent one after the other, all of them would succeed. So the limit notes by the number in flight
 * beside an attempt whether it succeeded or was rejected, and is cut to a number with which hardly any was rejected.
 * Rejections that do not depend on that number (a service that is down, or overloaded by others) cut nothing.
 *
 * Notes are taken from the first rejection on, and of attempts that were sent later: those of that same burst do not
 * count, because a service that goes down in the middle of a burst also rejects the last ones. Two threads may lose a
 * note to each other. */

#define FEW_REJECTED  5   /* with fewer in the higher rows nothing is known */
#define ENOUGH_BELOW  8   /* notes in the lower rows */
#define ROW_REJECTS   8   /* one in so many of a row was rejected: the limit should be below it */
#define TIMES_RARER   4   /* the share of rejections in the lower rows, and in the higher ones */
#define NOTES_MOST    512 /* then all notes count half */
#define WAIT_PART     8   /* of the timeout: the last call of a burst may wait in line for so long */
#define LONG_ENOUGH   4   /* times an attempt's mean latency must have passed */
#define WIDENS_EVERY  32  /* successes, then the limit is widened by one step */

#define PER becalm__units_per_slot(BECALM_LIMIT_AIMD)

struct ends {
    uint64_t succeeded;
    uint64_t rejected;
};

static struct ends row_at(const struct becalm_limit *limit, uint32_t row)
{
    uint64_t word = atomic_load_explicit(&limit->among[row], memory_order_relaxed);
    return (struct ends){.succeeded = word >> 32, .rejected = word & UINT32_MAX};
}

static void row_set(struct becalm_limit *limit, uint32_t row, struct ends ends)
{
    atomic_store_explicit(&limit->among[row], ends.succeeded << 32 | ends.rejected, memory_order_relaxed);
}

static uint64_t count(struct ends ends)
{
    return ends.succeeded + ends.rejected;
}

static struct ends with(struct ends a, struct ends b)
{
    return (struct ends){.succeeded = a.succeeded + b.succeeded, .rejected = a.rejected + b.rejected};
}

static struct ends without(struct ends a, struct ends b)
{
    return (struct ends){.succeeded = a.succeeded - b.succeeded, .rejected = a.rejected - b.rejected};
}

static struct ends all_rows(const struct becalm_limit *limit)
{
    struct ends all = {0, 0};
    for (uint32_t row = 0; row < BECALM_AMONG; row++) {
        all = with(all, row_at(limit, row));
    }
    return all;
}

/* Notes begin anew, with attempts that are sent from now on. */
static void notes_begin(struct becalm_limit *limit, becalm_ns now)
{
    for (uint32_t row = 0; row < BECALM_AMONG; row++) {
        row_set(limit, row, (struct ends){0, 0});
    }
    atomic_store_explicit(&limit->bursts_took, 0, memory_order_relaxed);
    atomic_store_explicit(&limit->bursts_since, now, memory_order_relaxed);
    atomic_fetch_or_explicit(&limit->evidence, BECALM__NOTES_BURSTS, memory_order_relaxed);
}

static void notes_end(struct becalm_limit *limit)
{
    atomic_fetch_and_explicit(&limit->evidence, ~BECALM__NOTES_BURSTS, memory_order_relaxed);
}

static void notes_halve(struct becalm_limit *limit, becalm_ns now)
{
    for (uint32_t row = 0; row < BECALM_AMONG; row++) {
        struct ends ends = row_at(limit, row);
        row_set(limit, row, (struct ends){.succeeded = ends.succeeded / 2, .rejected = ends.rejected / 2});
    }
    uint64_t took = atomic_load_explicit(&limit->bursts_took, memory_order_relaxed);
    atomic_store_explicit(&limit->bursts_took, took / 2, memory_order_relaxed);
    becalm_ns since = atomic_load_explicit(&limit->bursts_since, memory_order_relaxed);
    atomic_store_explicit(&limit->bursts_since, now - becalm_ns_since(now, since) / 2, memory_order_relaxed);
}

static void note(struct becalm_limit *limit, becalm_ns now, const struct becalm_slot *slot, bool rejected)
{
    uint32_t row = (uint32_t)(63 - __builtin_clzll(slot->beside + UINT64_C(1)));
    struct ends one = {.succeeded = !rejected, .rejected = rejected};
    row_set(limit, row, with(row_at(limit, row), one));
    if (!rejected) {
        uint64_t took = becalm_ns_since(now, slot->sent_at) / BECALM_US;
        atomic_fetch_add_explicit(&limit->bursts_took, took, memory_order_relaxed);
    }
}

/* About the most attempts in flight at once. */
static uint64_t burst_size(const struct becalm_limit *limit, const struct becalm_slot *slot)
{
    uint64_t most = slot->beside + UINT64_C(1);
    for (uint32_t row = 0; row < BECALM_AMONG; row++) {
        if (count(row_at(limit, row)) > 0 && UINT64_C(1) << row > most) {
            most = UINT64_C(1) << row;
        }
    }
    return most;
}

/* So many units at least, or the last call of a burst waits in line for more than an eighth of its timeout; and no fewer
 * than were in flight on average. UINT64_MAX: too little time has passed to know that average. */
static uint64_t units_least(const struct becalm_limit *limit, becalm_ns now, const struct becalm_slot *slot)
{
    uint64_t all = atomic_load_explicit(&limit->bursts_took, memory_order_relaxed);
    uint64_t succeeded = all_rows(limit).succeeded;
    uint64_t took = all / (succeeded > 0 ? succeeded : 1);
    uint64_t passed = becalm_ns_since(now, atomic_load_explicit(&limit->bursts_since, memory_order_relaxed)) / BECALM_US;
    if (passed <= LONG_ENOUGH * took) {
        return UINT64_MAX;
    }
    uint64_t wait = slot->timeout / BECALM_US / WAIT_PART;
    uint64_t burst = burst_size(limit, slot) * PER;
    uint64_t for_wait = took >= wait ? burst : burst * took / wait;
    uint64_t on_average = all * PER / passed;
    return for_wait > on_average ? for_wait : on_average;
}

/* The limit becomes the highest number below the row, but no less than units_least(). */
static void narrow(struct becalm_limit *limit, const struct becalm_limit_policy *policy, becalm_ns now,
                   const struct becalm_slot *slot, uint32_t row)
{
    uint64_t units = ((UINT64_C(1) << row) - 1) * PER;
    uint64_t least = units_least(limit, now, slot);
    if (least == UINT64_MAX) {
        return;
    }
    least = least > policy->min * PER ? least : policy->min * PER;
    units = units > least ? units : least;
    if (units < atomic_load_explicit(&limit->units, memory_order_relaxed) && units < burst_size(limit, slot) * PER) {
        atomic_store_explicit(&limit->units, units, memory_order_relaxed);
        atomic_store_explicit(&limit->well, units << BECALM__WELL_BITS | BECALM__WELL_ANSWERED, memory_order_relaxed);
        atomic_store_explicit(&limit->narrowed, 1, memory_order_relaxed);
    }
    notes_begin(limit, now);
}

/* The lowest row in which attempts are rejected, while in those below it hardly any was; BECALM_AMONG: none. */
static uint32_t lowest_that_rejects(const struct becalm_limit *limit)
{
    struct ends above = all_rows(limit);
    struct ends below = {0, 0};
    for (uint32_t row = 1; row < BECALM_AMONG; row++) {
        struct ends last = row_at(limit, row - 1);
        struct ends here = row_at(limit, row);
        below = with(below, last);
        above = without(above, last);
        if (above.rejected < FEW_REJECTED) {
            break;
        }
        if (count(below) >= ENOUGH_BELOW && here.rejected > 0 && here.rejected * ROW_REJECTS >= count(here) &&
            below.rejected * count(above) * TIMES_RARER <= above.rejected * count(below)) {
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
    struct ends all = all_rows(limit);
    if (count(all) >= NOTES_MOST) {
        notes_halve(limit, now);
        if (all.rejected == 0) {
            notes_end(limit);
        }
    }
    if (rejected && !becalm__is_below_well(limit)) {
        uint32_t row = lowest_that_rejects(limit);
        if (row < BECALM_AMONG) {
            narrow(limit, policy, now, slot, row);
        }
    }
}

bool becalm__bursts_widen(struct becalm_limit *limit)
{
    return atomic_fetch_add_explicit(&limit->narrowed, 1, memory_order_relaxed) % WIDENS_EVERY == 0;
}
