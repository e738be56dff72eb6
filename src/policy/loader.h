/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_LOADER_H
#define BECALM_POLICY_LOADER_H

/* Shared by all code that reads a policy or a scenario: where values are stored, and how errors are reported. */

#include <becalm/config.h>

#include "arena.h"
#include "schema.h"
#include "yaml.h"

struct loader;

/* Reads the value of a key that is made of mappings of its own, as `listen` is, into the struct that has the key.
 * False: it was reported, or there is no memory. */
typedef bool loader_nested_fn(struct loader *, const struct schema_key *, void *base, const struct yaml_node *);

struct loader {
    struct arena *arena;          /* the texts and lists of the loaded config */
    struct becalm_config *config; /* policies only; else NULL */
    const char *name;
    struct becalm_diags *diags;
    uint32_t told;   /* diagnostics that were there before it began */
    uint32_t untold; /* errors at places of these */
    bool allow_unknown;
    bool shared_budgets;
    enum becalm_origin_level level; /* of the rules that are being checked */
    bool no_memory;
    loader_nested_fn *nested; /* NULL: the schemas have no keys of these types */
};

/* Where the values of one schema go. */
struct space {
    const struct schema *schema;
    void *base;
    struct becalm_origin *origins; /* by the key's position; NULL: not wanted */
};

/* One mapping of the file: the keys that it may have. */
struct place {
    const struct space *spaces;
    uint32_t space_count;
    enum becalm_origin_level level;
    const char *what;          /* "a service", for messages */
    const char *const *beside; /* keys that another function reads; NULL or ends with NULL */
    const char *manual;        /* the page that lists its keys; NULL: becalm.yaml(5) */
};

void loader_error(struct loader *, uint32_t line, uint32_t column, const char *code, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
uint32_t loader_errors(const struct loader *); /* so far, told or not */
bool loader_no_memory(struct loader *);        /* notes it; returns false */

/* The value of a key; NULL: there is none, or no mapping. */
const struct yaml_node *loader_inside(const struct yaml_node *mapping, const char *key);
/* A key that needs another key, or excludes it: reports the correction if the file breaks that. */
void loader_needs(struct loader *, const struct yaml_node *key, bool fine, const char *message);

/* Names of services, endpoints and the like: 1 to 128 letters, digits, - _ . : and /. False: reported. */
bool name_is_fine(struct loader *, const struct yaml_node *key, const char *what);

#endif
