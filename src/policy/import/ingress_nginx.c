/* SPDX-License-Identifier: MIT */
/* Ingress objects with the annotations of ingress-nginx, and its ConfigMap. A Kubernetes service is a service, a path
 * of an Ingress is a route to it. The controller writes an nginx.conf of them, but picks hosts by itself: a request is
 * tried so often as proxy-next-upstream-tries says, however many hosts there are. */
#include "dialect.h"
#include "nginx_on.h"
#include "route.h"

#include <string.h>
#include <strings.h>

#define PREFIX "nginx.ingress.kubernetes.io/"
#define TRIES  3u /* the controller's defaults */

enum setting { ON, TRIES_MOST, WHOLE_TIME, CONNECT_TIMEOUT, READ_TIMEOUT, REPEAT, SETTINGS };
static const char *const setting_name[] = {[ON] = "proxy-next-upstream",
                                           [TRIES_MOST] = "proxy-next-upstream-tries",
                                           [WHOLE_TIME] = "proxy-next-upstream-timeout",
                                           [CONNECT_TIMEOUT] = "proxy-connect-timeout",
                                           [READ_TIMEOUT] = "proxy-read-timeout",
                                           [REPEAT] = "retry-non-idempotent"}; /* of the ConfigMap only */

/* A value, and the file that it stands in. */
struct hit {
    const struct yaml_node *node; /* NULL: it is not written */
    const char *file;
};

/* How hosts are spoken to. */
struct protocol {
    const char *word;
    bool tls;
    bool h2;
};

struct ingress {
    struct source *s;
    struct hit global[SETTINGS];     /* of the ConfigMap */
    struct hit own[SETTINGS];        /* of the Ingress, with the global ones that it does not write */
    const char *space;               /* its namespace; NULL: none is written */
    const struct protocol *protocol; /* of its hosts */
    bool left_out;
};

static struct from setting_from(const struct ingress *in, enum setting setting)
{
    if (in->own[setting].node != NULL) {
        in->s->file = in->own[setting].file;
    }
    return (struct from){in->own[setting].node, setting_name[setting], NULL};
}

/* Seconds without a unit, or a time of nginx: 60, 60s. */
static bool time_take(struct ingress *in, enum setting setting, becalm_ns *out)
{
    const struct from from = setting_from(in, setting);
    return source_text(in->s, &from) != NULL && nginx_time(in->s, &from, from.node, out) && *out > 0;
}

/* "error timeout http_502" */
static bool conditions_put(struct source *s, struct emit_target *rules, const struct from *from, uint64_t retries)
{
    struct nginx_on on = {.list = {.emit = s->emit}};
    const char *text = source_text(s, from);
    for (const char *c = text; c != NULL && *c != '\0';) {
        size_t length = strcspn(c, " ");
        if (length > 0) {
            nginx_on_add(s, &on, rules, from, emit_text(s->emit, "%.*s", (int)length, c));
        }
        c += length + strspn(c + length, " ");
    }
    return nginx_on_put(s, &on, rules, from, retries);
}

static void rules_put(struct ingress *in, struct emit_target *rules, const struct from *path)
{
    struct source *s = in->s;
    const char *file = s->file;
    uint64_t tries = TRIES;
    becalm_ns read = 60 * BECALM_S;
    becalm_ns time = 0;
    bool repeat = false;
    struct from count = setting_from(in, TRIES_MOST);
    if (count.node == NULL) {
        count = (struct from){path->node, path->path, "ingress-nginx tries three times"};
    } else if (source_integer(s, &count, &tries)) {
        count.remark = "the first attempt is none";
    }
    const char *count_file = s->file;
    struct from from = setting_from(in, ON);
    bool on = tries != 1;
    if (from.node != NULL && on) {
        on = conditions_put(s, rules, &from, tries == 0 ? BECALM_RETRIES_MAX : tries - 1);
        count = on ? count : from;
        count_file = on ? count_file : s->file;
    }
    s->file = count_file;
    if (tries == 0 && on) {
        source_no_equal(s, rules, &count, "0 is no limit; the most that a policy may have is written");
    }
    source_put_integer(s, rules, "maxRetries", !on ? 0 : tries == 0 ? BECALM_RETRIES_MAX : tries - 1, &count);
    if (on) {
        nginx_at_once(s, rules, &count, from.node != NULL);
    }
    from = setting_from(in, REPEAT);
    if (from.node != NULL && source_boolean(s, &from, &repeat) && repeat && on &&
        emit_get(rules, "idempotent") == NULL) {
        source_put_word(s, rules, "idempotent", "true", &from);
    }
    if (time_take(in, CONNECT_TIMEOUT, &time)) {
        from = setting_from(in, CONNECT_TIMEOUT);
        source_put_duration(s, rules, "connectTimeout", time, &from);
    }
    if (time_take(in, READ_TIMEOUT, &read)) {
        from = setting_from(in, READ_TIMEOUT);
        source_put_duration(s, rules, "attemptTimeout", read, &from);
    }
    if (on && time_take(in, WHOLE_TIME, &time)) {
        from = setting_from(in, WHOLE_TIME);
        nginx_whole_time(s, rules, &from, time, read);
    }
    s->file = file;
}

