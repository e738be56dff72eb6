/* SPDX-License-Identifier: MIT */
#ifndef BECALM_KEYS_KEY_DESK_H
#define BECALM_KEYS_KEY_DESK_H

/* Lists the held keys that gateways share, and releases one on an operator's order: a Redis connection of its own, on
 * the loop of one thread. It counts the held keys at least every two seconds, and reads the list while a page shows it.
 *
 * The same request returns how many of the keys that this process has ended the store remembers; keys that the store
 * has forgotten are written again. */

#include "keyring.h"

#include "loop/loop.h"

struct key_desk;

struct key_desk_options {
    struct loop *loop;
    struct keyring *keyring;
    bool (*find)(void *self, const char *host, union address_socket *); /* as that of struct redis_options */
    void (*note)(void *self, const char *why);                          /* as that of struct redis_options */
    /* The result of an order: NULL, or why it failed. */
    void (*ordered)(void *self, const unsigned char id[STORE_ID], const char *why);
    /* The store has forgotten this many enforced keys; `told`: they have been written to it again. */
    void (*forgotten)(void *self, uint32_t count, bool told);
    void *self;
};

struct key_desk *key_desk_make(const struct key_desk_options *); /* NULL: no memory */
void key_desk_free(struct key_desk *);                           /* takes NULL */

struct keyring *key_desk_keyring(const struct key_desk *);
const struct redis *key_desk_redis(const struct key_desk *);

/* The number of held keys in the latest answer. */
uint64_t key_desk_count(const struct key_desk *);
/* The list as it was last read, the oldest first; returns how many were written. */
uint32_t key_desk_held(struct key_desk *, becalm_ns now, struct store_held *, uint32_t most);
/* An operator releases a held key: `ordered` gets the result. False: the store can't be asked now. */
bool key_desk_release(struct key_desk *, const unsigned char id[STORE_ID]);

#endif
