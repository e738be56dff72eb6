/* SPDX-License-Identifier: MIT */
#include <becalm/backoff.h>

#include "check.h"

#define DRAWS 100000

static struct becalm_backoff_policy policy_of(enum becalm_growth growth, enum becalm_jitter jitter)
{
    struct becalm_backoff_policy policy;
    becalm_backoff_defaults(&policy);
    policy.growth = growth;
    policy.jitter = jitter;
    return policy;
}

static becalm_ns draw(const struct becalm_backoff_policy *policy, uint32_t n, becalm_ns previous, uint64_t random)
{
    struct becalm_wait wait;
    becalm_backoff_wait(policy, &(struct becalm_backoff_draw){n, previous, BECALM_NEVER, random}, &wait);
    return wait.wait;
}

static void test_backoff__the_defaults_are_100_ms_doubling_to_10_s_with_full_jitter(void **state)
{
    (void)state;
    struct becalm_backoff_policy policy;
    becalm_backoff_defaults(&policy);
    check_eq_u64(policy.base, 100 * BECALM_MS);
    check_eq_u64(policy.cap, 10 * BECALM_S);
    check_eq_u64(policy.factor_ppm, 2000000);
    check_eq_u64(policy.growth, BECALM_GROWTH_EXPONENTIAL);
    check_eq_u64(policy.jitter, BECALM_JITTER_FULL);
    check_eq_u64((uint64_t)becalm_backoff_check(&policy, NULL), 0);
}

static void test_backoff__one_second_grows_as_the_textbooks_print_it(void **state)
{
    (void)state;
    static const struct {
        enum becalm_growth growth;
        becalm_ns seconds[4];
    } rows[] = {
        {BECALM_GROWTH_CONSTANT, {1, 1, 1, 1}},
        {BECALM_GROWTH_LINEAR, {1, 2, 3, 4}},
        {BECALM_GROWTH_EXPONENTIAL, {1, 2, 4, 8}},
    };
    for (size_t i = 0; i < 3; i++) {
        struct becalm_backoff_policy policy = policy_of(rows[i].growth, BECALM_JITTER_NONE);
        policy.base = BECALM_S;
        check_eq_u64(becalm_backoff_delay(&policy, 0), 0);
        for (uint32_t n = 1; n <= 4; n++) {
            check_eq_u64(becalm_backoff_delay(&policy, n), rows[i].seconds[n - 1] * BECALM_S);
            check_eq_u64(draw(&policy, n, 0, 77), rows[i].seconds[n - 1] * BECALM_S);
        }
    }
}

static void test_backoff__saturates_at_the_cap_however_late_the_retry(void **state)
{
    (void)state;
    struct becalm_backoff_policy policy = policy_of(BECALM_GROWTH_EXPONENTIAL, BECALM_JITTER_NONE);
    check_eq_u64(becalm_backoff_delay(&policy, 7), 6400 * BECALM_MS);
    check_eq_u64(becalm_backoff_delay(&policy, 8), 10 * BECALM_S);
    check_eq_u64(becalm_backoff_delay(&policy, 64), 10 * BECALM_S);
    check_eq_u64(becalm_backoff_delay(&policy, UINT32_MAX), 10 * BECALM_S);
    policy.growth = BECALM_GROWTH_LINEAR;
    check_eq_u64(becalm_backoff_delay(&policy, UINT32_MAX), 10 * BECALM_S);
    policy.growth = BECALM_GROWTH_EXPONENTIAL;
    policy.factor_ppm = 1000000;
    check_eq_u64(becalm_backoff_delay(&policy, UINT32_MAX), 100 * BECALM_MS);
    policy.factor_ppm = 1000001;
    policy.base = 3;
    check_eq_u64(becalm_backoff_delay(&policy, UINT32_MAX), 3);
    policy.base = 0;
    check_eq_u64(becalm_backoff_delay(&policy, UINT32_MAX), 0);
}

static void test_backoff__a_factor_of_one_and_a_half_grows_by_half(void **state)
{
    (void)state;
    struct becalm_backoff_policy policy = policy_of(BECALM_GROWTH_EXPONENTIAL, BECALM_JITTER_NONE);
    policy.factor_ppm = 1500000;
    check_eq_u64(becalm_backoff_delay(&policy, 3), 225 * BECALM_MS);
}

