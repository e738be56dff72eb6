/* SPDX-License-Identifier: MIT */
/* Traefik: its dynamic configuration as a file, and its objects in Kubernetes (IngressRoute, Middleware,
 * TraefikService, ServersTransport). A router is a route; of all that fit, the one with the greatest priority is taken,
 * which is the length of its rule if none is written. */
#include "policy/import/dialect.h"
#include "policy/import/place.h"
#include "policy/import/route.h"
#include "traefik_middleware.h"
#include "traefik_rule.h"

#include <stdlib.h>
#include <string.h>

#define CHAIN_MAX   8u
#define SHARES_MAX  64u
#define ROUTERS_MAX 100000u
#define BALANCED    NOTE "Becalm picks two hosts at random and uses the less busy one"

struct router {
    const struct yaml_node *node; /* a router of a file, or a route of an IngressRoute */
    const char *file;
    const char *name;
    const char *space; /* the namespace; "" in a file */
    bool kubernetes;
    struct emit_target *service; /* once it is read */
    uint64_t priority;
    uint32_t number;
};

struct traefik {
    struct source *s;
    const struct objects *objects;
    struct router *router;
    uint32_t count;
    uint32_t capacity;
};

/* ---- finding things by name ---- */

/* name@provider, and in Kubernetes also namespace-name@kubernetescrd. */
static const char *bare_name(struct source *s, const char *text)
{
    return emit_text(s->emit, "%.*s", (int)strcspn(text, "@"), text);
}

static const char *metadata(const struct yaml_node *object, const char *key)
{
    const struct yaml_node *value = source_get(source_get(object, "metadata"), key);
    return value != NULL && value->kind == YAML_SCALAR ? value->text : "";
}

/* The thing of this name: http.<list>.<name> of a file, or the spec of an object of this kind. */
static const struct yaml_node *thing_find(struct traefik *in, const char *list, const char *kind, const char *name)
{
    const char *bare = bare_name(in->s, name);
    for (uint32_t i = 0; i < in->objects->count; i++) {
        const struct object *object = &in->objects->at[i];
        const struct yaml_node *all = source_get(source_get(object->node, "http"), list);
        const struct yaml_node *found = all == NULL || all->kind != YAML_MAPPING ? NULL : yaml_get(all, bare);
        if (strcmp(object->kind, kind) == 0) {
            const char *own = metadata(object->node, "name");
            const char *full = emit_text(in->s->emit, "%s-%s", metadata(object->node, "namespace"), own);
            found = strcmp(own, bare) == 0 || strcmp(full, bare) == 0 ? source_get(object->node, "spec") : found;
        }
        if (found != NULL) {
            in->s->file = object->file;
            return found;
        }
    }
    return NULL;
}

/* ---- hosts ---- */

