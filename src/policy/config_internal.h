/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CONFIG_INTERNAL_H
#define BECALM_CONFIG_INTERNAL_H

/* What a config is made of, for the files of this folder: config.c builds it, set.c changes the tree before that,
 * explain.c tells it. */

#include <becalm/config.h>

#include "schema.h"
#include "yaml.h"

struct becalm_origins {
    struct becalm_origin key[SCHEMA_KEYS_MAX]; /* by the key's position in schema_rules */
};

/* Memory of a config: blocks that are freed together. */
struct arena {
    struct arena_block *blocks;
};

void *arena_take(struct arena *, size_t bytes); /* zeroed; NULL: no memory */
char *arena_text(struct arena *, const char *text);
void arena_free(struct arena *);

struct becalm_config {
    struct arena arena;
    char *name;
    const char *const *parts;
    struct becalm_settings settings;
    struct becalm_rules defaults;
    struct becalm_service *services;
    uint32_t service_count;
};

/* Puts "key.path=value" into the tree, as if the file had said so; such nodes have line 0. False: a diagnostic was
 * added. */
bool set_apply(struct yaml_tree *, struct arena *, const char *assignment, struct becalm_diags *);

/* A key that the chosen kind of budget or mode of breaker does not use. */
bool explain_hides(const struct becalm_rules *, const struct schema_key *);

/* A number of this key's type, and the value of a key in its struct, as one would write them. */
void explain_number(const struct schema_key *, uint64_t value, char *text, size_t size);
void explain_value(const struct schema_key *, const void *base, char *text, size_t size);

#endif
