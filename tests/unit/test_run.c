/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include <becalm/run.h>

#include <pthread.h>

#include "check.h"
#include "run/cell.h"

/* Fails the first `failures` attempts. */
struct flaky {
    uint32_t failures;
    enum becalm_outcome_kind kind;
    uint32_t attempts;
    uint32_t attempt; /* the number that the last one was told */
    becalm_ns timeout;
};

static void flaky_try(const struct becalm_try *now, struct becalm_outcome *outcome, void *data)
{
    struct flaky *flaky = data;
    flaky->attempt = now->attempt;
    flaky->timeout = now->timeout;
    if (flaky->attempts++ < flaky->failures) {
        outcome->kind = flaky->kind;
    }
}

/* The arguments of the callbacks. */
struct heard {
    uint32_t retries;
    struct becalm_retry last;
    uint32_t changes;
    enum becalm_breaker_state to;
};

static void hear_retry(const struct becalm_retry *retry, void *data)
{
    struct heard *heard = data;
    heard->retries++;
    heard->last = *retry;
}

static void hear_breaker(enum becalm_breaker_state from, enum becalm_breaker_state to, void *data)
{
    struct heard *heard = data;
    (void)from;
    heard->changes++;
    heard->to = to;
}

static struct becalm_guard *guard_quick(struct heard *heard, struct becalm_policy *policy)
{
    policy->backoff.base = BECALM_MS;
    policy->backoff.cap = BECALM_MS;
    struct becalm_guard_options options = {
        .policy = policy, .on_retry = hear_retry, .on_breaker = hear_breaker, .data = heard};
    struct becalm_guard *guard = becalm_guard_new(&options, NULL);
    check_true(guard != NULL);
    return guard;
}

static void test_run__a_function_that_succeeds_runs_once(void **state)
{
    (void)state;
    struct flaky flaky = {0};
    struct becalm_guard *guard = becalm_guard_new(NULL, NULL);
    check_eq_u64(becalm_run(guard, flaky_try, &flaky), BECALM_WHY_OK);
    check_eq_u64(flaky.attempts, 1);
    check_between_u64(flaky.timeout, 4 * BECALM_S, 5 * BECALM_S);
    becalm_guard_free(guard);
    becalm_guard_free(NULL);
}

static void test_run__a_function_that_fails_once_runs_twice_and_the_callback_hears_of_it(void **state)
{
    (void)state;
    struct heard heard = {0};
    struct becalm_policy policy;
    becalm_policy_defaults(&policy);
    struct becalm_guard *guard = guard_quick(&heard, &policy);
    struct flaky flaky = {.failures = 1, .kind = BECALM_OUTCOME_BROKEN};
    struct becalm_record record;
    struct becalm_run_options options = {.request = {.idempotent = true}, .record = &record};
    check_eq_u64(becalm_run_with(guard, &options, flaky_try, &flaky), BECALM_WHY_OK);
    check_eq_u64(flaky.attempts, 2);
    check_eq_u64(flaky.attempt, 1);
    check_eq_u64(heard.retries, 1);
    check_eq_u64(heard.last.retry, 1);
    check_eq_u64(heard.last.of, 2);
    check_eq_u64(heard.last.outcome.kind, BECALM_OUTCOME_BROKEN);
    check_eq_u64(heard.last.wait.delay, BECALM_MS);
    check_eq_u64(record.attempts, 2);
    check_eq_u64(record.attempt[0].outcome, BECALM_OUTCOME_BROKEN);
    check_eq_u64(record.attempt[1].outcome, BECALM_OUTCOME_OK);
    becalm_guard_free(guard);
}

static void test_run__errors_that_stay_are_not_tried_again(void **state)
{
    (void)state;
    struct becalm_guard *guard = becalm_guard_new(NULL, NULL);
    struct flaky flaky = {.failures = 9, .kind = BECALM_OUTCOME_PERMANENT};
    check_eq_u64(becalm_run(guard, flaky_try, &flaky), BECALM_WHY_PERMANENT);
    check_eq_u64(flaky.attempts, 1);
    becalm_guard_free(guard);
}

