/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "stores.h"

#include "meter/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROSTER_BYTES (1u << 20) /* for the entries of all processes */

/* ---------------------------------------------------------------------------------------------------------- sites */

static bool host_find(void *self, const char *host, union address_socket *socket)
{
    const struct redis_stores_options *options = &((struct store_site *)self)->stores->options;
    return options->find(options->self, host, socket);
}

static void site_note(void *self, const char *why)
{
    const struct store_site *site = self;
    const struct redis_stores_options *options = &site->stores->options;
    if (options->note != NULL) {
        options->note(options->self, site, why);
    }
}

/* Takes ownership of `redis`, even if it fails for want of memory. */
static struct store_site *site_make(struct redis_stores *stores, struct redis_site *redis, const char *name)
{
    struct store_site *site = calloc(1, sizeof *site);
    if (site == NULL) {
        redis_site_close(redis);
        return NULL;
    }
    site->stores = stores;
    site->redis = *redis;
    snprintf(site->name, sizeof site->name, "%s", name);
    struct leases_options options = {
        .redis = {.loop = stores->options.loop, .find = host_find, .note = site_note, .self = site}, .fleet = name};
    redis_site_use(&site->redis, &options.redis);
    options.redis.reply_bytes = ROSTER_BYTES;
    site->leases = leases_make(&options);
    if (site->leases == NULL) {
        redis_site_close(&site->redis);
        free(site);
        return NULL;
    }
    site->roster = roster_make(&(struct roster_options){.loop = stores->options.loop,
                                                        .redis = leases_redis(site->leases),
                                                        .fleet = site->name,
                                                        .tell = stores->options.tell,
                                                        .self = stores->options.self});
    site->next = stores->first;
    stores->first = site;
    return site;
}

/* The one that this policy uses already. */
static struct store_site *site_used(const struct redis_stores *stores, const char *url)
{
    struct store_site *site = stores->first;
    while (site != NULL && (!site->used || strcmp(site->redis.url, url) != 0)) {
        site = site->next;
    }
    return site;
}

/* The connection stays if nothing about it has changed, neither policy nor files. */
static struct store_site *site_find(struct redis_stores *stores, const struct becalm_config *config, const char *url)
{
    struct redis_site redis;
    const char *name = becalm_config_settings(config)->fleet;
    struct store_site *site = site_used(stores, url);
    if (site != NULL) {
        return site;
    }
    struct becalm_diags *diags = calloc(1, sizeof *diags); /* that it is right was checked before */
    bool opened = diags != NULL && redis_site_open(&redis, config, url, (struct becalm_origin){.line = 0}, diags);
    free(diags);
    if (!opened) {
        return NULL;
    }
    for (site = stores->first; site != NULL; site = site->next) {
        if (redis_site_same(&site->redis, &redis) && strcmp(site->name, name) == 0) {
            redis_site_close(&redis);
            return site;
        }
    }
    return site_make(stores, &redis, name);
}

static void site_free(struct store_site *site)
{
    roster_leave(site->roster);
    leases_free(site->leases);
    roster_free(site->roster);
    redis_site_close(&site->redis);
    free(site);
}

/* -------------------------------------------------------------------------------------------------------- budgets */

void redis_stores_bind_begin(struct redis_stores *stores)
{
    for (struct store_site *site = stores->first; site != NULL; site = site->next) {
        site->used = false;
        leases_bind_begin(site->leases);
    }
}

void redis_stores_bind(struct redis_stores *stores, const struct redis_stores_budget *budget)
{
    char name[SCRIPT_NAME_MAX + 1];
    const char *url = budget->rules->shared_redis;
    struct store_site *site = budget->lease == NULL || url == NULL ? NULL : site_find(stores, budget->config, url);
    if (site == NULL) {
        return;
    }
    script_name(name, sizeof name, budget->service, budget->endpoint);
    site->used = true;
    (void)leases_bind(site->leases, name, budget->lease, budget->policy);
}

void redis_stores_bind_end(struct redis_stores *stores)
{
    for (struct store_site **link = &stores->first; *link != NULL;) {
        struct store_site *site = *link;
        leases_bind_end(site->leases);
        if (site->used) {
            link = &site->next;
        } else {
            *link = site->next;
            site_free(site);
        }
    }
}

void redis_stores_free(struct redis_stores *stores)
{
    while (stores->first != NULL) {
        struct store_site *site = stores->first;
        stores->first = site->next;
        site_free(site);
    }
}

/* -------------------------------------------------------------------------------------------------------- telling */

static void site_tell(const struct store_site *site, becalm_ns now, struct metrics_redis *to)
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

uint32_t redis_stores_tell(const struct redis_stores *stores, struct metrics_redis *to, uint32_t size)
{
    uint32_t count = 0;
    for (const struct store_site *site = stores->first; site != NULL && count < size; site = site->next) {
        site_tell(site, stores->options.loop->now, &to[count++]);
    }
    return count;
}

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

void redis_stores_policy_hash(const struct becalm_config *config, char *to, size_t size)
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
    snprintf(to, size, "%08" PRIx32, (uint32_t)(hash ^ hash >> 32));
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

bool redis_stores_check(const struct becalm_config *config, struct becalm_diags *diags)
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
