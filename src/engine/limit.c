/* SPDX-License-Identifier: MIT */
#include <becalm/limit.h>

#include "apart_internal.h"
#include "limit_internal.h"

#include <string.h>

/* Every word below is read and written relaxed, except `places`: each stands alone and guards no other memory. Whoever
 * moves the epoch by one in a compare-and-swap of `evidence` has decided a cut or an undo, and alone writes the words
 * that go with it. A thread that sees some of these words before the others judges on mixed evidence once; the next
 * twenty notes correct it, and no mixture of values is out of range. */

enum {
    LIMIT_MAX = 1000000,
    AIMD_START = 1000, /* slots */
    JUDGE_AT = 20,     /* notes that are enough for a cut */
    HALVE_AT = 40,     /* notes after which old ones count half */
    RUN_ENOUGH = 5,    /* timeouts in a row that are enough for a cut */
    EPOCH_MASK = 0xffff,
    PACE_LEAST_PPM = 20000,
    PACE_BITS = 20 /* of the pace word: ppm below, ticks of 2^20 ns above */
};

/* `places` has both counts, so that one add moves an attempt from the one to the other and an admission sees both. */
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

#define CUT_EVERY (500 * BECALM_MS)

/* `evidence`, unpacked. */
struct evidence {
    uint32_t epoch;
    uint32_t run;    /* timeouts since the last success */
    uint32_t notes;  /* in this epoch, old ones halved away; below HALVE_AT */
    uint32_t slow;   /* of these, timeouts included */
    uint32_t late;   /* of these, timeouts */
    uint32_t series; /* 1: the last judgement was a cut */
};

static struct evidence evidence_unpack(uint64_t word)
{
    struct evidence e = {
        .epoch = (uint32_t)(word & EPOCH_MASK),
        .run = becalm__evidence_run(word),
        .notes = (uint32_t)(word >> 32 & 0xff),
        .slow = (uint32_t)(word >> 40 & 0xff),
        .late = (uint32_t)(word >> 48 & 0xff),
        .series = (uint32_t)(word >> 56 & 1),
    };
    return e;
}

static uint64_t evidence_pack(const struct evidence *e)
{
    return (uint64_t)e->epoch | (uint64_t)e->run << 16 | (uint64_t)e->notes << 32 | (uint64_t)e->slow << 40 |
           (uint64_t)e->late << 48 | (uint64_t)e->series << 56;
}

static void evidence_restart(struct evidence *e)
{
    e->epoch = (e->epoch + 1) & EPOCH_MASK;
    e->notes = 0;
    e->slow = 0;
    e->late = 0;
}

/* One note, with what the rules need to know of it. */
struct sample {
    enum becalm_evidence kind;
    becalm_ns now;
    becalm_ns timeout;
    uint64_t latency; /* us */
    uint32_t epoch;
    bool judged; /* slots: its latency counts */
    bool bad;    /* slots: timed out, or beyond a quarter of its timeout */
};

enum ruling { RULING_NONE, RULING_HALVE, RULING_CUT, RULING_UNDO };

/* What one note led to. */
struct judgement {
    enum ruling ruling;
    bool counted;      /* among the notes of its epoch */
    bool series;       /* the judgement before was a cut too */
    uint64_t mean;     /* latency of the answered notes, this one included, us; 0: none was answered */
    uint32_t answered; /* how many that were */
    uint32_t run;      /* timeouts in a row now */
};

static uint64_t units_at_start(const struct becalm_limit_policy *policy)
{
    uint64_t slots = policy->max;
    if (policy->kind == BECALM_LIMIT_AIMD && slots > AIMD_START) {
        slots = policy->min > AIMD_START ? policy->min : AIMD_START;
    }
    return slots * becalm__units_per_slot(policy->kind);
}

static bool kind_adapts(enum becalm_limit_kind kind)
{
    return kind == BECALM_LIMIT_SLOTS || kind == BECALM_LIMIT_AIMD;
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
    atomic_store_explicit(&limit->units, units_at_start(policy), memory_order_relaxed);
    atomic_store_explicit(&limit->pace, BECALM__PACE_FULL, memory_order_relaxed);
}

