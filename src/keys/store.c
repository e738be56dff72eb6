/* SPDX-License-Identifier: MIT */
#include "store_internal.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdlib.h>
#include <string.h>

/* A text with its length in front, so that no two lists of texts are the same bytes; 0 is for an absent one. */
static bool hash_text(EVP_MAC_CTX *context, struct becalm_text text)
{
    uint64_t length = text.at == NULL ? 0 : (uint64_t)text.length + 1;
    unsigned char bytes[8];
    for (unsigned i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(length >> (8 * i));
    }
    return EVP_MAC_update(context, bytes, sizeof bytes) == 1 &&
           (text.length == 0 || EVP_MAC_update(context, (const unsigned char *)text.at, text.length) == 1);
}

static bool hash_texts(EVP_MAC_CTX *context, const struct store_secret *secret, const struct becalm_text *texts,
                       size_t count, unsigned char hash[STORE_HASH])
{
    size_t length = 0;
    bool fine = EVP_MAC_init(context, secret->bytes, sizeof secret->bytes, NULL) == 1;
    for (size_t i = 0; fine && i < count; i++) {
        fine = hash_text(context, texts[i]);
    }
    return fine && EVP_MAC_final(context, hash, &length, STORE_HASH) == 1 && length == STORE_HASH;
}

/* HMAC with SHA-256. NULL: no memory. */
static EVP_MAC_CTX *context_make(void)
{
    char digest[] = "SHA256";
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *context = mac == NULL ? NULL : EVP_MAC_CTX_new(mac);
    const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                 OSSL_PARAM_construct_end()};
    EVP_MAC_free(mac);
    if (context != NULL && EVP_MAC_CTX_set_params(context, params) != 1) {
        EVP_MAC_CTX_free(context);
        return NULL;
    }
    return context;
}

static struct becalm_text hash_as_text(const unsigned char hash[STORE_HASH])
{
    return (struct becalm_text){(const char *)hash, STORE_HASH};
}

bool store_key_make(struct store_key *key, const struct store_request *request)
{
    const struct store_secret *secret = request->secret;
    const struct becalm_text fingerprint[] = {request->method, request->path, request->body};
    const struct becalm_text id[] = {request->service, request->endpoint, request->key, hash_as_text(key->scope)};
    const struct becalm_text guard[] = {request->service, request->endpoint, request->key, request->host,
                                        hash_as_text(key->fingerprint)};
    EVP_MAC_CTX *context = context_make();
    key->ticket = 0;
    key->hold = NULL;
    key->older = NULL;
    key->peer = request->peer;
    key->service = request->service;
    key->endpoint = request->endpoint;
    key->once = request->once;
    bool made = context != NULL && hash_texts(context, secret, request->scope, request->scope_count, key->scope) &&
                hash_texts(context, secret, fingerprint, sizeof fingerprint / sizeof *fingerprint, key->fingerprint) &&
                hash_texts(context, secret, id, sizeof id / sizeof *id, key->id) &&
                hash_texts(context, secret, guard, sizeof guard / sizeof *guard, key->guard);
    EVP_MAC_CTX_free(context);
    return made;
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
    /* Release, so that a holder's reads come before; acquire, so that the free comes after everybody's. */
    if (answer != NULL && atomic_fetch_sub_explicit(&answer->holders, 1, memory_order_acq_rel) == 1) {
        free(answer);
    }
}
