/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_YAML_INTERNAL_H
#define BECALM_POLICY_YAML_INTERNAL_H

/* Nodes of a tree and their memory, for the parser (yaml.c) and for trees that are made by hand (yaml_tree.c). */

#include <stddef.h>

#include "yaml.h"

/* A node, with fields for the parser only. */
struct node {
    struct yaml_node yaml; /* first: a yaml_node of a tree is a struct node */
    uint32_t size;         /* nodes, with all below it and itself */
    uint32_t height;       /* levels of collections, 0 for a scalar */
    uint32_t indent;       /* a | block: columns of the outer file to the left of its text */
    bool open;             /* a collection whose end has not come yet */
};

struct yaml_block;

struct tree {
    struct yaml_tree yaml; /* first */
    struct yaml_block *blocks;
};

/* Zeroed memory that lives as long as the tree, and a copy of a text in it. NULL: no memory. */
void *yaml__take(struct tree *, size_t bytes);
char *yaml__text(struct tree *, const char *text, size_t length);

/* An empty tree of this name. NULL: no memory. yaml_tree_free() frees it. */
struct tree *yaml__tree_new(const char *name);

#endif
