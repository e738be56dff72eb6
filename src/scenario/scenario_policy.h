/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_SCENARIO_POLICY_H
#define BECALM_SIM_SCENARIO_POLICY_H

/* `policies:` of a scenario: policies by name, with the keys that `defaults:` of a policy file has, and with `carries`
 * and `marks`, which say how the world around the policy treats deadlines and marks. */

#include "policy/loader.h"
#include "scenario.h"

/* Names that are taken: our default policy, and the word for all of them. */
#define SCENARIO_POLICY_OURS "becalm"
#define SCENARIO_POLICY_ALL  "all"

/* One entry of the mapping. False: no memory. */
bool scenario_policy_load(struct loader *, struct scenario_policy *, const struct yaml_node *key,
                          const struct yaml_node *value);

#endif
