/* SPDX-License-Identifier: MIT */
#ifndef BECALM_GATEWAY_FLEET_H
#define BECALM_GATEWAY_FLEET_H

/* The shared budgets of a gateway: a connection to each Redis that its policy names, and the leases of the snapshot
 * that is in force. Belongs to the control thread, as its loop does. */

#include "journal/log.h"
#include "proxy/snapshot.h"

struct loop;
struct fleet;

struct fleet_options {
    struct loop *loop;
    struct log_source *log;
    struct snapshot_names names;
    const char *id; /* of this process */
};

struct fleet *fleet_make(const struct fleet_options *); /* NULL: no memory */
/* Uses the leases of this snapshot from now on; leases that it does not have any more are returned. A lease for which
 * there is no memory lives on its own share. */
void fleet_follow(struct fleet *, struct snapshot *);
/* Returns all leases. Before the loop is closed. */
void fleet_free(struct fleet *);

/* Writes the processes of the fleet, as JSON, for /api/fleet. */
struct buffer;
void fleet_tell(const struct fleet *, struct buffer *);

/* The state of its connections, for display. Returns how many there are, at most `size`. */
struct metrics_redis;
uint32_t fleet_stores(const struct fleet *, struct metrics_redis *, uint32_t size);

/* Where keys that are shared are looked after; NULL: they are not. Another one after fleet_follow(). */
struct key_desk *fleet_desk(const struct fleet *);

#endif
