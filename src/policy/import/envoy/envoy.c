/* SPDX-License-Identifier: MIT */
/* Envoy: routes say how requests are retried, clusters how many go there at once and which hosts are left out. A
 * cluster becomes a service and a route to it an endpoint. Whole bootstrap files are read, and any piece of them. */
#include "envoy.h"

#include "policy/import/mesh.h"
#include "policy/import/route.h"

#include <string.h>

#define DEPTH_MAX     8u
#define ROUTE_TIMEOUT (15 * BECALM_S) /* Envoy's, where none is written */
#define SHARES_MAX    64u
#define NUM_RETRIES   1u

/* A virtual host, as far as its routes need it. */
struct virtual_host {
    struct from domains;
    const struct yaml_node *retry;
    const struct yaml_node *hedge;
};

/* ---- retry_policy, hedge_policy ---- */

static void predicates_read(struct source *s, struct emit_target *target, const struct from *list)
{
    for (uint32_t i = 0; source_is(s, list, YAML_SEQUENCE) && i < list->node->count; i++) {
        const struct from name = {source_get(list->node->item[i], "name"), list->path, NULL};
        const char *text = source_text(s, &name);
        if (text != NULL && strstr(text, "previous_hosts") == NULL) {
            source_no_equal(s, target, &name, "a retry avoids the hosts that were tried, and no others");
        }
    }
}

static void back_off_read(struct source *s, struct emit_target *target, const struct from *policy)
{
    static const struct field fields[] = {{"base_interval", NULL}, {"max_interval", NULL}, {NULL, NULL}};
    const struct from block = {source_get(policy->node, "retry_back_off"), "retry_back_off", NULL};
    if (block.node != NULL && !source_is(s, &block, YAML_MAPPING)) {
        return;
    }
    source_rest(s, target, block.node, "retry_back_off", fields);
    mesh_backoff(s, target,
                 &(struct from){source_get(block.node, "base_interval"), "retry_back_off.base_interval", NULL},
                 &(struct from){source_get(block.node, "max_interval"), "retry_back_off.max_interval", NULL}, policy);
}

static void conditions_read(struct source *s, struct emit_target *target, const struct from *policy)
{
    const struct from on = {source_get(policy->node, "retry_on"), "retry_policy.retry_on", NULL};
    struct from codes = {source_get(policy->node, "retriable_status_codes"), "retry_policy.retriable_status_codes",
                         NULL};
    if (codes.node != NULL &&
        (on.node == NULL || on.node->kind != YAML_SCALAR || strstr(on.node->text, "retriable-status-codes") == NULL)) {
        source_no_equal(s, target, &codes, "Envoy looks at them only if retry_on has retriable-status-codes");
        codes.node = NULL;
    }
    mesh_retry_on(s, target, &on, &codes, policy, "");
}

static const struct field retry_fields[] = {
    {"retry_on", NULL},
    {"num_retries", NULL},
    {"per_try_timeout", NULL},
    {"retriable_status_codes", NULL},
    {"retry_back_off", NULL},
    {"retry_host_predicate", NULL},
    {"per_try_idle_timeout", NOTE "idleTimeout holds for all services"},
    {"rate_limited_retry_back_off", "Retry-After is always honoured, and no other header is"},
    {"retriable_headers", "no header of an answer decides about retries"},
    {"retriable_request_headers", "no header of a request but Idempotency-Key decides about retries"},
    {"retry_priority", NOTE "hosts have no priorities"},
    {"retry_options_predicates", "a retry is sent as the first attempt was"},
    {"host_selection_retry_max_attempts", NOTE "a retry always avoids the hosts that were tried"},
    {NULL, NULL}};

/* The parts of Envoy's hedge policy. */
struct hedge_parts {
    const struct from *hedge;
    const struct from *per_try;
    const struct from *number;
    const struct from *timeout;
    uint64_t retries;
};

