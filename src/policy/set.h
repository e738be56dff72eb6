/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_SET_H
#define BECALM_POLICY_SET_H

/* Overrides of a policy or a scenario, as --set has them. */

#include <becalm/config.h>

#include "arena.h"
#include "yaml.h"

/* Puts "key.path=value" into the tree, as if it were in the file; these nodes have line 0. False: a diagnostic was
 * added. */
bool set_apply(struct yaml_tree *, struct arena *, const char *assignment, struct becalm_diags *);

#endif
