/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "fleet.h"

#include "meter/metrics.h"
#include "redis/leases.h"
#include "redis/site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One Redis. */
struct site {
    struct site *next;
    struct fleet *fleet;
    struct redis_site redis;
    char name[SCRIPT_FLEET_MAX + 1]; /* the name space in it */
    struct leases *leases;
    bool used; /* by the snapshot that is followed */
};

struct fleet {
    struct fleet_options options;
    struct site *sites;
    struct state **kept; /* whose leases are bound */
    uint32_t kept_count;
};

/* ---------------------------------------------------------------------------------------------------------- sites */

/* A name that the control thread resolves, or an address. The turn is drawn, so that a dead address is not all. */
static bool address_find(void *self, const char *host, union address_socket *socket)
{
    const struct site *site = self;
    const struct snapshot_names *names = &site->fleet->options.names;
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
        *socket = list[becalm_rand_below(becalm_rand_next(&site->fleet->options.loop->random), count)];
    }
    return count > 0;
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
    site->leases = leases_make(&options);
    if (site->leases == NULL) {
        redis_site_close(&site->redis);
        free(site);
        return NULL;
    }
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
    leases_free(site->leases);
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

void fleet_follow(struct fleet *fleet, const struct snapshot *snapshot)
{
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
    kept_drop(fleet->kept, fleet->kept_count); /* their leases are returned */
    fleet->kept = kept;
    fleet->kept_count = snapshot->target_count;
}

struct fleet *fleet_make(const struct fleet_options *options)
{
    struct fleet *fleet = calloc(1, sizeof *fleet);
    if (fleet != NULL) {
        fleet->options = *options;
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
    kept_drop(fleet->kept, fleet->kept_count);
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
        .spent = count.spent,
        .age = count.answered == 0 ? BECALM_NEVER : becalm_ns_since(now, count.answered_at),
        .error = redis_error(redis),
    };
    _Static_assert(METRICS_REDIS_WHY >= REDIS_LOSSES, "every loss has a row");
    for (enum redis_loss loss = REDIS_LOSS_TIMEOUT; loss < REDIS_LOSSES; loss++) {
        to->why[loss] = redis_loss_word(loss);
        to->lost[loss] = count.lost[loss];
    }
    for (uint32_t i = 0; i < METRICS_REDIS_BOUNDS; i++) {
        to->bound[i] = redis_bounds[i];
        to->within[i] = count.within[i];
    }
    snprintf(to->store, sizeof to->store, "%s", site->redis.place.host[0]);
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
