/* SPDX-License-Identifier: MIT */
#ifndef BECALM_LIMIT_INTERNAL_H
#define BECALM_LIMIT_INTERNAL_H

#include <becalm/limit.h>

/* Shared by limit.c (admission, giving back, pacing) and the two adaptive kinds, limit_slots.c and limit_aimd.c. It
 * also has the checks that a success makes before it leaves a limit unchanged, inline for the hot path.
 *
 * Every word of the limit is read and written relaxed, except `places`: each stands alone and guards no other memory. A
 * thread that sees only some of these words change judges on mixed evidence once; the next notes correct it, and no
 * mixture of values is out of range. */

#define BECALM__PACE_FULL      UINT32_C(1000000) /* of the pace word: every attempt is admitted */
#define BECALM__OK_FRESH       BECALM_MS         /* last_ok_at is not written again for so long, ... */
#define BECALM__OK_FRESH_SHARE 64                /* ... or for this part of the timeout */
#define BECALM__PPM            1000000
#define BECALM__RUN_MAX        UINT32_C(0xffff)
#define BECALM__RUN_ENOUGH     5                 /* timeouts in a row that are enough for a cut, */
#define BECALM__CUT_EVERY      (500 * BECALM_MS) /* if the latest cut is longer ago than this */
#define BECALM__EPOCH_MASK     UINT64_C(0xffff)  /* of the evidence word: the epoch */
#define BECALM__NEVER_CUT      UINT64_MAX        /* of the word `well` of aimd: {units:63, answered:1} */
#define BECALM__WELL_BITS      1u
#define BECALM__WELL_ANSWERED  UINT64_C(1)
#define BECALM__NOTES_BURSTS   (UINT64_C(1) << 32) /* of the evidence word, aimd: `among` is written */

/* Of the evidence word of aimd: timeouts in a row, or bursts to be noted. */
#define BECALM__AIMD_ALERT ((uint64_t)BECALM__RUN_MAX << 16 | BECALM__NOTES_BURSTS)

/* Of the evidence word: timeouts since the last success. */
static inline uint32_t becalm__evidence_run(uint64_t word)
{
    return (uint32_t)(word >> 16 & BECALM__RUN_MAX);
}

/* Integer steps per slot, so that the smallest growth is one of them. A fixed limit does not use its units. */
static inline uint64_t becalm__units_per_slot(enum becalm_limit_kind kind)
{
    return kind == BECALM_LIMIT_SLOTS ? 4 : 20;
}

/* The attempts in flight including the one now ending, which has not given its place back yet. */
static inline uint32_t becalm__in_flight_with(const struct becalm_limit *limit)
{
    uint32_t in_flight = (uint32_t)atomic_load_explicit(&limit->places, memory_order_relaxed);
    return in_flight > 0 ? in_flight : 1;
}

/* aimd: has this attempt been hanging since before the service went away? */
static inline bool becalm__is_hung(const struct becalm_limit *limit, const struct becalm_slot *slot)
{
    return slot->sent_at <= atomic_load_explicit(&limit->away_at, memory_order_relaxed);
}

static inline bool becalm__is_half_used(const struct becalm_limit *limit, enum becalm_limit_kind kind, uint64_t units)
{
    return 2 * becalm__units_per_slot(kind) * becalm__in_flight_with(limit) >= units;
}

/* Only while half of the limit is used: otherwise it is not known yet whether the service can take the present one. */
static inline bool becalm__units_can_grow(const struct becalm_limit *limit, enum becalm_limit_kind kind, uint64_t max,
                                          uint64_t units)
{
    return becalm__is_half_used(limit, kind, units) && units < max * becalm__units_per_slot(kind);
}

/* The same for aimd, where the attempts in flight when this one was admitted count, too: when the last attempt of a
 * burst is answered, the rest of the burst has ended, and yet the limit was used. */
static inline bool becalm__aimd_can_grow(const struct becalm_limit *limit, const struct becalm_slot *slot, uint64_t max,
                                         uint64_t units)
{
    uint64_t per = becalm__units_per_slot(BECALM_LIMIT_AIMD);
    uint64_t used = becalm__in_flight_with(limit);
    used = used > slot->beside ? used : slot->beside + UINT64_C(1);
    return 2 * per * used >= units && units < max * per;
}

/* Must a time that is written at every success, or quick answer, be written again? */
static inline bool becalm__is_news(const BECALM_ATOMIC(uint64_t) * word, becalm_ns now, becalm_ns timeout)
{
    becalm_ns at = atomic_load_explicit(word, memory_order_relaxed);
    return becalm_ns_since(now, at) >= becalm_ns_min(BECALM__OK_FRESH, timeout / BECALM__OK_FRESH_SHARE);
}

static inline bool becalm__success_is_news(const struct becalm_limit *limit, becalm_ns now, becalm_ns timeout)
{
    return becalm__is_news(&limit->last_ok_at, now, timeout);
}

