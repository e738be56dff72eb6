/* SPDX-License-Identifier: MIT */
/* --set key.path=value: changes the tree before it is loaded, so that an override obeys the same rules as the file. */
#include <string.h>

#include "set.h"

struct setter {
    struct arena *arena;
    struct becalm_diags *diags;
};

static bool set_error(struct setter *s, const char *text, const char *what)
{
    becalm_diag_add(s->diags, BECALM_ERROR, "--set", 1, 1, "wrong-type", "\"%.128s\" %s", text, what);
    return false;
}

/* A copy in the config's arena with line 0: the value's own tree is freed before the config. */
static struct yaml_node *node_copy(struct arena *arena, const struct yaml_node *from)
{
    struct yaml_node *node = arena_take(arena, sizeof *node);
    struct yaml_node **key = arena_take(arena, (from->count + 1) * sizeof *key);
    struct yaml_node **item = arena_take(arena, (from->count + 1) * sizeof *item);
    if (node == NULL || key == NULL || item == NULL) {
        return NULL;
    }
    *node = *from;
    node->line = 0;
    node->column = 0;
    node->key = key;
    node->item = item;
    if (from->kind == YAML_SCALAR) {
        node->text = arena_text(arena, from->text);
        return node->text == NULL ? NULL : node;
    }
    for (uint32_t i = 0; i < from->count; i++) {
        item[i] = node_copy(arena, from->item[i]);
        key[i] = from->kind == YAML_MAPPING ? node_copy(arena, from->key[i]) : NULL;
        if (item[i] == NULL || (from->kind == YAML_MAPPING && key[i] == NULL)) {
            return NULL;
        }
    }
    return node;
}

/* Names may hold dots: of the keys that fit the path, the longest wins; a new key is the text up to the next
 * dot. */
static size_t segment_length(const struct yaml_node *mapping, const char *path)
{
    size_t best = 0;
    for (uint32_t i = 0; i < mapping->count; i++) {
        size_t length = mapping->key[i]->length;
        bool here = strncmp(path, mapping->key[i]->text, length) == 0 && (path[length] == '.' || path[length] == '\0');
        best = here && length > best ? length : best;
    }
    return best > 0 ? best : strcspn(path, ".");
}

/* The place of a key in a mapping; the key is added if it is missing. NULL: no memory. */
static struct yaml_node **mapping_slot(struct arena *arena, struct yaml_node *mapping, const char *name, size_t length)
{
    for (uint32_t i = 0; i < mapping->count; i++) {
        if (mapping->key[i]->length == length && strncmp(mapping->key[i]->text, name, length) == 0) {
            return (struct yaml_node **)(uintptr_t)&mapping->item[i];
        }
    }
    struct yaml_node **key = arena_take(arena, (mapping->count + 1) * sizeof *key);
    struct yaml_node **item = arena_take(arena, (mapping->count + 1) * sizeof *item);
    struct yaml_node *added = arena_take(arena, sizeof *added);
    char *text = arena_take(arena, length + 1);
    if (key == NULL || item == NULL || added == NULL || text == NULL) {
        return NULL;
    }
    if (mapping->count > 0) {
        memcpy(key, mapping->key, mapping->count * sizeof *key);
        memcpy(item, mapping->item, mapping->count * sizeof *item);
    }
    memcpy(text, name, length);
    *added = (struct yaml_node){.kind = YAML_SCALAR, .plain = true, .text = text, .length = length};
    key[mapping->count] = added;
    mapping->key = key;
    mapping->item = item;
    return &item[mapping->count++];
}

bool set_apply(struct yaml_tree *tree, struct arena *arena, const char *assignment, struct becalm_diags *diags)
{
    struct setter s = {arena, diags};
    const char *equals = strchr(assignment, '=');
    if (equals == NULL || equals == assignment) {
        return set_error(&s, assignment, "is not an assignment; write key.path=value, like defaults.maxRetries=1");
    }
    struct yaml_tree *value = yaml_parse("--set", equals + 1, strlen(equals + 1), diags);
    if (value == NULL) {
        return false;
    }
    struct yaml_node *copy = node_copy(arena, value->root);
    yaml_free(value);
    struct yaml_node *at = tree->root;
    char path[512];
    if ((size_t)(equals - assignment) >= sizeof path || copy == NULL) {
        return set_error(&s, assignment, "is too long");
    }
    memcpy(path, assignment, (size_t)(equals - assignment));
    path[equals - assignment] = '\0';
    for (const char *rest = path;;) {
        if (at->kind != YAML_MAPPING) {
            return set_error(&s, path, "leads into a value that is no mapping");
        }
        size_t length = segment_length(at, rest);
        struct yaml_node **slot = mapping_slot(arena, at, rest, length);
        if (slot == NULL || length == 0) {
            return set_error(&s, path, "has an empty part");
        }
        if (rest[length] == '\0') {
            *slot = copy;
            return true;
        }
        if (*slot == NULL || yaml_is_null(*slot)) {
            *slot = arena_take(arena, sizeof **slot);
            if (*slot == NULL) {
                return set_error(&s, path, "found no memory");
            }
            (*slot)->kind = YAML_MAPPING;
        }
        at = *slot;
        rest += length + 1;
    }
}
