/* SPDX-License-Identifier: MIT */
#include "breaker_lab.h"

/* A second breaker, written as simply as can be: no packed words, no atomics, every rule in the open. Random events
 * must find no difference. */

#define MODEL_NOTES 4096

struct model_note {
    becalm_ns at;
    bool call, failed, slow;
};

struct model {
    const struct becalm_breaker_policy *policy;
    enum becalm_breaker_state state;
    uint32_t generation, openings, handed, ended, failed, slow, row;
    uint64_t late;
    bool has_failed;
    becalm_ns failed_took, ends_at;
    struct model_note note[MODEL_NOTES]; /* since the last clear, the oldest dropped */
    uint32_t notes, calls;
    enum becalm_breaker_state from, to;
    bool entered;
};

struct model_permit {
    bool held, probe, slow;
    uint32_t generation, call; /* the number of its call since the last clear */
};

static uint32_t model_probes(const struct model *m)
{
    return m->policy->mode == BECALM_BREAKER_CONSECUTIVE ? m->policy->success_threshold : m->policy->probes;
}

static void model_enter(struct model *m, enum becalm_breaker_state to)
{
    m->from = m->state;
    m->to = m->state = to;
    m->entered = true;
    m->generation++;
    m->handed = m->ended = m->failed = m->slow = m->row = 0;
    if (to == OPEN) {
        m->openings++;
    } else if (to != HALF_OPEN) {
        m->openings = 0;
    }
    if (to == CLOSED || to == METRICS_ONLY) {
        m->notes = m->calls = 0;
    }
}

/* Notes of a COUNT window: the latest `window_size` calls. Of a TIME window: those whose second is near enough. */
static void model_sums(const struct model *m, becalm_ns now, uint64_t sums[3])
{
    bool count = m->policy->window_kind == BECALM_WINDOW_COUNT;
    sums[0] = sums[1] = sums[2] = 0;
    for (uint32_t i = m->notes; i-- > 0;) {
        const struct model_note *note = &m->note[i];
        if (count ? sums[0] == m->policy->window_size
                  : now / BECALM_S - note->at / BECALM_S >= m->policy->window_size) {
            break;
        }
        sums[0] += note->call;
        sums[1] += note->failed;
        sums[2] += note->slow;
    }
}

static bool model_share(uint64_t part, uint64_t whole, uint32_t ppm)
{
    return part * 1000000 >= whole * ppm;
}

static bool model_bad(const struct model *m, uint64_t all, uint64_t failed, uint64_t slow_ones)
{
    bool slow_rule = m->policy->slow_share_ppm != BECALM_BREAKER_SLOW_OFF;
    return model_share(failed, all, m->policy->failure_share_ppm) ||
           (slow_rule && model_share(slow_ones, all, m->policy->slow_share_ppm));
}

static bool model_trial_bad(const struct model *m, uint32_t all, uint32_t failed)
{
    return m->policy->mode == BECALM_BREAKER_CONSECUTIVE ? failed > 0 : model_bad(m, all, failed, m->slow);
}

static bool model_slow_rule(const struct model *m)
{
    return m->policy->mode == BECALM_BREAKER_RATE && m->policy->slow_share_ppm != BECALM_BREAKER_SLOW_OFF;
}

/* The only probe is silent for a second, and calls failed within half of it. */
static bool model_silence_is_news(const struct model *m)
{
    becalm_ns lease = becalm_ns_min(m->policy->half_open_for, m->policy->open_for);
    return m->handed > m->ended && model_probes(m) == 1 && !model_slow_rule(m) && m->has_failed &&
           m->failed_took < lease / 2;
}

static void model_begin(struct model *m, becalm_ns now)
{
    m->entered = false;
    m->from = m->to = m->state;
    if (m->state == HALF_OPEN && now >= m->ends_at) {
        bool bad = !model_silence_is_news(m) && model_trial_bad(m, m->handed, m->failed + (m->handed - m->ended));
        model_enter(m, m->handed == 0 ? HALF_OPEN : bad ? OPEN : CLOSED);
    }
}

