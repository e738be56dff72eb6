/* SPDX-License-Identifier: MIT */
#include "store_internal.h"

#include <stdlib.h>
#include <string.h>

static struct becalm_text hash_as_text(const unsigned char hash[STORE_HASH])
{
    return (struct becalm_text){(const char *)hash, STORE_HASH};
}

bool store_key_make(struct store_key *key, const struct store_request *request)
{
    struct key_hash *hash = request->hash;
    const struct becalm_text fingerprint[] = {request->method, request->path, request->body};
    const struct becalm_text id[] = {request->service, request->endpoint, request->key, hash_as_text(key->scope)};
    const struct becalm_text guard[] = {request->service, request->endpoint, request->key, request->host,
                                        hash_as_text(key->fingerprint)};
    key->ticket = 0;
    key->hold = NULL;
    key->older = NULL;
    key->peer = request->peer;
    key->service = request->service;
    key->endpoint = request->endpoint;
    key->once = request->once;
    return key_hash_texts(hash, request->scope, request->scope_count, key->scope) &&
           key_hash_texts(hash, fingerprint, sizeof fingerprint / sizeof *fingerprint, key->fingerprint) &&
           key_hash_texts(hash, id, sizeof id / sizeof *id, key->id) &&
           key_hash_texts(hash, guard, sizeof guard / sizeof *guard, key->guard);
}

static size_t result_bytes(const struct store_result *result)
{
    return sizeof(struct store_answer) + result->fields.length + result->body.length;
}

struct store_answer *store_answer_make(const struct store_result *result)
{
    struct store_answer *answer = malloc(result_bytes(result));
    if (answer == NULL) {
        return NULL;
    }
    atomic_init(&answer->holders, 1);
    answer->status = result->status;
    answer->fields_length = result->fields.length;
    answer->body_length = result->body.length;
    if (result->fields.length > 0) {
        memcpy(answer->bytes, result->fields.at, result->fields.length);
    }
    if (result->body.length > 0) {
        memcpy(answer->bytes + result->fields.length, result->body.at, result->body.length);
    }
    return answer;
}

uint64_t store_answer_bytes(const struct store_answer *answer)
{
    return answer == NULL ? 0 : sizeof *answer + answer->fields_length + answer->body_length;
}

void store_answer_free(struct store_answer *answer)
{
    /* Release, so that a holder's reads come before; acquire, so that the free comes after the reads of all holders. */
    if (answer != NULL && atomic_fetch_sub_explicit(&answer->holders, 1, memory_order_acq_rel) == 1) {
        free(answer);
    }
}
