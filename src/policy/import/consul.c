/* SPDX-License-Identifier: MIT */
/* Consul's configuration entries, as HCL, JSON or objects of Kubernetes: service-router, -splitter, -resolver and
 * -defaults. A service is found by its name; requests that the router of a name does not match go to the service
 * itself. The proxies are Envoys, so that times and conditions are Envoy's. */
#include "dialect.h"
#include "hcl_parse.h"
#include "mesh.h"
#include "route.h"

#include <string.h>

#define CHAIN_MAX       8u
#define SHARES_MAX      64u
#define CONNECT_TIMEOUT "5s"
#define ROUTE_TIMEOUT   "15s"
#define NUM_RETRIES     1u
#define PASSED_ON       "requests are passed on unchanged"

enum entry_kind { ENTRY_ROUTER, ENTRY_SPLITTER, ENTRY_RESOLVER, ENTRY_DEFAULTS, ENTRY_NONE };

struct consul {
    struct source *s;
    const struct objects *objects;
};

static const struct {
    const char *word;   /* in HCL and JSON */
    const char *object; /* in Kubernetes */
} kind_names[] = {[ENTRY_ROUTER] = {"service-router", "ServiceRouter"},
                  [ENTRY_SPLITTER] = {"service-splitter", "ServiceSplitter"},
                  [ENTRY_RESOLVER] = {"service-resolver", "ServiceResolver"},
                  [ENTRY_DEFAULTS] = {"service-defaults", "ServiceDefaults"}};

static enum entry_kind kind_of(const struct object *object)
{
    for (int i = 0; i < ENTRY_NONE; i++) {
        if (strcmp(object->kind, kind_names[i].word) == 0 ||
            (strcmp(object->kind, kind_names[i].object) == 0 && strcmp(object->group, "consul.hashicorp.com") == 0)) {
            return (enum entry_kind)i;
        }
    }
    return ENTRY_NONE;
}

/* The fields of an entry: its spec, or the entry itself. */
static const struct yaml_node *spec_of(const struct object *object)
{
    const struct yaml_node *spec = object->group[0] == '\0' ? NULL : source_get(object->node, "spec");
    return object->group[0] == '\0' ? object->node : spec;
}

static const char *name_of(const struct object *object)
{
    const struct yaml_node *name = object->group[0] == '\0' ? source_get(object->node, "Name")
                                                            : source_get(source_get(object->node, "metadata"), "name");
    return name != NULL && name->kind == YAML_SCALAR ? name->text : "";
}

static const struct object *entry_find(const struct consul *in, enum entry_kind kind, const char *name)
{
    for (uint32_t i = 0; i < in->objects->count; i++) {
        if (kind_of(&in->objects->at[i]) == kind && strcmp(name_of(&in->objects->at[i]), name) == 0) {
            return &in->objects->at[i];
        }
    }
    return NULL;
}

/* ---- where a name leads: splitter, then resolver ---- */

struct end {
    struct emit_target *service;
    const struct yaml_node *resolver; /* NULL: none is written */
    const char *file;                 /* of it */
};

static struct end end_of(struct consul *in, const struct from *from, const char *name, unsigned depth);

static struct end split(struct consul *in, const struct object *splitter, const struct from *from, unsigned depth)
{
    struct source *s = in->s;
    const struct from list = {source_get(spec_of(splitter), "Splits"), "Splits", NULL};
    struct share share[SHARES_MAX];
    struct end ends[SHARES_MAX];
    size_t count = 0;
    s->file = splitter->file;
    for (uint32_t i = 0; source_is(s, &list, YAML_SEQUENCE) && i < list.node->count && count < SHARES_MAX; i++) {
        const struct yaml_node *item = list.node->item[i];
        const struct from weight = {source_get(item, "Weight"), "Splits.Weight", NULL};
        const struct yaml_node *service = source_get(item, "Service");
        const struct yaml_node *subset = source_get(item, "ServiceSubset");
        const char *name = service != NULL && service->kind == YAML_SCALAR ? service->text : name_of(splitter);
        uint64_t hundredths = 0;
        bool same = strcmp(name, name_of(splitter)) == 0;
        if (!source_decimal(s, &weight, 100, &hundredths)) {
            continue;
        }
        ends[count] = same ? (struct end){emit_service(s->emit, name, source_where(s, &list)), NULL, s->file}
                           : end_of(in, from, name, depth - 1);
        s->file = splitter->file;
        const char *shown = subset != NULL && subset->kind == YAML_SCALAR
                                ? emit_text(s->emit, "%s (%s)", name, subset->text)
                                : emit_text(s->emit, "%s", name);
        share[count] = (struct share){ends[count].service, shown, hundredths};
        count += share[count].service != NULL;
    }
    struct emit_target *most = shares_pick(s, share, count, &list);
    for (size_t i = 0; i < count; i++) {
        if (ends[i].service == most) {
            return ends[i];
        }
    }
    return (struct end){0};
}

