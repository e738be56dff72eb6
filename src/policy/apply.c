/* SPDX-License-Identifier: MIT */
#include "apply.h"

#include <stdio.h>
#include <string.h>

#include "routing/match.h"
#include "setting.h"
#include "unknown_key.h"
#include "value.h"

#define NAME_MAX_BYTES 128

static void origin_set(const struct space *space, const char *name, struct becalm_origin origin)
{
    const struct schema_key *key = schema_find(space->schema, name);
    space->origins[key - space->schema->keys] = origin;
}

/* The fields that a change of the budget's kind keeps. */
static bool stays(const struct schema_key *key)
{
    return strcmp(key->name, "budget.level") == 0 ||
           strncmp(key->name, "budget.shared.", strlen("budget.shared.")) == 0;
}

/* A key that sets other keys, too. Values of a preset or a mode have that key as their origin; a kind sets its own
 * defaults, which have no place in the file. */
static void origins_follow(const struct space *space, const struct schema_key *key, struct becalm_origin origin)
{
    const char *dot = strchr(key->name, '.');
    size_t prefix = dot == NULL ? 0 : (size_t)(dot - key->name) + 1;
    struct becalm_origin rest =
        key->type == TYPE_PRESET ? origin : (struct becalm_origin){.level = BECALM_FROM_BUILT_IN};
    for (uint32_t i = 0; prefix > 0 && setting_brings_others(key) && i < space->schema->count; i++) {
        if (strncmp(space->schema->keys[i].name, key->name, prefix) == 0 && !stays(&space->schema->keys[i])) {
            space->origins[i] = rest;
        }
    }
    if (key->type == TYPE_RETRY_MODE) {
        origin_set(space, "budget.kind", origin);
        origin_set(space, "jitter", origin);
        origin_set(space, "rate.enabled", origin);
    } else if (key->type == TYPE_JITTER_FACTOR) {
        origin_set(space, "jitter", origin);
    }
}

static void apply_key(struct loader *l, const struct place *place, const struct space *space,
                      const struct schema_key *key, const struct yaml_node *node)
{
    struct setting s = {l, key, node, (unsigned char *)space->base + key->offset, space->base};
    if (node->kind == YAML_SCALAR && yaml_is_null(node)) {
        setting_wrong(&s, "a value; there is nothing after the colon");
        return;
    }
    if (setting_apply(&s) && space->origins != NULL) {
        struct becalm_origin origin = {
            .level = node->line == 0 ? BECALM_FROM_SET : place->level, .line = node->line, .column = node->column};
        origins_follow(space, key, origin);
        space->origins[key - space->schema->keys] = origin;
    }
}

static bool is_beside(const struct place *place, const char *prefix, const char *key)
{
    for (size_t i = 0; prefix[0] == '\0' && place->beside != NULL && place->beside[i] != NULL; i++) {
        if (strcmp(place->beside[i], key) == 0) {
            return true;
        }
    }
    return false;
}

static void apply_prefixed(struct loader *l, const struct place *place, const char *prefix,
                           const struct yaml_node *node);

/* One key of the file; `early` is true in the first pass, for keys that set other keys, too. */
static void apply_pair(struct loader *l, const struct place *place, const char *prefix, const struct yaml_node *mapping,
                       uint32_t i, bool early)
{
    const struct yaml_node *key = mapping->key[i];
    const struct yaml_node *value = mapping->item[i];
    char name[NAME_MAX_BYTES];
    if (is_beside(place, prefix, key->text)) {
        return;
    }
    bool fits =
        (size_t)snprintf(name, sizeof name, "%s%s", prefix, key->text) < sizeof name && strchr(key->text, '.') == NULL;
    for (uint32_t n = 0; fits && n < place->space_count; n++) {
        const struct space *space = &place->spaces[n];
        const struct schema_key *known = schema_find(space->schema, name);
        if (known != NULL) {
            if (setting_brings_others(known) == early) {
                apply_key(l, place, space, known, value);
            }
            return;
        }
        if (schema_is_map(space->schema, name)) {
            if (early) {
                return;
            }
            size_t length = strlen(name);
            if (length + 1 < sizeof name) {
                name[length] = '.';
                name[length + 1] = '\0';
                apply_prefixed(l, place, name, value);
            }
            return;
        }
    }
    if (!early) {
        unknown_key(l, place, prefix, key);
    }
}

/* jitterFactor is proportional jitter's; with another jitter beside it the file contradicts itself. */
static void jitter_check(struct loader *l, const struct yaml_node *mapping)
{
    const struct yaml_node *jitter = yaml_get(mapping, "jitter");
    if (jitter != NULL && yaml_get(mapping, "jitterFactor") != NULL && !yaml_is(jitter, "proportional")) {
        loader_error(l, jitter->line, jitter->column, "conflict",
                     "jitterFactor is for proportional jitter; write jitter: proportional, or remove one of them");
    }
}

static bool place_has(const struct place *place, const char *prefix, const char *key)
{
    char name[NAME_MAX_BYTES];
    bool found = false;
    (void)snprintf(name, sizeof name, "%s%s", prefix, key);
    for (uint32_t i = 0; i < place->space_count && !found; i++) {
        found = schema_find(place->spaces[i].schema, name) != NULL;
    }
    return found;
}

