/* SPDX-License-Identifier: MIT */
#include "unknown_key.h"

#include <stdio.h>
#include <string.h>

#include "value.h"

#define WHERE_MAX 128

/* The keys that are allowed at that place, without their prefix. */
struct known {
    size_t count;
    char name[SCHEMA_KEYS_MAX][64];
    const char *at[SCHEMA_KEYS_MAX];
};

static void known_add(struct known *known, const char *name, size_t length)
{
    if (known->count == SCHEMA_KEYS_MAX) {
        return;
    }
    char *copy = known->name[known->count];
    (void)snprintf(copy, sizeof known->name[0], "%.*s", (int)length, name);
    if (known->count == 0 || strcmp(copy, known->name[known->count - 1]) != 0) { /* keys of a mapping stand together */
        known->at[known->count++] = copy;
    }
}

static void known_collect(struct known *known, const struct place *place, const char *prefix)
{
    size_t length = strlen(prefix);
    known->count = 0;
    for (uint32_t i = 0; i < place->space_count; i++) {
        const struct schema *schema = place->spaces[i].schema;
        for (uint32_t k = 0; k < schema->count; k++) {
            const char *name = schema->keys[k].name;
            if (strncmp(name, prefix, length) == 0) {
                known_add(known, name + length, strcspn(name + length, "."));
            }
        }
    }
    for (size_t i = 0; length == 0 && place->beside != NULL && place->beside[i] != NULL; i++) {
        known_add(known, place->beside[i], strlen(place->beside[i]));
    }
}

/* Names of keys in other systems. */
static const char *foreign_name(const char *key)
{
    static const struct {
        const char *theirs;
        const char *ours;
    } names[] = {
        {"timeout", "attemptTimeout for one attempt, deadline for the whole call"},
        {"perTryTimeout", "attemptTimeout"},
        {"retries", "maxRetries"},
        {"attempts", "maxRetries, which is one less: it counts retries"},
        {"maxAttempts", "maxRetries, which is one less: it counts retries"},
        {"retryBudget", "budget"},
        {"backoff", "initialDelay, maxDelay and multiplier"},
        {"circuitBreaker", "breaker"},
        {"outlierDetection", "outlier"},
        {"loadShedding", "gate"},
        {"hedging", "hedge"},
        {"tls", "of a listener or a service; write listen: [{address: 0.0.0.0:8443, tls: {certificates: [{cert: "
                "FILE, key: FILE}]}}]"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(key, names[i].theirs) == 0) {
            return names[i].ours;
        }
    }
    return NULL;
}

/* The same for a file that is no policy. */
static bool is_rule_elsewhere(const char *prefix, const char *key, char *text, size_t size)
{
    if (prefix[0] != '\0' || (schema_find(&schema_rules, key) == NULL && !schema_is_map(&schema_rules, key))) {
        return false;
    }
    (void)snprintf(text, size, "it is a rule of a policy: it belongs in a policy file, or under policies:");
    return true;
}

/* Says where a key of the rules belongs that was written in the wrong place; false: it is no key of the rules. */
static bool belongs_to(const struct place *place, const char *prefix, const char *key, char *text, size_t size)
{
    bool rules_here = false;
    for (uint32_t i = 0; i < place->space_count; i++) {
        rules_here = rules_here || place->spaces[i].schema == &schema_rules;
    }
    if (prefix[0] == '\0' && (strcmp(key, "services") == 0 || strcmp(key, "defaults") == 0)) {
        (void)snprintf(text, size, "%s: stands at the top of the file", key);
        return true;
    }
    if (prefix[0] == '\0' && !rules_here &&
        (schema_find(&schema_rules, key) != NULL || schema_is_map(&schema_rules, key))) {
        (void)snprintf(text, size, "it belongs under defaults: or a service");
        return true;
    }
    size_t used = 0;
    for (uint32_t i = 0; rules_here && i < schema_rules.count; i++) {
        const char *name = schema_rules.keys[i].name;
        const char *dot = strchr(name, '.');
        if (dot != NULL && strcmp(dot + 1, key) == 0 && used < size) {
            used += (size_t)snprintf(text + used, size - used, "%s%.*s: {%s: ...}",
                                     used == 0 ? "it belongs in " : " or ", (int)(dot - name), name, key);
        }
    }
    return used > 0;
}

void unknown_key(struct loader *l, const struct place *place, const char *prefix, const struct yaml_node *key)
{
    struct known known;
    char where[WHERE_MAX];
    char list[400];
    known_collect(&known, place, prefix);
    const char *near = value_nearest(key->text, known.at, known.count);
    enum becalm_severity severity = l->allow_unknown ? BECALM_WARNING : BECALM_ERROR;
    (void)snprintf(where, sizeof where, "%s%.*s", prefix[0] == '\0' ? place->what : "",
                   (int)(strlen(prefix) == 0 ? 0 : strlen(prefix) - 1), prefix);
    bool in_policy = place->manual == NULL;
    const char *ours = in_policy ? foreign_name(key->text) : NULL;
    if (ours != NULL) {
        (void)snprintf(list, sizeof list, "here it is %s", ours);
    } else if (in_policy ? belongs_to(place, prefix, key->text, list, sizeof list)
                         : is_rule_elsewhere(prefix, key->text, list, sizeof list)) {
        /* the message has been written */
    } else if (near != NULL) {
        (void)snprintf(list, sizeof list, "did you mean \"%s\"?", near);
    } else if (known.count <= 20) {
        known.at[known.count < SCHEMA_KEYS_MAX ? known.count : SCHEMA_KEYS_MAX - 1] = NULL;
        (void)snprintf(list, sizeof list, "write ");
        value_join_words(known.at, list + strlen(list), sizeof list - strlen(list));
    } else {
        (void)snprintf(list, sizeof list, "%s lists the keys", in_policy ? "becalm.yaml(5)" : place->manual);
    }
    becalm_diag_add(l->diags, severity, key->line == 0 ? "--set" : l->name, key->line == 0 ? 1 : key->line,
                    key->column == 0 ? 1 : key->column, "unknown-key", "%s has no key \"%.64s\"; %s", where, key->text,
                    list);
}