/* ---- annotations ---- */

static void settings_read(struct ingress *in, const struct yaml_node *map, size_t skip, struct hit *hits)
{
    for (uint32_t i = 0; map != NULL && map->kind == YAML_MAPPING && i < map->count; i++) {
        const char *key = map->key[i]->text;
        for (int k = 0; k < SETTINGS && strlen(key) > skip; k++) {
            if (strcmp(key + skip, setting_name[k]) == 0) {
                hits[k] = (struct hit){map->item[i], in->s->file};
            }
        }
    }
}

static bool is_true(const struct yaml_node *node)
{
    return node->kind == YAML_SCALAR && strcmp(node->text, "true") == 0;
}

/* The words of backend-protocol. */
static const struct protocol *protocol_find(const char *word)
{
    static const struct protocol words[] = {
        {"HTTP", false, false}, {"HTTPS", true, false}, {"GRPC", false, true}, {"GRPCS", true, true}, {0}};
    const struct protocol *found = words;
    while (found->word != NULL && strcasecmp(found->word, word) != 0) {
        found++;
    }
    return found->word == NULL ? NULL : found;
}

static void protocol_put(struct ingress *in, struct emit_target *service, const struct from *from)
{
    if (in->protocol->h2) {
        source_put_h2(in->s, service, &(struct from){from->node, from->path, "backend-protocol"});
    }
    if (in->protocol->tls && emit_get(service, "tls.verify") == NULL) {
        source_put_word(in->s, service, "tls.verify", "none",
                        &(struct from){from->node, from->path, "ingress-nginx's default: proxy-ssl-verify is off"});
    }
}

/* Reports other annotations that change requests. */
static void annotation_tell(struct ingress *in, const struct yaml_node *key, const struct yaml_node *value)
{
    static const struct field rows[] = {
        {"rewrite-target", "Becalm passes paths on unchanged"},
        {"app-root", "Becalm passes paths on unchanged"},
        {"backend-protocol", NULL}, /* below */
        {"configuration-snippet", "it is not read; nginx's directives in it may change how calls are made"},
        {"server-snippet", "it is not read; nginx's directives in it may change how calls are made"},
        {"location-snippet", "it is not read; nginx's directives in it may change how calls are made"},
        {"custom-http-errors", "an answer is passed on as it came"},
        {"default-backend", "Becalm passes the answer on unchanged, and asks no other service"},
        {"permanent-redirect", "requests are passed on, not answered"},
        {"temporal-redirect", "requests are passed on, not answered"},
        {"affinity", NOTE "Becalm picks two hosts at random and uses the less busy one"},
        {"upstream-hash-by", NOTE "Becalm picks two hosts at random and uses the less busy one"},
        {"load-balance", NOTE "Becalm picks two hosts at random and uses the less busy one"},
        {"limit-rps", NOTE "clients have no rates"},
        {"limit-rpm", NOTE "clients have no rates"},
        {"limit-connections", NOTE "write maxConnectionsPerClient"},
        {"auth-url", NOTE "Becalm asks no other service whether a request may pass"},
        {"auth-type", NOTE "Becalm asks no other service whether a request may pass"},
        {"mirror-target", NOTE "requests are not copied"},
        {NULL, NULL}};
    struct source *s = in->s;
    const char *name = key->text + strlen(PREFIX);
    const struct from from = {key, name, NULL};
    for (const struct field *row = rows; row->name != NULL; row++) {
        if (row->why != NULL && strcmp(row->name, name) == 0) {
            bool note = row->why[0] == NOTE[0];
            (note ? source_aside : source_no_equal)(s, NULL, &from, row->why + (note ? 1 : 0));
        }
    }
    if (strcmp(name, "backend-protocol") == 0 && value->kind == YAML_SCALAR) {
        const struct protocol *found = protocol_find(value->text);
        in->protocol = found != NULL ? found : in->protocol;
        if (found == NULL) {
            source_no_equal(s, NULL, &from, "hosts are asked in HTTP, HTTPS, GRPC or GRPCS; HTTP is written");
        }
    }
    if (strcmp(name, "canary") == 0 && is_true(value)) {
        source_no_equal(s, NULL, &from, "a share of requests can't go elsewhere; the Ingress is left out");
        in->left_out = true;
    }
    if (strcmp(name, "use-regex") == 0 && is_true(value)) {
        source_no_equal(s, NULL, &from, "no match can be a regular expression; the Ingress is left out");
        in->left_out = true;
    }
}

