/* SPDX-License-Identifier: MIT */
#include <becalm/call.h>

#include <pthread.h>

#include "check.h"

/* Eight threads, each with calls of its own, on one target: afterwards nothing is held and the counts add up. */
enum { THREADS = 8, CALLS_EACH = RUNS_OF(4000) };

struct crowd {
    struct becalm_policy policy;
    struct becalm_target target;
};

struct member {
    struct crowd *crowd;
    uint32_t cell;
    uint64_t first_attempts;
    uint64_t retries;
    uint64_t successes;
};

static void member_call(struct member *m, uint64_t *seed, becalm_ns *now)
{
    struct crowd *crowd = m->crowd;
    struct becalm_call call;
    struct becalm_request request = {.idempotent = true};
    struct becalm_event event = {.kind = BECALM_EVENT_BEGIN};
    struct becalm_action action;
    becalm_call_init(&call, &crowd->policy, &crowd->target, &request);
    do {
        event.at = (struct becalm_moment){.now = *now, .random = becalm_rand_next(seed), .cell = m->cell};
        becalm_call_step(&call, &event, &action);
        if ((action.flags & BECALM_DO_SEND) != 0) {
            m->first_attempts += action.attempt == 0;
            m->retries += action.attempt > 0;
            bool ok = becalm_rand_chance(becalm_rand_next(seed), 700000);
            event.kind = BECALM_EVENT_DONE;
            event.slot = action.slot;
            event.outcome = (struct becalm_outcome){.kind = ok ? BECALM_OUTCOME_OK : BECALM_OUTCOME_BROKEN};
            *now += BECALM_MS;
        } else {
            event.kind = BECALM_EVENT_TIMER;
            *now = becalm_ns_max(*now, action.wake_at == BECALM_NEVER ? 0 : action.wake_at);
        }
    } while (!becalm_call_ended(&call));
    m->successes += call.record.reason == BECALM_WHY_OK;
}

static void *member_run(void *data)
{
    struct member *m = data;
    uint64_t seed = 1000 + m->cell;
    becalm_ns now = 0;
    for (int i = 0; i < CALLS_EACH; i++) {
        member_call(m, &seed, &now);
    }
    return NULL;
}

static void crowd_test(const struct becalm_policy *policy)
{
    struct crowd crowd = {.policy = *policy};
    void *memory = aligned_alloc(64, becalm_target_bytes(policy, 4, THREADS));
    check_eq_u64((uint64_t)becalm_target_init(&crowd.target, memory, policy, 4, THREADS), 0);
    pthread_t thread[THREADS];
    struct member member[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        member[i] = (struct member){.crowd = &crowd, .cell = i};
        check_eq_u64((uint64_t)pthread_create(&thread[i], NULL, member_run, &member[i]), 0);
    }
    uint64_t retries = 0;
    uint64_t successes = 0;
    for (uint32_t i = 0; i < THREADS; i++) {
        check_eq_u64((uint64_t)pthread_join(thread[i], NULL), 0);
        retries += member[i].retries;
        successes += member[i].successes;
    }
    check_eq_u64(becalm_limit_in_flight(crowd.target.limit), 0);
    for (uint32_t i = 0; i < 4; i++) {
        check_eq_u64(atomic_load_explicit(&crowd.target.hosts->host[i].in_flight, memory_order_relaxed), 0);
    }
    check_true(successes > 0);
    check_true(retries > 0);
    free(memory);
}

static void test_call_threads__eight_threads_on_one_target_give_everything_back(void **state)
{
    (void)state;
    struct becalm_policy policy;
    becalm_policy_defaults(&policy);
    crowd_test(&policy);
    policy.throttle.enabled = true;
    policy.rate.enabled = true;
    policy.hedge.enabled = true;
    policy.hedge.delay = BECALM_MS;
    crowd_test(&policy);
    becalm_limit_defaults(&policy.limit, BECALM_LIMIT_SLOTS);
    becalm_breaker_resilience4j(&policy.breaker);
    policy.breaker.per_attempt = true;
    policy.hedge.enabled = false;
    for (unsigned kind = 0; kind <= BECALM_BUDGET_NONE; kind++) {
        becalm_budget_defaults(&policy.budget, (enum becalm_budget_kind)kind);
        crowd_test(&policy);
    }
}

BECALM_TESTS(cmocka_unit_test(test_call_threads__eight_threads_on_one_target_give_everything_back))