static void resolver_tell(struct source *s, struct emit_target *service, const struct yaml_node *spec)
{
    static const struct field fields[] = {
        {"Kind", NULL},
        {"Name", NULL},
        {"ConnectTimeout", NULL},
        {"RequestTimeout", NULL},
        {"Redirect", NULL},
        {"DefaultSubset", "all hosts of a service are called"},
        {"Subsets", NOTE "all hosts of a service are called"},
        {"Failover", "a service has its own hosts and no others"},
        {"LoadBalancer", NOTE "Becalm picks two hosts at random and uses the less busy one"},
        {"Meta", NULL},
        {"Namespace", NULL},
        {"Partition", NULL},
        {NULL, NULL}};
    source_rest(s, service, spec, "", fields);
}

static struct end end_of(struct consul *in, const struct from *from, const char *name, unsigned depth)
{
    struct source *s = in->s;
    const struct object *splitter = depth == 0 ? NULL : entry_find(in, ENTRY_SPLITTER, name);
    const struct object *resolver = depth == 0 ? NULL : entry_find(in, ENTRY_RESOLVER, name);
    const char *file = s->file;
    if (splitter != NULL) {
        struct end end = split(in, splitter, from, depth);
        s->file = file;
        return end;
    }
    const struct yaml_node *spec = resolver == NULL ? NULL : spec_of(resolver);
    const struct yaml_node *other = source_get(source_get(spec, "Redirect"), "Service");
    if (other != NULL && other->kind == YAML_SCALAR && strcmp(other->text, name) != 0) {
        return end_of(in, from, other->text, depth - 1);
    }
    struct emit_target *service = emit_service(s->emit, name, source_where(s, from));
    if (resolver != NULL) {
        s->file = resolver->file;
        resolver_tell(s, service, spec);
        s->file = file;
    }
    return (struct end){service, spec, resolver == NULL ? file : resolver->file};
}

/* ---- how it is called ---- */

/* A timeout that a negative number switches off; 0 is Envoy's own. */
static void whole_time(struct source *s, struct emit_target *rules, const struct from *from)
{
    const char *text = from->node == NULL ? NULL : source_text(s, from);
    becalm_ns time = 0;
    if (text != NULL && text[0] == '-') {
        source_put_word(s, rules, "deadline", "none", from);
    } else if (text != NULL && source_duration(s, from, &time) && time > 0) {
        source_put_duration(s, rules, "deadline", time, from);
    }
}

static void retries_put(struct source *s, struct emit_target *rules, const struct from *destination)
{
    const struct yaml_node *node = destination->node;
    const struct from count = {source_get(node, "NumRetries"), "Destination.NumRetries", NULL};
    const struct from connect = {source_get(node, "RetryOnConnectFailure"), "Destination.RetryOnConnectFailure", NULL};
    const struct from codes = {source_get(node, "RetryOnStatusCodes"), "Destination.RetryOnStatusCodes", NULL};
    const struct from on = {source_get(node, "RetryOn"), "Destination.RetryOn", NULL};
    uint64_t retries = 0;
    bool refused = false;
    const char *words = "";
    bool counted = source_integer(s, &count, &retries) && retries > 0;
    for (uint32_t i = 0; on.node != NULL && source_is(s, &on, YAML_SEQUENCE) && i < on.node->count && i < 32; i++) {
        const char *word = source_text(s, &(struct from){on.node->item[i], on.path, NULL});
        words = word == NULL ? words : emit_text(s->emit, "%s%s,", words, word);
    }
    if (source_boolean(s, &connect, &refused) && refused) {
        words = emit_text(s->emit, "%sconnect-failure,", words);
    }
    if (!counted && words[0] == '\0' && codes.node == NULL) {
        return;
    }
    const struct from unwritten = {node, "Destination", "Envoy's default"};
    source_put_integer(s, rules, "maxRetries", counted ? retries : NUM_RETRIES, counted ? &count : &unwritten);
    struct yaml_node text = {.kind = YAML_SCALAR, .line = node->line, .column = node->column, .text = words};
    const struct from conditions = {&text, "Destination.RetryOn", NULL};
    mesh_retry_on(s, rules, &conditions, &codes, destination, "");
    mesh_backoff(s, rules, &(struct from){NULL, "", NULL}, &(struct from){NULL, "", NULL}, destination);
}

