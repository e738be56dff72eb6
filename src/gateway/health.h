/* SPDX-License-Identifier: MIT */
#ifndef BECALM_GATEWAY_HEALTH_H
#define BECALM_GATEWAY_HEALTH_H

/* Active health checks: sends checks to the hosts of services that have `healthCheck`, again and again, and tells the
 * engine which hosts fail (becalm_hosts_check()). There is one prober for the whole process, on the control thread's
 * loop. It has its own connections, so checks do not count as calls. Checks are spread by jitter, and at most
 * HEALTH_AT_ONCE run at once.
 *
 * A host is healthy until it has failed a number of checks in a row. The results of an address outlive reloads and
 * changes of other hosts. */

#include "admin/admin.h"
#include "journal/log.h"
#include "loop/loop.h"
#include "proxy/snapshot.h"

#define HEALTH_AT_ONCE 64u

struct health;

struct health *health_make(struct loop *, struct log_source *); /* NULL: no memory */
void health_free(struct health *);

/* From now on the hosts of this snapshot are checked. Call it before the snapshot is published, so that no call goes to
 * a host that is known to fail. */
void health_follow(struct health *, struct snapshot *);

/* The results of a host. False: it is not checked. */
bool health_read(const struct health *, const char *service, const union address_socket *, struct admin_health *);

#endif
