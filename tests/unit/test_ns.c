/* SPDX-License-Identifier: MIT */
#include <becalm/ns.h>

#include <becalm/rand.h>

#include "lib/check.h"

__extension__ typedef unsigned __int128 wide;

static void test_ns__nothing_added_or_subtracted_is_the_same_instant(void **state)
{
    (void)state;
    check_eq_u64(becalm_ns_after(0, 0), 0);
    check_eq_u64(becalm_ns_after(7, 0), 7);
    check_eq_u64(becalm_ns_since(7, 7), 0);
    check_eq_u64(becalm_ns_left(7, 7), 0);
}

static void test_ns__after_saturates_at_never(void **state)
{
    (void)state;
    check_eq_u64(becalm_ns_after(5, 3), 8);
    check_eq_u64(becalm_ns_after(BECALM_NEVER, 0), BECALM_NEVER);
    check_eq_u64(becalm_ns_after(BECALM_NEVER, 1), BECALM_NEVER);
    check_eq_u64(becalm_ns_after(0, BECALM_NEVER), BECALM_NEVER);
    check_eq_u64(becalm_ns_after(BECALM_NEVER, BECALM_NEVER), BECALM_NEVER);
    check_eq_u64(becalm_ns_after(BECALM_NEVER - 2, 1), BECALM_NEVER - 1);
    check_eq_u64(becalm_ns_after(BECALM_NEVER - 2, 2), BECALM_NEVER);
    check_eq_u64(becalm_ns_after(BECALM_NEVER - 2, 3), BECALM_NEVER);
}

static void test_ns__since_is_zero_for_an_instant_that_has_not_come(void **state)
{
    (void)state;
    check_eq_u64(becalm_ns_since(10, 4), 6);
    check_eq_u64(becalm_ns_since(4, 10), 0);
    check_eq_u64(becalm_ns_since(4, BECALM_NEVER), 0);
}

static void test_ns__left_is_zero_when_past_and_never_for_never(void **state)
{
    (void)state;
    check_eq_u64(becalm_ns_left(4, 10), 6);
    check_eq_u64(becalm_ns_left(10, 4), 0);
    check_eq_u64(becalm_ns_left(10, BECALM_NEVER), BECALM_NEVER);
    check_eq_u64(becalm_ns_left(BECALM_NEVER, BECALM_NEVER), BECALM_NEVER);
}

static void test_ns__min_and_max_choose(void **state)
{
    (void)state;
    check_eq_u64(becalm_ns_min(1, 1), 1);
    check_eq_u64(becalm_ns_min(1, BECALM_NEVER), 1);
    check_eq_u64(becalm_ns_min(2, 1), 1);
    check_eq_u64(becalm_ns_max(1, BECALM_NEVER), BECALM_NEVER);
    check_eq_u64(becalm_ns_max(2, 1), 2);
}

static void test_ns__scale_by_one_is_the_identity(void **state)
{
    (void)state;
    check_eq_u64(becalm_ns_scale(0, 1, 1), 0);
    check_eq_u64(becalm_ns_scale(123, 1, 1), 123);
    check_eq_u64(becalm_ns_scale(123, UINT32_MAX, UINT32_MAX), 123);
    check_eq_u64(becalm_ns_scale(BECALM_NEVER - 1, 7, 7), BECALM_NEVER - 1);
}

static void test_ns__scale_rounds_down(void **state)
{
    (void)state;
    check_eq_u64(becalm_ns_scale(10, 1, 3), 3);
    check_eq_u64(becalm_ns_scale(11, 2, 3), 7);
    check_eq_u64(becalm_ns_scale(2, 1, 3), 0);
    check_eq_u64(becalm_ns_scale(100 * BECALM_MS, 1500000, 1000000), 150 * BECALM_MS);
    check_eq_u64(becalm_ns_scale(5, 0, 3), 0);
}

static void test_ns__scale_saturates_and_never_stays_never(void **state)
{
    (void)state;
    check_eq_u64(becalm_ns_scale(BECALM_NEVER, 1, 2), BECALM_NEVER);
    check_eq_u64(becalm_ns_scale(BECALM_NEVER, 0, 1), BECALM_NEVER);
    check_eq_u64(becalm_ns_scale(BECALM_NEVER - 1, 2, 1), BECALM_NEVER);
    check_eq_u64(becalm_ns_scale(UINT64_MAX / 2 + 1, 2, 1), BECALM_NEVER);
    check_eq_u64(becalm_ns_scale(UINT64_MAX / 2, 2, 1), BECALM_NEVER - 1);
    /* Whole parts that give just UINT64_MAX, and a rest on top. */
    check_eq_u64(becalm_ns_scale((BECALM_NEVER / UINT32_MAX) * (UINT32_MAX - 1) + 5, UINT32_MAX, UINT32_MAX - 1),
                 BECALM_NEVER);
    check_eq_u64(becalm_ns_scale(1, 1, 0), BECALM_NEVER);
    check_eq_u64(becalm_ns_scale(0, 0, 0), BECALM_NEVER);
}

static void test_ns__scale_agrees_with_wide_arithmetic(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 1000000; i++) {
        uint64_t shape = becalm_rand_next(&seed);
        becalm_ns d = becalm_rand_next(&seed) >> (shape & 63);
        uint32_t numerator = (uint32_t)(becalm_rand_next(&seed) >> 32) >> (shape >> 6 & 31);
        uint32_t denominator = (uint32_t)(becalm_rand_next(&seed) >> 32) >> (shape >> 11 & 31);
        if (denominator == 0 || d == BECALM_NEVER) {
            continue;
        }
        becalm_ns got = becalm_ns_scale(d, numerator, denominator);
        wide exact = (wide)d * numerator;
        /* got = exact / denominator, rounded down, said without a division */
        bool right = (wide)got * denominator <= exact && exact < ((wide)got + 1) * denominator;
        bool beyond = got == BECALM_NEVER && exact >= (wide)BECALM_NEVER * denominator;
        if (!right && !beyond) {
            print_error("%" PRIu64 " * %" PRIu32 " / %" PRIu32 " became %" PRIu64 "\n", d, numerator, denominator, got);
            fail();
        }
    }
}

BECALM_TESTS(cmocka_unit_test(test_ns__nothing_added_or_subtracted_is_the_same_instant),
             cmocka_unit_test(test_ns__after_saturates_at_never),
             cmocka_unit_test(test_ns__since_is_zero_for_an_instant_that_has_not_come),
             cmocka_unit_test(test_ns__left_is_zero_when_past_and_never_for_never),
             cmocka_unit_test(test_ns__min_and_max_choose), cmocka_unit_test(test_ns__scale_by_one_is_the_identity),
             cmocka_unit_test(test_ns__scale_rounds_down),
             cmocka_unit_test(test_ns__scale_saturates_and_never_stays_never),
             cmocka_unit_test(test_ns__scale_agrees_with_wide_arithmetic))
