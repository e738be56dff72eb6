/* SPDX-License-Identifier: MIT */
#include "tls_set.h"

#include <stdlib.h>
#include <string.h>

struct tls_set *tls_set_use(struct tls_set *set)
{
    atomic_fetch_add_explicit(&set->users, 1, memory_order_relaxed); /* the caller has one already */
    return set;
}

void tls_set_drop(struct tls_set *set)
{
    if (set == NULL || atomic_fetch_sub_explicit(&set->users, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (uint32_t i = 0; set->listener != NULL && i < set->listener_count; i++) {
        tls_context_drop(set->listener[i]);
    }
    for (uint32_t i = 0; set->service != NULL && i < set->service_count; i++) {
        tls_context_drop(set->service[i]);
    }
    tls_context_drop(set->admin);
    free(set->listener);
    free(set->service);
    free(set);
}

static struct tls_set *set_alloc(uint32_t listeners, uint32_t services)
{
    struct tls_set *set = calloc(1, sizeof *set);
    if (set == NULL) {
        return NULL;
    }
    atomic_init(&set->users, 1);
    set->listener_count = listeners;
    set->service_count = services;
    set->listener = calloc(listeners + 1, sizeof(struct tls_context *));
    set->service = calloc(services + 1, sizeof(struct tls_context *));
    if (set->listener == NULL || set->service == NULL) {
        tls_set_drop(set);
        return NULL;
    }
    return set;
}

/* A context that is made is tried as "unchanged" against each of those before, by its mark; so which one is offered
 * matters little, and a listener that moved in the list only loads its files again. */
static struct tls_context *before_of(struct tls_context *const *list, uint32_t count, uint32_t index)
{
    return list != NULL && index < count ? list[index] : NULL;
}

/* Services with the same files and rules have one context, so that hosts they share have one pool. */
static struct tls_context *shared(struct tls_set *set, uint32_t index, struct tls_context *made)
{
    for (uint32_t i = 0; made != NULL && i < index; i++) {
        struct tls_context *other = set->service[i];
        if (other != NULL && other != made && memcmp(other->mark, made->mark, sizeof made->mark) == 0) {
            tls_context_drop(made);
            return tls_context_use(other);
        }
    }
    return made;
}

int tls_set_make(struct tls_set **made, const struct tls_set_plan *whole, struct becalm_diags *diags)
{
    const struct becalm_config *config = whole->config;
    const struct tls_set *before = whole->before;
    const struct becalm_settings *settings = becalm_config_settings(config);
    uint32_t errors = diags->errors;
    struct tls_set *set = set_alloc(settings->listener_count, becalm_config_services(config));
    struct tls_plan plan = {
        .policy = becalm_config_name(config), .tickets = whole->tickets, .starts = whole->starts, .diags = diags};
    bool fine = set != NULL;
    *made = NULL;
    for (uint32_t i = 0; set != NULL && i < set->listener_count; i++) {
        if (settings->listeners[i].tls) {
            plan.before = before == NULL ? NULL : before_of(before->listener, before->listener_count, i);
            set->listener[i] = tls_context_server(&plan, &settings->listeners[i]);
            fine = set->listener[i] != NULL && fine;
        }
    }
    for (uint32_t i = 0; set != NULL && i < set->service_count; i++) {
        const struct becalm_service *service = becalm_config_service(config, i);
        if (service->tls.enabled) {
            plan.policy = service->file;
            plan.before = before == NULL ? NULL : before_of(before->service, before->service_count, i);
            set->service[i] = shared(set, i, tls_context_client(&plan, service));
            fine = set->service[i] != NULL && fine;
        }
    }
    if (set != NULL && settings->admin != NULL && settings->admin_tls.tls) {
        plan.policy = becalm_config_name(config);
        plan.before = before == NULL ? NULL : before->admin;
        set->admin = tls_context_server(&plan, &settings->admin_tls);
        fine = set->admin != NULL && fine;
    }
    if (!fine) {
        tls_set_drop(set);
        return diags->errors > errors ? BECALM_EPARSE : BECALM_ENOMEM;
    }
    *made = set;
    return 0;
}

bool tls_set_equal(const struct tls_set *a, const struct tls_set *b)
{
    return a->listener_count == b->listener_count && a->service_count == b->service_count && a->admin == b->admin &&
           memcmp(a->listener, b->listener, a->listener_count * sizeof *a->listener) == 0 &&
           memcmp(a->service, b->service, a->service_count * sizeof *a->service) == 0;
}

struct tls_context *tls_set_of_address(const struct tls_set *set, const struct becalm_settings *settings,
                                       const char *address)
{
    for (uint32_t i = 0; i < set->listener_count; i++) {
        if (strcmp(settings->listeners[i].address, address) == 0) {
            return set->listener[i];
        }
    }
    return NULL;
}

static bool any(struct tls_context *const *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (list[i] != NULL) {
            return true;
        }
    }
    return false;
}

bool tls_set_has(const struct tls_set *set, enum tls_side side)
{
    switch (side) {
    case TLS_CLIENTS:
        return set->admin != NULL || any(set->listener, set->listener_count);
    case TLS_HOSTS:
        return any(set->service, set->service_count);
    }
    BECALM_UNREACHABLE();
}

/* The contexts collected so far. */
struct collection {
    struct tls_expiry *at;
    uint32_t size;
    uint32_t count;
};

static void collect(struct collection *all, const struct tls_context *context)
{
    for (uint32_t i = 0; context != NULL && i < context->expiry_count; i++) {
        bool there = false;
        for (uint32_t k = 0; k < all->count && k < all->size; k++) {
            there |= strcmp(all->at[k].file, context->expiry[i].file) == 0;
        }
        if (!there && all->count < all->size) {
            all->at[all->count] = context->expiry[i];
        }
        all->count += !there;
    }
}

uint32_t tls_set_certificates(const struct tls_set *set, struct tls_expiry *into, uint32_t size)
{
    struct collection all = {.at = into, .size = size};
    for (uint32_t i = 0; i < set->listener_count; i++) {
        collect(&all, set->listener[i]);
    }
    collect(&all, set->admin);
    for (uint32_t i = 0; i < set->service_count; i++) {
        collect(&all, set->service[i]);
    }
    return all.count;
}

static void listener_files(const struct becalm_listener *listener, void (*each)(const struct becalm_file *, void *data),
                           void *data)
{
    for (uint32_t i = 0; i < listener->certificate_count; i++) {
        each(&listener->certificates[i].cert, data);
        each(&listener->certificates[i].key, data);
    }
    each(&listener->client_ca, data);
    each(&listener->ticket_keys, data);
}

void tls_set_files(const struct becalm_config *config, void (*each)(const struct becalm_file *, void *data), void *data)
{
    const struct becalm_settings *settings = becalm_config_settings(config);
    for (uint32_t i = 0; i < settings->listener_count; i++) {
        listener_files(&settings->listeners[i], each, data);
    }
    listener_files(&settings->admin_tls, each, data);
    for (uint32_t i = 0; i < becalm_config_services(config); i++) {
        const struct becalm_host_tls *tls = &becalm_config_service(config, i)->tls;
        each(&tls->ca, data);
        each(&tls->cert, data);
        each(&tls->key, data);
    }
}