static void transport_put(struct traefik *in, struct emit_target *service, const struct from *name)
{
    static const struct field fields[] = {{"forwardingTimeouts", NULL},
                                          {"serverName", NULL},
                                          {"insecureSkipVerify", NULL},
                                          {"rootCAs", NULL},
                                          {"certificates", NULL},
                                          {"rootCAsSecrets", "write tls.ca: the file of the authority"},
                                          {"certificatesSecrets", "write tls.cert and tls.key: files"},
                                          {"maxIdleConnsPerHost", NOTE "pool.maxIdlePerHost holds for all services"},
                                          {"disableHTTP2", NULL},
                                          {"peerCertURI", NOTE "a certificate is known by its name"},
                                          {NULL, NULL}};
    struct source *s = in->s;
    const char *file = s->file;
    const char *text = name->node == NULL ? NULL : source_text(s, name);
    const struct yaml_node *node = text == NULL ? NULL : thing_find(in, "serversTransports", "ServersTransport", text);
    if (node == NULL) {
        if (text != NULL) {
            source_no_equal(s, service, name, "the transport of this name is not in the files");
        }
        return;
    }
    source_rest(s, service, node, "serversTransport", fields);
    const struct yaml_node *times = source_get(node, "forwardingTimeouts");
    const struct from connect = {source_get(times, "dialTimeout"), "forwardingTimeouts.dialTimeout", NULL};
    const struct from head = {source_get(times, "responseHeaderTimeout"), "forwardingTimeouts.responseHeaderTimeout",
                              NULL};
    const struct from server = {source_get(node, "serverName"), "serversTransport.serverName", NULL};
    const struct from skip = {source_get(node, "insecureSkipVerify"), "serversTransport.insecureSkipVerify", NULL};
    const struct from roots = {source_get(node, "rootCAs"), "serversTransport.rootCAs", NULL};
    becalm_ns time = 0;
    bool skipped = false;
    source_take_duration(s, service, "connectTimeout", &connect);
    if (source_duration(s, &head, &time) && time > 0) {
        source_put_duration(s, service, "attemptTimeout", time, &head);
    }
    if (server.node != NULL && source_text(s, &server) != NULL) {
        source_put_text(s, service, "tls.serverName", server.node->text, &server);
    }
    if (source_boolean(s, &skip, &skipped) && skipped) {
        source_put_word(s, service, "tls.verify", "none", &skip);
    }
    if (roots.node != NULL && source_is(s, &roots, YAML_SEQUENCE) && roots.node->count > 0) {
        const struct from first = {roots.node->item[0], roots.path, NULL};
        if (roots.node->count > 1) {
            source_no_equal(s, service, &roots, "tls.ca is one file: put all authorities into it");
        }
        if (source_text(s, &first) != NULL) {
            source_put_text(s, service, "tls.ca", first.node->text, &first);
        }
    }
    s->file = file;
}

static void server_add(struct source *s, struct emit_target *service, const struct yaml_node *server,
                       struct source_list *hosts)
{
    const struct from url = {source_get(server, "url"), "servers.url", NULL};
    const struct from weight = {source_get(server, "weight"), "servers.weight", NULL};
    const char *text = url.node == NULL ? NULL : source_text(s, &url);
    struct host_place place;
    if (text == NULL) {
        return;
    }
    if (!place_read(s, text, &place)) {
        source_no_equal(s, service, &url, emit_text(s->emit, "\"%.64s\" is no address", text));
        return;
    }
    if (place.h2) {
        source_put_h2(s, service, &url);
    }
    if (weight.node != NULL) {
        source_no_equal(s, service, &weight, "hosts have no weights");
    }
    source_list_add(hosts, place.address);
}

static void balancer_put(struct traefik *in, struct emit_target *service, const struct yaml_node *balancer)
{
    static const struct field fields[] = {{"servers", NULL},
                                          {"serversTransport", NULL},
                                          {"passHostHeader", NULL},
                                          {"responseForwarding", NULL},
                                          {"healthCheck", NOTE "hosts are judged by their answers, not by checks"},
                                          {"passiveHealthCheck", NOTE "see outlier"},
                                          {"sticky", BALANCED},
                                          {"strategy", BALANCED},
                                          {NULL, NULL}};
    struct source *s = in->s;
    struct source_list hosts = {.emit = s->emit};
    const struct from servers = {source_get(balancer, "servers"), "loadBalancer.servers", NULL};
    source_rest(s, service, balancer, "loadBalancer", fields);
    for (uint32_t i = 0; source_is(s, &servers, YAML_SEQUENCE) && i < servers.node->count; i++) {
        server_add(s, service, servers.node->item[i], &hosts);
    }
    if (hosts.count > 0) {
        source_put_list(s, service, "hosts", &hosts, &servers);
    }
    transport_put(in, service,
                  &(struct from){source_get(balancer, "serversTransport"), "loadBalancer.serversTransport", NULL});
}

/* ---- services ---- */

static struct emit_target *service_named(struct traefik *in, const struct from *name, unsigned depth);
static struct emit_target *service_of_route(struct traefik *in, const struct yaml_node *ref, const char *space,
                                            unsigned depth);

