/* SPDX-License-Identifier: MIT */
#include "reference.h"

#include <string.h>

#define TIMEOUT_MAX (24 * 3600 * BECALM_S) /* the engine's: as good as none */

static const struct reference references[] = {
    {"none", "no retries"},
    {"naive", "retries at once, without jitter or budget"},
    {"jitter", "retries with full jitter, 100ms to 10s"},
    {"breaker", "jitter, and a breaker: 50 % of at least 20 calls in 10 s, open 5 s, 5 probes"},
    {"envoy", "jitter, and Envoy's retry budget: 20 % of active requests, at least 3"},
    {"finagle", "jitter, and Finagle's: 20 % and 10 a second, over 10 s"},
    {"grpc", "jitter, and gRPC's throttling: 10 tokens, 0.1 per success"},
    {"sre", "jitter, and the SRE book's: 10 % of all attempts over 2 min"},
    {"sre-throttle", "jitter, and the SRE book's client-side throttling: K 2, 2 min"},
    {"aws", "jitter, and AWS's standard mode: 500 tokens, 5 per retry, 10 after a timeout"},
    {"becalm", "our default policy"},
};

const struct reference *reference_at(unsigned index)
{
    return index < sizeof references / sizeof *references ? &references[index] : NULL;
}

const char *reference_name(const struct scenario *plan, unsigned index)
{
    if (index < plan->policy_count) {
        return plan->policies[index].name;
    }
    if (plan->policy_count > 0 && !plan->references) {
        return NULL;
    }
    const struct reference *reference = reference_at(index - plan->policy_count);
    return reference == NULL ? NULL : reference->name;
}

/* Retries as many people write them: nothing else is switched on. */
static void plain(struct becalm_policy *policy, const struct scenario *plan)
{
    becalm_policy_defaults(policy);
    policy->max_retries = plan->attempts - 1;
    policy->budget.kind = BECALM_BUDGET_NONE;
    policy->limit.kind = BECALM_LIMIT_NONE;
    policy->breaker.enabled = false;
    policy->outlier.enabled = false;
    policy->restart.enabled = false;
}

static bool remedy(const char *name, struct becalm_policy *policy)
{
    if (strcmp(name, "none") == 0) {
        policy->max_retries = 0;
    } else if (strcmp(name, "naive") == 0) {
        policy->backoff.jitter = BECALM_JITTER_NONE;
        policy->backoff.base = policy->backoff.cap = 0;
    } else if (strcmp(name, "breaker") == 0) {
        policy->breaker.enabled = true;
        policy->breaker.failure_share_ppm = 500000;
        policy->breaker.open_for = 5 * BECALM_S;
        policy->breaker.probes = 5;
    } else if (strcmp(name, "envoy") == 0) {
        becalm_budget_defaults(&policy->budget, BECALM_BUDGET_CONCURRENCY);
    } else if (strcmp(name, "finagle") == 0) {
        becalm_budget_defaults(&policy->budget, BECALM_BUDGET_RATIO);
        policy->budget.share_ppm = 200000;
        policy->budget.min_per_second = 10;
        policy->budget.window = 10 * BECALM_S;
    } else if (strcmp(name, "grpc") == 0) {
        becalm_budget_defaults(&policy->budget, BECALM_BUDGET_GRPC);
    } else if (strcmp(name, "sre") == 0) {
        becalm_budget_defaults(&policy->budget, BECALM_BUDGET_RATIO);
        policy->budget.of_attempts = true;
    } else if (strcmp(name, "sre-throttle") == 0) {
        policy->throttle.enabled = true;
    } else if (strcmp(name, "aws") == 0) {
        becalm_budget_defaults(&policy->budget, BECALM_BUDGET_AWS);
    } else {
        return strcmp(name, "jitter") == 0;
    }
    return true;
}

becalm_ns reference_timeout(const struct scenario *plan)
{
    return becalm_ns_min(plan->timeout, TIMEOUT_MAX);
}

/* Applies the settings that the scenario has for every hop, with any policy; and those of the gate, which always runs
 * Becalm's policy. */
static void settle(const struct scenario *plan, struct becalm_policy *hop, struct becalm_policy *gate)
{
    becalm_ns timeout = reference_timeout(plan);
    hop->attempt_timeout = timeout;
    hop->deadline = BECALM_NEVER;
    becalm_policy_defaults(gate);
    gate->attempt_timeout = timeout;
    gate->deadline = BECALM_NEVER;
    gate->retry_overdue = true;
    becalm_limit_defaults(&gate->limit, BECALM_LIMIT_SLOTS);
}

/* The same for a policy that carries deadlines and marks, and has timeouts of its own. */
static void own_options(const struct becalm_policy *policy, const struct scenario *plan, struct becalm_policy *hop,
                        struct becalm_policy *gate, struct world_options *options)
{
    *hop = *policy;
    settle(plan, hop, gate);
    hop->attempt_timeout = policy->attempt_timeout;
    hop->deadline = policy->deadline;
    options->policy = hop;
    options->policy_to = NULL;
    options->gate_policy = gate;
    options->carries_deadlines = true;
    options->carries_marks = true;
    options->joins = true;
}

/* False: the scenario has no policy of this name. */
static bool scenario_options(const char *name, const struct scenario *plan, struct becalm_policy *hop,
                             struct becalm_policy *gate, struct world_options *options)
{
    for (uint32_t i = 0; i < plan->policy_count; i++) {
        const struct scenario_policy *own = &plan->policies[i];
        if (strcmp(own->name, name) == 0) {
            own_options(&own->policy, plan, hop, gate, options);
            if (!own->has_timeout) {
                hop->attempt_timeout = gate->attempt_timeout;
                hop->timeout_kind = BECALM_TIMEOUT_EXACT;
            }
            options->level = own->level;
            options->auto_limit = own->auto_limit;
            options->carries_deadlines = options->carries_marks = own->carries;
            options->joins = own->joins;
            options->marks_always = own->marks_always;
            hop->deadline = own->has_deadline ? hop->deadline : gate->deadline;
            return true;
        }
    }
    return false;
}

bool reference_options(const char *name, const struct scenario *plan, struct becalm_policy *hop,
                       struct becalm_policy *gate, struct world_options *options)
{
    bool ours = strcmp(name, "becalm") == 0;
    if (scenario_options(name, plan, hop, gate, options)) {
        return true;
    }
    plain(hop, plan);
    if (ours) {
        becalm_policy_defaults(hop);
        hop->retry_overdue = true;
    } else if (!remedy(name, hop)) {
        return false;
    }
    settle(plan, hop, gate);
    options->policy = hop;
    options->policy_to = NULL;
    options->gate_policy = gate;
    options->auto_limit = ours;
    options->carries_deadlines = ours;
    options->carries_marks = ours;
    options->joins = ours;
    return true;
}
