/* SPDX-License-Identifier: MIT */
#include "scenario_policy.h"

#include <string.h>

#include "policy/apply.h"
#include "policy/rules.h"
#include "scenario_schema.h"

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

static bool is_of_world(const struct yaml_node *key)
{
    for (size_t i = 0; i < schema_scenario_policy.count; i++) {
        if (yaml_is(key, schema_scenario_policy.keys[i].name)) {
            return true;
        }
    }
    return false;
}

/* A copy of a mapping with only the keys that change the world around the policy (`carries`, `marks`), or with all
 * other keys. NULL: out of memory. */
static const struct yaml_node *part_of(struct arena *arena, const struct yaml_node *from, bool of_world)
{
    struct yaml_node *node = arena_take(arena, sizeof *node);
    struct yaml_node **key = arena_take(arena, (from->count + 1) * sizeof *key);
    struct yaml_node **item = arena_take(arena, (from->count + 1) * sizeof *item);
    if (node == NULL || key == NULL || item == NULL) {
        return NULL;
    }
    *node = *from;
    node->count = 0;
    node->key = key;
    node->item = item;
    for (uint32_t i = 0; i < from->count; i++) {
        if (is_of_world(from->key[i]) == of_world) {
            key[node->count] = from->key[i];
            item[node->count++] = from->item[i];
        }
    }
    return node;
}

/* Reads the keys that change the world around the policy; returns all other keys. NULL: out of memory. */
static const struct yaml_node *world_load(struct loader *l, struct scenario_policy *policy,
                                          const struct yaml_node *value)
{
    struct space spaces[] = {{&schema_scenario_policy, policy, NULL}};
    struct place place = {
        .spaces = spaces, .space_count = 1, .what = "a policy of a scenario", .manual = SCENARIO_MANUAL};
    policy->carries = true;
    policy->joins = true;
    policy->marks_always = false;
    if (value->kind != YAML_MAPPING) {
        return value;
    }
    const struct yaml_node *world = part_of(l->arena, value, true);
    if (world == NULL) {
        return NULL;
    }
    (void)apply_mapping(l, &place, world);
    return part_of(l->arena, value, false);
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
    const struct yaml_node *rest = world_load(l, policy, value);
    if (rest == NULL) {
        return loader_no_memory(l);
    }
    if (!rules_load(l, &rules, policy->name, rest)) {
        return false;
    }
    rules_caller_policy(&rules, &policy->policy);
    policy->level = rules.level;
    policy->auto_limit = rules.auto_limit;
    policy->has_timeout = becalm_rules_origin(&rules, "attemptTimeout").level != BECALM_FROM_BUILT_IN;
    policy->has_deadline = becalm_rules_origin(&rules, "deadline").level != BECALM_FROM_BUILT_IN;
    return true;
}
