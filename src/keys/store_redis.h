/* SPDX-License-Identifier: MIT */
#ifndef BECALM_KEYS_STORE_REDIS_H
#define BECALM_KEYS_STORE_REDIS_H

/* Idempotency keys in a Redis that all gateways of a fleet share: one connection for each thread, on its loop.
 *
 * A key begins with a request to Redis that is answered later (STORE_LATER), or given up after the keyring's timeout.
 * The call that has begun a key holds a lease, which is renewed until its end; each beginning has its own owner id, and
 * only that owner can end the key. The end is written in the background: no call waits for it, and it is repeated until
 * Redis has acknowledged it. A beginning whose answer was lost is released in the same way, because nothing was sent to
 * a host yet.
 *
 * While Redis does not answer, after three requests in a row that it did not answer in time, or without a connection, a
 * call is refused, or its key is kept in the memory of this process, or it passes: see enum becalm_keys_away. */

#include "keyring.h"

#include "loop/loop.h"

/* The counts of all threads together. */
struct store_tally {
    BECALM_ATOMIC(uint64_t) verdict[STORE_VERDICTS];
    BECALM_ATOMIC(uint64_t) local;                       /* calls while the store was away that used the local memory */
    BECALM_ATOMIC(uint64_t) stored, released, too_large; /* ends */
    BECALM_ATOMIC(uint64_t) fenced;                      /* ends that came too late */
    BECALM_ATOMIC(uint64_t)
    waited, waits, wait_within[5]; /* for answers to beginnings: ns, how many, by redis_bounds */
};
void store_tally_count(struct store_tally *, struct store_counts *); /* adds to the counts */

struct store_redis_options {
    struct loop *loop;
    struct keyring *keyring;
    struct store *local; /* the one in memory */
    struct store_tally *tally;
    bool (*find)(void *self, const char *host, union address_socket *); /* as that of struct redis_options */
    void *self;
};

struct store *store_redis_make(const struct store_redis_options *); /* NULL: no memory */

/* Is no key of this store being asked for, held or ended? Then the store may be freed. */
bool store_redis_idle(const struct store *);

#endif
