/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_TALLY_H
#define BECALM_PROXY_TALLY_H

/* Exact counts by a 64-bit key, shared by all workers: connections by client, tunnels by host. A key takes memory only
 * while its count is above 0, so the size of the table is bounded by the number of counted objects. It is used once per
 * connection, never per request, so a lock is cheap enough. */

#include "loop/hash_table.h"

#include <pthread.h>

struct tally {
    pthread_mutex_t lock;
    struct hash_table table;
};

void tally_init(struct tally *);
void tally_free(struct tally *); /* all counts must be 0 */

/* Counts one more, unless there are `max` already. False: there are, or there is no memory. */
bool tally_take(struct tally *, uint64_t key, uint32_t max);
/* Counts one less. */
void tally_give(struct tally *, uint64_t key);

#endif
