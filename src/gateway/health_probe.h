/* SPDX-License-Identifier: MIT */
#ifndef BECALM_GATEWAY_HEALTH_PROBE_H
#define BECALM_GATEWAY_HEALTH_PROBE_H

/* One health check: a connection of its own, one request, one verdict. It uses no pool, limit or budget of calls, and
 * does not count as a call. */

#include "loop/address.h"
#include "wire/wire_tls.h"

#include <becalm/config.h>

struct health_probe;

/* How it ended. */
struct health_verdict {
    const char *why; /* why the check failed, a constant word or sentence; NULL: it passed */
    uint32_t status; /* of the answer, HTTP or gRPC; 0: no answer came */
};

struct health_probe_plan {
    struct loop *loop;
    const union address_socket *to;
    const struct becalm_health_check *check; /* stays until the end, like the rest of this */
    struct wire_host *tls;                   /* NULL: plain */
    struct wire_room *room;
    const char *authority;
    uint32_t introduces; /* the version of the PROXY protocol that the host wants first; 0: none */
    bool h2;             /* the check uses HTTP/2, without negotiation */
    void (*done)(void *self, struct health_verdict); /* the probe is over, and forgotten behind this */
    void *self;
};

/* NULL: the check could not begin; errno has the reason, and `done` is not called. */
struct health_probe *health_probe_begin(const struct health_probe_plan *);
/* Cancels the check: `done` is not called. */
void health_probe_drop(struct health_probe *);

#endif
