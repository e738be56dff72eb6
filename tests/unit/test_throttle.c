/* SPDX-License-Identifier: MIT */
#include <becalm/throttle.h>

#include <pthread.h>

#include "lib/check.h"

#define START   (1000 * BECALM_S) /* any instant will do */
#define THREADS 8

static struct becalm_throttle_policy policy_of(void)
{
    struct becalm_throttle_policy policy;
    becalm_throttle_defaults(&policy);
    policy.enabled = true;
    return policy;
}

/* Freed by throttle_free(). */
static struct becalm_throttle *throttle_new(const struct becalm_throttle_policy *policy, uint32_t cells)
{
    void *memory = aligned_alloc(64, becalm_throttle_bytes(policy, cells));
    assert_non_null(memory);
    return becalm_throttle_init(memory, policy, cells);
}

static void throttle_free(struct becalm_throttle *throttle)
{
    free(throttle);
}

/* For tests that do not look at the draw. */
static struct becalm_moment moment_at(becalm_ns now)
{
    return (struct becalm_moment){.now = now, .random = 0, .cell = 0};
}

static void note_kind(struct becalm_throttle *throttle, becalm_ns now, enum becalm_outcome_kind kind)
{
    struct becalm_moment at = moment_at(now);
    struct becalm_outcome outcome = {.kind = kind};
    becalm_throttle_note(throttle, &at, &outcome);
}

/* `requests` requests, sent or not, of which `accepts` were accepted. */
static void feed(struct becalm_throttle *throttle, const struct becalm_throttle_policy *policy, becalm_ns now,
                 unsigned requests, unsigned accepts)
{
    for (unsigned i = 0; i < requests; i++) {
        struct becalm_moment at = moment_at(now);
        becalm_throttle_admit(throttle, policy, &at);
    }
    for (unsigned i = 0; i < accepts; i++) {
        note_kind(throttle, now, BECALM_OUTCOME_OK);
    }
}

static void test_throttle__an_empty_window_rejects_nothing(void **state)
{
    (void)state;
    struct becalm_throttle_policy policy = policy_of();
    struct becalm_throttle *throttle = throttle_new(&policy, 1);
    check_eq_u64(becalm_throttle_chance(throttle, &policy, START), 0);
    check_eq_u64(becalm_throttle_chance(throttle, &policy, 0), 0);
    throttle_free(throttle);
}

static void test_throttle__the_defaults_are_k_two_over_two_minutes_and_off(void **state)
{
    (void)state;
    struct becalm_throttle_policy policy;
    becalm_throttle_defaults(&policy);
    check_true(!policy.enabled);
    check_eq_u64(policy.k_milli, 2000);
    check_eq_u64(policy.window, 120 * BECALM_S);
    assert_int_equal(becalm_throttle_check(&policy, NULL), 0);
}

/* A quiet caller must not be harmed by its own call. */
static void test_throttle__a_call_that_comes_alone_is_never_rejected(void **state)
{
    (void)state;
    struct becalm_throttle_policy policy = policy_of();
    uint64_t seed = 1;
    for (unsigned i = 0; i < 1000; i++) {
        struct becalm_throttle *throttle = throttle_new(&policy, 1);
        struct becalm_moment at = {.now = START, .random = becalm_rand_next(&seed)};
        check_true(becalm_throttle_admit(throttle, &policy, &at));
        throttle_free(throttle);
    }
}

/* max(0, (requests - K * accepts) / (requests + 1)), by hand. */
static void test_throttle__the_probability_is_the_books(void **state)
{
    (void)state;
    static const struct {
        unsigned requests, accepts, k_milli, ppm;
    } rows[] = {
        {0, 0, 2000, 0},           {1, 0, 2000, 500000},   {1, 1, 2000, 0},
        {100, 100, 2000, 0},       {100, 50, 2000, 0},     {100, 49, 2000, 19801}, /* 2 / 101 */
        {100, 25, 2000, 495049},                                                   /* 50 / 101 */
        {100, 0, 2000, 990099},                                                    /* 100 / 101 */
        {1000, 250, 2000, 499500},                                                 /* 500 / 1001 */
        {100, 100, 1000, 0},       {100, 90, 1000, 99009},                         /* 10 / 101 */
        {100, 90, 1100, 9900},                                                     /* 1 / 101 */
        {100, 91, 1100, 0},                                                        /* -0.1 / 101 */
        {100, 1, 100000, 0},       {101, 1, 100000, 9803},                         /* 1 / 102 */
        {1, 3, 1000, 0},                                                           /* more accepts than requests */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct becalm_throttle_policy policy = policy_of();
        policy.k_milli = rows[i].k_milli;
        struct becalm_throttle *throttle = throttle_new(&policy, 1);
        feed(throttle, &policy, START, rows[i].requests, rows[i].accepts);
        check_eq_u64(becalm_throttle_chance(throttle, &policy, START), rows[i].ppm);
        throttle_free(throttle);
    }
}

