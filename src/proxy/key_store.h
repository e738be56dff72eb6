/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_KEY_STORE_H
#define BECALM_PROXY_KEY_STORE_H

/* A worker's store of idempotency keys: the memory of the gateway, or the Redis that its policy names. After a reload
 * with another store, a key that is in flight ends in the store in which it began. */

#include "keys/store.h"
#include "worker.h"

/* The secrets for the hashes of the present snapshot's store. */
struct key_secrets {
    const struct store_secret *now;
    const struct store_secret *older; /* NULL: there is none */
};
struct store *key_store(struct worker *, struct key_secrets *);

/* There is a new snapshot. */
void key_store_follow(struct worker *);
void key_store_free(struct worker *);

#endif
