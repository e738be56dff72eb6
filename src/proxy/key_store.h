/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_KEY_STORE_H
#define BECALM_PROXY_KEY_STORE_H

/* A worker's store of idempotency keys: the memory of the gateway, or the Redis that its policy names. After a reload
 * with another store, a key that is in flight ends in the store in which it began. */

#include "keys/store.h"
#include "worker.h"

/* The hashes of the present snapshot's store. */
struct key_hashes {
    struct key_hash *now;
    struct key_hash *older; /* by the secret before. NULL: there is none */
};
/* NULL: there was no memory for it. */
struct store *key_store(struct worker *, struct key_hashes *);

/* There is a new snapshot. */
void key_store_follow(struct worker *);
void key_store_free(struct worker *);

#endif
