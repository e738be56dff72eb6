/* SPDX-License-Identifier: MIT */
/* Hosts that have too much to do: they queue, or shed load. To eject one of them gives its load to the others, so it
 * goes only if they can take that, or if it does nothing else any more. */

#include "outlier_lab.h"

/* The share of slow answers. */
static void slow_answers(struct world *w, uint32_t host, uint32_t count)
{
    const struct becalm_outcome ok = {.kind = BECALM_OUTCOME_OK};
    const struct becalm_moment at = {.now = w->now};
    for (uint32_t i = 0; i < count; i++) {
        becalm_hosts_sent(w->hosts, host, w->now);
        becalm__hosts_note(w->hosts, &w->policy, &at, host, &(struct becalm__result){.outcome = &ok, .slow = true});
    }
}

static void test_outlier__an_answer_is_slow_from_a_quarter_of_its_time_on(void **state)
{
    (void)state;
    assert_false(becalm__is_slow(0, BECALM_S));
    assert_false(becalm__is_slow(250 * BECALM_MS - 1, BECALM_S));
    assert_true(becalm__is_slow(250 * BECALM_MS, BECALM_S));
}

/* A host that has too much to do, too: an eighth of its attempts time out. */
static void busy_host(struct world *w, uint32_t host)
{
    attempts(w, host, 14, BECALM_OUTCOME_OK);
    attempts(w, host, 2, BECALM_OUTCOME_TIMED_OUT);
}

