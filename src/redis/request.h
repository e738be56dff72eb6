/* SPDX-License-Identifier: MIT */
#ifndef BECALM_REDIS_REQUEST_H
#define BECALM_REDIS_REQUEST_H

/* The store's half of shared budgets is a script in Redis, store.lua: how a request to it is written, and what its
 * answer says. One run serves all budgets of an instance. Keys, all in one slot of a cluster:
 *
 *   becalm:{FLEET}:i:INSTANCE:CHUNK         what the store remembers of an instance
 *   becalm:{FLEET}:b:NAME:PPM:FLOOR         the pot of one budget: who has another percentage has another pot */

#include "redis.h"

#include <becalm/lease.h>

#define SCRIPT_BUDGETS   32u /* in one run: more would keep Redis from its other work for too long */
#define SCRIPT_NUMBERS   7u  /* of an answer, for each */
#define SCRIPT_NAME_MAX  128u
#define SCRIPT_FLEET_MAX 64u

/* One budget. */
struct script_part {
    char name[SCRIPT_NAME_MAX + 1]; /* script_name() */
    struct becalm_lease_policy policy;
    struct becalm_lease_request request;
};

struct script_run {
    const char *fleet; /* script_name() */
    uint32_t chunk;    /* which of the instance's budgets these are */
    const struct script_part *part;
    uint32_t count; /* at least 1, at most SCRIPT_BUDGETS; the instance is that of the first */
};

/* What a key may have in it: others become %XX, and a name that is too long ends in a hash of it. `service` with
 * `endpoint`, which may be NULL. `size` is at least SCRIPT_NAME_MAX + 1, or SCRIPT_FLEET_MAX + 1. */
void script_name(char *name, size_t size, const char *service, const char *endpoint);

/* Puts the words of store.lua's run into a command. False: no memory. */
bool script_fill(const struct script_run *, struct redis_command *);

/* What the numbers of an answer say of one budget. */
struct becalm_lease_answer script_answer(const struct reply_item *);

#endif
