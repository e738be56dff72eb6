/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_UNKNOWN_KEY_H
#define BECALM_POLICY_UNKNOWN_KEY_H

#include "loader.h"

/* Reports an unknown key: an error, or a warning where unknown keys are allowed. It suggests a key: Becalm's name for
 * another product's key, the mapping that the key belongs to, or the nearest name. `prefix` is the prefix of the
 * mapping's keys: "budget.", or "" at the top. */
void unknown_key(struct loader *, const struct place *, const char *prefix, const struct yaml_node *key);

#endif
