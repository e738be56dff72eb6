/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_SETTING_H
#define BECALM_POLICY_SETTING_H

/* Stores one value of the file in its field, by the type of its key: parses it, checks its range, and reports errors.
 */

#include "loader.h"

struct setting {
    struct loader *l;
    const struct schema_key *key;
    const struct yaml_node *node;
    void *field;
    void *base; /* the struct that the field is in, for keys that touch more than one */
};

/* Puts the value into the field. False: it was reported, or there is no memory. */
bool setting_apply(const struct setting *);

/* Reports a wrong value; `should` describes a right one. */
void setting_wrong(const struct setting *, const char *should);

/* Keys that bring other keys' values with them. Those are applied before the rest of their mapping, which then wins. */
bool setting_brings_others(const struct schema_key *);

#endif
