/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* barriers */

#include <becalm/budget.h>
#include <becalm/rand.h>

#include <pthread.h>
#include <sched.h>

#include "lib/check.h"

/* Eight threads on one budget: in every interleaving, no token is made or lost and no bound is broken. */

#define THREADS 8
#define START   (1000 * BECALM_S) /* any instant will do */

struct shared {
    struct becalm_budget_policy policy;
    struct becalm_budget *b;
    enum becalm_outcome_kind cause;
    unsigned rounds;
    uint64_t held_max; /* work_hold: as many may be held at once */
    becalm_ns skew;    /* each thread's clock is this much ahead of the one before */
    pthread_barrier_t start;
    _Atomic(uint64_t) held;   /* counted after the take and before the give: never more than there are */
    _Atomic(uint64_t) broken; /* times that a bound was seen broken */
};

struct worker {
    struct shared *shared;
    uint32_t number;
    uint64_t taken;
    pthread_t thread;
};

static void open_shared(struct shared *s, const struct becalm_budget_policy *policy)
{
    memset(s, 0, sizeof *s);
    s->policy = *policy;
    s->cause = BECALM_OUTCOME_FAILED;
    pthread_barrier_init(&s->start, NULL, THREADS);
    void *memory = aligned_alloc(64, becalm_budget_bytes(policy, THREADS));
    check_true(memory != NULL);
    s->b = becalm_budget_init(memory, policy, THREADS);
}

static void close_shared(struct shared *s)
{
    pthread_barrier_destroy(&s->start);
    free(s->b);
}

static struct becalm_budget_policy defaults(enum becalm_budget_kind kind)
{
    struct becalm_budget_policy policy;
    becalm_budget_defaults(&policy, kind);
    return policy;
}

static struct becalm_moment moment_of(const struct worker *w)
{
    return (struct becalm_moment){.now = START + w->number * w->shared->skew, .cell = w->number};
}

static void begin(struct shared *s, unsigned calls)
{
    struct becalm_moment at = {.now = START};
    for (unsigned i = 0; i < calls; i++) {
        becalm_budget_begin(s->b, &s->policy, &at);
    }
}

/* Runs the same work in all threads and returns how many retries they took in all. */
static uint64_t run(struct shared *s, void *(*work)(void *))
{
    struct worker workers[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.shared = s, .number = i};
        check_eq_u64((uint64_t)pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    uint64_t taken = 0;
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        taken += workers[i].taken;
    }
    return taken;
}

static void take_all(struct worker *w)
{
    struct shared *s = w->shared;
    struct becalm_moment at = moment_of(w);
    for (unsigned i = 0; i < s->rounds; i++) {
        struct becalm_spend spend = {0};
        w->taken += becalm_budget_take(s->b, &s->policy, &at, s->cause, &spend);
    }
}

/* Takes and never gives back. */
static void *work_take(void *data)
{
    struct worker *w = data;
    pthread_barrier_wait(&w->shared->start); /* so that they really meet */
    take_all(w);
    return NULL;
}

/* One call with one retry, which is given back unused. */
static void call_hold(struct shared *s, struct worker *w, const struct becalm_moment *at, bool yield)
{
    struct becalm_spend spend = {0};
    if (!becalm_budget_take(s->b, &s->policy, at, s->cause, &spend)) {
        return;
    }
    w->taken++;
    if (atomic_fetch_add_explicit(&s->held, 1, memory_order_relaxed) >= s->held_max) {
        atomic_fetch_add_explicit(&s->broken, 1, memory_order_relaxed);
    }
    if (yield) {
        sched_yield(); /* so that others come while this one holds something */
    }
    atomic_fetch_sub_explicit(&s->held, 1, memory_order_relaxed);
    becalm_budget_give(s->b, &s->policy, at, &spend, BECALM_SPEND_UNUSED);
}

static void *work_hold(void *data)
{
    struct worker *w = data;
    struct becalm_moment at = moment_of(w);
    uint64_t random = w->number;
    pthread_barrier_wait(&w->shared->start);
    for (unsigned i = 0; i < w->shared->rounds; i++) {
        call_hold(w->shared, w, &at, becalm_rand_chance(becalm_rand_next(&random), 100000));
    }
    return NULL;
}

