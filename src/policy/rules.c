/* SPDX-License-Identifier: MIT */
#include "rules.h"

#include <string.h>

#include "apply.h"
#include "config_data.h"
#include "explain.h"
#include "section/store.h"
#include "service/fallback.h"

static void rules_defaults(struct becalm_rules *rules, struct becalm_origins *origins)
{
    memset(rules, 0, sizeof *rules);
    becalm_policy_defaults(&rules->policy);
    rules->policy.attempt_timeout = BECALM_RULES_LEAST;
    rules->policy.timeout_kind = BECALM_TIMEOUT_LEARNED;
    rules->policy.retry_overdue = true;
    rules->policy.deadline = BECALM_RULES_LONGEST;
    becalm_retry_on_defaults(&rules->retry_on);
    rules->connect_timeout = BECALM_S;
    rules->key_scope = "credentials";
    rules->replay = true;
    rules->auto_limit = true;
    fallback_defaults(&rules->fallback);
    rules->origins = origins;
}

/* Values that are valid alone and contradict each other: the key of the error, and its correction. */
struct contradiction {
    bool is;
    const char *key;
    const char *other; /* the key of the error if the first is not written */
    const char *message;
};

static bool contradiction_report(struct loader *l, const struct becalm_rules *rules, const char *whose,
                                 const struct contradiction *c)
{
    if (!c->is) {
        return false;
    }
    struct becalm_origin origin = becalm_rules_origin(rules, c->key);
    if (origin.level == BECALM_FROM_BUILT_IN) {
        origin = becalm_rules_origin(rules, c->other);
    }
    loader_error(l, origin.line, origin.column, "conflict", "%s: %s", whose, c->message);
    return true;
}

/* A key of another kind than the chosen one has no effect, although its author expects one. */
static void unused_warn(struct loader *l, const struct becalm_rules *rules, const char *whose)
{
    for (uint32_t i = 0; i < schema_rules.count; i++) {
        const struct schema_key *key = &schema_rules.keys[i];
        struct becalm_origin origin = rules->origins->key[i];
        struct becalm_origin preset = becalm_rules_origin(rules, "breaker.preset");
        bool implied = origin.line == preset.line && origin.column == preset.column;
        if (origin.level == l->level && !implied && explain_hides(rules, key)) {
            becalm_diag_add(l->diags, BECALM_WARNING, l->name, origin.line, origin.column, "unused-key",
                            "%s: %s has no effect here, because another kind or mode is chosen; remove it", whose,
                            key->name);
        }
    }
}

/* The default deadline depends on the timeout: it is longer if attempts are not cut. */
static void deadline_settle(struct becalm_rules *rules)
{
    struct becalm_policy usual;
    if (becalm_rules_origin(rules, "deadline").level != BECALM_FROM_BUILT_IN) {
        return;
    }
    becalm_policy_defaults(&usual);
    rules->policy.deadline = rules->policy.timeout_kind == BECALM_TIMEOUT_EXACT ? usual.deadline : BECALM_RULES_LONGEST;
}

