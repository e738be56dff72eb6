/* SPDX-License-Identifier: MIT */
/* Envoy: routes say how requests are retried, clusters how many go there at once and which hosts are left out. A
 * cluster becomes a service and a route to it an endpoint. Whole bootstrap files are read, and any piece of them. */
#include "../value.h"
#include "dialect.h"
#include "mesh.h"
#include "route.h"

#include <string.h>

#define DEPTH_MAX      8u
#define ROUTE_TIMEOUT  (15 * BECALM_S) /* Envoy's, where none is written */
#define SHARES_MAX     64u
#define NUM_RETRIES    1u
#define HOSTS_TOO_MANY "a service has at most 4096 hosts"
#define ONE_DEFINITION "bad hosts are ejected after failures in a row, or by their rate of failures"
#define LOCAL_ORIGIN   "failures to connect count like 5xx"

struct envoy {
    struct source *s;
};

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

/* What Envoy's hedge is made of. */
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
    {"hash_policy", NOTE "of two hosts picked at random the less busy one is used"},
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
                                          {"case_sensitive", "paths are compared as they are"},
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
                                          {"redirect", "Becalm answers nothing itself"},
                                          {"direct_response", "Becalm answers nothing itself"},
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
        route_add_host(s, out, source_text(s, &domain), &domain);
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
    source_rest(s, NULL, node, "virtual_host", fields);
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

/* ---- clusters ---- */

static void thresholds_read(struct source *s, struct emit_target *target, const struct yaml_node *node)
{
    static const struct field fields[] = {
        {"priority", NULL},
        {"max_requests", NULL},
        {"max_pending_requests", NULL},
        {"max_retries", NULL},
        {"retry_budget", NULL},
        {"track_remaining", NULL},
        {"max_connections", NOTE "connections are pooled for all services: pool.maxPerHost"},
        {NULL, NULL}};
    static const struct field budget_fields[] = {
        {"budget_percent", NULL}, {"min_retry_concurrency", NULL}, {"budget_interval", NULL}, {NULL, NULL}};
    const struct from block = {node, "circuit_breakers.thresholds", NULL};
    const struct from priority = {source_get(node, "priority"), "circuit_breakers.thresholds.priority", NULL};
    if (!source_is(s, &block, YAML_MAPPING)) {
        return;
    }
    if (priority.node != NULL && !yaml_is(priority.node, "DEFAULT") && !yaml_is(priority.node, "0")) {
        source_no_equal(s, target, &priority, "calls have no priorities; these thresholds are left out");
        return;
    }
    const struct yaml_node *budget = source_get(node, "retry_budget");
    source_rest(s, target, node, "circuit_breakers.thresholds", fields);
    source_rest(s, target, budget, "retry_budget", budget_fields);
    mesh_limits(
        s, target,
        &(struct mesh_limits){
            .budget = {budget, "retry_budget", NULL},
            .percent = {source_get(source_get(budget, "budget_percent"), "value"), "retry_budget.budget_percent", NULL},
            .minimum = {source_get(budget, "min_retry_concurrency"), "retry_budget.min_retry_concurrency", NULL},
            .interval = {source_get(budget, "budget_interval"), "retry_budget.budget_interval", NULL},
            .retries = {source_get(node, "max_retries"), "thresholds.max_retries", NULL},
            .requests = {source_get(node, "max_requests"), "thresholds.max_requests", NULL},
            .pending = {source_get(node, "max_pending_requests"), "thresholds.max_pending_requests", NULL}});
}

static void breakers_read(struct source *s, struct emit_target *target, const struct from *block)
{
    static const struct field fields[] = {
        {"thresholds", NULL}, {"per_host_thresholds", "limits are those of a whole service"}, {NULL, NULL}};
    if (!source_is(s, block, YAML_MAPPING)) {
        return;
    }
    source_rest(s, target, block->node, "circuit_breakers", fields);
    const struct from list = {source_get(block->node, "thresholds"), "circuit_breakers.thresholds", NULL};
    for (uint32_t i = 0; source_is(s, &list, YAML_SEQUENCE) && i < list.node->count; i++) {
        thresholds_read(s, target, list.node->item[i]);
    }
}

