/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "fleet.h"

#include "keys/key_desk.h"
#include "keys/key_words.h"
#include "meter/metrics.h"
#include "redis/leases.h"
#include "redis/roster.h"
#include "redis/site.h"

#include <becalm/version.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROSTER_BYTES (1u << 20) /* of what all others tell */

/* One Redis. */
struct site {
    struct site *next;
    struct fleet *fleet;
    struct redis_site redis;
    char name[SCRIPT_FLEET_MAX + 1]; /* the name space in it */
    struct leases *leases;
    struct roster *roster; /* NULL: no memory */
    bool used;             /* by the snapshot that is followed */
};

struct fleet {
    struct fleet_options options;
    struct site *sites;
    struct key_desk *desk; /* for keys that are shared; NULL: they are not */
    struct state **kept;   /* whose leases are bound */
    uint32_t kept_count;
    struct snapshot *snapshot; /* that is followed */
    char policy[20];           /* a hash of it */
    uint64_t calls, retries;   /* as last told, and when */
    becalm_ns told_at;
    becalm_ns begun_at;
};

/* ---------------------------------------------------------------------------------------------------------- sites */

/* A name that the control thread resolves, or an address. The turn is drawn, so that a dead address is not all. */
static bool name_find(const struct fleet *fleet, const char *host, union address_socket *socket)
{
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

static bool address_find(void *self, const char *host, union address_socket *socket)
{
    return name_find(((struct site *)self)->fleet, host, socket);
}

/* One line when the store is lost, one when it is back. */
static void site_note(void *self, const char *why)
{
    const struct site *site = self;
    const struct fleet_options *options = &site->fleet->options;
    const char *host = redis_host(leases_redis(site->leases));
    struct log_pair pair[] = {
        {.key = "store", .type = LOG_TEXT, .text = {host, strlen(host)}},
        {.key = "error", .type = LOG_TEXT, .text = {why, why == NULL ? 0 : strlen(why)}},
    };
    log_line(options->log, why == NULL ? BECALM_LOG_INFO : BECALM_LOG_WARN, options->loop->wall,
             why == NULL ? "shared budgets: leased from the store" : "shared budgets: degraded to the own share", pair,
             why == NULL ? 1 : 2);
}

/* ----------------------------------------------------------------------------------------------------- who we are */

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text != 0; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    }
    return (hash ^ '\n') * UINT64_C(1099511628211);
}

static void hash_value(const char *key, const char *value, struct becalm_origin origin, const char *sentence,
                       void *data)
{
    uint64_t *hash = data;
    (void)origin;
    (void)sentence;
    *hash = hash_text(hash_text(*hash, key), value);
}

/* Of what is in force, however it is written. */
static void policy_hash(struct fleet *fleet, const struct becalm_config *config)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (uint32_t i = 0; i < becalm_config_services(config); i++) {
        const struct becalm_service *service = becalm_config_service(config, i);
        hash = hash_text(hash, service->name);
        becalm_rules_explain(&service->rules, hash_value, &hash);
        for (uint32_t e = 0; e < service->endpoint_count; e++) {
            hash = hash_text(hash, service->endpoints[e].name);
            becalm_rules_explain(&service->endpoints[e].rules, hash_value, &hash);
        }
    }
    snprintf(fleet->policy, sizeof fleet->policy, "%08" PRIx32, (uint32_t)(hash ^ hash >> 32));
}

static void target_count(const struct snapshot_target *target, uint64_t *calls, uint64_t *retries)
{
    for (uint32_t m = 0; m < target->meters->count; m++) {
        const struct meter *meter = target->meters->meter[m];
        *calls += atomic_load_explicit(&meter->arrivals, memory_order_relaxed);
        for (uint32_t n = 0; n < METER_ATTEMPTS; n++) {
            *retries += atomic_load_explicit(&meter->retries[n], memory_order_relaxed);
        }
    }
}

/* What others see of this process: its rates are those since it last told. */
static void process_tell(void *self, struct roster_entry *entry)
{
    struct fleet *fleet = self;
    becalm_ns now = fleet->options.loop->now;
    becalm_ns passed = becalm_ns_max(becalm_ns_since(now, fleet->told_at), BECALM_MS);
    uint64_t calls = 0;
    uint64_t retries = 0;
    for (uint32_t i = 0; fleet->snapshot != NULL && i < fleet->snapshot->target_count; i++) {
        const struct becalm_lease *lease = fleet->snapshot->target[i].state->target.lease;
        target_count(&fleet->snapshot->target[i], &calls, &retries);
        entry->budgets += lease != NULL;
        entry->degraded += lease != NULL && becalm_lease_degraded(lease);
    }
    snprintf(entry->id, sizeof entry->id, "%s", fleet->options.id);
    snprintf(entry->version, sizeof entry->version, "%s", becalm_version());
    snprintf(entry->policy, sizeof entry->policy, "%s", fleet->policy);
    (void)gethostname(entry->name, sizeof entry->name - 1);
    entry->calls_milli = (calls - fleet->calls) * 1000 * 1000 / (passed / BECALM_MS);
    entry->retries_milli = (retries - fleet->retries) * 1000 * 1000 / (passed / BECALM_MS);
    entry->up_seconds = becalm_ns_since(now, fleet->begun_at) / BECALM_S;
    fleet->calls = calls;
    fleet->retries = retries;
    fleet->told_at = now;
}

