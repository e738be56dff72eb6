/* SPDX-License-Identifier: MIT */
#include <becalm/hedge.h>
#include <becalm/rand.h>

#include <pthread.h>

#include "lib/check.h"

#define START   (1000 * BECALM_S)
#define TOKEN   UINT64_C(1000000)
#define THREADS 8

static struct becalm_hedge_policy policy_of(void)
{
    struct becalm_hedge_policy policy;
    becalm_hedge_defaults(&policy);
    policy.enabled = true;
    return policy;
}

static uint64_t tokens_of(const struct becalm_hedge *hedge)
{
    return atomic_load_explicit(&hedge->tokens, memory_order_relaxed);
}

static unsigned take_all(struct becalm_hedge *hedge)
{
    unsigned taken = 0;
    while (becalm_hedge_take(hedge, false, false)) {
        taken++;
    }
    return taken;
}

static void test_hedge__a_bucket_without_a_whole_token_pays_nothing(void **state)
{
    (void)state;
    struct becalm_hedge empty = {.tokens = 0};
    struct becalm_hedge almost = {.tokens = TOKEN - 1};
    struct becalm_hedge whole = {.tokens = TOKEN};
    check_true(!becalm_hedge_take(&empty, false, false));
    check_true(!becalm_hedge_take(&almost, false, false));
    check_eq_u64(tokens_of(&almost), TOKEN - 1);
    check_true(becalm_hedge_take(&whole, false, false));
    check_eq_u64(tokens_of(&whole), 0);
}

static void test_hedge__the_defaults_are_one_at_p95_for_five_percent_and_off(void **state)
{
    (void)state;
    struct becalm_hedge_policy policy;
    becalm_hedge_defaults(&policy);
    check_true(!policy.enabled);
    check_eq_u64(policy.delay, 0);
    check_eq_u64(policy.quantile_ppm, 950000);
    check_eq_u64(policy.max, 1);
    check_eq_u64(policy.share_ppm, 50000);
    check_eq_u64(policy.cap, 2 * TOKEN);
    check_eq_u64(policy.min_notes, 20);
    check_eq_u64(policy.non_fatal, BECALM_OUTCOME_BIT(BECALM_OUTCOME_BROKEN) |
                                       BECALM_OUTCOME_BIT(BECALM_OUTCOME_REJECTED) |
                                       BECALM_OUTCOME_BIT(BECALM_OUTCOME_REFUSED));
    assert_int_equal(becalm_hedge_check(&policy, NULL), 0);
}

/* ------------------------------------------------------------------------------------------------------- the bucket */

/* In overload nothing succeeds, so nothing is earned and nothing comes back. */
static void test_hedge__in_overload_two_hedges_are_all(void **state)
{
    (void)state;
    struct becalm_hedge_policy policy = policy_of();
    struct becalm_hedge hedge;
    becalm_hedge_init(&hedge, &policy);
    check_eq_u64(take_all(&hedge), 2);
    for (unsigned i = 0; i < 1000; i++) {
        check_true(!becalm_hedge_take(&hedge, false, false));
    }
    check_eq_u64(hedge.sent, 2);
}

static void test_hedge__twenty_successes_earn_one_hedge(void **state)
{
    (void)state;
    struct becalm_hedge_policy policy = policy_of();
    struct becalm_hedge hedge;
    becalm_hedge_init(&hedge, &policy);
    take_all(&hedge);
    for (unsigned i = 0; i < 19; i++) {
        becalm_hedge_earn(&hedge, &policy);
    }
    check_true(!becalm_hedge_take(&hedge, false, false));
    becalm_hedge_earn(&hedge, &policy);
    check_eq_u64(take_all(&hedge), 1);
}

/* Calls that succeed without the help of their hedges: at most 5 % of the successes, and the two from the start. */
static void test_hedge__hedges_that_do_not_win_are_at_most_five_percent_of_successes_plus_two(void **state)
{
    (void)state;
    struct becalm_hedge_policy policy = policy_of();
    struct becalm_hedge hedge;
    becalm_hedge_init(&hedge, &policy);
    uint64_t seed = 8;
    uint64_t successes = 0;
    uint64_t hedges = 0;
    for (unsigned i = 0; i < 100000; i++) {
        uint64_t random = becalm_rand_next(&seed);
        hedges += random % 3 == 0 && becalm_hedge_take(&hedge, false, false);
        if (random >> 32 & 1) {
            becalm_hedge_earn(&hedge, &policy);
            successes++;
        }
        if (hedges * 20 > successes + 40) {
            print_error("seed 8, round %u: %" PRIu64 " hedges, %" PRIu64 " successes\n", i, hedges, successes);
            fail();
        }
    }
    check_true(hedges * 20 > successes * 99 / 100); /* and nothing is withheld */
}

