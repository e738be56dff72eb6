/* SPDX-License-Identifier: MIT */
#include <becalm/config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alias.h"
#include "apply.h"
#include "config_data.h"
#include "diag.h"
#include "file.h"
#include "parts.h"
#include "routing/match.h"
#include "rules.h"
#include "section/listen.h"
#include "section/store.h"
#include "section/tracing.h"
#include "service/fallback.h"
#include "service/unlisted.h"
#include "set.h"
#include "substitute.h"
#include "value.h"

static void settings_defaults(struct becalm_settings *settings)
{
    static const char *const listen[] = {BECALM_LISTEN_DEFAULT, NULL};
    static const struct becalm_listener listeners[] = {
        {.address = BECALM_LISTEN_DEFAULT, .service = BECALM_LISTENER_SHARED, .h1 = true}};
    static const char *const upgrades[] = {"websocket", NULL};
    static const char *const nothing[] = {NULL};
    *settings = (struct becalm_settings){
        .listen = listen,
        .listeners = listeners,
        .listener_count = 1,
        .admin = BECALM_ADMIN_DEFAULT,
        .gateway_retries = true,
        .join = BECALM_JOIN_ALL,
        .log_level = BECALM_LOG_INFO,
        .drain_delay = 5 * BECALM_S,
        .drain_limit = 30 * BECALM_S,
        .header_timeout = 10 * BECALM_S,
        .body_timeout = 60 * BECALM_S,
        .idle_timeout = 60 * BECALM_S,
        .max_connections = 10000,
        .max_header_bytes = 32 * 1024,
        .max_body = UINT64_MAX,
        .replay_per_request = 64 * 1024,
        .replay_total = 64 * 1024 * 1024,
        .upgrades = upgrades,
        .pool_idle = 60 * BECALM_S,
        .pool_streams = 100,
        .http2_streams = 100,
        .http2_window = 64 * 1024,
        .store_ttl = 24 * 3600 * BECALM_S,
        .store_max_entries = 100000,
        .store_max_bytes = 64 * 1024 * 1024,
        .keys = {.max_answer = 64 * 1024, .timeout = 50 * BECALM_MS, .lease = 10 * BECALM_S},
        .fleet = BECALM_FLEET_DEFAULT,
        .store = {.timeout = BECALM_S},
        .tracing = {.headers = nothing, .service = "becalm", .share_ppm = 10000, .timeout = 10 * BECALM_S},
        .lint_code = nothing,
        .lint_reason = nothing,
    };
}

static void match_check(struct loader *l, const struct becalm_match *first, const struct yaml_node *key)
{
    for (const struct becalm_match *match = first; match != NULL; match = match->next) {
        if ((match->path != NULL) + (match->prefix != NULL) + (match->start != NULL) > 1) {
            loader_error(
                l, key->line, key->column, "conflict",
                "%s: match.path is the whole path, match.prefix and match.start its beginning; write one of them",
                key->text);
        }
    }
}

static bool endpoint_load(struct loader *l, struct becalm_endpoint *endpoint, const struct becalm_service *service,
                          const struct yaml_node *key, const struct yaml_node *value)
{
    endpoint->name = arena_text(l->arena, key->text);
    endpoint->line = key->line;
    endpoint->column = key->column;
    if (endpoint->name == NULL || !rules_inherit(l, &endpoint->rules, &service->rules)) {
        return loader_no_memory(l);
    }
    endpoint->rules.service_budget = &service->rules.policy.budget;
    struct space spaces[] = {rules_space(&endpoint->rules), {&schema_endpoint, endpoint, NULL}};
    struct place place = {.spaces = spaces, .space_count = 2, .level = BECALM_FROM_ENDPOINT, .what = "an endpoint"};
    if (strcmp(endpoint->name, "default") == 0) { /* in metrics and logs this is the name of the service's own rules */
        loader_error(l, key->line, key->column, "conflict",
                     "the name default stands for requests that belong to no endpoint; choose another name");
    }
    if (name_is_fine(l, key, "endpoint") && apply_mapping(l, &place, value)) {
        l->level = BECALM_FROM_ENDPOINT;
        rules_check(l, &endpoint->rules, endpoint->name, key->line, key->column);
        match_check(l, &endpoint->match, key);
    }
    return !l->no_memory;
}