/* Envoy's hedge: the attempt that timed out goes on beside the next one. Ours is that with a delay. */
static void hedge_put(struct source *s, struct emit_target *target, const struct hedge_parts *h)
{
    becalm_ns delay;
    becalm_ns whole = ROUTE_TIMEOUT;
    if (h->per_try->node == NULL) {
        source_no_equal(s, target, h->hedge, "without a per_try_timeout it does nothing");
        return;
    }
    if (!source_duration(s, h->per_try, &delay)) {
        return;
    }
    source_put_word(s, target, "hedge.enabled", "true", h->hedge);
    source_put_duration(s, target, "hedge.delay", delay, h->per_try);
    source_put_integer(s, target, "hedge.max", h->retries, h->number);
    struct from from = h->timeout->node != NULL ? *h->timeout : *h->hedge;
    from.remark = "an attempt goes on beside its hedge";
    if ((h->timeout->node == NULL || source_duration(s, h->timeout, &whole)) && whole > 0) {
        source_put_duration(s, target, "attemptTimeout", whole, &from);
    }
}

static bool hedge_read(struct source *s, struct emit_target *target, const struct from *hedge)
{
    static const struct field fields[] = {{"hedge_on_per_try_timeout", NULL},
                                          {"initial_requests", "a call begins with one attempt"},
                                          {"additional_request_chance", "hedges are sent after a delay, not by chance"},
                                          {NULL, NULL}};
    bool on = false;
    if (!source_is(s, hedge, YAML_MAPPING)) {
        return false;
    }
    source_rest(s, target, hedge->node, "hedge_policy", fields);
    const struct from flag = {source_get(hedge->node, "hedge_on_per_try_timeout"), hedge->path, NULL};
    return source_boolean(s, &flag, &on) && on;
}

static void policies_read(struct source *s, struct emit_target *target, const struct from *policy,
                          const struct from *hedge, const struct from *timeout)
{
    bool hedged = hedge->node != NULL && hedge_read(s, target, hedge);
    if (policy->node == NULL || !source_is(s, policy, YAML_MAPPING)) {
        if (hedged) {
            source_no_equal(s, target, hedge, "without a retry_policy it does nothing");
        }
        return;
    }
    source_rest(s, target, policy->node, "retry_policy", retry_fields);
    predicates_read(
        s, target,
        &(struct from){source_get(policy->node, "retry_host_predicate"), "retry_policy.retry_host_predicate", NULL});
    uint64_t retries = NUM_RETRIES;
    struct from number = {source_get(policy->node, "num_retries"), "retry_policy.num_retries", NULL};
    if (number.node == NULL) {
        number = (struct from){policy->node, "retry_policy", "Envoy's default; num_retries is not written"};
    } else if (!source_integer(s, &number, &retries)) {
        return;
    }
    source_put_integer(s, target, "maxRetries", retries, &number);
    const struct from per_try = {source_get(policy->node, "per_try_timeout"), "retry_policy.per_try_timeout", NULL};
    if (hedged) {
        hedge_put(s, target, &(struct hedge_parts){hedge, &per_try, &number, timeout, retries});
    } else {
        mesh_attempt_timeout(s, target, &per_try);
    }
    back_off_read(s, target, policy);
    conditions_read(s, target, policy);
}

/* ---- routes ---- */

static const struct field action_fields[] = {
    {"cluster", NULL},
    {"timeout", NULL},
    {"retry_policy", NULL},
    {"hedge_policy", NULL},
    {"weighted_clusters", NULL},
    {"cluster_header", "a route goes to one service"},
    {"idle_timeout", NOTE "idleTimeout holds for all services"},
    {"prefix_rewrite", "requests are passed on unchanged"},
    {"regex_rewrite", "requests are passed on unchanged"},
    {"host_rewrite_literal", "requests are passed on unchanged"},
    {"auto_host_rewrite", "requests are passed on unchanged"},
    {"request_mirror_policies", "requests are not copied"},
    {"hash_policy", NOTE "Becalm picks two hosts at random and uses the less busy one"},
    {"priority", NOTE "hosts have no priorities"},
    {NULL, NULL}};

