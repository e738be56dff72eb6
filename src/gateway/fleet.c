/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "fleet.h"

#include "keys/key_desk.h"
#include "keys/key_words.h"
#include "meter/metrics.h"
#include "redis/stores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fleet {
    struct fleet_options options;
    struct redis_stores stores;
    struct key_desk *desk; /* for shared keys; NULL: keys are not shared */
    struct state **kept;   /* the states whose leases are bound */
    uint32_t kept_count;
    struct snapshot *snapshot; /* the snapshot that is followed */
    char policy[20];           /* a hash of it */
    struct roster_rates rates;
};

/* ---------------------------------------------------------------------------------------------------------- sites */

/* A name that the control thread resolves, or an address. The turn is drawn, so that a dead address is not all. */
static bool name_find(void *self, const char *host, union address_socket *socket)
{
    const struct fleet *fleet = self;
    const struct snapshot_names *names = &fleet->options.names;
    struct address address;
    const union address_socket *list = NULL;
    if (!address_parse(host, &address)) {
        return false;
    }
    if (address.kind != ADDRESS_NAME) {
        *socket = address.socket;
        return true;
    }
    uint32_t count = names->find(names->self, address.name, address.port, &list);
    if (count > 0) {
        *socket = list[becalm_rand_below(becalm_rand_next(&fleet->options.loop->random), count)];
    }
    return count > 0;
}

/* One line when the store is lost, one when it is back. */
static void site_note(void *self, const struct store_site *site, const char *why)
{
    const struct fleet_options *options = &((const struct fleet *)self)->options;
    const char *host = redis_host(leases_redis(site->leases));
    struct log_pair pair[] = {
        {.key = "store", .type = LOG_TEXT, .text = {host, strlen(host)}},
        {.key = "error", .type = LOG_TEXT, .text = {why, why == NULL ? 0 : strlen(why)}},
    };
    log_line(options->log, why == NULL ? BECALM_LOG_INFO : BECALM_LOG_WARN, options->loop->wall,
             why == NULL ? "shared budgets: leased from the store" : "shared budgets: degraded to the own share", pair,
             why == NULL ? 1 : 2);
}

/* ----------------------------------------------------------------------------------------------- this process */

static void target_count(const struct snapshot_target *target, struct roster_totals *totals)
{
    uint64_t calls = 0;
    uint64_t retries = 0;
    for (uint32_t m = 0; m < target->meters->count; m++) {
        meter_totals(target->meters->meter[m], &calls, &retries);
    }
    roster_count(totals, calls, retries, target->state->target.lease != NULL);
}

static struct roster_totals snapshot_count(const struct snapshot *snapshot)
{
    struct roster_totals totals = {.calls = 0};
    for (uint32_t i = 0; snapshot != NULL && i < snapshot->target_count; i++) {
        target_count(&snapshot->target[i], &totals);
    }
    return totals;
}

/* The entry that the fleet sees for this process. Its rates are taken since the last entry. */
static void process_tell(void *self, struct roster_entry *entry)
{
    struct fleet *fleet = self;
    struct roster_totals totals = snapshot_count(fleet->snapshot);
    for (uint32_t i = 0; fleet->snapshot != NULL && i < fleet->snapshot->target_count; i++) {
        const struct becalm_lease *lease = fleet->snapshot->target[i].state->target.lease;
        entry->budgets += lease != NULL;
        entry->degraded += lease != NULL && becalm_lease_degraded(lease);
    }
    snprintf(entry->id, sizeof entry->id, "%s", fleet->options.id);
    snprintf(entry->policy, sizeof entry->policy, "%s", fleet->policy);
    roster_rates(&fleet->rates, fleet->options.loop->now, &totals, entry);
}

/* --------------------------------------------------------------------------------------------------------- leases */

static void kept_drop(struct state **kept, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        state_drop(kept[i]);
    }
    free(kept);
}

/* A service's own target comes before its endpoints': a lease that they share has the service's name. */
static void target_bind(struct fleet *fleet, const struct becalm_config *config, const struct snapshot_target *target)
{
    redis_stores_bind(&fleet->stores, &(struct redis_stores_budget){
                                          .config = config,
                                          .rules = target->rules,
                                          .service = target->service->name,
                                          .endpoint = target->endpoint == NULL ? NULL : target->endpoint->name,
                                          .lease = target->state->target.lease,
                                          .policy = &target->state->policy.lease});
}

/* Asks for the names that the sites need, so that the resolver does not drop them as unused. */
static void names_keep(struct fleet *fleet)
{
    union address_socket ignored;
    for (const struct store_site *site = fleet->stores.first; site != NULL; site = site->next) {
        for (uint32_t i = 0; i < site->redis.place.host_count; i++) {
            (void)name_find(fleet, site->redis.place.host[i], &ignored);
        }
    }
}