static bool endpoints_load(struct loader *l, struct becalm_service *service, const struct yaml_node *node)
{
    if (node == NULL || yaml_is_null(node)) {
        return true;
    }
    if (node->kind != YAML_MAPPING) {
        loader_error(l, node->line, node->column, "wrong-type", "endpoints is a mapping of names; write name: {...}");
        return true;
    }
    struct becalm_endpoint *endpoints = arena_take(l->arena, (node->count + 1) * sizeof *endpoints);
    if (endpoints == NULL) {
        return loader_no_memory(l);
    }
    for (uint32_t i = 0; i < node->count; i++) {
        if (!endpoint_load(l, &endpoints[i], service, node->key[i], node->item[i])) {
            return false;
        }
    }
    service->endpoints = endpoints;
    service->endpoint_count = node->count;
    return true;
}

/* Without hosts: the service's own name as a DNS name, port 80, or 443 with TLS. */
static bool service_hosts(struct loader *l, struct becalm_service *service)
{
    if (service->hosts == NULL) {
        size_t bytes = strlen(service->name) + sizeof ":443";
        char *host = arena_take(l->arena, bytes);
        const char **hosts = arena_take(l->arena, 2 * sizeof *hosts);
        if (host == NULL || hosts == NULL) {
            return loader_no_memory(l);
        }
        (void)snprintf(host, bytes, "%s:%s", service->name, service->tls.enabled ? "443" : "80");
        hosts[0] = host;
        service->hosts = hosts;
    }
    service->host_count = 0;
    while (service->hosts[service->host_count] != NULL) {
        service->host_count++;
    }
    while (service->calls != NULL && service->calls[service->call_count] != NULL) {
        service->call_count++;
    }
    return true;
}

/* Checks the address of a host for more than every address must have. `node` is its place in the file; NULL: the
 * address is not written. */
static void hosts_check(struct loader *l, const struct becalm_service *service, const struct yaml_node *key,
                        const struct yaml_node *node)
{
    if (node == NULL) {
        if (!value_address(service->hosts[0])) {
            becalm_diag_add(l->diags, BECALM_WARNING, l->name, key->line, key->column, "missing",
                            "%s has no hosts, and its name is no DNS name; a gateway needs hosts: [\"name:80\"]",
                            service->name);
        }
        return;
    }
    for (uint32_t i = 0; i < service->host_count; i++) {
        const struct yaml_node *item = node->kind == YAML_SEQUENCE ? node->item[i] : node;
        if (value_address(service->hosts[i]) && !value_address_of_host(service->hosts[i])) {
            loader_error(l, item->line, item->column, "out-of-range",
                         "hosts: \"%.64s\" has port 0, which is for listeners; write the port that it listens on",
                         service->hosts[i]);
        }
    }
}

/* `defaults:` that is indented too far would be a service without hosts, and its keys would apply to nothing. */
static bool is_misplaced(const struct yaml_node *key, const struct yaml_node *value)
{
    return strcmp(key->text, "defaults") == 0 && value->kind == YAML_MAPPING && yaml_get(value, "hosts") == NULL &&
           yaml_get(value, "match") == NULL;
}

/* replacePrefix needs a prefix to replace. */
static void replace_check(struct loader *l, const struct becalm_service *service, const struct yaml_node *node)
{
    const struct yaml_node *written = yaml_get(node, "replacePrefix");
    bool prefix = false;
    for (const struct becalm_match *match = &service->match; match != NULL; match = match->next) {
        prefix = prefix || match->prefix != NULL;
    }
    if (written != NULL && !prefix) {
        loader_error(l, written->line, written->column, "conflict",
                     "%s: replacePrefix replaces match.prefix, and there is none; write match: {prefix: /%s}",
                     service->name, service->name);
    }
}

static void health_check_defaults(struct becalm_health_check *check)
{
    *check = (struct becalm_health_check){.interval = 5 * BECALM_S, .timeout = BECALM_S, .unhealthy = 3, .healthy = 2};
    bool fine = value_statuses("200-399", check->status);
    BECALM_ASSERT(fine);
}