static void action_rules(struct source *s, struct emit_target *target, const struct yaml_node *action,
                         const struct virtual_host *vhost)
{
    const struct yaml_node *own_retry = source_get(action, "retry_policy");
    const struct yaml_node *own_hedge = source_get(action, "hedge_policy");
    const struct from retry = {own_retry != NULL ? own_retry : vhost->retry, "retry_policy", NULL};
    const struct from hedge = {own_hedge != NULL ? own_hedge : vhost->hedge, "hedge_policy", NULL};
    const struct from timeout = {source_get(action, "timeout"), "route.timeout", NULL};
    source_rest(s, target, action, "route", action_fields);
    mesh_deadline(s, target, &timeout);
    policies_read(s, target, &retry, &hedge, &timeout);
}

/* A header whose whole value is given: {name, string_match: {exact}}, or the older {name, exact_match}. */
static const char *header_exact(const struct yaml_node *header)
{
    const struct yaml_node *value = source_get(source_get(header, "string_match"), "exact");
    if (value == NULL) {
        value = source_get(header, "exact_match");
    }
    bool plain = header->count == 2 && value != NULL && value->kind == YAML_SCALAR;
    return plain ? value->text : NULL;
}

static void header_match(struct source *s, struct emit_target *service, const struct yaml_node *header,
                         struct route_match *m)
{
    const struct from name = {source_get(header, "name"), "match.headers", NULL};
    const char *value = header->kind == YAML_MAPPING ? header_exact(header) : NULL;
    const char *text = source_text(s, &name);
    if (text != NULL && value != NULL && strcmp(text, ":method") == 0 && m->method == NULL) {
        m->method = value;
    } else if (text != NULL && value != NULL && strcmp(text, ":authority") == 0 && m->host == NULL) {
        m->host = value;
    } else if (text != NULL && value != NULL && text[0] != ':' && m->header == NULL) {
        m->header = text;
        m->value = value;
    } else {
        source_no_equal(s, service, &(struct from){header, "match.headers", NULL},
                        "an endpoint matches one header and its whole value; the route is left out");
        m->impossible = true;
    }
}

static struct route_match match_read(struct source *s, struct emit_target *service, const struct from *from)
{
    static const struct field fields[] = {{"prefix", NULL},
                                          {"path", NULL},
                                          {"path_separated_prefix", NULL},
                                          {"headers", NULL},
                                          {"case_sensitive", "Becalm compares paths with their case"},
                                          {"safe_regex", source_narrows},
                                          {"regex", source_narrows},
                                          {"path_match_policy", source_narrows},
                                          {"connect_matcher", source_narrows},
                                          {"runtime_fraction", source_narrows},
                                          {"query_parameters", source_narrows},
                                          {"cookies", source_narrows},
                                          {"grpc", NOTE "gRPC's calls go to their paths, and others do as well"},
                                          {"tls_context", source_narrows},
                                          {"dynamic_metadata", source_narrows},
                                          {"filter_state", source_narrows},
                                          {NULL, NULL}};
    struct route_match m = {0};
    if (!source_is(s, from, YAML_MAPPING)) {
        m.impossible = from->node != NULL;
        return m;
    }
    m.impossible = source_rest(s, service, from->node, "match", fields);
    const struct from separated = {source_get(from->node, "path_separated_prefix"), "match.path_separated_prefix",
                                   NULL};
    const struct from prefix = {source_get(from->node, "prefix"), "match.prefix", NULL};
    const struct from headers = {source_get(from->node, "headers"), "match.headers", NULL};
    m.path = source_text(s, &(struct from){source_get(from->node, "path"), "match.path", NULL});
    match_begins_with(&m, source_text(s, &prefix));
    if (separated.node != NULL) {
        m.prefix = source_text(s, &separated);
    }
    for (uint32_t i = 0; source_is(s, &headers, YAML_SEQUENCE) && i < headers.node->count; i++) {
        header_match(s, service, headers.node->item[i], &m);
    }
    return m;
}