/* Where the draws of one jitter lie: bounds, mean, and how even they are over ten bins of [low, high]. */
static void check_distribution(const struct becalm_backoff_policy *policy, becalm_ns low, becalm_ns high)
{
    uint64_t seed = 42;
    uint64_t bin[10] = {0};
    uint64_t sum = 0;
    for (int i = 0; i < DRAWS; i++) {
        becalm_ns wait = draw(policy, 3, 0, becalm_rand_next(&seed));
        check_between_u64(wait, low, high);
        bin[(wait - low) * 10 / (high - low + 1)]++;
        sum += wait - low;
    }
    /* The mean of n uniform draws is normal with deviation width / sqrt(12 n): four of them are 0.37 %. */
    check_between_u64(sum / DRAWS, (high - low) / 2 * 995 / 1000, (high - low) / 2 * 1005 / 1000);
    for (int i = 0; i < 10; i++) {
        check_between_u64(bin[i], DRAWS / 10 - 400, DRAWS / 10 + 400); /* four deviations of a binomial */
    }
}

static void test_backoff__each_jitter_is_uniform_over_its_own_range(void **state)
{
    (void)state;
    struct becalm_backoff_policy policy = policy_of(BECALM_GROWTH_EXPONENTIAL, BECALM_JITTER_FULL);
    check_distribution(&policy, 0, 400 * BECALM_MS);
    policy.jitter = BECALM_JITTER_EQUAL;
    check_distribution(&policy, 200 * BECALM_MS, 400 * BECALM_MS);
    policy.jitter = BECALM_JITTER_PROPORTIONAL;
    check_distribution(&policy, 200 * BECALM_MS, 600 * BECALM_MS);
    policy.cap = 400 * BECALM_MS; /* upward jitter stops at the cap without piling up there */
    check_distribution(&policy, 200 * BECALM_MS, 400 * BECALM_MS);
    policy.cap = 10 * BECALM_S;
    policy.jitter = BECALM_JITTER_DECORRELATED;
    check_distribution(&policy, 100 * BECALM_MS, 300 * BECALM_MS);
}

static void test_backoff__decorrelated_jitter_grows_from_the_wait_before(void **state)
{
    (void)state;
    struct becalm_backoff_policy policy = policy_of(BECALM_GROWTH_EXPONENTIAL, BECALM_JITTER_DECORRELATED);
    uint64_t seed = 7;
    becalm_ns highest = 0;
    for (int i = 0; i < DRAWS; i++) {
        becalm_ns wait = draw(&policy, 2, BECALM_S, becalm_rand_next(&seed));
        check_between_u64(wait, policy.base, 3 * BECALM_S);
        highest = becalm_ns_max(highest, wait);
    }
    check_true(highest > 2900 * BECALM_MS);
    check_true(draw(&policy, 2, BECALM_NEVER, 1) <= policy.cap);
    policy.cap = policy.base; /* the empty range is its bound, not an immediate retry */
    check_eq_u64(draw(&policy, 2, policy.base, 1), policy.base);
}

static becalm_ns half(becalm_ns delay, uint64_t random, void *data)
{
    (void)random;
    ++*(int *)data;
    return delay / 2;
}

static becalm_ns endless(becalm_ns delay, uint64_t random, void *data)
{
    (void)delay;
    (void)random;
    (void)data;
    return BECALM_NEVER;
}

static void test_backoff__a_caller_can_supply_its_own_jitter(void **state)
{
    (void)state;
    int asked = 0;
    struct becalm_backoff_policy policy = policy_of(BECALM_GROWTH_EXPONENTIAL, BECALM_JITTER_CUSTOM);
    policy.custom = half;
    policy.custom_data = &asked;
    check_eq_u64(draw(&policy, 2, 0, 1), 100 * BECALM_MS);
    check_eq_u64((uint64_t)asked, 1);
    policy.custom = endless;
    check_eq_u64(draw(&policy, 2, 0, 1), policy.cap);
}

