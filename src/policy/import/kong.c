/* SPDX-License-Identifier: MIT */
/* Kong's declarative configuration (kong.yml). A service is a service; its routes are routes, in the order in which
 * Kong's router asks them: by the number of conditions, then plain hosts, headers and longer paths first. The failures
 * that nginx calls `error` and `timeout` are retried, `retries` times, with any number of targets. */
#include "dialect.h"
#include "nginx_on.h"
#include "place.h"
#include "route.h"

#include <stdlib.h>
#include <string.h>

#define RETRIES     5u
#define MILLIS      60000u
#define PATHS_MAX   100000u
#define PASSED_ON   "requests are passed on unchanged"
#define ALL_WEIGHTS UINT64_MAX

/* One path of one route: Kong's router asks each for itself. */
struct entry {
    struct route_match match; /* path and header */
    const struct yaml_node *node;
    const char *file;
    const struct yaml_node *service;
    uint64_t priority;
    uint32_t number;
};

struct kong {
    struct source *s;
    const struct objects *objects;
    struct entry *entry;
    uint32_t count;
    uint32_t space;
};

static const char *text_of(const struct yaml_node *node, const char *key)
{
    const struct yaml_node *value = source_get(node, key);
    return value != NULL && value->kind == YAML_SCALAR ? value->text : NULL;
}

static uint32_t length_of(const struct yaml_node *node, const char *key)
{
    const struct yaml_node *value = source_get(node, key);
    return value == NULL || value->kind == YAML_SCALAR ? 0 : value->count;
}

/* ---- hosts ---- */

static const struct yaml_node *upstream_find(const struct kong *in, const char *name)
{
    for (uint32_t i = 0; i < in->objects->count; i++) {
        const struct yaml_node *list = source_get(in->objects->at[i].node, "upstreams");
        for (uint32_t k = 0; list != NULL && list->kind == YAML_SEQUENCE && k < list->count; k++) {
            if (yaml_is(source_get(list->item[k], "name"), name)) {
                return list->item[k];
            }
        }
    }
    return NULL;
}

/* The failures in a row after which a target is left out; 0: it never is. */
static void health_put(struct source *s, struct emit_target *service, const struct yaml_node *upstream)
{
    static const char *const keys[] = {"http_failures", "tcp_failures", "timeouts"};
    const struct yaml_node *passive = source_get(source_get(upstream, "healthchecks"), "passive");
    const struct yaml_node *unhealthy = source_get(passive, "unhealthy");
    struct from least = {NULL, "healthchecks.passive.unhealthy", NULL};
    uint64_t failures = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct from from = {source_get(unhealthy, keys[i]), emit_text(s->emit, "%s.%s", least.path, keys[i]),
                                  NULL};
        uint64_t value = 0;
        if (source_integer(s, &from, &value) && value > 0 && (failures == 0 || value < failures)) {
            failures = value;
            least = from;
        }
    }
    if (failures > 0) {
        source_put_integer(s, service, "outlier.consecutive5xxErrors", failures, &least);
        source_no_equal(s, service, &least,
                        "every 5xx, failed connect and timeout counts alike, and a host comes back by itself");
    }
}

struct hosts {
    struct source_list list;
    uint64_t weight; /* of the first; ALL_WEIGHTS before there is one */
};

static void target_add(struct source *s, struct emit_target *service, const struct from *from, const char *scheme,
                       struct hosts *hosts)
{
    struct host_place place;
    const struct from weight = {source_get(from->node, "weight"), "targets.weight", NULL};
    const char *text = from->node->kind == YAML_SCALAR ? from->node->text : text_of(from->node, "target");
    uint64_t share = 100;
    (void)source_integer(s, &weight, &share);
    if (text == NULL || share == 0) {
        return;
    }
    bool port = strrchr(text, ':') != NULL && strrchr(text, ']') < strrchr(text, ':');
    if (!place_read(s, emit_text(s->emit, "%s://%s%s", scheme, text, port ? "" : ":8000"), &place)) {
        source_no_equal(s, service, from, emit_text(s->emit, "\"%.64s\" is no address", text));
        return;
    }
    if (hosts->weight != ALL_WEIGHTS && hosts->weight != share) {
        source_no_equal(s, service, &weight, "hosts have no weights");
    }
    hosts->weight = hosts->weight == ALL_WEIGHTS ? share : hosts->weight;
    source_list_add(&hosts->list, place.address);
}

