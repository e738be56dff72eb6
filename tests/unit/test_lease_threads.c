/* SPDX-License-Identifier: MIT */
#include <becalm/lease.h>
#include <becalm/rand.h>

#include <pthread.h>

#include "lib/check.h"

#define THREADS 8u
#define CALLS   20000u

/* Eight threads spend while a ninth exchanges: nothing is spent twice, and nothing is lost. */

struct worker {
    struct becalm_lease *lease;
    uint32_t cell;
    uint64_t spent;
};

struct fleet {
    struct becalm_lease *lease;
    struct becalm_lease_store *store;
    struct becalm_lease_policy policy;
    atomic_bool over;
};

static void *worker_run(void *data)
{
    struct worker *worker = data;
    uint64_t random = worker->cell;
    struct becalm_moment at = {.now = BECALM_S, .cell = worker->cell};
    for (uint32_t i = 0; i < CALLS; i++) {
        becalm_lease_begin(worker->lease, &at);
        if (!becalm_lease_take(worker->lease, &at)) {
            continue;
        }
        if (becalm_rand_chance(becalm_rand_next(&random), 200000)) {
            becalm_lease_give(worker->lease);
        } else {
            worker->spent++;
        }
    }
    return NULL;
}

/* One exchange in five gets no answer, and time flies, so that leases end too. */
static void exchange(struct fleet *fleet, becalm_ns now, uint64_t *random)
{
    struct becalm_moment at = {.now = now, .random = becalm_rand_next(random)};
    struct becalm_lease_request request;
    struct becalm_lease_answer answer;
    if (becalm_lease_ask(fleet->lease, &fleet->policy, &at, &request) &&
        becalm_lease_store_exchange(fleet->store, &fleet->policy, now, &request, &answer) &&
        !becalm_rand_chance(at.random, 200000)) {
        (void)becalm_lease_answer(fleet->lease, now, &answer);
    }
}

static void *asker_run(void *data)
{
    struct fleet *fleet = data;
    uint64_t random = 5;
    becalm_ns now = BECALM_S;
    while (!atomic_load_explicit(&fleet->over, memory_order_relaxed)) {
        now += becalm_rand_below(becalm_rand_next(&random), BECALM_S);
        exchange(fleet, now, &random);
    }
    return NULL;
}

static void test_lease__threads_spend_no_more_than_the_share_together(void **state)
{
    (void)state;
    struct fleet fleet = {.over = false};
    struct worker worker[THREADS];
    pthread_t thread[THREADS];
    pthread_t asker;
    becalm_lease_defaults(&fleet.policy);
    fleet.policy.floor = 0;
    fleet.lease = becalm_lease_init(aligned_alloc(64, becalm_lease_bytes(THREADS)), THREADS);
    fleet.store = becalm_lease_store_init(aligned_alloc(64, becalm_lease_store_bytes(1)), 1);
    check_true(pthread_create(&asker, NULL, asker_run, &fleet) == 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        worker[i] = (struct worker){.lease = fleet.lease, .cell = i};
        check_true(pthread_create(&thread[i], NULL, worker_run, &worker[i]) == 0);
    }
    uint64_t spent = 0;
    for (uint32_t i = 0; i < THREADS; i++) {
        (void)pthread_join(thread[i], NULL);
        spent += worker[i].spent;
    }
    atomic_store_explicit(&fleet.over, true, memory_order_relaxed);
    (void)pthread_join(asker, NULL);
    uint64_t first = (uint64_t)THREADS * CALLS;
    check_true(spent * 5 <= first);
    /* No first attempt was missed. */
    struct becalm_lease_request request;
    struct becalm_moment at = {.now = UINT64_C(1) << 60, .random = 1};
    (void)becalm_lease_ask(fleet.lease, &fleet.policy, &at, &request);
    check_eq_u64(fleet.lease->seen_first, first);
    free(fleet.lease);
    free(fleet.store);
}

BECALM_TESTS(cmocka_unit_test(test_lease__threads_spend_no_more_than_the_share_together))
