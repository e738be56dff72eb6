/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
/* Calls of many threads that wait: for a slot of the limit, and for a host that restarts. */
#include <becalm/run.h>

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define THREADS 40

static void rest(becalm_ns time)
{
    const struct timespec until = {.tv_sec = (time_t)(time / BECALM_S), .tv_nsec = (long)(time % BECALM_S)};
    (void)nanosleep(&until, NULL);
}

/* A function that takes a moment, and counts how many are in it. */
struct crowd {
    struct becalm_guard *guard;
    atomic_int inside;
    atomic_int most;
    atomic_int ok;
    atomic_int refused;
    atomic_bool stays; /* it does not come back while this is set */
    bool cancellable;
};

static void crowd_try(const struct becalm_try *now, struct becalm_outcome *outcome, void *data)
{
    struct crowd *crowd = data;
    (void)now;
    (void)outcome;
    int inside = atomic_fetch_add(&crowd->inside, 1) + 1;
    int most = atomic_load(&crowd->most);
    while (inside > most && !atomic_compare_exchange_weak(&crowd->most, &most, inside)) {
    }
    do {
        rest(BECALM_MS);
    } while (atomic_load(&crowd->stays));
    (void)atomic_fetch_sub(&crowd->inside, 1);
}

static void *crowd_run(void *data)
{
    struct crowd *crowd = data;
    struct becalm_cancel *cancel = crowd->cancellable ? becalm_cancel_new() : NULL;
    const struct becalm_run_options options = {.request = {.idempotent = true}, .cancel = cancel};
    for (int i = 0; i < 5; i++) {
        bool ok = becalm_run_with(crowd->guard, &options, crowd_try, crowd) == BECALM_WHY_OK;
        (void)atomic_fetch_add(ok ? &crowd->ok : &crowd->refused, 1);
    }
    becalm_cancel_free(cancel);
    return NULL;
}

static struct becalm_guard *guard_of(uint32_t slots, enum becalm_limit_kind kind, becalm_ns timeout)
{
    struct becalm_policy policy;
    becalm_policy_defaults(&policy);
    becalm_limit_defaults(&policy.limit, kind);
    policy.limit.max = slots;
    policy.attempt_timeout = timeout;
    policy.deadline = 600 * BECALM_S; /* a busy machine may take its time */
    policy.breaker.enabled = false;
    struct becalm_guard *guard = becalm_guard_new(&(struct becalm_guard_options){.policy = &policy}, NULL);
    check_true(guard != NULL);
    return guard;
}

static void check_nobody_waits(const struct becalm_guard *guard)
{
    check_eq_u64(becalm_gate_waiting(becalm_guard_target(guard)->gate), 0);
    check_eq_u64(becalm_limit_in_flight(becalm_guard_target(guard)->limit), 0);
    check_eq_u64(becalm_restart_parked(becalm_guard_target(guard)->restart), 0);
}

