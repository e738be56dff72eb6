/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_FILE_POLICIES_H
#define BECALM_SIM_FILE_POLICIES_H

/* A policy file as the policies of a run. Every caller of a service runs the rules that the file has for the service of
 * that name, and for the endpoint of that name, as a caller would: `limit: auto` is aimd. A service that the file does
 * not name has the rules of `defaults:`. An endpoint that it does not name has the rules of its service, and shares its
 * budget. A gate has the same rules as a gateway would: `limit: auto` are slots, `gate:` counts, and it retries unless
 * `gatewayRetries` is false. */

#include "world.h"

struct file_policies {
    struct becalm_policy hop; /* of `defaults:` */
    struct becalm_policy gate;
    struct becalm_policy *policy;           /* by world_target() */
    const struct becalm_policy **policy_to; /* NULL where `defaults:` count */
    enum becalm_budget_level *level_to;     /* the same, for all of them */
    bool *auto_to;                          /* the same: is the limit's kind `auto`? */
    struct becalm_policy *gate_policy;      /* the same, for gates */
    const struct becalm_policy **gate_to;
};

/* Fills the policies of a run, which point into *policies. 0 or BECALM_ENOMEM; file_policies_free() in both cases. */
int file_policies_make(struct file_policies *, const struct becalm_config *, const struct scenario *,
                       struct world_options *);

/* The same for our default policy with a few keys changed: as that policy by its name, it takes the timeouts that they
 * do not say from the scenario, and each endpoint of the scenario is a target of its own. */
int file_policies_make_built_in(struct file_policies *, const struct becalm_config *, const struct scenario *,
                                struct world_options *);
void file_policies_free(struct file_policies *); /* zeroed, it holds nothing */

#endif
