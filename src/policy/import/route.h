/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_ROUTE_H
#define BECALM_IMPORT_ROUTE_H

/* Routes: which requests a rule is about. A route becomes an endpoint of the service that it leads to. */

#include "source.h"

struct route_match {
    const char *path;   /* NULL: any */
    const char *prefix; /* NULL or "/": any */
    const char *method;
    const char *header; /* and its value */
    const char *value;
    const char *host;
    bool impossible; /* it has a condition that no endpoint can have; it was reported */
};

/* Can a policy say it, and can a request fit it? The loader has the same opinion of hosts, paths and methods. */
bool match_is_possible(const struct route_match *);

bool match_is_everything(const struct route_match *);
void match_put(struct source *, struct emit_target *, const struct route_match *, const struct from *);

/* A name for an endpoint that nobody named. */
const char *match_name(struct source *, const struct route_match *);

/* There a prefix may end inside a segment, here it can't: a warning, unless it ends with a slash. `prefix` may be
 * NULL. */
void match_whole_segments(struct source *, struct emit_target *, const struct from *, const char *prefix);

/* Says under the service's keys that one of its routes could not be said. */
void route_left_out(struct source *, struct emit_target *service, const struct yaml_node *route);

/* There each route stands for itself, here an endpoint inherits from its service, and a service from the defaults. So
 * what a route does not write must be written, if it would be inherited: with these values. `defaults` counts only if
 * `from_defaults`. */
struct neutral {
    const char *key; /* NULL ends the table */
    const char *value;
    const char *remark;
};
void routes_stand_alone(struct source *, const struct neutral *, bool from_defaults);

/* How the requests of services are told from each other's, where several share a host: its name, and what the paths of
 * all routes to the service begin with. Zero it before use. */
struct reaches {
    struct reach *first;
};
void reach_note(struct source *, struct reaches *, struct emit_target *service, const char *host,
                const struct route_match *, const struct from *); /* host is NULL for any */
void reach_put(struct source *, const struct reaches *);          /* once all routes are known */

#endif