/* A list of services with weights, by names or by Kubernetes names. */
static struct emit_target *weighted(struct traefik *in, const struct from *list, const char *space, unsigned depth)
{
    struct source *s = in->s;
    struct share share[SHARES_MAX];
    size_t count = 0;
    for (uint32_t i = 0; source_is(s, list, YAML_SEQUENCE) && i < list->node->count && count < SHARES_MAX; i++) {
        const struct yaml_node *item = list->node->item[i];
        const struct from name = {source_get(item, "name"), "services.name", NULL};
        const struct from weight = {source_get(item, "weight"), "services.weight", NULL};
        const char *text = name.node == NULL ? NULL : source_text(s, &name);
        uint64_t part = 1;
        (void)source_integer(s, &weight, &part);
        struct emit_target *service = text == NULL || part == 0 ? NULL
                                      : space != NULL           ? service_of_route(in, item, space, depth - 1)
                                                                : service_named(in, &name, depth - 1);
        if (service != NULL) {
            share[count++] = (struct share){service, text, part};
        }
    }
    return shares_pick(s, share, count, list);
}

static struct emit_target *service_part(struct traefik *in, const struct yaml_node *node, const char *space,
                                        unsigned depth)
{
    struct source *s = in->s;
    const struct from shares = {source_get(source_get(node, "weighted"), "services"), "weighted.services", NULL};
    const struct from mirror = {source_get(node, "mirroring"), "mirroring", NULL};
    const struct from failover = {source_get(node, "failover"), "failover", NULL};
    const struct from *outer = mirror.node != NULL ? &mirror : &failover;
    const struct from inner = {source_get(outer->node, "service"), "service", NULL};
    if (shares.node != NULL) {
        return weighted(in, &shares, space, depth);
    }
    if (outer->node == NULL) {
        return NULL;
    }
    source_no_equal(s, NULL, outer, mirror.node != NULL ? "requests are not copied" : "a route leads to one service");
    if (space != NULL && inner.node == NULL) {
        return service_of_route(in, outer->node, space, depth - 1);
    }
    return service_named(in, &inner, depth - 1);
}

static struct emit_target *service_named(struct traefik *in, const struct from *name, unsigned depth)
{
    struct source *s = in->s;
    const char *text = name->node == NULL ? NULL : source_text(s, name);
    const char *file = s->file;
    if (text == NULL || depth == 0) {
        return NULL;
    }
    const struct yaml_node *node = thing_find(in, "services", "", text);
    const struct from balancer = {source_get(node, "loadBalancer"), "loadBalancer", NULL};
    struct emit_target *service = NULL;
    if (balancer.node == NULL) {
        service = service_part(in, node, NULL, depth);
        s->file = file;
        if (node == NULL) {
            source_no_equal(s, NULL, name, "the service of this name is not in the files: add `hosts`");
            service = emit_service(s->emit, bare_name(s, text), source_where(s, name));
        }
        return service;
    }
    service = emit_service(s->emit, bare_name(s, text), source_where(s, &balancer));
    if (service != NULL && *emit_slot(service) == NULL && source_is(s, &balancer, YAML_MAPPING)) {
        *emit_slot(service) = service; /* marks the service as read */
        balancer_put(in, service, balancer.node);
    }
    s->file = file;
    return service;
}

