/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_ROUTE_H
#define BECALM_IMPORT_ROUTE_H

/* Routes: which requests go to which service, and how they are called. Dialects add them as the source has them;
 * routes_write() makes matches of services and endpoints of them. */

#include "source.h"

struct route_match {
    const char *path;   /* NULL: any */
    const char *prefix; /* NULL or "/": any; a prefix of whole segments */
    const char *start;  /* the same, which ends anywhere, as most products have it */
    const char *method;
    const char *header; /* and its value */
    const char *value;
    const char *host;
    bool impossible; /* the match has a condition that no endpoint can have, which was reported */
};

/* Can a policy say it, and can a request fit it? The loader has the same opinion of hosts, paths and methods. */
bool match_is_possible(const struct route_match *);

bool match_is_everything(const struct route_match *);
void match_put(struct source *, struct emit_target *, const struct route_match *, const struct from *);

/* A name for an endpoint that has none in the source. */
const char *match_name(struct source *, const struct route_match *);

/* A prefix that may end inside of a segment, into `prefix` or `start`; NULL is none. */
void match_begins_with(struct route_match *, const char *text);

/* One of several places that a route splits its requests between. */
struct share {
    struct emit_target *service;
    const char *name;
    uint64_t weight;
};

/* Becalm does not split requests: returns the service with the greatest weight, with a warning that lists all weights.
 * NULL if no service has a weight. */
struct emit_target *shares_pick(struct source *, const struct share *, size_t count, const struct from *);

/* One rule of the source. */
struct route;

/* A route to a service, which is never NULL but for lack of memory. `name` may be NULL. Every function below accepts
 * the NULL that is returned then. */
struct route *route_add(struct source *, struct emit_target *service, const char *name, const struct from *);

/* A host of the requests, `*.example.com` too; without any it takes every host. */
void route_add_host(struct source *, struct route *, const char *host, const struct from *);

/* Adds a match; a route without any takes every request. A match with a host of its own uses that instead of the
 * route's. */
void route_add_match(struct source *, struct route *, const struct route_match *, const struct from *);

/* The target for the keys of its calls: maxRetries, deadline, attemptTimeout, retryOn, ... Keys of the dialect's
 * `unwritten` that are not set are added at the end. */
struct emit_target *route_rules(struct route *);

/* Is there a route to the service? */
bool route_leads_to(const struct emit_target *service);

/* Writes all routes into the policy, once everything is read. False: there are too many, which was reported; no policy.
 */
bool routes_write(struct source *, uint32_t *count);

#endif
