/* SPDX-License-Identifier: MIT */
#include <becalm/policy.h>

#include "check.h"

static void test_policy__the_defaults_pass_their_own_check(void **state)
{
    (void)state;
    struct becalm_policy policy;
    struct becalm_complaint complaint = {"stale", "stale"};
    becalm_policy_defaults(&policy);
    check_eq_u64((uint64_t)becalm_policy_check(&policy, &complaint), 0);
    check_true(complaint.part == NULL && complaint.sentence == NULL);
    check_eq_u64(policy.max_retries, 2);
    check_eq_u64(policy.attempt_timeout, 5 * BECALM_S);
    check_eq_u64(policy.deadline, 16 * BECALM_S);
    check_eq_u64(policy.retry_on,
                 BECALM_OUTCOME_BIT(BECALM_OUTCOME_BROKEN) | BECALM_OUTCOME_BIT(BECALM_OUTCOME_LATE) |
                     BECALM_OUTCOME_BIT(BECALM_OUTCOME_REJECTED) | BECALM_OUTCOME_BIT(BECALM_OUTCOME_RATE_LIMITED) |
                     BECALM_OUTCOME_BIT(BECALM_OUTCOME_REFUSED) | BECALM_OUTCOME_BIT(BECALM_OUTCOME_TIMED_OUT));
    check_eq_u64(policy.budget.kind, BECALM_BUDGET_EARNED);
    check_eq_u64(policy.limit.kind, BECALM_LIMIT_AIMD);
    check_true(!policy.hedge.enabled && !policy.throttle.enabled && !policy.rate.enabled && !policy.shadow);
}

static void check_refused(const struct becalm_policy *policy, const char *part, const char *field)
{
    struct becalm_complaint complaint;
    check_eq_u64((uint64_t)(int64_t)becalm_policy_check(policy, &complaint), (uint64_t)(int64_t)BECALM_EINVAL);
    check_eq_u64((uint64_t)(int64_t)becalm_policy_check(policy, NULL), (uint64_t)(int64_t)BECALM_EINVAL);
    check_eq_str(complaint.part, part);
    check_true(strncmp(complaint.sentence, field, strlen(field)) == 0);
}

static void test_policy__bad_fields_are_named_with_their_part(void **state)
{
    (void)state;
    struct becalm_policy good;
    becalm_policy_defaults(&good);
    struct becalm_policy bad = good;
    bad.max_retries = BECALM_RETRIES_MAX + 1;
    check_refused(&bad, "", "max_retries");
    bad = good;
    bad.attempt_timeout = 0;
    check_refused(&bad, "", "attempt_timeout");
    bad.attempt_timeout = BECALM_NEVER;
    check_refused(&bad, "", "attempt_timeout");
    bad = good;
    bad.deadline = 0;
    check_refused(&bad, "", "deadline");
    bad = good;
    bad.retry_on = UINT32_MAX;
    check_refused(&bad, "", "retry_on");
    bad = good;
    bad.backoff.cap = 0;
    check_refused(&bad, "backoff", "cap");
    bad = good;
    becalm_budget_defaults(&bad.budget, BECALM_BUDGET_RATIO);
    bad.budget.window = 0;
    check_refused(&bad, "budget", "window");
    bad = good;
    becalm_budget_defaults(&bad.service_budget, BECALM_BUDGET_RATIO);
    bad.service_budget.window = 0;
    check_refused(&bad, "service_budget", "window");
    bad = good;
    bad.breaker.probes = 0;
    check_refused(&bad, "breaker", "probes");
    bad = good;
    bad.throttle.window = 0;
    check_refused(&bad, "throttle", "window");
    bad = good;
    bad.limit.max = 0;
    check_refused(&bad, "limit", "max");
    bad = good;
    bad.gate.max_wait = 0;
    check_refused(&bad, "gate", "max_wait");
    bad = good;
    bad.hedge.max = 99;
    check_refused(&bad, "hedge", "max");
    bad = good;
    bad.outlier.min_calls = 0;
    check_refused(&bad, "outlier", "min_calls");
}

static void test_policy__no_deadline_is_a_deadline_too(void **state)
{
    (void)state;
    struct becalm_policy policy;
    becalm_policy_defaults(&policy);
    policy.deadline = BECALM_NEVER;
    check_eq_u64((uint64_t)becalm_policy_check(&policy, NULL), 0);
}

BECALM_TESTS(cmocka_unit_test(test_policy__the_defaults_pass_their_own_check),
             cmocka_unit_test(test_policy__bad_fields_are_named_with_their_part),
             cmocka_unit_test(test_policy__no_deadline_is_a_deadline_too))