static void test_hedge__a_hedge_that_wins_is_free(void **state)
{
    (void)state;
    struct becalm_hedge_policy policy = policy_of();
    struct becalm_hedge hedge;
    becalm_hedge_init(&hedge, &policy);
    for (unsigned i = 0; i < 100; i++) {
        check_true(becalm_hedge_take(&hedge, false, false));
        becalm_hedge_won(&hedge, &policy, i % 4 == 0);
    }
    check_eq_u64(tokens_of(&hedge), 2 * TOKEN);
    check_eq_u64(hedge.sent, 100);
    check_eq_u64(hedge.won, 100);
    check_eq_u64(hedge.saved, 25);
}

static void test_hedge__a_hedge_that_was_never_sent_is_free_and_not_counted(void **state)
{
    (void)state;
    struct becalm_hedge_policy policy = policy_of();
    struct becalm_hedge hedge;
    becalm_hedge_init(&hedge, &policy);
    check_true(becalm_hedge_take(&hedge, false, false));
    becalm_hedge_give(&hedge, &policy);
    check_eq_u64(tokens_of(&hedge), 2 * TOKEN);
    check_eq_u64(hedge.sent, 0);
    check_eq_u64(hedge.won, 0);
}

static void test_hedge__none_while_crowded_or_half_open(void **state)
{
    (void)state;
    struct becalm_hedge_policy policy = policy_of();
    struct becalm_hedge hedge;
    becalm_hedge_init(&hedge, &policy);
    check_true(!becalm_hedge_take(&hedge, true, false));
    check_true(!becalm_hedge_take(&hedge, false, true));
    check_true(!becalm_hedge_take(&hedge, true, true));
    check_eq_u64(tokens_of(&hedge), 2 * TOKEN); /* nothing was paid */
    check_eq_u64(hedge.sent, 0);
}

static void test_hedge__the_bucket_never_holds_more_than_its_cap(void **state)
{
    (void)state;
    struct becalm_hedge_policy policy = policy_of();
    policy.cap = 2 * TOKEN + 30000;
    struct becalm_hedge hedge;
    becalm_hedge_init(&hedge, &policy);
    for (unsigned i = 0; i < 1000; i++) {
        becalm_hedge_earn(&hedge, &policy);
        becalm_hedge_won(&hedge, &policy, false);
        check_eq_u64(tokens_of(&hedge), policy.cap);
    }
    becalm_hedge_take(&hedge, false, false);
    becalm_hedge_earn(&hedge, &policy);
    becalm_hedge_won(&hedge, &policy, false);
    check_eq_u64(tokens_of(&hedge), policy.cap); /* not 2 tokens and 80,000 */
}

/* The object is a constant, so a write to it would be a fault. */
static void test_hedge__a_success_does_not_write_a_full_bucket(void **state)
{
    (void)state;
    struct becalm_hedge_policy policy = policy_of();
    static const struct becalm_hedge full = {.tokens = 2 * TOKEN};
    becalm_hedge_earn((struct becalm_hedge *)&full, &policy);
    static const struct becalm_hedge fuller = {.tokens = 3 * TOKEN}; /* as after a reload with a smaller cap */
    becalm_hedge_earn((struct becalm_hedge *)&fuller, &policy);
}

static void test_hedge__a_share_of_zero_earns_nothing(void **state)
{
    (void)state;
    struct becalm_hedge_policy policy = policy_of();
    policy.share_ppm = 0;
    assert_int_equal(becalm_hedge_check(&policy, NULL), 0);
    struct becalm_hedge hedge;
    becalm_hedge_init(&hedge, &policy);
    take_all(&hedge);
    for (unsigned i = 0; i < 1000; i++) {
        becalm_hedge_earn(&hedge, &policy);
    }
    check_eq_u64(take_all(&hedge), 0);
}

static void test_hedge__a_reload_carries_the_fill_fraction_and_the_counts(void **state)
{
    (void)state;
    struct becalm_hedge_policy policy = policy_of();
    struct becalm_hedge_policy larger = policy_of();
    larger.cap = 10 * TOKEN;
    struct becalm_hedge from;
    struct becalm_hedge to;
    becalm_hedge_init(&from, &policy);
    becalm_hedge_init(&to, &larger);
    becalm_hedge_take(&from, false, false);
    becalm_hedge_take(&from, false, false);
    becalm_hedge_won(&from, &policy, true);
    becalm_hedge_carry(&to, &larger, &from, &policy);
    check_eq_u64(tokens_of(&to), 5 * TOKEN);
    check_eq_u64(to.sent, 2);
    check_eq_u64(to.won, 1);
    check_eq_u64(to.saved, 1);
    becalm_hedge_carry(&from, &policy, &to, &larger);
    check_eq_u64(tokens_of(&from), TOKEN);
}