static void test_run__what_must_not_be_repeated_is_not(void **state)
{
    (void)state;
    struct becalm_guard *guard = becalm_guard_new(NULL, NULL);
    struct flaky flaky = {.failures = 9, .kind = BECALM_OUTCOME_BROKEN};
    struct becalm_run_options options = {.cancel = NULL};
    check_eq_u64(becalm_run_with(guard, &options, flaky_try, &flaky), BECALM_WHY_NOT_IDEMPOTENT);
    check_eq_u64(flaky.attempts, 1);
    becalm_guard_free(guard);
}

static void test_run__the_breaker_opens_and_then_the_function_is_not_called(void **state)
{
    (void)state;
    struct heard heard = {0};
    struct becalm_policy policy;
    becalm_policy_defaults(&policy);
    policy.max_retries = 0;
    struct becalm_guard *guard = guard_quick(&heard, &policy);
    struct flaky flaky = {.failures = 100, .kind = BECALM_OUTCOME_REFUSED};
    for (int i = 0; i < 25; i++) {
        (void)becalm_run(guard, flaky_try, &flaky);
    }
    check_eq_u64(flaky.attempts, 20);
    check_eq_u64(heard.changes, 1);
    check_eq_u64(heard.to, BECALM_BREAKER_OPEN);
    check_eq_u64(becalm_run(guard, flaky_try, &flaky), BECALM_WHY_BREAKER_OPEN);
    check_eq_u64(becalm_breaker_state(becalm_guard_target(guard)->breaker), BECALM_BREAKER_OPEN);
    becalm_guard_free(guard);
}

static void *cancel_soon(void *data)
{
    becalm_cancel(data);
    return NULL;
}

static void test_run__another_thread_can_end_the_wait(void **state)
{
    (void)state;
    struct becalm_policy policy;
    becalm_policy_defaults(&policy);
    policy.deadline = BECALM_NEVER;
    policy.backoff.base = policy.backoff.cap =
        3600 * BECALM_S; /* an hour, so only the cancellation can end this test */
    policy.backoff.jitter = BECALM_JITTER_NONE;
    struct becalm_guard_options guard_options = {.policy = &policy};
    struct becalm_guard *guard = becalm_guard_new(&guard_options, NULL);
    struct becalm_cancel *cancel = becalm_cancel_new();
    struct flaky flaky = {.failures = 9, .kind = BECALM_OUTCOME_BROKEN};
    struct becalm_run_options options = {.request = {.idempotent = true}, .cancel = cancel};
    pthread_t thread;
    check_eq_u64((uint64_t)pthread_create(&thread, NULL, cancel_soon, cancel), 0);
    check_eq_u64(becalm_run_with(guard, &options, flaky_try, &flaky), BECALM_WHY_CANCELLED);
    check_eq_u64((uint64_t)pthread_join(thread, NULL), 0);
    /* Once cancelled, always cancelled: nothing is sent any more. */
    flaky.attempts = 0;
    check_eq_u64(becalm_run_with(guard, &options, flaky_try, &flaky), BECALM_WHY_CANCELLED);
    check_eq_u64(flaky.attempts, 0);
    becalm_cancel_free(cancel);
    becalm_cancel_free(NULL);
    becalm_guard_free(guard);
}

