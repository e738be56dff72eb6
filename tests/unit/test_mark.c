/* SPDX-License-Identifier: MIT */
#include <becalm/mark.h>
#include <becalm/rand.h>

#include <pthread.h>

#include "lib/check.h"

#define THREADS 8

static void note(struct becalm_mark *mark, enum becalm_outcome_kind kind)
{
    struct becalm_outcome outcome = {.kind = kind};
    becalm_mark_note(mark, &outcome);
}

static void note_times(struct becalm_mark *mark, enum becalm_outcome_kind kind, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        note(mark, kind);
    }
}

static uint64_t failing_ppm(const struct becalm_mark *mark)
{
    return atomic_load_explicit(&mark->failing, memory_order_relaxed);
}

static void test_mark__a_new_callee_is_not_failing(void **state)
{
    (void)state;
    struct becalm_mark mark;
    becalm_mark_init(&mark);
    check_true(!becalm_mark_failing(&mark));
    struct becalm_mark zeroed = {0};
    check_eq_u64(failing_ppm(&mark), failing_ppm(&zeroed));
}

/* 1 - 0.9^n first exceeds one half at n = 7. */
static void test_mark__a_healthy_callee_is_failing_after_seven_failures_in_a_row(void **state)
{
    (void)state;
    static const uint64_t ppm[] = {100000, 190000, 271000, 343900, 409510, 468559, 521704};
    struct becalm_mark mark;
    becalm_mark_init(&mark);
    for (size_t i = 0; i < 7; i++) {
        note(&mark, BECALM_OUTCOME_TIMED_OUT);
        check_eq_u64(failing_ppm(&mark), ppm[i]);
        check_true(becalm_mark_failing(&mark) == (i == 6));
    }
}

static void test_mark__a_dead_callee_is_trusted_again_after_seven_successes(void **state)
{
    (void)state;
    struct becalm_mark mark;
    becalm_mark_init(&mark);
    note_times(&mark, BECALM_OUTCOME_BROKEN, 1000);
    check_eq_u64(failing_ppm(&mark), 1000000); /* it reaches the end */
    note_times(&mark, BECALM_OUTCOME_OK, 6);
    check_true(becalm_mark_failing(&mark));
    note(&mark, BECALM_OUTCOME_OK);
    check_true(!becalm_mark_failing(&mark));
}

static void test_mark__decays_to_exactly_zero(void **state)
{
    (void)state;
    struct becalm_mark mark;
    becalm_mark_init(&mark);
    note_times(&mark, BECALM_OUTCOME_BROKEN, 1000);
    note_times(&mark, BECALM_OUTCOME_OK, 131);
    check_eq_u64(failing_ppm(&mark), 0);
    note(&mark, BECALM_OUTCOME_OK);
    check_eq_u64(failing_ppm(&mark), 0);
}

/* The objects are constants, so a write to them would be a fault. */
static void test_mark__a_healthy_or_dead_callee_is_not_written(void **state)
{
    (void)state;
    static const struct becalm_mark healthy = {.failing = 0};
    static const struct becalm_mark dead = {.failing = 1000000};
    note_times((struct becalm_mark *)&healthy, BECALM_OUTCOME_OK, 3);
    note_times((struct becalm_mark *)&healthy, BECALM_OUTCOME_CANCELLED, 3);
    note_times((struct becalm_mark *)&dead, BECALM_OUTCOME_TIMED_OUT, 3);
}