/* A host whose timeouts come with slow answers has a queue; with quick ones, or none, it hangs. */
static void test_outlier__a_host_that_only_queues_stays_in(void **state)
{
    (void)state;
    static const struct {
        uint32_t quick, slow, timed_out, failed;
        bool out;
    } rows[] = {
        {0, 1, 4, 0, false}, {0, 0, 5, 0, true},      {1, 0, 4, 0, true},   {5, 5, 10, 0, false},
        {6, 4, 10, 0, true}, {0, 100, 899, 1, false}, {0, 10, 0, 10, true}, {0, 10, 7, 3, false},
        {0, 10, 4, 6, true}, {10, 90, 100, 0, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world w = world_rate(2);
        busy_host(&w, 1);
        attempts(&w, 0, rows[i].quick, BECALM_OUTCOME_OK);
        slow_answers(&w, 0, rows[i].slow);
        attempts(&w, 0, rows[i].timed_out, BECALM_OUTCOME_TIMED_OUT);
        attempts(&w, 0, rows[i].failed, BECALM_OUTCOME_FAILED);
        check_eq_u64(usable(&w, 0), !rows[i].out);
        world_end(&w);
    }
}

static void test_outlier__a_host_that_queued_and_now_hangs_goes_when_its_answers_are_forgotten(void **state)
{
    (void)state;
    struct world w = world_rate(2);
    busy_host(&w, 1);
    slow_answers(&w, 0, 5);
    for (uint32_t i = 0; i < 10; i++) {
        attempts(&w, 0, 1, BECALM_OUTCOME_TIMED_OUT);
        assert_true(usable(&w, 0));
        w.now += BECALM_S;
    }
    attempts(&w, 1, 10, BECALM_OUTCOME_OK);
    w.now += BECALM_S;
    attempts(&w, 0, 1, BECALM_OUTCOME_TIMED_OUT);
    assert_false(usable(&w, 0));
    world_end(&w);
}

/* A service whose good answers are slow by nature, too: nine hosts without a failure can take the load of the tenth. */
static void test_outlier__a_slow_host_goes_if_the_others_can_take_its_load(void **state)
{
    (void)state;
    static const struct {
        uint32_t others_timed_out; /* of 16 */
        bool out;
    } rows[] = {{0, true}, {1, true}, {2, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world w = world_rate(10);
        for (uint32_t host = 1; host < 10; host++) {
            slow_answers(&w, host, 16 - rows[i].others_timed_out);
            attempts(&w, host, rows[i].others_timed_out, BECALM_OUTCOME_TIMED_OUT);
        }
        slow_answers(&w, 0, 1);
        attempts(&w, 0, 9, BECALM_OUTCOME_TIMED_OUT);
        check_eq_u64(usable(&w, 0), !rows[i].out);
        world_end(&w);
    }
}

/* Nine other hosts, of whose results an eighth are rejections, too. */
static void test_outlier__a_host_that_sheds_load_stays_in_while_the_others_fail_too(void **state)
{
    (void)state;
    static const struct {
        uint32_t ok, rejected, failed;
        bool out;
    } rows[] = {
        {1, 9, 0, false}, {0, 9, 0, true}, {10, 10, 0, false}, {4, 3, 3, false}, {4, 3, 4, true}, {4, 0, 6, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world w = world_rate(10);
        for (uint32_t host = 1; host < 10; host++) {
            attempts(&w, host, 14, BECALM_OUTCOME_OK);
            attempts(&w, host, 2, BECALM_OUTCOME_REJECTED);
        }
        attempts(&w, 0, rows[i].ok, BECALM_OUTCOME_OK);
        attempts(&w, 0, rows[i].rejected, BECALM_OUTCOME_REJECTED);
        attempts(&w, 0, rows[i].failed, BECALM_OUTCOME_FAILED);
        check_eq_u64(usable(&w, 0), !rows[i].out);
        world_end(&w);
    }
}

static void test_outlier__a_host_that_sheds_load_goes_if_the_others_can_take_it(void **state)
{
    (void)state;
    static const struct {
        uint32_t hosts, others_ok, others_failed; /* of each other host; host 0 has 10 results */
        bool out;
    } rows[] = {
        {10, 16, 0, true}, {10, 15, 1, true}, {10, 14, 2, false},                   /* an eighth */
        {2, 20, 0, true},  {2, 19, 0, false}, {3, 10, 0, true},   {3, 9, 0, false}, /* twice its results */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world w = world_rate(rows[i].hosts);
        for (uint32_t host = 1; host < rows[i].hosts; host++) {
            attempts(&w, host, rows[i].others_ok, BECALM_OUTCOME_OK);
            attempts(&w, host, rows[i].others_failed, BECALM_OUTCOME_FAILED);
        }
        attempts(&w, 0, 5, BECALM_OUTCOME_OK);
        attempts(&w, 0, 4, BECALM_OUTCOME_REJECTED);
        assert_true(usable(&w, 0));
        attempts(&w, 0, 1, BECALM_OUTCOME_REJECTED); /* a half */
        check_eq_u64(usable(&w, 0), !rows[i].out);
        world_end(&w);
    }
}

static void test_outlier__a_host_that_rejects_everything_goes(void **state)
{
    (void)state;
    struct world w = world_rate(2);
    busy_host(&w, 1);
    attempts(&w, 0, 4, BECALM_OUTCOME_REJECTED);
    assert_true(usable(&w, 0));
    attempts(&w, 0, 1, BECALM_OUTCOME_REJECTED);
    assert_false(usable(&w, 0));
    world_end(&w);
}

/* Its good answer is still in the window, but it has not answered one of the latest sixteen. */
static void test_outlier__a_host_that_begins_to_reject_everything_goes(void **state)
{
    (void)state;
    struct world w = world_rate(2);
    attempts(&w, 0, 1, BECALM_OUTCOME_OK);
    attempts(&w, 0, 15, BECALM_OUTCOME_REJECTED);
    assert_true(usable(&w, 0));
    attempts(&w, 0, 1, BECALM_OUTCOME_REJECTED);
    assert_false(usable(&w, 0));
    world_end(&w);
}

static void test_outlier__rejections_in_a_row_eject_in_istios_way(void **state)
{
    (void)state;
    struct world w = world_istio(10);
    for (uint32_t host = 0; host < 10; host++) {
        attempts(&w, host, 4, BECALM_OUTCOME_REJECTED);
        attempts(&w, host, 1, BECALM_OUTCOME_OK);
    }
    attempts(&w, 0, 5, BECALM_OUTCOME_REJECTED);
    assert_false(usable(&w, 0));
    world_end(&w);
}

static void test_outlier__while_ejections_are_ignored_a_host_that_sheds_is_back_with_an_answer(void **state)
{
    (void)state;
    struct world w = world_rate(4);
    for (uint32_t host = 0; host < 4; host++) {
        attempts(&w, host, 5, BECALM_OUTCOME_REJECTED);
    }
    check_eq_u64(ejected_count(w.hosts), 4);
    attempts(&w, 3, 1, BECALM_OUTCOME_OK);
    check_eq_u64(ejected_count(w.hosts), 3);
    world_end(&w);
}

BECALM_TESTS(cmocka_unit_test(test_outlier__an_answer_is_slow_from_a_quarter_of_its_time_on),
             cmocka_unit_test(test_outlier__a_host_that_only_queues_stays_in),
             cmocka_unit_test(test_outlier__a_slow_host_goes_if_the_others_can_take_its_load),
             cmocka_unit_test(test_outlier__a_host_that_queued_and_now_hangs_goes_when_its_answers_are_forgotten),
             cmocka_unit_test(test_outlier__a_host_that_sheds_load_stays_in_while_the_others_fail_too),
             cmocka_unit_test(test_outlier__a_host_that_sheds_load_goes_if_the_others_can_take_it),
             cmocka_unit_test(test_outlier__a_host_that_rejects_everything_goes),
             cmocka_unit_test(test_outlier__a_host_that_begins_to_reject_everything_goes),
             cmocka_unit_test(test_outlier__rejections_in_a_row_eject_in_istios_way),
             cmocka_unit_test(test_outlier__while_ejections_are_ignored_a_host_that_sheds_is_back_with_an_answer))
