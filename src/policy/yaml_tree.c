/* SPDX-License-Identifier: MIT */
#include "yaml_internal.h"

#include <stdlib.h>
#include <string.h>

#define ARENA_BLOCK (16u * 1024u)

/* Memory of a tree: blocks that are freed together. */
struct yaml_block {
    struct yaml_block *next;
    size_t used;
    size_t size;
    max_align_t memory[];
};

/* ---- memory ---- */

void *yaml__take(struct tree *tree, size_t bytes)
{
    size_t units = (bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    struct yaml_block *block = tree->blocks;
    if (block == NULL || block->size - block->used < units) {
        size_t size = units > ARENA_BLOCK ? units : ARENA_BLOCK;
        block = malloc(sizeof *block + size);
        if (block == NULL) {
            return NULL;
        }
        *block = (struct yaml_block){.next = tree->blocks, .size = size};
        tree->blocks = block;
    }
    void *memory = (char *)block->memory + block->used;
    block->used += units;
    return memset(memory, 0, units);
}

char *yaml__text(struct tree *tree, const char *text, size_t length)
{
    char *copy = yaml__take(tree, length + 1);
    if (copy != NULL && length > 0) {
        memcpy(copy, text, length);
    }
    return copy;
}

struct tree *yaml__tree_new(const char *name)
{
    struct tree *tree = calloc(1, sizeof *tree);
    if (tree == NULL) {
        return NULL;
    }
    tree->yaml.name = yaml__text(tree, name, strlen(name));
    if (tree->yaml.name == NULL) {
        free(tree);
        return NULL;
    }
    return tree;
}

void yaml_tree_free(struct yaml_tree *yaml)
{
    struct tree *tree = (struct tree *)yaml;
    if (tree == NULL) {
        return;
    }
    while (tree->blocks != NULL) {
        struct yaml_block *next = tree->blocks->next;
        free(tree->blocks);
        tree->blocks = next;
    }
    free(tree);
}

/* ---- trees of other languages ---- */

struct yaml_tree *yaml_tree_new(const char *name)
{
    struct tree *tree = yaml__tree_new(name);
    return tree == NULL ? NULL : &tree->yaml;
}

struct yaml_node *yaml_tree_scalar(struct yaml_tree *yaml, uint32_t line, uint32_t column, const char *text,
                                   size_t length)
{
    struct node *node = yaml__take((struct tree *)yaml, sizeof *node);
    char *copy = yaml__text((struct tree *)yaml, text, length);
    if (node == NULL || copy == NULL) {
        return NULL;
    }
    node->yaml = (struct yaml_node){.kind = YAML_SCALAR, .line = line, .column = column, .text = copy};
    node->yaml.length = length;
    return &node->yaml;
}

struct yaml_node *yaml_tree_sequence(struct yaml_tree *yaml, uint32_t line, uint32_t column,
                                     struct yaml_node *const *items, uint32_t count)
{
    struct node *node = yaml__take((struct tree *)yaml, sizeof *node);
    struct yaml_node **copy = yaml__take((struct tree *)yaml, (count + 1) * sizeof *copy);
    if (node == NULL || copy == NULL) {
        return NULL;
    }
    if (count > 0) {
        memcpy(copy, items, count * sizeof *copy);
    }
    node->yaml = (struct yaml_node){.kind = YAML_SEQUENCE, .line = line, .column = column, .count = count};
    node->yaml.item = copy;
    return &node->yaml;
}

struct yaml_node *yaml_tree_mapping(struct yaml_tree *yaml, uint32_t line, uint32_t column,
                                    struct yaml_node *const *keys, struct yaml_node *const *items, uint32_t count)
{
    struct yaml_node *node = yaml_tree_sequence(yaml, line, column, items, count);
    struct yaml_node *names = node == NULL ? NULL : yaml_tree_sequence(yaml, line, column, keys, count);
    if (names == NULL) {
        return NULL;
    }
    node->kind = YAML_MAPPING;
    node->key = names->item;
    return node;
}

const struct yaml_node *yaml_get(const struct yaml_node *mapping, const char *key)
{
    if (mapping == NULL || mapping->kind != YAML_MAPPING) {
        return NULL;
    }
    for (uint32_t i = 0; i < mapping->count; i++) {
        if (strcmp(mapping->key[i]->text, key) == 0) {
            return mapping->item[i];
        }
    }
    return NULL;
}

const char *yaml_shown(const struct yaml_node *scalar)
{
    return scalar->written != NULL ? scalar->written : scalar->text;
}

bool yaml_is(const struct yaml_node *scalar, const char *text)
{
    return scalar != NULL && scalar->kind == YAML_SCALAR && strcmp(scalar->text, text) == 0;
}

bool yaml_is_null(const struct yaml_node *node)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    if (node == NULL) {
        return true;
    }
    for (size_t i = 0; node->plain && i < sizeof words / sizeof *words; i++) {
        if (yaml_is(node, words[i])) {
            return true;
        }
    }
    return false;
}
