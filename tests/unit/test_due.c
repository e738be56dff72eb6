/* SPDX-License-Identifier: MIT */
#include <becalm/due.h>

#include <becalm/rand.h>

#include "check.h"

#define LEAST (5 * BECALM_S)

/* A due, and answers that come to it one after the other. */
struct lab {
    struct becalm_due due;
    becalm_ns now;
    uint64_t seed;
};

static void lab_open(struct lab *lab)
{
    becalm_due_init(&lab->due);
    lab->now = BECALM_S;
    lab->seed = 7;
}

static void note(struct lab *lab, becalm_ns took)
{
    struct becalm_moment at = {.now = lab->now, .random = becalm_rand_next(&lab->seed)};
    becalm_due_note(&lab->due, &at, LEAST, took);
}

/* `count` answers of this duration, 20 a second. */
static void notes(struct lab *lab, becalm_ns took, int count)
{
    for (int i = 0; i < count; i++) {
        lab->now += 50 * BECALM_MS;
        note(lab, took);
    }
}

static becalm_ns due_time(const struct lab *lab)
{
    return becalm_due_time(&lab->due, LEAST);
}

static void test_due__nothing_is_known_at_the_beginning(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab);
    assert_false(becalm_due_known(&lab.due));
    check_eq_u64(due_time(&lab), BECALM_DUE_START);
    check_eq_u64(becalm_due_time(&lab.due, 60 * BECALM_S), 60 * BECALM_S);
    lab.now += 3600 * BECALM_S;
    for (int i = 0; i < 15; i++) {
        note(&lab, 20 * BECALM_MS); /* too few */
    }
    check_eq_u64(due_time(&lab), BECALM_DUE_START);
}

static void test_due__quick_answers_bring_it_to_the_least_within_seconds(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab);
    notes(&lab, 5 * BECALM_MS, 100);
    assert_true(becalm_due_known(&lab.due));
    check_eq_u64(due_time(&lab), LEAST);
    uint64_t writes = 0;
    for (int i = 0; i < 1600; i++) {
        uint64_t word = atomic_load_explicit(&lab.due.word, memory_order_relaxed);
        notes(&lab, 5 * BECALM_MS, 1);
        writes += atomic_load_explicit(&lab.due.word, memory_order_relaxed) != word;
    }
    check_between_u64(writes, 50, 150); /* one of 16 */
    check_eq_u64(due_time(&lab), LEAST);
}

/* Of calls that begin together the quick ones are answered first. */
static void test_due__the_first_answers_of_a_slow_service_do_not_mislead_it(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab);
    for (int burst = 0; burst < 20; burst++) {
        becalm_ns began_at = lab.now;
        for (int i = 0; i < 200; i++) { /* from 4 s to 12 s, in order */
            becalm_ns took = (4000 + (becalm_ns)i * 40) * BECALM_MS;
            lab.now = began_at + took;
            note(&lab, took);
            check_between_u64(due_time(&lab), 20 * BECALM_S, 48 * BECALM_S);
        }
    }
}

static void test_due__a_quick_service_that_becomes_slow_is_known_soon_and_again_when_it_is_quick(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab);
    notes(&lab, 20 * BECALM_MS, 1000);
    check_eq_u64(due_time(&lab), LEAST);
    becalm_ns began_at = lab.now;
    while (due_time(&lab) < 8 * BECALM_S) {
        notes(&lab, 8 * BECALM_S, 1);
        assert_true(lab.now < began_at + 15 * BECALM_S);
    }
    notes(&lab, 8 * BECALM_S, 2000);
    check_between_u64(due_time(&lab), 16 * BECALM_S, 32 * BECALM_S);
    notes(&lab, 20 * BECALM_MS, 600);
    check_eq_u64(due_time(&lab), LEAST);
}