/* +1: a failure, -1: a success, 0: says nothing. */
static void test_mark__every_outcome_counts_as_in_the_table(void **state)
{
    (void)state;
    static const int expected[BECALM_OUTCOME_COUNT] = {
        [BECALM_OUTCOME_OK] = -1,      [BECALM_OUTCOME_PERMANENT] = -1,   [BECALM_OUTCOME_FAILED] = 1,
        [BECALM_OUTCOME_BROKEN] = 1,   [BECALM_OUTCOME_LATE] = 1,         [BECALM_OUTCOME_REJECTED] = 1,
        [BECALM_OUTCOME_REFUSED] = 1,  [BECALM_OUTCOME_TLS] = 1,          [BECALM_OUTCOME_TIMED_OUT] = 1,
        [BECALM_OUTCOME_CONFLICT] = 0, [BECALM_OUTCOME_RATE_LIMITED] = 0, [BECALM_OUTCOME_CANCELLED] = 0,
    };
    for (unsigned kind = 0; kind < BECALM_OUTCOME_COUNT; kind++) {
        struct becalm_mark mark = {.failing = 400000};
        note(&mark, (enum becalm_outcome_kind)kind);
        check_eq_u64(failing_ppm(&mark), expected[kind] > 0 ? 460000 : expected[kind] < 0 ? 360000 : 400000);
    }
}

/* One bad host of ten, or a tenth of the calls cut off, must not silence retries that work. */
static void test_mark__a_callee_that_fails_one_call_in_ten_is_not_failing(void **state)
{
    (void)state;
    struct becalm_mark mark;
    becalm_mark_init(&mark);
    uint64_t seed = 7;
    for (unsigned i = 0; i < 10000; i++) {
        note(&mark, becalm_rand_below(becalm_rand_next(&seed), 10) == 0 ? BECALM_OUTCOME_BROKEN : BECALM_OUTCOME_OK);
        if (becalm_mark_failing(&mark)) {
            print_error("seed 7, round %u: %" PRIu64 " ppm\n", i, failing_ppm(&mark));
            fail();
        }
    }
}

static void test_mark__overloaded_is_always_honoured_and_spent_only_while_failing(void **state)
{
    (void)state;
    struct becalm_mark mark;
    becalm_mark_init(&mark);
    for (int failing = 0; failing <= 1; failing++) {
        check_true(becalm_mark_failing(&mark) == (failing == 1));
        check_true(!becalm_mark_honour(&mark, BECALM_MARK_NONE));
        check_true(!becalm_mark_honour(&mark, BECALM_MARK_OVERLOADED_HOST));
        check_true(becalm_mark_honour(&mark, BECALM_MARK_OVERLOADED));
        check_true(becalm_mark_honour(&mark, BECALM_MARK_SPENT) == (failing == 1));
        check_true(becalm_mark_honour(&mark, BECALM_MARK_UNASKED) == (failing == 1));
        note_times(&mark, BECALM_OUTCOME_BROKEN, 7);
    }
}

/* Exactly one half is not below one half. */
static void test_mark__at_exactly_one_half_spent_is_not_honoured(void **state)
{
    (void)state;
    struct becalm_mark half = {.failing = 500000};
    struct becalm_mark more = {.failing = 500001};
    check_true(!becalm_mark_honour(&half, BECALM_MARK_SPENT));
    check_true(becalm_mark_honour(&more, BECALM_MARK_SPENT));
}

/* The mark of the gateway's own answer, by the reason of the call's end: with a quiet gate, and with a shedding one. */
static void test_mark__every_reason_sets_the_mark_of_the_table(void **state)
{
    (void)state;
    static const struct {
        enum becalm_mark_kind quiet, shedding;
    } expected[BECALM_REASON_COUNT] = {
#define SPENT {BECALM_MARK_SPENT, BECALM_MARK_OVERLOADED}
        [BECALM_WHY_ATTEMPTS_SPENT] = SPENT,
        [BECALM_WHY_BUDGET_EMPTY] = SPENT,
        [BECALM_WHY_BREAKER_OPEN] = SPENT,
        [BECALM_WHY_PROBE_FAILED] = SPENT,
        [BECALM_WHY_DEADLINE] = SPENT,
        [BECALM_WHY_THROTTLED] = SPENT,
        [BECALM_WHY_RATE] = SPENT,
        [BECALM_WHY_LIMIT] = SPENT,
        [BECALM_WHY_ANSWERS] = SPENT,
        [BECALM_WHY_STOPPED] = SPENT,
        [BECALM_WHY_NO_HOST] = SPENT,
        [BECALM_WHY_NO_CONNECTION] = SPENT,
#undef SPENT
        [BECALM_WHY_SHED] = {BECALM_MARK_NONE, BECALM_MARK_OVERLOADED},
        [BECALM_WHY_RETRIES_OFF] = {BECALM_MARK_NONE, BECALM_MARK_OVERLOADED},
        /* all others: never */
    };
    struct becalm_gate quiet;
    struct becalm_gate shedding;
    becalm_gate_init(&quiet);
    becalm_gate_init(&shedding);
    for (unsigned i = 0; i < 100; i++) {
        becalm_gate_note(&quiet, false);
        becalm_gate_note(&shedding, true);
    }
    for (unsigned i = 0; i < BECALM_REASON_COUNT; i++) {
        enum becalm_reason reason = (enum becalm_reason)i;
        check_eq_u64(becalm_mark_for(reason, NULL), expected[i].quiet);
        check_eq_u64(becalm_mark_for(reason, &quiet), expected[i].quiet);
        check_eq_u64(becalm_mark_for(reason, &shedding), expected[i].shedding);
    }
}

