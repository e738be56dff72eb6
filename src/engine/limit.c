/* SPDX-License-Identifier: MIT */
#include <becalm/limit.h>

#include "apart_internal.h"
#include "limit_internal.h"

#include <string.h>

/* The common part of all kinds of limit: admission and release, answers in progress, and pacing. limit_slots.c and
 * limit_aimd.c raise and cut the limit. */

enum {
    LIMIT_MAX = 1000000,
    AIMD_START = 1000, /* slots */
    PACE_LEAST_PPM = 20000,
    PACE_BITS = 20 /* of the pace word: ppm below, ticks of 2^20 ns above */
};

/* `places` has both counts, so that one add moves an attempt from the first count to the second, and an admission sees
 * both. */
#define ONE_IN_FLIGHT UINT64_C(1)
#define ONE_ANSWER    (UINT64_C(1) << 32)

static inline uint32_t places_in_flight(uint64_t places)
{
    return (uint32_t)places;
}

static inline uint32_t places_answers(uint64_t places)
{
    return (uint32_t)(places >> 32);
}

#define CALM_AFTER    (60 * BECALM_S) /* the last cut: longer than any time between two cuts in one outage, ... */
#define CALM_TIMEOUTS 4               /* ... for which a few attempts must have had the time to time out */

uint64_t becalm__units_at_start(const struct becalm_limit_policy *policy)
{
    uint64_t slots = policy->max;
    if (policy->kind == BECALM_LIMIT_AIMD && slots > AIMD_START) {
        slots = policy->min > AIMD_START ? policy->min : AIMD_START;
    }
    return slots * becalm__units_per_slot(policy->kind);
}

BECALM__COLD void becalm__units_restart(struct becalm_limit *limit, const struct becalm_limit_policy *policy)
{
    uint64_t start = becalm__units_at_start(policy);
    uint64_t units = atomic_load_explicit(&limit->units, memory_order_relaxed);
    while (units < start && !atomic_compare_exchange_weak_explicit(&limit->units, &units, start, memory_order_relaxed,
                                                                   memory_order_relaxed)) {
    }
}

#define CUT_OFF_LATELY (60 * BECALM_S)

/* Has an attempt with a written timeout timed out lately? */
static bool cuts_off(const struct becalm_limit *limit, becalm_ns now)
{
    becalm_ns at = atomic_load_explicit(&limit->cut_off_at, memory_order_relaxed);
    return at != 0 && becalm_ns_since(now, at) < CUT_OFF_LATELY;
}

BECALM__COLD void becalm__limit_late(struct becalm_limit *limit, const struct becalm_limit_policy *policy,
                                     becalm_ns now, const struct becalm_slot *slot)
{
    if (cuts_off(limit, now)) {
        return;
    }
    switch (policy->kind) {
    case BECALM_LIMIT_SLOTS:
        becalm__slots_late(limit, policy, now, slot);
        return;
    case BECALM_LIMIT_AIMD:
        becalm__aimd_late(limit, policy, now, slot);
        return;
    case BECALM_LIMIT_FIXED:
    case BECALM_LIMIT_NONE:
        return;
    }
    BECALM_UNREACHABLE();
}

void becalm_limit_defaults(struct becalm_limit_policy *policy, enum becalm_limit_kind kind)
{
    *policy = (struct becalm_limit_policy){.kind = kind, .min = 1, .max = 10000, .max_answers = 100000};
}

int becalm_limit_check(const struct becalm_limit_policy *policy, const char **why)
{
    const char *sentence = NULL;
    if ((unsigned)policy->kind > BECALM_LIMIT_NONE) {
        sentence = "kind must be slots, aimd, fixed or none";
    } else if (policy->min < 1) {
        sentence = "min must be at least 1";
    } else if (policy->max < 1 || policy->max > LIMIT_MAX) {
        sentence = "max must be 1 to 1000000";
    } else if (policy->min > policy->max) {
        sentence = "min must not be above max";
    } else if (policy->max_answers > LIMIT_MAX) {
        sentence = "max_answers must be at most 1000000";
    }
    if (why != NULL) {
        *why = sentence;
    }
    return sentence == NULL ? 0 : BECALM_EINVAL;
}