static void rules_put(struct source *s, struct emit_target *rules, const struct from *destination,
                      const struct end *end)
{
    const char *file = s->file;
    if (destination->node != NULL) {
        whole_time(s, rules,
                   &(struct from){source_get(destination->node, "RequestTimeout"), "Destination.RequestTimeout", NULL});
        retries_put(s, rules, destination);
    }
    s->file = end->file;
    const struct from connect = {source_get(end->resolver, "ConnectTimeout"), "ConnectTimeout", NULL};
    const struct from whole = {source_get(end->resolver, "RequestTimeout"), "RequestTimeout", NULL};
    source_take_duration(s, rules, "connectTimeout", &connect);
    if (emit_get(rules, "deadline") == NULL) {
        whole_time(s, rules, &whole);
    }
    s->file = file;
}

/* ---- routers ---- */

static bool header_read(struct source *s, const struct yaml_node *header, struct route_match *m)
{
    const struct yaml_node *name = source_get(header, "Name");
    const struct yaml_node *exact = source_get(header, "Exact");
    if (header->kind != YAML_MAPPING || header->count != 2 || name == NULL || name->kind != YAML_SCALAR ||
        exact == NULL || exact->kind != YAML_SCALAR || m->header != NULL) {
        source_no_equal(s, NULL, &(struct from){header, "Match.HTTP.Header", NULL},
                        "an endpoint matches one header and its whole value; the route is left out");
        return false;
    }
    m->header = name->text;
    m->value = exact->text;
    return true;
}

static void match_add(struct source *s, struct route *route, const struct yaml_node *match, const struct from *from)
{
    static const struct field fields[] = {{"PathExact", NULL},
                                          {"PathPrefix", NULL},
                                          {"Methods", NULL},
                                          {"Header", NULL},
                                          {"PathRegex", source_narrows},
                                          {"CaseInsensitive", "Becalm compares paths with their case"},
                                          {"QueryParam", source_narrows},
                                          {NULL, NULL}};
    const struct yaml_node *http = source_get(match, "HTTP");
    const struct from methods = {source_get(http, "Methods"), "Match.HTTP.Methods", NULL};
    const struct from headers = {source_get(http, "Header"), "Match.HTTP.Header", NULL};
    struct route_match m = {0};
    m.impossible = source_rest(s, NULL, http, "Match.HTTP", fields);
    m.path = source_text(s, &(struct from){source_get(http, "PathExact"), "Match.HTTP.PathExact", NULL});
    match_begins_with(&m,
                      source_text(s, &(struct from){source_get(http, "PathPrefix"), "Match.HTTP.PathPrefix", NULL}));
    for (uint32_t i = 0; headers.node != NULL && source_is(s, &headers, YAML_SEQUENCE) && i < headers.node->count;
         i++) {
        m.impossible = !header_read(s, headers.node->item[i], &m) || m.impossible;
    }
    for (uint32_t i = 0; methods.node != NULL && source_is(s, &methods, YAML_SEQUENCE) && i < methods.node->count;
         i++) {
        m.method = source_text(s, &(struct from){methods.node->item[i], methods.path, NULL});
        route_add_match(s, route, &m, from);
    }
    if (m.method == NULL) {
        route_add_match(s, route, &m, from);
    }
}

static void route_read(struct consul *in, const char *name, const struct yaml_node *item)
{
    static const struct field fields[] = {{"Service", NULL},
                                          {"RequestTimeout", NULL},
                                          {"NumRetries", NULL},
                                          {"RetryOnConnectFailure", NULL},
                                          {"RetryOn", NULL},
                                          {"RetryOnStatusCodes", NULL},
                                          {"ServiceSubset", "all hosts of a service are called"},
                                          {"Namespace", NOTE "a service is known by its name alone"},
                                          {"Partition", NOTE "a service is known by its name alone"},
                                          {"PrefixRewrite", PASSED_ON},
                                          {"RequestHeaders", NOTE PASSED_ON},
                                          {"ResponseHeaders", NOTE "answers are passed on unchanged"},
                                          {"IdleTimeout", NOTE "idleTimeout holds for all services"},
                                          {NULL, NULL}};
    struct source *s = in->s;
    const struct from from = {item, "Routes", NULL};
    if (!source_is(s, &from, YAML_MAPPING)) {
        return;
    }
    const struct from destination = {source_get(item, "Destination"), "Destination", NULL};
    const struct yaml_node *other = source_get(destination.node, "Service");
    const struct from target = {other != NULL ? other : item, "Destination.Service", NULL};
    const struct end end =
        end_of(in, &target, other != NULL && other->kind == YAML_SCALAR ? other->text : name, CHAIN_MAX);
    if (end.service == NULL) {
        return;
    }
    source_rest(s, end.service, destination.node, "Destination", fields);
    struct route *route = route_add(s, end.service, NULL, &from);
    route_add_host(s, route, name, &from);
    match_add(s, route, source_get(item, "Match"), &from);
    rules_put(s, route_rules(route), &destination, &end);
}