static void word_copy(_Atomic(uint64_t) *to, const _Atomic(uint64_t) *from)
{
    atomic_store_explicit(to, atomic_load_explicit(from, memory_order_relaxed), memory_order_relaxed);
}

void becalm_limit_carry(struct becalm_limit *to, const struct becalm_limit_policy *to_policy,
                        const struct becalm_limit *from, const struct becalm_limit_policy *from_policy)
{
    if (!kind_adapts(to_policy->kind) || !kind_adapts(from_policy->kind)) {
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
    if (had >= units_at_start(from_policy) && units < units_at_start(to_policy)) {
        units = units_at_start(to_policy); /* as wide as it began: whoever raises max gets it at once */
    }
    atomic_store_explicit(&to->units, units, memory_order_relaxed);
    if (to_policy->kind == from_policy->kind) {
        word_copy(&to->reference, &from->reference);
    }
    word_copy(&to->pace, &from->pace);
    word_copy(&to->last_ok_at, &from->last_ok_at);
    word_copy(&to->last_cut_at, &from->last_cut_at);
}

/* The gap to certainty shrinks by e^(-t / 5 s), t in ticks of 2^20 ns: one factor for each bit of t, in 2^-32. */
#define PACE_DECAYS 17
static const uint32_t pace_decay[PACE_DECAYS] = {
    4294066671u, 4293166234u, 4291365927u, 4287767578u, 4280579929u, 4266240756u, 4237706352u, 4181208817u, 4070463397u,
    3857694629u, 3464940900u, 2795321736u, 1819297580u, 770633036u,  138272363u,  4451546u,    4614u};

/* The probability of admission at `now`, in ppm. A pure function of the word, so that no admission writes it. */
static uint32_t pace_at(uint64_t word, becalm_ns now)
{
    uint64_t ticks = becalm_ns_since(now >> PACE_BITS, word >> PACE_BITS);
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

static void pace_lower(struct becalm_limit *limit, becalm_ns now)
{
    uint64_t word = atomic_load_explicit(&limit->pace, memory_order_relaxed);
    uint64_t lower;
    do {
        uint64_t ppm = (uint64_t)pace_at(word, now) * 3 / 10;
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

/* Takes one place if there is room, or none. The place is taken first and given back if it was one too many, because an
 * add is cheaper than a compare-and-swap that may lose. For an instant two threads can so refuse each other the one
 * free place; the later one to give back sees it free and tries again, so that never both go away.
 *
 * acq_rel, here and in _give: a worker lines up a ticket (gate.waiting) and then tries once more for a place; another
 * gives its place back and then looks who waits. The two meet in `places`: either the first finds the place or the
 * second finds the ticket. */
static bool place_take(struct becalm_limit *limit, const struct room *room)
{
    for (;;) {
        if (room_has(room, atomic_fetch_add_explicit(&limit->places, ONE_IN_FLIGHT, memory_order_acq_rel))) {
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
    if (!kind_adapts(policy->kind)) {
        return policy->kind == BECALM_LIMIT_FIXED ? policy->max : UINT32_MAX;
    }
    uint64_t units = atomic_load_explicit(&limit->units, memory_order_relaxed);
    uint64_t slots = policy->kind == BECALM_LIMIT_SLOTS ? units / 4 : units / 20; /* constants: no division */
    if (slots < policy->min) {
        return policy->min; /* the policy may have changed under the object, so its bounds have the last word */
    }
    return slots < policy->max ? (uint32_t)slots : policy->max;
}

static inline uint64_t places_most(const struct becalm_limit_policy *policy)
{
    return policy->kind == BECALM_LIMIT_NONE || policy->max_answers == 0 ? UINT64_MAX : policy->max_answers;
}

static inline void slot_send(struct becalm_slot *slot, const struct becalm_limit *limit, becalm_ns now)
{
    slot->epoch = (uint16_t)(atomic_load_explicit(&limit->evidence, memory_order_relaxed) & EPOCH_MASK);
    slot->sent_at = now;
}

static inline bool slot_take(struct becalm_limit *limit, const struct becalm_limit_policy *policy,
                             const struct becalm_moment *at, becalm_ns timeout, struct becalm_slot *slot)
{
    const struct room room = {.in_flight = limit_now(limit, policy), .places = places_most(policy)};
    if (!place_take(limit, &room)) {
        return false;
    }
    slot->held = true;
    slot->noted = false;
    slot->answers = false;
    slot->timeout = timeout;
    slot_send(slot, limit, at->now);
    return true;
}

BECALM__SELDOM static bool paced_admit(struct becalm_limit *limit, const struct becalm_limit_policy *policy,
                                       const struct becalm_moment *at, becalm_ns timeout, struct becalm_slot *slot)
{
    uint32_t ppm = pace_at(atomic_load_explicit(&limit->pace, memory_order_relaxed), at->now);
    return becalm_rand_chance(becalm_rand_lane(at->random, BECALM_LANE_PACE), ppm) &&
           slot_take(limit, policy, at, timeout, slot);
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

void becalm_limit_sent(const struct becalm_limit *limit, struct becalm_slot *slot, becalm_ns now)
{
    slot_send(slot, limit, now);
}

void becalm_limit_answer(struct becalm_limit *limit, struct becalm_slot *slot)
{
    if (!slot->held || slot->answers) {
        return;
    }
    slot->answers = true;
    uint64_t had = atomic_fetch_add_explicit(&limit->places, ONE_ANSWER - ONE_IN_FLIGHT, memory_order_acq_rel);
    BECALM_ASSERT(places_in_flight(had) > 0);
}

void becalm_limit_give(struct becalm_limit *limit, struct becalm_slot *slot)
{
    if (!slot->held) {
        return;
    }
    slot->held = false;
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

uint32_t becalm_limit_answers(const struct becalm_limit *limit)
{
    return places_answers(atomic_load_explicit(&limit->places, memory_order_relaxed));
}

bool becalm_limit_answers_full(const struct becalm_limit *limit, const struct becalm_limit_policy *policy)
{
    uint64_t places = atomic_load_explicit(&limit->places, memory_order_relaxed);
    return (uint64_t)places_in_flight(places) + places_answers(places) >= places_most(policy);
}

/* 1/L of a slot more, but at least one unit. */
static void units_grow(struct becalm_limit *limit, const struct becalm_limit_policy *policy)
{
    uint64_t per = becalm__units_per_slot(policy->kind);
    uint64_t most = policy->max * per;
    uint64_t units = atomic_load_explicit(&limit->units, memory_order_relaxed);
    uint64_t more;
    do {
        if (!becalm__units_can_grow(limit, policy->kind, policy->max, units)) {
            return;
        }
        uint64_t step = units < per * per ? per * per / (units > 0 ? units : 1) : 1;
        more = units + step < most ? units + step : most;
    } while (!atomic_compare_exchange_weak_explicit(&limit->units, &units, more, memory_order_relaxed,
                                                    memory_order_relaxed));
}

/* Halves what is in flight, or the limit if that is less. */
static void units_cut(struct becalm_limit *limit, const struct becalm_limit_policy *policy)
{
    uint64_t per = becalm__units_per_slot(policy->kind);
    uint64_t used = per * becalm__in_flight_with(limit);
    uint64_t least = policy->min * per;
    uint64_t units = atomic_load_explicit(&limit->units, memory_order_relaxed);
    uint64_t fewer;
    do {
        fewer = (units < used ? units : used) / 2;
        fewer = fewer > least ? fewer : least;
    } while (!atomic_compare_exchange_weak_explicit(&limit->units, &units, fewer, memory_order_relaxed,
                                                    memory_order_relaxed));
}

/* Nothing that matters would change: the state is what a healthy service makes it, and this note is one more of the
 * same. One note below HALVE_AT is where such a state rests; 41 slow answers move it from there, 40 after a halving. */
static inline bool sample_is_calm(const struct becalm_limit *limit, const struct sample *s)
{
    if (s->bad || s->kind == BECALM_EVIDENCE_TIMEOUT) {
        return false;
    }
    uint64_t word = atomic_load_explicit(&limit->evidence, memory_order_relaxed);
    const struct evidence rest = {.epoch = s->epoch, .notes = HALVE_AT - 1};
    if (word == evidence_pack(&rest)) {
        return !s->judged || atomic_load_explicit(&limit->reference, memory_order_relaxed) == 0;
    }
    struct evidence e = evidence_unpack(word);
    return (e.run == 0 || s->kind == BECALM_EVIDENCE_ANSWER) && (!s->judged || e.epoch != s->epoch);
}

static uint32_t run_after(uint32_t run, enum becalm_evidence kind)
{
    switch (kind) {
    case BECALM_EVIDENCE_SUCCESS:
        return 0;
    case BECALM_EVIDENCE_TIMEOUT:
        return run < BECALM__RUN_MAX ? run + 1 : BECALM__RUN_MAX;
    case BECALM_EVIDENCE_ANSWER:
    case BECALM_EVIDENCE_NONE:
        return run;
    }
    BECALM_UNREACHABLE();
}

/* Adds the sample to `e` and rules on the notes of the epoch. Writes nothing shared: it is retried until it fits. */
static void evidence_judge(const struct becalm_limit *limit, const struct sample *s, struct evidence *e,
                           struct judgement *j)
{
    e->notes += 1;
    e->slow += s->bad;
    e->late += s->kind == BECALM_EVIDENCE_TIMEOUT;
    j->counted = true;
    j->series = e->series != 0;
    j->answered = e->notes - e->late;
    uint64_t sum = atomic_load_explicit(&limit->latency, memory_order_relaxed) + s->latency;
    j->mean = j->answered > 0 ? sum / j->answered : 0;
    if (e->notes >= JUDGE_AT && 4 * e->slow >= 3 * e->notes) {
        uint64_t previous = atomic_load_explicit(&limit->previous, memory_order_relaxed);
        bool futile = previous > 0 && 4 * j->mean > 3 * previous && 2 * e->late < e->notes;
        j->ruling = futile ? RULING_UNDO : RULING_CUT;
        e->series = !futile;
        evidence_restart(e);
    } else if (e->notes >= HALVE_AT) {
        j->ruling = RULING_HALVE;
        e->series = 0;
        e->notes /= 2;
        e->slow /= 2;
        e->late /= 2;
    }
}

static void evidence_add(struct becalm_limit *limit, const struct sample *s, struct judgement *j)
{
    uint64_t word = atomic_load_explicit(&limit->evidence, memory_order_relaxed);
    uint64_t next;
    do {
        struct evidence e = evidence_unpack(word);
        *j = (struct judgement){.ruling = RULING_NONE};
        e.run = run_after(e.run, s->kind);
        j->run = e.run;
        if (s->judged && e.epoch == s->epoch) {
            evidence_judge(limit, s, &e, j);
        }
        next = evidence_pack(&e);
    } while (!atomic_compare_exchange_weak_explicit(&limit->evidence, &word, next, memory_order_relaxed,
                                                    memory_order_relaxed));
}

/* The sum goes down with the notes. By compare-and-swap, because a subtraction could take more than a cut has left. */
static void latency_halve(struct becalm_limit *limit, uint64_t latency)
{
    uint64_t sum = atomic_load_explicit(&limit->latency, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&limit->latency, &sum, (sum + latency) / 2, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

/* The first cut of a series has nothing to compare itself with, so the latency is kept from the second one on, together
 * with the limit of two cuts ago: what an undo goes back to. */
static void cut_in_series(struct becalm_limit *limit, const struct becalm_limit_policy *policy, const struct sample *s,
                          const struct judgement *j)
{
    uint64_t per = becalm__units_per_slot(policy->kind);
    uint64_t units = atomic_load_explicit(&limit->units, memory_order_relaxed);
    uint64_t used = per * becalm__in_flight_with(limit);
    uint64_t previous = j->series ? j->mean : 0;
    uint64_t one = atomic_load_explicit(&limit->undo_one, memory_order_relaxed);
    atomic_store_explicit(&limit->previous, previous, memory_order_relaxed);
    atomic_store_explicit(&limit->undo_two, previous > 0 ? one : 0, memory_order_relaxed);
    atomic_store_explicit(&limit->undo_one, units < used ? units : used, memory_order_relaxed);
    atomic_store_explicit(&limit->latency, 0, memory_order_relaxed);
    atomic_store_explicit(&limit->last_cut_at, s->now, memory_order_relaxed);
    units_cut(limit, policy);
}

/* Two cuts did not shorten the answers: they are not late because they queue. */
static void undo_cuts(struct becalm_limit *limit, const struct judgement *j)
{
    word_copy(&limit->units, &limit->undo_two);
    atomic_store_explicit(&limit->reference, j->mean, memory_order_relaxed);
    atomic_store_explicit(&limit->previous, 0, memory_order_relaxed);
    atomic_store_explicit(&limit->latency, 0, memory_order_relaxed);
}

/* Not enough were slow: whatever series of cuts there was is over. */
static void halve_notes(struct becalm_limit *limit, const struct sample *s, const struct judgement *j)
{
    uint64_t reference = atomic_load_explicit(&limit->reference, memory_order_relaxed);
    if (j->answered > 0 && 2 * j->mean < reference) {
        atomic_store_explicit(&limit->reference, 0, memory_order_relaxed); /* it is not slow any more */
    }
    atomic_store_explicit(&limit->previous, 0, memory_order_relaxed);
    latency_halve(limit, s->latency);
}

static void judgement_do(struct becalm_limit *limit, const struct becalm_limit_policy *policy, const struct sample *s,
                         const struct judgement *j)
{
    switch (j->ruling) {
    case RULING_NONE:
        if (j->counted && s->latency > 0) {
            atomic_fetch_add_explicit(&limit->latency, s->latency, memory_order_relaxed);
        }
        return;
    case RULING_HALVE:
        halve_notes(limit, s, j);
        return;
    case RULING_CUT:
        cut_in_series(limit, policy, s, j);
        return;
    case RULING_UNDO:
        undo_cuts(limit, j);
        return;
    }
    BECALM_UNREACHABLE();
}

static void evidence_drop(struct becalm_limit *limit)
{
    uint64_t word = atomic_load_explicit(&limit->evidence, memory_order_relaxed);
    uint64_t next;
    do {
        struct evidence e = evidence_unpack(word);
        e.series = 0;
        evidence_restart(&e);
        next = evidence_pack(&e);
    } while (!atomic_compare_exchange_weak_explicit(&limit->evidence, &word, next, memory_order_relaxed,
                                                    memory_order_relaxed));
    atomic_store_explicit(&limit->previous, 0, memory_order_relaxed);
    atomic_store_explicit(&limit->latency, 0, memory_order_relaxed);
}

/* Timeouts in a row happen by chance when there are many calls, so that time without a success is asked for as well.
 * The right to cut is last_cut_at: one of the threads that see the same timeouts moves it. */
static void timeout_note(struct becalm_limit *limit, const struct becalm_limit_policy *policy, const struct sample *s,
                         uint32_t run)
{
    becalm_ns ok_at = atomic_load_explicit(&limit->last_ok_at, memory_order_relaxed);
    if (run < RUN_ENOUGH || becalm_ns_since(s->now, ok_at) < s->timeout / 4) {
        return;
    }
    uint64_t cut_at = atomic_load_explicit(&limit->last_cut_at, memory_order_relaxed);
    if (becalm_ns_since(s->now, cut_at) > CUT_EVERY &&
        atomic_compare_exchange_strong_explicit(&limit->last_cut_at, &cut_at, s->now, memory_order_relaxed,
                                                memory_order_relaxed)) {
        evidence_drop(limit);
        units_cut(limit, policy);
    }
    if (limit_now(limit, policy) ==
        1) { /* more than one slot: there is something left to cut, or a floor that was wanted */
        pace_lower(limit, s->now);
    }
}

static void pace_end(struct becalm_limit *limit)
{
    if (atomic_load_explicit(&limit->pace, memory_order_relaxed) != BECALM__PACE_FULL) {
        atomic_store_explicit(&limit->pace, BECALM__PACE_FULL, memory_order_relaxed);
    }
}

static void success_note(struct becalm_limit *limit, const struct becalm_limit_policy *policy, const struct sample *s)
{
    if (becalm__success_is_news(limit, s->now, s->timeout)) {
        atomic_store_explicit(&limit->last_ok_at, s->now, memory_order_relaxed);
    }
    pace_end(limit);
    if (!s->bad) {
        units_grow(limit, policy);
    }
}

static inline struct sample sample_make(const struct becalm_limit *limit, const struct becalm_limit_policy *policy,
                                        becalm_ns now, const struct becalm_slot *slot, enum becalm_evidence evidence)
{
    struct sample s = {
        .kind = evidence,
        .now = now,
        .timeout = slot->timeout,
        .epoch = slot->epoch,
        .judged = policy->kind == BECALM_LIMIT_SLOTS,
    };
    if (evidence == BECALM_EVIDENCE_TIMEOUT) {
        s.bad = s.judged;
        return s;
    }
    becalm_ns took = becalm_ns_since(now, slot->sent_at);
    s.latency = took / BECALM_US;
    s.bad = s.judged && took > slot->timeout / 4 &&
            s.latency > 2 * atomic_load_explicit(&limit->reference, memory_order_relaxed);
    return s;
}

/* Makes the sample again, because handing it over would have it stored for every attempt. */
BECALM__SELDOM static void note_weigh(struct becalm_limit *limit, const struct becalm_limit_policy *policy,
                                      becalm_ns now, const struct becalm_slot *slot, enum becalm_evidence evidence)
{
    const struct sample s = sample_make(limit, policy, now, slot, evidence);
    struct judgement j = {.ruling = RULING_NONE};
    if (!sample_is_calm(limit, &s)) {
        evidence_add(limit, &s, &j);
        judgement_do(limit, policy, &s, &j);
    }
    if (evidence == BECALM_EVIDENCE_SUCCESS) {
        success_note(limit, policy, &s);
    } else if (evidence == BECALM_EVIDENCE_TIMEOUT) {
        timeout_note(limit, policy, &s, j.run);
    }
}

/* A success as all the others: weighing it would write nothing. */
static inline bool note_is_routine(const struct becalm_limit *limit, const struct becalm_limit_policy *policy,
                                   becalm_ns now, const struct becalm_slot *slot, enum becalm_evidence evidence)
{
    if (evidence != BECALM_EVIDENCE_SUCCESS || !becalm__limit_rests(limit, policy->kind, policy->max, now, slot)) {
        return false;
    }
    const struct sample s = sample_make(limit, policy, now, slot, evidence);
    return sample_is_calm(limit, &s);
}

void becalm__limit_note_any(struct becalm_limit *limit, const struct becalm_limit_policy *policy,
                            const struct becalm_moment *at, struct becalm_slot *slot, enum becalm_evidence evidence)
{
    if (slot->noted || evidence == BECALM_EVIDENCE_NONE) {
        return;
    }
    slot->noted = true;
    if (kind_adapts(policy->kind) && !note_is_routine(limit, policy, at->now, slot, evidence)) {
        note_weigh(limit, policy, at->now, slot, evidence);
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
    pace_end(limit);
}
