/* SPDX-License-Identifier: MIT */
#ifndef BECALM_KEYS_KEY_WORDS_H
#define BECALM_KEYS_KEY_WORDS_H

/* What Redis knows an idempotency key by, all in one slot of a cluster:
 *
 *   becalm:{FLEET}:k:ID      its record
 *   becalm:{FLEET}:g:GUARD   its guard: which record has this key and payload, whoever asks
 *   becalm:{FLEET}:held      the keys that are held, by the end of their time
 *
 * The script is src/redis/keys.lua. */

#include "store.h"

#include "redis/redis.h"

struct key_names {
    const char *fleet;          /* script_name() */
    const unsigned char *id;    /* STORE_ID bytes of it; NULL: the list of those that are held, alone */
    const unsigned char *guard; /* likewise of the guard; NULL: unknown */
};

/* The number of keys, the keys, and what is asked. False: no memory. */
bool key_words(struct redis_command *, const struct key_names *, const char *what);

#define KEY_HEX (2 * STORE_ID + 1)
void key_hex(char text[KEY_HEX], const unsigned char id[STORE_ID]);
bool key_hex_read(unsigned char id[STORE_ID], const char *text, size_t length); /* false: it is none */

#endif