/* A Service of Kubernetes, or a TraefikService, as an IngressRoute names it. */
static struct emit_target *service_of_route(struct traefik *in, const struct yaml_node *ref, const char *space,
                                            unsigned depth)
{
    struct source *s = in->s;
    const struct from name = {source_get(ref, "name"), "services.name", NULL};
    const struct from port = {source_get(ref, "port"), "services.port", NULL};
    const struct from scheme = {source_get(ref, "scheme"), "services.scheme", NULL};
    const struct yaml_node *other = source_get(ref, "namespace");
    const char *text = name.node == NULL ? NULL : source_text(s, &name);
    uint64_t number = 80;
    struct host_place place;
    if (text == NULL || depth == 0) {
        return NULL;
    }
    if (yaml_is(source_get(ref, "kind"), "TraefikService")) {
        const struct yaml_node *spec = thing_find(in, "", "TraefikService", text);
        return spec == NULL ? NULL : service_part(in, spec, space, depth);
    }
    space = other != NULL && other->kind == YAML_SCALAR ? other->text : space;
    const char *host = emit_text(s->emit, "%s%s%s", text, space[0] == '\0' ? "" : ".", space);
    const char *word = scheme.node == NULL ? NULL : source_text(s, &scheme);
    if (port.node != NULL && port.node->kind == YAML_SCALAR && !value_integer(port.node->text, &number)) {
        source_no_equal(s, NULL, &port,
                        "which number the port of this name has is not in the files; it is taken for 80");
    }
    bool https = word != NULL ? strcmp(word, "https") == 0 : number == 443;
    struct emit_target *service = emit_service(s->emit, host, source_where(s, &name));
    if (service != NULL && *emit_slot(service) == NULL && place_of(s, https ? "https" : "http", host, number, &place)) {
        *emit_slot(service) = service;
        source_put_word(s, service, "hosts", emit_text(s->emit, "[%s]", emit_quote(s->emit, place.address)), &name);
        transport_put(in, service,
                      &(struct from){source_get(ref, "serversTransport"), "services.serversTransport", NULL});
    }
    return service;
}

/* ---- routers ---- */

static void middlewares_put(struct traefik *in, struct emit_target *rules, const struct from *list, unsigned depth)
{
    struct source *s = in->s;
    const char *file = s->file;
    for (uint32_t i = 0; depth > 0 && list->node != NULL && source_is(s, list, YAML_SEQUENCE) && i < list->node->count;
         i++) {
        const struct yaml_node *item = list->node->item[i];
        const struct from name = {item->kind == YAML_MAPPING ? source_get(item, "name") : item, list->path, NULL};
        const char *text = name.node == NULL ? NULL : source_text(s, &name);
        const struct yaml_node *found = text == NULL ? NULL : thing_find(in, "middlewares", "Middleware", text);
        const struct from chain = {source_get(source_get(found, "chain"), "middlewares"), "chain.middlewares", NULL};
        if (found != NULL) {
            traefik_middleware_put(s, rules, found);
            middlewares_put(in, rules, &chain, depth - 1);
        }
        s->file = file;
        if (text != NULL && found == NULL) {
            source_no_equal(s, rules, &name, emit_text(s->emit, "the middleware \"%.64s\" is not in the files", text));
        }
    }
}

static const char *rule_of(const struct router *r)
{
    const struct yaml_node *rule = source_get(r->node, r->kubernetes ? "match" : "rule");
    return rule != NULL && rule->kind == YAML_SCALAR ? rule->text : "";
}

static struct emit_target *router_service(struct traefik *in, const struct router *r)
{
    const struct from named = {source_get(r->node, "service"), "router.service", NULL};
    const struct from listed = {source_get(r->node, "services"), "services", NULL};
    if (!r->kubernetes) {
        return service_named(in, &named, CHAIN_MAX);
    }
    return listed.node == NULL ? NULL : weighted(in, &listed, r->space, CHAIN_MAX);
}

/* Two routers with one rule at two entry points: here a port is not a condition. */
static void entry_points_tell(struct traefik *in, uint32_t index)
{
    const struct router *r = &in->router[index];
    for (uint32_t i = index; i-- > 0 && in->router[i].priority == r->priority;) {
        const struct router *before = &in->router[i];
        if (before->service != NULL && before->service != r->service && strcmp(rule_of(before), rule_of(r)) == 0) {
            source_no_equal(in->s, NULL, &(struct from){r->node, "router", NULL},
                            emit_text(in->s->emit,
                                      "only its entry point tells it from the one at line %u; it is left out",
                                      (unsigned)before->node->line));
            return;
        }
    }
}