/* Owns what `redis` has from now on, also if there is no memory. */
static struct site *site_make(struct fleet *fleet, struct redis_site *redis, const char *name)
{
    struct site *site = calloc(1, sizeof *site);
    if (site == NULL) {
        redis_site_close(redis);
        return NULL;
    }
    site->fleet = fleet;
    site->redis = *redis;
    snprintf(site->name, sizeof site->name, "%s", name);
    struct leases_options options = {
        .redis = {.loop = fleet->options.loop, .find = address_find, .note = site_note, .self = site}, .fleet = name};
    redis_site_use(&site->redis, &options.redis);
    options.redis.reply_bytes = ROSTER_BYTES;
    site->leases = leases_make(&options);
    if (site->leases == NULL) {
        redis_site_close(&site->redis);
        free(site);
        return NULL;
    }
    site->roster = roster_make(&(struct roster_options){.loop = fleet->options.loop,
                                                        .redis = leases_redis(site->leases),
                                                        .fleet = site->name,
                                                        .tell = process_tell,
                                                        .self = fleet});
    site->next = fleet->sites;
    fleet->sites = site;
    return site;
}

/* The one that this snapshot uses already. */
static struct site *site_used(struct fleet *fleet, const char *url)
{
    struct site *site = fleet->sites;
    while (site != NULL && (!site->used || strcmp(site->redis.url, url) != 0)) {
        site = site->next;
    }
    return site;
}

/* The connection stays if nothing about it has changed, neither policy nor files. */
static struct site *site_find(struct fleet *fleet, const struct becalm_config *config, const char *url)
{
    struct redis_site redis;
    const char *name = becalm_config_settings(config)->fleet;
    struct site *site = site_used(fleet, url);
    if (site != NULL) {
        return site;
    }
    struct becalm_diags *diags = calloc(1, sizeof *diags); /* that it is right was checked before */
    bool opened = diags != NULL && redis_site_open(&redis, config, url, (struct becalm_origin){.line = 0}, diags);
    free(diags);
    if (!opened) {
        return NULL;
    }
    for (site = fleet->sites; site != NULL; site = site->next) {
        if (redis_site_same(&site->redis, &redis) && strcmp(site->name, name) == 0) {
            redis_site_close(&redis);
            return site;
        }
    }
    return site_make(fleet, &redis, name);
}

static void site_free(struct site *site)
{
    roster_leave(site->roster);
    leases_free(site->leases);
    roster_free(site->roster);
    redis_site_close(&site->redis);
    free(site);
}

static void sites_forget_unused(struct fleet *fleet)
{
    for (struct site **link = &fleet->sites; *link != NULL;) {
        struct site *site = *link;
        if (site->used) {
            link = &site->next;
        } else {
            *link = site->next;
            site_free(site);
        }
    }
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
    char name[SCRIPT_NAME_MAX + 1];
    struct becalm_lease *lease = target->state->target.lease;
    if (lease == NULL || target->rules->shared_redis == NULL) {
        return;
    }
    struct site *site = site_find(fleet, config, target->rules->shared_redis);
    if (site == NULL) {
        return;
    }
    script_name(name, sizeof name, target->service->name, target->endpoint == NULL ? NULL : target->endpoint->name);
    site->used = true;
    (void)leases_bind(site->leases, name, lease, &target->state->policy.lease);
}

/* Names that the sites need are asked for, so that nobody forgets them. */
static void names_keep(const struct fleet *fleet)
{
    union address_socket ignored;
    for (struct site *site = fleet->sites; site != NULL; site = site->next) {
        for (uint32_t i = 0; i < site->redis.place.host_count; i++) {
            (void)address_find(site, site->redis.place.host[i], &ignored);
        }
    }
}

/* ----------------------------------------------------------------------------------------------------------- keys */

