/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_APPLY_H
#define BECALM_POLICY_APPLY_H

/* Puts a mapping of the file into structs, by the schema: types, ranges, unknown keys, origins. */

#include "loader.h"

/* False: not a mapping, which was reported, or no memory. */
bool apply_mapping(struct loader *, const struct place *, const struct yaml_node *);

#endif