static const struct field outlier_fields[] = {
    {"consecutive_5xx", NULL},
    {"interval", NULL},
    {"base_ejection_time", NULL},
    {"max_ejection_percent", NULL},
    {"enforcing_consecutive_5xx", NULL},
    {"max_ejection_time", NOTE "a host is out for at most 300s"},
    {"max_ejection_time_jitter", NOTE "the time of an ejection has no jitter"},
    {"consecutive_gateway_failure", "every 5xx, failed connect and timeout counts alike"},
    {"enforcing_consecutive_gateway_failure", "every 5xx, failed connect and timeout counts alike"},
    {"split_external_local_origin_errors", LOCAL_ORIGIN},
    {"consecutive_local_origin_failure", LOCAL_ORIGIN},
    {"enforcing_consecutive_local_origin_failure", LOCAL_ORIGIN},
    {"enforcing_local_origin_success_rate", LOCAL_ORIGIN},
    {"enforcing_success_rate", ONE_DEFINITION},
    {"success_rate_minimum_hosts", ONE_DEFINITION},
    {"success_rate_request_volume", ONE_DEFINITION},
    {"success_rate_stdev_factor", ONE_DEFINITION},
    {"failure_percentage_threshold", ONE_DEFINITION},
    {"enforcing_failure_percentage", ONE_DEFINITION},
    {"enforcing_failure_percentage_local_origin", ONE_DEFINITION},
    {"failure_percentage_minimum_hosts", ONE_DEFINITION},
    {"failure_percentage_request_volume", ONE_DEFINITION},
    {"successful_active_health_check_uneject_host", NOTE "there are no active health checks"},
    {NULL, NULL}};

static void outlier_read(struct source *s, struct emit_target *target, const struct from *block)
{
    if (!source_is(s, block, YAML_MAPPING)) {
        return;
    }
    const struct yaml_node *node = block->node;
    const struct from enforcing = {source_get(node, "enforcing_consecutive_5xx"),
                                   "outlier_detection.enforcing_consecutive_5xx", NULL};
    uint64_t chance = 100;
    source_rest(s, target, node, "outlier_detection", outlier_fields);
    if (source_integer(s, &enforcing, &chance) && chance == 0) {
        source_put_word(s, target, "outlier.enabled", "false", &enforcing);
        return;
    }
    if (chance != 100) {
        source_no_equal(s, target, &enforcing, "a bad host is always ejected");
    }
    mesh_outlier(
        s, target,
        &(struct mesh_outlier){
            .block = *block,
            .consecutive = {source_get(node, "consecutive_5xx"), "outlier_detection.consecutive_5xx", NULL},
            .interval = {source_get(node, "interval"), "outlier_detection.interval", NULL},
            .ejection = {source_get(node, "base_ejection_time"), "outlier_detection.base_ejection_time", NULL},
            .percent = {source_get(node, "max_ejection_percent"), "outlier_detection.max_ejection_percent", NULL}});
}

static void address_add(struct source *s, struct emit_target *target, const struct yaml_node *address,
                        struct source_list *list)
{
    const struct yaml_node *socket = source_get(address, "socket_address");
    const struct from host = {source_get(socket, "address"), "socket_address.address", NULL};
    const struct from port = {source_get(socket, "port_value"), "socket_address.port_value", NULL};
    const struct from pipe = {source_get(source_get(address, "pipe"), "path"), "pipe.path", NULL};
    const char *text = source_text(s, pipe.node != NULL ? &pipe : &host);
    uint64_t number = 80;
    if (text == NULL || (port.node != NULL && !source_integer(s, &port, &number))) {
        return;
    }
    if (pipe.node != NULL) {
        text = emit_text(s->emit, "unix:%s", text);
    } else {
        bool v6 = strchr(text, ':') != NULL;
        text = emit_text(s->emit, "%s%s%s:%llu", v6 ? "[" : "", text, v6 ? "]" : "", (unsigned long long)number);
    }
    if (!value_address(text)) {
        source_no_equal(s, target, pipe.node != NULL ? &pipe : &host,
                        emit_text(s->emit, "\"%.64s\" is no address that can be called from here", text));
    } else if (list->count < BECALM_HOSTS_MAX) {
        source_list_add(list, text);
    } else {
        source_no_equal(s, target, &host, HOSTS_TOO_MANY);
    }
}

