/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "keyring.h"

#include "policy/diag.h"
#include "policy/file.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#define SECRET_LEAST 16u /* bytes: a shorter one could be guessed by who reads the store */

/* The first line; whatever its length, its hash is what hashes are keyed by. */
static const char *secret_take(struct keyring *ring, const char *text)
{
    size_t length = strcspn(text, "\r\n");
    unsigned int size = 0;
    unsigned char digest[EVP_MAX_MD_SIZE];
    if (length < SECRET_LEAST) {
        return "its first line is shorter than 16 bytes; write head -c 32 /dev/urandom | base64 > FILE";
    }
    if (EVP_Digest(text, length, digest, &size, EVP_sha256(), NULL) != 1 || size != STORE_HASH) {
        return "no memory";
    }
    memcpy(ring->secret.bytes, digest, STORE_HASH);
    return NULL;
}

static const char *encrypt_take(struct keyring *ring, const char *text)
{
    return seals_read(&ring->seals, text);
}

/* True: it was read, or there is none. */
static bool read_file(struct keyring *ring, const struct becalm_config *config, const struct becalm_file *file,
                      const char *key, const char *(*take)(struct keyring *, const char *), struct becalm_diags *diags)
{
    size_t length;
    const char *why = NULL;
    if (file->path == NULL) {
        return true;
    }
    char *text = file_read_regular(file->path, &length, &why);
    if (text != NULL) {
        why = take(ring, text);
        explicit_bzero(text, length);
    }
    free(text);
    if (why != NULL) {
        becalm_diag_add(diags, BECALM_ERROR, becalm_config_name(config), file->line > 0 ? file->line : 1,
                        file->column > 0 ? file->column : 1, "store", "idempotencyStore.%s: %s: %s", key, file->path,
                        why);
    }
    return why == NULL;
}

static bool same(const struct keyring *a, const struct keyring *b)
{
    return redis_site_same(&a->site, &b->site) && strcmp(a->fleet, b->fleet) == 0 &&
           memcmp(&a->secret, &b->secret, sizeof a->secret) == 0 &&
           memcmp(&a->seals, &b->seals, sizeof a->seals) == 0 && a->ttl == b->ttl && a->timeout == b->timeout &&
           a->lease == b->lease && a->max_answer == b->max_answer && a->away == b->away;
}

int keyring_make(struct keyring **made, const struct becalm_config *config, struct keyring *before,
                 struct becalm_diags *diags)
{
    const struct becalm_settings *settings = becalm_config_settings(config);
    const struct becalm_keys *keys = &settings->keys;
    *made = NULL;
    if (!keys->shared || settings->store.redis == NULL) {
        return 0;
    }
    struct keyring *ring = calloc(1, sizeof *ring);
    if (ring == NULL) {
        return BECALM_ENOMEM;
    }
    atomic_init(&ring->users, 1);
    script_name(ring->fleet, sizeof ring->fleet, settings->fleet, NULL);
    ring->ttl = settings->store_ttl;
    ring->timeout = keys->timeout;
    ring->lease = keys->lease;
    ring->max_answer = keys->max_answer;
    ring->away = keys->away;
    if (!read_file(ring, config, &keys->secret_file, "secretFile", secret_take, diags) ||
        !read_file(ring, config, &keys->encrypt_file, "encryptFile", encrypt_take, diags) ||
        !redis_site_open(&ring->site, config, settings->store.redis, (struct becalm_origin){.line = 0}, diags)) {
        explicit_bzero(ring, sizeof *ring);
        free(ring);
        return BECALM_EINVAL;
    }
    if (before != NULL && same(before, ring)) {
        keyring_drop(ring);
        ring = keyring_use(before);
    }
    *made = ring;
    return 0;
}

struct keyring *keyring_use(struct keyring *ring)
{
    if (ring != NULL) {
        atomic_fetch_add_explicit(&ring->users, 1, memory_order_relaxed);
    }
    return ring;
}

void keyring_drop(struct keyring *ring)
{
    /* Release, so that a user's reads come before; acquire, so that the free comes after everybody's. */
    if (ring != NULL && atomic_fetch_sub_explicit(&ring->users, 1, memory_order_acq_rel) == 1) {
        redis_site_close(&ring->site);
        explicit_bzero(ring, sizeof *ring);
        free(ring);
    }
}