/* The service that a route leads to; of weighted clusters the heaviest. NULL: none is named. */
static struct emit_target *cluster_of(struct source *s, const struct yaml_node *action)
{
    static const struct field fields[] = {{"clusters", NULL}, {"total_weight", NULL}, {NULL, NULL}};
    const struct from cluster = {source_get(action, "cluster"), "route.cluster", NULL};
    const struct from weighted = {source_get(action, "weighted_clusters"), "route.weighted_clusters", NULL};
    const struct from list = {source_get(weighted.node, "clusters"), "weighted_clusters.clusters", NULL};
    const char *name = source_text(s, &cluster);
    struct share share[SHARES_MAX];
    size_t count = 0;
    if (name != NULL && envoy_is_mesh_own(name)) {
        source_aside(s, NULL, &cluster, "the mesh's own: it calls no service");
        return NULL;
    }
    if (name != NULL) {
        return emit_service(s->emit, name, source_where(s, &cluster));
    }
    source_rest(s, NULL, weighted.node, "route.weighted_clusters", fields);
    for (uint32_t i = 0; source_is(s, &list, YAML_SEQUENCE) && i < list.node->count && count < SHARES_MAX; i++) {
        const struct from one = {source_get(list.node->item[i], "name"), "weighted_clusters.clusters.name", NULL};
        const struct from weight = {source_get(list.node->item[i], "weight"), "weighted_clusters.clusters.weight",
                                    NULL};
        const char *text = source_text(s, &one);
        if (text != NULL) {
            share[count] = (struct share){emit_service(s->emit, text, source_where(s, &one)), text, 0};
            (void)source_integer(s, &weight, &share[count].weight);
            count++;
        }
    }
    return shares_pick(s, share, count, &weighted);
}

static void route_read(struct envoy *in, const struct yaml_node *route, const struct virtual_host *vhost)
{
    static const struct field fields[] = {{"name", NULL},
                                          {"match", NULL},
                                          {"route", NULL},
                                          {"redirect", "Becalm sends neither redirects nor fixed answers"},
                                          {"direct_response", "Becalm sends neither redirects nor fixed answers"},
                                          {NULL, NULL}};
    struct source *s = in->s;
    const struct from action = {source_get(route, "route"), "route", NULL};
    const struct from match = {source_get(route, "match"), "match", NULL};
    struct emit_target *service = cluster_of(s, action.node);
    source_rest(s, service, route, "route", fields);
    if (action.node == NULL || !source_is(s, &action, YAML_MAPPING)) {
        return;
    }
    const struct route_match m = match_read(s, service, &match);
    if (service == NULL) {
        const struct yaml_node *named = source_get(action.node, "cluster");
        if (named != NULL) {
            return; /* the note was written already */
        }
        if (source_get(action.node, "cluster_header") != NULL || source_get(action.node, "weighted_clusters") != NULL) {
            source_no_equal(s, NULL, &action, "no cluster is named; the route is left out");
        } else { /* a piece of a file: it holds for every service */
            action_rules(s, emit_defaults(s->emit), action.node, vhost);
        }
        return;
    }
    const struct from from = match.node == NULL ? (struct from){route, "route", NULL} : match;
    const struct yaml_node *wish = source_get(route, "name");
    struct route *out = route_add(s, service, wish != NULL && wish->kind == YAML_SCALAR ? wish->text : NULL, &from);
    for (uint32_t i = 0; vhost->domains.node != NULL && i < vhost->domains.node->count; i++) {
        const struct from domain = {vhost->domains.node->item[i], "domains", NULL};
        const char *text = source_text(s, &domain);
        const char *colon = text == NULL || text[0] == '[' ? NULL : strchr(text, ':');
        bool port = colon != NULL && colon[1] != '\0' && colon[1 + strspn(colon + 1, "0123456789")] == '\0';
        route_add_host(s, out, port ? emit_text(s->emit, "%.*s", (int)(colon - text), text) : text, &domain);
    }
    route_add_match(s, out, &m, &from);
    action_rules(s, route_rules(out), action.node, vhost);
}