/* A path without a kind means kind http. All other keys must belong to the kind. */
static void health_check_settle(struct loader *l, struct becalm_service *service, const struct yaml_node *node)
{
    static const char *const of_http[] = {"path", "statuses", NULL};
    struct becalm_health_check *check = &service->health_check;
    const struct yaml_node *written = yaml_get(node, "healthCheck");
    if (written == NULL || written->kind != YAML_MAPPING) {
        return;
    }
    bool kind = yaml_get(written, "kind") != NULL;
    check->kind = !kind && check->path != NULL ? BECALM_HEALTH_CHECK_HTTP : check->kind;
    if (check->kind == BECALM_HEALTH_CHECK_OFF && !kind && written->count > 0) {
        loader_error(l, written->line, written->column, "conflict",
                     "%s: healthCheck has no path and no kind; write path: /healthz, kind: tcp or kind: grpc",
                     service->name);
    }
    if (check->kind == BECALM_HEALTH_CHECK_HTTP && check->path == NULL) {
        loader_error(l, written->line, written->column, "conflict",
                     "%s: a healthCheck of kind http needs a path; write path: /healthz", service->name);
    }
    for (size_t i = 0; check->kind > BECALM_HEALTH_CHECK_HTTP && of_http[i] != NULL; i++) {
        const struct yaml_node *other = yaml_get(written, of_http[i]);
        if (other != NULL) {
            loader_error(l, other->line, other->column, "conflict",
                         "%s: healthCheck.%s is for kind: http; remove one of them", service->name, of_http[i]);
        }
    }
    const struct yaml_node *grpc = yaml_get(written, "grpcService");
    if (grpc != NULL && kind && check->kind != BECALM_HEALTH_CHECK_GRPC) {
        loader_error(l, grpc->line, grpc->column, "conflict",
                     "%s: healthCheck.grpcService is for kind: grpc; remove one of them", service->name);
    }
}

/* A connection with a PROXY protocol header belongs to one client, and HTTP/2 would share it among clients. */
static void introduction_check(struct loader *l, const struct becalm_service *service, const struct yaml_node *node)
{
    const struct yaml_node *written = loader_inside(node, "proxyProtocol");
    if (written != NULL && service->introduction != BECALM_INTRODUCTION_NONE &&
        service->protocol == BECALM_PROTOCOL_H2) {
        loader_error(l, written->line, written->column, "conflict",
                     "%s: proxyProtocol says whose a connection is, and HTTP/2 to hosts shares one among clients; take "
                     "protocol: h2 out, or let hosts read Forwarded instead",
                     service->name);
    }
}

static bool service_load(struct loader *l, struct becalm_service *service, const struct yaml_node *key,
                         const struct yaml_node *value)
{
    service->name = arena_text(l->arena, key->text);
    service->file = l->name;
    service->line = key->line;
    service->column = key->column;
    service->instances = 1;
    service->send = BECALM_SEND_ALL;
    health_check_defaults(&service->health_check);
    if (service->name == NULL || !rules_inherit(l, &service->rules, &l->config->defaults)) {
        return loader_no_memory(l);
    }
    service->rules.service_budget = &service->rules.policy.budget;
    if (unlisted_is(value)) {
        unlisted_rules(&service->rules);
    }
    struct space spaces[] = {rules_space(&service->rules), {&schema_service, service, NULL}};
    static const char *const beside[] = {"endpoints", NULL};
    struct place place = {
        .spaces = spaces, .space_count = 2, .level = BECALM_FROM_SERVICE, .what = "a service", .beside = beside};
    bool misplaced = is_misplaced(key, value);
    if (misplaced) {
        loader_error(l, key->line, key->column, "unknown-key",
                     "defaults is no service; it stands at the top of the file, beside services:");
    }
    bool fine = !misplaced && name_is_fine(l, key, "service") && apply_mapping(l, &place, value);
    service->rules.role = listen_service_role(l, service);
    if (fine) {
        l->level = BECALM_FROM_SERVICE;
        rules_check(l, &service->rules, service->name, key->line, key->column);
        match_check(l, &service->match, key);
        replace_check(l, service, value);
        health_check_settle(l, service, value);
        introduction_check(l, service, value);
    }
    if (service->unlisted) {
        unlisted_settle(l, service, key, value);
    } else if (!listen_settle_hosts(l, service, value)) {
        return false;
    }
    if (!service_hosts(l, service)) {
        return false;
    }
    const struct yaml_node *calls = value->kind == YAML_MAPPING ? yaml_get(value, "calls") : NULL;
    service->calls_line = calls == NULL ? 0 : calls->line;
    service->calls_column = calls == NULL ? 0 : calls->column;
    if (fine && !service->unlisted) {
        hosts_check(l, service, key, yaml_get(value, "hosts"));
    }
    if (match_is_empty(&service->match)) {
        service->match.host = service->name;
    }
    return endpoints_load(l, service, value->kind == YAML_MAPPING ? yaml_get(value, "endpoints") : NULL);
}