/* Everything that is known about one name. */
static void name_read(struct consul *in, const struct object *object)
{
    struct source *s = in->s;
    const char *name = name_of(object);
    const struct object *router = entry_find(in, ENTRY_ROUTER, name);
    const struct from from = {object->node, "Name", NULL};
    const struct from nothing = {NULL, "Destination", NULL};
    if (router != NULL) {
        const struct from routes = {source_get(spec_of(router), "Routes"), "Routes", NULL};
        s->file = router->file;
        if (routes.node != NULL && routes.node->kind == YAML_MAPPING) {
            route_read(in, name, routes.node); /* one block of HCL */
        }
        for (uint32_t i = 0; routes.node != NULL && routes.node->kind == YAML_SEQUENCE && i < routes.node->count; i++) {
            route_read(in, name, routes.node->item[i]);
        }
    }
    s->file = object->file;
    const struct end end = end_of(in, &from, name, CHAIN_MAX);
    if (end.service != NULL) {
        struct route *route = route_add(s, end.service, NULL, &from);
        route_add_host(s, route, name, &from);
        rules_put(s, route_rules(route), &nothing, &end);
    }
}

/* ---- service-defaults ---- */

static void upstream_put(struct source *s, struct emit_target *target, const struct from *block)
{
    static const struct field fields[] = {{"Name", NULL},
                                          {"ConnectTimeoutMs", NULL},
                                          {"Limits", NULL},
                                          {"PassiveHealthCheck", NULL},
                                          {"Protocol", NULL},
                                          {"MeshGateway", NULL},
                                          {"Namespace", NULL},
                                          {"Partition", NULL},
                                          {"EnvoyClusterJSON", "settings for Envoy outside of Consul are not read"},
                                          {"EnvoyListenerJSON", "settings for Envoy outside of Consul are not read"},
                                          {"BalanceOutboundConnections", NULL},
                                          {NULL, NULL}};
    const struct yaml_node *limits = source_get(block->node, "Limits");
    const struct from check = {source_get(block->node, "PassiveHealthCheck"), "PassiveHealthCheck", NULL};
    const struct from connect = {source_get(block->node, "ConnectTimeoutMs"), "ConnectTimeoutMs", NULL};
    const struct from enforcing = {source_get(check.node, "EnforcingConsecutive5xx"),
                                   "PassiveHealthCheck.EnforcingConsecutive5xx", NULL};
    uint64_t millis;
    uint64_t chance = 100;
    source_rest(s, target, block->node, "UpstreamConfig", fields);
    if (source_integer(s, &connect, &millis) && millis < BECALM_NEVER / 2 / BECALM_MS) {
        source_put_duration(s, target, "connectTimeout", millis * BECALM_MS, &connect);
    }
    mesh_limits(s, target,
                &(struct mesh_limits){
                    .requests = {source_get(limits, "MaxConcurrentRequests"), "Limits.MaxConcurrentRequests", NULL},
                    .pending = {source_get(limits, "MaxPendingRequests"), "Limits.MaxPendingRequests", NULL}});
    if (source_get(limits, "MaxConnections") != NULL) {
        source_aside(s, target, &(struct from){source_get(limits, "MaxConnections"), "Limits.MaxConnections", NULL},
                     "pool.maxPerHost holds for all services");
    }
    if (check.node == NULL || !source_is(s, &check, YAML_MAPPING)) {
        return;
    }
    if (source_integer(s, &enforcing, &chance) && chance == 0) {
        source_put_word(s, target, "outlier.enabled", "false", &enforcing);
        return;
    }
    mesh_outlier(
        s, target,
        &(struct mesh_outlier){
            .block = check,
            .consecutive = {source_get(check.node, "MaxFailures"), "PassiveHealthCheck.MaxFailures", NULL},
            .interval = {source_get(check.node, "Interval"), "PassiveHealthCheck.Interval", NULL},
            .ejection = {source_get(check.node, "BaseEjectionTime"), "PassiveHealthCheck.BaseEjectionTime", NULL},
            .percent = {source_get(check.node, "MaxEjectionPercent"), "PassiveHealthCheck.MaxEjectionPercent", NULL}});
}

