/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "key_hash.h"

#include "libssl/libssl.h"
#include "unfilled.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK  64u  /* of SHA-256 */
#define GATHER 256u /* bytes: short texts are hashed together */

/* RFC 2104: H(secret ^ opad, H(secret ^ ipad, text)). */
struct key_hash {
    EVP_MD_CTX *inner; /* has read secret ^ ipad */
    EVP_MD_CTX *outer; /* has read secret ^ opad */
    EVP_MD_CTX *work;
};

/* NULL: no memory. */
static EVP_MD_CTX *pad_read(const struct store_secret *secret, unsigned char pad)
{
    unsigned char block[BLOCK];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    for (size_t i = 0; i < BLOCK; i++) {
        block[i] = (unsigned char)((i < sizeof secret->bytes ? secret->bytes[i] : 0) ^ pad);
    }
    bool read = context != NULL && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1 &&
                EVP_DigestUpdate(context, block, sizeof block) == 1;
    explicit_bzero(block, sizeof block);
    if (!read) {
        EVP_MD_CTX_free(context);
        return NULL;
    }
    return context;
}

struct key_hash *key_hash_make(const struct store_secret *secret)
{
    struct key_hash *hash = libssl_find() == NULL ? calloc(1, sizeof *hash) : NULL;
    if (hash == NULL) {
        return NULL;
    }
    hash->inner = pad_read(secret, 0x36);
    hash->outer = pad_read(secret, 0x5c);
    hash->work = EVP_MD_CTX_new();
    if (hash->inner == NULL || hash->outer == NULL || hash->work == NULL) {
        key_hash_free(hash);
        return NULL;
    }
    return hash;
}

void key_hash_free(struct key_hash *hash)
{
    if (hash != NULL) {
        EVP_MD_CTX_free(hash->inner); /* which clears it */
        EVP_MD_CTX_free(hash->outer);
        EVP_MD_CTX_free(hash->work);
        free(hash);
    }
}

/* Bytes on their way to the hash. */
struct gather {
    EVP_MD_CTX *to;
    size_t count;
    bool fine;
    unsigned char bytes[GATHER];
};

static void flush(struct gather *gather)
{
    gather->fine = gather->fine && EVP_DigestUpdate(gather->to, gather->bytes, gather->count) == 1;
    gather->count = 0;
}

static void put(struct gather *gather, const void *bytes, size_t length)
{
    if (length > GATHER - gather->count) {
        flush(gather);
    }
    if (length > GATHER) {
        gather->fine = gather->fine && EVP_DigestUpdate(gather->to, bytes, length) == 1;
    } else if (length > 0) {
        memcpy(gather->bytes + gather->count, bytes, length);
        gather->count += length;
    }
}

static void put_text(struct gather *gather, struct becalm_text text)
{
    uint64_t length = text.at == NULL ? 0 : (uint64_t)text.length + 1;
    unsigned char bytes[8];
    for (unsigned i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(length >> (8 * i));
    }
    put(gather, bytes, sizeof bytes);
    put(gather, text.at, text.length);
}

bool key_hash_texts(struct key_hash *hash, const struct becalm_text *texts, size_t count,
                    unsigned char made[STORE_HASH])
{
    UNFILLED struct gather gather;
    gather.to = hash->work;
    gather.count = 0;
    gather.fine = EVP_MD_CTX_copy_ex(hash->work, hash->inner) == 1;
    for (size_t i = 0; i < count; i++) {
        put_text(&gather, texts[i]);
    }
    flush(&gather);
    return gather.fine && EVP_DigestFinal_ex(hash->work, made, NULL) == 1 &&
           EVP_MD_CTX_copy_ex(hash->work, hash->outer) == 1 && EVP_DigestUpdate(hash->work, made, STORE_HASH) == 1 &&
           EVP_DigestFinal_ex(hash->work, made, NULL) == 1;
}