static bool services_load(struct loader *l, const struct yaml_node *node)
{
    struct becalm_config *config = l->config;
    if (node == NULL || yaml_is_null(node)) {
        return true;
    }
    if (node->kind != YAML_MAPPING) {
        loader_error(l, node->line, node->column, "wrong-type", "services is a mapping of names; write name: {...}");
        return true;
    }
    config->services = arena_take(&config->arena, (node->count + 1) * sizeof *config->services);
    if (config->services == NULL) {
        return loader_no_memory(l);
    }
    config->service_count = node->count;
    bool fine = true;
    for (uint32_t i = 0; i < node->count && fine; i++) {
        l->name = node->key[i]->file == NULL ? config->name : node->key[i]->file;
        fine = service_load(l, &config->services[i], node->key[i], node->item[i]);
    }
    l->name = config->name;
    return fine && aliases_add(l);
}

/* lint: {ignore: {RULE: "the reason why"}} */
static bool lint_load(struct loader *l, const struct yaml_node *node)
{
    const struct yaml_node *ignore = node != NULL && node->kind == YAML_MAPPING ? yaml_get(node, "ignore") : NULL;
    if (node == NULL || yaml_is_null(node)) {
        return true;
    }
    if (ignore == NULL || ignore->kind != YAML_MAPPING || node->count != 1) {
        loader_error(l, node->line, node->column, "wrong-type",
                     "lint has only the key ignore; write lint: {ignore: {RULE: \"the reason why\"}}");
        return true;
    }
    const char **code = arena_take(l->arena, (ignore->count + 1) * sizeof *code);
    const char **reason = arena_take(l->arena, (ignore->count + 1) * sizeof *reason);
    if (code == NULL || reason == NULL) {
        return loader_no_memory(l);
    }
    for (uint32_t i = 0; i < ignore->count; i++) {
        const struct yaml_node *why = ignore->item[i];
        if (why->kind != YAML_SCALAR || why->length == 0) {
            loader_error(l, why->line, why->column, "wrong-type",
                         "%s is silenced without a reason; write %s: \"the reason why\"", ignore->key[i]->text,
                         ignore->key[i]->text);
        }
        code[i] = arena_text(l->arena, ignore->key[i]->text);
        reason[i] = arena_text(l->arena, why->kind == YAML_SCALAR ? why->text : "");
        if (code[i] == NULL || reason[i] == NULL) {
            return loader_no_memory(l);
        }
    }
    l->config->settings.lint_code = code;
    l->config->settings.lint_reason = reason;
    return true;
}

static void version_check(struct loader *l, const struct yaml_node *node)
{
    if (node != NULL && !yaml_is(node, "1")) {
        loader_error(l, node->line, node->column, "out-of-range",
                     "this Becalm knows version 1 of the format; write version: 1");
    }
}

static void admin_check(struct loader *l, const struct yaml_node *admin, const struct becalm_settings *settings)
{
    if (admin == NULL || settings->admin == NULL) {
        return;
    }
    if (value_address_is_name(settings->admin)) {
        loader_error(l, admin->line, admin->column, "wrong-type",
                     "admin: %.64s is a name; write an address to listen on, like 127.0.0.1:8080 or unix:/path",
                     settings->admin);
    } else if (!value_address_is_loopback(settings->admin) && settings->admin_token_file == NULL) {
        loader_error(
            l, admin->line, admin->column, "conflict",
            "admin: beyond loopback it needs a token; write adminTokenFile: FILE, or an address like 127.0.0.1:9900");
    }
}

/* Settings that a typing error must not switch on. */
static void settings_check(struct loader *l, const struct yaml_node *root)
{
    const struct becalm_settings *settings = &l->config->settings;
    const struct yaml_node *upgrades = yaml_get(root, "upgrades");
    admin_check(l, yaml_get(root, "admin"), settings);
    store_check(l, &l->config->settings, root);
    tracing_check(l, &l->config->settings.tracing, root);
    for (size_t i = 0; upgrades != NULL && settings->upgrades[i] != NULL; i++) {
        if (!value_upgrade(settings->upgrades[i])) {
            loader_error(
                l, upgrades->line, upgrades->column, "wrong-type",
                "upgrades: \"%.64s\" can't be tunnelled; write protocols that carry no requests, like [websocket, "
                "tcp, SPDY/3.1], or []",
                settings->upgrades[i]);
        }
    }
}