/* -------------------------------------------------------------------------------------------------------- the delay */

static void test_hedge__a_fixed_delay_needs_no_latencies(void **state)
{
    (void)state;
    struct becalm_hedge_policy policy = policy_of();
    policy.delay = 10 * BECALM_MS;
    check_eq_u64(becalm_hedge_delay(&policy, NULL, START), 10 * BECALM_MS);
}

static void test_hedge__never_while_there_are_too_few_latencies(void **state)
{
    (void)state;
    struct becalm_hedge_policy policy = policy_of();
    static struct becalm_sketch sketch;
    becalm_sketch_init(&sketch);
    check_eq_u64(becalm_hedge_delay(&policy, NULL, START), BECALM_NEVER);
    for (unsigned i = 0; i < 20; i++) {
        check_eq_u64(becalm_hedge_delay(&policy, &sketch, START), BECALM_NEVER);
        becalm_sketch_note(&sketch, START, 10 * BECALM_MS);
    }
    check_true(becalm_hedge_delay(&policy, &sketch, START) != BECALM_NEVER);
}

static void test_hedge__due_at_the_live_quantile(void **state)
{
    (void)state;
    struct becalm_hedge_policy policy = policy_of();
    static struct becalm_sketch sketch;
    becalm_sketch_init(&sketch);
    for (unsigned i = 1; i <= 1000; i++) {
        becalm_sketch_note(&sketch, START, i * BECALM_MS);
    }
    /* p95 is 950 ms; the sketch is within 1.6 %, and rounds up to its bucket's end: twice that to be fair. */
    check_between_u64(becalm_hedge_delay(&policy, &sketch, START), 930 * BECALM_MS, 981 * BECALM_MS);
}

static void test_hedge__a_quantile_below_the_sketchs_resolution_is_a_microsecond(void **state)
{
    (void)state;
    struct becalm_hedge_policy policy = policy_of();
    static struct becalm_sketch sketch;
    becalm_sketch_init(&sketch);
    for (unsigned i = 0; i < 100; i++) {
        becalm_sketch_note(&sketch, START, 0);
    }
    check_between_u64(becalm_hedge_delay(&policy, &sketch, START), BECALM_US, 2 * BECALM_US);
}

/* ------------------------------------------------------------------------------------------------------- parameters */

static void expect_refused(const struct becalm_hedge_policy *policy, const char *sentence)
{
    const char *why = NULL;
    assert_int_equal(becalm_hedge_check(policy, &why), BECALM_EINVAL);
    check_eq_str(why, sentence);
    assert_int_equal(becalm_hedge_check(policy, NULL), BECALM_EINVAL);
}

static void test_hedge__bad_parameters_are_refused_by_name(void **state)
{
    (void)state;
    const struct becalm_hedge_policy good = policy_of();
    struct becalm_hedge_policy bad;
#define REFUSED(field, value, sentence) \
    bad = good;                         \
    bad.field = (value);                \
    expect_refused(&bad, sentence)
    REFUSED(delay, 3600 * BECALM_S + 1, "delay must be at most 1 h");
    REFUSED(delay, BECALM_NEVER, "delay must be at most 1 h");
    REFUSED(quantile_ppm, 0, "quantile_ppm must be from 1 to 999,999");
    REFUSED(quantile_ppm, 1000000, "quantile_ppm must be from 1 to 999,999");
    REFUSED(max, 0, "max must be from 1 to 4");
    REFUSED(max, 5, "max must be from 1 to 4");
    REFUSED(max, UINT32_MAX, "max must be from 1 to 4");
    REFUSED(share_ppm, 1000001, "share_ppm must be at most 1,000,000 (1)");
    REFUSED(cap, 0, "cap must be from 1,000,000 (1 token) to 1,000,000,000 (1,000 tokens)");
    REFUSED(cap, 999999, "cap must be from 1,000,000 (1 token) to 1,000,000,000 (1,000 tokens)");
    REFUSED(cap, UINT32_MAX, "cap must be from 1,000,000 (1 token) to 1,000,000,000 (1,000 tokens)");
    REFUSED(non_fatal, 1u << BECALM_OUTCOME_COUNT, "non_fatal must be a set of BECALM_OUTCOME_BIT()");
    REFUSED(non_fatal, BECALM_OUTCOME_BIT(BECALM_OUTCOME_OK), "non_fatal must not contain ok, permanent or cancelled");
    REFUSED(non_fatal, BECALM_OUTCOME_BIT(BECALM_OUTCOME_PERMANENT),
            "non_fatal must not contain ok, permanent or cancelled");
    REFUSED(non_fatal, BECALM_OUTCOME_BIT(BECALM_OUTCOME_CANCELLED),
            "non_fatal must not contain ok, permanent or cancelled");
    REFUSED(min_notes, 0, "min_notes must be from 1 to 1,000,000");
    REFUSED(min_notes, 1000001, "min_notes must be from 1 to 1,000,000");
#undef REFUSED
}

