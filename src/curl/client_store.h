/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_CLIENT_STORE_H
#define BECALM_CURL_CLIENT_STORE_H

/* The budgets that a client shares with other processes, in the Redis that its policy names. The store has no thread,
 * and needs no descriptor in the program's loop: each thread that drives calls of the client gives it a turn when one
 * is due, and sleeps no longer than until the next. While no thread is in a call the store is not asked, and the lease
 * runs out. */

#include "redis/stores.h"

struct client_store;

struct client_store_options {
    const struct becalm_config *config;
    const struct redis_stores_budget *budget; /* all that the client has, the services' own before their endpoints' */
    uint32_t budget_count;
    void (*count)(void *self, struct roster_totals *); /* adds all that were made, for others to see */
    void *self;
};

/* Binds the leases. NULL: no memory or descriptors. */
struct client_store *client_store_make(const struct client_store_options *);
/* Returns the leases. */
void client_store_free(struct client_store *);

/* When the next turn is due. From any thread. */
becalm_ns client_store_due(const struct client_store *);
/* Does the turn, if it is due and no other thread does it. Never waits. Safe from any thread. */
void client_store_turn(struct client_store *);

struct metrics_redis;
/* For becalm_client_metrics(): how many there are, at most `size`. */
uint32_t client_store_tell(struct client_store *, struct metrics_redis *, uint32_t size);

#endif
