/* SPDX-License-Identifier: MIT */
#include "scenario/dist.h"

#include <becalm/rand.h>

#include "check.h"

#define DRAWS 400000u
#define MS    BECALM_MS

static struct dist_tables tables;

/* Mean, and the share of draws below `limit`, in ppm. */
struct seen {
    uint64_t mean;
    uint64_t below_ppm;
};

static struct seen draw_many(const struct dist *dist, becalm_ns limit)
{
    uint64_t state = 7;
    uint64_t sum = 0;
    uint64_t below = 0;
    dist_init(&tables);
    for (uint32_t i = 0; i < DRAWS; i++) {
        becalm_ns drawn = dist_draw(&tables, dist, &state);
        sum += drawn;
        below += drawn < limit;
    }
    return (struct seen){sum / DRAWS, below * 1000000 / DRAWS};
}

static void test_dist__a_constant_is_one(void **state)
{
    (void)state;
    struct seen seen = draw_many(&(struct dist){.kind = DIST_CONSTANT, .mean = 10 * MS, .shape = 0}, 10 * MS);
    check_eq_u64(seen.mean, 10 * MS);
    check_eq_u64(seen.below_ppm, 0);
}

static void test_dist__the_exponential_has_its_mean_and_its_median(void **state)
{
    (void)state;
    struct seen seen = draw_many(&(struct dist){.kind = DIST_EXPONENTIAL, .mean = 10 * MS, .shape = 0},
                                 6931472); /* ln 2 of the mean */
    check_between_u64(seen.mean, 9940000, 10060000);
    check_between_u64(seen.below_ppm, 497000, 503000);
}

static void test_dist__the_lognormal_has_its_median_and_a_tail(void **state)
{
    (void)state;
    struct seen seen = draw_many(&(struct dist){.kind = DIST_LOGNORMAL, .mean = 10 * MS, .shape = 500}, 10 * MS);
    check_between_u64(seen.below_ppm, 497000, 503000);
    check_between_u64(seen.mean, 11260000, 11400000); /* e^(0.5^2 / 2) = 1.1331 */
    seen = draw_many(&(struct dist){.kind = DIST_LOGNORMAL, .mean = 10 * MS, .shape = 500},
                     22761000); /* 95 % by the tables */
    check_between_u64(seen.below_ppm, 948500, 951500);
}

static void test_dist__the_pareto_has_its_least_and_its_mean(void **state)
{
    (void)state;
    struct seen seen = draw_many(&(struct dist){.kind = DIST_PARETO, .mean = 10 * MS, .shape = 2500}, 10 * MS);
    check_eq_u64(seen.below_ppm, 0);
    check_between_u64(seen.mean, 16450000, 16900000); /* 2.5 / 1.5 */
}

static void test_dist__the_normal_is_spread_by_its_deviation(void **state)
{
    (void)state;
    struct seen seen = draw_many(&(struct dist){.kind = DIST_NORMAL, .mean = 10 * MS, .shape = 200000},
                                 12 * MS); /* one deviation of 2 ms */
    check_between_u64(seen.mean, 9985000, 10015000);
    check_between_u64(seen.below_ppm, 839000, 844000); /* 84.13 % */
}

static void test_dist__logarithm_and_power_are_inverse_to_each_other(void **state)
{
    (void)state;
    dist_init(&tables);
    check_eq_u64(dist_minus_ln(&tables, UINT64_C(1) << 63), 2977044472); /* ln 2, 32 bits of fraction */
    check_eq_u64(dist_scale_exp2(&tables, 1000, INT64_C(3) << 32), 8000);
    check_eq_u64(dist_scale_exp2(&tables, 1000, -(INT64_C(1) << 32)), 500);
    check_eq_u64(dist_scale_exp2(&tables, 1000, INT64_C(100) << 32), BECALM_NEVER - 1);
    check_eq_u64(dist_scale_exp2(&tables, 1000, -(INT64_C(100) << 32)), 0);
    check_between_u64(dist_scale_exp2(&tables, 1000000, INT64_C(1) << 31), 1414210, 1414217);
    check_true(dist_minus_ln(&tables, 0) < UINT64_C(45) << 32); /* the bound of the least number, not infinity */
}

static void test_dist__the_same_seed_draws_the_same_on_every_machine(void **state)
{
    (void)state;
    static const struct dist dists[] = {{.kind = DIST_EXPONENTIAL, .mean = 10 * MS, .shape = 0},
                                        {.kind = DIST_LOGNORMAL, .mean = 10 * MS, .shape = 500},
                                        {.kind = DIST_PARETO, .mean = 10 * MS, .shape = 2500},
                                        {.kind = DIST_NORMAL, .mean = 10 * MS, .shape = 200000}};
    uint64_t hash = 0;
    uint64_t seed = 1;
    dist_init(&tables);
    for (uint32_t i = 0; i < 10000; i++) {
        hash = (hash ^ dist_draw(&tables, &dists[i % 4], &seed)) * UINT64_C(0x9e3779b97f4a7c15);
    }
    check_eq_u64(hash, UINT64_C(2923640867684406036));
}

static void test_dist__a_mixture_draws_each_part_as_often_as_its_weight_says(void **state)
{
    (void)state;
    static const becalm_ns samples[] = {3 * BECALM_MS, 4 * BECALM_MS};
    static const struct dist_part parts[] = {
        {.below = 1, .dist = {.kind = DIST_CONSTANT, .mean = BECALM_MS}},
        {.below = 10, .dist = {.kind = DIST_SAMPLES, .samples = samples, .count = 2}},
    };
    static const struct dist mixture = {.kind = DIST_MIXTURE, .parts = parts, .count = 2};
    uint64_t random = 1;
    uint64_t count[5] = {0};
    dist_init(&tables);
    for (unsigned i = 0; i < 100000; i++) {
        becalm_ns drawn = dist_draw(&tables, &mixture, &random);
        check_true(drawn == BECALM_MS || drawn == 3 * BECALM_MS || drawn == 4 * BECALM_MS);
        count[drawn / BECALM_MS]++;
    }
    check_between_u64(count[1], 9700, 10300);
    check_between_u64(count[3], 44400, 45600);
    check_between_u64(count[4], 44400, 45600);
}

BECALM_TESTS(cmocka_unit_test(test_dist__a_mixture_draws_each_part_as_often_as_its_weight_says),
             cmocka_unit_test(test_dist__a_constant_is_one),
             cmocka_unit_test(test_dist__the_exponential_has_its_mean_and_its_median),
             cmocka_unit_test(test_dist__the_lognormal_has_its_median_and_a_tail),
             cmocka_unit_test(test_dist__the_pareto_has_its_least_and_its_mean),
             cmocka_unit_test(test_dist__the_normal_is_spread_by_its_deviation),
             cmocka_unit_test(test_dist__logarithm_and_power_are_inverse_to_each_other),
             cmocka_unit_test(test_dist__the_same_seed_draws_the_same_on_every_machine))