/* The longest that it is in 500 s, of which every n-th answer takes `slow` and the others 20 ms. */
static becalm_ns longest_with(becalm_ns slow, int n)
{
    struct lab lab;
    becalm_ns longest = 0;
    lab_open(&lab);
    notes(&lab, 20 * BECALM_MS, 1000);
    for (int i = 1; i <= 10000; i++) {
        notes(&lab, i % n == 0 ? slow : 20 * BECALM_MS, 1);
        longest = becalm_ns_max(longest, due_time(&lab));
    }
    return longest;
}

static void test_due__a_few_long_answers_do_not_move_it_and_many_do(void **state)
{
    (void)state;
    check_eq_u64(longest_with(7 * BECALM_S, 100), LEAST);
    check_eq_u64(longest_with(20 * BECALM_S, 100), LEAST);
    check_between_u64(longest_with(20 * BECALM_S, 20), LEAST, 2 * LEAST);
    check_between_u64(longest_with(7 * BECALM_S, 4), 14 * BECALM_S, 28 * BECALM_S);
}

static void test_due__an_answer_of_a_day_does_not_run_over(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab);
    for (int i = 0; i < 3000; i++) {
        lab.now += 600 * BECALM_S;
        note(&lab, 24 * 3600 * BECALM_S);
    }
    check_between_u64(due_time(&lab), 3600 * BECALM_S, 48 * 3600 * BECALM_S);
}

static void test_due__overdue_answers_are_rare_where_eight_good_ones_come_for_each(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab);
    assert_false(becalm_due_is_rare(&lab.due)); /* nothing was answered yet */
    notes(&lab, 8 * BECALM_S, 7);
    assert_false(becalm_due_is_rare(&lab.due));
    notes(&lab, 8 * BECALM_S, 7); /* that one has used the whole allowance */
    assert_false(becalm_due_is_rare(&lab.due));
    notes(&lab, 8 * BECALM_S, 8);
    assert_true(becalm_due_is_rare(&lab.due));
    assert_false(becalm_due_is_rare(&lab.due));
}

/* The number of overdue answers that count as rare, of `count` at once, when as many were overdue some good answers
 * before. */
static int rare_at_once(becalm_ns took, int count)
{
    struct lab lab;
    int rare = 0;
    lab_open(&lab);
    notes(&lab, took, 5000);
    for (int i = 0; i < count; i++) {
        (void)becalm_due_is_rare(&lab.due);
    }
    notes(&lab, took, 300);
    for (int i = 0; i < count; i++) {
        rare += becalm_due_is_rare(&lab.due);
    }
    return rare;
}

static void test_due__of_many_overdue_answers_at_once_eight_are_rare(void **state)
{
    (void)state;
    assert_int_equal(rare_at_once(20 * BECALM_MS, 5), 5);
    assert_int_equal(rare_at_once(20 * BECALM_MS, 100), 8); /* where one answer is noted for 16 */
    assert_int_equal(rare_at_once(8 * BECALM_S, 100), 8);   /* and where each is */
}

static void test_due__a_reload_keeps_what_is_known(void **state)
{
    (void)state;
    struct lab before, after;
    lab_open(&before);
    lab_open(&after);
    notes(&before, 20 * BECALM_MS, 1000);
    becalm_due_carry(&after.due, &before.due);
    check_eq_u64(due_time(&after), LEAST);
    assert_true(becalm_due_is_rare(&after.due));
}

BECALM_TESTS(cmocka_unit_test(test_due__nothing_is_known_at_the_beginning),
             cmocka_unit_test(test_due__quick_answers_bring_it_to_the_least_within_seconds),
             cmocka_unit_test(test_due__the_first_answers_of_a_slow_service_do_not_mislead_it),
             cmocka_unit_test(test_due__a_quick_service_that_becomes_slow_is_known_soon_and_again_when_it_is_quick),
             cmocka_unit_test(test_due__a_few_long_answers_do_not_move_it_and_many_do),
             cmocka_unit_test(test_due__an_answer_of_a_day_does_not_run_over),
             cmocka_unit_test(test_due__overdue_answers_are_rare_where_eight_good_ones_come_for_each),
             cmocka_unit_test(test_due__of_many_overdue_answers_at_once_eight_are_rare),
             cmocka_unit_test(test_due__a_reload_keeps_what_is_known))
