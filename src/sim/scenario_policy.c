/* SPDX-License-Identifier: MIT */
#include "scenario_policy.h"

#include <string.h>

/* A name that could not be typed, or would mean something else. */
static void name_check(struct loader *l, const struct yaml_node *key)
{
    static const char ending[] = ".yaml";
    size_t length = strlen(key->text);
    bool is_path = strchr(key->text, '/') != NULL ||
                   (length >= strlen(ending) && strcmp(key->text + length - strlen(ending), ending) == 0);
    if (is_path) {
        loader_error(l, key->line, key->column, "conflict",
                     "policy \"%.64s\" would be taken for a file; write a name without / and .yaml", key->text);
    } else if (strcmp(key->text, SCENARIO_POLICY_OURS) == 0 || strcmp(key->text, SCENARIO_POLICY_ALL) == 0) {
        loader_error(l, key->line, key->column, "conflict", "policy \"%.64s\": that name is taken; write another",
                     key->text);
    }
}

bool scenario_policy_load(struct loader *l, struct scenario_policy *policy, const struct yaml_node *key,
                          const struct yaml_node *value)
{
    struct becalm_rules rules;
    policy->name = arena_text(l->arena, key->text);
    if (policy->name == NULL) {
        return loader_no_memory(l);
    }
    if (name_is_fine(l, key, "policy")) {
        name_check(l, key);
    }
    if (!rules_load(l, &rules, policy->name, value)) {
        return false;
    }
    rules_caller_policy(&rules, &policy->policy);
    policy->level = rules.level;
    policy->has_timeout = becalm_rules_origin(&rules, "attemptTimeout").level != BECALM_FROM_BUILT_IN;
    policy->has_deadline = becalm_rules_origin(&rules, "deadline").level != BECALM_FROM_BUILT_IN;
    return true;
}
