/* SPDX-License-Identifier: MIT */
#include "world_internal.h"

#include <stdlib.h>
#include <string.h>

/* The store of shared budgets, and the callers that lease from it. The engine decides how much is requested, granted
 * and spent. This file has only the messages, the connections, and a store that can be unreachable, slow, dead or
 * stopped. Connections break as in src/redis: when the store dies, or when a stopped store has not answered for a
 * second. They are made anew with the same waits. */

#define TIMEOUT   BECALM_S
#define WAIT_BASE (220 * BECALM_MS)
#define WAIT_CAP  (1800 * BECALM_MS)
#define LOOK      (5 * BECALM_MS) /* how often a stopped store's waiting messages are looked at */

/* A caller that leases. */
struct tenant {
    struct becalm_lease *lease;
    const struct becalm_lease_policy *policy;
    uint32_t service;
    uint32_t budget; /* world_target() */
    bool degraded;   /* as last seen, and since when */
    becalm_ns degraded_since;
    becalm_ns asks_at;
    uint32_t link;  /* the number of its connection */
    uint32_t tries; /* to make one, since the store last answered */
    bool linked;
    bool parting; /* the goodbye of the name before is not answered: nothing else is asked */
    bool has_goodbye;
    struct becalm_lease_request goodbye;
};

/* A message between a caller and the store. */
struct letter {
    uint32_t tenant;
    uint32_t link; /* the caller ignores an answer on any connection but the present one */
    bool goodbye;
    bool waits; /* in front of a store that is stopped */
    struct becalm_lease_request request;
    struct becalm_lease_answer answer;
};

bool stores_make(struct world *w)
{
    struct stores *stores = &w->stores;
    stores->tenants.item = sizeof(struct tenant);
    stores->letters.item = sizeof(struct letter);
    stores->budget = calloc(world_target(w->plan, w->plan->service_count, 0), sizeof(struct becalm_lease_store *));
    stores->saved = calloc(world_target(w->plan, w->plan->service_count, 0), sizeof(struct becalm_lease_store *));
    return stores->budget != NULL && stores->saved != NULL;
}

void stores_free(struct world *w)
{
    pool_free(&w->stores.tenants);
    pool_free(&w->stores.letters);
    free(w->stores.budget);
    free(w->stores.saved);
}

static struct tenant *tenant_at(const struct world *w, uint32_t id)
{
    return pool_at(&w->stores.tenants, id);
}

static struct letter *letter_at(const struct world *w, uint32_t id)
{
    return pool_at(&w->stores.letters, id);
}

/* A budget has room for every caller of its service and the names that it had before, up to the store's maximum. */
static bool budget_make(struct world *w, uint32_t budget, uint32_t service)
{
    uint64_t callers = 0;
    for (uint32_t i = 0; i < w->hop_count; i++) {
        callers += w->hop[i].to == service ? 4 * (uint64_t)w->hop[i].callers : 0;
    }
    uint32_t places = callers < BECALM_LEASE_INSTANCES_MAX ? (uint32_t)callers : BECALM_LEASE_INSTANCES_MAX;
    void *memory = slab_take(&w->memory, becalm_lease_store_bytes(places));
    if (memory != NULL) {
        w->stores.budget[budget] = becalm_lease_store_init(memory, places);
    }
    return memory != NULL;
}

bool tenant_add(struct world *w, const struct hop *hop, uint32_t kind, struct becalm_lease *lease)
{
    uint32_t budget = world_target(w->plan, hop->to, kind);
    uint32_t id = pool_take(&w->stores.tenants);
    if (id == NOTHING || (w->stores.budget[budget] == NULL && !budget_make(w, budget, hop->to))) {
        return false;
    }
    *tenant_at(w, id) = (struct tenant){
        .lease = lease,
        .policy = &hop->rules[kind].policy.lease,
        .service = hop->to,
        .budget = budget,
        .degraded = true,
        .degraded_since = w->clock.now,
        .linked = true,
        .asks_at = w->clock.now,
    };
    w->result->service[hop->to].shared.instances++;
    clock_plan(&w->clock, (struct event){.at = w->clock.now, .kind = TENANT_ASKS, .id = id});
    return true;
}

/* Notes how long it was degraded, when that has changed. */
static void tenant_watch(struct world *w, struct tenant *tenant)
{
    bool degraded = becalm_lease_degraded(tenant->lease);
    if (tenant->degraded && !degraded) {
        w->result->service[tenant->service].shared.degraded += w->clock.now - tenant->degraded_since;
    } else if (!tenant->degraded && degraded) {
        tenant->degraded_since = w->clock.now;
    }
    tenant->degraded = degraded;
}