void becalm_limit_init(struct becalm_limit *limit, const struct becalm_limit_policy *policy)
{
    memset(limit, 0, sizeof *limit);
    atomic_store_explicit(&limit->units, becalm__units_at_start(policy), memory_order_relaxed);
    atomic_store_explicit(&limit->pace, BECALM__PACE_FULL, memory_order_relaxed);
    atomic_store_explicit(&limit->well, BECALM__NEVER_CUT, memory_order_relaxed);
}

static void word_copy(_Atomic(uint64_t) *to, const _Atomic(uint64_t) *from)
{
    atomic_store_explicit(to, atomic_load_explicit(from, memory_order_relaxed), memory_order_relaxed);
}

/* A limit below its `well` learns less. With a lower maximum it would stay below for ever. */
static void well_carry(struct becalm_limit *to, const struct becalm_limit *from, uint64_t most)
{
    uint64_t well = atomic_load_explicit(&from->well, memory_order_relaxed);
    if (well != BECALM__NEVER_CUT && well >> BECALM__WELL_BITS > most) {
        well = most << BECALM__WELL_BITS | (well & BECALM__WELL_ANSWERED);
    }
    atomic_store_explicit(&to->well, well, memory_order_relaxed);
}

void becalm_limit_carry(struct becalm_limit *to, const struct becalm_limit_policy *to_policy,
                        const struct becalm_limit *from, const struct becalm_limit_policy *from_policy)
{
    if (!becalm__limit_adapts(to_policy->kind) || !becalm__limit_adapts(from_policy->kind)) {
        return; /* a fixed limit has learned nothing */
    }
    uint64_t per = becalm__units_per_slot(to_policy->kind);
    uint64_t had = atomic_load_explicit(&from->units, memory_order_relaxed);
    uint64_t units = had * per / becalm__units_per_slot(from_policy->kind);
    if (units < to_policy->min * per) {
        units = to_policy->min * per;
    }
    if (units > to_policy->max * per) {
        units = to_policy->max * per;
    }
    if (had >= becalm__units_at_start(from_policy) && units < becalm__units_at_start(to_policy)) {
        units = becalm__units_at_start(to_policy); /* as wide as it began: a raised max takes effect at once */
    }
    atomic_store_explicit(&to->units, units, memory_order_relaxed);
    if (to_policy->kind == from_policy->kind) {
        word_copy(&to->reference, &from->reference);
        word_copy(&to->quick_at, &from->quick_at);
        word_copy(&to->cut_off_at, &from->cut_off_at);
        word_copy(&to->pace, &from->pace);
        word_copy(&to->ok_sent_at, &from->ok_sent_at);
        well_carry(to, from, to_policy->max * per);
        word_copy(&to->seen_at, &from->seen_at);
        word_copy(&to->alone_at, &from->alone_at);
        word_copy(&to->usual, &from->usual);
        word_copy(&to->undo_one, &from->undo_one);
        word_copy(&to->narrowed, &from->narrowed);
        word_copy(&to->narrowed_to, &from->narrowed_to);
        word_copy(&to->burst, &from->burst);
    }
    word_copy(&to->last_ok_at, &from->last_ok_at);
    word_copy(&to->last_cut_at, &from->last_cut_at);
}

/* The gap to certainty shrinks by e^(-t / 5 s), t in ticks of 2^20 ns: one factor for each bit of t, in 2^-32. Timeouts
 * below PACE_FOR shorten the 5 s: a pace must not outlast a hundred timeouts. */
