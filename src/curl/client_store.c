/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "client_store.h"

#include "redis/lookup.h"
#include "run/entropy.h"

#include <becalm/run.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK (10 * BECALM_MS) /* while something is on its way: an answer waits for so long at most */

struct client_store {
    struct client_store_options options;
    struct redis_stores_budget *budget; /* a copy */
    BECALM_ATOMIC(becalm_ns) due_at;    /* relaxed: a turn too many or a moment later does no harm */
    pthread_mutex_t mutex;              /* held by the thread that does the turn */
    pid_t process;                      /* that the connections belong to */
    struct store_site *inherited;       /* of the process that this one was forked from; not to be touched */
    struct loop loop;
    struct redis_stores stores;
    struct lookup lookup;
    struct roster_rates rates;
    char id[ROSTER_WORD];
    char policy[ROSTER_WORD];
};

static void nobody_wakes(struct loop *loop)
{
    (void)loop;
}

static bool host_find(void *self, const char *host, union address_socket *socket)
{
    struct client_store *store = self;
    return lookup_find(&store->lookup, host, socket);
}

static void process_tell(void *self, struct roster_entry *entry)
{
    struct client_store *store = self;
    struct roster_totals totals = {.calls = 0};
    store->options.count(store->options.self, &totals);
    for (uint32_t i = 0; i < store->options.budget_count; i++) {
        entry->budgets++;
        entry->degraded += becalm_lease_degraded(store->budget[i].lease);
    }
    snprintf(entry->id, sizeof entry->id, "%s", store->id);
    snprintf(entry->policy, sizeof entry->policy, "%s", store->policy);
    roster_rates(&store->rates, store->loop.now, &totals, entry);
}

static void leases_bind_all(struct client_store *store)
{
    store->stores.options =
        (struct redis_stores_options){.loop = &store->loop, .find = host_find, .tell = process_tell, .self = store};
    redis_stores_bind_begin(&store->stores);
    for (uint32_t i = 0; i < store->options.budget_count; i++) {
        redis_stores_bind(&store->stores, &store->budget[i]);
    }
    redis_stores_bind_end(&store->stores);
}

static void begin(struct client_store *store)
{
    store->process = getpid();
    store->lookup.random = entropy_seed();
    store->rates.begun_at = store->rates.told_at = store->loop.now;
    snprintf(store->id, sizeof store->id, "curl-%08" PRIx32, (uint32_t)entropy_seed());
    leases_bind_all(store);
}

/* After a fork the connections and the leased tokens belong to the parent process. The child uses only its local share,
 * under a new name, until it has connections of its own. */
static void process_begin(struct client_store *store)
{
    struct becalm_lease_request goodbye; /* not sent: the parent process says goodbye itself */
    struct becalm_moment at = {.now = becalm_run_now(), .random = entropy_seed()};
    loop_close(&store->loop);
    if (loop_init(&store->loop, nobody_wakes) != 0) {
        return; /* at the next turn */
    }
    for (uint32_t i = 0; i < store->options.budget_count; i++) {
        (void)becalm_lease_lost(store->budget[i].lease, store->budget[i].policy, &at, &goodbye);
    }
    store->inherited = store->stores.first;
    store->stores.first = NULL;
    store->lookup = (struct lookup){.random = 0};
    begin(store);
}

struct client_store *client_store_make(const struct client_store_options *options)
{
    struct client_store *store = calloc(1, sizeof *store);
    struct redis_stores_budget *budget = calloc(options->budget_count, sizeof *budget);
    if (store == NULL || budget == NULL || loop_init(&store->loop, nobody_wakes) != 0) {
        goto fail;
    }
    if (pthread_mutex_init(&store->mutex, NULL) != 0) {
        loop_close(&store->loop);
        goto fail;
    }
    memcpy(budget, options->budget, options->budget_count * sizeof *budget);
    store->options = *options;
    store->budget = budget;
    redis_stores_policy_hash(options->config, store->policy, sizeof store->policy);
    begin(store);
    return store;
fail:
    free(budget);
    free(store);
    return NULL;
}

void client_store_free(struct client_store *store)
{
    if (store == NULL) {
        return;
    }
    if (store->process == getpid()) {
        redis_stores_free(&store->stores);
        lookup_clear(&store->lookup);
        loop_turn(&store->loop, false); /* frees buried objects */
    }
    loop_close(&store->loop);
    (void)pthread_mutex_destroy(&store->mutex);
    free(store->budget);
    free(store);
}

becalm_ns client_store_due(const struct client_store *store)
{
    return atomic_load_explicit(&store->due_at, memory_order_relaxed);
}

static bool something_comes(const struct client_store *store)
{
    for (const struct store_site *site = store->stores.first; site != NULL; site = site->next) {
        if (redis_waits(leases_redis(site->leases))) {
            return true;
        }
    }
    return false;
}

void client_store_turn(struct client_store *store)
{
    becalm_ns now = becalm_run_now();
    if (now < client_store_due(store) || pthread_mutex_trylock(&store->mutex) != 0) {
        return;
    }
    atomic_store_explicit(&store->due_at, becalm_ns_after(now, LOOK), memory_order_relaxed); /* others need not look */
    if (store->process != getpid()) {
        process_begin(store);
    }
    loop_turn(&store->loop, false);
    becalm_ns due = wheel_next(&store->loop.wheel);
    if (something_comes(store)) {
        due = becalm_ns_min(due, becalm_ns_after(store->loop.now, LOOK));
    }
    atomic_store_explicit(&store->due_at, due, memory_order_relaxed);
    (void)pthread_mutex_unlock(&store->mutex);
}

uint32_t client_store_tell(struct client_store *store, struct metrics_redis *to, uint32_t size)
{
    (void)pthread_mutex_lock(&store->mutex);
    uint32_t count = redis_stores_tell(&store->stores, to, size);
    (void)pthread_mutex_unlock(&store->mutex);
    return count;
}
