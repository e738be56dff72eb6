/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_FALLBACK_H
#define BECALM_POLICY_FALLBACK_H

/* The answer in place of a service that can't answer (`fallback`). */

#include "policy/loader.h"

void fallback_defaults(struct becalm_fallback *);
/* Splits its headers into names and values, and reports keys that contradict each other. `whose` is the service or
 * endpoint that has set or inherited it. */
void fallback_settle(struct loader *, struct becalm_rules *, const char *whose);
/* All services are there: are those among them that are named? */
void fallback_check(struct loader *);

#endif