/* ---- rules ---- */

/* The service of a backend: service.name with its port, or the old serviceName; NULL: none is named. */
static struct emit_target *backend_read(struct ingress *in, const struct yaml_node *backend)
{
    struct source *s = in->s;
    const struct yaml_node *service = source_get(backend, "service");
    const struct from name = {source_get(service == NULL ? backend : service, service == NULL ? "serviceName" : "name"),
                              "service.name", NULL};
    const struct yaml_node *ports = source_get(service, "port");
    const struct from port = {service == NULL ? source_get(backend, "servicePort") : source_get(ports, "number"),
                              "service.port", NULL};
    const char *text = name.node == NULL ? NULL : source_text(s, &name);
    if (text == NULL) {
        return NULL;
    }
    struct emit_target *target = emit_service(s->emit, text, source_where(s, &name));
    uint64_t number = 0;
    protocol_put(in, target, &name);
    if (port.node == NULL || port.node->kind != YAML_SCALAR || !value_integer(port.node->text, &number)) {
        const struct from where = {port.node == NULL ? name.node : port.node, "service.port", NULL};
        source_aside(s, target, &where, "a port's name is not known here; write the hosts");
        return target;
    }
    const char *address = emit_text(s->emit, "%s%s%s:%llu", text, in->space == NULL ? "" : ".",
                                    in->space == NULL ? "" : in->space, (unsigned long long)number);
    struct source_list hosts = {.emit = s->emit};
    source_list_add(&hosts, address);
    if (!value_address_of_host(address)) {
        source_no_equal(s, target, &name, "it is no address that a policy can have; write the hosts");
    } else {
        source_put_list(s, target, "hosts", &hosts, &port);
    }
    return target;
}

static void path_read(struct ingress *in, const struct yaml_node *path, const char *host, const struct from *host_from)
{
    struct source *s = in->s;
    const struct from written = {source_get(path, "path"), "path", NULL};
    const struct from from = {path, "paths", NULL};
    const char *text = written.node == NULL ? "/" : source_text(s, &written);
    struct emit_target *service = backend_read(in, source_get(path, "backend"));
    struct route_match m = {0};
    if (text == NULL || service == NULL) {
        if (service == NULL) {
            source_no_equal(s, NULL, &from, "its backend is no service; its requests are left out");
        }
        return;
    }
    if (yaml_is(source_get(path, "pathType"), "Exact")) {
        m.path = text;
    } else {
        const char *prefix = text[0] == '\0' ? "/" : text;
        if (yaml_is(source_get(path, "pathType"), "Prefix")) {
            m.prefix = prefix;
        } else {
            match_begins_with(&m, prefix);
        }
    }
    struct route *route = route_add(s, service, NULL, &from);
    if (host != NULL) {
        route_add_host(s, route, host, host_from);
    }
    route_add_match(s, route, &m, &from);
    rules_put(in, route_rules(route), &from);
}