/* The default of `trust`. Any client may connect to a gateway, also through a TLS terminator on the same machine; the
 * client of a sidecar is the program beside it. */
static void trust_default(struct becalm_settings *settings)
{
    static const char *const nobody[] = {NULL};
    static const char *const this_machine[] = {"127.0.0.0/8", "::1", "unix", NULL};
    settings->trust_by_role[BECALM_ROLE_GATEWAY] = settings->trust == NULL ? nobody : settings->trust;
    settings->trust_by_role[BECALM_ROLE_SIDECAR] = settings->trust == NULL ? this_machine : settings->trust;
    settings->trust = settings->trust_by_role[settings->role];
}

/* A certificate's name in `trust` has no effect if no listener asks clients for certificates. */
static void trust_check(struct loader *l, const struct becalm_settings *settings, const struct yaml_node *root)
{
    const struct yaml_node *trust = root->kind == YAML_MAPPING ? yaml_get(root, "trust") : NULL;
    bool asks = false;
    for (uint32_t i = 0; i < settings->listener_count; i++) {
        asks |= settings->listeners[i].client_auth != BECALM_CLIENT_AUTH_NONE;
    }
    for (size_t i = 0; trust != NULL && !asks && settings->trust[i] != NULL; i++) {
        if (value_peer_name(settings->trust[i])) {
            becalm_diag_add(
                l->diags, BECALM_WARNING, l->name, trust->line, trust->column, "trust-unasked",
                "trust: no listener asks clients for a certificate, so no client can be %.64s; write clientCa: "
                "FILE in tls: of a listener",
                settings->trust[i]);
            return;
        }
    }
}

static bool top_load(struct loader *l, const struct yaml_node *root)
{
    struct becalm_config *config = l->config;
    struct space settings[] = {{&schema_settings, &config->settings, NULL}};
    static const char *const beside[] = {"version", "include", "defaults", "services", "lint", NULL};
    struct place top = {.spaces = settings,
                        .space_count = 1,
                        .level = BECALM_FROM_DEFAULTS,
                        .what = "the top of a policy",
                        .beside = beside};
    (void)apply_mapping(l, &top, root);
    if (l->no_memory || root->kind != YAML_MAPPING) {
        return !l->no_memory;
    }
    trust_default(&config->settings);
    config->settings.admin_token_file = config->settings.admin_token.path;
    version_check(l, yaml_get(root, "version"));
    settings_check(l, root);
    /* These checks run even after errors above, so that one run reports all errors. */
    if (!rules_load(l, &config->defaults, "defaults", yaml_get(root, "defaults"))) {
        return false;
    }
    config->defaults.role = config->settings.role;
    if (!services_load(l, yaml_get(root, "services")) || !listen_gather(l, yaml_get(root, "listen"))) {
        return false;
    }
    trust_check(l, &config->settings, root);
    unlisted_check(l);
    fallback_check(l);
    return lint_load(l, yaml_get(root, "lint"));
}

/* A Kubernetes ConfigMap: the policy is a text inside. Returns the tree to load, which is `outer` itself if it is no
 * ConfigMap. */
static struct yaml_tree *configmap_open(struct yaml_tree *outer, struct becalm_diags *diags)
{
    const struct yaml_node *root = outer->root;
    const struct yaml_node *kind = root->kind == YAML_MAPPING ? yaml_get(root, "kind") : NULL;
    if (kind == NULL || !yaml_is(kind, "ConfigMap")) {
        return outer;
    }
    const struct yaml_node *data = yaml_get(root, "data");
    const struct yaml_node *policy = NULL;
    uint32_t candidates = 0;
    for (uint32_t i = 0; data != NULL && data->kind == YAML_MAPPING && i < data->count; i++) {
        const char *dot = strrchr(data->key[i]->text, '.');
        bool named = yaml_is(data->key[i], "policy.yaml");
        bool likely =
            dot != NULL && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0 || strcmp(dot, ".json") == 0);
        if (named || (likely && candidates == 0)) {
            policy = data->item[i];
        }
        candidates += named ? 0 : likely;
        if (named) {
            candidates = 1;
            break;
        }
    }
    if (policy == NULL || candidates != 1 || policy->kind != YAML_SCALAR) {
        const struct yaml_node *at = data == NULL ? root : data;
        becalm_diag_add(diags, BECALM_ERROR, outer->name, at->line, at->column, "missing",
                        "a ConfigMap holds its policy as text under data; write data: {policy.yaml: |...}");
        return NULL;
    }
    return yaml_parse_inner(outer, policy, diags);
}

