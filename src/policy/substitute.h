/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_SUBSTITUTE_H
#define BECALM_POLICY_SUBSTITUTE_H

/* ${NAME} in the values of a policy: what differs from place to place, and what must not stand in a file. */

#include <becalm/config.h>

#include "arena.h"
#include "yaml.h"

/* Replaces, in all values below a tree's root and never in keys: ${NAME} and ${NAME:-default} by the environment,
 * ${file:PATH} by what that file says, without the line's end; $${ stands for ${. What is missing is an error at its
 * place. New texts are the arena's. False: no memory. */
bool substitute_tree(struct yaml_tree *, struct arena *, struct becalm_diags *);

#endif