static inline bool becalm__limit_adapts(enum becalm_limit_kind kind)
{
    return kind == BECALM_LIMIT_SLOTS || kind == BECALM_LIMIT_AIMD;
}

/* The service has answered an attempt that was sent with this one or later, so it does not queue. Only limits that
 * adapt know. */
static inline bool becalm__is_overtaken(const struct becalm_limit *limit, becalm_ns sent_at)
{
    return sent_at <= atomic_load_explicit(&limit->ok_sent_at, memory_order_relaxed);
}

/* Does the limit pace at all? */
static inline bool becalm__pace_is_low(const struct becalm_limit *limit)
{
    return atomic_load_explicit(&limit->pace, memory_order_relaxed) != BECALM__PACE_FULL;
}

/* Would a success change nothing, leaving its latency aside? */
static inline bool becalm__limit_rests(const struct becalm_limit *limit, enum becalm_limit_kind kind, uint32_t max,
                                       becalm_ns now, const struct becalm_slot *slot)
{
    uint64_t units = atomic_load_explicit(&limit->units, memory_order_relaxed);
    return !becalm__success_is_news(limit, now, slot->timeout) &&
           atomic_load_explicit(&limit->pace, memory_order_relaxed) == BECALM__PACE_FULL &&
           !(kind == BECALM_LIMIT_AIMD ? becalm__aimd_can_grow(limit, slot, max, units)
                                       : becalm__units_can_grow(limit, kind, max, units)) &&
           (atomic_load_explicit(&limit->evidence, memory_order_relaxed) & BECALM__AIMD_ALERT) == 0;
}

static inline uint64_t becalm__evidence_with_run(uint64_t word, uint32_t run)
{
    return (word & ~((uint64_t)BECALM__RUN_MAX << 16)) | (uint64_t)run << 16;
}

static inline uint32_t becalm__run_after(uint32_t run, enum becalm_evidence kind)
{
    switch (kind) {
    case BECALM_EVIDENCE_SUCCESS:
        return 0;
    case BECALM_EVIDENCE_TIMEOUT:
    case BECALM_EVIDENCE_OVERDUE:
        return run < BECALM__RUN_MAX ? run + 1 : BECALM__RUN_MAX;
    case BECALM_EVIDENCE_ANSWER:
    case BECALM_EVIDENCE_REJECTED:
    case BECALM_EVIDENCE_GIVEN_UP:
    case BECALM_EVIDENCE_NONE:
        return run;
    }
    BECALM_UNREACHABLE();
}

/* With many calls, timeouts in a row happen by chance, so a time without any success is required as well. */
static inline bool becalm__run_tells(const struct becalm_limit *limit, becalm_ns now, becalm_ns timeout, uint32_t run)
{
    becalm_ns ok_at = atomic_load_explicit(&limit->last_ok_at, memory_order_relaxed);
    return run >= BECALM__RUN_ENOUGH && becalm_ns_since(now, ok_at) >= timeout / 4;
}

/* last_cut_at grants the right to cut: only one of the threads that see the same timeouts moves it. */
static inline bool becalm__cut_is_ours(struct becalm_limit *limit, becalm_ns now)
{
    uint64_t cut_at = atomic_load_explicit(&limit->last_cut_at, memory_order_relaxed);
    return becalm_ns_since(now, cut_at) > BECALM__CUT_EVERY &&
           atomic_compare_exchange_strong_explicit(&limit->last_cut_at, &cut_at, now, memory_order_relaxed,
                                                   memory_order_relaxed);
}

static inline void becalm__success_stamp(struct becalm_limit *limit, becalm_ns now, becalm_ns timeout)
{
    if (becalm__success_is_news(limit, now, timeout)) {
        atomic_store_explicit(&limit->last_ok_at, now, memory_order_relaxed);
    }
}

/* 1/L of a slot more, but at least one unit, or a whole one; and half of so many slots, or of the limit if that is
 * less.
 */
void becalm__units_grow(struct becalm_limit *, const struct becalm_limit_policy *, bool by_one);
void becalm__units_cut(struct becalm_limit *, const struct becalm_limit_policy *, uint64_t slots);

/* Paces more if the limit is at one slot, after an attempt with this timeout; and not any more. */
void becalm__pace_at_one(struct becalm_limit *, const struct becalm_limit_policy *, becalm_ns now, becalm_ns timeout);
void becalm__pace_end(struct becalm_limit *);

/* Does the pace, and not a lack of places, refuse an attempt at this moment? The draw is that of becalm_limit_admit().
 */
bool becalm__pace_refuses(const struct becalm_limit *, const struct becalm_moment *at);

/* An attempt of each kind has ended: becalm_limit_note() for a slot that is held. */
void becalm__slots_note(struct becalm_limit *, const struct becalm_limit_policy *, const struct becalm_moment *,
                        struct becalm_slot *, enum becalm_evidence);