/* ----------------------------------------------------------------------------------------------------------- keys */

static void desk_note(void *self, const char *why)
{
    const struct fleet *fleet = self;
    const char *host = fleet->desk == NULL ? "" : redis_host(key_desk_redis(fleet->desk));
    struct log_pair pair[] = {
        {.key = "store", .type = LOG_TEXT, .text = {host, strlen(host)}},
        {.key = "error", .type = LOG_TEXT, .text = {why, why == NULL ? 0 : strlen(why)}},
    };
    log_line(fleet->options.log, why == NULL ? BECALM_LOG_INFO : BECALM_LOG_WARN, fleet->options.loop->wall,
             why == NULL ? "idempotency keys: shared in the store" : "idempotency keys: the store is away", pair,
             why == NULL ? 1 : 2);
}

static void desk_forgotten(void *self, uint32_t count, bool told)
{
    const struct fleet *fleet = self;
    struct log_pair pair[] = {{.key = "keys", .type = LOG_NUMBER, .number = count}};
    log_line(fleet->options.log, told ? BECALM_LOG_INFO : BECALM_LOG_WARN, fleet->options.loop->wall,
             told ? "idempotency keys: reported to the store again" : "idempotency keys: the store has forgotten", pair,
             1);
}

static void desk_ordered(void *self, const unsigned char id[STORE_ID], const char *why)
{
    const struct fleet *fleet = self;
    char name[KEY_HEX];
    key_hex(name, id);
    struct log_pair pair[] = {
        {.key = "id", .type = LOG_TEXT, .text = {name, KEY_HEX - 1}},
        {.key = "why", .type = LOG_TEXT, .text = {why, why == NULL ? 0 : strlen(why)}},
    };
    log_line(fleet->options.log, BECALM_LOG_WARN, fleet->options.loop->wall,
             why == NULL ? "idempotency key released" : "idempotency key not released", pair, why == NULL ? 1 : 2);
}

static void desk_follow(struct fleet *fleet, struct keyring *ring)
{
    if (fleet->desk != NULL && key_desk_keyring(fleet->desk) == ring) {
        return;
    }
    key_desk_free(fleet->desk);
    fleet->desk = NULL; /* out of memory: no keys are shared */
    if (ring != NULL) {
        fleet->desk = key_desk_make(&(struct key_desk_options){.loop = fleet->options.loop,
                                                               .keyring = ring,
                                                               .find = name_find,
                                                               .note = desk_note,
                                                               .ordered = desk_ordered,
                                                               .forgotten = desk_forgotten,
                                                               .self = fleet});
    }
}

struct key_desk *fleet_desk(const struct fleet *fleet)
{
    return fleet->desk;
}

void fleet_follow(struct fleet *fleet, struct snapshot *snapshot)
{
    desk_follow(fleet, snapshot->keyring);
    struct state **kept = calloc((size_t)snapshot->target_count + 1, sizeof(struct state *));
    if (kept == NULL) {
        return;
    }
    redis_stores_bind_begin(&fleet->stores);
    for (uint32_t i = 0; i < snapshot->target_count; i++) {
        kept[i] = snapshot->target[i].state;
        state_use(kept[i]);
        target_bind(fleet, snapshot->config, &snapshot->target[i]);
    }
    redis_stores_bind_end(&fleet->stores);
    names_keep(fleet);
    struct snapshot *before = fleet->snapshot;
    struct roster_totals totals = snapshot_count(snapshot);
    fleet->snapshot = snapshot;
    roster_rates_begin(&fleet->rates, fleet->options.loop->now, &totals);
    snapshot_use(snapshot);
    if (before != NULL) {
        snapshot_drop(before);
    }
    redis_stores_policy_hash(snapshot->config, fleet->policy, sizeof fleet->policy);
    kept_drop(fleet->kept, fleet->kept_count); /* their leases are returned */
    fleet->kept = kept;
    fleet->kept_count = snapshot->target_count;
}

struct fleet *fleet_make(const struct fleet_options *options)
{
    struct fleet *fleet = calloc(1, sizeof *fleet);
    if (fleet != NULL) {
        fleet->options = *options;
        fleet->rates.begun_at = fleet->rates.told_at = options->loop->now;
        fleet->stores.options = (struct redis_stores_options){
            .loop = options->loop, .find = name_find, .note = site_note, .tell = process_tell, .self = fleet};
    }
    return fleet;
}