static void virtual_host_read(struct envoy *in, const struct yaml_node *node)
{
    static const struct field fields[] = {{"name", NULL},         {"domains", NULL},      {"routes", NULL},
                                          {"retry_policy", NULL}, {"hedge_policy", NULL}, {NULL, NULL}};
    struct source *s = in->s;
    if (!source_is(s, &(struct from){node, "virtual_hosts", NULL}, YAML_MAPPING)) {
        return;
    }
    if (source_get(node, "clusters") == NULL) { /* else a file, whose other keys are reported elsewhere */
        source_rest(s, NULL, node, "virtual_host", fields);
    }
    const struct from routes = {source_get(node, "routes"), "routes", NULL};
    struct virtual_host vhost = {.retry = source_get(node, "retry_policy"), .hedge = source_get(node, "hedge_policy")};
    const struct from domains = {source_get(node, "domains"), "domains", NULL};
    vhost.domains = source_is(s, &domains, YAML_SEQUENCE) ? domains : (struct from){0};
    for (uint32_t i = 0; source_is(s, &routes, YAML_SEQUENCE) && i < routes.node->count; i++) {
        const struct yaml_node *route = routes.node->item[i];
        if (source_is(s, &(struct from){route, "routes", NULL}, YAML_MAPPING)) {
            route_read(in, route, &vhost);
        }
    }
}

/* ---- files ---- */

static bool has_any(const struct yaml_node *node, const char *const *names)
{
    while (*names != NULL && source_get(node, *names) == NULL) {
        names++;
    }
    return *names != NULL;
}

const struct yaml_node *envoy_config_of(const struct yaml_node *node)
{
    const struct yaml_node *typed = source_get(node, "typed_config");
    return typed != NULL ? typed : source_get(node, "config");
}

static void each_read(struct envoy *in, const struct from *list, unsigned depth)
{
    for (uint32_t i = 0; source_is(in->s, list, YAML_SEQUENCE) && i < list->node->count; i++) {
        envoy_anything_read(in, list->node->item[i], depth);
    }
}

static void filters_read(struct envoy *in, const struct yaml_node *chain, unsigned depth)
{
    const struct from filters = {source_get(chain, "filters"), "filters", NULL};
    for (uint32_t i = 0; source_is(in->s, &filters, YAML_SEQUENCE) && i < filters.node->count; i++) {
        const struct yaml_node *filter = filters.node->item[i];
        const struct yaml_node *typed = envoy_config_of(filter);
        const struct from from = {filter, "filters", NULL};
        if (source_get(typed, "route_config") == NULL) {
            source_no_equal(in->s, NULL, &from, "only an HTTP connection manager with its own route_config is read");
        } else {
            envoy_anything_read(in, typed, depth);
        }
    }
}

static void listener_read(struct envoy *in, const struct yaml_node *node, unsigned depth)
{
    const struct from chains = {source_get(node, "filter_chains"), "filter_chains", NULL};
    if (source_get(node, "address") != NULL) {
        envoy_listener_read(in->s, node);
    }
    for (uint32_t i = 0; source_is(in->s, &chains, YAML_SEQUENCE) && i < chains.node->count; i++) {
        filters_read(in, chains.node->item[i], depth);
    }
    if (source_get(node, "default_filter_chain") != NULL) {
        filters_read(in, source_get(node, "default_filter_chain"), depth);
    }
}

void envoy_piece_read(struct source *s, struct emit_target *target, const struct yaml_node *node)
{
    const struct from retry = {source_get(node, "retry_policy"), "retry_policy", NULL};
    const struct from hedge = {source_get(node, "hedge_policy"), "hedge_policy", NULL};
    const struct from timeout = {source_get(node, "timeout"), "timeout", NULL};
    mesh_deadline(s, target, &timeout);
    policies_read(s, target, &retry, &hedge, &timeout);
    envoy_cluster_rules(s, target, node);
}