static void router_read(struct traefik *in, uint32_t index)
{
    static const struct field fields[] = {
        {"rule", NULL},          {"match", NULL},       {"kind", NULL},
        {"priority", NULL},      {"service", NULL},     {"services", NULL},
        {"middlewares", NULL},   {"entryPoints", NULL}, {"tls", NOTE "write listen.tls: the files of the certificates"},
        {"observability", NULL}, {"ruleSyntax", NULL},  {NULL, NULL}};
    struct source *s = in->s;
    struct router *r = &in->router[index];
    s->file = r->file;
    struct traefik_rule *rule = emit_take(s->emit, sizeof *rule);
    const struct from from = {r->node, "router", NULL};
    const struct from text = {source_get(r->node, r->kubernetes ? "match" : "rule"), "router.rule", NULL};
    const struct from middlewares = {source_get(r->node, "middlewares"), "router.middlewares", NULL};
    if (rule == NULL || !source_is(s, &from, YAML_MAPPING)) {
        return;
    }
    if (text.node == NULL || source_text(s, &text) == NULL) {
        source_no_equal(s, NULL, &from, "it has no rule; it is left out");
        return;
    }
    traefik_rule_read(s, text.node->text, rule);
    if (rule->why != NULL) {
        source_no_equal(s, NULL, &text, rule->why);
        return;
    }
    struct emit_target *service = router_service(in, r);
    if (service == NULL) {
        source_no_equal(s, NULL, &from, "it leads to no service that is known here; it is left out");
        return;
    }
    r->service = service;
    source_rest(s, service, r->node, "router", fields);
    entry_points_tell(in, index);
    struct route *route = route_add(s, service, r->name, &text);
    for (uint32_t i = 0; i < rule->count; i++) {
        route_add_match(s, route, &rule->match[i], &text);
    }
    middlewares_put(in, route_rules(route), &middlewares, CHAIN_MAX);
    /* The transport's timeout belongs to the service; without this a route would write that there is none. */
    if (emit_get(service, "attemptTimeout") != NULL) {
        emit_put(route_rules(route), "attemptTimeout", emit_get(service, "attemptTimeout"),
                 emit_comment(service, "attemptTimeout"));
    }
    if (emit_get(service, "connectTimeout") != NULL) {
        emit_put(route_rules(route), "connectTimeout", emit_get(service, "connectTimeout"),
                 emit_comment(service, "connectTimeout"));
    }
}

static void router_add(struct traefik *in, const struct router *fresh)
{
    if (in->count == in->capacity) {
        uint32_t space = in->capacity == 0 ? 64 : in->capacity * 2;
        struct router *more = in->count >= ROUTERS_MAX ? NULL : emit_take(in->s->emit, space * sizeof *more);
        if (more == NULL) {
            return;
        }
        if (in->count > 0) {
            memcpy(more, in->router, in->count * sizeof *more);
        }
        in->router = more;
        in->capacity = space;
    }
    struct router *r = &in->router[in->count];
    const struct from priority = {source_get(fresh->node, "priority"), "router.priority", NULL};
    *r = *fresh;
    r->number = in->count++;
    if (!source_integer(in->s, &priority, &r->priority) || r->priority == 0) {
        r->priority = strlen(rule_of(r));
    }
}

static int router_compare(const void *a, const void *b)
{
    const struct router *x = a;
    const struct router *y = b;
    return x->priority != y->priority ? (x->priority > y->priority ? -1 : 1) : x->number < y->number ? -1 : 1;
}

/* ---- files ---- */