static bool model_admit(struct model *m, becalm_ns now, struct model_permit *permit)
{
    model_begin(m, now);
    if (m->state == OPEN && !m->entered && now >= m->ends_at) {
        model_enter(m, HALF_OPEN);
    }
    bool probe = m->state == HALF_OPEN;
    bool yes = probe ? m->handed < model_probes(m) : m->state != OPEN && m->state != FORCED_OPEN;
    *permit = (struct model_permit){.held = yes, .probe = probe, .generation = m->generation};
    m->handed += probe && yes;
    return yes;
}

static void model_record(struct model *m, becalm_ns now, struct model_permit *permit, struct model_note what)
{
    what.at = now;
    if (m->notes == MODEL_NOTES) {
        memmove(m->note, m->note + 1, sizeof m->note - sizeof *m->note);
        m->notes--;
    }
    if (!what.call && m->policy->window_kind == BECALM_WINDOW_COUNT) { /* to the note that it has, if it is there */
        uint32_t ago = m->calls - permit->call;
        if (ago < m->policy->window_size && ago < m->notes) {
            m->note[m->notes - 1 - ago].failed = true;
        }
    } else {
        m->note[m->notes++] = what;
        m->calls += what.call;
        permit->call = m->calls;
    }
}

static void model_count(struct model *m, becalm_ns now, struct model_permit *permit, struct model_note what)
{
    if (m->state == HALF_OPEN) {
        m->ended += what.call;
        m->failed += what.failed;
        m->slow += what.slow;
        bool row = m->policy->mode == BECALM_BREAKER_CONSECUTIVE;
        if ((what.call && m->ended == model_probes(m)) || (row && m->failed > 0)) {
            model_enter(m, model_trial_bad(m, m->ended, m->failed) ? OPEN : CLOSED);
        }
    } else if (m->state == CLOSED || m->state == METRICS_ONLY) {
        model_record(m, now, permit, what);
        uint64_t sums[3];
        model_sums(m, now, sums);
        uint32_t min_calls = m->policy->min_calls;
        if (m->policy->window_kind == BECALM_WINDOW_COUNT && min_calls > m->policy->window_size) {
            min_calls = m->policy->window_size;
        }
        m->row = what.failed ? m->row + 1 : 0;
        bool opens = m->policy->mode == BECALM_BREAKER_CONSECUTIVE
                         ? m->row >= m->policy->failure_threshold
                         : sums[0] >= min_calls && model_bad(m, sums[0], sums[1], sums[2]);
        if (opens && m->state == CLOSED) {
            model_enter(m, OPEN);
        }
    }
}

static void model_slow(struct model *m, becalm_ns now, struct model_permit *permit)
{
    model_begin(m, now);
    if (permit->held && !permit->slow && model_slow_rule(m) && permit->generation == m->generation) {
        permit->slow = true;
        model_count(m, now, permit, (struct model_note){.call = true, .slow = true});
    }
}

static void model_note(struct model *m, becalm_ns now, struct model_permit *permit, enum becalm_verdict verdict,
                       becalm_ns took)
{
    model_begin(m, now);
    if (!permit->held) {
        return;
    }
    permit->held = false;
    bool current = permit->generation == m->generation;
    if (verdict == NEUTRAL) {
        m->handed -= current && permit->probe && !permit->slow;
    } else if (!current) {
        m->late++;
        bool slow = permit->slow || (model_slow_rule(m) && took >= m->policy->slow_after);
        if (permit->probe && verdict == OK && !slow && model_probes(m) == 1 &&
            (m->state == OPEN || m->state == HALF_OPEN)) {
            enum becalm_breaker_state first = m->from; /* its lease may have ended in this same step */
            model_enter(m, CLOSED);
            m->from = first;
        }
    } else {
        struct model_note what = {.call = !permit->slow, .failed = verdict == FAILED};
        m->has_failed |= what.failed;
        m->failed_took = what.failed ? took : m->failed_took;
        what.slow = what.call && model_slow_rule(m) && took >= m->policy->slow_after;
        if (what.call || what.failed) {
            model_count(m, now, permit, what);
        }
    }
}

/* Random policies, random events; the breaker and its model side by side. */

#define DUEL_PERMITS 32u

struct duel {
    struct lab lab;
    struct model model;
    struct becalm_permit permit[DUEL_PERMITS];
    struct model_permit model_permit[DUEL_PERMITS];
    uint64_t seed, random;
    uint32_t live_probes;
    uint64_t moves[6][6];
};

static struct duel duel; /* large */

