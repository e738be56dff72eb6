/* SPDX-License-Identifier: MIT */
#include "breaker_lab.h"

/* The policy. */

static void test_breaker__starts_closed_and_empty(void **unused)
{
    (void)unused;
    struct lab lab;
    becalm_breaker_defaults(&lab.policy);
    lab_start(&lab);
    check_true(state(&lab) == CLOSED);
    check_true(becalm_breaker_peek(lab.b, lab.at.now));
    check_eq_u64(becalm_breaker_retest_at(lab.b), BECALM_NEVER);
    check_eq_u64(becalm_breaker_late(lab.b), 0);
    check_sums(&lab, 0, 0, 0);
    struct becalm_permit permit;
    check_true(admit(&lab, &permit));
    check_true(!permit.probe);
    check_eq_u64(permit.expires_at, BECALM_NEVER);
    check_moved(&permit, CLOSED, CLOSED);
}

static void test_breaker__defaults_open_when_twenty_calls_have_failed_and_none_succeeded(void **unused)
{
    (void)unused;
    struct lab lab;
    becalm_breaker_defaults(&lab.policy);
    lab_start(&lab);
    calls(&lab, 19, FAILED);
    check_true(state(&lab) == CLOSED);
    calls(&lab, 1, FAILED);
    check_true(state(&lab) == OPEN);
    lab_start(&lab);
    calls(&lab, 1, OK);
    calls(&lab, 1000, FAILED);
    check_true(state(&lab) == CLOSED);
}

static void test_breaker__resilience4j_has_their_eight_defaults(void **unused)
{
    (void)unused;
    struct becalm_breaker_policy policy;
    becalm_breaker_resilience4j(&policy);
    check_eq_u64(policy.failure_share_ppm, 500000);
    check_eq_u64(policy.slow_share_ppm, 1000000);
    check_eq_u64(policy.slow_after, 60 * BECALM_S);
    check_eq_u64(policy.probes, 10);
    check_true(policy.window_kind == BECALM_WINDOW_COUNT);
    check_eq_u64(policy.window_size, 100);
    check_eq_u64(policy.min_calls, 100);
    check_eq_u64(policy.open_for, 60 * BECALM_S);
    check_eq_u64(policy.half_open_for, 5 * BECALM_S);
    check_true(becalm_breaker_check(&policy, NULL) == 0);
}

static void check_bad(const struct becalm_breaker_policy *policy, const char *field)
{
    const char *why = NULL;
    check_true(becalm_breaker_check(policy, &why) == BECALM_EINVAL);
    check_true(becalm_breaker_check(policy, NULL) == BECALM_EINVAL);
    check_true(why != NULL && strncmp(why, field, strlen(field)) == 0);
}

