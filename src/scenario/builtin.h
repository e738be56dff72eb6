/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_BUILTIN_H
#define BECALM_SIM_BUILTIN_H

/* The scenarios of policies/scenarios, which are built into the program so that `becalm sim chain` works anywhere. */

#include "embedded.h"

extern const struct embedded embedded_scenarios[]; /* by name, the file's without .yaml */
extern const char embedded_scenarios_words[];

/* NULL: there is none of that name. */
const struct embedded *builtin_find(const char *name);

/* The name nearest to a mistyped one; NULL: none is near. */
const char *builtin_nearest(const char *name);

#endif
