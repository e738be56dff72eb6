/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_SECTION_TRACING_H
#define BECALM_POLICY_SECTION_TRACING_H

/* `tracing` at the top of a policy. */

#include "policy/loader.h"

/* After the settings were read: checks that keys do not contradict each other. */
void tracing_check(struct loader *, struct becalm_tracing *, const struct yaml_node *root);

#endif