static void test_throttle__the_probability_stays_below_one_whatever_happens(void **state)
{
    (void)state;
    struct becalm_throttle_policy policy = policy_of();
    struct becalm_throttle *throttle = throttle_new(&policy, 1);
    struct becalm_moment at = moment_at(START);
    for (unsigned i = 0; i < 2000000; i++) { /* written directly into the window, which saves a call for each */
        becalm_window_note(throttle->window, &at, 1);
    }
    check_eq_u64(becalm_throttle_chance(throttle, &policy, START), 999999);
    throttle_free(throttle);
}

static void test_throttle__draws_with_its_own_lane_and_the_probability_before_the_call(void **state)
{
    (void)state;
    struct becalm_throttle_policy policy = policy_of();
    struct becalm_throttle *throttle = throttle_new(&policy, 1);
    feed(throttle, &policy, START, 100, 25);
    uint64_t seed = 2;
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t drawn_from = seed;
        struct becalm_moment at = {.now = START, .random = becalm_rand_next(&seed)};
        uint32_t chance = becalm_throttle_chance(throttle, &policy, START);
        bool rejected = becalm_rand_chance(becalm_rand_lane(at.random, BECALM_LANE_THROTTLE), chance);
        if (becalm_throttle_admit(throttle, &policy, &at) == rejected) {
            print_error("seed %" PRIu64 ", round %u\n", drawn_from, i);
            fail();
        }
    }
    throttle_free(throttle);
}

static void test_throttle__who_still_waits_is_no_evidence(void **state)
{
    (void)state;
    struct becalm_throttle_policy policy = policy_of();
    struct becalm_throttle *throttle = throttle_new(&policy, 1);
    struct becalm_moment at = moment_at(BECALM_S);
    for (unsigned i = 0; i < 64; i++) { /* a burst to a callee that takes its time */
        assert_true(becalm_throttle_admit(throttle, &policy, &at));
        becalm_throttle_wait(throttle);
        check_eq_u64(becalm_throttle_chance(throttle, &policy, at.now), 0);
    }
    for (unsigned i = 0; i < 64; i++) { /* and turns all of them away in the end */
        becalm_throttle_decided(throttle);
    }
    check_eq_u64(becalm_throttle_chance(throttle, &policy, at.now), 64 * 1000000 / 65);
    throttle_free(throttle);
}

/* The short cut for healthy callees must not let one more call pass than the sum would. */
static void test_throttle__many_calls_at_once_are_judged_as_one_by_one(void **state)
{
    (void)state;
    struct becalm_throttle_policy policy = policy_of();
    struct becalm_throttle *throttle = throttle_new(&policy, 1);
    struct becalm_moment at = moment_at(BECALM_S);
    uint64_t requests = 0;
    uint64_t accepts = 0;
    uint64_t seed = 3;
    for (unsigned i = 0; i < 20000; i++) {
        at.now += i % 100 == 0 ? 100 * BECALM_MS : 0; /* less than the window in all */
        at.random = becalm_rand_next(&seed);
        uint64_t chance = accepts * 2 >= requests ? 0 : (requests - 2 * accepts) * 1000000 / (requests + 1);
        bool passes = !becalm_rand_chance(becalm_rand_lane(at.random, BECALM_LANE_THROTTLE), (uint32_t)chance);
        assert_int_equal(becalm_throttle_admit(throttle, &policy, &at), passes);
        requests++;
        if (passes && i / 2000 % 2 == 0 && becalm_rand_chance(becalm_rand_next(&seed), 700000)) {
            note_kind(throttle, at.now, BECALM_OUTCOME_OK);
            accepts++;
        }
    }
    throttle_free(throttle);
}

static void test_throttle__rejected_calls_count_as_requests(void **state)
{
    (void)state;
    struct becalm_throttle_policy policy = policy_of();
    struct becalm_throttle *throttle = throttle_new(&policy, 1);
    uint64_t seed = 3;
    unsigned rejected = 0;
    for (unsigned i = 0; i < 100; i++) {
        struct becalm_moment at = {.now = START, .random = becalm_rand_next(&seed)};
        rejected += !becalm_throttle_admit(throttle, &policy, &at);
    }
    check_true(rejected > 80);
    check_eq_u64(becalm_throttle_chance(throttle, &policy, START), 990099); /* all 100 of them */
    throttle_free(throttle);
}