static void ingress_read(struct ingress *in, const struct yaml_node *object)
{
    struct source *s = in->s;
    const struct yaml_node *meta = source_get(object, "metadata");
    const struct yaml_node *annotations = source_get(meta, "annotations");
    const struct yaml_node *spec = source_get(object, "spec");
    const struct yaml_node *space = source_get(meta, "namespace");
    in->space = space != NULL && space->kind == YAML_SCALAR ? space->text : NULL;
    in->left_out = false;
    in->protocol = protocol_find("HTTP");
    memcpy(in->own, in->global, sizeof in->own);
    settings_read(in, annotations, strlen(PREFIX), in->own);
    for (uint32_t i = 0; annotations != NULL && annotations->kind == YAML_MAPPING && i < annotations->count; i++) {
        if (strncmp(annotations->key[i]->text, PREFIX, strlen(PREFIX)) == 0) {
            annotation_tell(in, annotations->key[i], annotations->item[i]);
        }
    }
    if (in->left_out) {
        return;
    }
    const struct from rules = {source_get(spec, "rules"), "rules", NULL};
    for (uint32_t i = 0; source_is(s, &rules, YAML_SEQUENCE) && i < rules.node->count; i++) {
        const struct from host = {source_get(rules.node->item[i], "host"), "host", NULL};
        const char *name = host.node == NULL ? NULL : source_text(s, &host);
        const struct from paths = {source_get(source_get(rules.node->item[i], "http"), "paths"), "paths", NULL};
        for (uint32_t k = 0; source_is(s, &paths, YAML_SEQUENCE) && k < paths.node->count; k++) {
            if (source_is(s, &(struct from){paths.node->item[k], "paths", NULL}, YAML_MAPPING)) {
                path_read(in, paths.node->item[k], name, &host);
            }
        }
    }
    const struct yaml_node *rest = source_get(spec, "defaultBackend");
    rest = rest == NULL ? source_get(spec, "backend") : rest;
    struct emit_target *service = rest == NULL ? NULL : backend_read(in, rest);
    if (service != NULL) {
        const struct from from = {rest, "defaultBackend", NULL};
        struct route *route = route_add(s, service, NULL, &from);
        route_add_match(s, route, &(struct route_match){.prefix = "/"}, &from);
        rules_put(in, route_rules(route), &from);
    }
}

static void ingress_nginx_read(struct source *s, const struct objects *objects)
{
    struct ingress in = {.s = s};
    nginx_preface(s);
    for (uint32_t i = 0; i < objects->count; i++) {
        if (strcmp(objects->at[i].kind, "ConfigMap") == 0) {
            s->file = objects->at[i].file;
            settings_read(&in, source_get(objects->at[i].node, "data"), 0, in.global);
        }
    }
    for (uint32_t i = 0; i < objects->count; i++) {
        if (strcmp(objects->at[i].kind, "Ingress") == 0) {
            s->file = objects->at[i].file;
            ingress_read(&in, objects->at[i].node);
        }
    }
}

/* A ConfigMap is its own if one of its keys is. */
static bool ingress_nginx_recognises(const struct object *object)
{
    const struct yaml_node *data = strcmp(object->kind, "ConfigMap") == 0 ? source_get(object->node, "data") : NULL;
    for (int i = 0; data != NULL && i < SETTINGS; i++) {
        if (yaml_get(data, setting_name[i]) != NULL) {
            return true;
        }
    }
    return strcmp(object->kind, "Ingress") == 0;
}

static const struct unwritten ingress_nginx_unwritten[] = {{"connectTimeout", "5s", "ingress-nginx's default"},
                                                           {"attemptTimeout", "60s", "ingress-nginx's default"},
                                                           {"deadline", "none", "ingress-nginx has none"},
                                                           {NULL, NULL, NULL}};

const struct dialect dialect_ingress_nginx = {.word = "ingress-nginx",
                                              .product = "ingress-nginx",
                                              .unwritten = ingress_nginx_unwritten,
                                              .recognises = ingress_nginx_recognises,
                                              .read = ingress_nginx_read};
