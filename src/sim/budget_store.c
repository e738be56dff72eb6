/* SPDX-License-Identifier: MIT */
#include "world_internal.h"

#include <stdlib.h>

/* The store of shared budgets, and the callers that lease from it. What is asked, granted and spent is the engine's to
 * say; here are only the messages, and a store that can be away or slow. */

/* A caller that leases. */
struct tenant {
    struct becalm_lease *lease;
    const struct becalm_lease_policy *policy;
    uint32_t service;
    uint32_t budget; /* world_target() */
    bool degraded;   /* as last seen, and since when */
    becalm_ns degraded_since;
};

/* A message between a caller and the store. */
struct letter {
    uint32_t tenant;
    struct becalm_lease_request request;
    struct becalm_lease_answer answer;
};

bool stores_make(struct world *w)
{
    struct stores *stores = &w->stores;
    stores->tenants.item = sizeof(struct tenant);
    stores->letters.item = sizeof(struct letter);
    stores->budget = calloc(world_target(w->plan, w->plan->service_count, 0), sizeof(struct becalm_lease_store *));
    return stores->budget != NULL;
}

void stores_free(struct world *w)
{
    pool_free(&w->stores.tenants);
    pool_free(&w->stores.letters);
    free(w->stores.budget);
}

static struct tenant *tenant_at(const struct world *w, uint32_t id)
{
    return pool_at(&w->stores.tenants, id);
}

static struct letter *letter_at(const struct world *w, uint32_t id)
{
    return pool_at(&w->stores.letters, id);
}

/* A budget has room for every caller of its service, as far as such a store goes. */
static bool budget_make(struct world *w, uint32_t budget, uint32_t service)
{
    uint64_t callers = 0;
    for (uint32_t i = 0; i < w->hop_count; i++) {
        callers += w->hop[i].to == service ? w->hop[i].callers : 0;
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

void tenant_asks(struct world *w, uint32_t id)
{
    struct tenant *tenant = tenant_at(w, id);
    struct becalm_moment at = {.now = w->clock.now, .random = becalm_rand_next(&w->policy_state)};
    struct letter letter = {.tenant = id};
    bool sends = becalm_lease_ask(tenant->lease, tenant->policy, &at, &letter.request);
    tenant_watch(w, tenant);
    clock_plan(&w->clock, (struct event){.at = becalm_lease_ask_at(tenant->lease), .kind = TENANT_ASKS, .id = id});
    if (!sends) {
        return;
    }
    uint32_t sent = pool_take(&w->stores.letters);
    if (sent == NOTHING) {
        w->no_memory = true;
        return;
    }
    w->result->service[tenant->service].shared.asked++;
    *letter_at(w, sent) = letter;
    letter_send(w, sent, STORE_ASKED);
}

void store_asked(struct world *w, uint32_t id)
{
    struct letter *letter = letter_at(w, id);
    const struct tenant *tenant = tenant_at(w, letter->tenant);
    bool away = w->service[tenant->service].store_latency == BECALM_NEVER;
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
    bool heard = becalm_lease_answer(tenant->lease, w->clock.now, &letter->answer);
    w->result->service[tenant->service].shared.answered += heard;
    tenant_watch(w, tenant);
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