static void test_backoff__a_hint_is_a_floor_spread_upwards_by_half(void **state)
{
    (void)state;
    struct becalm_backoff_policy policy;
    struct becalm_wait wait;
    becalm_backoff_defaults(&policy);
    uint64_t seed = 3;
    becalm_ns lowest = BECALM_NEVER;
    becalm_ns highest = 0;
    for (int i = 0; i < DRAWS; i++) {
        struct becalm_backoff_draw ask = {1, 0, 2 * BECALM_S, becalm_rand_next(&seed)};
        becalm_backoff_wait(&policy, &ask, &wait);
        check_true(wait.hinted);
        check_true(wait.wait >= 2 * BECALM_S && wait.wait < 3 * BECALM_S);
        lowest = becalm_ns_min(lowest, wait.wait);
        highest = becalm_ns_max(highest, wait.wait);
    }
    check_true(lowest < 2010 * BECALM_MS && highest > 2990 * BECALM_MS);
    policy.jitter = BECALM_JITTER_NONE;
    becalm_backoff_wait(&policy, &(struct becalm_backoff_draw){1, 0, BECALM_MS, 5}, &wait);
    check_true(!wait.hinted);
    check_eq_u64(wait.wait, 100 * BECALM_MS);
    becalm_backoff_wait(&policy, &(struct becalm_backoff_draw){1, 0, BECALM_NEVER - 1, 5}, &wait);
    check_eq_u64(wait.wait, BECALM_NEVER); /* saturates; no deadline fits it */
}

static void test_backoff__two_callers_never_draw_the_same_schedule(void **state)
{
    (void)state;
    struct becalm_backoff_policy policy;
    becalm_backoff_defaults(&policy);
    uint64_t one = 1;
    uint64_t two = 2;
    for (int run = 0; run < 100; run++) {
        bool same = true;
        for (uint32_t n = 1; n <= 3; n++) {
            same &= draw(&policy, n, 0, becalm_rand_next(&one)) == draw(&policy, n, 0, becalm_rand_next(&two));
        }
        check_true(!same);
    }
}

static void check_refused(const struct becalm_backoff_policy *policy, const char *field)
{
    const char *why = NULL;
    check_eq_u64((uint64_t)(int64_t)becalm_backoff_check(policy, &why), (uint64_t)(int64_t)BECALM_EINVAL);
    check_true(why != NULL && strncmp(why, field, strlen(field)) == 0);
}

static void test_backoff__bad_parameters_are_named(void **state)
{
    (void)state;
    struct becalm_backoff_policy good;
    becalm_backoff_defaults(&good);
    struct becalm_backoff_policy bad = good;
    bad.cap = bad.base - 1;
    check_refused(&bad, "cap");
    bad = good;
    bad.base = bad.cap = BECALM_NEVER;
    check_refused(&bad, "base");
    bad = good;
    bad.cap = BECALM_NEVER;
    check_refused(&bad, "cap");
    bad = good;
    bad.factor_ppm = 999999;
    check_refused(&bad, "factor_ppm");
    bad.factor_ppm = UINT32_MAX;
    check_refused(&bad, "factor_ppm");
    bad = good;
    bad.jitter_ppm = 1000001;
    check_refused(&bad, "jitter_ppm");
    bad = good;
    bad.jitter = BECALM_JITTER_CUSTOM;
    check_refused(&bad, "custom");
    bad.jitter = (enum becalm_jitter)99;
    check_refused(&bad, "jitter");
    bad = good;
    bad.growth = (enum becalm_growth)99;
    check_refused(&bad, "growth");
}

BECALM_TESTS(cmocka_unit_test(test_backoff__the_defaults_are_100_ms_doubling_to_10_s_with_full_jitter),
             cmocka_unit_test(test_backoff__one_second_grows_as_the_textbooks_print_it),
             cmocka_unit_test(test_backoff__saturates_at_the_cap_however_late_the_retry),
             cmocka_unit_test(test_backoff__a_factor_of_one_and_a_half_grows_by_half),
             cmocka_unit_test(test_backoff__each_jitter_is_uniform_over_its_own_range),
             cmocka_unit_test(test_backoff__decorrelated_jitter_grows_from_the_wait_before),
             cmocka_unit_test(test_backoff__a_caller_can_supply_its_own_jitter),
             cmocka_unit_test(test_backoff__a_hint_is_a_floor_spread_upwards_by_half),
             cmocka_unit_test(test_backoff__two_callers_never_draw_the_same_schedule),
             cmocka_unit_test(test_backoff__bad_parameters_are_named))
