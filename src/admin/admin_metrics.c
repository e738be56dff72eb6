/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "admin_internal.h"
#include "admin_tls.h"

#include "keys/key_desk.h"
#include "meter/metrics.h"
#include "proxy/gateway_shared.h"

#include <stdio.h>
#include <stdlib.h>

#define NAME_MAX_BYTES (ADDRESS_TEXT_MAX + ADDRESS_NAME_MAX)

/* Two hosts with one address are a mistake in the file or of DNS, but two equal series would cost the whole page. */
static void name_uniquely(char **names, uint32_t index)
{
    uint32_t before = 0;
    for (uint32_t i = 0; i < index; i++) {
        before += strcmp(names[i], names[index]) == 0;
    }
    if (before > 0) {
        size_t length = strlen(names[index]);
        snprintf(names[index] + length, NAME_MAX_BYTES - length, "#%u", before + 1);
    }
}

char **admin_host_names(const struct snapshot_service *service)
{
    size_t count = service->host_count;
    char **names = malloc(count * (sizeof *names + NAME_MAX_BYTES));
    if (names == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct snapshot_host *host = &service->host[i];
        names[i] = (char *)(names + count) + i * NAME_MAX_BYTES;
        if (host->known) {
            address_write(&host->address, names[i], NAME_MAX_BYTES);
        } else {
            snprintf(names[i], NAME_MAX_BYTES, "%s", host->name);
        }
    }
    for (uint32_t i = (uint32_t)count; i > 1;
         i--) { /* from the end, so that those before still have their plain name */
        name_uniquely(names, i - 1);
    }
    return names;
}

bool admin_health(const struct admin *admin, const char *service, const union address_socket *host,
                  struct admin_health *health)
{
    const struct admin_place *place = &admin->place;
    return place->health != NULL && place->health(place->control, service, host, health);
}

uint32_t admin_stores(const struct admin *admin, struct metrics_redis *redis)
{
    return admin->place.stores == NULL ? 0 : admin->place.stores(admin->place.control, redis, ADMIN_STORES);
}

void admin_store_count(struct gateway *gateway, struct store_counts *counts)
{
    store_count(gateway->store, counts);
    store_tally_count(&gateway->store_tally, counts);
    counts->shared = gateway->desk != NULL;
    counts->held += gateway->desk == NULL ? 0 : key_desk_count(gateway->desk);
}

static void gateway_figures(struct gateway *gateway, struct metrics_gateway *figures, struct store_counts *store)
{
    admin_store_count(gateway, store);
    pthread_mutex_lock(&gateway->lock);
    struct gateway_reload reload = gateway->reload;
    pthread_mutex_unlock(&gateway->lock);
    *figures = (struct metrics_gateway){
        .workers = gateway->worker_count,
        .connections = atomic_load_explicit(&gateway->connections, memory_order_relaxed),
        .accepted = atomic_load_explicit(&gateway->accepted, memory_order_relaxed),
        .reload_ok = reload.successful,
        .reload_at = reload.good_wall / BECALM_S,
        .log_dropped = log_dropped(gateway->log),
        .passed = atomic_load_explicit(&gateway->passed, memory_order_relaxed),
        .store = store,
        .tunnels = atomic_load_explicit(&gateway->tunnels, memory_order_relaxed),
        .buffered = atomic_load_explicit(&gateway->buffered, memory_order_relaxed),
        .buffered_max = atomic_load_explicit(&gateway->max_buffered, memory_order_relaxed),
    };
    figures->faults = atomic_load_explicit(&gateway->faults.count, memory_order_relaxed);
    for (uint32_t i = 0; i < FAULT_WORDS; i++) {
        figures->fault_words[i] = fault_word((enum fault_kind)i);
    }
    for (uint32_t i = 0; i < METRICS_BOUNDS; i++) {
        figures->bounds[i] = atomic_load_explicit(&gateway->bounds[i], memory_order_relaxed);
    }
    for (enum h2_end why = H2_END_GOAWAY; why < H2_END_COUNT; why++) {
        figures->h2_why[why] = h2_end_word(why);
        figures->h2_ended[why] = atomic_load_explicit(&gateway->h2_ends[why], memory_order_relaxed);
        figures->h2_host_ended[why] = atomic_load_explicit(&gateway->h2_host_ends[why], memory_order_relaxed);
    }
}

