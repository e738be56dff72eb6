/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_APPLY_H
#define BECALM_POLICY_APPLY_H

/* Puts a mapping of the file into structs, by the schema: types, ranges, unknown keys, origins. */

#include "config_internal.h"

struct loader {
    struct arena *arena;          /* of what is loaded: its texts and lists */
    struct becalm_config *config; /* policies only; else NULL */
    const char *name;
    struct becalm_diags *diags;
    uint32_t untold; /* errors at places that have one */
    bool allow_unknown;
    bool shared_budgets;
    enum becalm_origin_level level; /* of the rules that are being checked */
    bool no_memory;
};

/* Where the values of one schema go. */
struct space {
    const struct schema *schema;
    void *base;
    struct becalm_origin *origins; /* by the key's position; NULL: nobody asks */
};

/* One mapping of the file: the keys that it may have. */
struct place {
    const struct space *spaces;
    uint32_t space_count;
    enum becalm_origin_level level;
    const char *what;          /* "a service", for messages */
    const char *const *beside; /* keys that somebody else reads; NULL or ends with NULL */
};

/* False: not a mapping, which was reported, or no memory. */
bool apply_mapping(struct loader *, const struct place *, const struct yaml_node *);

/* Names of services, endpoints and the like: 1 to 128 letters, digits, - _ . : and /. False: reported. */
bool name_is_fine(struct loader *, const struct yaml_node *key, const char *what);

/* Rules that inherit from nobody, as those of `defaults:`: the built-in ones, then what is written, if anything is,
 * checked together. False: no memory. */
bool rules_load(struct loader *, struct becalm_rules *, const char *whose, const struct yaml_node *);

/* The policy of these rules for a caller, which is not a gateway: `limit: auto` is aimd. */
void rules_caller_policy(const struct becalm_rules *, struct becalm_policy *);

void loader_error(struct loader *, uint32_t line, uint32_t column, const char *code, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
uint32_t loader_errors(const struct loader *); /* so far, told or not */
bool loader_no_memory(struct loader *);        /* notes it; returns false */

#endif
