/* SPDX-License-Identifier: MIT */
#ifndef BECALM_ADMIN_ADMIN_H
#define BECALM_ADMIN_ADMIN_H

/* The admin address: health, metrics, state, decisions, the policy, reload, breakers. A small HTTP/1.1 server on the
 * control thread's loop, so that it answers when all workers are busy, and when the process is out of descriptors. On
 * loopback it needs no token; elsewhere a bearer token from adminTokenFile. Writes from other sites are refused.
 * docs/admin.md has the paths and the format of the answers. */

#include "journal/log.h"
#include "loop/listen.h"
#include "loop/loop.h"

#include <becalm/config.h>

struct admin;
struct control;
struct gateway;
struct history;
struct metrics_redis;
struct buffer;

struct admin_route;

/* The results of active health checks of a host. */
struct admin_health {
    bool passes;     /* or has not failed often enough yet */
    const char *why; /* why the last check failed; NULL: it passed, or there was none */
    uint32_t status; /* of its answer; 0: there was none */
    uint64_t passed; /* checks */
    uint64_t failed;
};

/* The gateway that an admin address belongs to. A program that runs several gateways (becalm demo) has a page of its
 * own, served in the same way: then it sets `routes` and `self`, and there is no gateway. */
struct admin_place {
    struct gateway *gateway;
    struct control *control; /* the argument of the functions below */
    int (*reload)(struct control *, struct becalm_diags *);
    struct loop *loop;
    struct log_source *log;
    const struct history *history;
    uint32_t (*stores)(struct control *, struct metrics_redis *, uint32_t size); /* the connected stores */
    void (*fleet)(struct control *, struct buffer *); /* writes the processes that share them, as JSON */
    /* Of the host of a service with this address. False: it is not checked. */
    bool (*health)(struct control *, const char *service, const union address_socket *, struct admin_health *);
    const char *name; /* for diagnostics */
    const struct handed *handed;
    const struct admin_route *routes; /* the pages; the list ends with a path of NULL. NULL: the pages of a gateway */
    void *self;
};

struct admin *admin_make(const struct admin_place *); /* listens nowhere yet; NULL: no memory */
void admin_free(struct admin *);

/* Opens the address and reads the token that these settings name, without using them yet. 0; BECALM_EIO with a
 * diagnostic, or BECALM_ENOMEM. Each call is followed by one of admin_settle(). */
int admin_prepare(struct admin *, const struct becalm_settings *, struct becalm_diags *);
/* Uses the listener that was prepared, or drops it. Connections to another address than the present one are closed. */
void admin_settle(struct admin *, bool use);

/* Ends injected faults whose time is over, and logs it. Once a second is enough, because a fault whose time is over
 * hits no calls. */
void admin_faults_expire(struct admin *);

/* There is a new second in the history: sends it to all clients that follow /api/events. */
void admin_tell(struct admin *);

#endif