static uint32_t duel_draw(uint32_t bound)
{
    return (uint32_t)becalm_rand_below(becalm_rand_next(&duel.random), bound);
}

static void duel_start(uint64_t seed)
{
    duel.seed = duel.random = seed;
    struct becalm_breaker_policy *policy = &duel.lab.policy;
    becalm_breaker_defaults(policy);
    policy->mode = duel_draw(4) == 0 ? BECALM_BREAKER_CONSECUTIVE : BECALM_BREAKER_RATE;
    policy->window_kind = duel_draw(2) == 0 ? BECALM_WINDOW_COUNT : BECALM_WINDOW_TIME;
    policy->window_size = 1 + duel_draw(20);
    policy->min_calls = 1 + duel_draw(25);
    policy->failure_share_ppm = duel_draw(4) == 0 ? 1000000 : 100000 + duel_draw(900000);
    policy->slow_share_ppm = duel_draw(2) == 0 ? BECALM_BREAKER_SLOW_OFF : 100000 + duel_draw(900001);
    policy->slow_after = 500 * BECALM_MS;
    policy->probes = 1 + duel_draw(5);
    policy->half_open_for = (1 + duel_draw(5)) * BECALM_S;
    policy->open_factor_ppm = 1000000 + duel_draw(2) * duel_draw(2000000);
    policy->open_cap = 5 * BECALM_S;
    policy->failure_threshold = 1 + duel_draw(6);
    policy->success_threshold = 1 + duel_draw(4);
    lab_start(&duel.lab);
    memset(&duel.model, 0, sizeof duel.model);
    memset(duel.permit, 0, sizeof duel.permit);
    memset(duel.model_permit, 0, sizeof duel.model_permit);
    duel.model.policy = policy;
    duel.model.ends_at = BECALM_NEVER;
}

/* The expected open time, before jitter. */
static becalm_ns duel_open_time(void)
{
    const struct becalm_breaker_policy *policy = &duel.lab.policy;
    becalm_ns longest = policy->open_for;
    for (uint32_t i = 1; i < duel.model.openings && longest < policy->open_cap; i++) {
        longest = longest / 1000 * policy->open_factor_ppm / 1000;
    }
    return policy->open_factor_ppm == 1000000 ? policy->open_for : becalm_ns_min(longest, policy->open_cap);
}

/* Jitter is the one thing that the model does not know: it takes the instant over, if it is in range. */
static bool duel_take_ends_at(void)
{
    struct model *m = &duel.model;
    becalm_ns low = 0, high = 0;
    if (m->state == OPEN) {
        high = duel_open_time() + 10 * BECALM_US; /* the model rounds otherwise */
        low = high / 10 * 8 - 20 * BECALM_US;
    } else if (m->state == HALF_OPEN) {
        const struct becalm_breaker_policy *policy = &duel.lab.policy;
        uint64_t probes = policy->mode == BECALM_BREAKER_CONSECUTIVE ? policy->success_threshold : policy->probes;
        high = probes == 1 ? becalm_ns_min(policy->half_open_for, policy->open_for) : policy->half_open_for;
        low = high - 64;
    }
    m->ends_at = becalm_breaker_retest_at(duel.lab.b);
    becalm_ns span = m->ends_at - duel.lab.at.now;
    return high == 0 ? m->ends_at == BECALM_NEVER : low <= span && span <= high;
}

static bool duel_agrees(const struct becalm_permit *permit)
{
    struct model *m = &duel.model;
    struct becalm_window_sums sums;
    uint64_t expected[3];
    becalm_breaker_read(duel.lab.b, duel.lab.at.now, &sums);
    model_sums(m, duel.lab.at.now, expected);
    bool moved = permit == NULL || (permit->from == m->from && permit->to == m->to);
    bool times = m->entered ? duel_take_ends_at() : becalm_breaker_retest_at(duel.lab.b) == m->ends_at;
    return moved && times && becalm_breaker_state(duel.lab.b) == m->state &&
           becalm_breaker_late(duel.lab.b) == m->late && sums.lane[0] == expected[0] && sums.lane[1] == expected[1] &&
           sums.lane[2] == expected[2];
}