void becalm__aimd_note(struct becalm_limit *, const struct becalm_limit_policy *, const struct becalm_moment *,
                       struct becalm_slot *, enum becalm_evidence);

/* AIMD: did the service go away, so that attempts to it hang? Timeouts in a row since the last success are enough for a
 * cut, and answers ended abruptly. */
bool becalm__aimd_hangs(const struct becalm_limit *, becalm_ns timeout);

/* An attempt that was noted as a timeout has succeeded after all, and in time: the timeout was too short for it. The
 * cuts that such timeouts caused are undone, as TCP undoes the cut after a retransmission that was not needed (RFC
 * 3522): the limit is set to its value before all these cuts. For AIMD `well` would be too low: an overdue attempt
 * holds no slot, so that far fewer slots seemed to be in use than there were. Nothing is undone while attempts with a
 * written timeout time out at the same limit: they can't wait for as long. */
void becalm__limit_late(struct becalm_limit *, const struct becalm_limit_policy *, becalm_ns now,
                        const struct becalm_slot *);
void becalm__slots_late(struct becalm_limit *, const struct becalm_limit_policy *, becalm_ns now,
                        const struct becalm_slot *);
void becalm__aimd_late(struct becalm_limit *, const struct becalm_limit_policy *, becalm_ns now,
                       const struct becalm_slot *);

static inline void becalm__cut_off_note(struct becalm_limit *limit, becalm_ns now)
{
    atomic_store_explicit(&limit->cut_off_at, now, memory_order_relaxed);
}

/* At least the value that the limit starts with. */
void becalm__units_restart(struct becalm_limit *, const struct becalm_limit_policy *);

/* aimd: was the limit cut by timeouts, and is it still below `well`? Then the service's behaviour is not the usual one.
 */
static inline bool becalm__is_below_well(const struct becalm_limit *limit)
{
    uint64_t well = atomic_load_explicit(&limit->well, memory_order_relaxed);
    return well != BECALM__NEVER_CUT &&
           atomic_load_explicit(&limit->units, memory_order_relaxed) < well >> BECALM__WELL_BITS;
}

/* aimd: are attempts noted, because the service rejected one? */
static inline bool becalm__bursts_are_noted(const struct becalm_limit *limit)
{
    return (atomic_load_explicit(&limit->evidence, memory_order_relaxed) & BECALM__NOTES_BURSTS) != 0;
}

/* aimd: an attempt has succeeded, or was rejected. Cuts the limit if the service rejects the last attempts of this
 * caller's bursts. */
void becalm__bursts_note(struct becalm_limit *, const struct becalm_limit_policy *, becalm_ns now,
                         const struct becalm_slot *, bool rejected);

/* aimd: an attempt has succeeded, and the limit is not below `well`. True: rejections cut the limit, and it should not
 * widen yet. */
bool becalm__bursts_hold(struct becalm_limit *);

#define BECALM__USUAL_SAMPLES 64 /* a sample's weight is one in so many, or in as many as there are yet */

/* The usual latency of successes, and the usual share of timeouts, in the word `usual`. Both are means over time: in
 * each quarter of a timeout one attempt counts, with a weight of 1/64. So one second of overload moves them as little
 * with a thousand calls as with ten. */
struct becalm__usual {
    uint64_t latency; /* us; 0: not known */
    uint64_t late;    /* ppm */
    uint64_t samples; /* 64: so many, or more */
};

struct becalm__usual becalm__usual(const struct becalm_limit *);

/* How an attempt ended. The kinds of limit decide when the service is healthy enough to learn from it. */
struct becalm__ended {
    becalm_ns took;
    becalm_ns timeout;
    bool late;
};

/* True: this attempt was the sample of its quarter of a timeout. */
bool becalm__usual_note(struct becalm_limit *, becalm_ns now, const struct becalm__ended *);

/* The units with which a limit begins. */
uint64_t becalm__units_at_start(const struct becalm_limit_policy *);

/* The same for any kind, with the usual path of aimd inlined. */
static inline void becalm__limit_note(struct becalm_limit *limit, const struct becalm_limit_policy *policy,
                                      const struct becalm_moment *at, struct becalm_slot *slot,
                                      enum becalm_evidence evidence)
{
    switch (policy->kind) {
    case BECALM_LIMIT_AIMD:
        if (evidence == BECALM_EVIDENCE_SUCCESS &&
            becalm__limit_rests(limit, BECALM_LIMIT_AIMD, policy->max, at->now, slot)) {
            slot->noted = true;
        } else {
            becalm__aimd_note(limit, policy, at, slot, evidence);
        }
        return;
    case BECALM_LIMIT_SLOTS:
        becalm__slots_note(limit, policy, at, slot, evidence);
        return;
    case BECALM_LIMIT_FIXED:
    case BECALM_LIMIT_NONE:
        return;
    }
    BECALM_UNREACHABLE();
}

#endif