/* Beginnings and ends of calls, with a retry that is lost or won. */
static void *work_call(void *data)
{
    struct worker *w = data;
    struct shared *s = w->shared;
    struct becalm_moment at = moment_of(w);
    pthread_barrier_wait(&s->start);
    for (unsigned i = 0; i < s->rounds; i++) {
        struct becalm_spend spend = {0};
        becalm_budget_begin(s->b, &s->policy, &at);
        w->taken += becalm_budget_take(s->b, &s->policy, &at, s->cause, &spend);
        becalm_budget_give(s->b, &s->policy, &at, &spend, i % 2 == 0 ? BECALM_SPEND_LOST : BECALM_SPEND_WON);
        becalm_budget_end(s->b, &s->policy);
    }
    return NULL;
}

/* Successes from half of the threads, failures from the others. */
static void *work_note(void *data)
{
    struct worker *w = data;
    struct shared *s = w->shared;
    struct becalm_moment at = moment_of(w);
    struct becalm_outcome outcome = {.kind = w->number % 2 == 0 ? BECALM_OUTCOME_OK : BECALM_OUTCOME_REJECTED};
    pthread_barrier_wait(&s->start);
    for (unsigned i = 0; i < s->rounds; i++) {
        becalm_budget_note(s->b, &s->policy, &at, &outcome, false);
    }
    return NULL;
}

static uint64_t left(const struct shared *s)
{
    return becalm_budget_left(s->b, &s->policy, START);
}

static uint64_t word(const struct shared *s)
{
    return atomic_load_explicit(&s->b->word, memory_order_relaxed);
}

static void test_budget__one_thread_takes_what_there_is(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_TOKENS);
    struct shared s;
    open_shared(&s, &policy);
    s.rounds = 60;
    struct worker alone = {.shared = &s};
    take_all(&alone);
    check_eq_u64(alone.taken, 50);
    close_shared(&s);
}

static void test_budget__earned_spends_exactly_its_start(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_EARNED);
    policy.share_ppm = 0;
    policy.start = 1000 * BECALM_TOKEN;
    policy.never_sent_cost = BECALM_TOKEN / 200;
    struct shared s;
    open_shared(&s, &policy);
    begin(&s, 50000); /* so that the cap is a thousand tokens, too */
    s.cause = BECALM_OUTCOME_REFUSED;
    s.rounds = 200000;
    check_eq_u64(run(&s, work_take), 200000);
    check_eq_u64(left(&s), 0);
    close_shared(&s);
}

static void test_budget__aws_and_tokens_spend_exactly_their_capacity(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_AWS);
    policy.capacity = 1000000;
    policy.retry_cost = 7;
    struct shared s;
    open_shared(&s, &policy);
    s.rounds = 150000;
    check_eq_u64(run(&s, work_take), 142857);
    check_eq_u64(word(&s), 1);
    close_shared(&s);
    for (uint32_t refill = 0; refill <= 20; refill += 20) {
        policy = defaults(BECALM_BUDGET_TOKENS);
        policy.capacity = 100000;
        policy.refill_per_second = refill;
        open_shared(&s, &policy);
        s.rounds = 100000;
        check_eq_u64(run(&s, work_take), 100000);
        check_eq_u64(left(&s), 0);
        close_shared(&s);
    }
}

/* A budget of each kind that has room for two retries and no more; grpc and none have no such thing. */
static void open_for_two(struct shared *s, enum becalm_budget_kind kind)
{
    struct becalm_budget_policy policy = defaults(kind);
    policy.share_ppm = kind == BECALM_BUDGET_CONCURRENCY ? 0 : 100000;
    policy.start = 2 * BECALM_TOKEN;
    policy.min_concurrency = 2;
    policy.max_share_ppm = 100000;
    policy.capacity = 2;
    policy.refill_per_second = 0;
    policy.retry_cost = 1;
    policy.timeout_cost = 1;
    policy.window = 10 * BECALM_S;
    open_shared(s, &policy);
    begin(s, 20);
    s->held_max = 2;
    check_eq_u64(left(s), 2 * BECALM_TOKEN);
}

static void test_budget__no_more_is_held_at_once_than_there_is(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < BECALM_BUDGET_NONE; kind++) {
        if (kind == BECALM_BUDGET_GRPC) {
            continue;
        }
        struct shared s;
        open_for_two(&s, (enum becalm_budget_kind)kind);
        uint64_t before = word(&s);
        s.rounds = RUNS_OF(20000);
        check_true(run(&s, work_hold) > 0);
        check_eq_u64(atomic_load_explicit(&s.broken, memory_order_relaxed), 0);
        /* Given back unused, it all has left no trace. */
        check_eq_u64(word(&s), before);
        check_eq_u64(left(&s), 2 * BECALM_TOKEN);
        check_eq_u64(becalm_budget_retry_ratio(s.b, START), 0);
        close_shared(&s);
    }
}