static void assignment_read(struct source *s, struct emit_target *target, const struct from *block)
{
    static const struct field fields[] = {{"cluster_name", NULL}, {"endpoints", NULL}, {NULL, NULL}};
    static const struct field group_fields[] = {{"lb_endpoints", NULL},
                                                {"priority", NOTE "hosts have no priorities"},
                                                {"locality", NOTE "hosts are picked by load, not by locality"},
                                                {"load_balancing_weight", "hosts have no weights"},
                                                {NULL, NULL}};
    struct source_list list = {.emit = s->emit};
    source_rest(s, target, block->node, "load_assignment", fields);
    const struct from groups = {source_get(block->node, "endpoints"), "load_assignment.endpoints", NULL};
    for (uint32_t i = 0; source_is(s, &groups, YAML_SEQUENCE) && i < groups.node->count; i++) {
        const struct yaml_node *group = groups.node->item[i];
        const struct from hosts = {source_get(group, "lb_endpoints"), "lb_endpoints", NULL};
        source_rest(s, target, group, "load_assignment.endpoints", group_fields);
        for (uint32_t k = 0; source_is(s, &hosts, YAML_SEQUENCE) && k < hosts.node->count; k++) {
            address_add(s, target, source_get(source_get(hosts.node->item[k], "endpoint"), "address"), &list);
        }
    }
    if (list.count > 0) {
        source_put_list(s, target, "hosts", &list, block);
    }
}

static const struct field cluster_fields[] = {
    {"@type", NULL},
    {"name", NULL},
    {"alt_stat_name", NULL},
    {"type", NULL},
    {"connect_timeout", NULL},
    {"circuit_breakers", NULL},
    {"outlier_detection", NULL},
    {"load_assignment", NULL},
    {"lb_policy", NOTE "of two hosts picked at random the less busy one is used"},
    {"health_checks", NOTE "bad hosts are found by their answers: see outlier"},
    {"transport_socket", NOTE "there is no TLS yet"},
    {NULL, NULL}};

static void cluster_rules(struct source *s, struct emit_target *target, const struct yaml_node *node)
{
    const struct from breakers = {source_get(node, "circuit_breakers"), "circuit_breakers", NULL};
    const struct from outlier = {source_get(node, "outlier_detection"), "outlier_detection", NULL};
    source_take_duration(s, target, "connectTimeout",
                         &(struct from){source_get(node, "connect_timeout"), "connect_timeout", NULL});
    if (breakers.node != NULL) {
        breakers_read(s, target, &breakers);
    }
    if (outlier.node != NULL) {
        outlier_read(s, target, &outlier);
    }
}

static void cluster_read(struct source *s, const struct yaml_node *node)
{
    if (!source_is(s, &(struct from){node, "clusters", NULL}, YAML_MAPPING)) {
        return;
    }
    const struct from name = {source_get(node, "name"), "name", NULL};
    const struct from assignment = {source_get(node, "load_assignment"), "load_assignment", NULL};
    const char *text = source_text(s, &name);
    struct emit_target *target =
        text == NULL || text[0] == '\0' ? emit_defaults(s->emit) : emit_service(s->emit, text, source_where(s, &name));
    source_rest(s, target, node, "cluster", cluster_fields);
    cluster_rules(s, target, node);
    if (target != emit_defaults(s->emit) && source_is(s, &assignment, YAML_MAPPING)) {
        assignment_read(s, target, &assignment);
    }
}

/* ---- files ---- */

static void anything_read(struct envoy *in, const struct yaml_node *node, unsigned depth);

static void each_read(struct envoy *in, const struct from *list, unsigned depth)
{
    for (uint32_t i = 0; source_is(in->s, list, YAML_SEQUENCE) && i < list->node->count; i++) {
        anything_read(in, list->node->item[i], depth);
    }
}

static void filters_read(struct envoy *in, const struct yaml_node *chain, unsigned depth)
{
    const struct from filters = {source_get(chain, "filters"), "filters", NULL};
    for (uint32_t i = 0; source_is(in->s, &filters, YAML_SEQUENCE) && i < filters.node->count; i++) {
        const struct yaml_node *filter = filters.node->item[i];
        const struct yaml_node *typed = source_get(filter, "typed_config");
        const struct from from = {filter, "filters", NULL};
        if (source_get(typed, "route_config") == NULL) {
            source_no_equal(in->s, NULL, &from, "only an HTTP connection manager with its own route_config is read");
        } else {
            anything_read(in, typed, depth);
        }
    }
}

static void listener_read(struct envoy *in, const struct yaml_node *node, unsigned depth)
{
    const struct from chains = {source_get(node, "filter_chains"), "filter_chains", NULL};
    for (uint32_t i = 0; source_is(in->s, &chains, YAML_SEQUENCE) && i < chains.node->count; i++) {
        filters_read(in, chains.node->item[i], depth);
    }
    if (source_get(node, "default_filter_chain") != NULL) {
        filters_read(in, source_get(node, "default_filter_chain"), depth);
    }
}