static void upstream_put(struct source *s, struct emit_target *service, const struct yaml_node *upstream,
                         const char *scheme)
{
    static const struct field fields[] = {
        {"name", NULL},
        {"targets", NULL},
        {"healthchecks", NULL},
        {"id", NULL},
        {"tags", NULL},
        {"slots", NULL},
        {"algorithm", NOTE "Becalm picks two hosts at random and uses the less busy one"},
        {"hash_on", NOTE "Becalm picks two hosts at random and uses the less busy one"},
        {"host_header", PASSED_ON},
        {NULL, NULL}};
    struct hosts hosts = {{.emit = s->emit}, ALL_WEIGHTS};
    const struct from targets = {source_get(upstream, "targets"), "targets", NULL};
    source_rest(s, service, upstream, "upstream", fields);
    for (uint32_t i = 0; source_is(s, &targets, YAML_SEQUENCE) && i < targets.node->count; i++) {
        target_add(s, service, &(struct from){targets.node->item[i], "targets", NULL}, scheme, &hosts);
    }
    if (hosts.list.count > 0) {
        source_put_list(s, service, "hosts", &hosts.list, &targets);
    }
    health_put(s, service, upstream);
}

/* The address in `url`, or in its parts. */
struct address {
    struct from from;
    const char *scheme;
    const char *host;
    const char *path;
    uint64_t port;
};

static bool address_read(struct source *s, const struct yaml_node *service, struct address *out)
{
    const struct from url = {source_get(service, "url"), "service.url", NULL};
    const struct from host = {source_get(service, "host"), "service.host", NULL};
    const struct from port = {source_get(service, "port"), "service.port", NULL};
    const char *text = url.node == NULL ? NULL : source_text(s, &url);
    *out = (struct address){.from = url.node != NULL ? url : host, .scheme = "http", .path = ""};
    if (text != NULL) {
        const char *colon = strstr(text, "://");
        const char *rest = colon == NULL ? text : colon + 3;
        size_t length = strcspn(rest, "/?");
        const char *behind = memchr(rest, ':', length);
        out->scheme = colon == NULL ? "http" : emit_text(s->emit, "%.*s", (int)(colon - text), text);
        out->host = emit_text(s->emit, "%.*s", (int)(behind == NULL ? length : (size_t)(behind - rest)), rest);
        out->path = rest + length;
        const char *digits =
            behind == NULL ? "0" : emit_text(s->emit, "%.*s", (int)(rest + length - behind - 1), behind + 1);
        return value_integer(digits, &out->port) && out->port < 65536;
    }
    out->scheme = text_of(service, "protocol") != NULL ? text_of(service, "protocol") : "http";
    out->host = text_of(service, "host");
    out->path = text_of(service, "path") != NULL ? text_of(service, "path") : "";
    return out->host != NULL && (port.node == NULL || (source_integer(s, &port, &out->port) && out->port < 65536));
}

static void hosts_put(struct kong *in, struct emit_target *service, const struct yaml_node *node)
{
    struct source *s = in->s;
    struct address address;
    struct host_place place;
    if (!address_read(s, node, &address)) {
        source_no_equal(s, service, &(struct from){node, "service", NULL}, "it has no address: add `hosts`");
        return;
    }
    const struct yaml_node *upstream = upstream_find(in, address.host);
    const struct from verify = {source_get(node, "tls_verify"), "service.tls_verify", NULL};
    bool verified = false;
    bool plain_port = address.port == 0 && strcmp(address.scheme, "https") != 0;
    if (upstream != NULL) {
        upstream_put(s, service, upstream, address.scheme);
        (void)place_of(s, address.scheme, "upstream", 0, &place);
    } else if (place_of(s, address.scheme, address.host, plain_port ? 80 : address.port, &place)) {
        source_put_word(s, service, "hosts", emit_text(s->emit, "[%s]", emit_quote(s->emit, place.address)),
                        &address.from);
    } else {
        source_no_equal(s, service, &address.from, "it is no address: add `hosts`");
        return;
    }
    if (place.tls && !(source_boolean(s, &verify, &verified) && verified)) {
        source_put_word(s, service, "tls.verify", "none",
                        &(struct from){address.from.node, address.from.path, "Kong's default: tls_verify is off"});
    }
    if (place.h2) {
        source_put_h2(s, service, &address.from);
    }
    if (address.path[0] != '\0' && strcmp(address.path, "/") != 0) {
        source_no_equal(s, service, &address.from,
                        emit_text(s->emit, PASSED_ON "; there %.64s is put before the path", address.path));
    }
}

/* ---- services ---- */