static void test_budget__ratio_and_adaptive_stay_within_their_share(void **state)
{
    (void)state;
    for (unsigned turn = 0; turn < 8; turn++) {
        bool adaptive = turn % 2 == 1;
        struct becalm_budget_policy policy = defaults(adaptive ? BECALM_BUDGET_ADAPTIVE : BECALM_BUDGET_RATIO);
        policy.max_share_ppm = 100000;
        policy.window = 10 * BECALM_S;
        struct shared s;
        open_shared(&s, &policy);
        begin(&s, 20000);
        s.rounds = 1000;
        s.skew = turn < 4 ? 0 : 400 * BECALM_MS; /* also with clocks in different slices */
        uint64_t taken = run(&s, work_take);
        check_between_u64(taken, 1, 2000);
        struct worker quiet = {.shared = &s, .number = THREADS - 1};
        s.rounds = 2000;
        take_all(&quiet); /* a race may have refused, but nothing has drifted: the rest is still there */
        check_eq_u64(taken + quiet.taken, 2000);
        close_shared(&s);
    }
}

static void test_budget__concurrency_is_empty_when_all_calls_have_ended(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_CONCURRENCY);
    struct shared s;
    open_shared(&s, &policy);
    s.rounds = 20000;
    check_true(run(&s, work_call) > 0);
    check_eq_u64(word(&s), 0);
    close_shared(&s);
}

static void test_budget__grpc_stays_between_nothing_and_its_maximum(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_GRPC);
    policy.token_ratio_milli = 1000;
    struct shared s;
    open_shared(&s, &policy);
    s.rounds = 20000;
    run(&s, work_note);
    check_between_u64(word(&s), 0, policy.max_tokens_milli);
    check_eq_u64(word(&s) % 1000, 0); /* whole tokens go in and out */
    close_shared(&s);
}

static void test_budget__earned_deposits_are_all_there(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_EARNED);
    policy.start = 0;
    policy.share_ppm = 1;
    struct shared s;
    open_shared(&s, &policy);
    s.rounds = 30000;
    run(&s, work_note);
    check_eq_u64(left(&s), UINT64_C(1) * BECALM_EARNED_FAVOUR * (30000 * (THREADS / 2)));
    close_shared(&s);
}

/* Retries that are won and lost by all threads while they earn: nothing is lost but a moment's accuracy. */
static void *work_learn(void *data)
{
    struct worker *w = data;
    struct shared *s = w->shared;
    struct becalm_moment at = moment_of(w);
    struct becalm_outcome ok = {.kind = BECALM_OUTCOME_OK};
    pthread_barrier_wait(&s->start);
    for (unsigned i = 0; i < s->rounds; i++) {
        struct becalm_spend spend = {.held = true, .hard = w->number % 2 == 0};
        becalm_budget_note(s->b, &s->policy, &at, &ok, false);
        becalm_budget_give(s->b, &s->policy, &at, &spend, w->number < 2 ? BECALM_SPEND_WON : BECALM_SPEND_LOST);
        uint64_t word = atomic_load_explicit(&s->b->lost, memory_order_relaxed);
        bool broken = (word & 0xfffff) > 1000000 || (word >> 20 & 0xfffff) > 1000000 || word >> 41 != 0;
        atomic_fetch_add_explicit(&s->broken, broken, memory_order_relaxed);
    }
    return NULL;
}

static void test_budget__earned_learns_from_all_threads_how_retries_end(void **state)
{
    (void)state;
    struct becalm_budget_policy policy = defaults(BECALM_BUDGET_EARNED);
    struct shared s;
    open_shared(&s, &policy);
    s.rounds = 20000;
    run(&s, work_learn);
    check_eq_u64(atomic_load_explicit(&s.broken, memory_order_relaxed), 0);
    check_true(becalm_budget_sound(s.b, &policy, THREADS, START));
    close_shared(&s);
}

BECALM_TESTS(cmocka_unit_test(test_budget__one_thread_takes_what_there_is),
             cmocka_unit_test(test_budget__earned_spends_exactly_its_start),
             cmocka_unit_test(test_budget__aws_and_tokens_spend_exactly_their_capacity),
             cmocka_unit_test(test_budget__no_more_is_held_at_once_than_there_is),
             cmocka_unit_test(test_budget__ratio_and_adaptive_stay_within_their_share),
             cmocka_unit_test(test_budget__concurrency_is_empty_when_all_calls_have_ended),
             cmocka_unit_test(test_budget__grpc_stays_between_nothing_and_its_maximum),
             cmocka_unit_test(test_budget__earned_deposits_are_all_there),
             cmocka_unit_test(test_budget__earned_learns_from_all_threads_how_retries_end))