static void test_run_threads__who_finds_no_slot_waits_and_is_called(void **state)
{
    (void)state;
    for (int cancellable = 0; cancellable < 2; cancellable++) {
        struct crowd crowd = {.guard = guard_of(4, BECALM_LIMIT_FIXED, 5 * BECALM_S), .cancellable = cancellable != 0};
        pthread_t thread[THREADS];
        for (int i = 0; i < THREADS; i++) {
            check_eq_u64((uint64_t)pthread_create(&thread[i], NULL, crowd_run, &crowd), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            check_eq_u64((uint64_t)pthread_join(thread[i], NULL), 0);
        }
        check_eq_u64((uint64_t)crowd.ok, 5 * THREADS);
        check_eq_u64((uint64_t)crowd.refused, 0);
        check_between_u64((uint64_t)crowd.most, 1, 4);
        check_nobody_waits(crowd.guard);
        becalm_guard_free(crowd.guard);
    }
}

static void *crowd_stay(void *data)
{
    struct crowd *crowd = data;
    check_eq_u64(becalm_run(crowd->guard, crowd_try, crowd), BECALM_WHY_OK);
    return NULL;
}

/* Another call has the only slot until `stays` ends. */
static void occupy(struct crowd *crowd, pthread_t *thread)
{
    atomic_store(&crowd->stays, true);
    check_eq_u64((uint64_t)pthread_create(thread, NULL, crowd_stay, crowd), 0);
    while (atomic_load(&crowd->inside) == 0) {
        rest(BECALM_MS);
    }
}

static void leave(struct crowd *crowd, pthread_t thread)
{
    atomic_store(&crowd->stays, false);
    check_eq_u64((uint64_t)pthread_join(thread, NULL), 0);
    check_nobody_waits(crowd->guard);
    becalm_guard_free(crowd->guard);
}

struct canceller {
    struct becalm_guard *guard;
    struct becalm_cancel *cancel;
};

static void *cancel_who_waits(void *data)
{
    struct canceller *canceller = data;
    while (becalm_gate_waiting(becalm_guard_target(canceller->guard)->gate) == 0) {
        rest(BECALM_MS);
    }
    becalm_cancel(canceller->cancel);
    return NULL;
}

static void test_run_threads__who_waits_for_a_slot_can_be_cancelled(void **state)
{
    (void)state;
    struct crowd crowd = {.guard = guard_of(1, BECALM_LIMIT_FIXED, 5 * BECALM_S)};
    struct canceller canceller = {crowd.guard, becalm_cancel_new()};
    pthread_t inside;
    pthread_t other;
    occupy(&crowd, &inside);
    check_eq_u64((uint64_t)pthread_create(&other, NULL, cancel_who_waits, &canceller), 0);
    const struct becalm_run_options options = {.request = {.idempotent = true}, .cancel = canceller.cancel};
    check_eq_u64(becalm_run_with(crowd.guard, &options, crowd_try, &crowd), BECALM_WHY_CANCELLED);
    check_eq_u64((uint64_t)pthread_join(other, NULL), 0);
    becalm_cancel_free(canceller.cancel);
    leave(&crowd, inside);
}

static void time_out(const struct becalm_try *now, struct becalm_outcome *outcome, void *data)
{
    (void)now;
    (void)data;
    outcome->kind = BECALM_OUTCOME_TIMED_OUT;
}

/* A cut a moment ago: a quarter of the timeout is all that it may wait. */
static void test_run_threads__after_a_cut_nobody_waits_for_long(void **state)
{
    (void)state;
    struct crowd crowd = {.guard = guard_of(1, BECALM_LIMIT_AIMD, 200 * BECALM_MS)};
    becalm_guard_target(crowd.guard)->limit->usual = 64; /* samples: it knows that calls do not time out */
    const struct becalm_run_options once = {.request = {.idempotent = false}};
    for (int i = 0; i < 5; i++) {
        (void)becalm_run_with(crowd.guard, &once, time_out, NULL);
    }
    becalm_limit_turned_away(becalm_guard_target(crowd.guard)->limit); /* no pacing, which is another matter */
    pthread_t inside;
    occupy(&crowd, &inside);
    struct becalm_record record;
    const struct becalm_run_options options = {.request = {.idempotent = true}, .record = &record};
    check_eq_u64(becalm_run_with(crowd.guard, &options, crowd_try, &crowd), BECALM_WHY_LIMIT);
    check_true(record.gated >= 50 * BECALM_MS && record.attempts == 0);
    leave(&crowd, inside);
}

/* ---- a host that restarts ---- */

struct host {
    struct becalm_guard *guard;
    struct sockaddr_in address;
    atomic_int refused; /* connections */
    atomic_int lost;    /* calls */
    becalm_ns begins_at;
};

static int host_listen(struct host *host)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int yes = 1;
    socklen_t length = sizeof host->address;
    check_true(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0);
    check_true(bind(fd, (const struct sockaddr *)&host->address, sizeof host->address) == 0 && listen(fd, 1000) == 0);
    check_true(getsockname(fd, (struct sockaddr *)&host->address, &length) == 0);
    return fd;
}

/* A connection is all that is asked. */
static void host_try(const struct becalm_try *now, struct becalm_outcome *outcome, void *data)
{
    struct host *host = data;
    (void)now;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    check_true(fd >= 0);
    if (connect(fd, (const struct sockaddr *)&host->address, sizeof host->address) != 0) {
        outcome->kind = BECALM_OUTCOME_REFUSED;
        outcome->no_listener = errno == ECONNREFUSED;
        (void)atomic_fetch_add(&host->refused, 1);
    }
    (void)close(fd);
}

#define CALLERS 20

/* One of many threads that ask once in 200 ms: 100 times a second together. */
static void *host_ask(void *data)
{
    struct host *host = data;
    int calls = getenv("BECALM_SOAK") != NULL ? 30 : 8;
    for (int i = 0; i < calls; i++) {
        becalm_ns at = host->begins_at + (becalm_ns)i * 200 * BECALM_MS;
        rest(becalm_ns_left(becalm_run_now(), at));
        bool ok = becalm_run(host->guard, host_try, host) == BECALM_WHY_OK;
        (void)atomic_fetch_add(&host->lost, ok ? 0 : 1);
    }
    return NULL;
}

static void test_run_threads__calls_wait_for_a_host_that_restarts(void **state)
{
    (void)state;
    struct host host = {.guard = becalm_guard_new(NULL, NULL),
                        .address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
    pthread_t thread[CALLERS];
    int fd = host_listen(&host);
    host.begins_at = becalm_run_now();
    for (int i = 0; i < CALLERS; i++) {
        check_eq_u64((uint64_t)pthread_create(&thread[i], NULL, host_ask, &host), 0);
    }
    rest(300 * BECALM_MS);
    (void)close(fd);
    rest(600 * BECALM_MS);
    fd = host_listen(&host);
    for (int i = 0; i < CALLERS; i++) {
        check_eq_u64((uint64_t)pthread_join(thread[i], NULL), 0);
    }
    (void)close(fd);
    check_eq_u64((uint64_t)host.lost, 0);
    /* The first to find out are those that came at once, and then one asks in 100 ms; on a busy machine for longer. */
    check_between_u64((uint64_t)host.refused, 2, CALLERS + 40);
    check_nobody_waits(host.guard);
    becalm_guard_free(host.guard);
}

BECALM_TESTS(cmocka_unit_test(test_run_threads__who_finds_no_slot_waits_and_is_called),
             cmocka_unit_test(test_run_threads__who_waits_for_a_slot_can_be_cancelled),
             cmocka_unit_test(test_run_threads__after_a_cut_nobody_waits_for_long),
             cmocka_unit_test(test_run_threads__calls_wait_for_a_host_that_restarts))