static void millis_put(struct source *s, struct emit_target *rules, const char *key, const struct yaml_node *service,
                       const char *name)
{
    uint64_t value = MILLIS;
    struct from from = {source_get(service, name), emit_text(s->emit, "service.%s", name), NULL};
    if (from.node == NULL) {
        from = (struct from){service, from.path, "Kong's default"};
    } else if (!source_integer(s, &from, &value)) {
        return;
    }
    source_put_duration(s, rules, key, value > BECALM_NEVER / 2 / BECALM_MS ? BECALM_NEVER / 2 : value * BECALM_MS,
                        &from);
}

static void rules_put(struct source *s, struct emit_target *rules, const struct yaml_node *service)
{
    uint64_t retries = RETRIES;
    struct from count = {source_get(service, "retries"), "service.retries", NULL};
    if (count.node == NULL || !source_integer(s, &count, &retries)) {
        count = (struct from){service, "service.retries", "Kong's default"};
    }
    source_put_integer(s, rules, "maxRetries", retries, &count);
    nginx_at_once(s, rules, &count, false);
    millis_put(s, rules, "connectTimeout", service, "connect_timeout");
    millis_put(s, rules, "attemptTimeout", service, "read_timeout");
}

static const struct field service_fields[] = {{"name", NULL},
                                              {"id", NULL},
                                              {"url", NULL},
                                              {"protocol", NULL},
                                              {"host", NULL},
                                              {"port", NULL},
                                              {"path", NULL},
                                              {"retries", NULL},
                                              {"connect_timeout", NULL},
                                              {"read_timeout", NULL},
                                              {"write_timeout", NULL},
                                              {"routes", NULL},
                                              {"tags", NULL},
                                              {"enabled", NULL},
                                              {"tls_verify", NULL},
                                              {"tls_verify_depth", NOTE "a chain of certificates has no depth"},
                                              {"ca_certificates", "write tls.ca: the file of the authority"},
                                              {"client_certificate", "write tls.cert and tls.key: files"},
                                              {"plugins", NOTE "Becalm has no plugins"},
                                              {NULL, NULL}};

static struct emit_target *service_of(struct kong *in, const struct yaml_node *node)
{
    struct source *s = in->s;
    const struct from name = {source_get(node, "name"), "service.name", NULL};
    const char *text = name.node == NULL ? text_of(node, "host") : source_text(s, &name);
    const struct from from = {name.node != NULL ? name.node : node, "service.name", NULL};
    struct emit_target *service = emit_service(s->emit, text == NULL ? "service" : text, source_where(s, &from));
    if (service != NULL && *emit_slot(service) == NULL) {
        *emit_slot(service) = service; /* marks the service as read */
        source_rest(s, service, node, "service", service_fields);
        hosts_put(in, service, node);
    }
    return service;
}

/* ---- routes ---- */

static bool enabled(struct source *s, const struct yaml_node *service)
{
    bool on = true;
    return !source_boolean(s, &(struct from){source_get(service, "enabled"), "service.enabled", NULL}, &on) || on;
}

static bool plain_hosts(const struct yaml_node *route)
{
    const struct yaml_node *hosts = source_get(route, "hosts");
    for (uint32_t i = 0; hosts != NULL && hosts->kind == YAML_SEQUENCE && i < hosts->count; i++) {
        if (hosts->item[i]->kind == YAML_SCALAR && strchr(hosts->item[i]->text, '*') != NULL) {
            return false;
        }
    }
    return hosts != NULL;
}

/* The order of Kong's router, greatest first: conditions, plain hosts, headers, the length of the path. */
static uint64_t priority_of(const struct yaml_node *route, const char *path)
{
    static const char *const conditions[] = {"methods", "hosts", "headers", "snis", "sources", "destinations"};
    uint64_t weight = path != NULL;
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        weight += length_of(route, conditions[i]) > 0;
    }
    uint64_t length = path == NULL ? 0 : strlen(path);
    return weight << 61 | (uint64_t)plain_hosts(route) << 60 | (uint64_t)(length_of(route, "headers") & 0xff) << 52 |
           (length & 0x7ffff);
}

static void entry_add(struct kong *in, const struct yaml_node *route, const struct yaml_node *service, const char *path)
{
    if (in->count == in->space) {
        uint32_t space = in->space == 0 ? 64 : in->space * 2;
        struct entry *more = in->count >= PATHS_MAX ? NULL : emit_take(in->s->emit, space * sizeof *more);
        if (more == NULL) {
            return;
        }
        if (in->count > 0) {
            memcpy(more, in->entry, in->count * sizeof *more);
        }
        in->entry = more;
        in->space = space;
    }
    struct entry *entry = &in->entry[in->count];
    *entry = (struct entry){.node = route, .file = in->s->file, .service = service, .number = in->count};
    entry->priority = priority_of(route, path);
    match_begins_with(&entry->match, path);
    in->count++;
}

