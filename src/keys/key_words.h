/* SPDX-License-Identifier: MIT */
#ifndef BECALM_KEYS_KEY_WORDS_H
#define BECALM_KEYS_KEY_WORDS_H

/* The names of an idempotency key in Redis, all in one slot of a cluster:
 *
 *   becalm:{FLEET}:k:ID      its record
 *   becalm:{FLEET}:g:GUARD   its guard: the id of the record with this key and payload, of any client
 *   becalm:{FLEET}:held      the keys that are held, by the end of their time
 *   becalm:{FLEET}:era       which run of the server they are in, and until when it does not trust itself
 *   becalm:{FLEET}:e:NAME    how many keys a process has ended: key_memory.h
 *
 * The script is src/redis/keys.lua. */

#include "keyring.h"

#include "redis/redis.h"

struct key_names {
    const struct keyring *keyring;
    const struct redis *redis;  /* the connection that is used */
    struct key_stamp stamp;     /* filled by key_words() */
    const unsigned char *id;    /* the first STORE_ID bytes of the key's id; NULL: only the list of held keys is used */
    const unsigned char *guard; /* the same of the guard; NULL: unknown */
    const unsigned char *older; /* id, then guard, by the previous secret; NULL: there is none */
};

/* Adds the words of a script's call: the number of keys, the keys, the request's name, the run of the server that it is
 * for, the lease. False: out of memory. */
bool key_words(struct redis_command *, struct key_names *, const char *what);

/* How often each gateway renews its keys: three times in a lease. */
becalm_ns key_patience(const struct keyring *);

#define KEY_HEX (2 * STORE_ID + 1)
void key_hex(char text[KEY_HEX], const unsigned char id[STORE_ID]);
bool key_hex_read(unsigned char id[STORE_ID], const char *text, size_t length); /* false: the text is no id */

#endif