#define PACE_FOR    BECALM_S
#define PACE_DECAYS 17
static const uint32_t pace_decay[PACE_DECAYS] = {
    4294066671u, 4293166234u, 4291365927u, 4287767578u, 4280579929u, 4266240756u, 4237706352u, 4181208817u, 4070463397u,
    3857694629u, 3464940900u, 2795321736u, 1819297580u, 770633036u,  138272363u,  4451546u,    4614u};

/* The probability of admission at `now`, in ppm. A pure function of two words, so that no admission writes them. A
 * timeout of another moment than the pace's only changes how soon the pace is over. */
static uint32_t pace_at(const struct becalm_limit *limit, uint64_t word, becalm_ns now)
{
    uint64_t ticks = becalm_ns_since(now >> PACE_BITS, word >> PACE_BITS);
    if (ticks >> PACE_DECAYS != 0) {
        return BECALM__PACE_FULL;
    }
    becalm_ns timeout = atomic_load_explicit(&limit->reference, memory_order_relaxed);
    if (timeout < PACE_FOR) {
        ticks = ticks * PACE_FOR / becalm_ns_max(timeout, BECALM_MS);
    }
    if (ticks >> PACE_DECAYS != 0) {
        return BECALM__PACE_FULL;
    }
    uint64_t gap = (BECALM__PACE_FULL - (word & ((1u << PACE_BITS) - 1)))
                   << 12; /* 12 more bits, against the rounding below */
    for (unsigned bit = 0; bit < PACE_DECAYS; bit++) {
        if ((ticks >> bit & 1) != 0) {
            gap = gap * pace_decay[bit] >> 32;
        }
    }
    return (uint32_t)(BECALM__PACE_FULL - (gap >> 12));
}

static void pace_lower(struct becalm_limit *limit, becalm_ns now, becalm_ns timeout)
{
    atomic_store_explicit(&limit->reference, timeout, memory_order_relaxed);
    uint64_t word = atomic_load_explicit(&limit->pace, memory_order_relaxed);
    uint64_t lower;
    do {
        uint64_t ppm = (uint64_t)pace_at(limit, word, now) * 3 / 10;
        uint64_t tick = now >> PACE_BITS;
        if (tick < word >> PACE_BITS) {
            tick = word >> PACE_BITS; /* an older now must not make the pace recover sooner */
        }
        lower = tick << PACE_BITS | (ppm > PACE_LEAST_PPM ? ppm : PACE_LEAST_PPM);
    } while (
        !atomic_compare_exchange_weak_explicit(&limit->pace, &word, lower, memory_order_relaxed, memory_order_relaxed));
}

/* The most attempts that may be in flight, and places of both kinds that may be taken, when one more comes. */
struct room {
    uint64_t in_flight;
    uint64_t places;
};

static inline bool room_has(const struct room *room, uint64_t places)
{
    return places_in_flight(places) < room->in_flight &&
           (uint64_t)places_in_flight(places) + places_answers(places) < room->places;
}

/* Takes one place if there is room, or none; *in_flight is the number of attempts in flight with it. The place is taken
 * first and given back if it was one too many, because an add is cheaper than a compare-and-swap that may lose. For an
 * instant two threads can refuse each other the one free place; the later one to give it back sees it free and tries
 * again, so that one of them gets it.
 *
 * acq_rel, here and in _give: one worker queues a ticket (gate.waiting) and then tries once more for a place; another
 * gives its place back and then checks whether a call waits. Both use `places`: either the first finds the place or the
 * second finds the ticket. */
static bool place_take(struct becalm_limit *limit, const struct room *room, uint32_t *in_flight)
{
    for (;;) {
        uint64_t places = atomic_fetch_add_explicit(&limit->places, ONE_IN_FLIGHT, memory_order_acq_rel);
        if (room_has(room, places)) {
            *in_flight = places_in_flight(places) + 1;
            return true;
        }
        uint64_t had = atomic_fetch_sub_explicit(&limit->places, ONE_IN_FLIGHT, memory_order_acq_rel);
        if (!room_has(room, had - ONE_IN_FLIGHT)) {
            return false;
        }
    }
}