/* The keys of a file, or of a part of one; each key selects its reader. */
static const struct field any_fields[] = {{"@type", NULL},
                                          {"name", NULL},
                                          {"version_info", NULL},
                                          {"static_resources", NULL},
                                          {"resources", NULL},
                                          {"listeners", NULL},
                                          {"clusters", NULL},
                                          {"virtual_hosts", NULL},
                                          {"routes", NULL},
                                          {"domains", NULL},
                                          {"type_url", NULL},
                                          {"nonce", NULL},
                                          {"validate_clusters", NULL},
                                          {"max_direct_response_body_size_bytes", NULL},
                                          {"route_config", NULL},
                                          {"filter_chains", NULL},
                                          {"default_filter_chain", NULL},
                                          {"retry_policy", NULL},
                                          {"hedge_policy", NULL},
                                          {"timeout", NULL},
                                          {"circuit_breakers", NULL},
                                          {"outlier_detection", NULL},
                                          {"connect_timeout", NULL},
                                          {"stat_prefix", NULL},
                                          {"codec_type", NULL},
                                          {"http2_protocol_options", NULL},
                                          {"http_filters", NOTE "Becalm has no filters"},
                                          {"address", NULL},
                                          {"admin", NOTE "`admin` sets the address of Becalm's own metrics"},
                                          {NULL, NULL}};

void envoy_anything_read(struct envoy *in, const struct yaml_node *node, unsigned depth)
{
    static const char *const containers[] = {
        "static_resources",     "resources", "listeners", "clusters", "virtual_hosts", "route_config", "filter_chains",
        "default_filter_chain", NULL};
    static const char *const lists[] = {"resources", "listeners", NULL};
    static const char *const maps[] = {"static_resources", "route_config", NULL};
    struct source *s = in->s;
    if (depth == 0 || !source_is(s, &(struct from){node, "the document", NULL}, YAML_MAPPING)) {
        return;
    }
    if (envoy_dump_is(node)) {
        envoy_dump_read(in, node, depth - 1);
        return;
    }
    if (source_get(node, "cluster_name") != NULL && source_get(node, "endpoints") != NULL) {
        envoy_assignment_keep(in, node);
        return;
    }
    if (source_get(node, "resource") != NULL && source_get(node, "routes") == NULL) {
        envoy_anything_read(in, source_get(node, "resource"), depth - 1); /* of a delta: its name and version */
        return;
    }
    if (source_get(node, "routes") != NULL) {
        virtual_host_read(in, node);
        if (!has_any(node, containers)) {
            return;
        }
    }
    if (source_get(node, "route") != NULL) {
        route_read(in, node, &(struct virtual_host){0});
        return;
    }
    if (!has_any(node, containers) && source_get(node, "name") != NULL) {
        envoy_cluster_read(in, node);
        return;
    }
    source_rest(s, NULL, node, "", any_fields);
    if (!has_any(node, containers)) {
        envoy_piece_read(s, emit_defaults(s->emit), node); /* the piece applies to every service */
        return;
    }
    for (unsigned i = 0; lists[i] != NULL; i++) {
        each_read(in, &(struct from){source_get(node, lists[i]), lists[i], NULL}, depth - 1);
    }
    for (unsigned i = 0; maps[i] != NULL; i++) {
        if (source_get(node, maps[i]) != NULL) {
            envoy_anything_read(in, source_get(node, maps[i]), depth - 1);
        }
    }
    listener_read(in, node, depth - 1);
    const struct from hosts = {source_get(node, "virtual_hosts"), "virtual_hosts", NULL};
    for (uint32_t i = 0; source_is(s, &hosts, YAML_SEQUENCE) && i < hosts.node->count; i++) {
        virtual_host_read(in, hosts.node->item[i]);
    }
    const struct from clusters = {source_get(node, "clusters"), "clusters", NULL};
    for (uint32_t i = 0; source_is(s, &clusters, YAML_SEQUENCE) && i < clusters.node->count; i++) {
        envoy_cluster_read(in, clusters.node->item[i]);
    }
}