void fleet_free(struct fleet *fleet)
{
    if (fleet == NULL) {
        return;
    }
    redis_stores_free(&fleet->stores);
    key_desk_free(fleet->desk);
    kept_drop(fleet->kept, fleet->kept_count);
    if (fleet->snapshot != NULL) {
        snapshot_drop(fleet->snapshot);
    }
    free(fleet);
}

static void entry_tell(struct buffer *page, const struct roster_entry *entry)
{
    buffer_json_open(page, NULL, '{');
    buffer_json_chars(page, "id", entry->id);
    buffer_json_chars(page, "name", entry->name);
    buffer_json_chars(page, "version", entry->version);
    buffer_json_chars(page, "policy", entry->policy);
    buffer_json_decimal(page, "callsPerSecond", entry->calls_milli, 3);
    buffer_json_decimal(page, "retriesPerSecond", entry->retries_milli, 3);
    buffer_json_decimal(page, "sharedCallsPerSecond", entry->shared_calls_milli, 3);
    buffer_json_decimal(page, "sharedRetriesPerSecond", entry->shared_retries_milli, 3);
    buffer_json_number(page, "budgets", entry->budgets);
    buffer_json_number(page, "degraded", entry->degraded);
    buffer_json_number(page, "uptimeSeconds", entry->up_seconds);
    buffer_json_decimal(page, "toldSecondsAgo", entry->age_ms, 3);
    buffer_json_close(page, '}');
}

/* The budgets that this gateway shares in this store. */
static void budgets_tell(const struct fleet *fleet, const struct store_site *site, struct buffer *page)
{
    buffer_json_open(page, "budgets", '[');
    for (uint32_t i = 0; fleet->snapshot != NULL && i < fleet->snapshot->target_count; i++) {
        const struct snapshot_target *target = &fleet->snapshot->target[i];
        const struct becalm_lease *lease = target->state->target.lease;
        const char *url = target->rules->shared_redis;
        if (lease == NULL || url == NULL || strcmp(url, site->redis.url) != 0) {
            continue;
        }
        buffer_json_open(page, NULL, '{');
        buffer_json_chars(page, "service", target->service->name);
        buffer_json_chars(page, "endpoint", target->endpoint == NULL ? "default" : target->endpoint->name);
        buffer_json_decimal(page, "percent", target->state->policy.lease.share_ppm, 4);
        buffer_json_number(page, "left", becalm_lease_left(lease));
        buffer_json_number(page, "live", becalm_lease_live(lease));
        buffer_json_bool(page, "degraded", becalm_lease_degraded(lease));
        buffer_json_close(page, '}');
    }
    buffer_json_close(page, ']');
}

static void site_tell(const struct fleet *fleet, const struct store_site *site, struct buffer *page)
{
    const struct redis *redis = leases_redis(site->leases);
    const struct roster_entry *entry = NULL;
    becalm_ns read_at = 0;
    uint32_t count = site->roster == NULL ? 0 : roster_look(site->roster, &entry, &read_at);
    struct redis_count asked = redis_count(redis);
    becalm_ns now = fleet->options.loop->now;
    const char *error = redis_is_good(redis) && site->roster != NULL ? roster_error(site->roster) : redis_error(redis);
    buffer_json_open(page, NULL, '{');
    buffer_json_chars(page, "store", site->redis.place.host[0]);
    buffer_json_chars(page, "fleet", site->name);
    buffer_json_bool(page, "up", redis_is_good(redis));
    buffer_json_chars(page, "error", error[0] == 0 ? NULL : error);
    if (asked.answered > 0) {
        buffer_json_decimal(page, "answeredSecondsAgo", becalm_ns_since(now, asked.answered_at) / BECALM_MS, 3);
    }
    if (read_at != 0) {
        buffer_json_decimal(page, "readSecondsAgo", becalm_ns_since(now, read_at) / BECALM_MS, 3);
    }
    budgets_tell(fleet, site, page);
    buffer_json_open(page, "instances", '[');
    for (uint32_t i = 0; entry != NULL && i < count; i++) {
        entry_tell(page, &entry[i]);
    }
    buffer_json_close(page, ']');
    buffer_json_close(page, '}');
}

void fleet_tell(const struct fleet *fleet, struct buffer *page)
{
    buffer_json_open(page, NULL, '{');
    buffer_json_chars(page, "id", fleet->options.id);
    buffer_json_open(page, "stores", '[');
    for (const struct store_site *site = fleet->stores.first; site != NULL; site = site->next) {
        site_tell(fleet, site, page);
    }
    buffer_json_close(page, ']');
    buffer_json_close(page, '}');
}

uint32_t fleet_stores(const struct fleet *fleet, struct metrics_redis *to, uint32_t size)
{
    return redis_stores_tell(&fleet->stores, to, size);
}