static inline uint32_t limit_now(const struct becalm_limit *limit, const struct becalm_limit_policy *policy)
{
    if (!becalm__limit_adapts(policy->kind)) {
        return policy->kind == BECALM_LIMIT_FIXED ? policy->max : UINT32_MAX;
    }
    uint64_t units = atomic_load_explicit(&limit->units, memory_order_relaxed);
    uint64_t slots = policy->kind == BECALM_LIMIT_SLOTS ? units / 4 : units / 20; /* constants: no division */
    if (slots < policy->min) {
        slots = policy->min; /* the policy may have changed under the object, so its bounds have the last word */
    }
    slots += atomic_load_explicit(&limit->hung, memory_order_relaxed);
    return slots < policy->max ? (uint32_t)slots : policy->max;
}

static inline uint64_t places_most(const struct becalm_limit_policy *policy)
{
    return policy->kind == BECALM_LIMIT_NONE || policy->max_answers == 0 ? UINT64_MAX : policy->max_answers;
}

/* `in_flight` counts this attempt, too. */
static inline void slot_send(struct becalm_slot *slot, const struct becalm_limit *limit, uint32_t in_flight,
                             becalm_ns now)
{
    uint64_t among = in_flight + atomic_load_explicit(&limit->ghosts, memory_order_relaxed);
    slot->among = (uint8_t)(63 - __builtin_clzll(among));
    slot->epoch = (uint16_t)(atomic_load_explicit(&limit->evidence, memory_order_relaxed) & BECALM__EPOCH_MASK);
    slot->sent_at = now;
}

static inline bool slot_take(struct becalm_limit *limit, const struct becalm_limit_policy *policy,
                             const struct becalm_moment *at, becalm_ns timeout, struct becalm_slot *slot)
{
    const struct room room = {.in_flight = limit_now(limit, policy), .places = places_most(policy)};
    uint32_t in_flight;
    if (!place_take(limit, &room, &in_flight)) {
        return false;
    }
    slot->held = true;
    slot->noted = false;
    slot->answers = false;
    slot->waited = false;
    slot->beside = in_flight <= UINT16_MAX ? (uint16_t)(in_flight - 1) : UINT16_MAX;
    slot->timeout = timeout;
    slot_send(slot, limit, in_flight, at->now);
    return true;
}

bool becalm__pace_refuses(const struct becalm_limit *limit, const struct becalm_moment *at)
{
    uint32_t ppm = pace_at(limit, atomic_load_explicit(&limit->pace, memory_order_relaxed), at->now);
    return !becalm_rand_chance(becalm_rand_lane(at->random, BECALM_LANE_PACE), ppm);
}

BECALM__COLD static bool paced_admit(struct becalm_limit *limit, const struct becalm_limit_policy *policy,
                                     const struct becalm_moment *at, becalm_ns timeout, struct becalm_slot *slot)
{
    return !becalm__pace_refuses(limit, at) && slot_take(limit, policy, at, timeout, slot);
}

bool becalm_limit_admit(struct becalm_limit *limit, const struct becalm_limit_policy *policy,
                        const struct becalm_moment *at, becalm_ns timeout, struct becalm_slot *slot)
{
    if (atomic_load_explicit(&limit->pace, memory_order_relaxed) != BECALM__PACE_FULL) {
        return paced_admit(limit, policy, at, timeout, slot);
    }
    return slot_take(limit, policy, at, timeout, slot);
}

bool becalm_limit_probe(struct becalm_limit *limit, const struct becalm_limit_policy *policy,
                        const struct becalm_moment *at, becalm_ns timeout, struct becalm_slot *slot)
{
    return slot_take(limit, policy, at, timeout, slot);
}

