/* SPDX-License-Identifier: MIT */
#include <becalm/rand.h>

#include "lib/check.h"

#define BINS  64u
#define DRAWS 64000u

/* Pearson's statistic of bins that should be equally full. With 63 degrees of freedom its mean is 63 and its standard
 * deviation 11; beyond 20 or 130 there is something wrong with the draw, not with the luck. */
static void check_uniform(const uint32_t *bins, uint64_t seed)
{
    uint64_t expected = DRAWS / BINS;
    uint64_t squares = 0;
    for (uint32_t i = 0; i < BINS; i++) {
        uint64_t off = bins[i] > expected ? bins[i] - expected : expected - bins[i];
        squares += off * off;
    }
    if (squares / expected < 20 || squares / expected > 130) {
        print_error("seed %" PRIu64 ": ", seed);
    }
    check_between_u64(squares / expected, 20, 130);
}

static void test_rand__an_empty_range_returns_its_bound(void **state)
{
    (void)state;
    check_eq_u64(becalm_rand_below(UINT64_MAX, 0), 0);
    check_eq_u64(becalm_rand_below(UINT64_MAX, 1), 0);
    check_eq_u64(becalm_rand_between(12345, 7, 7), 7);
    check_eq_u64(becalm_rand_between(UINT64_MAX, 7, 7), 7);
    check_eq_u64(becalm_rand_between(UINT64_MAX, 7, 6), 7);
    check_eq_u64(becalm_rand_between(UINT64_MAX, UINT64_MAX, 0), UINT64_MAX);
}

static void test_rand__below_reaches_both_ends_and_not_the_bound(void **state)
{
    (void)state;
    check_eq_u64(becalm_rand_below(0, 10), 0);
    check_eq_u64(becalm_rand_below(UINT64_MAX, 10), 9);
    check_eq_u64(becalm_rand_below(UINT64_MAX, UINT64_MAX), UINT64_MAX - 1);
    check_eq_u64(becalm_rand_below(UINT64_MAX / 2 + 1, 10), 5);
}

static void test_rand__between_includes_both_ends(void **state)
{
    (void)state;
    check_eq_u64(becalm_rand_between(0, 80, 100), 80);
    check_eq_u64(becalm_rand_between(UINT64_MAX, 80, 100), 100);
}

static void test_rand__between_spans_the_whole_range(void **state)
{
    (void)state;
    check_eq_u64(becalm_rand_between(0, 0, UINT64_MAX), 0);
    check_eq_u64(becalm_rand_between(12345, 0, UINT64_MAX), 12345);
    check_eq_u64(becalm_rand_between(UINT64_MAX, 0, UINT64_MAX), UINT64_MAX);
    check_eq_u64(becalm_rand_between(0, 1, UINT64_MAX), 1);
    check_eq_u64(becalm_rand_between(UINT64_MAX, 1, UINT64_MAX), UINT64_MAX);
}

static void test_rand__chance_zero_is_never_and_a_million_always(void **state)
{
    (void)state;
    check_true(!becalm_rand_chance(0, 0));
    check_true(!becalm_rand_chance(UINT64_MAX, 0));
    check_true(becalm_rand_chance(0, 1));
    check_true(!becalm_rand_chance(UINT64_MAX, 999999));
    check_true(becalm_rand_chance(UINT64_MAX, 1000000));
    check_true(becalm_rand_chance(UINT64_MAX, UINT32_MAX));
}

static void test_rand__chance_comes_true_as_often_as_it_says(void **state)
{
    (void)state;
    static const uint32_t chances[] = {1000, 100000, 500000, 900000};
    uint64_t seed = 2;
    for (size_t i = 0; i < sizeof chances / sizeof chances[0]; i++) {
        uint32_t hits = 0;
        for (int n = 0; n < 1000000; n++) {
            hits += becalm_rand_chance(becalm_rand_next(&seed), chances[i]);
        }
        /* The standard deviation is at most 500. */
        check_between_u64(hits, chances[i] < 2500 ? 0 : chances[i] - 2500, chances[i] + 2500);
    }
}

