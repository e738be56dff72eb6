/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_KEY_STORE_H
#define BECALM_PROXY_KEY_STORE_H

/* Where a worker keeps idempotency keys: in the memory of the gateway, or in the Redis that its policy names. After a
 * reload with another one a key that is held ends where it has begun. */

#include "keys/store.h"
#include "worker.h"

/* The one of the present snapshot, with the secrets of its hashes. */
struct key_secrets {
    const struct store_secret *now;
    const struct store_secret *older; /* NULL: there is none */
};
struct store *key_store(struct worker *, struct key_secrets *);

/* There is a new snapshot. */
void key_store_follow(struct worker *);
void key_store_free(struct worker *);

#endif
