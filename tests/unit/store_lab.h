/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TESTS_STORE_LAB_H
#define BECALM_TESTS_STORE_LAB_H

/* The common part of the tests of key stores. */

#include "keys/store.h"

#include "unit/http_lab.h"

static const struct store_end released = {.kind = STORE_END_RELEASE};
static const struct store_settings wide = {.ttl = 60 * BECALM_S, .max_entries = 100, .max_bytes = 1 << 20};

static inline struct store *store_of(becalm_ns ttl, uint32_t entries, uint64_t bytes)
{
    struct store *store =
        store_memory_make(&(struct store_settings){.ttl = ttl, .max_entries = entries, .max_bytes = bytes});
    assert_non_null(store);
    return store;
}

/* By a secret, of which the rest is zeroes. */
static inline struct key_hash *hash_of(const char *secret)
{
    struct store_secret bytes = {{0}};
    memcpy(bytes.bytes, secret, strlen(secret));
    struct key_hash *hash = key_hash_make(&bytes);
    assert_non_null(hash);
    return hash;
}

/* A client: its scope and its address. */
static inline struct store_key key_by(const char *scope, uint64_t peer, const char *key, const char *body)
{
    struct store_key made;
    const struct becalm_text who = text(scope);
    struct key_hash *hash = hash_of("");
    struct store_request request = {.hash = hash,
                                    .service = text("pay"),
                                    .endpoint = text("charge"),
                                    .host = text("a.test"),
                                    .key = text(key),
                                    .scope = &who,
                                    .scope_count = 1,
                                    .peer = peer,
                                    .method = text("POST"),
                                    .path = text("/charge"),
                                    .body = text(body)};
    check_true(store_key_make(&made, &request));
    key_hash_free(hash);
    return made;
}

static inline struct store_key key_of(const char *key, const char *body)
{
    return key_by("alice", 1, key, body);
}

static inline enum store_verdict begin(struct store *store, struct store_key *key, becalm_ns now)
{
    struct store_ask ask;
    enum store_verdict verdict = store_begin(store, key, now, &ask);
    check_eq_u64(verdict, ask.verdict);
    check_true((ask.answer != NULL) == (verdict == STORE_ANSWERED));
    store_answer_free(ask.answer);
    return verdict;
}

static inline void end(struct store *store, const struct store_key *key, becalm_ns now, const char *body)
{
    struct store_end end = {.result = {.status = 201, .fields = text("a: b\r\n"), .body = text(body)}};
    store_end(store, key, now, &end);
}

static inline struct store_counts counts_of(struct store *store)
{
    struct store_counts counts;
    store_count(store, &counts);
    return counts;
}

#endif
