/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_STORE_H
#define BECALM_PROXY_STORE_H

/* Answers by idempotency key, for endpoints with `idempotencyKey: required`. The interface is one that a store shared
 * by several gateways can implement too, so every question may be answered later; the one in memory answers at once.
 *
 * A key is (endpoint, key, hash of Authorization and Cookie); its fingerprint is (method, path, hash of the body). The
 * first call with a key begins it; when it ends with an answer of the service below 500 (and not 429) that is stored;
 * anything else releases the key. Shared by all workers. */

#include <becalm/http.h>

#define STORE_ID 32u /* SHA-256, or another hash that nobody can make collide on purpose */

struct store_key {
    unsigned char id[STORE_ID];          /* of endpoint, key, credentials */
    unsigned char fingerprint[STORE_ID]; /* of method, path, body */
};

/* Hashes; the texts may be absent. */
void store_key_make(struct store_key *, struct becalm_text target_name, struct becalm_text key,
                    struct becalm_text authorization, struct becalm_text cookie, struct becalm_text method,
                    struct becalm_text path, struct becalm_text body);

enum store_verdict {
    STORE_BEGUN,     /* nobody had it: make the call, then _end it exactly once */
    STORE_ANSWERED,  /* the stored answer is in *answer: store_answer_free() it */
    STORE_IN_FLIGHT, /* 409 */
    STORE_MISMATCH,  /* another payload: 422 */
    STORE_FULL       /* no room: 503, rather than a promise that can't be kept */
};

/* A stored answer: its status, its fields rebuilt as "name: value\r\n" lines, its body. One block of memory. */
struct store_answer {
    uint32_t status;
    size_t fields_length;
    size_t body_length;
    char bytes[]; /* fields, then body */
};

struct store_settings {
    becalm_ns ttl;
    uint32_t max_entries;
    uint64_t max_bytes;
};

struct store; /* the store in memory */

struct store *store_make(const struct store_settings *); /* NULL: no memory */
void store_free(struct store *);
/* A reload: keeps what it has, and forgets the oldest beyond the new bounds. */
void store_resize(struct store *, const struct store_settings *);

/* Begins a key or says why not. Each STORE_BEGUN is followed by one store_end() with the same key. `now` is monotonic.
 */
enum store_verdict store_begin(struct store *, const struct store_key *, becalm_ns now, struct store_answer **answer);

/* Keeps the answer, or with NULL releases the key. The answer is copied; too large for max_bytes: released. */
void store_end(struct store *, const struct store_key *, becalm_ns now, uint32_t status, struct becalm_text fields,
               struct becalm_text body, bool keep);

void store_answer_free(struct store_answer *);

struct store_counts {
    uint64_t entries, bytes, begun, answered, in_flight, mismatches, full, expired;
};
void store_count(struct store *, struct store_counts *);

#endif