static void test_hedge__the_ends_of_the_ranges_are_accepted(void **state)
{
    (void)state;
    struct becalm_hedge_policy policy = policy_of();
    policy.delay = 3600 * BECALM_S;
    policy.quantile_ppm = 1;
    policy.max = 4;
    policy.share_ppm = 1000000;
    policy.cap = 1000000000;
    policy.non_fatal = 0;
    policy.min_notes = 1;
    const char *why = "untouched";
    assert_int_equal(becalm_hedge_check(&policy, &why), 0);
    struct becalm_hedge hedge;
    becalm_hedge_init(&hedge, &policy);
    check_eq_u64(take_all(&hedge), 1000);
}

/* ---------------------------------------------------------------------------------------------------------- threads */

struct worker {
    struct becalm_hedge *hedge;
    const struct becalm_hedge_policy *policy;
    uint64_t seed;
    uint64_t taken;
    uint64_t back;
};

/* Takes, and gives most of it back, by either way. */
static void *worker_run(void *argument)
{
    struct worker *worker = argument;
    for (unsigned i = 0; i < 20000; i++) {
        if (!becalm_hedge_take(worker->hedge, false, false)) {
            continue;
        }
        worker->taken++;
        switch (becalm_rand_next(&worker->seed) % 32) {
        case 0:
            break; /* lost */
        case 1:
            worker->back++;
            becalm_hedge_give(worker->hedge, worker->policy);
            break;
        default:
            worker->back++;
            becalm_hedge_won(worker->hedge, worker->policy, false);
        }
    }
    return NULL;
}

static void *worker_earn(void *argument)
{
    struct worker *worker = argument;
    for (unsigned i = 0; i < 1000; i++) {
        becalm_hedge_earn(worker->hedge, worker->policy);
    }
    return NULL;
}

static void run(struct worker *worker, void *(*work)(void *))
{
    pthread_t thread[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, work, &worker[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
}

static void test_hedge__eight_threads_conserve_the_tokens(void **state)
{
    (void)state;
    struct becalm_hedge_policy policy = policy_of();
    policy.cap = 1000000000;
    struct becalm_hedge hedge;
    becalm_hedge_init(&hedge, &policy);
    struct worker worker[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        worker[i] = (struct worker){.hedge = &hedge, .policy = &policy, .seed = i};
    }
    run(worker, worker_run);
    uint64_t taken = 0;
    uint64_t back = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        taken += worker[i].taken;
        back += worker[i].back;
    }
    check_eq_u64(tokens_of(&hedge), (1000 + back - taken) * TOKEN);
    take_all(&hedge);
    run(worker, worker_earn); /* 8,000 successes at 5 % */
    check_eq_u64(take_all(&hedge), 400);
}

BECALM_TESTS(cmocka_unit_test(test_hedge__a_bucket_without_a_whole_token_pays_nothing),
             cmocka_unit_test(test_hedge__the_defaults_are_one_at_p95_for_five_percent_and_off),
             cmocka_unit_test(test_hedge__in_overload_two_hedges_are_all),
             cmocka_unit_test(test_hedge__twenty_successes_earn_one_hedge),
             cmocka_unit_test(test_hedge__hedges_that_do_not_win_are_at_most_five_percent_of_successes_plus_two),
             cmocka_unit_test(test_hedge__a_hedge_that_wins_is_free),
             cmocka_unit_test(test_hedge__a_hedge_that_was_never_sent_is_free_and_not_counted),
             cmocka_unit_test(test_hedge__none_while_crowded_or_half_open),
             cmocka_unit_test(test_hedge__the_bucket_never_holds_more_than_its_cap),
             cmocka_unit_test(test_hedge__a_success_does_not_write_a_full_bucket),
             cmocka_unit_test(test_hedge__a_share_of_zero_earns_nothing),
             cmocka_unit_test(test_hedge__a_reload_carries_the_fill_fraction_and_the_counts),
             cmocka_unit_test(test_hedge__a_fixed_delay_needs_no_latencies),
             cmocka_unit_test(test_hedge__never_while_there_are_too_few_latencies),
             cmocka_unit_test(test_hedge__due_at_the_live_quantile),
             cmocka_unit_test(test_hedge__a_quantile_below_the_sketchs_resolution_is_a_microsecond),
             cmocka_unit_test(test_hedge__bad_parameters_are_refused_by_name),
             cmocka_unit_test(test_hedge__the_ends_of_the_ranges_are_accepted),
             cmocka_unit_test(test_hedge__eight_threads_conserve_the_tokens))
