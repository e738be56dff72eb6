/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_ENVOY_GATEWAY_H
#define BECALM_IMPORT_ENVOY_GATEWAY_H

/* Envoy Gateway's BackendTrafficPolicy. It has rules for calls of the routes that it targets; the routes are other
 * objects. */

#include "policy/import/dialect.h"

bool envoy_gateway_is(const struct object *);

/* Applies the policy for this route: the one that targets the route, else the one that targets a Gateway above it.
 * Values of the route itself must be set before: they win. `used` has a place for each object. */
void envoy_gateway_apply(struct source *, const struct objects *, const struct yaml_node *route,
                         struct emit_target *service, struct emit_target *rules, bool *used);

/* Policies that no route has used: a warning, and `defaults:` if there are no routes at all. */
void envoy_gateway_rest(struct source *, const struct objects *, const bool *used, bool routes);

#endif
