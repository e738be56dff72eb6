/* SPDX-License-Identifier: MIT */
#ifndef BECALM_GATEWAY_HEALTH_H
#define BECALM_GATEWAY_HEALTH_H

/* Active health checks: asks the hosts of services that have `healthCheck` by itself, again and again, and tells the
 * engine which of them fail (becalm_hosts_check()). One prober for the whole process, on the control thread's loop: its
 * connections are its own, so that nothing of this counts as a call. Checks are spread by jitter, and at most
 * HEALTH_AT_ONCE are under way.
 *
 * A host is well until so many checks in a row say otherwise. What is known of an address outlives reloads and the
 * changes of other hosts. */

#include "admin/admin.h"
#include "journal/log.h"
#include "loop/loop.h"
#include "proxy/snapshot.h"

#define HEALTH_AT_ONCE 64u

struct health;

struct health *health_make(struct loop *, struct log_source *); /* NULL: no memory */
void health_free(struct health *);

/* From now on the hosts of this snapshot are checked. Called before it is published, so that no call goes to a host
 * that is known to fail. */
void health_follow(struct health *, struct snapshot *);

/* What is known of a host. False: it is not checked. */
bool health_read(const struct health *, const char *service, const union address_socket *, struct admin_health *);

#endif
