/* SPDX-License-Identifier: MIT */
#include "apart_internal.h"
#include "limit_internal.h"

/* The limit of a single caller: timeouts in a row cut it, successes widen it. Of `evidence` it uses the run alone.
 *
 * `well` is {units:63, answered:1}: the units in use before a series of cuts, and whether an attempt that was sent
 * since the last cut has succeeded. A cut after such a success begins a new series. The thread that has the right to
 * cut writes the units; all other threads only set the bit. */
/* Of the hung attempts in a service that went away, this share may finally probe whether it is back. */
#define AWAY_PART 16

#define SHARE_KNOWN 16 /* samples: with fewer the usual share of timeouts is not known */
#define USED_DECAYS 32 /* of samples: the number in flight at quick answers falls by a part of so many in each */

#define UNITS_PER_SLOT becalm__units_per_slot(BECALM_LIMIT_AIMD)

/* An attempt has ended. True: it was a sample. */
static bool usual_note(struct becalm_limit *limit, becalm_ns now, const struct becalm_slot *slot, bool late)
{
    const struct becalm__ended ended = {becalm_ns_since(now, slot->sent_at), slot->timeout, late};
    return !becalm__is_below_well(limit) && becalm__usual_note(limit, now, &ended);
}

/* How many attempts were in flight at quick answers lately, about the most of them. The thread that took the sample
 * writes it; only quick samples lower it, so that a fault does not. */
static uint64_t used_lately(const struct becalm_limit *limit)
{
    return atomic_load_explicit(&limit->undo_one, memory_order_relaxed);
}

static void used_note(struct becalm_limit *limit, const struct becalm_slot *slot)
{
    uint64_t used = slot->beside + UINT64_C(1);
    uint64_t had = used_lately(limit);
    uint64_t left = had - (had + USED_DECAYS - 1) / USED_DECAYS;
    atomic_store_explicit(&limit->undo_one, used > left ? used : left, memory_order_relaxed);
}

/* An answer is quick within a quarter of its timeout; where successes usually take longer, if it takes little more than
 * they do. In a queue it would. */
static bool is_quick(const struct becalm_limit *limit, becalm_ns took, becalm_ns timeout)
{
    return took <= timeout / 4 || 4 * (took / BECALM_US) <= 5 * becalm__usual(limit).latency;
}

/* The share of all attempts that time out, in sixteenths. Of few samples it is not known: then two more that did not
 * time out are assumed, so that a caller whose first few calls all time out is not sure that this is usual, nor that it
 * is an outage. Where no timeout is written, an overdue attempt is no failure, and a share of few says nothing. */
static uint64_t usual_share(const struct becalm_limit *limit, enum becalm_evidence kind)
{
    const struct becalm__usual usual = becalm__usual(limit);
    if (usual.samples >= SHARE_KNOWN) {
        return usual.late * 16 / BECALM__PPM;
    }
    return kind == BECALM_EVIDENCE_OVERDUE ? 0 : usual.late * usual.samples * 16 / (usual.samples + 2) / BECALM__PPM;
}

/* So many timeouts in a row happen by chance once in a thousand times where a share of all attempts times out, by
 * sixteenths of it. No more are waited for, so that a limit still cuts where most of them do. */
static uint32_t run_enough(const struct becalm_limit *limit, enum becalm_evidence kind)
{
    static const uint8_t by_share[] = {BECALM__RUN_ENOUGH, 5, 5, 5, 5, 6, 7, 8, 10, 12, 15, 18};
    uint64_t share = usual_share(limit, kind);
    uint64_t last = sizeof by_share / sizeof by_share[0] - 1;
    return by_share[share < last ? share : last];
}

/* Moves the run of timeouts in a row, and returns it. */
static uint32_t run_move(struct becalm_limit *limit, enum becalm_evidence kind)
{
    uint64_t word = atomic_load_explicit(&limit->evidence, memory_order_relaxed);
    uint32_t run;
    do {
        run = becalm__run_after(becalm__evidence_run(word), kind);
    } while (run != becalm__evidence_run(word) &&
             !atomic_compare_exchange_weak_explicit(&limit->evidence, &word, becalm__evidence_with_run(word, run),
                                                    memory_order_relaxed, memory_order_relaxed));
    return run;
}

/* A silence has ended: for a whole timeout no attempt was answered, and then this attempt, which was sent after the
 * last cut. The silence also began abruptly: a service that becomes overloaded gets slower first, so its last successes
 * are not quick. So this service was away and is back. */