static void test_rand__next_is_splitmix64(void **state)
{
    (void)state;
    /* The published sequence of the seed 1234567. */
    static const uint64_t expected[] = {UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
                                        UINT64_C(9817491932198370423), UINT64_C(4593380528125082431),
                                        UINT64_C(16408922859458223821)};
    uint64_t seed = 1234567;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        check_eq_u64(becalm_rand_next(&seed), expected[i]);
    }
}

static void test_rand__below_is_uniform(void **state)
{
    (void)state;
    /* Bounds that a modulo would be unfair to, too: three quarters of 2^64. */
    static const uint64_t bounds[] = {BINS, 1000 * BINS, UINT64_C(3) << 62, UINT64_MAX};
    for (size_t b = 0; b < sizeof bounds / sizeof bounds[0]; b++) {
        for (uint64_t first = 0; first < 5; first++) {
            uint64_t seed = first;
            uint32_t bins[BINS] = {0};
            for (uint32_t i = 0; i < DRAWS; i++) {
                uint64_t bin = becalm_rand_below(becalm_rand_next(&seed), bounds[b]) / (bounds[b] / BINS);
                bins[bin < BINS ? bin : BINS - 1]++;
            }
            check_uniform(bins, first);
        }
    }
}

static uint64_t lane_bits(uint64_t random, unsigned lane)
{
    return becalm_rand_lane(random, (enum becalm_lane)lane);
}

/* The joint distribution of any two lanes of the same bits is as flat as that of two generators: for random bits, and
 * for bits that a lazy host merely counts, by one or by SplitMix64's own step. */
static void test_rand__lanes_are_independent(void **state)
{
    (void)state;
    static const uint64_t steps[] = {1, UINT64_C(0x9e3779b97f4a7c15)};
    for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
        for (unsigned a = BECALM_LANE_JITTER; a <= BECALM_LANE_SHED; a++) {
            for (unsigned b = a; b <= BECALM_LANE_SHED; b++) {
                uint32_t bins[BINS] = {0};
                uint64_t random = 0;
                for (uint32_t i = 0; i < DRAWS; i++, random += steps[s]) {
                    /* A lane with itself is compared over two events. */
                    uint64_t other = a == b ? random + steps[s] : random;
                    bins[lane_bits(random, a) >> 61 << 3 | lane_bits(other, b) >> 61]++;
                }
                check_uniform(bins, steps[s]);
            }
        }
    }
}

static void test_rand__one_lane_never_repeats_in_another(void **state)
{
    (void)state;
    for (unsigned a = BECALM_LANE_JITTER; a <= BECALM_LANE_SHED; a++) {
        for (unsigned b = BECALM_LANE_JITTER; b <= BECALM_LANE_SHED; b++) {
            uint64_t seed = 0;
            uint64_t bits = becalm_rand_next(&seed);
            for (int i = 0; i < 1000; i++) {
                uint64_t next = becalm_rand_next(&seed);
                check_true(a == b || lane_bits(bits, a) != lane_bits(bits, b));
                check_true(lane_bits(bits, a) != lane_bits(next, b));
                bits = next;
            }
        }
    }
}

/* Recorded timelines must stay the same: these values may not change. */
static void test_rand__a_lane_is_the_same_on_every_machine(void **state)
{
    (void)state;
    check_eq_u64(becalm_rand_lane(0, BECALM_LANE_JITTER), UINT64_C(12489560693144743404));
    check_eq_u64(becalm_rand_lane(42, BECALM_LANE_SHED), UINT64_C(1202056942143560867));
}

BECALM_TESTS(cmocka_unit_test(test_rand__an_empty_range_returns_its_bound),
             cmocka_unit_test(test_rand__below_reaches_both_ends_and_not_the_bound),
             cmocka_unit_test(test_rand__between_includes_both_ends),
             cmocka_unit_test(test_rand__between_spans_the_whole_range),
             cmocka_unit_test(test_rand__chance_zero_is_never_and_a_million_always),
             cmocka_unit_test(test_rand__chance_comes_true_as_often_as_it_says),
             cmocka_unit_test(test_rand__next_is_splitmix64), cmocka_unit_test(test_rand__below_is_uniform),
             cmocka_unit_test(test_rand__lanes_are_independent),
             cmocka_unit_test(test_rand__one_lane_never_repeats_in_another),
             cmocka_unit_test(test_rand__a_lane_is_the_same_on_every_machine))
