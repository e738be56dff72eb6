/* SPDX-License-Identifier: MIT */
#ifndef BECALM_KEYS_KEY_DESK_H
#define BECALM_KEYS_KEY_DESK_H

/* Where people see which of the keys that gateways share are held, and order that one is released: a connection of its
 * own, on the loop of one thread. It counts them at least every two seconds, and reads the list while somebody looks.
 *
 * By the same question it hears how many keys that this process has ended the store remembers, and tells it again those
 * that it has forgotten. */

#include "keyring.h"

#include "loop/loop.h"

struct key_desk;

struct key_desk_options {
    struct loop *loop;
    struct keyring *keyring;
    bool (*find)(void *self, const char *host, union address_socket *); /* as that of struct redis_options */
    void (*note)(void *self, const char *why);                          /* as that of struct redis_options */
    /* What became of an order: NULL, or why nothing did. */
    void (*ordered)(void *self, const unsigned char id[STORE_ID], const char *why);
    /* The store has forgotten so many keys that are done at most once; `told`: it knows them again. */
    void (*forgotten)(void *self, uint32_t count, bool told);
    void *self;
};

struct key_desk *key_desk_make(const struct key_desk_options *); /* NULL: no memory */
void key_desk_free(struct key_desk *);                           /* takes NULL */

struct keyring *key_desk_keyring(const struct key_desk *);
const struct redis *key_desk_redis(const struct key_desk *);

/* How many are held, as far as it is known. */
uint64_t key_desk_count(const struct key_desk *);
/* The list as it was last read, the oldest first; returns how many were written. */
uint32_t key_desk_held(struct key_desk *, becalm_ns now, struct store_held *, uint32_t most);
/* An operator knows what became of it: `ordered` tells. False: it can't be asked now. */
bool key_desk_release(struct key_desk *, const unsigned char id[STORE_ID]);

#endif
