/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_ROUTE_H
#define BECALM_PROXY_ROUTE_H

/* Which service and endpoint a request belongs to. Built once per snapshot from the config, read by all workers.
 *
 * Host names are compared without case, port and trailing dot (a match.host with a port wants that port too;
 * `*.example.com` is a suffix); a service without `match` is found by Host = its name. Among services that fit, the
 * most specific wins: exact path, then the longest prefix, then one with a method or header, then the file's order. A
 * prefix ends at a path segment: /pay matches /pay and /pay/x but not /payment. The same among the endpoints of the
 * service. Query strings never count. Paths are compared as they are, with percent-encoding of unreserved characters
 * undone and dot segments refused (docs/gateway.md). */

#include "h1.h"

#include <becalm/config.h>

struct route_table;

/* NULL: no memory. The config outlives the table. */
struct route_table *route_table_make(const struct becalm_config *);
void route_table_free(struct route_table *);

struct route_request {
    struct becalm_text host; /* Host, or the authority of an absolute-form target, which wins */
    struct becalm_text path; /* with its query */
    struct becalm_text method;
    const char *bytes; /* the head, for header matches; may be NULL */
    const struct h1_head *head;
};

#define ROUTE_NONE UINT32_MAX

struct route {
    uint32_t service;  /* index in the config, or ROUTE_NONE */
    uint32_t endpoint; /* index in the service, or ROUTE_NONE: its own rules */
    bool bad_path;     /* the path has dot segments or bad escapes: 400 */
};

struct route route_find(const struct route_table *, const struct route_request *);

#endif
