/* SPDX-License-Identifier: MIT */
#include "key_store.h"

#include "gateway_shared.h"

#include "keys/store_redis.h"

#include <stdlib.h>
#include <string.h>

/* One that is over a network. */
struct worker_keys {
    struct worker_keys *next; /* older ones */
    struct worker *worker;
    struct keyring *keyring;
    struct store *store;
    struct key_hashes hashes;
};

/* A name is found in the snapshot, which has its addresses of now. Which of them is drawn, so that a dead one is not
 * all that is tried. */
static bool address_find(void *self, const char *host, union address_socket *socket)
{
    struct worker *worker = ((struct worker_keys *)self)->worker;
    const struct snapshot *snapshot = worker->view->snapshot;
    struct address address;
    uint32_t found = 0;
    if (address_parse(host, &address) && address.kind != ADDRESS_NAME) {
        *socket = address.socket;
        return true;
    }
    for (uint32_t i = 0; i < snapshot->key_host_count; i++) {
        if (strcmp(snapshot->key_host[i].name, host) == 0 &&
            becalm_rand_below(becalm_rand_next(&worker->loop.random), ++found) == 0) {
            *socket = snapshot->key_host[i].address;
        }
    }
    return found > 0;
}

static void keys_free(struct worker_keys *keys)
{
    store_free(keys->store);
    key_hash_free(keys->hashes.now);
    key_hash_free(keys->hashes.older);
    keyring_drop(keys->keyring);
    free(keys);
}

/* NULL: no memory. */
static struct worker_keys *keys_make(struct worker *worker, struct keyring *ring)
{
    struct worker_keys *keys = calloc(1, sizeof *keys);
    if (keys == NULL) {
        return NULL;
    }
    keys->worker = worker;
    keys->keyring = keyring_use(ring);
    keys->hashes.now = key_hash_make(&ring->secret);
    keys->hashes.older = ring->has_older ? key_hash_make(&ring->older) : NULL;
    keys->store = store_redis_make(&(struct store_redis_options){.loop = &worker->loop,
                                                                 .keyring = ring,
                                                                 .local = worker->gateway->store,
                                                                 .tally = &worker->gateway->store_tally,
                                                                 .find = address_find,
                                                                 .self = keys});
    if (keys->store == NULL || keys->hashes.now == NULL || (ring->has_older && keys->hashes.older == NULL)) {
        keys_free(keys);
        return NULL;
    }
    return keys;
}

/* Those that hold no key any more. */
static void keys_forget(struct worker_keys **link)
{
    while (*link != NULL) {
        struct worker_keys *keys = *link;
        if (store_redis_idle(keys->store)) {
            *link = keys->next;
            keys_free(keys);
        } else {
            link = &keys->next;
        }
    }
}

void key_store_follow(struct worker *worker)
{
    struct keyring *ring = worker->view->snapshot->keyring;
    bool same = worker->keys != NULL && worker->keys->keyring == ring;
    struct worker_keys *keys = same || ring == NULL ? NULL : keys_make(worker, ring);
    if (keys != NULL) {
        keys->next = worker->keys;
        worker->keys = keys;
    }
    keys_forget(same || keys != NULL ? &worker->keys->next : &worker->keys);
}

struct store *key_store(struct worker *worker, struct key_hashes *hashes)
{
    struct keyring *ring = worker->view->snapshot->keyring;
    if (ring == NULL) {
        worker->key_hash = worker->key_hash == NULL ? key_hash_make(&worker->gateway->store_secret) : worker->key_hash;
        *hashes = (struct key_hashes){.now = worker->key_hash};
        return worker->key_hash == NULL ? NULL : worker->gateway->store;
    }
    if (worker->keys == NULL || worker->keys->keyring != ring) {
        return NULL;
    }
    *hashes = worker->keys->hashes;
    return worker->keys->store;
}

void key_store_free(struct worker *worker)
{
    while (worker->keys != NULL) {
        struct worker_keys *keys = worker->keys;
        worker->keys = keys->next;
        keys_free(keys);
    }
    key_hash_free(worker->key_hash);
}
