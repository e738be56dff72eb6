/* SPDX-License-Identifier: MIT */
/* Effects that must not happen twice: a charge, a message, an order. An operation is an effect that a caller wants
 * once. Every attempt of its calls that a service executes makes the effect happen again, unless the request carries a
 * key that the service has seen. No policy can repair that: it can only avoid repeating requests that are not safe to
 * repeat. */
#include "world_internal.h"

#include <stdlib.h>

/* A call to a service is only as safe to repeat as everything that is done below it. */
static void spread_upwards(struct world *w)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < w->plan->service_count; i++) {
            struct service *service = &w->service[i];
            for (uint32_t h = 0; h < service->hop_count && !service->has_effect; h++) {
                service->has_effect = w->service[w->hop[service->first_hop + h].to].has_effect;
                changed |= service->has_effect;
            }
        }
    }
}

static uint32_t *callers_make(uint32_t callers)
{
    uint32_t *current = malloc(callers * sizeof *current);
    for (uint32_t i = 0; current != NULL && i < callers; i++) {
        current[i] = NOTHING;
    }
    return current;
}

bool effects_make(struct world *w)
{
    struct effects *effects = &w->effects;
    for (uint32_t i = 0; i < w->plan->service_count; i++) {
        w->service[i].has_effect = w->plan->services[i].effect;
        effects->any |= w->plan->services[i].effect;
    }
    if (!effects->any) {
        return true;
    }
    spread_upwards(w);
    effects->current = calloc(w->plan->client_count, sizeof *effects->current);
    bool made = effects->current != NULL;
    for (uint32_t i = 0; made && i < w->plan->client_count; i++) {
        effects->current[i] = callers_make(w->plan->clients[i].callers);
        made = effects->current[i] != NULL;
    }
    return made;
}

void effects_free(struct world *w)
{
    for (uint32_t i = 0; w->effects.current != NULL && i < w->plan->client_count; i++) {
        free(w->effects.current[i]);
    }
    free(w->effects.current);
    for (uint32_t i = 0; w->service != NULL && i < w->plan->service_count; i++) {
        free(w->service[i].executed);
    }
}

struct operation effect_begin(struct world *w, uint32_t client, uint32_t caller)
{
    struct operation operation = {.keyed = w->plan->clients[client].key};
    if (!w->effects.any) {
        return operation;
    }
    uint32_t *current = &w->effects.current[client][caller];
    operation.id = *current == NOTHING ? w->effects.count++ : *current;
    *current = w->plan->clients[client].repeats ? operation.id : NOTHING;
    return operation;
}

void effect_end(struct world *w, uint32_t client, uint32_t caller, const struct operation *operation, bool good)
{
    if (w->effects.any && good && w->effects.current[client][caller] == operation->id) {
        w->effects.current[client][caller] = NOTHING;
    }
}

/* How often the service has executed an operation. NULL: no memory, and noted. */
static uint32_t *executed(struct world *w, struct service *service, uint32_t operation)
{
    if (operation >= service->executed_size) {
        uint32_t larger = service->executed_size == 0 ? 1024 : service->executed_size;
        while (larger <= operation) {
            larger *= 2;
        }
        uint32_t *moved = realloc(service->executed, larger * sizeof *moved);
        if (moved == NULL) {
            w->no_memory = true;
            return NULL;
        }
        for (uint32_t i = service->executed_size; i < larger; i++) {
            moved[i] = 0;
        }
        service->executed = moved;
        service->executed_size = larger;
    }
    return &service->executed[operation];
}

void effect_happens(struct world *w, uint32_t service, const struct operation *operation)
{
    struct world_effects *counts = &w->result->service[service].effects;
    uint32_t *times = executed(w, &w->service[service], operation->id);
    if (times == NULL || (operation->keyed && *times > 0)) {
        return;
    }
    ++*times;
    counts->executed++;
    counts->operations += *times == 1;
    counts->repeated += *times == 2;
    counts->most = *times > counts->most ? *times : counts->most;
}