static bool ends_silence(const struct becalm_limit *limit, becalm_ns now, const struct becalm_slot *slot)
{
    becalm_ns ok_at = atomic_load_explicit(&limit->last_ok_at, memory_order_relaxed);
    return becalm_ns_since(now, ok_at) >= slot->timeout &&
           becalm_ns_since(ok_at, atomic_load_explicit(&limit->quick_at, memory_order_relaxed)) <= slot->timeout / 2 &&
           slot->sent_at > atomic_load_explicit(&limit->last_cut_at, memory_order_relaxed);
}

/* Back to the limit in use before the cuts, at once. */
BECALM__COLD static void units_restore(struct becalm_limit *limit)
{
    uint64_t well = atomic_load_explicit(&limit->well, memory_order_relaxed);
    uint64_t units = atomic_load_explicit(&limit->units, memory_order_relaxed);
    while (well != BECALM__NEVER_CUT && units < well >> BECALM__WELL_BITS &&
           !atomic_compare_exchange_weak_explicit(&limit->units, &units, well >> BECALM__WELL_BITS,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

/* A service that was found to be away has answered, and not quickly. One answer may be late by chance: the silence goes
 * on, so that the next one may still end it. This one ends the absence, so that there is no third. */
static bool leaves_silence(const struct becalm_limit *limit, becalm_ns now, const struct becalm_slot *slot)
{
    return atomic_load_explicit(&limit->away_units, memory_order_relaxed) != 0 && ends_silence(limit, now, slot);
}

/* These are kept as exactly as the time of the last success, and for the same reason: they are written once a
 * millisecond. */
static void success_stamp(struct becalm_limit *limit, becalm_ns now, const struct becalm_slot *slot, bool quick)
{
    if (!becalm__success_is_news(limit, now, slot->timeout)) {
        return;
    }
    if (quick) {
        if (ends_silence(limit, now, slot)) {
            units_restore(limit);
        }
        atomic_store_explicit(&limit->quick_at, now, memory_order_relaxed);
    }
    if (quick || !leaves_silence(limit, now, slot)) {
        atomic_store_explicit(&limit->last_ok_at, now, memory_order_relaxed);
    }
    if (slot->sent_at > atomic_load_explicit(&limit->ok_sent_at, memory_order_relaxed)) {
        atomic_store_explicit(&limit->ok_sent_at, slot->sent_at, memory_order_relaxed);
        atomic_store_explicit(&limit->latency, becalm_ns_since(now, slot->sent_at), memory_order_relaxed);
    }
}

static void series_answer(struct becalm_limit *limit, const struct becalm_slot *slot)
{
    if ((atomic_load_explicit(&limit->well, memory_order_relaxed) & BECALM__WELL_ANSWERED) == 0 &&
        slot->sent_at > atomic_load_explicit(&limit->last_cut_at, memory_order_relaxed)) {
        atomic_fetch_or_explicit(&limit->well, BECALM__WELL_ANSWERED, memory_order_relaxed);
        atomic_store_explicit(&limit->away_units, 0, memory_order_relaxed);
    }
}

/* Before a cut: does it begin a series? The attempt that timed out knows how many were in flight when it was sent: when
 * the last attempts of a burst time out, the rest of the burst has long ended. If hosts refused or broke connections
 * before, few are in flight by now, and the answers before that say how many went well. */
static bool series_cut(struct becalm_limit *limit, const struct becalm_slot *slot)
{
    if ((atomic_load_explicit(&limit->well, memory_order_relaxed) & BECALM__WELL_ANSWERED) == 0) {
        return false;
    }
    uint64_t used = becalm__in_flight_with(limit);
    used = used > slot->beside ? used : slot->beside + UINT64_C(1);
    used = UNITS_PER_SLOT * (used > used_lately(limit) ? used : used_lately(limit));
    uint64_t units = atomic_load_explicit(&limit->units, memory_order_relaxed);
    atomic_store_explicit(&limit->well, (units < used ? units : used) << BECALM__WELL_BITS, memory_order_relaxed);
    return true;
}

/* One slot more for each quick answer up to `well`, and before the first cut for any answer; else 1/L of a slot, but at
 * least one unit. In an overload answers are not quick. */
static uint64_t growth(uint64_t units, uint64_t well, bool quick)
{
    uint64_t per = UNITS_PER_SLOT;
    if (well == BECALM__NEVER_CUT || (quick && units < well >> BECALM__WELL_BITS)) {
        return per;
    }
    return units < per * per ? per * per / (units > 0 ? units : 1) : 1;
}

/* Rejections have cut the limit, and it is not below that value. Each time that it is too wide again costs a page, so
 * it holds for a while; but it widens at once if calls wait in line for long. */
static bool holds_back(struct becalm_limit *limit, const struct becalm_slot *slot, uint64_t units)
{
    return atomic_load_explicit(&limit->narrowed, memory_order_relaxed) != 0 && !becalm__is_below_well(limit) &&
           units >= atomic_load_explicit(&limit->narrowed_to, memory_order_relaxed) && becalm__bursts_hold(limit) &&
           !slot->waited;
}

static bool is_too_narrow(const struct becalm_limit *limit, const struct becalm_slot *slot, bool quick)
{
    return quick && slot->waited && atomic_load_explicit(&limit->narrowed, memory_order_relaxed) != 0;
}

static void units_grow(struct becalm_limit *limit, const struct becalm_limit_policy *policy,
                       const struct becalm_slot *slot, bool quick)
{
    uint64_t most = policy->max * UNITS_PER_SLOT;
    uint64_t well = atomic_load_explicit(&limit->well, memory_order_relaxed);
    uint64_t units = atomic_load_explicit(&limit->units, memory_order_relaxed);
    uint64_t more;
    if (holds_back(limit, slot, units)) {
        return;
    }
    bool by_one = is_too_narrow(limit, slot, quick);
    do {
        if (!becalm__aimd_can_grow(limit, slot, policy->max, units)) {
            return;
        }
        more = units + (by_one ? UNITS_PER_SLOT : growth(units, well, quick));
        more = more < most ? more : most;
    } while (!atomic_compare_exchange_weak_explicit(&limit->units, &units, more, memory_order_relaxed,
                                                    memory_order_relaxed));
}

static void success_note(struct becalm_limit *limit, const struct becalm_limit_policy *policy, becalm_ns now,
                         const struct becalm_slot *slot)
{
    bool quick = is_quick(limit, becalm_ns_since(now, slot->sent_at), slot->timeout);
    if (usual_note(limit, now, slot, false) && quick) {
        used_note(limit, slot);
    }
    (void)run_move(limit, BECALM_EVIDENCE_SUCCESS);
    success_stamp(limit, now, slot, quick);
    becalm__pace_end(limit);
    series_answer(limit, slot);
    units_grow(limit, policy, slot, quick);
    if (becalm__bursts_are_noted(limit)) {
        becalm__bursts_note(limit, policy, now, slot, false);
    }
}

/* Did answers end abruptly? An overloaded service gets slower and slower first: in a queue, of all attempts that
 * succeeded the one sent latest waited longest, nearly for its whole timeout. If that one took at most half of it, the
 * service did not queue: it went away. */
static bool silence_is_abrupt(const struct becalm_limit *limit, becalm_ns timeout)
{
    return atomic_load_explicit(&limit->ok_sent_at, memory_order_relaxed) != 0 &&
           atomic_load_explicit(&limit->latency, memory_order_relaxed) <= timeout / 2;
}

bool becalm__aimd_hangs(const struct becalm_limit *limit, becalm_ns timeout)
{
    uint64_t word = atomic_load_explicit(&limit->evidence, memory_order_relaxed);
    return becalm__evidence_run(word) >= BECALM__RUN_ENOUGH && silence_is_abrupt(limit, timeout);
}

/* The first cut of a series finds that the service went away. All that is in flight hangs, and holds no slot of those
 * that are left. If that is little, nothing is to be won. */
static bool away_begin(struct becalm_limit *limit, becalm_ns now)
{
    uint64_t hung = becalm__in_flight_with(limit);
    if (hung < AWAY_PART) {
        return false;
    }
    atomic_store_explicit(&limit->away_units, hung * UNITS_PER_SLOT / AWAY_PART, memory_order_relaxed);
    atomic_store_explicit(&limit->away_at, now, memory_order_relaxed);
    atomic_store_explicit(&limit->hung, hung, memory_order_relaxed);
    return true;
}

/* Each timeout admits some more attempts that probe whether the service is back: one slot at first, up to a sixteenth
 * of the hung attempts after a timeout. That is less than a sixteenth of the usual load, since each takes its whole
 * timeout.
 */
static void away_ask(struct becalm_limit *limit, becalm_ns now, becalm_ns timeout)
{
    uint64_t most = atomic_load_explicit(&limit->away_units, memory_order_relaxed);
    becalm_ns away = becalm_ns_since(now, atomic_load_explicit(&limit->away_at, memory_order_relaxed));
    uint64_t units = most > 0 && away < timeout ? away / (timeout / most + 1) : most;
    if (atomic_load_explicit(&limit->units, memory_order_relaxed) < units) {
        atomic_store_explicit(&limit->units, units, memory_order_relaxed);
    }
}

/* The timeouts of those that hung when the service went away are no news: the cut was for all of them. */
static bool is_known_to_hang(const struct becalm_limit *limit, const struct becalm_slot *slot)
{
    return atomic_load_explicit(&limit->away_units, memory_order_relaxed) != 0 && becalm__is_hung(limit, slot);
}

static void timeout_note(struct becalm_limit *limit, const struct becalm_limit_policy *policy, becalm_ns now,
                         const struct becalm_slot *slot, enum becalm_evidence kind)
{
    uint32_t run = run_move(limit, kind);
    (void)usual_note(limit, now, slot, true);
    if (run < run_enough(limit, kind) || !becalm__run_tells(limit, now, slot->timeout, run) ||
        becalm__is_overtaken(limit, slot->sent_at)) {
        return;
    }
    if (is_known_to_hang(limit, slot)) {
        away_ask(limit, now, slot->timeout);
        return;
    }
    if (becalm__cut_is_ours(limit, now)) {
        bool away = series_cut(limit, slot) && silence_is_abrupt(limit, slot->timeout) && away_begin(limit, now);
        becalm__units_cut(limit, policy, away ? 1 : becalm__in_flight_with(limit));
        away_ask(limit, now, slot->timeout);
    }
    becalm__pace_at_one(limit, policy, now, slot->timeout);
}

/* Rejections have cut the limit, too, and a late answer says nothing of these: back to the number that they left. */
BECALM__COLD static void narrowed_restore(struct becalm_limit *limit)
{
    uint64_t to = atomic_load_explicit(&limit->narrowed_to, memory_order_relaxed);
    atomic_store_explicit(&limit->well, to << BECALM__WELL_BITS | BECALM__WELL_ANSWERED, memory_order_relaxed);
    units_restore(limit);
}

BECALM__COLD void becalm__aimd_late(struct becalm_limit *limit, const struct becalm_limit_policy *policy, becalm_ns now,
                                    const struct becalm_slot *slot)
{
    (void)run_move(limit, BECALM_EVIDENCE_SUCCESS);
    success_stamp(limit, now, slot, false);
    becalm__pace_end(limit);
    series_answer(limit, slot);
    atomic_store_explicit(&limit->away_units, 0, memory_order_relaxed);
    if (atomic_load_explicit(&limit->narrowed, memory_order_relaxed) != 0) {
        narrowed_restore(limit);
        return;
    }
    atomic_store_explicit(&limit->well, BECALM__NEVER_CUT, memory_order_relaxed);
    becalm__units_restart(limit, policy);
}

BECALM__COLD void becalm__aimd_note(struct becalm_limit *limit, const struct becalm_limit_policy *policy,
                                    const struct becalm_moment *at, struct becalm_slot *slot,
                                    enum becalm_evidence evidence)
{
    if (slot->noted || evidence == BECALM_EVIDENCE_NONE) {
        return;
    }
    slot->noted = true;
    switch (evidence) {
    case BECALM_EVIDENCE_SUCCESS:
        success_note(limit, policy, at->now, slot);
        return;
    case BECALM_EVIDENCE_TIMEOUT:
        becalm__cut_off_note(limit, at->now);
        timeout_note(limit, policy, at->now, slot, evidence);
        return;
    case BECALM_EVIDENCE_OVERDUE:
        timeout_note(limit, policy, at->now, slot, evidence);
        return;
    case BECALM_EVIDENCE_REJECTED:
        becalm__bursts_note(limit, policy, at->now, slot, true);
        return;
    case BECALM_EVIDENCE_ANSWER:
    case BECALM_EVIDENCE_GIVEN_UP:
    case BECALM_EVIDENCE_NONE:
        return;
    }
    BECALM_UNREACHABLE();
}