static const struct field route_fields[] = {{"name", NULL},
                                            {"id", NULL},
                                            {"paths", NULL},
                                            {"hosts", NULL},
                                            {"methods", NULL},
                                            {"headers", NULL},
                                            {"service", NULL},
                                            {"tags", NULL},
                                            {"strip_path", NULL},
                                            {"path_handling", NULL},
                                            {"preserve_host", NULL},
                                            {"regex_priority", NULL},
                                            {"https_redirect_status_code", NULL},
                                            {"protocols", NOTE "a service takes requests with and without TLS"},
                                            {"request_buffering", NOTE "see requestBuffer"},
                                            {"response_buffering", NOTE "Becalm passes answers on unchanged"},
                                            {"plugins", NOTE "Becalm has no plugins"},
                                            {"snis", source_narrows},
                                            {"sources", source_narrows},
                                            {"destinations", source_narrows},
                                            {"expression", source_narrows},
                                            {NULL, NULL}};

static void route_entries(struct kong *in, const struct yaml_node *route, const struct yaml_node *service)
{
    struct source *s = in->s;
    const struct from paths = {source_get(route, "paths"), "route.paths", NULL};
    if (!source_is(s, &(struct from){route, "routes", NULL}, YAML_MAPPING) || service == NULL || !enabled(s, service) ||
        source_rest(s, NULL, route, "route", route_fields)) {
        return;
    }
    if (paths.node == NULL || paths.node->count == 0) {
        entry_add(in, route, service, NULL);
        return;
    }
    for (uint32_t i = 0; source_is(s, &paths, YAML_SEQUENCE) && i < paths.node->count; i++) {
        const struct from path = {paths.node->item[i], "route.paths", NULL};
        const char *text = source_text(s, &path);
        if (text != NULL && text[0] == '~') {
            source_no_equal(s, NULL, &path, "an endpoint can't have a regular expression, so the path is left out");
        } else if (text != NULL) {
            entry_add(in, route, service, text);
        }
    }
}

/* One header with one value. */
static bool header_read(struct source *s, const struct yaml_node *route, struct route_match *m)
{
    const struct yaml_node *headers = source_get(route, "headers");
    if (headers == NULL || headers->count == 0) {
        return true;
    }
    const struct yaml_node *value = headers->kind == YAML_MAPPING ? headers->item[0] : NULL;
    if (value != NULL && value->kind == YAML_SEQUENCE && value->count == 1) {
        value = value->item[0];
    }
    if (headers->count != 1 || value == NULL || value->kind != YAML_SCALAR || strncmp(value->text, "~*", 2) == 0) {
        source_no_equal(s, NULL, &(struct from){headers, "route.headers", NULL},
                        "an endpoint matches one header and its whole value; the route is left out");
        return false;
    }
    m->header = headers->key[0]->text;
    m->value = value->text;
    return true;
}

static void entry_route(struct kong *in, const struct entry *entry)
{
    struct source *s = in->s;
    s->file = entry->file;
    const struct from from = {entry->node, "route", NULL};
    const struct from hosts = {source_get(entry->node, "hosts"), "route.hosts", NULL};
    const struct from methods = {source_get(entry->node, "methods"), "route.methods", NULL};
    const struct from strip = {source_get(entry->node, "strip_path"), "route.strip_path", NULL};
    struct route_match match = entry->match;
    const char *begin = match.prefix != NULL ? match.prefix : match.start;
    bool off = true;
    if (!header_read(s, entry->node, &match)) {
        return;
    }
    struct emit_target *service = service_of(in, entry->service);
    struct route *route = route_add(s, service, text_of(entry->node, "name"), &from);
    rules_put(s, route_rules(route), entry->service);
    (void)source_boolean(s, &strip, &off);
    if (off && begin != NULL && strcmp(begin, "/") != 0) {
        source_no_equal(s, service, &(struct from){strip.node != NULL ? strip.node : entry->node, strip.path, NULL},
                        PASSED_ON "; there the beginning of the path that a route names is taken off");
    }
    for (uint32_t i = 0; hosts.node != NULL && source_is(s, &hosts, YAML_SEQUENCE) && i < hosts.node->count; i++) {
        const struct from host = {hosts.node->item[i], hosts.path, NULL};
        route_add_host(s, route, source_text(s, &host), &host);
    }
    for (uint32_t i = 0; methods.node != NULL && source_is(s, &methods, YAML_SEQUENCE) && i < methods.node->count;
         i++) {
        match.method = source_text(s, &(struct from){methods.node->item[i], methods.path, NULL});
        route_add_match(s, route, &match, &from);
    }
    if (match.method == NULL) {
        route_add_match(s, route, &match, &from);
    }
}

