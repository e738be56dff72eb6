/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_SECTION_STORE_H
#define BECALM_POLICY_SECTION_STORE_H

/* `fleet` and `store` at the top of a policy, and the shared budgets that have no store of their own. */

#include "policy/loader.h"

/* After the settings were read: checks that keys do not contradict each other. */
void store_check(struct loader *, struct becalm_settings *, const struct yaml_node *root);

/* A shared budget without a store of its own uses that of the settings. */
void store_inherit(struct loader *, struct becalm_rules *, const char *whose);

#endif