/* An attempt that hung has ended. While it hung, the limit had one slot more; that slot goes with it. */
BECALM__COLD static void hung_ends(struct becalm_limit *limit, const struct becalm_slot *slot)
{
    uint64_t hung = atomic_load_explicit(&limit->hung, memory_order_relaxed);
    while (hung > 0 && becalm__is_hung(limit, slot) &&
           !atomic_compare_exchange_weak_explicit(&limit->hung, &hung, hung - 1, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

static inline void flight_end(struct becalm_limit *limit, const struct becalm_slot *slot)
{
    if (atomic_load_explicit(&limit->hung, memory_order_relaxed) != 0) {
        hung_ends(limit, slot);
    }
}

void becalm_limit_sent(struct becalm_limit *limit, struct becalm_slot *slot, becalm_ns now)
{
    flight_end(limit, slot); /* the attempt did not hang: it waited for its connection */
    slot_send(slot, limit, becalm__in_flight_with(limit), now);
}

void becalm_limit_answer(struct becalm_limit *limit, struct becalm_slot *slot)
{
    if (!slot->held || slot->answers) {
        return;
    }
    slot->answers = true;
    flight_end(limit, slot);
    uint64_t had = atomic_fetch_add_explicit(&limit->places, ONE_ANSWER - ONE_IN_FLIGHT, memory_order_acq_rel);
    BECALM_ASSERT(places_in_flight(had) > 0);
}

void becalm_limit_give(struct becalm_limit *limit, struct becalm_slot *slot)
{
    if (!slot->held) {
        return;
    }
    slot->held = false;
    if (!slot->answers) {
        flight_end(limit, slot);
    }
    uint64_t place = slot->answers ? ONE_ANSWER : ONE_IN_FLIGHT;
    uint64_t had = atomic_fetch_sub_explicit(&limit->places, place, memory_order_acq_rel); /* see place_take */
    BECALM_ASSERT((slot->answers ? places_answers(had) : places_in_flight(had)) > 0);
}

uint32_t becalm_limit_now(const struct becalm_limit *limit, const struct becalm_limit_policy *policy)
{
    return limit_now(limit, policy);
}

uint32_t becalm_limit_in_flight(const struct becalm_limit *limit)
{
    return places_in_flight(atomic_load_explicit(&limit->places, memory_order_relaxed));
}

bool becalm_limit_calm(const struct becalm_limit *limit, becalm_ns timeout, becalm_ns now)
{
    becalm_ns cut_at = atomic_load_explicit(&limit->last_cut_at, memory_order_relaxed);
    becalm_ns calm = becalm_ns_max(CALM_AFTER, becalm_ns_scale(timeout, CALM_TIMEOUTS, 1));
    return cut_at == 0 || becalm_ns_since(now, cut_at) > calm;
}

uint32_t becalm_limit_answers(const struct becalm_limit *limit)
{
    return places_answers(atomic_load_explicit(&limit->places, memory_order_relaxed));
}

bool becalm_limit_answers_full(const struct becalm_limit *limit, const struct becalm_limit_policy *policy)
{
    uint64_t places = atomic_load_explicit(&limit->places, memory_order_relaxed);
    return (uint64_t)places_in_flight(places) + places_answers(places) >= places_most(policy);
}

#define USUAL_SAMPLES_BITS 8
#define USUAL_SHARE_BITS   20

struct becalm__usual becalm__usual(const struct becalm_limit *limit)
{
    uint64_t word = atomic_load_explicit(&limit->usual, memory_order_relaxed);
    return (struct becalm__usual){
        .latency = word >> (USUAL_SAMPLES_BITS + USUAL_SHARE_BITS),
        .late = word >> USUAL_SAMPLES_BITS & ((1u << USUAL_SHARE_BITS) - 1),
        .samples = word & ((1u << USUAL_SAMPLES_BITS) - 1),
    };
}

static uint64_t usual_pack(const struct becalm__usual *usual)
{
    return usual->latency << (USUAL_SAMPLES_BITS + USUAL_SHARE_BITS) | usual->late << USUAL_SAMPLES_BITS |
           usual->samples;
}

static uint64_t mean_move(uint64_t mean, uint64_t value, uint64_t samples)
{
    return value > mean ? mean + (value - mean) / samples : mean - (mean - value) / samples;
}

BECALM__COLD static void usual_write(struct becalm_limit *limit, const struct becalm__ended *ended)
{
    struct becalm__usual usual = becalm__usual(limit);
    uint64_t us = ended->took / BECALM_US;
    usual.samples += usual.samples < BECALM__USUAL_SAMPLES;
    usual.late = mean_move(usual.late, ended->late ? BECALM__PPM : 0, usual.samples);
    if (!ended->late && us >> (64 - USUAL_SAMPLES_BITS - USUAL_SHARE_BITS) == 0) {
        usual.latency = usual.latency == 0 ? us : mean_move(usual.latency, us, usual.samples);
    }
    atomic_store_explicit(&limit->usual, usual_pack(&usual), memory_order_relaxed);
}

/* The thread that moves `seen_at` writes the word. */
bool becalm__usual_note(struct becalm_limit *limit, becalm_ns now, const struct becalm__ended *ended)
{
    uint64_t seen_at = atomic_load_explicit(&limit->seen_at, memory_order_relaxed);
    if ((seen_at != 0 && becalm_ns_since(now, seen_at) < ended->timeout / 4) ||
        !atomic_compare_exchange_strong_explicit(&limit->seen_at, &seen_at, now, memory_order_relaxed,
                                                 memory_order_relaxed)) {
        return false;
    }
    usual_write(limit, ended);
    return true;
}

void becalm__units_grow(struct becalm_limit *limit, const struct becalm_limit_policy *policy, bool by_one)
{
    uint64_t per = becalm__units_per_slot(policy->kind);
    uint64_t most = policy->max * per;
    uint64_t units = atomic_load_explicit(&limit->units, memory_order_relaxed);
    uint64_t more;
    do {
        if (!becalm__units_can_grow(limit, policy->kind, policy->max, units)) {
            return;
        }
        uint64_t step = by_one ? per : units < per * per ? per * per / (units > 0 ? units : 1) : 1;
        more = units + step < most ? units + step : most;
    } while (!atomic_compare_exchange_weak_explicit(&limit->units, &units, more, memory_order_relaxed,
                                                    memory_order_relaxed));
}

void becalm__units_cut(struct becalm_limit *limit, const struct becalm_limit_policy *policy, uint64_t slots)
{
    uint64_t per = becalm__units_per_slot(policy->kind);
    uint64_t used = per * slots;
    uint64_t least = policy->min * per;
    uint64_t units = atomic_load_explicit(&limit->units, memory_order_relaxed);
    uint64_t fewer;
    do {
        fewer = (units < used ? units : used) / 2;
        fewer = fewer > least ? fewer : least;
    } while (!atomic_compare_exchange_weak_explicit(&limit->units, &units, fewer, memory_order_relaxed,
                                                    memory_order_relaxed));
}

/* More than one slot: there is something left to cut, or a floor that was wanted. */
void becalm__pace_at_one(struct becalm_limit *limit, const struct becalm_limit_policy *policy, becalm_ns now,
                         becalm_ns timeout)
{
    if (limit_now(limit, policy) == 1) {
        pace_lower(limit, now, timeout);
    }
}

void becalm__pace_end(struct becalm_limit *limit)
{
    if (atomic_load_explicit(&limit->pace, memory_order_relaxed) != BECALM__PACE_FULL) {
        atomic_store_explicit(&limit->pace, BECALM__PACE_FULL, memory_order_relaxed);
    }
}

void becalm_limit_note(struct becalm_limit *limit, const struct becalm_limit_policy *policy,
                       const struct becalm_moment *at, struct becalm_slot *slot, enum becalm_evidence evidence)
{
    if (slot->held) {
        becalm__limit_note(limit, policy, at, slot, evidence);
    }
}

void becalm_limit_turned_away(struct becalm_limit *limit)
{
    becalm__pace_end(limit);
}