/* The column "throttle" of the table of outcomes: the outcomes that count as accepted. */
static void test_throttle__answers_of_the_application_are_accepts_and_refusals_are_not(void **state)
{
    (void)state;
    static const bool accepts[BECALM_OUTCOME_COUNT] = {
        [BECALM_OUTCOME_OK] = true,
        [BECALM_OUTCOME_PERMANENT] = true,
        [BECALM_OUTCOME_FAILED] = true,
        [BECALM_OUTCOME_CONFLICT] = true,
    };
    for (unsigned kind = 0; kind < BECALM_OUTCOME_COUNT; kind++) {
        struct becalm_throttle_policy policy = policy_of();
        struct becalm_throttle *throttle = throttle_new(&policy, 1);
        feed(throttle, &policy, START, 1, 0);
        note_kind(throttle, START, (enum becalm_outcome_kind)kind);
        check_eq_u64(becalm_throttle_chance(throttle, &policy, START), accepts[kind] ? 0 : 500000);
        throttle_free(throttle);
    }
}

static void test_throttle__forgets_what_is_older_than_the_window(void **state)
{
    (void)state;
    struct becalm_throttle_policy policy = policy_of();
    struct becalm_throttle *throttle = throttle_new(&policy, 1);
    feed(throttle, &policy, START, 100, 0);
    check_eq_u64(becalm_throttle_chance(throttle, &policy, START + 117 * BECALM_S), 990099);
    check_eq_u64(becalm_throttle_chance(throttle, &policy, START + 122 * BECALM_S), 0);
    throttle_free(throttle);
}

static void test_throttle__an_older_now_forgets_nothing(void **state)
{
    (void)state;
    struct becalm_throttle_policy policy = policy_of();
    struct becalm_throttle *throttle = throttle_new(&policy, 1);
    feed(throttle, &policy, START, 100, 25);
    feed(throttle, &policy, START - 3 * BECALM_MS, 0, 1);
    check_eq_u64(becalm_throttle_chance(throttle, &policy, START), 475247); /* 48 / 101 */
    throttle_free(throttle);
}

/* The purpose of K = 2: a callee that accepts 10 of 100 calls a second gets twice that, not ten times. */
static void test_throttle__an_overloaded_callee_is_sent_k_times_what_it_accepts(void **state)
{
    (void)state;
    struct becalm_throttle_policy policy = policy_of();
    struct becalm_throttle *throttle = throttle_new(&policy, 1);
    uint64_t seed = 4;
    unsigned sent = 0;
    unsigned accepted = 0;
    unsigned taken_this_second = 0;
    for (unsigned i = 0; i < 60000; i++) { /* ten minutes at 100 a second; the first five settle */
        becalm_ns now = START + i * 10 * BECALM_MS;
        struct becalm_moment at = {.now = now, .random = becalm_rand_next(&seed)};
        taken_this_second = i % 100 == 0 ? 0 : taken_this_second;
        if (!becalm_throttle_admit(throttle, &policy, &at)) {
            continue;
        }
        bool taken = taken_this_second < 10;
        taken_this_second += taken;
        note_kind(throttle, now, taken ? BECALM_OUTCOME_OK : BECALM_OUTCOME_REJECTED);
        sent += i >= 30000;
        accepted += i >= 30000 && taken;
    }
    if (sent * 10 < accepted * 19 || sent * 10 > accepted * 21) {
        print_error("seed 4: sent %u, accepted %u\n", sent, accepted);
        fail();
    }
    throttle_free(throttle);
}

static void test_throttle__returns_to_zero_when_the_callee_accepts_again(void **state)
{
    (void)state;
    struct becalm_throttle_policy policy = policy_of();
    struct becalm_throttle *throttle = throttle_new(&policy, 1);
    feed(throttle, &policy, START, 100, 0);
    feed(throttle, &policy, START + 200 * BECALM_S, 100, 100);
    check_eq_u64(becalm_throttle_chance(throttle, &policy, START + 200 * BECALM_S), 0);
    throttle_free(throttle);
}

static void expect_refused(const struct becalm_throttle_policy *policy, const char *sentence)
{
    const char *why = NULL;
    assert_int_equal(becalm_throttle_check(policy, &why), BECALM_EINVAL);
    check_eq_str(why, sentence);
    assert_int_equal(becalm_throttle_check(policy, NULL), BECALM_EINVAL);
}

static void test_throttle__bad_parameters_are_refused_by_name(void **state)
{
    (void)state;
    static const uint32_t bad_k[] = {0, 999, 100001, UINT32_MAX};
    static const becalm_ns bad_window[] = {0, BECALM_S - 1, 3600 * BECALM_S + 1, BECALM_NEVER};
    for (size_t i = 0; i < 4; i++) {
        struct becalm_throttle_policy policy = policy_of();
        policy.k_milli = bad_k[i];
        expect_refused(&policy, "k_milli must be from 1,000 (1) to 100,000 (100)");
        policy = policy_of();
        policy.window = bad_window[i];
        expect_refused(&policy, "window must be from 1 s to 1 h");
    }
}

