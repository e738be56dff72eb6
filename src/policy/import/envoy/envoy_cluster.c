/* SPDX-License-Identifier: MIT */
#include "envoy.h"

#include "policy/import/mesh.h"
#include "policy/value.h"

#include <string.h>

#define HOSTS_TOO_MANY "a service has at most 4096 hosts"
#define ONE_DEFINITION "bad hosts are ejected after failures in a row, or by their rate of failures"
#define LOCAL_ORIGIN   "failures to connect count like 5xx"

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
    {"consecutive_gateway_failure", NULL},
    {"enforcing_consecutive_gateway_failure", NULL},
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

/* How often, of a hundred times, a host that failed so is ejected. Between none and all it is all here. */
static uint64_t enforcing_read(struct source *s, struct emit_target *target, const struct from *from,
                               uint64_t unwritten)
{
    uint64_t chance = unwritten;
    if (source_integer(s, from, &chance) && chance != 0 && chance != 100) {
        source_no_equal(s, target, from, "a bad host is always ejected");
    }
    return chance;
}

static void outlier_read(struct source *s, struct emit_target *target, const struct from *block)
{
    if (!source_is(s, block, YAML_MAPPING)) {
        return;
    }
    const struct yaml_node *node = block->node;
    const struct yaml_node *gateway = source_get(node, "consecutive_gateway_failure");
    const struct yaml_node five = {
        .kind = YAML_SCALAR, .line = node->line, .column = node->column, .text = "5", .length = 1};
    const struct from enforcing = {source_get(node, "enforcing_consecutive_5xx"),
                                   "outlier_detection.enforcing_consecutive_5xx", NULL};
    const struct from enforcing_gateway = {source_get(node, "enforcing_consecutive_gateway_failure"),
                                           "outlier_detection.enforcing_consecutive_gateway_failure", NULL};
    struct mesh_outlier o = {
        .block = *block,
        .consecutive = {source_get(node, "consecutive_5xx"), "outlier_detection.consecutive_5xx", NULL},
        .interval = {source_get(node, "interval"), "outlier_detection.interval", NULL},
        .ejection = {source_get(node, "base_ejection_time"), "outlier_detection.base_ejection_time", NULL},
        .percent = {source_get(node, "max_ejection_percent"), "outlier_detection.max_ejection_percent", NULL}};
    source_rest(s, target, node, "outlier_detection", outlier_fields);
    if (enforcing_read(s, target, &enforcing, 100) == 0) {
        o.consecutive = enforcing; /* which is 0 */
    }
    if (enforcing_read(s, target, &enforcing_gateway, 0) > 0) {
        o.gateway = (struct from){gateway != NULL ? gateway : &five, "outlier_detection.consecutive_gateway_failure",
                                  gateway != NULL ? NULL : "Envoy's default"};
    }
    mesh_outlier(s, target, &o);
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
    if (!value_address_of_host(text)) {
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

/* ---- clusters ---- */

static const struct field cluster_fields[] = {
    {"@type", NULL},
    {"name", NULL},
    {"alt_stat_name", NULL},
    {"type", NULL},
    {"connect_timeout", NULL},
    {"circuit_breakers", NULL},
    {"outlier_detection", NULL},
    {"load_assignment", NULL},
    {"transport_socket", NULL},
    {"tls_context", NULL},
    {"eds_cluster_config", NULL},
    {"dns_lookup_family", NULL},
    {"metadata", NULL},
    {"filters", NULL},
    {"typed_extension_protocol_options", NULL},
    {"http2_protocol_options", NULL},
    {"transport_socket_matches", NOTE "the TLS of a mesh is not spoken"},
    {"lb_policy", NOTE "Becalm picks two hosts at random and uses the less busy one"},
    {"health_checks", NOTE "bad hosts are found by their answers: see outlier"},
    {NULL, NULL}};

static const struct yaml_node *http_options_of(const struct yaml_node *cluster)
{
    return source_get(source_get(cluster, "typed_extension_protocol_options"),
                      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions");
}

/* HTTP/2 where the cluster says so itself, in the old place or in the new one. */
static void protocol_read(struct source *s, struct emit_target *target, const struct yaml_node *node)
{
    const struct yaml_node *options = http_options_of(node);
    const struct yaml_node *explicit = source_get(options, "explicit_http_config");
    const struct from chosen = {source_get(source_get(options, "auto_config"), "http2_protocol_options"),
                                "auto_config.http2_protocol_options", NULL};
    const struct from old = {source_get(node, "http2_protocol_options"), "http2_protocol_options", NULL};
    const struct from own = {source_get(explicit, "http2_protocol_options"),
                             "explicit_http_config.http2_protocol_options", NULL};
    const struct from third = {source_get(explicit, "http3_protocol_options"),
                               "explicit_http_config.http3_protocol_options", NULL};
    const struct from client = {source_get(options, "use_downstream_protocol_config"), "use_downstream_protocol_config",
                                NULL};
    if (own.node != NULL || (old.node != NULL && explicit == NULL)) {
        source_put_h2(s, target, own.node != NULL ? &own : &old);
    }
    envoy_http2_read(s, own.node != NULL ? &own : chosen.node != NULL ? &chosen : &old, "pool.streams");
    if (third.node != NULL) {
        source_no_equal(s, target, &third, "HTTP/3 is not spoken");
    }
    if (client.node != NULL) {
        source_no_equal(s, target, &client, "calls to hosts do not follow the client's protocol: write `protocol`");
    }
}

/* With TLS, Becalm would let hosts choose the protocol (ALPN); Envoy does so only if it is configured. */
static void h1_put(struct source *s, struct emit_target *target, const struct yaml_node *node)
{
    const struct yaml_node *options = http_options_of(node);
    bool asks =
        source_get(options, "auto_config") != NULL || source_get(options, "use_downstream_protocol_config") != NULL;
    const struct from from = {node, "cluster", "without http2_protocol_options Envoy speaks HTTP/1.1"};
    if (!asks && emit_get(target, "protocol") == NULL &&
        (emit_get(target, "tls.verify") != NULL || emit_get(target, "tls.ca") != NULL)) {
        source_put_word(s, target, "protocol", "h1", &from);
    }
}

void envoy_cluster_rules(struct source *s, struct emit_target *target, const struct yaml_node *node)
{
    const struct from breakers = {source_get(node, "circuit_breakers"), "circuit_breakers", NULL};
    const struct from outlier = {source_get(node, "outlier_detection"), "outlier_detection", NULL};
    const struct yaml_node *written = source_get(node, "transport_socket");
    const struct yaml_node *older = source_get(node, "tls_context"); /* as Envoy's second version wrote it */
    const struct from socket = {written != NULL ? written : older, written != NULL ? "transport_socket" : "tls_context",
                                NULL};
    source_take_duration(s, target, "connectTimeout",
                         &(struct from){source_get(node, "connect_timeout"), "connect_timeout", NULL});
    if (breakers.node != NULL) {
        breakers_read(s, target, &breakers);
    }
    if (outlier.node != NULL) {
        outlier_read(s, target, &outlier);
    }
    if (target != emit_defaults(s->emit)) {
        if (socket.node != NULL) {
            envoy_host_tls_read(s, target, &socket);
        }
        protocol_read(s, target, node);
    } else if (socket.node != NULL) {
        source_no_equal(s, target, &socket, SOURCE_TLS_OF_NONE);
    }
}

bool envoy_is_mesh_own(const char *name)
{
    return strncmp(name, "inbound|", 8) == 0 || strcmp(name, "PassthroughCluster") == 0 ||
           strcmp(name, "InboundPassthroughCluster") == 0 || strcmp(name, "BlackHoleCluster") == 0;
}

/* outbound|9080|v1|host is how Istio calls the cluster of a host and its port. */
static const char *mesh_address(struct source *s, const char *name)
{
    const char *port = strncmp(name, "outbound", 8) == 0 ? strchr(name, '|') : NULL;
    const char *host = port == NULL ? NULL : strrchr(name, '|');
    if (host == NULL || host == port) {
        return NULL;
    }
    const char *address = emit_text(s->emit, "%s:%.*s", host + 1, (int)strcspn(port + 1, "|"), port + 1);
    return value_address_of_host(address) ? address : NULL;
}

/* Where the hosts of a cluster are found that does not name them. */
static void eds_keep(struct envoy *in, struct emit_target *target, const struct yaml_node *node, const char *name)
{
    const struct yaml_node *other = source_get(source_get(node, "eds_cluster_config"), "service_name");
    struct envoy_eds *eds = emit_take(in->s->emit, sizeof *eds);
    if (eds != NULL) {
        *eds = (struct envoy_eds){in->eds, other != NULL && other->kind == YAML_SCALAR ? other->text : name, target};
        in->eds = eds;
    }
}

void envoy_cluster_read(struct envoy *in, const struct yaml_node *node)
{
    struct source *s = in->s;
    if (!source_is(s, &(struct from){node, "clusters", NULL}, YAML_MAPPING)) {
        return;
    }
    const struct from name = {source_get(node, "name"), "name", NULL};
    const struct from assignment = {source_get(node, "load_assignment"), "load_assignment", NULL};
    const char *text = source_text(s, &name);
    bool named = text != NULL && text[0] != '\0';
    if (named && envoy_is_mesh_own(text)) {
        return;
    }
    struct emit_target *target = named ? emit_service(s->emit, text, source_where(s, &name)) : emit_defaults(s->emit);
    source_rest(s, target, node, "cluster", cluster_fields);
    envoy_cluster_rules(s, target, node);
    if (named) {
        h1_put(s, target, node);
    }
    if (named && assignment.node != NULL && source_is(s, &assignment, YAML_MAPPING)) {
        assignment_read(s, target, &assignment);
    } else if (named) {
        eds_keep(in, target, node, text);
    }
}

void envoy_assignment_keep(struct envoy *in, const struct yaml_node *node)
{
    struct envoy_assignment *kept = emit_take(in->s->emit, sizeof *kept);
    if (kept != NULL) {
        *kept = (struct envoy_assignment){in->assignments, node, in->s->file};
        in->assignments = kept;
    }
}

void envoy_assignments_put(struct envoy *in)
{
    struct source *s = in->s;
    for (const struct envoy_assignment *a = in->assignments; a != NULL; a = a->next) {
        const struct from name = {source_get(a->node, "cluster_name"), "cluster_name", NULL};
        bool found = false;
        s->file = a->file;
        const char *text = source_text(s, &name);
        for (const struct envoy_eds *eds = in->eds; text != NULL && eds != NULL; eds = eds->next) {
            if (strcmp(eds->name, text) == 0) {
                assignment_read(s, eds->service, &(struct from){a->node, "endpoints", NULL});
                found = true;
            }
        }
        if (!found && text != NULL && !envoy_is_mesh_own(text)) {
            assignment_read(s, emit_service(s->emit, text, source_where(s, &name)),
                            &(struct from){a->node, "endpoints", NULL});
        }
    }
    for (const struct envoy_eds *eds = in->eds; eds != NULL; eds = eds->next) {
        const char *address = mesh_address(s, eds->name);
        if (address != NULL && emit_get(eds->service, "hosts") == NULL) {
            emit_put(eds->service, "hosts", emit_text(s->emit, "[%s]", emit_quote(s->emit, address)),
                     "by the cluster's name: its addresses are not in the files");
        }
    }
}
