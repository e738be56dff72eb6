/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "demo/pace.h"

/* When the demonstration says that the machine is too busy for it. */

static void tick_with(struct pace *pace, becalm_ns late)
{
    pace_beat(pace, late);
    pace_beat(pace, 0); /* the worst beat counts, not the last */
    pace_tick(pace);
}

static void test_pace__without_late_beats_nothing_is_slow(void **state)
{
    (void)state;
    struct pace pace = {0};
    pace_tick(&pace);
    tick_with(&pace, PACE_SLOW - 1);
    assert_int_equal(pace.all.slow, 0);
    assert_int_equal(pace.all.ticks, 2);
    assert_true(pace.all.worst == PACE_SLOW - 1);
}

static void test_pace__a_late_beat_makes_its_own_tick_slow_and_no_other(void **state)
{
    (void)state;
    struct pace pace = {0};
    tick_with(&pace, PACE_SLOW);
    tick_with(&pace, 0);
    tick_with(&pace, 3 * PACE_SLOW);
    tick_with(&pace, 2 * PACE_SLOW);
    assert_int_equal(pace.all.slow, 3);
    assert_int_equal(pace.all.ticks, 4);
    assert_true(pace.all.worst == 3 * PACE_SLOW);
}

static void test_pace__a_fault_begins_anew_and_the_whole_is_kept(void **state)
{
    (void)state;
    struct pace pace = {0};
    tick_with(&pace, 5 * PACE_SLOW);
    assert_int_equal(pace.storm.slow, 1);
    pace_anew(&pace);
    assert_int_equal(pace.storm.slow, 0);
    tick_with(&pace, 2 * PACE_SLOW);
    assert_int_equal(pace.storm.slow, 1);
    assert_int_equal(pace.storm.ticks, 1);
    assert_true(pace.storm.worst == 2 * PACE_SLOW);
    assert_int_equal(pace.all.slow, 2);
    assert_true(pace.all.worst == 5 * PACE_SLOW);
}

static void test_pace__one_slow_tick_in_ten_is_said_and_fewer_are_not_unless_one_is_lost(void **state)
{
    (void)state;
    struct pace pace = {0};
    assert_false(pace_is_slow(&pace.all));
    tick_with(&pace, PACE_LOST - 1);
    tick_with(&pace, PACE_SLOW);
    assert_false(pace_is_slow(&pace.all)); /* all of them, but two alone */
    for (int i = 0; i < 37; i++) {
        tick_with(&pace, 0);
    }
    tick_with(&pace, PACE_SLOW);
    assert_false(pace_is_slow(&pace.all)); /* 3 of 40 */
    tick_with(&pace, PACE_SLOW);
    assert_true(pace_is_slow(&pace.all)); /* 4 of 41 */
    pace_anew(&pace);
    for (int i = 0; i < 100; i++) {
        tick_with(&pace, i == 50 ? PACE_LOST : 0);
    }
    assert_true(pace_is_slow(&pace.storm));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pace__without_late_beats_nothing_is_slow),
        cmocka_unit_test(test_pace__a_late_beat_makes_its_own_tick_slow_and_no_other),
        cmocka_unit_test(test_pace__a_fault_begins_anew_and_the_whole_is_kept),
        cmocka_unit_test(test_pace__one_slow_tick_in_ten_is_said_and_fewer_are_not_unless_one_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
