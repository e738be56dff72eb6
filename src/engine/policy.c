/* SPDX-License-Identifier: MIT */
#include <becalm/policy.h>

#include <string.h>

static uint32_t outcomes_listed(void)
{
    uint32_t set = 0;
    for (unsigned kind = 0; kind < BECALM_OUTCOME_COUNT; kind++) {
        if (becalm_outcome_traits((enum becalm_outcome_kind)kind)->listed) {
            set |= BECALM_OUTCOME_BIT(kind);
        }
    }
    return set;
}

void becalm_policy_defaults(struct becalm_policy *policy)
{
    memset(policy, 0, sizeof *policy);
    policy->max_retries = 2;
    policy->attempt_timeout = 5 * BECALM_S;
    policy->deadline = 16 * BECALM_S;
    policy->retry_on = outcomes_listed();
    becalm_backoff_defaults(&policy->backoff);
    becalm_budget_defaults(&policy->budget, BECALM_BUDGET_EARNED);
    becalm_budget_defaults(&policy->service_budget, BECALM_BUDGET_EARNED);
    becalm_breaker_defaults(&policy->breaker);
    becalm_throttle_defaults(&policy->throttle);
    becalm_limit_defaults(&policy->limit, BECALM_LIMIT_AIMD);
    becalm_gate_defaults(&policy->gate);
    becalm_hedge_defaults(&policy->hedge);
    becalm_outlier_defaults(&policy->outlier);
}

static const char *own_fields_wrong(const struct becalm_policy *policy)
{
    if (policy->max_retries > BECALM_RETRIES_MAX) {
        return "max_retries must be at most 1,000";
    }
    if (policy->attempt_timeout < BECALM_MS) {
        return "attempt_timeout must be at least 1 ms";
    }
    if (policy->deadline < BECALM_MS) {
        return "deadline must be at least 1 ms";
    }
    if (policy->retry_on >= BECALM_OUTCOME_BIT(BECALM_OUTCOME_COUNT)) {
        return "retry_on must be a set of BECALM_OUTCOME_BIT()";
    }
    return NULL;
}

int becalm_policy_check(const struct becalm_policy *policy, const char **why)
{
    const char *wrong = own_fields_wrong(policy);
    int rc = wrong == NULL ? 0 : BECALM_EINVAL;
    if (rc == 0) {
        rc = becalm_backoff_check(&policy->backoff, &wrong);
    }
    if (rc == 0) {
        rc = becalm_budget_check(&policy->budget, &wrong);
    }
    if (rc == 0) {
        rc = becalm_budget_check(&policy->service_budget, &wrong);
    }
    if (rc == 0) {
        rc = becalm_breaker_check(&policy->breaker, &wrong);
    }
    if (rc == 0) {
        rc = becalm_throttle_check(&policy->throttle, &wrong);
    }
    if (rc == 0) {
        rc = becalm_limit_check(&policy->limit, &wrong);
    }
    if (rc == 0) {
        rc = becalm_gate_check(&policy->gate, &wrong);
    }
    if (rc == 0) {
        rc = becalm_hedge_check(&policy->hedge, &wrong);
    }
    if (rc == 0) {
        rc = becalm_outlier_check(&policy->outlier, &wrong);
    }
    if (why != NULL) {
        *why = wrong;
    }
    return rc;
}
