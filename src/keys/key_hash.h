/* SPDX-License-Identifier: MIT */
#ifndef BECALM_KEYS_KEY_HASH_H
#define BECALM_KEYS_KEY_HASH_H

/* HMAC with SHA-256 by one secret. A call waits while its four hashes are made, so the work that is the same for each
 * of them is done once: the secret is hashed, and OpenSSL has looked up its functions. For one thread at a time. */

#include <becalm/http.h>

#define STORE_HASH 32u /* SHA-256: two requests can't be made to collide on purpose */

/* All hashes are keyed, so that a reader of a page or of a store can't guess the request from its hash. */
struct store_secret {
    unsigned char bytes[STORE_HASH];
};

struct key_hash;
struct key_hash *key_hash_make(const struct store_secret *); /* NULL: no memory, or no OpenSSL */
void key_hash_free(struct key_hash *);                       /* takes NULL */

/* The hash of a list of texts. Each has its length in front, so that no two lists are the same bytes; 0 is for an
 * absent text. False: no memory. */
bool key_hash_texts(struct key_hash *, const struct becalm_text *texts, size_t count, unsigned char hash[STORE_HASH]);

#endif