static void file_read(struct traefik *in, const struct object *object)
{
    static const struct field fields[] = {{"http", NULL},
                                          {"tcp", NOTE "only HTTP is read"},
                                          {"udp", NOTE "only HTTP is read"},
                                          {"tls", NOTE "write listen.tls: the files of the certificates"},
                                          {NULL, NULL}};
    struct source *s = in->s;
    const struct from routers = {source_get(source_get(object->node, "http"), "routers"), "http.routers", NULL};
    source_rest(s, NULL, object->node, "", fields);
    for (uint32_t i = 0; source_is(s, &routers, YAML_MAPPING) && i < routers.node->count; i++) {
        router_add(in, &(struct router){.node = routers.node->item[i],
                                        .file = object->file,
                                        .name = routers.node->key[i]->text,
                                        .space = ""});
    }
}

static void ingress_read(struct traefik *in, const struct object *object)
{
    const struct from routes = {source_get(source_get(object->node, "spec"), "routes"), "spec.routes", NULL};
    for (uint32_t i = 0; source_is(in->s, &routes, YAML_SEQUENCE) && i < routes.node->count; i++) {
        router_add(in, &(struct router){.node = routes.node->item[i],
                                        .file = object->file,
                                        .space = metadata(object->node, "namespace"),
                                        .kubernetes = true});
    }
}

static bool traefik_recognises(const struct object *object)
{
    static const char *const kinds[] = {"IngressRoute",     "Middleware", "TraefikService",
                                        "ServersTransport", "TLSOption",  "TLSStore"};
    const struct yaml_node *http = source_get(object->node, "http");
    if (object->kind[0] == '\0') {
        return http != NULL && http->kind == YAML_MAPPING &&
               (source_get(http, "routers") != NULL || source_get(http, "middlewares") != NULL ||
                source_get(source_get(http, "services"), "loadBalancer") != NULL);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(object->kind, kinds[i]) == 0 && strncmp(object->group, "traefik.", 8) == 0) {
            return true;
        }
    }
    return false;
}

static void traefik_read(struct source *s, const struct objects *objects)
{
    struct traefik in = {.s = s, .objects = objects};
    for (uint32_t i = 0; i < objects->count; i++) {
        s->file = objects->at[i].file;
        if (strcmp(objects->at[i].kind, "IngressRoute") == 0) {
            ingress_read(&in, &objects->at[i]);
        } else if (objects->at[i].kind[0] == '\0' &&
                   source_is(s, &(struct from){objects->at[i].node, "the document", NULL}, YAML_MAPPING)) {
            file_read(&in, &objects->at[i]);
        }
    }
    if (in.count > 0) {
        qsort(in.router, in.count, sizeof *in.router, router_compare);
    }
    for (uint32_t i = 0; i < in.count; i++) {
        router_read(&in, i);
    }
    for (uint32_t i = 0; in.count == 0 && i < objects->count; i++) { /* middlewares alone are pieces */
        const struct yaml_node *spec = source_get(objects->at[i].node, "spec");
        const struct yaml_node *list = source_get(source_get(objects->at[i].node, "http"), "middlewares");
        s->file = objects->at[i].file;
        if (strcmp(objects->at[i].kind, "Middleware") == 0) {
            traefik_middleware_put(s, emit_defaults(s->emit), spec);
        }
        for (uint32_t k = 0; list != NULL && list->kind == YAML_MAPPING && k < list->count; k++) {
            traefik_middleware_put(s, emit_defaults(s->emit), list->item[k]);
        }
    }
}

static const struct unwritten unwritten[] = {{"maxRetries", "0", "without the retry middleware Traefik does not retry"},
                                             {"connectTimeout", "30s", "Traefik's default"},
                                             {"attemptTimeout", "none", "Traefik has none"},
                                             {"deadline", "none", "Traefik has none"},
                                             {NULL, NULL, NULL}};

const struct dialect dialect_traefik = {.word = "traefik",
                                        .product = "Traefik",
                                        .unwritten = unwritten,
                                        .order = ORDER_FIRST_OF_ALL,
                                        .recognises = traefik_recognises,
                                        .read = traefik_read};
