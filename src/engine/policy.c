/* SPDX-License-Identifier: MIT */
#include <becalm/policy.h>

#include <string.h>

#define ATTEMPT_MAX (24 * 3600 * BECALM_S)

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
    becalm_restart_defaults(&policy->restart);
    becalm_lease_defaults(&policy->lease);
}

static const char *own_fields_wrong(const struct becalm_policy *policy)
{
    if (policy->max_retries > BECALM_RETRIES_MAX) {
        return "max_retries must be at most 1,000";
    }
    if (policy->attempt_timeout < BECALM_MS || policy->attempt_timeout > ATTEMPT_MAX) {
        return "attempt_timeout must be from 1 ms to 24 h";
    }
    if (policy->deadline < BECALM_MS) {
        return "deadline must be at least 1 ms";
    }
    if (policy->retry_on >= BECALM_OUTCOME_BIT(BECALM_OUTCOME_COUNT)) {
        return "retry_on must be a set of BECALM_OUTCOME_BIT()";
    }
    return NULL;
}

/* The first part with something wrong; NULL: none. */
static const char *part_wrong(const struct becalm_policy *policy, const char **sentence)
{
    if (becalm_backoff_check(&policy->backoff, sentence) != 0) {
        return "backoff";
    }
    if (becalm_budget_check(&policy->budget, sentence) != 0) {
        return "budget";
    }
    if (becalm_budget_check(&policy->service_budget, sentence) != 0) {
        return "service_budget";
    }
    if (becalm_breaker_check(&policy->breaker, sentence) != 0) {
        return "breaker";
    }
    if (becalm_throttle_check(&policy->throttle, sentence) != 0) {
        return "throttle";
    }
    if (becalm_limit_check(&policy->limit, sentence) != 0) {
        return "limit";
    }
    if (becalm_gate_check(&policy->gate, sentence) != 0) {
        return "gate";
    }
    if (becalm_hedge_check(&policy->hedge, sentence) != 0) {
        return "hedge";
    }
    if (becalm_outlier_check(&policy->outlier, sentence) != 0) {
        return "outlier";
    }
    if (becalm_lease_check(&policy->lease, sentence) != 0) {
        return "lease";
    }
    return NULL;
}

int becalm_policy_check(const struct becalm_policy *policy, struct becalm_complaint *complaint)
{
    const char *sentence = own_fields_wrong(policy);
    const char *part = sentence == NULL ? part_wrong(policy, &sentence) : "";
    if (complaint != NULL) {
        *complaint = (struct becalm_complaint){part, part == NULL ? NULL : sentence};
    }
    return part == NULL ? 0 : BECALM_EINVAL;
}