/* Sets a field of the defaults (or of the consecutive mode's) to a value that must be refused by name. */
#define CHECK_BAD(the_mode, field, value)       \
    do {                                        \
        struct becalm_breaker_policy policy;    \
        becalm_breaker_defaults(&policy);       \
        policy.mode = the_mode;                 \
        policy.field = value;                   \
        check_bad(&policy, #field " must be "); \
    } while (0)

static void test_breaker__refuses_bad_parameters_by_name(void **unused)
{
    (void)unused;
    const enum becalm_breaker_mode rate = BECALM_BREAKER_RATE;
    const enum becalm_breaker_mode row = BECALM_BREAKER_CONSECUTIVE;
    CHECK_BAD(rate, failure_share_ppm, 0);
    CHECK_BAD(rate, failure_share_ppm, 1000001);
    CHECK_BAD(rate, slow_share_ppm, 1000001);
    CHECK_BAD(rate, window_kind, (enum becalm_window_kind)7);
    CHECK_BAD((enum becalm_breaker_mode)7, mode, (enum becalm_breaker_mode)7);
    CHECK_BAD(rate, window_size, 0);
    CHECK_BAD(rate, window_size, 86401);
    CHECK_BAD(rate, window_size, UINT32_MAX);
    CHECK_BAD(row, window_size, 0);
    CHECK_BAD(rate, min_calls, 0);
    CHECK_BAD(rate, min_calls, 1000001);
    CHECK_BAD(rate, probes, 0);
    CHECK_BAD(rate, probes, 65536);
    CHECK_BAD(rate, half_open_for, 0);
    CHECK_BAD(rate, half_open_for, BECALM_NEVER);
    CHECK_BAD(rate, open_for, BECALM_MS - 1);
    CHECK_BAD(rate, open_for, BECALM_NEVER);
    CHECK_BAD(rate, open_factor_ppm, 999999);
    CHECK_BAD(rate, open_factor_ppm, 100000001);
    CHECK_BAD(row, failure_threshold, 0);
    CHECK_BAD(row, failure_threshold, 65536);
    CHECK_BAD(row, success_threshold, 0);
    CHECK_BAD(row, success_threshold, 65536);
}

static void test_breaker__refuses_bad_parameters_that_depend_on_others(void **unused)
{
    (void)unused;
    struct becalm_breaker_policy policy;
    becalm_breaker_defaults(&policy);
    policy.slow_after = 0; /* says nothing while the slow rule is off */
    check_true(becalm_breaker_check(&policy, NULL) == 0);
    policy.slow_share_ppm = 1;
    check_bad(&policy, "slow_after must be ");
    policy.slow_after = BECALM_NEVER;
    check_bad(&policy, "slow_after must be ");

    becalm_breaker_defaults(&policy);
    policy.open_for = 120 * BECALM_S; /* the cap says nothing while nothing grows */
    check_true(becalm_breaker_check(&policy, NULL) == 0);
    policy.open_factor_ppm = 2000000;
    check_bad(&policy, "open_cap must be ");
    policy.open_cap = BECALM_NEVER;
    check_bad(&policy, "open_cap must be ");

    becalm_breaker_resilience4j(&policy);
    policy.window_size = BECALM_WINDOW_SIZE_MAX + 1;
    check_bad(&policy, "window_size must be ");
}

static void test_breaker__accepts_the_ends_of_every_range(void **unused)
{
    (void)unused;
    struct lab lab;
    becalm_breaker_defaults(&lab.policy);
    lab.policy.failure_share_ppm = lab.policy.slow_share_ppm = 1;
    lab.policy.slow_after = lab.policy.half_open_for = lab.policy.open_for = lab.policy.open_cap = BECALM_MS;
    lab.policy.window_size = lab.policy.min_calls = 1;
    lab.policy.open_factor_ppm = 100000000;
    lab_start(&lab);
    calls(&lab, 1, FAILED);
    check_true(state(&lab) == OPEN);
    lab.policy.probes = 65535;
    lab.policy.window_size = 86400;
    lab.policy.slow_after = lab.policy.half_open_for = lab.policy.open_for = lab.policy.open_cap = 86400 * BECALM_S;
    lab_start(&lab);
    calls(&lab, 1, FAILED);
    wait_for_retest(&lab);
    calls(&lab, 65535, OK);
    check_true(state(&lab) == CLOSED);
}

static void test_breaker__takes_any_number_of_cells(void **unused)
{
    (void)unused;
    struct becalm_breaker_policy policy;
    becalm_breaker_defaults(&policy);
    check_eq_u64(becalm_breaker_bytes(&policy, 0), becalm_breaker_bytes(&policy, 1));
    check_eq_u64(becalm_breaker_bytes(&policy, 1000), becalm_breaker_bytes(&policy, 64));
    check_true(becalm_breaker_bytes(&policy, 64) > becalm_breaker_bytes(&policy, 1));
    check_eq_u64(becalm_breaker_bytes(&policy, 3) % 64, 0);
}

static void test_breaker__has_a_word_for_every_state(void **unused)
{
    (void)unused;
    check_eq_str(becalm_breaker_word(CLOSED), "CLOSED");
    check_eq_str(becalm_breaker_word(OPEN), "OPEN");
    check_eq_str(becalm_breaker_word(HALF_OPEN), "HALF_OPEN");
    check_eq_str(becalm_breaker_word(DISABLED), "DISABLED");
    check_eq_str(becalm_breaker_word(FORCED_OPEN), "FORCED_OPEN");
    check_eq_str(becalm_breaker_word(METRICS_ONLY), "METRICS_ONLY");
    check_eq_str(becalm_breaker_word((enum becalm_breaker_state)99), "UNKNOWN");
}

/* CLOSED. */

/* One row of Resilience4j's arithmetic: these calls, and does the last one open it? */
struct rate_row {
    uint32_t size, min_calls, threshold_percent, good, bad;
    bool opens;
};

static void check_rate_row(const struct rate_row *row, enum becalm_window_kind kind, bool bad_last)
{
    struct lab lab;
    becalm_breaker_resilience4j(&lab.policy);
    lab.policy.window_kind = kind;
    lab.policy.window_size = row->size;
    lab.policy.min_calls = row->min_calls;
    lab.policy.failure_share_ppm = row->threshold_percent * 10000;
    lab_start(&lab);
    calls(&lab, bad_last ? row->good : row->bad, bad_last ? OK : FAILED);
    calls(&lab, (bad_last ? row->bad : row->good) - 1, bad_last ? FAILED : OK);
    check_true(state(&lab) == CLOSED);
    calls(&lab, 1, bad_last ? FAILED : OK);
    check_eq_str(becalm_breaker_word(state(&lab)), row->opens ? "OPEN" : "CLOSED");
}

static void test_breaker__closed_opens_at_the_failure_rate_of_resilience4j(void **unused)
{
    (void)unused;
    static const struct rate_row rows[] = {
        {100, 100, 50, 50, 50, true},                                 /* 50 % >= 50 % */
        {100, 100, 50, 51, 49, false}, {100, 100, 50, 50, 49, false}, /* 99 calls are no rate */
        {10, 10, 50, 5, 5, true},      {10, 10, 50, 6, 4, false},     {10, 5, 50, 2, 3, true},
        {10, 5, 50, 3, 2, false},      {10, 5, 60, 2, 3, true},       {10, 5, 61, 2, 3, false},
        {10, 10, 33, 7, 3, false},     {12, 12, 33, 8, 4, true},      {20, 20, 1, 19, 1, true},
        {10, 100, 50, 5, 5, true}, /* a full COUNT window is a rate, with any min_calls */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_rate_row(&rows[i], BECALM_WINDOW_COUNT, true);
        check_rate_row(&rows[i], BECALM_WINDOW_COUNT, false); /* a success may be the call that completes the rate */
        if (rows[i].min_calls <= rows[i].size) {
            check_rate_row(&rows[i], BECALM_WINDOW_TIME, true);
            check_rate_row(&rows[i], BECALM_WINDOW_TIME, false);
        }
    }
}

static void test_breaker__a_time_window_does_not_lower_the_minimum_of_calls(void **unused)
{
    (void)unused;
    struct lab lab;
    becalm_breaker_defaults(&lab.policy);
    lab.policy.window_size = 10;
    lab.policy.min_calls = 100;
    lab_start(&lab);
    calls(&lab, 99, FAILED);
    check_true(state(&lab) == CLOSED);
    calls(&lab, 1, FAILED);
    check_true(state(&lab) == OPEN);
}

static void test_breaker__a_count_window_forgets_the_oldest_call(void **unused)
{
    (void)unused;
    struct lab lab;
    lab_small(&lab); /* 10 calls, 50 % */
    calls(&lab, 3, OK);
    calls(&lab, 2, FAILED);
    calls(&lab, 3, OK);
    calls(&lab, 2, FAILED); /* 4 of 10 */
    check_sums(&lab, 10, 4, 0);
    calls(&lab, 5, OK); /* the first five left, two failures among them */
    check_sums(&lab, 10, 2, 0);
    calls(&lab, 2, FAILED);
    check_true(state(&lab) == CLOSED);
    calls(&lab, 1, FAILED);
    check_true(state(&lab) == OPEN);
}

static void test_breaker__a_time_window_forgets_after_its_seconds(void **unused)
{
    (void)unused;
    struct lab lab;
    becalm_breaker_defaults(&lab.policy);
    lab_start(&lab);
    calls(&lab, 19, FAILED);
    lab.at.now += 9 * BECALM_S;
    check_sums(&lab, 19, 19, 0);
    lab.at.now += BECALM_S;
    check_sums(&lab, 0, 0, 0);
    calls(&lab, 1, FAILED);
    check_true(state(&lab) == CLOSED);
}

static void test_breaker__a_success_opens_when_older_successes_have_left_a_time_window(void **unused)
{
    (void)unused;
    struct lab lab;
    becalm_breaker_defaults(&lab.policy);
    lab.policy.failure_share_ppm = 500000;
    lab.policy.min_calls = 5;
    lab_start(&lab);
    calls(&lab, 10, OK);
    lab.at.now += 5 * BECALM_S;
    calls(&lab, 6, FAILED); /* 6 of 16 */
    check_true(state(&lab) == CLOSED);
    lab.at.now += 5 * BECALM_S; /* 6 of 6, but no call has asked the breaker */
    check_true(state(&lab) == CLOSED);
    calls(&lab, 1, OK); /* 6 of 7 */
    check_true(state(&lab) == OPEN);
}

static void test_breaker__closed_opens_at_the_slow_rate(void **unused)
{
    (void)unused;
    struct lab lab;
    lab_small(&lab);
    lab.policy.slow_share_ppm = 600000;
    calls(&lab, 2, OK);
    call_took(&lab, OK, BECALM_S - 1); /* not slow */
    call_took(&lab, OK, BECALM_S);
    call_took(&lab, OK, BECALM_S);
    call_took(&lab, OK, 2 * BECALM_S); /* 3 of 6 */
    check_sums(&lab, 6, 0, 3);
    check_true(state(&lab) == CLOSED);
    call_took(&lab, OK, BECALM_S); /* 4 of 7 */
    check_true(state(&lab) == CLOSED);
    call_took(&lab, OK, BECALM_S); /* 5 of 8 */
    check_true(state(&lab) == OPEN);
}

static void test_breaker__a_slow_failure_counts_in_both_rates(void **unused)
{
    (void)unused;
    struct lab lab;
    lab_small(&lab);
    call_took(&lab, FAILED, BECALM_S);
    check_sums(&lab, 1, 1, 1);
}

static void test_breaker__without_the_slow_rule_nothing_is_slow(void **unused)
{
    (void)unused;
    struct lab lab;
    lab_small(&lab);
    lab.policy.slow_share_ppm = BECALM_BREAKER_SLOW_OFF;
    struct becalm_permit permit;
    check_true(admit(&lab, &permit));
    slow(&lab, &permit);
    check_true(permit.held && !permit.slow);
    check_sums(&lab, 0, 0, 0);
    becalm_breaker_note(lab.b, &lab.policy, &lab.at, &permit, OK, 60 * BECALM_S);
    check_sums(&lab, 1, 0, 0);
}

static void test_breaker__calls_in_flight_open_it_when_they_become_slow(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit permit[5];
    lab_small(&lab);
    for (int i = 0; i < 5; i++) {
        check_true(admit(&lab, &permit[i]));
    }
    lab.at.now += BECALM_S;
    for (int i = 0; i < 4; i++) {
        slow(&lab, &permit[i]);
        check_moved(&permit[i], CLOSED, CLOSED);
        check_true(permit[i].held);
    }
    slow(&lab, &permit[4]); /* 5 of 5, and not one of them has ended */
    check_moved(&permit[4], CLOSED, OPEN);
    check_true(state(&lab) == OPEN);
    for (int i = 0; i < 5; i++) {
        end(&lab, &permit[i], OK);
    }
    check_eq_u64(becalm_breaker_late(lab.b), 5);
}

static void test_breaker__a_call_that_was_slow_and_then_failed_is_one_call_and_one_failure(void **unused)
{
    (void)unused;
    for (int kind = 0; kind < 2; kind++) {
        struct lab lab;
        struct becalm_permit permit;
        becalm_breaker_resilience4j(&lab.policy);
        lab.policy.window_kind = kind == 0 ? BECALM_WINDOW_COUNT : BECALM_WINDOW_TIME;
        lab_start(&lab);
        calls(&lab, 3, OK);
        check_true(admit(&lab, &permit));
        slow(&lab, &permit);
        check_sums(&lab, 4, 0, 1);
        slow(&lab, &permit); /* again: nothing */
        check_sums(&lab, 4, 0, 1);
        becalm_breaker_note(lab.b, &lab.policy, &lab.at, &permit, FAILED, 61 * BECALM_S);
        check_sums(&lab, 4, 1, 1);
        check_true(admit(&lab, &permit));
        slow(&lab, &permit);
        becalm_breaker_note(lab.b, &lab.policy, &lab.at, &permit, OK, 61 * BECALM_S);
        check_sums(&lab, 5, 1, 2);
        check_true(admit(&lab, &permit));
        slow(&lab, &permit);
        end(&lab, &permit, NEUTRAL); /* it was slow, whatever its outcome */
        check_sums(&lab, 6, 1, 3);
    }
}

static void test_breaker__the_failure_of_a_slow_call_can_open_it(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit permit[3];
    lab_small(&lab);
    for (int i = 0; i < 3; i++) {
        check_true(admit(&lab, &permit[i]));
        slow(&lab, &permit[i]);
    }
    calls(&lab, 3, OK);
    for (int i = 0; i < 2; i++) {
        end(&lab, &permit[i], FAILED); /* 1, 2 of 6 */
    }
    check_true(state(&lab) == CLOSED);
    end(&lab, &permit[2], FAILED); /* 3 of 6 */
    check_moved(&permit[2], CLOSED, OPEN);
}

static void test_breaker__neutral_results_are_no_calls(void **unused)
{
    (void)unused;
    struct lab lab;
    lab_small(&lab);
    calls(&lab, 4, FAILED);
    calls(&lab, 100, NEUTRAL);
    check_sums(&lab, 4, 4, 0);
    check_true(state(&lab) == CLOSED);
    check_eq_u64(becalm_breaker_late(lab.b), 0);
}

static void test_breaker__a_permit_ends_once_and_giving_it_twice_is_harmless(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit permit;
    lab_small(&lab);
    check_true(admit(&lab, &permit));
    end(&lab, &permit, FAILED);
    for (int i = 0; i < 10; i++) {
        end(&lab, &permit, FAILED);
        slow(&lab, &permit);
        check_moved(&permit, CLOSED, CLOSED);
    }
    check_sums(&lab, 1, 1, 0);
    calls(&lab, 4, FAILED);
    check_true(refused(&lab));
    check_true(!admit(&lab, &permit));
    end(&lab, &permit, FAILED); /* a refusal is no permit either */
    check_eq_u64(becalm_breaker_late(lab.b), 0);
}

/* OPEN. */

static void test_breaker__open_refuses_until_its_time_is_over_and_then_probes(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit permit;
    lab_small(&lab);
    calls(&lab, 4, FAILED);
    check_true(admit(&lab, &permit));
    end(&lab, &permit, FAILED);
    check_moved(&permit, CLOSED, OPEN);
    becalm_ns retest_at = becalm_breaker_retest_at(lab.b);
    check_between_u64(retest_at - lab.at.now, 48 * BECALM_S, 60 * BECALM_S);
    lab.at.now = retest_at - 1;
    check_true(!becalm_breaker_peek(lab.b, lab.at.now));
    check_true(!admit(&lab, &permit));
    check_moved(&permit, OPEN, OPEN);
    lab.at.now = retest_at;
    check_true(becalm_breaker_peek(lab.b, lab.at.now));
    check_true(state(&lab) == OPEN); /* a peek moves nothing */
    check_true(admit(&lab, &permit));
    check_true(permit.probe);
    check_moved(&permit, OPEN, HALF_OPEN);
    check_eq_u64(permit.expires_at, becalm_breaker_retest_at(lab.b));
    check_between_u64(permit.expires_at, retest_at + lab.policy.half_open_for - 64,
                      retest_at + lab.policy.half_open_for);
}

static void test_breaker__an_older_now_never_ends_the_open_time(void **unused)
{
    (void)unused;
    struct lab lab;
    lab_small(&lab);
    calls(&lab, 5, FAILED);
    becalm_ns retest_at = becalm_breaker_retest_at(lab.b);
    lab.at.now = 0;
    check_true(refused(&lab));
    check_eq_u64(becalm_breaker_retest_at(lab.b), retest_at);
    lab.at.now = retest_at;
    check_true(!refused(&lab));
    lab.at.now = 0; /* nor a lease */
    calls(&lab, 1, OK);
    check_true(state(&lab) == HALF_OPEN);
}

static void test_breaker__time_at_its_end_does_not_wrap(void **unused)
{
    (void)unused;
    struct lab lab;
    lab_small(&lab);
    lab.at.now = BECALM_NEVER - BECALM_S;
    calls(&lab, 5, FAILED);
    check_eq_u64(becalm_breaker_retest_at(lab.b), BECALM_NEVER);
    check_true(refused(&lab));
}

/* Opens it, and fails its probes as often as asked; returns the open time. */
static becalm_ns open_again(struct lab *lab)
{
    if (state(lab) == OPEN) {
        wait_for_retest(lab);
    }
    lab->at.random += UINT64_C(0x9e3779b97f4a7c15);
    calls(lab, state(lab) == CLOSED ? 5 : 2, FAILED);
    check_true(state(lab) == OPEN);
    return becalm_breaker_retest_at(lab->b) - lab->at.now;
}

static void test_breaker__the_open_time_is_spread_over_its_last_fifth(void **unused)
{
    (void)unused;
    struct lab lab;
    lab_small(&lab);
    uint64_t bucket[4] = {0};
    const uint32_t rounds = 10000;
    lab.at.random = 42; /* the seed */
    for (uint32_t i = 0; i < rounds; i++) {
        becalm_ns open_for = open_again(&lab);
        check_between_u64(open_for, 48 * BECALM_S - 64, 60 * BECALM_S);
        becalm_ns into = open_for > 48 * BECALM_S ? open_for - 48 * BECALM_S : 0;
        bucket[into / (3 * BECALM_S) < 4 ? into / (3 * BECALM_S) : 3]++;
    }
    for (int i = 0; i < 4; i++) {
        check_between_u64(bucket[i], rounds / 4 - 217, rounds / 4 + 217); /* five standard deviations */
    }
}

static void test_breaker__the_open_time_grows_with_openings_in_a_row_up_to_its_cap(void **unused)
{
    (void)unused;
    struct lab lab;
    lab_small(&lab);
    lab.policy.open_for = BECALM_S;
    lab.policy.open_factor_ppm = 1500000;
    lab.policy.open_cap = 10 * BECALM_S;
    static const uint64_t ms[] = {1000, 1500, 2250, 3375, 5062, 7593, 10000, 10000, 10000};
    for (size_t i = 0; i < sizeof ms / sizeof *ms; i++) {
        check_between_u64(open_again(&lab), ms[i] * 800000 - 64, (ms[i] + 1) * BECALM_MS);
    }
    wait_for_retest(&lab);
    calls(&lab, 2, OK); /* closed: the next opening is the first again */
    check_between_u64(open_again(&lab), 800 * BECALM_MS - 64, BECALM_S);
}

static void test_breaker__without_a_factor_the_open_time_stays_and_the_cap_is_silent(void **unused)
{
    (void)unused;
    struct lab lab;
    lab_small(&lab);
    lab.policy.open_for = 100 * BECALM_S; /* above open_cap */
    for (int i = 0; i < 10; i++) {
        check_between_u64(open_again(&lab), 80 * BECALM_S - 64, 100 * BECALM_S);
    }
}

/* The counter of openings stops at its end instead of running over into the generation. */
static void test_breaker__survives_ten_thousand_openings_in_a_row(void **unused)
{
    (void)unused;
    struct lab lab;
    lab_small(&lab);
    lab.policy.open_for = BECALM_MS;
    lab.policy.open_factor_ppm = 2000000;
    for (int i = 0; i < 10000; i++) {
        becalm_ns open_for = open_again(&lab);
        check_between_u64(open_for, i < 100 ? 0 : 48 * BECALM_S - 64, 60 * BECALM_S);
    }
    wait_for_retest(&lab);
    calls(&lab, 2, OK);
    check_true(state(&lab) == CLOSED);
}

/* HALF_OPEN. */

static void lab_half_open(struct lab *lab, uint32_t probes)
{
    lab_small(lab);
    lab->policy.probes = probes;
    calls(lab, 5, FAILED);
    wait_for_retest(lab);
}

static void test_breaker__half_open_lets_ten_probes_through_and_no_more(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit permit[10];
    lab_half_open(&lab, 10);
    for (int i = 0; i < 10; i++) {
        check_true(becalm_breaker_peek(lab.b, lab.at.now));
        check_true(admit(&lab, &permit[i]));
        check_true(permit[i].probe);
    }
    check_true(!becalm_breaker_peek(lab.b, lab.at.now));
    check_true(refused(&lab));
    for (int i = 0; i < 9; i++) {
        end(&lab, &permit[i], OK);
        check_true(refused(&lab)); /* a probe that has reported leaves no place */
    }
    end(&lab, &permit[9], OK);
    check_moved(&permit[9], HALF_OPEN, CLOSED);
}

static void test_breaker__half_open_decides_by_the_rate_of_its_probes(void **unused)
{
    (void)unused;
    for (uint32_t failed = 0; failed <= 10; failed++) {
        for (int failures_first = 0; failures_first < 2; failures_first++) {
            struct lab lab;
            lab_half_open(&lab, 10);
            calls(&lab, failures_first ? failed : 10 - failed, failures_first ? FAILED : OK);
            if (failed > 0 && failed < 10) {
                check_true(state(&lab) == HALF_OPEN); /* not before the last one */
            }
            calls(&lab, failures_first ? 10 - failed : failed, failures_first ? OK : FAILED);
            check_true(state(&lab) == (failed >= 5 ? OPEN : CLOSED)); /* 50 % */
        }
    }
}

static void test_breaker__half_open_reopens_when_its_probes_are_slow(void **unused)
{
    (void)unused;
    struct lab lab;
    lab_half_open(&lab, 2);
    call_took(&lab, OK, BECALM_S);
    calls(&lab, 1, OK); /* 50 % slow, below 100 % */
    check_true(state(&lab) == CLOSED);
    lab_half_open(&lab, 2);
    call_took(&lab, OK, BECALM_S);
    call_took(&lab, OK, BECALM_S);
    check_true(state(&lab) == OPEN);
}

static void test_breaker__a_probe_in_flight_reports_when_it_becomes_slow(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit a, b;
    lab_half_open(&lab, 2);
    check_true(admit(&lab, &a));
    check_true(admit(&lab, &b));
    slow(&lab, &a);
    slow(&lab, &a);
    check_true(state(&lab) == HALF_OPEN); /* once */
    slow(&lab, &b);
    check_moved(&b, HALF_OPEN, OPEN);
    end(&lab, &a, OK);
    end(&lab, &b, NEUTRAL);
    check_true(state(&lab) == OPEN);
    check_eq_u64(becalm_breaker_late(lab.b), 1);
}

static void test_breaker__a_slow_probe_that_fails_counts_as_failed_too(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit a, b;
    lab_half_open(&lab, 2);
    check_true(admit(&lab, &a));
    check_true(admit(&lab, &b));
    slow(&lab, &a);
    end(&lab, &a, FAILED);
    check_true(state(&lab) == HALF_OPEN);
    end(&lab, &b, OK); /* 1 of 2 failed */
    check_moved(&b, HALF_OPEN, OPEN);
    lab_half_open(&lab, 2);
    check_true(admit(&lab, &a));
    slow(&lab, &a);
    end(&lab, &a, NEUTRAL); /* it has reported: its place does not come back */
    calls(&lab, 1, OK);
    check_true(state(&lab) == CLOSED);
}

static void test_breaker__a_neutral_probe_gives_its_place_back(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit permit;
    lab_half_open(&lab, 1);
    for (int i = 0; i < 1000; i++) {
        check_true(admit(&lab, &permit));
        check_true(refused(&lab));
        end(&lab, &permit, NEUTRAL);
        check_true(state(&lab) == HALF_OPEN);
    }
    calls(&lab, 1, OK);
    check_true(state(&lab) == CLOSED);
}

static void test_breaker__a_neutral_probe_of_an_older_episode_gives_nothing(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit old, young;
    lab_half_open(&lab, 1);
    check_true(admit(&lab, &old));
    lab.at.now = old.expires_at;
    check_true(refused(&lab)); /* lost: open again */
    wait_for_retest(&lab);
    check_true(admit(&lab, &young));
    end(&lab, &old, NEUTRAL);
    check_true(refused(&lab));
    check_eq_u64(becalm_breaker_late(lab.b), 0);
    end(&lab, &young, OK);
    check_true(state(&lab) == CLOSED);
}

static void test_breaker__a_lost_probe_fails_when_the_lease_ends(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit lost, next;
    lab_half_open(&lab, 1);
    check_true(admit(&lab, &lost));
    lab.at.now = lost.expires_at - 1;
    check_true(!becalm_breaker_peek(lab.b, lab.at.now));
    check_true(refused(&lab));
    check_true(state(&lab) == HALF_OPEN);
    lab.at.now = lost.expires_at;
    check_true(becalm_breaker_peek(lab.b, lab.at.now)); /* not for certain: the lease is over */
    check_true(!admit(&lab, &next));
    check_moved(&next, HALF_OPEN, OPEN);
    /* The open time starts at that moment. */
    check_between_u64(becalm_breaker_retest_at(lab.b) - lab.at.now, 48 * BECALM_S - 64, 60 * BECALM_S);
}

static void test_breaker__of_several_probes_one_that_reports_after_the_lease_is_late(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit permit;
    lab_half_open(&lab, 2);
    check_true(admit(&lab, &permit));
    lab.at.now = permit.expires_at;
    end(&lab, &permit, OK);
    check_moved(&permit, HALF_OPEN, OPEN);
    check_eq_u64(becalm_breaker_late(lab.b), 1);
}

/* Where one probe decides, a hung one keeps others from asking for no longer than the breaker is open; several are
 * waited for as long as is written. */
static void test_breaker__the_lease_of_a_single_probe_is_at_most_the_open_time(void **unused)
{
    (void)unused;
    for (uint32_t probes = 1; probes <= 2; probes++) {
        struct lab lab;
        struct becalm_permit permit;
        becalm_breaker_defaults(&lab.policy);
        lab.policy.min_calls = 1;
        lab.policy.probes = probes;
        lab_start(&lab);
        check_true(admit(&lab, &permit));
        end(&lab, &permit, FAILED);
        check_true(state(&lab) == OPEN);
        lab.at.now = becalm_breaker_retest_at(lab.b);
        check_true(admit(&lab, &permit));
        becalm_ns lease = (probes == 1 ? 1 : 5) * BECALM_S;
        check_between_u64(permit.expires_at - lab.at.now, lease - 64, lease);
    }
}

/* A service, or an attempt, that takes longer than the lease is still healthy. */
static void test_breaker__a_single_probe_that_succeeds_after_its_lease_closes(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit first, second, third;
    lab_half_open(&lab, 1);
    check_true(admit(&lab, &first));
    lab.at.now = first.expires_at;
    end(&lab, &first, OK); /* there was no call before */
    check_moved(&first, HALF_OPEN, CLOSED);

    lab_half_open(&lab, 1);
    check_true(admit(&lab, &first));
    lab.at.now = first.expires_at;
    check_true(refused(&lab));
    check_true(state(&lab) == OPEN);
    end(&lab, &first, OK);
    check_moved(&first, OPEN, CLOSED);
    check_eq_u64(becalm_breaker_late(lab.b), 1);

    lab_half_open(&lab, 1);
    check_true(admit(&lab, &first));
    lab.at.now = first.expires_at;
    check_true(refused(&lab));
    lab.at.now = becalm_breaker_retest_at(lab.b);
    check_true(admit(&lab, &second)); /* the next one is under way */
    end(&lab, &first, OK);
    check_moved(&first, HALF_OPEN, CLOSED);
    check_true(admit(&lab, &third));
    check_true(!third.probe);
    end(&lab, &second, FAILED); /* late, too, and it moves nothing */
    check_true(state(&lab) == CLOSED);
    check_sums(&lab, 0, 0, 0);
}

/* Half open, after one failure that took so long; the only probe is out, and silent until its lease ends. */
static void lab_silent(struct lab *lab, becalm_ns took, struct becalm_permit *probe)
{
    lab->policy.min_calls = 1;
    lab_start(lab);
    call_took(lab, FAILED, took);
    check_true(state(lab) == OPEN);
    wait_for_retest(lab);
    check_true(admit(lab, probe));
    lab->at.now = probe->expires_at;
}

/* Calls were refused at once. A call that is not has reached somebody. */
static void test_breaker__a_silent_probe_closes_where_calls_failed_at_once(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit probe, next;
    becalm_breaker_defaults(&lab.policy);
    lab_silent(&lab, BECALM_MS, &probe);
    check_true(becalm_breaker_peek(lab.b, lab.at.now));
    check_true(admit(&lab, &next));
    check_moved(&next, HALF_OPEN, CLOSED);
    check_true(!next.probe);
    end(&lab, &probe, FAILED); /* of another generation by now */
    check_true(state(&lab) == CLOSED);
    check_sums(&lab, 0, 0, 0);
    end(&lab, &next, FAILED);
    check_true(state(&lab) == OPEN);
}

static void test_breaker__a_silent_probe_fails_where_calls_failed_late(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit probe;
    becalm_breaker_defaults(&lab.policy);
    lab_silent(&lab, 500 * BECALM_MS - 64, &probe);
    check_true(!refused(&lab));
    lab_silent(&lab, 500 * BECALM_MS, &probe); /* half of the lease, and more */
    check_true(refused(&lab));
    check_true(state(&lab) == OPEN);
    wait_for_retest(&lab);
    check_true(admit(&lab, &probe)); /* the latest failure counts: this probe is refused at once, the next one is not */
    end(&lab, &probe, FAILED);
    wait_for_retest(&lab);
    check_true(admit(&lab, &probe));
    lab.at.now = probe.expires_at;
    check_true(!refused(&lab));
    check_true(state(&lab) == CLOSED);
}

static void test_breaker__a_silent_probe_fails_where_slow_calls_or_several_probes_decide(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit probe;
    becalm_breaker_defaults(&lab.policy);
    lab.policy.slow_share_ppm = 1000000;
    lab_silent(&lab, BECALM_MS, &probe);
    check_true(refused(&lab));
    check_true(state(&lab) == OPEN);

    becalm_breaker_defaults(&lab.policy);
    lab.policy.probes = 2;
    lab_silent(&lab, BECALM_MS, &probe);
    check_true(refused(&lab));
    check_true(state(&lab) == OPEN);

    becalm_breaker_defaults(&lab.policy);
    lab_start(&lab);
    force(&lab, HALF_OPEN); /* by hand: no call has failed */
    check_true(admit(&lab, &probe));
    lab.at.now = probe.expires_at;
    check_true(refused(&lab));
    check_true(state(&lab) == OPEN);
}

static void test_breaker__a_late_failure_or_a_late_call_that_was_no_probe_closes_nothing(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit probe;
    lab_half_open(&lab, 1);
    check_true(admit(&lab, &probe));
    lab.at.now = probe.expires_at;
    end(&lab, &probe, FAILED);
    check_true(state(&lab) == OPEN);

    lab_half_open(&lab, 1);
    check_true(admit(&lab, &probe));
    probe.probe = false; /* as a call of the time before it opened */
    lab.at.now = probe.expires_at;
    end(&lab, &probe, OK);
    check_true(state(&lab) == OPEN);

    lab_half_open(&lab, 1);
    check_true(admit(&lab, &probe));
    (void)becalm_breaker_force(lab.b, &lab.policy, &lab.at, FORCED_OPEN);
    end(&lab, &probe, OK); /* an operator's order stays in force */
    check_true(state(&lab) == FORCED_OPEN);
}

static void test_breaker__the_lease_judges_the_probes_handed_out(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit permit[4];
    lab_half_open(&lab, 10);
    calls(&lab, 3, OK);
    check_true(admit(&lab, &permit[0]));
    check_true(admit(&lab, &permit[1])); /* 2 silent of 5: below 50 % */
    lab.at.now = permit[0].expires_at;
    check_true(admit(&lab, &permit[3]));
    check_moved(&permit[3], HALF_OPEN, CLOSED);
    check_true(!permit[3].probe);
    end(&lab, &permit[0], FAILED);
    check_sums(&lab, 0, 0, 0); /* late: an older generation's */

    lab_half_open(&lab, 10);
    calls(&lab, 2, OK);
    check_true(admit(&lab, &permit[0]));
    check_true(admit(&lab, &permit[1])); /* 2 silent of 4 */
    lab.at.now = permit[0].expires_at;
    slow(&lab, &permit[0]);
    check_moved(&permit[0], HALF_OPEN, OPEN);
}

static void test_breaker__an_episode_without_evidence_gets_a_new_lease(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit permit;
    lab_half_open(&lab, 1);
    check_true(admit(&lab, &permit));
    end(&lab, &permit, NEUTRAL);
    lab.at.now = permit.expires_at + 3600 * BECALM_S;
    check_true(becalm_breaker_peek(lab.b, lab.at.now));
    check_true(admit(&lab, &permit));
    check_moved(&permit, HALF_OPEN, HALF_OPEN);
    check_between_u64(permit.expires_at - lab.at.now, lab.policy.half_open_for - 64, lab.policy.half_open_for);
    end(&lab, &permit, OK);
    check_moved(&permit, HALF_OPEN, CLOSED);
}

static void test_breaker__a_tenth_of_a_call_a_second_closes_on_the_evidence_there_is(void **unused)
{
    (void)unused;
    struct lab lab;
    becalm_breaker_resilience4j(&lab.policy);
    lab_start(&lab);
    calls(&lab, 100, FAILED);
    check_true(state(&lab) == OPEN);
    wait_for_retest(&lab);
    calls(&lab, 1, OK); /* ten probes would take 100 s, twenty times the lease */
    check_true(state(&lab) == HALF_OPEN);
    lab.at.now += 10 * BECALM_S;
    calls(&lab, 1, OK);
    check_true(state(&lab) == CLOSED);
}

static void test_breaker__a_tenth_of_a_call_a_second_never_opens_the_defaults_but_is_never_stuck(void **unused)
{
    (void)unused;
    struct lab lab;
    becalm_breaker_defaults(&lab.policy);
    lab_start(&lab);
    for (int i = 0; i < 1000; i++) { /* 1 call in 10 s is no rate */
        call_took(&lab, FAILED, BECALM_S);
        lab.at.now += 10 * BECALM_S;
    }
    check_true(state(&lab) == CLOSED);
    force(&lab, OPEN);
    for (int i = 0; i < 1000; i++) {
        lab.at.now += 10 * BECALM_S;
        struct becalm_permit lost; /* never ends */
        bool first = admit(&lab, &lost);
        check_true(first == (i % 2 == 0)); /* a probe; then its lease ends, and it is open for a second */
    }
    lab.at.now += 10 * BECALM_S;
    calls(&lab, 1, OK);
    check_true(state(&lab) == CLOSED);
}

static void test_breaker__a_late_result_moves_nothing_and_is_counted(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit closed_era[3], probe;
    lab_half_open(&lab, 1);
    force(&lab, CLOSED);
    for (int i = 0; i < 3; i++) {
        check_true(admit(&lab, &closed_era[i]));
    }
    calls(&lab, 5, FAILED);
    wait_for_retest(&lab);
    check_true(admit(&lab, &probe));
    end(&lab, &closed_era[0], OK);     /* must not close it */
    end(&lab, &closed_era[1], FAILED); /* nor open it */
    check_true(state(&lab) == HALF_OPEN);
    check_moved(&closed_era[1], HALF_OPEN, HALF_OPEN);
    end(&lab, &probe, OK);
    check_true(state(&lab) == CLOSED);
    slow(&lab, &closed_era[2]);
    end(&lab, &closed_era[2], FAILED); /* nor count in the closed era after */
    check_sums(&lab, 0, 0, 0);
    check_eq_u64(becalm_breaker_late(lab.b), 3);
}

static void test_breaker__closing_empties_the_window(void **unused)
{
    (void)unused;
    struct lab lab;
    lab_half_open(&lab, 2);
    check_sums(&lab, 5, 5, 0); /* still there to be seen */
    calls(&lab, 2, OK);
    check_true(state(&lab) == CLOSED);
    check_sums(&lab, 0, 0, 0);
    calls(&lab, 4, FAILED);
    check_true(state(&lab) == CLOSED);
}

/* A policy may change under a breaker that keeps its shape. From every state, it works by the new policy. */
static void test_breaker__a_change_of_probes_in_mid_episode_does_not_wedge_it(void **unused)
{
    (void)unused;
    static const uint32_t before_after[][2] = {{1, 10}, {10, 1}, {65535, 1}, {1, 65535}};
    for (size_t i = 0; i < 4; i++) {
        struct lab lab;
        struct becalm_permit permit;
        lab_half_open(&lab, before_after[i][0]);
        check_true(admit(&lab, &permit));
        lab.policy.probes = before_after[i][1];
        end(&lab, &permit, OK);
        lab.policy.probes = 1;
        for (int tries = 0; state(&lab) != CLOSED && tries < 5; tries++) {
            lab.at.now += 60 * BECALM_S;
            if (admit(&lab, &permit)) {
                end(&lab, &permit, OK);
            }
        }
        check_true(state(&lab) == CLOSED);
    }
}

/* CONSECUTIVE. */

static void test_breaker__consecutive_opens_after_five_failures_in_a_row(void **unused)
{
    (void)unused;
    struct lab lab;
    lab_consecutive(&lab);
    for (int i = 0; i < 10; i++) {
        calls(&lab, 4, FAILED);
        calls(&lab, 1, NEUTRAL); /* neither ends the row nor adds to it */
        calls(&lab, 1, OK);
    }
    calls(&lab, 4, FAILED);
    check_true(state(&lab) == CLOSED);
    calls(&lab, 1, FAILED);
    check_true(state(&lab) == OPEN);
    check_true(refused(&lab));
}

static void test_breaker__consecutive_closes_after_two_successes(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit permit[2];
    lab_consecutive(&lab);
    calls(&lab, 5, FAILED);
    wait_for_retest(&lab);
    check_true(admit(&lab, &permit[0]));
    check_true(admit(&lab, &permit[1]));
    check_true(refused(&lab)); /* as many probes as it needs successes */
    end(&lab, &permit[0], OK);
    check_true(state(&lab) == HALF_OPEN);
    end(&lab, &permit[1], OK);
    check_moved(&permit[1], HALF_OPEN, CLOSED);
    calls(&lab, 4, FAILED); /* the row of before is over */
    check_true(state(&lab) == CLOSED);
}

static void test_breaker__consecutive_reopens_at_the_first_failure(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit permit[2];
    lab_consecutive(&lab);
    calls(&lab, 5, FAILED);
    wait_for_retest(&lab);
    check_true(admit(&lab, &permit[0]));
    end(&lab, &permit[0], FAILED);
    check_moved(&permit[0], HALF_OPEN, OPEN);
    check_true(refused(&lab));
    wait_for_retest(&lab);
    check_true(admit(&lab, &permit[0]));
    check_true(admit(&lab, &permit[1]));
    end(&lab, &permit[0], OK);
    end(&lab, &permit[1], FAILED);
    check_moved(&permit[1], HALF_OPEN, OPEN);
}

static void test_breaker__consecutive_counts_a_lost_probe_as_a_failure_and_closes_without(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit permit;
    lab_consecutive(&lab);
    calls(&lab, 5, FAILED);
    wait_for_retest(&lab);
    calls(&lab, 1, OK);
    check_true(admit(&lab, &permit));
    lab.at.now = permit.expires_at;
    check_true(refused(&lab));
    check_true(state(&lab) == OPEN);
    wait_for_retest(&lab);
    calls(&lab, 1, OK);
    lab.at.now += lab.policy.half_open_for;
    calls(&lab, 1, OK);
    check_true(state(&lab) == CLOSED);
}

static void test_breaker__consecutive_has_no_slow_calls_and_shows_its_window(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit permit;
    lab_consecutive(&lab);
    lab.policy.slow_share_ppm = 1;
    check_true(admit(&lab, &permit));
    slow(&lab, &permit);
    becalm_breaker_note(lab.b, &lab.policy, &lab.at, &permit, OK, 3600 * BECALM_S);
    calls(&lab, 2, FAILED);
    check_sums(&lab, 3, 2, 0);
    check_true(state(&lab) == CLOSED);
}

/* An operator's hand. */

static void test_breaker__disabled_lets_all_pass_and_counts_nothing(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit permit;
    lab_small(&lab);
    calls(&lab, 4, FAILED);
    check_true(becalm_breaker_force(lab.b, &lab.policy, &lab.at, DISABLED) == CLOSED);
    calls(&lab, 1000, FAILED);
    check_true(admit(&lab, &permit));
    check_true(!permit.probe);
    slow(&lab, &permit);
    end(&lab, &permit, FAILED);
    check_sums(&lab, 4, 4, 0);
    check_true(state(&lab) == DISABLED);
    check_true(becalm_breaker_peek(lab.b, lab.at.now));
    check_true(becalm_breaker_force(lab.b, &lab.policy, &lab.at, CLOSED) == DISABLED);
    check_sums(&lab, 0, 0, 0);
}

static void test_breaker__a_policy_that_is_not_enabled_disables_it(void **unused)
{
    (void)unused;
    struct lab lab;
    becalm_breaker_defaults(&lab.policy);
    lab.policy.enabled = false;
    lab_start(&lab);
    check_true(state(&lab) == DISABLED);
    calls(&lab, 1000, FAILED);
    check_true(state(&lab) == DISABLED);
}

static void test_breaker__forced_open_refuses_for_ever(void **unused)
{
    (void)unused;
    struct lab lab;
    lab_small(&lab);
    force(&lab, FORCED_OPEN);
    check_eq_u64(becalm_breaker_retest_at(lab.b), BECALM_NEVER);
    lab.at.now = BECALM_NEVER - 1;
    check_true(!becalm_breaker_peek(lab.b, lab.at.now));
    check_true(refused(&lab));
    check_true(becalm_breaker_force(lab.b, &lab.policy, &lab.at, CLOSED) == FORCED_OPEN);
    calls(&lab, 1, OK);
}

static void test_breaker__metrics_only_counts_and_never_opens(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit permit;
    lab_small(&lab);
    calls(&lab, 2, FAILED);
    force(&lab, METRICS_ONLY);
    calls(&lab, 2, OK);
    calls(&lab, 7, FAILED);
    check_true(admit(&lab, &permit));
    slow(&lab, &permit);
    end(&lab, &permit, FAILED);
    check_sums(&lab, 10, 8, 1);
    check_true(state(&lab) == METRICS_ONLY);
}

static void test_breaker__a_hand_can_put_it_into_any_state_from_any_state(void **unused)
{
    (void)unused;
    static const enum becalm_breaker_state all[] = {CLOSED, OPEN, HALF_OPEN, DISABLED, FORCED_OPEN, METRICS_ONLY};
    for (int from = 0; from < 6; from++) {
        for (int to = 0; to < 6; to++) {
            struct lab lab;
            struct becalm_permit before;
            lab_small(&lab);
            force(&lab, all[from]);
            bool held = admit(&lab, &before);
            check_true(becalm_breaker_force(lab.b, &lab.policy, &lab.at, all[to]) == all[from]);
            check_true(state(&lab) == all[to]);
            end(&lab, &before, FAILED); /* from before the hand: late, also if the state has the same name */
            check_eq_u64(becalm_breaker_late(lab.b), held ? 1 : 0);
            check_true(state(&lab) == all[to]);
        }
    }
}

static void test_breaker__forced_half_open_has_its_probes_and_its_lease(void **unused)
{
    (void)unused;
    struct lab lab;
    lab_small(&lab);
    force(&lab, HALF_OPEN);
    check_eq_u64(becalm_breaker_retest_at(lab.b), lab.at.now + lab.policy.half_open_for);
    calls(&lab, 2, OK);
    check_true(state(&lab) == CLOSED);
}

/* Reload. */

static void check_carried(enum becalm_breaker_state from, enum becalm_breaker_state to)
{
    static _Alignas(64) unsigned char memory[1 << 18];
    struct lab lab;
    lab_small(&lab);
    force(&lab, from);
    becalm_ns retest_at = becalm_breaker_retest_at(lab.b);
    struct becalm_breaker *next = becalm_breaker_init(memory, &lab.policy, 1);
    becalm_breaker_carry(next, lab.b);
    check_true(becalm_breaker_state(next) == to);
    check_eq_u64(becalm_breaker_retest_at(next), from == HALF_OPEN ? 0 : retest_at);
}

static void test_breaker__a_reload_carries_state_and_times(void **unused)
{
    (void)unused;
    check_carried(CLOSED, CLOSED);
    check_carried(OPEN, OPEN);
    check_carried(HALF_OPEN, OPEN); /* due at once, with probes of its own */
    check_carried(DISABLED, DISABLED);
    check_carried(FORCED_OPEN, FORCED_OPEN);
    check_carried(METRICS_ONLY, METRICS_ONLY);
}

static void test_breaker__a_reload_carries_the_growth_of_the_open_time_and_late_results(void **unused)
{
    (void)unused;
    static _Alignas(64) unsigned char memory[1 << 18];
    struct lab lab;
    struct becalm_permit permit;
    lab_half_open(&lab, 1);
    lab.policy.open_for = BECALM_S;
    lab.policy.open_factor_ppm = 4000000;
    check_true(admit(&lab, &permit));
    lab.at.now = permit.expires_at;
    end(&lab, &permit, FAILED); /* late; opened for the second time */
    struct becalm_breaker *next = becalm_breaker_init(memory, &lab.policy, 1);
    becalm_breaker_carry(next, lab.b);
    lab.b = next;
    check_eq_u64(becalm_breaker_late(lab.b), 1);
    wait_for_retest(&lab);
    calls(&lab, 1, FAILED);
    check_between_u64(becalm_breaker_retest_at(lab.b) - lab.at.now, 16 * 800 * BECALM_MS - 64, 16 * BECALM_S);
}

static void test_breaker__a_reload_carries_how_long_the_latest_failure_took(void **unused)
{
    (void)unused;
    static _Alignas(64) unsigned char memory[1 << 18];
    struct lab lab;
    struct becalm_permit probe;
    becalm_breaker_defaults(&lab.policy);
    lab_silent(&lab, BECALM_MS, &probe);
    struct becalm_breaker *next = becalm_breaker_init(memory, &lab.policy, 1);
    becalm_breaker_carry(next, lab.b);
    lab.b = next;
    check_true(admit(&lab, &probe));
    lab.at.now = probe.expires_at;
    check_true(!refused(&lab));
    check_true(state(&lab) == CLOSED);
}

static void test_breaker__a_reload_that_switches_it_on_or_off_is_obeyed(void **unused)
{
    (void)unused;
    static _Alignas(64) unsigned char memory[1 << 18];
    struct lab lab;
    lab_small(&lab);
    force(&lab, OPEN);
    lab.policy.enabled = false;
    struct becalm_breaker *off = becalm_breaker_init(memory, &lab.policy, 1);
    becalm_breaker_carry(off, lab.b);
    check_true(becalm_breaker_state(off) == DISABLED);
    lab.policy.enabled = true;
    struct becalm_breaker *on = becalm_breaker_init(lab_memory, &lab.policy, 1);
    becalm_breaker_carry(on, off);
    check_true(becalm_breaker_state(on) == CLOSED);
}

static bool sound(const struct lab *lab)
{
    return becalm_breaker_sound(lab->b, &lab->policy, 1, lab->at.now);
}

static void test_breaker__is_sound_in_every_state(void **unused)
{
    (void)unused;
    struct lab lab;
    lab_small(&lab);
    check_true(sound(&lab));
    for (unsigned state = CLOSED; state <= METRICS_ONLY; state++) {
        (void)becalm_breaker_force(lab.b, &lab.policy, &lab.at, (enum becalm_breaker_state)state);
        check_true(sound(&lab));
    }
}

static void test_breaker__is_not_sound_with_a_state_or_time_that_it_can_t_have(void **unused)
{
    (void)unused;
    struct lab lab;
    lab_small(&lab);
    atomic_store_explicit(&lab.b->word, 6, memory_order_relaxed); /* the states end at 5 */
    check_true(!sound(&lab));
    lab_small(&lab);
    (void)becalm_breaker_force(lab.b, &lab.policy, &lab.at, OPEN);
    lab.at.now -= 15 * BECALM_S; /* its open time, drawn from 48 s to 60 s, would last longer than 61 s */
    check_true(!sound(&lab));
    lab_small(&lab);
    lab.policy.window_size++;
    check_true(!sound(&lab));
}

BECALM_TESTS(cmocka_unit_test(test_breaker__is_sound_in_every_state),
             cmocka_unit_test(test_breaker__is_not_sound_with_a_state_or_time_that_it_can_t_have),
             cmocka_unit_test(test_breaker__starts_closed_and_empty),
             cmocka_unit_test(test_breaker__defaults_open_when_twenty_calls_have_failed_and_none_succeeded),
             cmocka_unit_test(test_breaker__resilience4j_has_their_eight_defaults),
             cmocka_unit_test(test_breaker__refuses_bad_parameters_by_name),
             cmocka_unit_test(test_breaker__refuses_bad_parameters_that_depend_on_others),
             cmocka_unit_test(test_breaker__accepts_the_ends_of_every_range),
             cmocka_unit_test(test_breaker__takes_any_number_of_cells),
             cmocka_unit_test(test_breaker__has_a_word_for_every_state),
             cmocka_unit_test(test_breaker__closed_opens_at_the_failure_rate_of_resilience4j),
             cmocka_unit_test(test_breaker__a_time_window_does_not_lower_the_minimum_of_calls),
             cmocka_unit_test(test_breaker__a_count_window_forgets_the_oldest_call),
             cmocka_unit_test(test_breaker__a_time_window_forgets_after_its_seconds),
             cmocka_unit_test(test_breaker__a_success_opens_when_older_successes_have_left_a_time_window),
             cmocka_unit_test(test_breaker__closed_opens_at_the_slow_rate),
             cmocka_unit_test(test_breaker__a_slow_failure_counts_in_both_rates),
             cmocka_unit_test(test_breaker__without_the_slow_rule_nothing_is_slow),
             cmocka_unit_test(test_breaker__calls_in_flight_open_it_when_they_become_slow),
             cmocka_unit_test(test_breaker__a_call_that_was_slow_and_then_failed_is_one_call_and_one_failure),
             cmocka_unit_test(test_breaker__the_failure_of_a_slow_call_can_open_it),
             cmocka_unit_test(test_breaker__neutral_results_are_no_calls),
             cmocka_unit_test(test_breaker__a_permit_ends_once_and_giving_it_twice_is_harmless),
             cmocka_unit_test(test_breaker__open_refuses_until_its_time_is_over_and_then_probes),
             cmocka_unit_test(test_breaker__an_older_now_never_ends_the_open_time),
             cmocka_unit_test(test_breaker__time_at_its_end_does_not_wrap),
             cmocka_unit_test(test_breaker__the_open_time_is_spread_over_its_last_fifth),
             cmocka_unit_test(test_breaker__the_open_time_grows_with_openings_in_a_row_up_to_its_cap),
             cmocka_unit_test(test_breaker__without_a_factor_the_open_time_stays_and_the_cap_is_silent),
             cmocka_unit_test(test_breaker__survives_ten_thousand_openings_in_a_row),
             cmocka_unit_test(test_breaker__half_open_lets_ten_probes_through_and_no_more),
             cmocka_unit_test(test_breaker__half_open_decides_by_the_rate_of_its_probes),
             cmocka_unit_test(test_breaker__half_open_reopens_when_its_probes_are_slow),
             cmocka_unit_test(test_breaker__a_probe_in_flight_reports_when_it_becomes_slow),
             cmocka_unit_test(test_breaker__a_slow_probe_that_fails_counts_as_failed_too),
             cmocka_unit_test(test_breaker__a_neutral_probe_gives_its_place_back),
             cmocka_unit_test(test_breaker__a_neutral_probe_of_an_older_episode_gives_nothing),
             cmocka_unit_test(test_breaker__a_lost_probe_fails_when_the_lease_ends),
             cmocka_unit_test(test_breaker__of_several_probes_one_that_reports_after_the_lease_is_late),
             cmocka_unit_test(test_breaker__the_lease_of_a_single_probe_is_at_most_the_open_time),
             cmocka_unit_test(test_breaker__a_single_probe_that_succeeds_after_its_lease_closes),
             cmocka_unit_test(test_breaker__a_silent_probe_closes_where_calls_failed_at_once),
             cmocka_unit_test(test_breaker__a_silent_probe_fails_where_calls_failed_late),
             cmocka_unit_test(test_breaker__a_silent_probe_fails_where_slow_calls_or_several_probes_decide),
             cmocka_unit_test(test_breaker__a_late_failure_or_a_late_call_that_was_no_probe_closes_nothing),
             cmocka_unit_test(test_breaker__the_lease_judges_the_probes_handed_out),
             cmocka_unit_test(test_breaker__an_episode_without_evidence_gets_a_new_lease),
             cmocka_unit_test(test_breaker__a_tenth_of_a_call_a_second_closes_on_the_evidence_there_is),
             cmocka_unit_test(test_breaker__a_tenth_of_a_call_a_second_never_opens_the_defaults_but_is_never_stuck),
             cmocka_unit_test(test_breaker__a_late_result_moves_nothing_and_is_counted),
             cmocka_unit_test(test_breaker__closing_empties_the_window),
             cmocka_unit_test(test_breaker__a_change_of_probes_in_mid_episode_does_not_wedge_it),
             cmocka_unit_test(test_breaker__consecutive_opens_after_five_failures_in_a_row),
             cmocka_unit_test(test_breaker__consecutive_closes_after_two_successes),
             cmocka_unit_test(test_breaker__consecutive_reopens_at_the_first_failure),
             cmocka_unit_test(test_breaker__consecutive_counts_a_lost_probe_as_a_failure_and_closes_without),
             cmocka_unit_test(test_breaker__consecutive_has_no_slow_calls_and_shows_its_window),
             cmocka_unit_test(test_breaker__disabled_lets_all_pass_and_counts_nothing),
             cmocka_unit_test(test_breaker__a_policy_that_is_not_enabled_disables_it),
             cmocka_unit_test(test_breaker__forced_open_refuses_for_ever),
             cmocka_unit_test(test_breaker__metrics_only_counts_and_never_opens),
             cmocka_unit_test(test_breaker__a_hand_can_put_it_into_any_state_from_any_state),
             cmocka_unit_test(test_breaker__forced_half_open_has_its_probes_and_its_lease),
             cmocka_unit_test(test_breaker__a_reload_carries_state_and_times),
             cmocka_unit_test(test_breaker__a_reload_carries_the_growth_of_the_open_time_and_late_results),
             cmocka_unit_test(test_breaker__a_reload_carries_how_long_the_latest_failure_took),
             cmocka_unit_test(test_breaker__a_reload_that_switches_it_on_or_off_is_obeyed))
