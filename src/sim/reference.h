/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_REFERENCE_H
#define BECALM_SIM_REFERENCE_H

/* The policies that the field uses, by name, to compare with. The scenario fixes their attempts and timeout; `becalm`
 * keeps its own attempts. */

#include "world.h"

struct reference {
    const char *name;
    const char *about;
};

/* NULL after the last. */
const struct reference *reference_at(unsigned index);

/* The names that "all" stands for: the policies that the scenario brings along, or else those above. NULL after the
 * last. A scenario with policies of its own runs with the last of them by default; every other scenario runs with
 * `becalm`, which is last, too. */
const char *reference_name(const struct scenario *, unsigned index);

/* The scenario's timeout of an attempt, as a policy may have it: `none` is the longest there is. */
becalm_ns reference_timeout(const struct scenario *);

/* Fills the policies of a run with the policy of this name; the scenario's own policies are searched first. False: no
 * policy has this name. The options point into *hop and *gate. */
bool reference_options(const char *name, const struct scenario *, struct becalm_policy *hop, struct becalm_policy *gate,
                       struct world_options *);

#endif
