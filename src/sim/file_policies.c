/* SPDX-License-Identifier: MIT */
#include "file_policies.h"

#include "reference.h"

#include <stdlib.h>
#include <string.h>

/* The inputs of a policy, and the hop that it is for. */
struct making {
    const struct becalm_config *config;
    const struct scenario *plan;
    bool built_in;
};

/* If the policy is built in, timeouts that it does not set are the scenario's. */
static void rules_policy(const struct making *m, const struct becalm_rules *rules, struct becalm_policy *policy)
{
    becalm_rules_policy(m->config, rules, policy);
    if (m->built_in && becalm_rules_origin(rules, "attemptTimeout").level == BECALM_FROM_BUILT_IN) {
        policy->attempt_timeout = reference_timeout(m->plan);
        policy->timeout_kind = BECALM_TIMEOUT_EXACT;
    }
    if (m->built_in && becalm_rules_origin(rules, "deadline").level == BECALM_FROM_BUILT_IN) {
        policy->deadline = BECALM_NEVER;
    }
}

static void caller_policy(const struct making *m, const struct becalm_rules *rules, struct becalm_policy *policy)
{
    rules_policy(m, rules, policy);
    if (rules->auto_limit) {
        policy->limit.kind = BECALM_LIMIT_AIMD;
    }
    becalm_gate_for_caller(&policy->gate);
}

static void gate_policy(const struct making *m, const struct becalm_rules *rules, struct becalm_policy *policy)
{
    rules_policy(m, rules, policy);
    if (rules->auto_limit) {
        policy->limit.kind = BECALM_LIMIT_SLOTS;
    }
    if (!becalm_config_settings(m->config)->gateway_retries) {
        policy->max_retries = 0;
        policy->hedge.enabled = false;
    }
    policy->gate.caller = false;
}

static const struct becalm_endpoint *endpoint_find(const struct becalm_service *service, const char *name)
{
    for (uint32_t i = 0; i < service->endpoint_count; i++) {
        if (strcmp(service->endpoints[i].name, name) == 0) {
            return &service->endpoints[i];
        }
    }
    return NULL;
}

static void service_fill(struct file_policies *policies, const struct making *m, uint32_t i)
{
    const struct becalm_config *config = m->config;
    const struct scenario *plan = m->plan;
    const struct scenario_service *service = &plan->services[i];
    const struct becalm_service *file = becalm_config_find(config, service->name);
    uint32_t target = world_target(plan, i, 0);
    const struct becalm_rules *rules = file == NULL ? becalm_config_defaults(config) : &file->rules;
    policies->level_to[target] = rules->level;
    policies->auto_to[target] = rules->auto_limit;
    if (file != NULL) {
        caller_policy(m, &file->rules, &policies->policy[target]);
        policies->policy_to[target] = &policies->policy[target];
        gate_policy(m, &file->rules, &policies->gate_policy[target]);
        policies->gate_to[target] = &policies->gate_policy[target];
    }
    for (uint32_t e = 0; e < service->endpoint_count; e++) {
        const struct becalm_endpoint *endpoint = file == NULL ? NULL : endpoint_find(file, service->endpoints[e].name);
        uint32_t at = target + 1 + e;
        policies->policy_to[at] = policies->policy_to[target];
        policies->auto_to[at] = policies->auto_to[target];
        policies->gate_to[at] = policies->gate_to[target];
        policies->level_to[at] = m->built_in ? policies->level_to[target] : BECALM_LEVEL_SERVICE;
        if (endpoint != NULL) {
            caller_policy(m, &endpoint->rules, &policies->policy[at]);
            policies->policy_to[at] = &policies->policy[at];
            gate_policy(m, &endpoint->rules, &policies->gate_policy[at]);
            policies->gate_to[at] = &policies->gate_policy[at];
            policies->level_to[at] = endpoint->rules.level;
            policies->auto_to[at] = endpoint->rules.auto_limit;
        }
    }
}

static int make(struct file_policies *policies, const struct making *m, struct world_options *options)
{
    const struct becalm_config *config = m->config;
    const struct scenario *plan = m->plan;
    const struct becalm_rules *defaults = becalm_config_defaults(config);
    uint32_t targets = world_target(plan, plan->service_count, 0);
    caller_policy(m, defaults, &policies->hop);
    gate_policy(m, defaults, &policies->gate);
    policies->policy = calloc(targets, sizeof *policies->policy);
    policies->policy_to = calloc(targets, sizeof *policies->policy_to);
    policies->level_to = calloc(targets, sizeof *policies->level_to);
    policies->auto_to = calloc(targets, sizeof *policies->auto_to);
    policies->gate_policy = calloc(targets, sizeof *policies->gate_policy);
    policies->gate_to = calloc(targets, sizeof *policies->gate_to);
    if (policies->policy == NULL || policies->policy_to == NULL || policies->level_to == NULL ||
        policies->auto_to == NULL || policies->gate_policy == NULL || policies->gate_to == NULL) {
        return BECALM_ENOMEM;
    }
    for (uint32_t i = 0; i < plan->service_count; i++) {
        service_fill(policies, m, i);
    }
    options->policy = &policies->hop;
    options->policy_to = policies->policy_to;
    options->level_to = policies->level_to;
    options->auto_limit_to = policies->auto_to;
    options->gate_policy = &policies->gate;
    options->gate_policy_to = policies->gate_to;
    options->carries_deadlines = true;
    options->carries_marks = true;
    options->joins = becalm_config_settings(m->config)->join != 0;
    return 0;
}

int file_policies_make(struct file_policies *policies, const struct becalm_config *config, const struct scenario *plan,
                       struct world_options *options)
{
    const struct making making = {config, plan, false};
    return make(policies, &making, options);
}

int file_policies_make_built_in(struct file_policies *policies, const struct becalm_config *config,
                                const struct scenario *plan, struct world_options *options)
{
    const struct making making = {config, plan, true};
    return make(policies, &making, options);
}

void file_policies_free(struct file_policies *policies)
{
    free(policies->policy);
    free(policies->policy_to);
    free(policies->level_to);
    free(policies->auto_to);
    free(policies->gate_policy);
    free(policies->gate_to);
}