/* A piece of a route or a cluster, without what is around it: it holds for every service. */
static void fragment(struct source *s, const struct yaml_node *node)
{
    struct emit_target *defaults = emit_defaults(s->emit);
    const struct from retry = {source_get(node, "retry_policy"), "retry_policy", NULL};
    const struct from hedge = {source_get(node, "hedge_policy"), "hedge_policy", NULL};
    const struct from timeout = {source_get(node, "timeout"), "timeout", NULL};
    mesh_deadline(s, defaults, &timeout);
    policies_read(s, defaults, &retry, &hedge, &timeout);
    cluster_rules(s, defaults, node);
}

static bool has_any(const struct yaml_node *node, const char *const *names)
{
    while (*names != NULL && source_get(node, *names) == NULL) {
        names++;
    }
    return *names != NULL;
}

/* What a file, or a part of one, may have; each is read by what it is called. */
static const struct field any_fields[] = {{"@type", NULL},
                                          {"name", NULL},
                                          {"version_info", NULL},
                                          {"static_resources", NULL},
                                          {"resources", NULL},
                                          {"listeners", NULL},
                                          {"clusters", NULL},
                                          {"virtual_hosts", NULL},
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
                                          {"http_filters", NOTE "Becalm has no filters"},
                                          {"address", NOTE "listen says where Becalm listens"},
                                          {"admin", NOTE "admin says where Becalm's own metrics are"},
                                          {NULL, NULL}};

static void anything_read(struct envoy *in, const struct yaml_node *node, unsigned depth)
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
    if (source_get(node, "routes") != NULL) {
        virtual_host_read(in, node);
        return;
    }
    if (source_get(node, "route") != NULL) {
        route_read(in, node, &(struct virtual_host){0});
        return;
    }
    if (!has_any(node, containers) && source_get(node, "name") != NULL) {
        cluster_read(s, node);
        return;
    }
    source_rest(s, NULL, node, "", any_fields);
    if (!has_any(node, containers)) {
        fragment(s, node);
        return;
    }
    for (unsigned i = 0; lists[i] != NULL; i++) {
        each_read(in, &(struct from){source_get(node, lists[i]), lists[i], NULL}, depth - 1);
    }
    for (unsigned i = 0; maps[i] != NULL; i++) {
        if (source_get(node, maps[i]) != NULL) {
            anything_read(in, source_get(node, maps[i]), depth - 1);
        }
    }
    listener_read(in, node, depth - 1);
    const struct from hosts = {source_get(node, "virtual_hosts"), "virtual_hosts", NULL};
    for (uint32_t i = 0; source_is(s, &hosts, YAML_SEQUENCE) && i < hosts.node->count; i++) {
        virtual_host_read(in, hosts.node->item[i]);
    }
    const struct from clusters = {source_get(node, "clusters"), "clusters", NULL};
    for (uint32_t i = 0; source_is(s, &clusters, YAML_SEQUENCE) && i < clusters.node->count; i++) {
        cluster_read(s, clusters.node->item[i]);
    }
}

static const struct unwritten unwritten[] = {{"maxRetries", "0", "without a retry_policy Envoy does not retry"},
                                             {"attemptTimeout", "none", "Envoy has none"},
                                             {"deadline", "15s", "Envoy's default"},
                                             {"hedge.enabled", "false", "Envoy's default"},
                                             {NULL, NULL, NULL}};

static bool envoy_recognises(const struct object *object)
{
    static const char *const keys[] = {"static_resources", "virtual_hosts",    "retry_policy",
                                       "route_config",     "circuit_breakers", NULL};
    return object->node->kind == YAML_MAPPING && object->kind[0] == '\0' && has_any(object->node, keys);
}

static void envoy_read(struct source *s, const struct objects *objects)
{
    struct envoy in = {.s = s};
    mesh_preface(s);
    for (uint32_t i = 0; i < objects->count; i++) {
        s->file = objects->at[i].file;
        anything_read(&in, objects->at[i].node, DEPTH_MAX);
    }
}

const struct dialect dialect_envoy = {.word = "envoy",
                                      .product = "Envoy",
                                      .unwritten = unwritten,
                                      .order = ORDER_FIRST,
                                      .recognises = envoy_recognises,
                                      .read = envoy_read};
