/* SPDX-License-Identifier: MIT */
#ifndef BECALM_EXEC_EXEC_STORE_H
#define BECALM_EXEC_EXEC_STORE_H

/* The Redis that a machine's budget is leased from. All processes that share the lease's file are one instance there:
 * when an exchange is due and no other process does it, a process connects and asks, while its command runs or while it
 * waits for a retry. A lock of the file marks that process; the kernel frees it with the process. A request whose
 * process died is made again by another one. No process waits for the store, and no command takes longer because of it.
 */

#include "shared.h"

#include "redis/site.h"

struct exec_store_options {
    const struct redis_site *site; /* outlives it */
    const char *fleet;
    const char *service;
    const char *endpoint;  /* NULL: the service's own budget */
    struct shared *shared; /* the lease */
};

struct exec_store;
struct exec_store *exec_store_open(const struct exec_store_options *); /* NULL: no memory or descriptors */
void exec_store_close(struct exec_store *);

/* The events to wait for: this descriptor is readable, or the time has come. Then call exec_store_turn(), between
 * shared_hold() and shared_release(); it does not block. */
int exec_store_fd(const struct exec_store *);
becalm_ns exec_store_due(struct exec_store *);
void exec_store_turn(struct exec_store *, becalm_ns now);

#endif