/* Sends a letter on its way; one that vanishes is forgotten. */
static void letter_send(struct world *w, uint32_t id, enum event_kind kind)
{
    const struct tenant *tenant = tenant_at(w, letter_at(w, id)->tenant);
    becalm_ns slow = w->service[tenant->service].store_latency;
    bool lost = slow == BECALM_NEVER || becalm_rand_chance(becalm_rand_next(&w->policy_state), w->plan->loss_ppm);
    if (lost) {
        pool_give(&w->stores.letters, id);
        return;
    }
    struct dist latency = latency_dist(w->plan, w->plan->link);
    becalm_ns takes = slow + dist_draw(&w->tables, &latency, &w->policy_state);
    clock_plan(&w->clock, (struct event){.at = w->clock.now + takes, .kind = kind, .id = id});
}

static void letter_write(struct world *w, const struct letter *letter)
{
    uint32_t sent = pool_take(&w->stores.letters);
    if (sent == NOTHING) {
        w->no_memory = true;
        return;
    }
    *letter_at(w, sent) = *letter;
    letter_send(w, sent, STORE_ASKED);
}

static void tenant_looks(struct world *w, uint32_t id)
{
    struct tenant *tenant = tenant_at(w, id);
    struct becalm_moment at = {.now = w->clock.now, .random = becalm_rand_next(&w->policy_state)};
    struct letter letter = {.tenant = id, .link = tenant->link};
    bool sends = false;
    if (tenant->linked && !tenant->parting) {
        sends = becalm_lease_ask(tenant->lease, tenant->policy, &at, &letter.request);
    } else {
        becalm_lease_tend(tenant->lease, tenant->policy, &at);
    }
    tenant_watch(w, tenant);
    if (sends) {
        w->result->service[tenant->service].shared.asked++;
        letter_write(w, &letter);
    }
}

/* Plans the caller's next turn: now, then when the lease is due. Turns that were planned before are void. */
static void tenant_turns(struct world *w, uint32_t id)
{
    struct tenant *tenant = tenant_at(w, id);
    tenant_looks(w, id);
    tenant->asks_at = becalm_lease_ask_at(tenant->lease);
    clock_plan(&w->clock, (struct event){.at = tenant->asks_at, .kind = TENANT_ASKS, .id = id});
}

void tenant_asks(struct world *w, uint32_t id)
{
    if (tenant_at(w, id)->asks_at == w->clock.now) {
        tenant_turns(w, id);
    }
}

/* ---------------------------------------------------------------------------------------------------- connections */

static becalm_ns link_time(struct world *w, uint32_t ways)
{
    struct dist latency = latency_dist(w->plan, w->plan->link);
    becalm_ns takes = 0;
    for (uint32_t i = 0; i < ways; i++) {
        takes += dist_draw(&w->tables, &latency, &w->policy_state);
    }
    return takes;
}

static void tenant_plans(struct world *w, uint32_t id, becalm_ns wait, enum event_kind kind)
{
    clock_plan(&w->clock, (struct event){.at = becalm_ns_after(w->clock.now, wait),
                                         .kind = kind,
                                         .id = id,
                                         .generation = tenant_at(w, id)->link});
}

/* The connection could not be made, or it is lost: connects again after a wait. */
static void tenant_tries_again(struct world *w, uint32_t id)
{
    struct tenant *tenant = tenant_at(w, id);
    struct becalm_backoff_policy backoff;
    struct becalm_wait wait;
    becalm_backoff_defaults(&backoff);
    backoff.base = WAIT_BASE;
    backoff.cap = WAIT_CAP;
    tenant->link++;
    becalm_backoff_wait(&backoff,
                        &(struct becalm_backoff_draw){
                            .n = ++tenant->tries, .hint = BECALM_NEVER, .random = becalm_rand_next(&w->policy_state)},
                        &wait);
    tenant_plans(w, id, wait.wait, TENANT_CONNECTS);
}

void tenant_loses(struct world *w, uint32_t id, uint32_t link)
{
    struct tenant *tenant = tenant_at(w, id);
    struct becalm_moment at = {.now = w->clock.now, .random = becalm_rand_next(&w->policy_state)};
    struct becalm_lease_request goodbye;
    if (tenant->link != link) {
        return;
    }
    if (tenant->linked && becalm_lease_lost(tenant->lease, tenant->policy, &at, &goodbye)) {
        tenant->has_goodbye = true;
        tenant->goodbye = goodbye;
    }
    tenant->linked = tenant->parting = false;
    tenant_watch(w, tenant);
    tenant_tries_again(w, id);
}

/* The system of a stopped store accepts connections, but the store itself does not answer the greeting. */
void tenant_connects(struct world *w, uint32_t id, uint32_t link)
{
    struct tenant *tenant = tenant_at(w, id);
    if (tenant->link != link) {
        return;
    }
    if (w->service[tenant->service].store_dead) {
        tenant_plans(w, id, link_time(w, 2), TENANT_LOSES);
        return;
    }
    tenant_plans(w, id, link_time(w, 4), TENANT_LINKED);
    tenant_plans(w, id, TIMEOUT, TENANT_LOSES);
}

