/* SPDX-License-Identifier: MIT */
#ifndef BECALM_REDIS_LEASES_H
#define BECALM_REDIS_LEASES_H

/* The shared budgets of one process in one Redis: requests the leases of all budgets together, a few times a second, on
 * the loop of one thread. No call waits for Redis: calls only spend retries that the leases hold. While the connection
 * is lost each lease lives on its own share. */

#include "redis.h"
#include "request.h"

struct leases;

/* Those of the connection, but its `user`, and the name space. */
struct leases_options {
    struct redis_options redis;
    const char *fleet; /* NULL: "default" */
};

struct leases *leases_make(const struct leases_options *); /* NULL: no memory */
/* Says goodbye for all budgets as far as the socket takes it at once. */
void leases_free(struct leases *);

/* The budgets that there are: begin, bind each of them, end. Those that were not bound again are left. A lease must
 * live until then. False: no memory. */
void leases_bind_begin(struct leases *);
bool leases_bind(struct leases *, const char *name, struct becalm_lease *, const struct becalm_lease_policy *);
void leases_bind_end(struct leases *);

/* Its connection, for display and for other users of the same Redis. */
struct redis *leases_redis(const struct leases *);

#endif