/* service-defaults set how a service calls its upstreams: all of them, or one by its name. */
static void defaults_read(struct consul *in, const struct object *object)
{
    struct source *s = in->s;
    const struct yaml_node *config = source_get(spec_of(object), "UpstreamConfig");
    const struct from all = {source_get(config, "Defaults"), "UpstreamConfig.Defaults", NULL};
    const struct from overrides = {source_get(config, "Overrides"), "UpstreamConfig.Overrides", NULL};
    if (all.node != NULL && source_is(s, &all, YAML_MAPPING)) {
        upstream_put(s, emit_defaults(s->emit), &all);
    }
    for (uint32_t i = 0; overrides.node != NULL && source_is(s, &overrides, YAML_SEQUENCE) && i < overrides.node->count;
         i++) {
        const struct from one = {overrides.node->item[i], overrides.path, NULL};
        const struct yaml_node *name = source_get(one.node, "Name");
        if (name != NULL && name->kind == YAML_SCALAR) {
            upstream_put(s, emit_service(s->emit, name->text, source_where(s, &one)), &one);
        }
    }
}

/* ---- the dialect ---- */

/* The first entry that is about the name, so that each name is read once. */
static bool is_first(const struct consul *in, uint32_t index)
{
    const char *name = name_of(&in->objects->at[index]);
    for (uint32_t i = 0; i < index; i++) {
        if (kind_of(&in->objects->at[i]) < ENTRY_DEFAULTS && strcmp(name_of(&in->objects->at[i]), name) == 0) {
            return false;
        }
    }
    return name[0] != '\0';
}

static void consul_read(struct source *s, const struct objects *objects)
{
    struct consul in = {s, objects};
    mesh_preface(s);
    emit_note(s->emit, NULL, "The configuration has no addresses of the services: add `hosts`.");
    for (uint32_t i = 0; i < objects->count; i++) {
        s->file = objects->at[i].file;
        switch (kind_of(&objects->at[i])) {
        case ENTRY_ROUTER:
        case ENTRY_SPLITTER:
        case ENTRY_RESOLVER:
            if (is_first(&in, i)) {
                name_read(&in, &objects->at[i]);
            }
            break;
        case ENTRY_DEFAULTS:
            defaults_read(&in, &objects->at[i]);
            break;
        case ENTRY_NONE:
            source_aside(s, NULL, &(struct from){objects->at[i].node, "the entry", NULL},
                         "only service-router, -splitter, -resolver and -defaults are read");
            break;
        }
    }
}

static bool consul_recognises(const struct object *object)
{
    return kind_of(object) != ENTRY_NONE;
}

/* HCL: a line of its own says `Kind = "service-..."`. */
static bool consul_is_text(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t next = end == NULL ? length : (size_t)(end - text) + 1;
        size_t c = at;
        while (c < next && (text[c] == ' ' || text[c] == '\t')) {
            c++;
        }
        if (next - c > 4 && (strncmp(text + c, "Kind", 4) == 0 || strncmp(text + c, "kind", 4) == 0)) {
            c += 4;
            while (c < next && (text[c] == ' ' || text[c] == '\t')) {
                c++;
            }
            return c < next && text[c] == '=';
        }
        at = next;
    }
    return false;
}

static const struct unwritten unwritten[] = {{"maxRetries", "0", "without retries in the router there are none"},
                                             {"connectTimeout", CONNECT_TIMEOUT, "Consul's default"},
                                             {"attemptTimeout", "none", "Consul has none"},
                                             {"deadline", ROUTE_TIMEOUT, "Envoy's default"},
                                             {NULL, NULL, NULL}};

const struct dialect dialect_consul = {.word = "consul",
                                       .product = "Consul",
                                       .unwritten = unwritten,
                                       .order = ORDER_FIRST,
                                       .recognises = consul_recognises,
                                       .read = consul_read,
                                       .is_text = consul_is_text,
                                       .parse = hcl_parse,
                                       .yaml = true};