/* The mapping that an author who wrote a plain value probably meant: `hedge: true`, `limit: 100`, `budget: 10%`. */
static void mapping_meant(const struct place *place, const char *prefix, const struct yaml_node *node, char text[64])
{
    bool on;
    uint32_t ppm;
    uint64_t number;
    const char *value = node->kind == YAML_SCALAR ? node->text : "";
    if (value_boolean(value, &on) && place_has(place, prefix, "enabled")) {
        (void)snprintf(text, 64, "{enabled: %s}", on ? "true" : "false");
    } else if (value_integer(value, &number) && strcmp(prefix, "limit.") == 0) {
        (void)snprintf(text, 64, "{kind: fixed, max: %.20s}", value);
    } else if (value_percent(value, &ppm) && strcmp(prefix, "budget.") == 0) {
        (void)snprintf(text, 64, "{percent: %.*s}", (int)strcspn(value, "% "), value);
    } else {
        (void)snprintf(text, 64, "{key: value}");
    }
}

static void not_a_mapping(struct loader *l, const struct place *place, const char *prefix, const struct yaml_node *node)
{
    char meant[64];
    mapping_meant(place, prefix, node, meant);
    loader_error(l, node->line, node->column, "wrong-type", "%.*s is a mapping; write %s",
                 (int)(strlen(prefix) == 0 ? strlen(place->what) : strlen(prefix) - 1),
                 prefix[0] == '\0' ? place->what : prefix, meant);
}

/* Where the match of a service or an endpoint is. */
static struct becalm_match *match_of(const struct place *place)
{
    for (uint32_t i = 0; i < place->space_count; i++) {
        const struct schema_key *key = schema_find(place->spaces[i].schema, "match.header");
        if (key != NULL) {
            return (struct becalm_match *)(void *)((unsigned char *)place->spaces[i].base + key->offset);
        }
    }
    return NULL;
}

/* A match with a list of hosts is one match for each of them. Returns the last of them. */
static struct becalm_match *hosts_spread(struct loader *l, struct becalm_match *match, const struct yaml_node *node)
{
    const struct yaml_node *hosts = node->kind == YAML_MAPPING ? yaml_get(node, "host") : NULL;
    struct becalm_match *last = match;
    for (uint32_t i = 1; hosts != NULL && hosts->kind == YAML_SEQUENCE && i < hosts->count; i++) {
        struct becalm_match *more = arena_take(l->arena, sizeof *more);
        const char *host = hosts->item[i]->kind == YAML_SCALAR ? arena_text(l->arena, hosts->item[i]->text) : "";
        if (more == NULL || host == NULL) {
            (void)loader_no_memory(l);
            return last;
        }
        *more = *match;
        more->host = host;
        more->next = NULL;
        last->next = more;
        last = more;
    }
    return last;
}

/* `match` as a list: each item is read like a single match, and all matches are chained. */
static void matches_apply(struct loader *l, const struct place *place, const struct yaml_node *list)
{
    struct becalm_match *match = match_of(place);
    struct becalm_match first = {0};
    struct becalm_match *last = &first;
    if (list->count == 0) {
        loader_error(l, list->line, list->column, "wrong-type", "match is an empty list; write match: [{prefix: /}]");
    }
    for (uint32_t i = 0; i < list->count; i++) {
        *match = (struct becalm_match){0};
        uint32_t errors = loader_errors(l);
        apply_prefixed(l, place, "match.", list->item[i]);
        if (match_is_empty(match) && loader_errors(l) == errors) {
            loader_error(l, list->item[i]->line, list->item[i]->column, "wrong-type",
                         "an item of match is empty; write {prefix: /} for every request");
        }
        struct becalm_match *more = i == 0 ? &first : arena_take(l->arena, sizeof *more);
        if (more == NULL) {
            (void)loader_no_memory(l);
            break;
        }
        *more = *match;
        if (i > 0) {
            last->next = more;
        }
        last = hosts_spread(l, more, list->item[i]);
    }
    *match = first;
}

static void apply_prefixed(struct loader *l, const struct place *place, const char *prefix,
                           const struct yaml_node *node)
{
    if (yaml_is_null(node)) {
        return; /* a key with nothing below it changes nothing */
    }
    if (node->kind == YAML_SEQUENCE && strcmp(prefix, "match.") == 0) {
        matches_apply(l, place, node);
        return;
    }
    if (node->kind != YAML_MAPPING) {
        not_a_mapping(l, place, prefix, node);
        return;
    }
    for (int turn = 0; turn < 2; turn++) {
        for (uint32_t i = 0; i < node->count; i++) {
            apply_pair(l, place, prefix, node, i, turn == 0);
            if (turn == 1 && prefix[0] == '\0' && strcmp(node->key[i]->text, "match") == 0 && match_of(place) != NULL) {
                (void)hosts_spread(l, match_of(place), node->item[i]);
            }
        }
    }
    jitter_check(l, node);
}

bool apply_mapping(struct loader *l, const struct place *place, const struct yaml_node *node)
{
    uint32_t errors = loader_errors(l);
    apply_prefixed(l, place, "", node);
    return !l->no_memory && loader_errors(l) == errors;
}
