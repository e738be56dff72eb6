/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "demo/storm.h"

/* When the demonstration calls a lane down, recovering, or back. */

enum { NAIVE, BECALM };

/* Hurt at 10 and healed at 30, with no call served in between. */
static struct storm healed(void)
{
    struct storm storm;
    storm_init(&storm);
    storm_hurt(&storm, 10);
    storm_note(&storm, NAIVE, 20, 0);
    storm_heal(&storm, 30);
    return storm;
}

static enum storm_state noted(struct storm *storm, uint32_t tick, uint32_t success)
{
    storm_note(storm, NAIVE, tick, success);
    return storm_state(storm, NAIVE, tick);
}

static void test_storm__before_the_first_fault_all_is_calm(void **state)
{
    (void)state;
    struct storm storm;
    storm_init(&storm);
    assert_string_equal(storm_word(noted(&storm, 6, 0)), "calm");
    storm_heal(&storm, 7);
    assert_string_equal(storm_word(noted(&storm, 12, 0)), "calm");
    storm_hurt(&storm, 20);
    assert_string_equal(storm_word(noted(&storm, 21, 1000000)), "hurt");
}

static void test_storm__a_lane_is_back_from_the_first_ticks_with_19_of_20_calls(void **state)
{
    (void)state;
    struct storm storm = healed();
    assert_int_equal(noted(&storm, 33, 1000000), STORM_HEALED); /* half of that was before */
    assert_int_equal(noted(&storm, 34, STORM_BACK_PPM - 1), STORM_RECOVERING);
    assert_int_equal(noted(&storm, 35, STORM_DOWN_PPM - 1), STORM_DOWN);
    assert_int_equal(noted(&storm, 40, STORM_BACK_PPM), STORM_BACK);
    check_eq_u64(storm.lane[NAIVE].recovered, 36);
    assert_false(storm_was_stopped(&storm, NAIVE));
}

static void test_storm__ticks_in_which_no_call_ends_are_no_recovery(void **state)
{
    (void)state;
    struct storm storm = healed();
    assert_int_equal(noted(&storm, 40, STORM_UNKNOWN), STORM_DOWN);
}

static void test_storm__what_happens_while_users_are_stopped_is_no_recovery(void **state)
{
    (void)state;
    struct storm storm = healed();
    assert_int_equal(noted(&storm, 40, 0), STORM_DOWN);
    storm_stop(&storm, 40);
    assert_int_equal(noted(&storm, 46, 1000000), STORM_STOPPED);
    storm_resume(&storm, 60);
    assert_int_equal(noted(&storm, 63, 1000000), STORM_HEALED);
    assert_int_equal(noted(&storm, 64, 0), STORM_DOWN);
    assert_int_equal(noted(&storm, 70, 1000000), STORM_BACK);
    assert_true(storm_was_stopped(&storm, NAIVE));
}

static void test_storm__who_was_back_before_the_stop_owes_it_nothing(void **state)
{
    (void)state;
    struct storm storm = healed();
    assert_int_equal(noted(&storm, 40, 1000000), STORM_BACK);
    storm_stop(&storm, 45);
    assert_int_equal(noted(&storm, 50, STORM_UNKNOWN), STORM_BACK);
    assert_false(storm_was_stopped(&storm, NAIVE));
}

static void test_storm__healing_while_users_are_stopped_is_remembered_too(void **state)
{
    (void)state;
    struct storm storm;
    storm_init(&storm);
    storm_hurt(&storm, 10);
    storm_note(&storm, NAIVE, 20, 0);
    storm_stop(&storm, 22);
    storm_heal(&storm, 30);
    storm_resume(&storm, 40);
    assert_int_equal(noted(&storm, 44, 1000000), STORM_BACK);
    assert_true(storm_was_stopped(&storm, NAIVE));
}

static void test_storm__who_falls_again_is_not_back(void **state)
{
    (void)state;
    struct storm storm = healed();
    assert_int_equal(noted(&storm, 40, 1000000), STORM_BACK);
    assert_int_equal(noted(&storm, 50, STORM_DOWN_PPM), STORM_BACK); /* a bad moment is not a fall */
    assert_int_equal(noted(&storm, 60, STORM_DOWN_PPM - 1), STORM_DOWN);
    assert_int_equal(noted(&storm, 70, 1000000), STORM_BACK);
    check_eq_u64(storm.lane[NAIVE].recovered, 66);
    assert_int_equal(noted(&storm, 80, STORM_UNKNOWN), STORM_DOWN);
}

static void test_storm__a_lane_that_never_went_down_is_unharmed(void **state)
{
    (void)state;
    struct storm storm = healed();
    storm_note(&storm, BECALM, 20, STORM_BACK_PPM);
    storm_note(&storm, BECALM, 34, 1000000);
    assert_int_equal(storm_state(&storm, BECALM, 34), STORM_UNHARMED);
    check_eq_u64(storm.lane[BECALM].recovered, 30);
    storm_hurt(&storm, 40); /* the next one is another story */
    assert_int_equal(storm_state(&storm, BECALM, 44), STORM_HURT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_storm__before_the_first_fault_all_is_calm),
        cmocka_unit_test(test_storm__a_lane_is_back_from_the_first_ticks_with_19_of_20_calls),
        cmocka_unit_test(test_storm__ticks_in_which_no_call_ends_are_no_recovery),
        cmocka_unit_test(test_storm__what_happens_while_users_are_stopped_is_no_recovery),
        cmocka_unit_test(test_storm__who_was_back_before_the_stop_owes_it_nothing),
        cmocka_unit_test(test_storm__healing_while_users_are_stopped_is_remembered_too),
        cmocka_unit_test(test_storm__who_falls_again_is_not_back),
        cmocka_unit_test(test_storm__a_lane_that_never_went_down_is_unharmed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
