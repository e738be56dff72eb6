/* SPDX-License-Identifier: MIT */
#ifndef BECALM_REDIS_REQUEST_H
#define BECALM_REDIS_REQUEST_H

/* The store's half of shared budgets is a script in Redis, store.lua. This file writes requests to the script and reads
 * its answers. One run serves all budgets of an instance. Keys, all in one slot of a cluster:
 *
 *   becalm:{FLEET}:r:INSTANCE:CHUNK the store's records of an instance, one for each of its budgets
 *   becalm:{FLEET}:p:NAME:PPM:FLOOR the pot of one budget: instances with another percentage use another pot
 *
 * A version that changes the format of records or pots must use other names, so that two versions can serve one fleet
 * during an upgrade. */

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

/* Makes a name that is safe in a key: special characters become %XX, and a name that is too long ends in its hash.
 * `service` with `endpoint`, which may be NULL. `size` is at least SCRIPT_NAME_MAX + 1, or SCRIPT_FLEET_MAX + 1. */
void script_name(char *name, size_t size, const char *service, const char *endpoint);

/* Puts the words of store.lua's run into a command. False: no memory. */
bool script_fill(const struct script_run *, struct redis_command *);

/* Is the reply an answer about this many budgets? The second function returns the answer for one of them, by its number
 * in the run. */
bool script_answers(const struct reply *, uint32_t count);
struct becalm_lease_answer script_answer(const struct reply *, uint32_t number);

#endif
