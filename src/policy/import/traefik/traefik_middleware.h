/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_TRAEFIK_MIDDLEWARE_H
#define BECALM_IMPORT_TRAEFIK_MIDDLEWARE_H

/* Traefik's middlewares that affect calls: retry, circuitBreaker, inFlightReq, buffering. */

#include "policy/import/source.h"

/* One middleware, {retry: {...}}, into the rules of a route. A chain is not followed here. */
void traefik_middleware_put(struct source *, struct emit_target *rules, const struct yaml_node *middleware);

#endif
