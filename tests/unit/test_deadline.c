/* SPDX-License-Identifier: MIT */
#include <becalm/deadline.h>

#include "check.h"

static void test_deadline__thirty_seconds_less_seven_are_twenty_three(void **state)
{
    (void)state;
    becalm_ns deadline_at = becalm_deadline_at(0, 60 * BECALM_S, 30 * BECALM_S);
    check_eq_u64(deadline_at, 30 * BECALM_S);
    check_eq_u64(becalm_deadline_clip(7 * BECALM_S, deadline_at, 60 * BECALM_S), 23 * BECALM_S);
}

static void test_deadline__the_earlier_one_wins(void **state)
{
    (void)state;
    check_eq_u64(becalm_deadline_at(BECALM_S, 5 * BECALM_S, BECALM_NEVER), 6 * BECALM_S);
    check_eq_u64(becalm_deadline_at(BECALM_S, 5 * BECALM_S, 2 * BECALM_S), 2 * BECALM_S);
    check_eq_u64(becalm_deadline_at(BECALM_S, BECALM_NEVER, BECALM_NEVER), BECALM_NEVER);
    check_eq_u64(becalm_deadline_clip(BECALM_S, BECALM_NEVER, 5 * BECALM_S), 5 * BECALM_S);
    check_eq_u64(becalm_deadline_clip(9, 5, 5 * BECALM_S), 0);
}

static void test_deadline__passes_at_its_own_instant(void **state)
{
    (void)state;
    check_true(!becalm_deadline_passed(9, 10));
    check_true(becalm_deadline_passed(10, 10));
    check_true(!becalm_deadline_passed(UINT64_MAX - 1, BECALM_NEVER));
}

static void test_deadline__a_wait_fits_only_with_time_to_be_answered(void **state)
{
    (void)state;
    check_true(becalm_deadline_fits(0, 100, 40, 50));
    check_true(!becalm_deadline_fits(0, 100, 50, 50));
    check_true(!becalm_deadline_fits(0, 100, BECALM_NEVER, 0));
    check_true(!becalm_deadline_fits(0, 100, 1, BECALM_NEVER));
    check_true(becalm_deadline_fits(UINT64_MAX - 5, BECALM_NEVER, 100, 100));
}

BECALM_TESTS(cmocka_unit_test(test_deadline__thirty_seconds_less_seven_are_twenty_three),
             cmocka_unit_test(test_deadline__the_earlier_one_wins),
             cmocka_unit_test(test_deadline__passes_at_its_own_instant),
             cmocka_unit_test(test_deadline__a_wait_fits_only_with_time_to_be_answered))
