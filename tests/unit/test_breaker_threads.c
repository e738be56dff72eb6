/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* barriers */
#include "breaker_lab.h"

#include <pthread.h>
#include <sched.h>

#define THREADS 8

struct crowd {
    struct lab *lab;
    pthread_barrier_t *barrier;
    _Atomic(uint32_t) *arrived;
    uint32_t number, rounds;
    uint64_t admitted, moved;
};

static void crowd_run(void *(*each)(void *), struct crowd crowd[THREADS], struct lab *lab, uint32_t rounds)
{
    pthread_t thread[THREADS];
    pthread_barrier_t barrier;
    _Atomic(uint32_t) arrived = 0;
    check_true(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        crowd[i] = (struct crowd){.lab = lab, .barrier = &barrier, .arrived = &arrived, .number = i, .rounds = rounds};
        check_true(pthread_create(&thread[i], NULL, each, &crowd[i]) == 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        check_true(pthread_join(thread[i], NULL) == 0);
    }
    pthread_barrier_destroy(&barrier);
}

/* Threads leave a barrier one after the other, too far apart to meet. So each waits a little for a second one, in order
 * that two cores do the same thing at the same time; nothing depends on it but how often they collide. */
static void crowd_meet(struct crowd *crowd)
{
    pthread_barrier_wait(crowd->barrier);
    uint32_t mine = atomic_fetch_add_explicit(crowd->arrived, 1, memory_order_relaxed);
    for (int i = 0; i < 3000 && atomic_load_explicit(crowd->arrived, memory_order_relaxed) <= (mine | 1); i++) {
    }
}

/* In every round the open time is over for all threads at once. Each thread asks until it is refused three times and
 * keeps its permits; then the first thread opens the breaker again. */
static void *crowd_probe(void *data)
{
    struct crowd *crowd = data;
    struct lab *lab = crowd->lab;
    for (uint32_t round = 1; round <= crowd->rounds; round++) {
        struct becalm_moment at = {.now = (1000 + 100 * round) * BECALM_S, .random = round, .cell = crowd->number};
        crowd_meet(crowd);
        for (int refusals = 0; refusals < 3;) {
            struct becalm_permit permit;
            if (becalm_breaker_admit(lab->b, &lab->policy, &at, &permit)) {
                crowd->admitted += permit.probe ? 1 : 1000000;
            } else {
                refusals++;
            }
            crowd->moved += permit.from != permit.to;
        }
        if (pthread_barrier_wait(crowd->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
            (void)becalm_breaker_force(lab->b, &lab->policy, &at, OPEN);
        }
    }
    return NULL;
}

static void test_breaker_threads__eight_threads_get_exactly_the_probes_of_each_episode(void **unused)
{
    (void)unused;
    struct lab lab;
    struct crowd crowd[THREADS];
    lab_small(&lab);
    lab.policy.probes = 5;
    force(&lab, OPEN);
    enum { ROUNDS = RUNS_OF(20000) };
    crowd_run(crowd_probe, crowd, &lab, ROUNDS);
    uint64_t admitted = 0, moved = 0;
    for (int i = 0; i < THREADS; i++) {
        admitted += crowd[i].admitted;
        moved += crowd[i].moved;
    }
    check_eq_u64(moved, ROUNDS); /* one thread told of each opening of the door */
    check_eq_u64(admitted, 5 * ROUNDS);
}

/* Probes taken and given back at random; the one that reports last decides, and only one thread sees that. */
static void *crowd_trial(void *data)
{
    struct crowd *crowd = data;
    struct lab *lab = crowd->lab;
    uint64_t random = crowd->number;
    for (uint32_t round = 1; round <= crowd->rounds; round++) {
        struct becalm_moment at = {.now = (1000 + 100 * round) * BECALM_S, .random = round, .cell = crowd->number};
        crowd_meet(crowd);
        for (;;) { /* were a place lost, this would not end */
            struct becalm_permit permit;
            if (!becalm_breaker_admit(lab->b, &lab->policy, &at, &permit)) {
                sched_yield(); /* others have the places */
                continue;
            }
            if (!permit.probe) {
                becalm_breaker_note(lab->b, &lab->policy, &at, &permit, NEUTRAL, 0);
                break; /* closed */
            }
            crowd->moved += permit.from != permit.to;
            bool neutral = becalm_rand_next(&random) % 2 == 0;
            becalm_breaker_note(lab->b, &lab->policy, &at, &permit, neutral ? NEUTRAL : OK, 0);
            crowd->admitted += !neutral;
            crowd->moved += permit.from != permit.to;
        }
        if (pthread_barrier_wait(crowd->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
            crowd->moved += becalm_breaker_state(lab->b) != CLOSED ? 1000000 : 0;
            (void)becalm_breaker_force(lab->b, &lab->policy, &at, OPEN);
        }
    }
    return NULL;
}

static void test_breaker_threads__eight_threads_close_it_once_and_lose_no_place(void **unused)
{
    (void)unused;
    struct lab lab;
    struct crowd crowd[THREADS];
    lab_small(&lab);
    lab.policy.probes = 20;
    force(&lab, OPEN);
    crowd_run(crowd_trial, crowd, &lab, 100);
    uint64_t reported = 0, moved = 0;
    for (int i = 0; i < THREADS; i++) {
        reported += crowd[i].admitted;
        moved += crowd[i].moved;
    }
    check_eq_u64(reported, 2000); /* each episode took exactly its twenty results */
    check_eq_u64(moved, 200);     /* half open and closed, each told once */
    check_eq_u64(becalm_breaker_late(lab.b), 0);
}

/* All operations at once, each thread with its own clock; each thread checks the rules itself. */
static void *crowd_storm(void *data)
{
    struct crowd *crowd = data;
    struct lab *lab = crowd->lab;
    uint64_t random = crowd->number;
    struct becalm_moment at = {.now = 1000 * BECALM_S, .cell = crowd->number};
    struct becalm_permit kept = {.held = false};
    for (uint32_t i = 0; i < crowd->rounds; i++) {
        uint64_t draw = becalm_rand_next(&random);
        struct becalm_permit permit;
        at.now += draw % 4 * BECALM_MS;
        at.random = draw;
        if (becalm_breaker_peek(lab->b, at.now) && becalm_breaker_admit(lab->b, &lab->policy, &at, &permit)) {
            bool lost = draw % 97 == 0;
            if (draw % 13 == 0) {
                becalm_breaker_slow(lab->b, &lab->policy, &at, &permit);
            }
            if (!lost) {
                becalm_breaker_note(lab->b, &lab->policy, &at, &kept, draw % 3 == 0 ? OK : FAILED, 0);
                kept = permit;
            }
            crowd->admitted++;
        }
        if (draw % 5003 == 0) {
            (void)becalm_breaker_force(lab->b, &lab->policy, &at, draw % 2 == 0 ? HALF_OPEN : METRICS_ONLY);
        } else if (draw % 1009 == 0 && becalm_breaker_state(lab->b) == METRICS_ONLY) {
            (void)becalm_breaker_force(lab->b, &lab->policy, &at, CLOSED);
        }
    }
    return NULL;
}

static void test_breaker_threads__eight_threads_in_a_storm_leave_it_able_to_close(void **unused)
{
    (void)unused;
    for (int mode = 0; mode < 2; mode++) {
        struct lab lab;
        struct crowd crowd[THREADS];
        lab_small(&lab);
        lab.policy.mode = mode == 0 ? BECALM_BREAKER_RATE : BECALM_BREAKER_CONSECUTIVE;
        lab.policy.open_for = 20 * BECALM_MS;
        lab.policy.half_open_for = 50 * BECALM_MS;
        crowd_run(crowd_storm, crowd, &lab, RUNS_OF(20000));
        lab.at.now += 3600 * BECALM_S;
        if (state(&lab) == METRICS_ONLY) {
            force(&lab, OPEN);
        }
        for (int tries = 0; tries < 4 && state(&lab) != CLOSED; tries++) {
            struct becalm_permit permit;
            while (state(&lab) != CLOSED && admit(&lab, &permit)) {
                end(&lab, &permit, OK);
            }
            lab.at.now += BECALM_S;
        }
        check_true(state(&lab) == CLOSED);
        force(&lab, CLOSED);
        check_sums(&lab, 0, 0, 0);
        calls(&lab, 5, FAILED);
        check_true(state(&lab) == OPEN);
    }
}

/* A thread may be put to sleep right after it has changed the state and before it has said until when. The test puts
 * the breaker into that instant by hand: the time that is there belongs to the generation before. */
static void test_breaker_threads__a_thread_that_sleeps_in_mid_transition_is_helped(void **unused)
{
    (void)unused;
    struct lab lab;
    struct becalm_permit permit;
    lab_small(&lab);
    uint64_t before = atomic_load_explicit(&lab.b->retest, memory_order_relaxed) & 63; /* long over */
    force(&lab, OPEN);
    atomic_store_explicit(&lab.b->retest, before, memory_order_relaxed);
    check_eq_u64(becalm_breaker_retest_at(lab.b), BECALM_NEVER);
    check_true(!becalm_breaker_peek(lab.b, lab.at.now));
    check_true(!admit(&lab, &permit)); /* not half open at once, by the old time */
    check_true(state(&lab) == OPEN);
    check_between_u64(becalm_breaker_retest_at(lab.b) - lab.at.now, 48 * BECALM_S - 64, 60 * BECALM_S);
    wait_for_retest(&lab);
    check_true(admit(&lab, &permit));
    atomic_store_explicit(&lab.b->retest, before, memory_order_relaxed);
    check_true(admit(&lab, &permit)); /* the lease is not over, by the old time */
    check_eq_u64(permit.expires_at, becalm_breaker_retest_at(lab.b));
    check_between_u64(permit.expires_at - lab.at.now, lab.policy.half_open_for - 64, lab.policy.half_open_for);
    check_true(state(&lab) == HALF_OPEN);
}

BECALM_TESTS(cmocka_unit_test(test_breaker_threads__a_thread_that_sleeps_in_mid_transition_is_helped),
             cmocka_unit_test(test_breaker_threads__eight_threads_get_exactly_the_probes_of_each_episode),
             cmocka_unit_test(test_breaker_threads__eight_threads_close_it_once_and_lose_no_place),
             cmocka_unit_test(test_breaker_threads__eight_threads_in_a_storm_leave_it_able_to_close))
