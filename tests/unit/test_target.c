/* SPDX-License-Identifier: MIT */
#include <becalm/target.h>

#include "check.h"

struct made {
    struct becalm_policy policy;
    struct becalm_target target;
    void *memory;
};

static void make(struct made *made, const struct becalm_policy *policy, uint32_t hosts)
{
    size_t bytes = becalm_target_bytes(policy, hosts, 2);
    check_eq_u64(bytes % 64, 0);
    made->policy = *policy;
    made->memory = aligned_alloc(64, bytes);
    memset(made->memory, 0xa5, bytes);
    check_eq_u64((uint64_t)becalm_target_init(&made->target, made->memory, policy, hosts, 2), 0);
}

static void test_target__has_the_parts_that_the_policy_switches_on(void **state)
{
    (void)state;
    struct becalm_policy policy;
    struct made made;
    becalm_policy_defaults(&policy);
    make(&made, &policy, 0);
    check_true(made.target.budget != NULL && made.target.breaker != NULL && made.target.limit != NULL);
    check_true(made.target.gate != NULL && made.target.sketch != NULL && made.target.mark != NULL);
    check_true(made.target.throttle == NULL && made.target.rate == NULL && made.target.hedge == NULL);
    check_true(made.target.hosts == NULL && made.target.service_budget == NULL);
    free(made.memory);
    policy.throttle.enabled = policy.rate.enabled = policy.hedge.enabled = true;
    make(&made, &policy, 3);
    check_true(made.target.throttle != NULL && made.target.rate != NULL && made.target.hedge != NULL);
    check_eq_u64(made.target.hosts->count, 3);
    free(made.memory);
}

static void test_target__a_bad_policy_or_shape_is_refused(void **state)
{
    (void)state;
    struct becalm_policy policy;
    struct becalm_target target;
    _Alignas(64) static unsigned char memory[65536];
    becalm_policy_defaults(&policy);
    check_eq_u64((uint64_t)(int64_t)becalm_target_init(&target, memory, &policy, 0, 0),
                 (uint64_t)(int64_t)BECALM_EINVAL);
    check_eq_u64((uint64_t)(int64_t)becalm_target_init(&target, memory, &policy, 0, 65),
                 (uint64_t)(int64_t)BECALM_EINVAL);
    check_eq_u64((uint64_t)(int64_t)becalm_target_init(&target, memory, &policy, BECALM_HOSTS_MAX + 1, 1),
                 (uint64_t)(int64_t)BECALM_EINVAL);
    policy.backoff.cap = 0;
    check_eq_u64((uint64_t)(int64_t)becalm_target_init(&target, memory, &policy, 0, 1),
                 (uint64_t)(int64_t)BECALM_EINVAL);
}

static void test_target__a_reload_carries_what_was_learned(void **state)
{
    (void)state;
    struct becalm_policy policy;
    struct made old;
    struct made fresh;
    struct becalm_moment at = {.now = BECALM_S};
    becalm_policy_defaults(&policy);
    policy.hedge.enabled = policy.rate.enabled = true;
    make(&old, &policy, 4);
    /* Spend the budget, force the breaker, shed, fail. */
    struct becalm_spend spend = {0};
    check_true(becalm_budget_take(old.target.budget, &policy.budget, &at, BECALM_OUTCOME_BROKEN, &spend));
    (void)becalm_breaker_force(old.target.breaker, &policy.breaker, &at, BECALM_BREAKER_FORCED_OPEN);
    for (int i = 0; i < 50; i++) {
        becalm_gate_note(old.target.gate, true);
        becalm_mark_note(old.target.mark, &(struct becalm_outcome){.kind = BECALM_OUTCOME_BROKEN});
    }
    check_true(becalm_hedge_take(old.target.hedge, false, false));
    policy.max_retries = 1;
    make(&fresh, &policy, 4);
    becalm_target_carry(&fresh.target, &fresh.policy, &old.target, &old.policy, at.now);
    check_eq_u64(becalm_budget_left(fresh.target.budget, &policy.budget, at.now), 0);
    check_eq_u64(becalm_breaker_state(fresh.target.breaker), BECALM_BREAKER_FORCED_OPEN);
    check_true(becalm_gate_overloaded(fresh.target.gate));
    check_true(becalm_mark_failing(fresh.target.mark));
    check_true(becalm_hedge_take(fresh.target.hedge, false, false));
    check_true(!becalm_hedge_take(fresh.target.hedge, false, false));
    free(old.memory);
    free(fresh.memory);
}

static void test_target__a_reload_between_different_shapes_does_no_harm(void **state)
{
    (void)state;
    struct becalm_policy policy;
    struct made old;
    struct made fresh;
    becalm_policy_defaults(&policy);
    make(&old, &policy, 4);
    policy.throttle.enabled = policy.rate.enabled = policy.hedge.enabled = true;
    becalm_budget_defaults(&policy.budget, BECALM_BUDGET_TOKENS);
    becalm_limit_defaults(&policy.limit, BECALM_LIMIT_SLOTS);
    becalm_breaker_resilience4j(&policy.breaker);
    make(&fresh, &policy, 2);
    becalm_target_carry(&fresh.target, &fresh.policy, &old.target, &old.policy, BECALM_S);
    becalm_target_carry(&old.target, &old.policy, &fresh.target, &fresh.policy, BECALM_S);
    check_eq_u64(fresh.target.hosts->count, 2);
    free(old.memory);
    free(fresh.memory);
}

BECALM_TESTS(cmocka_unit_test(test_target__has_the_parts_that_the_policy_switches_on),
             cmocka_unit_test(test_target__a_bad_policy_or_shape_is_refused),
             cmocka_unit_test(test_target__a_reload_carries_what_was_learned),
             cmocka_unit_test(test_target__a_reload_between_different_shapes_does_no_harm))