static void test_run__a_bad_policy_is_refused_with_a_sentence(void **state)
{
    (void)state;
    struct becalm_complaint wrong;
    struct becalm_policy policy;
    becalm_policy_defaults(&policy);
    struct becalm_guard_options options = {.policy = &policy};
    policy.backoff.cap = 0;
    check_true(becalm_guard_new(&options, &wrong) == NULL);
    check_eq_str(wrong.part, "backoff");
    check_eq_str(wrong.sentence, "cap must be at least base");
    becalm_policy_defaults(&policy);
    policy.hedge.enabled = true;
    check_true(becalm_guard_new(&options, &wrong) == NULL);
    check_eq_str(wrong.part, "hedge");
    policy.hedge.enabled = false;
    policy.lease.enabled = true;
    check_true(becalm_guard_new(&options, &wrong) == NULL);
    check_eq_str(wrong.part, "lease");
    becalm_policy_defaults(&policy);
    options.hosts = BECALM_HOSTS_MAX + 1;
    check_true(becalm_guard_new(&options, &wrong) == NULL);
    check_true(strstr(wrong.sentence, "hosts") == wrong.sentence);
}

static void *run_many(void *data)
{
    for (int i = 0; i < 2000; i++) {
        struct flaky flaky = {.failures = i % 50 == 0, .kind = BECALM_OUTCOME_REFUSED};
        (void)becalm_run(data, flaky_try, &flaky);
    }
    return NULL;
}

static void test_run__one_guard_serves_many_threads(void **state)
{
    (void)state;
    struct becalm_policy policy;
    becalm_policy_defaults(&policy);
    policy.backoff.base = 0;
    struct becalm_guard_options options = {.policy = &policy};
    struct becalm_guard *guard = becalm_guard_new(&options, NULL);
    pthread_t thread[8];
    for (int i = 0; i < 8; i++) {
        check_eq_u64((uint64_t)pthread_create(&thread[i], NULL, run_many, guard), 0);
    }
    for (int i = 0; i < 8; i++) {
        check_eq_u64((uint64_t)pthread_join(thread[i], NULL), 0);
    }
    check_eq_u64(becalm_limit_in_flight(becalm_guard_target(guard)->limit), 0);
    becalm_guard_free(guard);
}

struct teller {
    pthread_barrier_t *all;
    uint32_t cell;
};

static void *cell_tell(void *data)
{
    struct teller *teller = data;
    teller->cell = cell_here();
    (void)pthread_barrier_wait(teller->all); /* the next thread gets the stack of an ended one */
    return NULL;
}

static void test_run__threads_count_in_different_cells(void **state)
{
    (void)state;
    pthread_barrier_t all;
    pthread_t thread[16];
    struct teller teller[16];
    uint32_t seen = 0;
    uint32_t different = 0;
    check_eq_u64((uint64_t)pthread_barrier_init(&all, NULL, 16), 0);
    for (int i = 0; i < 16; i++) {
        teller[i] = (struct teller){.all = &all};
        check_eq_u64((uint64_t)pthread_create(&thread[i], NULL, cell_tell, &teller[i]), 0);
    }
    for (int i = 0; i < 16; i++) {
        check_eq_u64((uint64_t)pthread_join(thread[i], NULL), 0);
        check_true(teller[i].cell < CELL_COUNT);
        different += (seen >> teller[i].cell & 1) == 0;
        seen |= 1u << teller[i].cell;
    }
    check_true(different >= 3);
    (void)pthread_barrier_destroy(&all);
}

BECALM_TESTS(cmocka_unit_test(test_run__threads_count_in_different_cells),
             cmocka_unit_test(test_run__a_function_that_succeeds_runs_once),
             cmocka_unit_test(test_run__a_function_that_fails_once_runs_twice_and_the_callback_hears_of_it),
             cmocka_unit_test(test_run__errors_that_stay_are_not_tried_again),
             cmocka_unit_test(test_run__what_must_not_be_repeated_is_not),
             cmocka_unit_test(test_run__the_breaker_opens_and_then_the_function_is_not_called),
             cmocka_unit_test(test_run__another_thread_can_end_the_wait),
             cmocka_unit_test(test_run__a_bad_policy_is_refused_with_a_sentence),
             cmocka_unit_test(test_run__one_guard_serves_many_threads))
