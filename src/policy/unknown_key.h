/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_UNKNOWN_KEY_H
#define BECALM_POLICY_UNKNOWN_KEY_H

#include "loader.h"

/* Reports a key that its mapping does not have: an error, or a warning where unknown keys are allowed. Says what was
 * probably meant: what we call what other products call so, where the key belongs, or the nearest name. `prefix` is
 * what the mapping's keys begin with: "budget.", or "" at the top. */
void unknown_key(struct loader *, const struct place *, const char *prefix, const struct yaml_node *key);

#endif
