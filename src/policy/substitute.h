/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_SUBSTITUTE_H
#define BECALM_POLICY_SUBSTITUTE_H

/* ${NAME} in the values of a policy: for values that differ between machines, and for secrets. */

#include <becalm/config.h>

#include "arena.h"
#include "yaml.h"

/* Replaces, in all values below a tree's root and never in keys: ${NAME} and ${NAME:-default} by the environment,
 * ${file:PATH} by the content of that file, without its final newline; $${ stands for ${. A missing variable or file is
 * an error at its place. New texts belong to the arena. False: no memory. */
bool substitute_tree(struct yaml_tree *, struct arena *, struct becalm_diags *);

#endif
