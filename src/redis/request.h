/* SPDX-License-Identifier: MIT */
#ifndef BECALM_REDIS_REQUEST_H
#define BECALM_REDIS_REQUEST_H

/* The store's half of shared budgets is a script in Redis, store.lua: how a request to it is written, and what its
 * answer says. One run serves all budgets of an instance. Keys, all in one slot of a cluster:
 *
 *   becalm:{FLEET}:r:INSTANCE:CHUNK         what the store remembers of an instance: a record for each of its budgets
 *   becalm:{FLEET}:p:NAME:PPM:FLOOR         the pot of one budget: who has another percentage has another pot
 *
 * A version that writes other records or pots names them otherwise, so that both may serve one fleet for a while. */

#include "redis.h"

#include <becalm/lease.h>

#define SCRIPT_BUDGETS   256u /* in one run: more would keep Redis from its other work for too long */
#define SCRIPT_ANSWER    40u  /* bytes, for each */
#define SCRIPT_NAME_MAX  128u
#define SCRIPT_FLEET_MAX 64u

/* One budget. */
struct script_part {
    char name[SCRIPT_NAME_MAX + 1]; /* script_name() */
    uint32_t index;                 /* of its record: below SCRIPT_BUDGETS, and rising within a run */
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

/* Is it an answer about so many budgets? And what it says of the one with this number in the run. */
bool script_answers(const struct reply *, uint32_t count);
struct becalm_lease_answer script_answer(const struct reply *, uint32_t number);

#endif