static void test_mark__a_reload_carries_what_was_learned(void **state)
{
    (void)state;
    struct becalm_mark from;
    struct becalm_mark to;
    becalm_mark_init(&from);
    becalm_mark_init(&to);
    note_times(&from, BECALM_OUTCOME_BROKEN, 8);
    becalm_mark_carry(&to, &from);
    check_true(becalm_mark_failing(&to));
    check_eq_u64(failing_ppm(&to), failing_ppm(&from));
}

struct worker {
    struct becalm_mark *mark;
    enum becalm_outcome_kind kind;
};

static void *worker_run(void *argument)
{
    const struct worker *worker = argument;
    note_times(worker->mark, worker->kind, 20000);
    return NULL;
}

static void run(struct becalm_mark *mark, enum becalm_outcome_kind even, enum becalm_outcome_kind odd)
{
    pthread_t thread[THREADS];
    struct worker worker[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        worker[i] = (struct worker){mark, i % 2 == 0 ? even : odd};
        assert_int_equal(pthread_create(&thread[i], NULL, worker_run, &worker[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
}

static void test_mark__eight_threads_keep_it_between_its_ends(void **state)
{
    (void)state;
    struct becalm_mark mark;
    becalm_mark_init(&mark);
    run(&mark, BECALM_OUTCOME_OK, BECALM_OUTCOME_BROKEN);
    check_between_u64(failing_ppm(&mark), 0, 1000000);
    run(&mark, BECALM_OUTCOME_BROKEN, BECALM_OUTCOME_BROKEN);
    check_eq_u64(failing_ppm(&mark), 1000000);
    run(&mark, BECALM_OUTCOME_OK, BECALM_OUTCOME_PERMANENT);
    check_eq_u64(failing_ppm(&mark), 0);
}

BECALM_TESTS(cmocka_unit_test(test_mark__a_new_callee_is_not_failing),
             cmocka_unit_test(test_mark__a_healthy_callee_is_failing_after_seven_failures_in_a_row),
             cmocka_unit_test(test_mark__a_dead_callee_is_trusted_again_after_seven_successes),
             cmocka_unit_test(test_mark__decays_to_exactly_zero),
             cmocka_unit_test(test_mark__a_healthy_or_dead_callee_is_not_written),
             cmocka_unit_test(test_mark__every_outcome_counts_as_in_the_table),
             cmocka_unit_test(test_mark__a_callee_that_fails_one_call_in_ten_is_not_failing),
             cmocka_unit_test(test_mark__overloaded_is_always_honoured_and_spent_only_while_failing),
             cmocka_unit_test(test_mark__at_exactly_one_half_spent_is_not_honoured),
             cmocka_unit_test(test_mark__every_reason_sets_the_mark_of_the_table),
             cmocka_unit_test(test_mark__a_reload_carries_what_was_learned),
             cmocka_unit_test(test_mark__eight_threads_keep_it_between_its_ends))
