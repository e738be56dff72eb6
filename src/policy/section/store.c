/* SPDX-License-Identifier: MIT */
#include "store.h"

#include <string.h>

#include "policy/config_data.h"

#define FLEET_MAX 64u

static bool fleet_is_fine(const char *name)
{
    static const char may[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t length = strspn(name, may);
    return name[length] == 0 && length > 0 && length <= FLEET_MAX;
}

static void tls_check(struct loader *l, const struct becalm_store *store, const struct yaml_node *node)
{
    static const char *const keys[] = {"ca", "cert", "key", "serverName", "verify"};
    bool sealed = store->redis != NULL && strncmp(store->redis, "rediss://", 9) == 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct yaml_node *at = loader_inside(node, keys[i]);
        if (at != NULL && !sealed) {
            loader_error(l, at->line, at->column, "conflict", "store.%s is for TLS; write redis: rediss://host:6379",
                         keys[i]);
        }
    }
    loader_needs(l, loader_inside(node, "cert"), store->tls.key.path != NULL,
                 "store.cert needs its private key; write key: FILE");
    loader_needs(l, loader_inside(node, "key"), store->tls.cert.path != NULL,
                 "store.key needs its certificate; write cert: FILE");
}

/* Keys that are shared need a Redis, and a secret that all gateways know. */
static void keys_check(struct loader *l, const struct becalm_settings *settings, const struct yaml_node *node)
{
    static const char *const keys[] = {"secretFile", "encryptFile", "maxAnswer", "timeout",
                                       "lease",      "replicas",    "fence",     "onAway"};
    const struct becalm_keys *k = &settings->keys;
    const struct yaml_node *redis = loader_inside(node, "redis");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct yaml_node *at = loader_inside(node, keys[i]);
        if (at != NULL && !k->shared) {
            loader_error(l, at->line, at->column, "conflict",
                         "idempotencyStore.%s is for keys that gateways share; write redis: inherit", keys[i]);
        }
    }
    loader_needs(
        l, redis, !k->shared || settings->store.redis != NULL,
        "idempotencyStore.redis needs a store; write store: {redis: redis://host:6379} at the top of the policy");
    loader_needs(l, redis, !k->shared || k->secret_file.path != NULL,
                 "idempotencyStore.redis needs a secret that all gateways share; write secretFile: FILE");
}

void store_check(struct loader *l, struct becalm_settings *settings, const struct yaml_node *root)
{
    struct becalm_store *store = &settings->store;
    const struct yaml_node *fleet = loader_inside(root, "fleet");
    const struct yaml_node *node = loader_inside(root, "store");
    const struct yaml_node *redis = loader_inside(node, "redis");
    const struct yaml_node *file = loader_inside(node, "passwordFile");
    store->line = redis != NULL ? redis->line : node != NULL ? node->line : 0;
    store->column = redis != NULL ? redis->column : node != NULL ? node->column : 0;
    store->tls.enabled = store->redis != NULL && strncmp(store->redis, "rediss://", 9) == 0;
    store->tls.line = store->line;
    store->tls.column = store->column;
    if (fleet != NULL && !fleet_is_fine(settings->fleet)) {
        loader_error(l, fleet->line, fleet->column, "wrong-type",
                     "fleet is a name of at most 64 letters, digits, dots, hyphens and underscores; write fleet: "
                     "prod-eu");
    }
    if (node != NULL && node->kind == YAML_MAPPING && node->count > 0 && redis == NULL) {
        loader_error(l, node->line, node->column, "missing", "store has no redis; write redis: redis://host:6379");
    }
    loader_needs(l, file, store->password_env == NULL, "store has passwordFile and passwordEnv; write one of them");
    loader_needs(l, loader_inside(node, "user"), file != NULL || store->password_env != NULL,
                 "store.user needs a password; write passwordFile: FILE or passwordEnv: VARIABLE");
    tls_check(l, store, node);
    keys_check(l, settings, loader_inside(root, "idempotencyStore"));
}

void store_inherit(struct loader *l, struct becalm_rules *rules, const char *whose)
{
    struct becalm_origin percent = becalm_rules_origin(rules, "budget.shared.percent");
    const char *store = l->config == NULL ? NULL : l->config->settings.store.redis;
    if (rules->shared_redis != NULL || percent.level == BECALM_FROM_BUILT_IN) {
        return;
    }
    if (store != NULL && becalm_rules_origin(rules, "budget.shared.redis").level == BECALM_FROM_BUILT_IN) {
        rules->shared_redis = store;
    } else if (l->shared_budgets && percent.level == l->level) {
        loader_error(l, percent.line, percent.column, "missing",
                     "%s: budget.shared needs a store; write store: {redis: redis://host:6379} at the top of the "
                     "policy",
                     whose);
    }
    if (rules->shared_redis != NULL && !l->shared_budgets) {
        loader_error(l, percent.line, percent.column, "not-yet",
                     "%s: a budget that all instances share through Redis needs a gateway, libbecalm-curl or "
                     "becalm exec, and libbecalm alone has no store; remove budget.shared",
                     whose);
    }
}
