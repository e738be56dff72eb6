/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_UNLISTED_H
#define BECALM_POLICY_UNLISTED_H

/* Services whose requests go to the host that they name (`unlisted: pass`). */

#include "policy/loader.h"

/* Does the service have `unlisted: pass`? `node` is its mapping in the file. */
bool unlisted_is(const struct yaml_node *node);
/* The defaults of a service with `unlisted: pass`: calls pass, and the results of one host do not affect another. */
void unlisted_rules(struct becalm_rules *);
/* The keys that it can't have, and its host, "*". */
void unlisted_settle(struct loader *, struct becalm_service *, const struct yaml_node *key,
                     const struct yaml_node *node);

/* By which listeners are they found? */
bool unlisted_passes(const struct becalm_listener *);
/* Warns of a service that is found by none. */
void unlisted_check(struct loader *);

#endif