static bool desk_find(void *self, const char *host, union address_socket *socket)
{
    return name_find(self, host, socket);
}

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
    fleet->desk = NULL; /* without memory there is none */
    if (ring != NULL) {
        fleet->desk = key_desk_make(&(struct key_desk_options){.loop = fleet->options.loop,
                                                               .keyring = ring,
                                                               .find = desk_find,
                                                               .note = desk_note,
                                                               .ordered = desk_ordered,
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
    for (struct site *site = fleet->sites; site != NULL; site = site->next) {
        site->used = false;
        leases_bind_begin(site->leases);
    }
    for (uint32_t i = 0; i < snapshot->target_count; i++) {
        kept[i] = snapshot->target[i].state;
        state_use(kept[i]);
        target_bind(fleet, snapshot->config, &snapshot->target[i]);
    }
    for (struct site *site = fleet->sites; site != NULL; site = site->next) {
        leases_bind_end(site->leases);
    }
    sites_forget_unused(fleet);
    names_keep(fleet);
    struct snapshot *before = fleet->snapshot;
    fleet->snapshot = snapshot;
    snapshot_use(snapshot);
    if (before != NULL) {
        snapshot_drop(before);
    }
    policy_hash(fleet, snapshot->config);
    kept_drop(fleet->kept, fleet->kept_count); /* their leases are returned */
    fleet->kept = kept;
    fleet->kept_count = snapshot->target_count;
}

struct fleet *fleet_make(const struct fleet_options *options)
{
    struct fleet *fleet = calloc(1, sizeof *fleet);
    if (fleet != NULL) {
        fleet->options = *options;
        fleet->begun_at = fleet->told_at = options->loop->now;
    }
    return fleet;
}

void fleet_free(struct fleet *fleet)
{
    if (fleet == NULL) {
        return;
    }
    while (fleet->sites != NULL) {
        struct site *site = fleet->sites;
        fleet->sites = site->next;
        site_free(site);
    }
    key_desk_free(fleet->desk);
    kept_drop(fleet->kept, fleet->kept_count);
    if (fleet->snapshot != NULL) {
        snapshot_drop(fleet->snapshot);
    }
    free(fleet);
}

static void store_tell(const struct site *site, becalm_ns now, struct metrics_redis *to)
{
    const struct redis *redis = leases_redis(site->leases);
    struct redis_count count = redis_count(redis);
    *to = (struct metrics_redis){
        .up = redis_is_good(redis),
        .connects = count.connects,
        .answered = count.answered,
        .dropped = count.dropped,
        .waits = {.count = count.answered, .spent = count.spent},
        .age = count.answered == 0 ? BECALM_NEVER : becalm_ns_since(now, count.answered_at),
        .error = redis_error(redis),
    };
    _Static_assert(METRICS_REDIS_WHY >= REDIS_LOSSES, "every loss has a row");
    for (enum redis_loss loss = REDIS_LOSS_TIMEOUT; loss < REDIS_LOSSES; loss++) {
        to->why[loss] = redis_loss_word(loss);
        to->lost[loss] = count.lost[loss];
    }
    for (uint32_t i = 0; i < METRICS_REDIS_BOUNDS; i++) {
        to->waits.bound[i] = redis_bounds[i];
        to->waits.within[i] = count.within[i];
    }
    snprintf(to->store, sizeof to->store, "%s", site->redis.place.host[0]);
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
    buffer_json_number(page, "budgets", entry->budgets);
    buffer_json_number(page, "degraded", entry->degraded);
    buffer_json_number(page, "uptimeSeconds", entry->up_seconds);
    buffer_json_decimal(page, "toldSecondsAgo", entry->age_ms, 3);
    buffer_json_close(page, '}');
}

static void site_tell(const struct site *site, struct buffer *page)
{
    const struct redis *redis = leases_redis(site->leases);
    const struct roster_entry *entry = NULL;
    becalm_ns read_at = 0;
    uint32_t count = site->roster == NULL ? 0 : roster_look(site->roster, &entry, &read_at);
    const char *error = redis_is_good(redis) && site->roster != NULL ? roster_error(site->roster) : redis_error(redis);
    buffer_json_open(page, NULL, '{');
    buffer_json_chars(page, "store", site->redis.place.host[0]);
    buffer_json_chars(page, "fleet", site->name);
    buffer_json_bool(page, "up", redis_is_good(redis));
    buffer_json_chars(page, "error", error[0] == 0 ? NULL : error);
    if (read_at != 0) {
        buffer_json_decimal(page, "readSecondsAgo",
                            becalm_ns_since(site->fleet->options.loop->now, read_at) / BECALM_MS, 3);
    }
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
    for (const struct site *site = fleet->sites; site != NULL; site = site->next) {
        site_tell(site, page);
    }
    buffer_json_close(page, ']');
    buffer_json_close(page, '}');
}

uint32_t fleet_stores(const struct fleet *fleet, struct metrics_redis *to, uint32_t size)
{
    uint32_t count = 0;
    for (const struct site *site = fleet->sites; site != NULL && count < size; site = site->next) {
        store_tell(site, fleet->options.loop->now, &to[count++]);
    }
    return count;
}

/* ------------------------------------------------------------------------------------------------------- checking */

static bool rules_check(const struct becalm_config *config, const struct becalm_rules *rules,
                        struct becalm_diags *diags)
{
    struct redis_site site;
    struct becalm_origin at = becalm_rules_origin(rules, "budget.shared.redis");
    if (rules->shared_redis == NULL) {
        return true;
    }
    bool right = redis_site_open(&site, config, rules->shared_redis, at, diags);
    if (right) {
        redis_site_close(&site);
    }
    return right;
}

bool fleet_check(const struct becalm_config *config, struct becalm_diags *diags)
{
    for (uint32_t i = 0; i < becalm_config_services(config); i++) {
        const struct becalm_service *service = becalm_config_service(config, i);
        bool right = rules_check(config, &service->rules, diags);
        for (uint32_t e = 0; right && e < service->endpoint_count; e++) {
            right = rules_check(config, &service->endpoints[e].rules, diags);
        }
        if (!right) {
            return false;
        }
    }
    return true;
}