static const struct unwritten unwritten[] = {{"maxRetries", "0", "without a retry_policy Envoy does not retry"},
                                             {"attemptTimeout", "none", "Envoy has none"},
                                             {"deadline", "15s", "Envoy's default"},
                                             {"hedge.enabled", "false", "Envoy's default"},
                                             {NULL, NULL, NULL}};

/* An Envoy message, recognised by its type, or by a key that no other product has. */
static bool envoy_recognises(const struct object *object)
{
    static const char *const keys[] = {
        "static_resources", "virtual_hosts",      "retry_policy",    "route_config",      "circuit_breakers",
        "filter_chains",    "eds_cluster_config", "load_assignment", "outlier_detection", NULL};
    const struct yaml_node *node = object->node;
    const struct yaml_node *resources = source_get(node, "resources");
    const struct yaml_node *first =
        resources != NULL && resources->kind == YAML_SEQUENCE && resources->count > 0 ? resources->item[0] : NULL;
    const struct yaml_node *type = source_get(first != NULL ? first : node, "@type");
    type = type != NULL ? type : source_get(source_get(first, "resource"), "@type");
    if (envoy_filter_is(object)) {
        return true;
    }
    return node->kind == YAML_MAPPING && object->kind[0] == '\0' &&
           (has_any(node, keys) || envoy_dump_is(node) ||
            (source_get(node, "cluster_name") != NULL && source_get(node, "endpoints") != NULL) ||
            (source_get(node, "routes") != NULL && source_get(node, "clusters") != NULL) ||
            (type != NULL && type->kind == YAML_SCALAR && strstr(type->text, "/envoy.") != NULL));
}

static bool is_list_key(const char *key)
{
    static const char *const keys[] = {"listeners",
                                       "clusters",
                                       "resources",
                                       "filter_chains",
                                       "filters",
                                       "virtual_hosts",
                                       "domains",
                                       "routes",
                                       "headers",
                                       "endpoints",
                                       "lb_endpoints",
                                       "hosts",
                                       "thresholds",
                                       "tls_certificates",
                                       "retriable_status_codes",
                                       "alpn_protocols",
                                       "server_names",
                                       "health_checks",
                                       "retry_host_predicate",
                                       NULL};
    unsigned i = 0;
    while (keys[i] != NULL && !source_same(keys[i], key)) {
        i++;
    }
    return keys[i] != NULL;
}

/* Envoy takes one item for a list of one, wherever it wants a list. So do we, from here on. */
static void lists_make(struct source *s, const struct yaml_node *node)
{
    for (uint32_t i = 0; node->kind != YAML_SCALAR && i < node->count; i++) {
        struct yaml_node *item = node->item[i];
        lists_make(s, item);
        if (node->kind != YAML_MAPPING || item->kind == YAML_SEQUENCE || yaml_is_null(item) ||
            !is_list_key(node->key[i]->text)) {
            continue;
        }
        struct yaml_node *only = emit_take(s->emit, sizeof *only);
        struct yaml_node **items = emit_take(s->emit, sizeof *items);
        if (only != NULL && items != NULL) {
            *only = *item;
            items[0] = only;
            *item = (struct yaml_node){
                .kind = YAML_SEQUENCE, .line = item->line, .column = item->column, .count = 1, .item = items};
        }
    }
}

static void envoy_read(struct source *s, const struct objects *objects)
{
    struct envoy in = {.s = s};
    mesh_preface(s);
    for (uint32_t i = 0; i < objects->count; i++) {
        s->file = objects->at[i].file;
        if (envoy_filter_is(&objects->at[i])) {
            envoy_filter_read(s, &objects->at[i]);
        } else {
            lists_make(s, objects->at[i].node);
            envoy_anything_read(&in, objects->at[i].node, DEPTH_MAX);
        }
    }
    envoy_assignments_put(&in);
}

const struct dialect dialect_envoy = {.word = "envoy",
                                      .product = "Envoy",
                                      .unwritten = unwritten,
                                      .order = ORDER_FIRST,
                                      .host_decides = true,
                                      .recognises = envoy_recognises,
                                      .read = envoy_read};
