/* SPDX-License-Identifier: MIT */
#include "cmd_check_store.h"

#include "keys/keyring.h"
#include "redis/probe.h"

#include <stdio.h>
#include <string.h>

/* One Redis of the policy. */
struct visit {
    const struct becalm_config *config;
    struct becalm_diags *diags;
    const char *fleet;
    struct becalm_origin at;
};

static void permissions_tell(const struct visit *v, const struct redis_site *site, const struct redis_probe *probe)
{
    char list[PROBE_MISSING_MAX * 32] = "";
    const char *user = site->place.user[0] == 0 ? "default" : site->place.user;
    for (uint32_t i = 0; i < probe->missing_count; i++) {
        size_t length = strlen(list);
        (void)snprintf(list + length, sizeof list - length, " %s", probe->missing[i]);
    }
    becalm_diag_add(v->diags, BECALM_ERROR, becalm_config_name(v->config), v->at.line, v->at.column, "store",
                    "the store %s does not give the user %s all permissions that a gateway needs; run ACL SETUSER %s%s",
                    probe->host, user, user, list);
}

static void probe_tell(const struct visit *v, const struct redis_site *site, const struct redis_probe *probe)
{
    const char *name = becalm_config_name(v->config);
    if (probe->error[0] != 0) {
        becalm_diag_add(v->diags, BECALM_ERROR, name, v->at.line, v->at.column, "store", "the store %s %s: %s",
                        probe->host, probe->answers ? "can't be used" : "does not let us in", probe->error);
    } else if (probe->missing_count > 0) {
        permissions_tell(v, site, probe);
    } else {
        becalm_diag_add(v->diags, BECALM_NOTE, name, v->at.line, v->at.column, "store",
                        "the store %s answers, and grants all permissions that a gateway needs", probe->host);
    }
}

static void eviction_tell(const struct visit *v, const struct redis_probe *probe)
{
    if (probe->evicts[0] != 0) {
        becalm_diag_add(v->diags, BECALM_WARNING, becalm_config_name(v->config), v->at.line, v->at.column, "store",
                        "the store %s forgets idempotency keys when its memory is full (maxmemory-policy %s), and "
                        "their requests can be executed again; write CONFIG SET maxmemory-policy noeviction",
                        probe->host, probe->evicts);
    }
}

/* The secret and the keys of encryption that gateways have in common: can they be read, and are they such? */
static int secrets_check(const struct becalm_config *config, struct becalm_diags *diags)
{
    struct keyring *ring = NULL;
    int rc = keyring_make(&ring, config, NULL, diags);
    keyring_drop(ring);
    return rc;
}

static int visit_store(const struct visit *v, const char *url)
{
    struct redis_site site;
    struct redis_probe probe;
    if (!redis_site_open(&site, v->config, url, v->at, v->diags)) {
        return 0; /* the diagnostics say why */
    }
    const struct becalm_settings *settings = becalm_config_settings(v->config);
    bool keys = settings->keys.shared && settings->store.redis != NULL && strcmp(url, settings->store.redis) == 0;
    bool made = redis_probe(&site, v->fleet, keys, settings->keys.replicas > 0, &probe);
    if (made) {
        probe_tell(v, &site, &probe);
        eviction_tell(v, &probe);
    }
    redis_site_close(&site);
    return made ? 0 : BECALM_ENOMEM;
}

/* Each URL once: rules inherit them. */
static int visit_rules(struct visit *v, const struct becalm_rules *rules, const char **seen, uint32_t *count,
                       uint32_t size)
{
    const char *url = rules->shared_redis;
    for (uint32_t i = 0; url != NULL && i < *count; i++) {
        url = strcmp(seen[i], url) == 0 ? NULL : url;
    }
    if (url == NULL || *count == size) {
        return 0;
    }
    seen[(*count)++] = url;
    v->at = becalm_rules_origin(rules, "budget.shared.redis");
    return visit_store(v, url);
}

int check_store(const struct becalm_config *config, struct becalm_diags *diags)
{
    const struct becalm_settings *settings = becalm_config_settings(config);
    const struct becalm_store *store = &settings->store;
    const char *seen[32];
    uint32_t count = 0;
    struct visit v = {.config = config,
                      .diags = diags,
                      .fleet = settings->fleet,
                      /* of one that --set names there is no place in the file */
                      .at = {.line = store->line > 0 ? store->line : 1, .column = store->line > 0 ? store->column : 1}};
    int rc = secrets_check(config, diags);
    if (rc == BECALM_EINVAL) {
        return 0; /* the diagnostics have the error */
    }
    if (rc == 0 && store->redis != NULL) {
        seen[count++] = store->redis;
        rc = visit_store(&v, store->redis);
    }
    for (uint32_t i = 0; rc == 0 && i < becalm_config_services(config); i++) {
        const struct becalm_service *service = becalm_config_service(config, i);
        rc = visit_rules(&v, &service->rules, seen, &count, 32);
        for (uint32_t e = 0; rc == 0 && e < service->endpoint_count; e++) {
            rc = visit_rules(&v, &service->endpoints[e].rules, seen, &count, 32);
        }
    }
    if (count == 0) {
        becalm_diag_add(diags, BECALM_ERROR, becalm_config_name(config), 1, 1, "store",
                        "the policy names no store; write store: {redis: redis://host:6379}");
    }
    return rc;
}
