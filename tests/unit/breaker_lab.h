/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TESTS_BREAKER_LAB_H
#define BECALM_TESTS_BREAKER_LAB_H

/* The common part of the breaker's tests: a breaker with a clock, and short names for its operations. */

#include <becalm/breaker.h>

#include "check.h"

#define CLOSED       BECALM_BREAKER_CLOSED
#define OPEN         BECALM_BREAKER_OPEN
#define HALF_OPEN    BECALM_BREAKER_HALF_OPEN
#define DISABLED     BECALM_BREAKER_DISABLED
#define FORCED_OPEN  BECALM_BREAKER_FORCED_OPEN
#define METRICS_ONLY BECALM_BREAKER_METRICS_ONLY
#define OK           BECALM_VERDICT_OK
#define FAILED       BECALM_VERDICT_FAILED
#define NEUTRAL      BECALM_VERDICT_NEUTRAL

/* A breaker, its policy and a clock that the test moves by hand. */
struct lab {
    struct becalm_breaker_policy policy;
    struct becalm_breaker *b;
    struct becalm_moment at;
};

static _Alignas(64) unsigned char lab_memory[1 << 18];

static inline void lab_start(struct lab *lab)
{
    const char *why = NULL;
    check_true(becalm_breaker_check(&lab->policy, &why) == 0);
    check_true(why == NULL);
    check_true(becalm_breaker_bytes(&lab->policy, 1) <= sizeof lab_memory);
    lab->b = becalm_breaker_init(lab_memory, &lab->policy, 1);
    lab->at = (struct becalm_moment){.now = 1000 * BECALM_S, .random = 1};
}

/* Ten calls in the window, five of them, 50 %; two probes. */
static inline void lab_small(struct lab *lab)
{
    becalm_breaker_resilience4j(&lab->policy);
    lab->policy.window_size = 10;
    lab->policy.min_calls = 5;
    lab->policy.probes = 2;
    lab->policy.slow_after = BECALM_S;
    lab_start(lab);
}

static inline void lab_consecutive(struct lab *lab)
{
    becalm_breaker_defaults(&lab->policy);
    lab->policy.mode = BECALM_BREAKER_CONSECUTIVE;
    lab_start(lab);
}

static inline enum becalm_breaker_state state(const struct lab *lab)
{
    return becalm_breaker_state(lab->b);
}

static inline bool admit(struct lab *lab, struct becalm_permit *permit)
{
    bool admitted = becalm_breaker_admit(lab->b, &lab->policy, &lab->at, permit);
    check_true(permit->held == admitted);
    return admitted;
}

static inline void slow(struct lab *lab, struct becalm_permit *permit)
{
    becalm_breaker_slow(lab->b, &lab->policy, &lab->at, permit);
}

static inline void end(struct lab *lab, struct becalm_permit *permit, enum becalm_verdict verdict)
{
    becalm_breaker_note(lab->b, &lab->policy, &lab->at, permit, verdict, BECALM_MS);
    check_true(!permit->held);
}

/* One whole call, which must be let through. */
static inline void call_took(struct lab *lab, enum becalm_verdict verdict, becalm_ns took)
{
    struct becalm_permit permit;
    check_true(admit(lab, &permit));
    becalm_breaker_note(lab->b, &lab->policy, &lab->at, &permit, verdict, took);
}

static inline void calls(struct lab *lab, uint32_t n, enum becalm_verdict verdict)
{
    for (uint32_t i = 0; i < n; i++) {
        call_took(lab, verdict, BECALM_MS);
    }
}

static inline bool refused(struct lab *lab)
{
    struct becalm_permit permit;
    return !admit(lab, &permit);
}

static inline void force(struct lab *lab, enum becalm_breaker_state to)
{
    (void)becalm_breaker_force(lab->b, &lab->policy, &lab->at, to);
}

static inline void wait_for_retest(struct lab *lab)
{
    lab->at.now = becalm_breaker_retest_at(lab->b);
}

static inline void check_sums(const struct lab *lab, uint64_t all, uint64_t failed, uint64_t slow_ones)
{
    struct becalm_window_sums sums;
    becalm_breaker_read(lab->b, lab->at.now, &sums);
    check_eq_u64(sums.lane[0], all);
    check_eq_u64(sums.lane[1], failed);
    check_eq_u64(sums.lane[2], slow_ones);
}

static inline void check_moved(const struct becalm_permit *permit, enum becalm_breaker_state from,
                               enum becalm_breaker_state to)
{
    check_eq_str(becalm_breaker_word(permit->from), becalm_breaker_word(from));
    check_eq_str(becalm_breaker_word(permit->to), becalm_breaker_word(to));
}

#endif
