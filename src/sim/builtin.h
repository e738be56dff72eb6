/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_BUILTIN_H
#define BECALM_SIM_BUILTIN_H

/* The scenarios of policies/scenarios, which are built into the program so that `becalm sim chain` works anywhere. The
 * tables are made from the files when Becalm is built. */

#include "scenario.h"

struct builtin {
    const char *name; /* the file's, without .yaml; NULL ends the table */
    const unsigned char *text;
    size_t length;
};

extern const struct builtin builtin_scenarios[]; /* by name */
extern const char builtin_words[];               /* all names, separated by spaces: for shells */

/* NULL: there is none of that name. */
const struct builtin *builtin_find(const char *name);

/* The name nearest to a mistyped one; NULL: none is near. */
const char *builtin_nearest(const char *name);

#endif