/* One random event. False: the two disagree. */
static bool duel_step(void)
{
    struct lab *lab = &duel.lab;
    struct model *m = &duel.model;
    uint32_t slot = duel_draw(DUEL_PERMITS), what = duel_draw(1000);
    struct becalm_permit *permit = &duel.permit[slot];
    struct model_permit *mirror = &duel.model_permit[slot];
    lab->at.random = becalm_rand_next(&duel.random);
    lab->at.now += duel_draw(4) == 0 ? duel_draw(400) * BECALM_MS : 0;
    lab->at.now += what == 999 ? duel_draw(30) * BECALM_S : 0;
    if (what < 2) {
        enum becalm_breaker_state to = (enum becalm_breaker_state)duel_draw(6);
        bool same = becalm_breaker_force(lab->b, &lab->policy, &lab->at, to) == m->state;
        model_enter(m, to);
        return same && duel_agrees(NULL);
    }
    if (!permit->held) {
        bool peeked = becalm_breaker_peek(lab->b, lab->at.now);
        bool admitted = admit(lab, permit);
        bool expected = model_admit(m, lab->at.now, mirror);
        duel.moves[permit->from][permit->to]++;
        return admitted == expected && (peeked || !admitted) && (!admitted || permit->probe == mirror->probe) &&
               m->handed <= model_probes(m) && duel_agrees(permit);
    }
    if (what < 100) {
        slow(lab, permit);
        model_slow(m, lab->at.now, mirror);
    } else {
        uint32_t luck = duel_draw(100), mood = (uint32_t)(lab->at.now / (20 * BECALM_S)) % 3; /* good times and bad */
        enum becalm_verdict verdict = luck < 10 ? NEUTRAL : luck < 20 + 35 * mood ? FAILED : OK;
        becalm_ns took = duel_draw(700) * BECALM_MS;
        becalm_breaker_note(lab->b, &lab->policy, &lab->at, permit, verdict, took);
        model_note(m, lab->at.now, mirror, verdict, took);
    }
    duel.moves[permit->from][permit->to]++;
    return duel_agrees(permit);
}

static void test_breaker_property__does_what_a_simple_model_does_over_a_million_events(void **unused)
{
    (void)unused;
    memset(duel.moves, 0, sizeof duel.moves);
    for (uint64_t seed = 1; seed <= RUNS_OF(500); seed++) {
        duel_start(seed);
        for (uint32_t i = 0; i < 2000; i++) {
            if (!duel_step()) {
                print_error("seed %" PRIu64 ", event %" PRIu32 ": breaker %s, model %s\n", seed, i,
                            becalm_breaker_word(state(&duel.lab)), becalm_breaker_word(duel.model.state));
                fail();
            }
        }
    }
    /* Only the documented arrows, and each of them walked. */
    for (int from = 0; from < 6; from++) {
        for (int to = 0; to < 6; to++) {
            bool arrow = (from == CLOSED && to == OPEN) || (from == OPEN && (to == HALF_OPEN || to == CLOSED)) ||
                         (from == HALF_OPEN && (to == OPEN || to == CLOSED));
            if (from != to) {
                bool rare = from == OPEN && to == CLOSED; /* one probe decides, was late, and then was well */
                check_true((duel.moves[from][to] > (rare ? RUNS_OF(20) : RUNS_OF(1000))) == arrow);
                check_true((duel.moves[from][to] > 0) == arrow);
            }
        }
    }
}

/* After any events, and even if every probe gets lost, there is another probe within two open times. */
static void test_breaker_property__is_never_stuck(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        duel_start(seed);
        for (uint32_t i = 0; i < 300; i++) {
            if (!duel_step()) {
                print_error("seed %" PRIu64 ", event %" PRIu32 "\n", seed, i);
                fail();
            }
        }
        struct lab *lab = &duel.lab;
        if (state(lab) == FORCED_OPEN) {
            continue;
        }
        for (int round = 0; round < 20; round++) {
            struct becalm_permit lost;
            bool admitted = false;
            for (int tries = 0; tries < 2 && !admitted; tries++) {
                lab->at.now += 6 * BECALM_S; /* longer than any lease or open time here */
                admitted = admit(lab, &lost);
            }
            check_true(admitted);
        }
    }
}

BECALM_TESTS(cmocka_unit_test(test_breaker_property__does_what_a_simple_model_does_over_a_million_events),
             cmocka_unit_test(test_breaker_property__is_never_stuck))