static int entry_compare(const void *a, const void *b)
{
    const struct entry *x = a;
    const struct entry *y = b;
    return x->priority != y->priority ? (x->priority > y->priority ? -1 : 1) : x->number < y->number ? -1 : 1;
}

/* ---- files ---- */

/* The service that a route at the top names: {name: x}, or x. */
static const struct yaml_node *service_find(const struct kong *in, const struct yaml_node *named)
{
    const struct yaml_node *name = named != NULL && named->kind == YAML_MAPPING ? source_get(named, "name") : named;
    for (uint32_t i = 0; name != NULL && name->kind == YAML_SCALAR && i < in->objects->count; i++) {
        const struct yaml_node *list = source_get(in->objects->at[i].node, "services");
        for (uint32_t k = 0; list != NULL && list->kind == YAML_SEQUENCE && k < list->count; k++) {
            if (yaml_is(source_get(list->item[k], "name"), name->text) ||
                yaml_is(source_get(list->item[k], "id"), name->text)) {
                return list->item[k];
            }
        }
    }
    return NULL;
}

static void document_read(struct kong *in, const struct yaml_node *document)
{
    static const struct field fields[] = {{"_format_version", NULL},
                                          {"_transform", NULL},
                                          {"_info", NULL},
                                          {"services", NULL},
                                          {"routes", NULL},
                                          {"upstreams", NULL},
                                          {"plugins", NOTE "Becalm has no plugins"},
                                          {"consumers", NOTE "clients are not known by name"},
                                          {"certificates", NOTE "write listen.tls: the files of the certificates"},
                                          {NULL, NULL}};
    struct source *s = in->s;
    const struct from services = {source_get(document, "services"), "services", NULL};
    const struct from routes = {source_get(document, "routes"), "routes", NULL};
    source_rest(s, NULL, document, "", fields);
    for (uint32_t i = 0; source_is(s, &services, YAML_SEQUENCE) && i < services.node->count; i++) {
        const struct from own = {source_get(services.node->item[i], "routes"), "service.routes", NULL};
        for (uint32_t k = 0; source_is(s, &own, YAML_SEQUENCE) && k < own.node->count; k++) {
            route_entries(in, own.node->item[k], services.node->item[i]);
        }
    }
    for (uint32_t i = 0; source_is(s, &routes, YAML_SEQUENCE) && i < routes.node->count; i++) {
        const struct yaml_node *service = service_find(in, source_get(routes.node->item[i], "service"));
        if (service == NULL) {
            source_no_equal(s, NULL, &(struct from){routes.node->item[i], "route.service", NULL},
                            "no service of the files has this name; the route is left out");
        } else {
            route_entries(in, routes.node->item[i], service);
        }
    }
}

static bool kong_recognises(const struct object *object)
{
    return object->kind[0] == '\0' && source_get(object->node, "_format_version") != NULL;
}

static void kong_read(struct source *s, const struct objects *objects)
{
    struct kong in = {.s = s, .objects = objects};
    emit_note(
        s->emit, NULL,
        "Kong counts read_timeout from the last byte, Becalm counts attemptTimeout from the start of the attempt. "
        "Kong sends the host's own name as Host unless preserve_host is true, Becalm the client's.");
    for (uint32_t i = 0; i < objects->count; i++) {
        s->file = objects->at[i].file;
        if (source_is(s, &(struct from){objects->at[i].node, "the document", NULL}, YAML_MAPPING)) {
            document_read(&in, objects->at[i].node);
        }
    }
    if (in.count > 0) {
        qsort(in.entry, in.count, sizeof *in.entry, entry_compare);
    }
    for (uint32_t i = 0; i < in.count; i++) {
        entry_route(&in, &in.entry[i]);
    }
}

static const struct unwritten unwritten[] = {{"deadline", "none", "Kong has none"}, {NULL, NULL, NULL}};

const struct dialect dialect_kong = {.word = "kong",
                                     .product = "Kong",
                                     .unwritten = unwritten,
                                     .order = ORDER_FIRST_OF_ALL,
                                     .recognises = kong_recognises,
                                     .read = kong_read};