static int config_build(struct becalm_config *config, const struct yaml_tree *tree,
                        const struct becalm_load_options *options, struct becalm_diags *diags)
{
    struct loader l = {.arena = &config->arena,
                       .config = config,
                       .name = config->name,
                       .diags = diags,
                       .told = diags->count,
                       .allow_unknown = options != NULL && options->allow_unknown,
                       .shared_budgets = options != NULL && options->shared_budgets,
                       .nested = listen_load_nested};
    settings_defaults(&config->settings);
    if (!top_load(&l, tree->root)) {
        return BECALM_ENOMEM;
    }
    return diags->errors == 0 ? 0 : BECALM_EPARSE;
}

int becalm_config_parse(struct becalm_config **config, const char *name, const char *text, size_t length,
                        const struct becalm_load_options *options, struct becalm_diags *diags)
{
    int rc = BECALM_EPARSE;
    struct yaml_tree *outer = NULL;
    struct yaml_tree *tree = NULL;
    struct parts parts = {.trees = NULL};
    static const char *const nothing[] = {NULL};
    struct becalm_config *made = calloc(1, sizeof *made);
    *config = NULL;
    if (made == NULL || (made->name = arena_text(&made->arena, name)) == NULL) {
        rc = BECALM_ENOMEM;
        goto out;
    }
    outer = yaml_parse(name, text, length, diags);
    if (outer == NULL) {
        goto out;
    }
    tree = configmap_open(outer, diags);
    if (tree == NULL) {
        goto out;
    }
    if ((options != NULL && options->substitute && !substitute_tree(tree, &made->arena, diags)) ||
        !parts_merge(&parts, tree, &made->arena, options, diags)) {
        rc = BECALM_ENOMEM;
        goto out;
    }
    made->parts = parts.paths == NULL ? nothing : parts.paths;
    for (const char *const *set = options == NULL ? NULL : options->set; set != NULL && *set != NULL; set++) {
        (void)set_apply(tree, &made->arena, *set, diags);
    }
    rc = config_build(made, tree, options, diags);
    if (rc == 0) {
        *config = made;
        made = NULL;
    }
out:
    diags_sort(diags);
    parts_free(&parts);
    if (tree != outer) {
        yaml_free(tree);
    }
    yaml_free(outer);
    becalm_config_free(made);
    return rc;
}

int becalm_config_load(struct becalm_config **config, const char *path, const struct becalm_load_options *options,
                       struct becalm_diags *diags)
{
    size_t length;
    char *text = file_read(path, &length);
    *config = NULL;
    if (text == NULL) {
        becalm_diag_add(diags, BECALM_ERROR, path, 1, 1, "unreadable", "%s", strerror(errno));
        return BECALM_EIO;
    }
    int rc = becalm_config_parse(config, path, text, length, options, diags);
    free(text);
    return rc;
}

void becalm_config_free(struct becalm_config *config)
{
    if (config != NULL) {
        arena_free(&config->arena);
        free(config);
    }
}

const char *becalm_config_name(const struct becalm_config *config)
{
    return config->name;
}

const char *const *becalm_config_parts(const struct becalm_config *config)
{
    return config->parts;
}

const char *becalm_service_file(const struct becalm_config *config, const struct becalm_service *service,
                                struct becalm_origin origin)
{
    return service == NULL || origin.level == BECALM_FROM_DEFAULTS ? config->name : service->file;
}

const struct becalm_settings *becalm_config_settings(const struct becalm_config *config)
{
    return &config->settings;
}

const struct becalm_rules *becalm_config_defaults(const struct becalm_config *config)
{
    return &config->defaults;
}

uint32_t becalm_config_services(const struct becalm_config *config)
{
    return config->service_count;
}

const struct becalm_service *becalm_config_service(const struct becalm_config *config, uint32_t index)
{
    return index < config->service_count ? &config->services[index] : NULL;
}

const struct becalm_service *becalm_config_find(const struct becalm_config *config, const char *service)
{
    for (uint32_t i = 0; i < config->service_count; i++) {
        if (strcmp(config->services[i].name, service) == 0) {
            return &config->services[i];
        }
    }
    return NULL;
}
