/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_ROUTING_ROUTE_H
#define BECALM_POLICY_ROUTING_ROUTE_H

/* Which service and endpoint a request belongs to. Built once from a config, read by all threads.
 *
 * Host names are compared without case, port and trailing dot. A match.host with a port wants that port too (a request
 * without one means 80); `*.example.com` is every name below example.com, and `*` every host; a service without `match`
 * is found by Host = its name. Paths are compared as http/path.h says: a prefix ends at a path segment, so that /pay
 * matches /pay and /pay/x but not /payment; a start ends anywhere. A match that is a list fits if one of its items
 * does. Query strings never count. Methods are case-sensitive, names of headers are not, their values are; a header
 * that is there twice fits with either line.
 *
 * A path that leads elsewhere in its resolved form (http/path.h) is ambiguous: only the service knows which of the two
 * rules it falls under. With `paths: as-is` it is compared as it came, and that is all.
 *
 * Among services that fit, the most specific wins: first the host (as written, then the longest `*.` suffix, then any;
 * with a port before without), then an exact path, then the longest prefix or start, then a match with method and
 * header, then the file's order. So a service for any host, with `match: {prefix: /}`, gets the requests that match no
 * other service. The same holds among the endpoints of the service; a request that fits none of them gets the service's
 * own rules. A request at a listener of one service belongs to that service, whatever host and path it names. */

#include <becalm/config.h>

struct route_table;

/* NULL: no memory. The config outlives the table. A match that no request can fit has no place in it. */
struct route_table *route_table_make(const struct becalm_config *);
void route_table_free(struct route_table *);

struct route_request {
    struct becalm_text host; /* Host, or the authority of an absolute-form target, which wins */
    struct becalm_text path; /* with its query; "*" for OPTIONS; absent for CONNECT */
    struct becalm_text method;
    /* Does it have a header of this name, in any case, with exactly this value? NULL: it has no headers. */
    bool (*has_header)(const void *headers, const char *name, struct becalm_text value);
    const void *headers;
    bool by_listener; /* the request came by a listener of `service` alone, so its service is known */
    uint32_t service;
};

#define ROUTE_NONE UINT32_MAX

struct route {
    uint32_t service;                          /* index in the config, or ROUTE_NONE */
    uint32_t endpoint;                         /* index in the service, or ROUTE_NONE: its own rules */
    const struct becalm_match *match;          /* of the service, which the request fits; NULL: there is none */
    const struct becalm_match *endpoint_match; /* the match of the endpoint */
    bool bad_path;  /* the path has .. segments or bad escapes, so that it has no route: 400 */
    bool ambiguous; /* the path as it came leads here, and its resolved form elsewhere: 400 */
};

/* Does it depend on the method whom a request belongs to? */
bool route_table_by_method(const struct route_table *);

/* Allocates nothing. */
struct route route_find(const struct route_table *, const struct route_request *);

#endif
