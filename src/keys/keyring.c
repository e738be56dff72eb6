/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "keyring.h"

#include "libssl/libssl.h"
#include "policy/diag.h"
#include "policy/file.h"

#include <stdlib.h>
#include <string.h>

#define SECRET_LEAST 16u /* bytes: a reader of the store could guess a shorter secret */

/* A secret may have any length; its hash is the key of all other hashes. False: out of memory. */
static bool secret_hash(struct store_secret *secret, const char *text, size_t length)
{
    unsigned int size = 0;
    unsigned char digest[EVP_MAX_MD_SIZE];
    bool made = EVP_Digest(text, length, digest, &size, EVP_sha256(), NULL) == 1 && size == STORE_HASH;
    if (made) {
        memcpy(secret->bytes, digest, STORE_HASH);
    }
    return made;
}

/* The first line, and while it is replaced another one. */
static const char *secret_take(struct keyring *ring, const char *text)
{
    const char *missing = libssl_find();
    size_t length = strcspn(text, "\r\n");
    const char *other = text + length + strspn(text + length, "\r\n");
    size_t other_length = strcspn(other, "\r\n");
    ring->has_older = other_length > 0;
    if (missing != NULL) {
        return missing;
    }
    if (length < SECRET_LEAST) {
        return "its first line is shorter than 16 bytes; write head -c 32 /dev/urandom | base64 > FILE";
    }
    if (ring->has_older && other_length < SECRET_LEAST) {
        return "its second line, the secret before, is shorter than 16 bytes; take it out";
    }
    bool made = secret_hash(&ring->secret, text, length) &&
                (!ring->has_older || secret_hash(&ring->older, other, other_length));
    return made ? NULL : "no memory";
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

static bool secrets_same(const struct store_secret *a, const struct store_secret *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* Does the new keyring find the keys of the old one, in the same place? */
static bool same_keys(const struct keyring *before, const struct keyring *ring)
{
    return redis_site_same(&before->site, &ring->site) && strcmp(before->fleet, ring->fleet) == 0 &&
           (secrets_same(&before->secret, &ring->secret) ||
            (ring->has_older && secrets_same(&before->secret, &ring->older)));
}

static bool same(const struct keyring *a, const struct keyring *b)
{
    return same_keys(a, b) && secrets_same(&a->secret, &b->secret) && a->has_older == b->has_older &&
           secrets_same(&a->older, &b->older) && a->replicas == b->replicas &&
           memcmp(&a->seals, &b->seals, sizeof a->seals) == 0 && a->ttl == b->ttl && a->timeout == b->timeout &&
           a->lease == b->lease && a->max_answer == b->max_answer && a->fence == b->fence && a->away == b->away;
}

static bool remembers(const struct becalm_rules *rules)
{
    return rules->key == BECALM_KEY_REQUIRED || rules->key == BECALM_KEY_ENFORCED;
}

static bool has_keys(const struct becalm_config *config)
{
    for (uint32_t i = 0; i < becalm_config_services(config); i++) {
        const struct becalm_service *service = becalm_config_service(config, i);
        bool found = remembers(&service->rules);
        for (uint32_t k = 0; k < service->endpoint_count && !found; k++) {
            found = remembers(&service->endpoints[k].rules);
        }
        if (found) {
            return true;
        }
    }
    return false;
}

/* OpenSSL hashes keys. It is loaded here, with the policy, so that no worker loads it while it serves. */
static bool hash_found(const struct becalm_config *config, struct becalm_diags *diags)
{
    const char *why = has_keys(config) ? libssl_find() : NULL;
    if (why != NULL) {
        becalm_diag_add(diags, BECALM_ERROR, becalm_config_name(config), 1, 1, "unreadable",
                        "idempotency keys need OpenSSL, which can't be loaded: %s", why);
    }
    return why == NULL;
}

int keyring_make(struct keyring **made, const struct becalm_config *config, struct keyring *before,
                 struct becalm_diags *diags)
{
    const struct becalm_settings *settings = becalm_config_settings(config);
    const struct becalm_keys *keys = &settings->keys;
    *made = NULL;
    if (!hash_found(config, diags)) {
        return BECALM_EINVAL;
    }
    if (!keys->shared || settings->store.redis == NULL) {
        return 0;
    }
    struct keyring *ring = calloc(1, sizeof *ring);
    if (ring == NULL) {
        return BECALM_ENOMEM;
    }
    atomic_init(&ring->users, 1);
    atomic_init(&ring->listed, false);
    script_name(ring->fleet, sizeof ring->fleet, settings->fleet, NULL);
    ring->ttl = settings->store_ttl;
    ring->timeout = keys->timeout;
    ring->lease = keys->lease;
    ring->max_answer = keys->max_answer;
    ring->replicas = keys->replicas;
    ring->fence = keys->fence;
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
        *made = keyring_use(before);
        return 0;
    }
    ring->memory = before != NULL && same_keys(before, ring) ? key_memory_use(before->memory)
                                                             : key_memory_make(settings->store_max_entries);
    if (ring->memory == NULL) {
        keyring_drop(ring);
        return BECALM_ENOMEM;
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
    /* Release, so that a user's reads come before; acquire, so that the free comes after the reads of all users. */
    if (ring != NULL && atomic_fetch_sub_explicit(&ring->users, 1, memory_order_acq_rel) == 1) {
        redis_site_close(&ring->site);
        key_memory_drop(ring->memory);
        explicit_bzero(ring, sizeof *ring);
        free(ring);
    }
}
