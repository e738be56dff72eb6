/* SPDX-License-Identifier: MIT */
#include "own.h"

#include "reference.h"

#include <stdlib.h>
#include <string.h>

/* What a policy is made of, and for whom. */
struct making {
    const struct becalm_config *config;
    const struct scenario *plan;
    bool built_in;
};

/* Timeouts that nobody has written are the scenario's if the policy is built in. */
static void rules_policy(const struct making *m, const struct becalm_rules *rules, struct becalm_policy *policy)
{
    becalm_rules_policy(m->config, rules, policy);
    if (m->built_in && becalm_rules_origin(rules, "attemptTimeout").level == BECALM_FROM_BUILT_IN) {
        policy->attempt_timeout = reference_timeout(m->plan);
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

static void service_fill(struct own *own, const struct making *m, uint32_t i)
{
    const struct becalm_config *config = m->config;
    const struct scenario *plan = m->plan;
    const struct scenario_service *service = &plan->services[i];
    const struct becalm_service *file = becalm_config_find(config, service->name);
    uint32_t target = world_target(plan, i, 0);
    const struct becalm_rules *rules = file == NULL ? becalm_config_defaults(config) : &file->rules;
    own->level_to[target] = rules->level;
    own->auto_to[target] = rules->auto_limit;
    if (file != NULL) {
        caller_policy(m, &file->rules, &own->policy[target]);
        own->policy_to[target] = &own->policy[target];
        gate_policy(m, &file->rules, &own->gate_policy[target]);
        own->gate_to[target] = &own->gate_policy[target];
    }
    for (uint32_t e = 0; e < service->endpoint_count; e++) {
        const struct becalm_endpoint *endpoint = file == NULL ? NULL : endpoint_find(file, service->endpoints[e].name);
        uint32_t at = target + 1 + e;
        own->policy_to[at] = own->policy_to[target];
        own->auto_to[at] = own->auto_to[target];
        own->gate_to[at] = own->gate_to[target];
        own->level_to[at] = m->built_in ? own->level_to[target] : BECALM_LEVEL_SERVICE;
        if (endpoint != NULL) {
            caller_policy(m, &endpoint->rules, &own->policy[at]);
            own->policy_to[at] = &own->policy[at];
            gate_policy(m, &endpoint->rules, &own->gate_policy[at]);
            own->gate_to[at] = &own->gate_policy[at];
            own->level_to[at] = endpoint->rules.level;
            own->auto_to[at] = endpoint->rules.auto_limit;
        }
    }
}

static int make(struct own *own, const struct making *m, struct world_options *options)
{
    const struct becalm_config *config = m->config;
    const struct scenario *plan = m->plan;
    const struct becalm_rules *defaults = becalm_config_defaults(config);
    uint32_t targets = world_target(plan, plan->service_count, 0);
    caller_policy(m, defaults, &own->hop);
    gate_policy(m, defaults, &own->gate);
    own->policy = calloc(targets, sizeof *own->policy);
    own->policy_to = calloc(targets, sizeof *own->policy_to);
    own->level_to = calloc(targets, sizeof *own->level_to);
    own->auto_to = calloc(targets, sizeof *own->auto_to);
    own->gate_policy = calloc(targets, sizeof *own->gate_policy);
    own->gate_to = calloc(targets, sizeof *own->gate_to);
    if (own->policy == NULL || own->policy_to == NULL || own->level_to == NULL || own->auto_to == NULL ||
        own->gate_policy == NULL || own->gate_to == NULL) {
        return BECALM_ENOMEM;
    }
    for (uint32_t i = 0; i < plan->service_count; i++) {
        service_fill(own, m, i);
    }
    options->policy = &own->hop;
    options->policy_to = own->policy_to;
    options->level_to = own->level_to;
    options->auto_limit_to = own->auto_to;
    options->gate_policy = &own->gate;
    options->gate_policy_to = own->gate_to;
    options->carries_deadlines = true;
    options->carries_marks = true;
    return 0;
}

int own_make(struct own *own, const struct becalm_config *config, const struct scenario *plan,
             struct world_options *options)
{
    const struct making making = {config, plan, false};
    return make(own, &making, options);
}

int own_make_built_in(struct own *own, const struct becalm_config *config, const struct scenario *plan,
                      struct world_options *options)
{
    const struct making making = {config, plan, true};
    return make(own, &making, options);
}

void own_free(struct own *own)
{
    free(own->policy);
    free(own->policy_to);
    free(own->level_to);
    free(own->auto_to);
    free(own->gate_policy);
    free(own->gate_to);
}