void rules_check(struct loader *l, struct becalm_rules *rules, const char *whose, uint32_t line, uint32_t column)
{
    struct becalm_policy *p = &rules->policy;
    const struct becalm_budget_policy *budget = &p->budget;
    struct becalm_complaint complaint;
    /* The file has no key for the cap of a growing open time; it is never below the open time itself. */
    p->breaker.open_cap = becalm_ns_max(p->breaker.open_cap, p->breaker.open_for);
    deadline_settle(rules);
    const struct contradiction contradictions[] = {
        {p->backoff.cap < p->backoff.base, "maxDelay", "initialDelay",
         "maxDelay is below initialDelay; the longest wait must be at least the first"},
        {p->limit.min > p->limit.max, "limit.max", "limit.min",
         "limit.max is below limit.min; write at least limit.min"},
        {budget->kind == BECALM_BUDGET_ADAPTIVE && budget->min_share_ppm > budget->max_share_ppm, "budget.maxPercent",
         "budget.minPercent", "budget.maxPercent is below budget.minPercent; write at least budget.minPercent"},
        {budget->kind == BECALM_BUDGET_AWS && budget->retry_cost > budget->capacity, "budget.capacity",
         "budget.retryCost", "budget.capacity can't pay for one retry; it must be at least budget.retryCost"},
        {budget->kind == BECALM_BUDGET_AWS && budget->timeout_cost > budget->capacity, "budget.capacity",
         "budget.timeoutCost",
         "budget.capacity can't pay for one retry after a timeout; it must be at least budget.timeoutCost"},
        {budget->kind == BECALM_BUDGET_RATIO && budget->of_attempts && budget->share_ppm >= 1000000, "budget.percent",
         "budget.of", "retries can't be all attempts; write a budget.percent below 100, or of: first"},
        {rules->key == BECALM_KEY_REQUIRED && !rules->replay, "replay", "idempotencyKey",
         "idempotencyKey: required needs the whole body before the key is looked up; remove replay: off"},
        {rules->key == BECALM_KEY_ENFORCED && !rules->replay, "replay", "idempotencyKey",
         "idempotencyKey: enforced needs the whole body before the key is looked up; remove replay: off"},
        {p->breaker.window_kind == BECALM_WINDOW_TIME && p->breaker.window_size > 86400, "breaker.slidingWindowSize",
         "breaker.slidingWindowType", "breaker.slidingWindowSize is in seconds for TIME_BASED; write at most 86400"},
    };
    store_inherit(l, rules, whose);
    fallback_settle(l, rules, whose);
    bool found = false;
    for (size_t i = 0; i < sizeof contradictions / sizeof *contradictions; i++) {
        found = contradiction_report(l, rules, whose, &contradictions[i]) || found;
    }
    unused_warn(l, rules, whose);
    if (!found && becalm_policy_check(p, &complaint) != 0) {
        loader_error(l, line, column, "conflict", "%s: %s.%s", whose, complaint.part, complaint.sentence);
    }
}

bool rules_inherit(struct loader *l, struct becalm_rules *rules, const struct becalm_rules *from)
{
    struct becalm_origins *origins = arena_take(l->arena, sizeof *origins);
    if (origins == NULL) {
        return loader_no_memory(l);
    }
    *origins = *from->origins;
    *rules = *from;
    rules->origins = origins;
    return true;
}

struct space rules_space(struct becalm_rules *rules)
{
    /* The origins are const for all code except the loader, which fills them. */
    return (struct space){&schema_rules, rules, ((struct becalm_origins *)(uintptr_t)rules->origins)->key};
}

bool rules_load(struct loader *l, struct becalm_rules *rules, const char *whose, const struct yaml_node *node)
{
    struct becalm_origins *origins = arena_take(l->arena, sizeof *origins);
    if (origins == NULL) {
        return loader_no_memory(l);
    }
    rules_defaults(rules, origins);
    struct space spaces[] = {rules_space(rules)};
    struct place place = {.spaces = spaces, .space_count = 1, .level = BECALM_FROM_DEFAULTS, .what = whose};
    if (node != NULL && apply_mapping(l, &place, node)) {
        l->level = BECALM_FROM_DEFAULTS;
        rules_check(l, rules, whose, node->line, node->column);
    }
    return !l->no_memory;
}

/* The policy as the engine runs it, before the role is applied. */
static void rules_settle(const struct becalm_rules *rules, struct becalm_policy *policy)
{
    *policy = rules->policy;
    policy->service_budget = rules->service_budget == NULL ? rules->policy.budget : *rules->service_budget;
    if (rules->level == BECALM_LEVEL_SERVICE) {
        policy->budget = policy->service_budget; /* there is only one budget */
    }
    policy->retry_on = becalm_retry_on_outcomes(&rules->retry_on);
    policy->lease.enabled = rules->shared_redis != NULL;
}

void rules_caller_policy(const struct becalm_rules *rules, struct becalm_policy *policy)
{
    rules_settle(rules, policy);
    if (rules->auto_limit) {
        policy->limit.kind = BECALM_LIMIT_AIMD;
    }
    becalm_gate_for_caller(&policy->gate);
}

void becalm_rules_policy(const struct becalm_config *config, const struct becalm_rules *rules,
                         struct becalm_policy *policy)
{
    const struct becalm_settings *settings = &config->settings;
    rules_settle(rules, policy);
    if (rules->auto_limit) {
        policy->limit.kind = rules->role == BECALM_ROLE_GATEWAY ? BECALM_LIMIT_SLOTS : BECALM_LIMIT_AIMD;
    }
    if (rules->role == BECALM_ROLE_SIDECAR) {
        becalm_gate_for_caller(&policy->gate);
    }
    if (rules->role == BECALM_ROLE_GATEWAY && !settings->gateway_retries) {
        policy->max_retries = 0;
        policy->hedge.enabled = false;
    }
}