static void test_throttle__the_ends_of_the_ranges_work(void **state)
{
    (void)state;
    static const becalm_ns windows[] = {BECALM_S, 3600 * BECALM_S};
    for (size_t i = 0; i < 2; i++) {
        struct becalm_throttle_policy policy = policy_of();
        policy.window = windows[i];
        policy.k_milli = i == 0 ? 1000 : 100000;
        const char *why = "untouched";
        assert_int_equal(becalm_throttle_check(&policy, &why), 0);
        struct becalm_throttle *throttle = throttle_new(&policy, BECALM_WINDOW_CELLS_MAX);
        feed(throttle, &policy, START, 10, 0);
        check_eq_u64(becalm_throttle_chance(throttle, &policy, START), 909090);
        check_eq_u64(becalm_throttle_chance(throttle, &policy, START + 2 * windows[i]), 0);
        throttle_free(throttle);
    }
}

static void test_throttle__no_cells_or_too_many_need_no_bytes(void **state)
{
    (void)state;
    struct becalm_throttle_policy policy = policy_of();
    check_eq_u64(becalm_throttle_bytes(&policy, 0), 0);
    check_eq_u64(becalm_throttle_bytes(&policy, BECALM_WINDOW_CELLS_MAX + 1), 0);
    check_eq_u64(becalm_throttle_bytes(&policy, 1) % 64, 0);
}

struct worker {
    struct becalm_throttle *throttle;
    const struct becalm_throttle_policy *policy;
    uint32_t number;
};

static void *worker_run(void *argument)
{
    const struct worker *worker = argument;
    uint64_t seed = worker->number;
    for (unsigned i = 0; i < 4000; i++) {
        /* Clocks that differ by a few milliseconds, all within one slice. */
        struct becalm_moment at = {.now = START + worker->number * BECALM_MS,
                                   .random = becalm_rand_next(&seed),
                                   .cell = worker->number / 2}; /* two threads per cell */
        becalm_throttle_admit(worker->throttle, worker->policy, &at);
        if (i % 4 == 0) {
            struct becalm_outcome ok = {.kind = BECALM_OUTCOME_OK};
            becalm_throttle_note(worker->throttle, &at, &ok);
        }
    }
    return NULL;
}

static void test_throttle__eight_threads_lose_no_note(void **state)
{
    (void)state;
    struct becalm_throttle_policy policy = policy_of();
    struct becalm_throttle *throttle = throttle_new(&policy, THREADS / 2);
    pthread_t thread[THREADS];
    struct worker worker[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        worker[i] = (struct worker){throttle, &policy, i};
        assert_int_equal(pthread_create(&thread[i], NULL, worker_run, &worker[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
    check_eq_u64(becalm_throttle_chance(throttle, &policy, START), 499984); /* (32000 - 2 * 8000) / 32001 */
    throttle_free(throttle);
}

BECALM_TESTS(cmocka_unit_test(test_throttle__an_empty_window_rejects_nothing),
             cmocka_unit_test(test_throttle__the_defaults_are_k_two_over_two_minutes_and_off),
             cmocka_unit_test(test_throttle__a_call_that_comes_alone_is_never_rejected),
             cmocka_unit_test(test_throttle__the_probability_is_the_books),
             cmocka_unit_test(test_throttle__the_probability_stays_below_one_whatever_happens),
             cmocka_unit_test(test_throttle__draws_with_its_own_lane_and_the_probability_before_the_call),
             cmocka_unit_test(test_throttle__who_still_waits_is_no_evidence),
             cmocka_unit_test(test_throttle__many_calls_at_once_are_judged_as_one_by_one),
             cmocka_unit_test(test_throttle__rejected_calls_count_as_requests),
             cmocka_unit_test(test_throttle__answers_of_the_application_are_accepts_and_refusals_are_not),
             cmocka_unit_test(test_throttle__forgets_what_is_older_than_the_window),
             cmocka_unit_test(test_throttle__an_older_now_forgets_nothing),
             cmocka_unit_test(test_throttle__an_overloaded_callee_is_sent_k_times_what_it_accepts),
             cmocka_unit_test(test_throttle__returns_to_zero_when_the_callee_accepts_again),
             cmocka_unit_test(test_throttle__bad_parameters_are_refused_by_name),
             cmocka_unit_test(test_throttle__the_ends_of_the_ranges_work),
             cmocka_unit_test(test_throttle__no_cells_or_too_many_need_no_bytes),
             cmocka_unit_test(test_throttle__eight_threads_lose_no_note))