void tenant_linked(struct world *w, uint32_t id, uint32_t link)
{
    struct tenant *tenant = tenant_at(w, id);
    if (tenant->link != link || tenant->linked) {
        return;
    }
    if (w->service[tenant->service].store_hangs) {
        tenant_plans(w, id, LOOK, TENANT_LINKED);
        return;
    }
    tenant->linked = true;
    tenant->link++; /* the time to greet is no limit any more */
    tenant->parting = tenant->has_goodbye;
    if (tenant->has_goodbye) {
        tenant->has_goodbye = false;
        tenant_plans(w, id, TIMEOUT, TENANT_LOSES);
        letter_write(w,
                     &(struct letter){.tenant = id, .link = tenant->link, .goodbye = true, .request = tenant->goodbye});
    } else {
        tenant_turns(w, id);
    }
}

/* ------------------------------------------------------------------------------------------- faults of the store */

static void budgets_each(struct world *w, uint32_t service, void (*change)(struct world *, uint32_t budget))
{
    uint32_t end = world_target(w->plan, service + 1, 0);
    for (uint32_t i = world_target(w->plan, service, 0); i < end; i++) {
        if (w->stores.budget[i] != NULL) {
            change(w, i);
        }
    }
}

static void budget_empty(struct world *w, uint32_t budget)
{
    struct becalm_lease_store *store = w->stores.budget[budget];
    (void)becalm_lease_store_init(store, store->size);
}

static void budget_save(struct world *w, uint32_t budget)
{
    const struct becalm_lease_store *store = w->stores.budget[budget];
    size_t bytes = becalm_lease_store_bytes(store->size);
    if (w->stores.saved[budget] == NULL) {
        w->stores.saved[budget] = slab_take(&w->memory, bytes);
    }
    if (w->stores.saved[budget] == NULL) {
        w->no_memory = true;
        return;
    }
    memcpy(w->stores.saved[budget], store, bytes);
}

static void budget_restore(struct world *w, uint32_t budget)
{
    if (w->stores.saved[budget] != NULL) {
        memcpy(w->stores.budget[budget], w->stores.saved[budget],
               becalm_lease_store_bytes(w->stores.budget[budget]->size));
    }
}

void store_emptied(struct world *w, uint32_t service)
{
    budgets_each(w, service, budget_empty);
}

void store_saves(struct world *w, uint32_t fault)
{
    uint32_t service = scenario_find(w->plan, w->plan->faults[fault].service);
    budgets_each(w, service, budget_save);
}

void store_killed(struct world *w, uint32_t service, bool on, bool has_file)
{
    w->service[service].store_dead = on;
    if (!on) {
        budgets_each(w, service, has_file ? budget_restore : budget_empty);
        return;
    }
    for (uint32_t i = 0; i < w->stores.tenants.used; i++) {
        if (tenant_at(w, i)->service == service && tenant_at(w, i)->linked) {
            tenant_plans(w, i, link_time(w, 1), TENANT_LOSES);
        }
    }
}

void store_asked(struct world *w, uint32_t id)
{
    struct letter *letter = letter_at(w, id);
    const struct tenant *tenant = tenant_at(w, letter->tenant);
    const struct service *service = &w->service[tenant->service];
    bool away = service->store_latency == BECALM_NEVER || service->store_dead;
    if (service->store_hangs) {
        if (!letter->waits && tenant->link == letter->link) {
            tenant_plans(w, letter->tenant, TIMEOUT, TENANT_LOSES);
        }
        letter->waits = true;
        clock_plan(&w->clock, (struct event){.at = w->clock.now + LOOK, .kind = STORE_ASKED, .id = id});
        return;
    }
    if (!away && becalm_lease_store_exchange(w->stores.budget[tenant->budget], tenant->policy, w->clock.now,
                                             &letter->request, &letter->answer)) {
        letter_send(w, id, TENANT_ANSWERED);
    } else {
        pool_give(&w->stores.letters, id);
    }
}

void tenant_answered(struct world *w, uint32_t id)
{
    const struct letter *letter = letter_at(w, id);
    struct tenant *tenant = tenant_at(w, letter->tenant);
    if (tenant->link == letter->link && letter->goodbye) { /* now under the new name */
        tenant->parting = false;
        tenant->link++; /* the store answered in time */
        tenant_turns(w, letter->tenant);
    } else if (tenant->link == letter->link) {
        bool heard = becalm_lease_answer(tenant->lease, w->clock.now, &letter->answer);
        w->result->service[tenant->service].shared.answered += heard;
        tenant->tries = 0;
        tenant->link += letter->waits; /* a stopped store has answered in time */
        tenant_watch(w, tenant);
    }
    pool_give(&w->stores.letters, id);
}

void tenants_second(struct world *w, uint32_t second)
{
    for (uint32_t i = 0; i < w->stores.tenants.used; i++) {
        const struct tenant *tenant = tenant_at(w, i);
        w->result->service[tenant->service].degraded[second] += tenant->degraded;
    }
}

void tenants_end(struct world *w)
{
    for (uint32_t i = 0; i < w->stores.tenants.used; i++) {
        const struct tenant *tenant = tenant_at(w, i);
        if (tenant->degraded) {
            w->result->service[tenant->service].shared.degraded +=
                becalm_ns_since(w->plan->length, tenant->degraded_since);
        }
    }
}