/* To be freed; NULL: none of them is checked. */
static struct metrics_health *health_fill(const struct admin *admin, const struct snapshot_service *service)
{
    struct metrics_health *list = NULL;
    for (uint32_t i = 0; i < service->host_count; i++) {
        const struct snapshot_host *host = &service->host[i];
        struct admin_health health;
        if (!host->known || !admin_health(admin, service->service->name, &host->address, &health)) {
            continue;
        }
        list = list == NULL ? calloc(service->host_count, sizeof *list) : list;
        if (list == NULL) {
            return NULL; /* no memory: they are left out */
        }
        list[i] = (struct metrics_health){true, health.passes, health.passed, health.failed};
    }
    return list;
}

/* False: no memory. */
static bool targets_fill(const struct admin *admin, const struct snapshot *snapshot, struct metrics_target *targets,
                         char ***hosts)
{
    for (uint32_t i = 0; i < snapshot->service_count; i++) {
        hosts[i] = admin_host_names(&snapshot->service[i]);
        if (hosts[i] == NULL) {
            return false;
        }
    }
    for (uint32_t i = 0; i < snapshot->target_count; i++) {
        const struct snapshot_target *target = &snapshot->target[i];
        targets[i] = (struct metrics_target){
            .service = target->service->name,
            .endpoint = target->endpoint == NULL ? NULL : target->endpoint->name,
            .policy = &target->state->policy,
            .target = &target->state->target,
            .meters = (const struct meter *const *)target->meters->meter,
            .meter_count = target->meters->count,
            .hosts = (const char *const *)hosts[target->service_index],
            .host_count = snapshot->service[target->service_index].host_count,
            .health = target->endpoint == NULL ? health_fill(admin, &snapshot->service[target->service_index]) : NULL,
        };
    }
    return true;
}

static struct metrics_joins joins_read(const struct join_table *table)
{
    return (struct metrics_joins){
        .joined = join_count(table, JOIN_JOINED),
        .unknown = join_count(table, JOIN_UNKNOWN),
        .no_id = join_count(table, JOIN_NO_ID),
        .strange = join_count(table, JOIN_STRANGE),
        .expired = join_count(table, JOIN_EXPIRED),
        .pushed_out = join_count(table, JOIN_PUSHED_OUT),
    };
}

void admin_metrics(struct admin *admin, const struct admin_request *request, struct admin_answer *answer)
{
    struct gateway *gateway = admin->place.gateway;
    struct snapshot *snapshot = gateway_snapshot(gateway);
    struct metrics_gateway figures;
    struct store_counts store;
    struct admin_tls tls;
    struct metrics_redis redis[ADMIN_STORES];
    struct metrics_spans spans;
    struct metrics_joins joins;
    struct metrics_target *targets = calloc(snapshot->target_count + 1, sizeof *targets);
    char ***hosts = calloc(snapshot->service_count + 1, sizeof *hosts);
    gateway_figures(gateway, &figures, &store);
    if (snapshot->traces) {
        exporter_count(gateway->exporter, &spans);
        figures.spans = &spans;
    }
    if (snapshot->joins && gateway->join != NULL) {
        joins = joins_read(gateway->join);
        figures.joins = &joins;
    }
    admin_tls_collect(&tls, gateway, snapshot);
    figures.handshakes = tls.handshakes;
    figures.handshakes_count = tls.handshakes_count;
    figures.certificate = tls.certificate;
    figures.certificate_count = tls.certificate_count;
    bool open = metrics_accepts_open(head_find(request->head, FIELD_ACCEPT));
    answer->type = metrics_content_type(open);
    if (targets != NULL && hosts != NULL && targets_fill(admin, snapshot, targets, hosts)) {
        metrics_write(&answer->page, &(struct metrics){
                                         .gateway = &figures,
                                         .target = targets,
                                         .target_count = snapshot->target_count,
                                         .redis = redis,
                                         .redis_count = admin_stores(admin, redis),
                                         .unrouted = atomic_load_explicit(&gateway->unrouted, memory_order_relaxed),
                                         .now = admin->place.loop->now,
                                         .open_metrics = open,
                                     });
    } else {
        answer->page.full = true;
    }
    for (uint32_t i = 0; hosts != NULL && i < snapshot->service_count; i++) {
        free(hosts[i]);
    }
    for (uint32_t i = 0; targets != NULL && i < snapshot->target_count; i++) {
        free((void *)(uintptr_t)targets[i].health);
    }
    free(hosts);
    free(targets);
    snapshot_drop(snapshot);
}
