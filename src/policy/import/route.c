/* SPDX-License-Identifier: MIT */
#include "route.h"

#include "../value.h"
#include "dialect.h"

#include <string.h>

static bool is_absent(const char *text)
{
    return text == NULL || text[0] == '\0';
}

bool match_is_possible(const struct route_match *m)
{
    const char *path = m->path == NULL ? m->prefix : m->path;
    return !m->impossible && (is_absent(m->host) || value_match_host(m->host)) &&
           (is_absent(path) || value_path(path)) && (is_absent(m->method) || value_method(m->method));
}

bool match_is_everything(const struct route_match *m)
{
    bool any_path = m->path == NULL && (m->prefix == NULL || strcmp(m->prefix, "/") == 0);
    return any_path && m->method == NULL && m->header == NULL && m->host == NULL && !m->impossible;
}

void match_put(struct source *s, struct emit_target *target, const struct route_match *m, const struct from *from)
{
    const char *const pairs[][2] = {{"match.host", m->host},
                                    {"match.prefix", m->path == NULL ? m->prefix : NULL},
                                    {"match.path", m->path},
                                    {"match.method", m->method}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (pairs[i][1] != NULL && pairs[i][1][0] != '\0') {
            source_put_text(s, target, pairs[i][0], pairs[i][1], from);
        }
    }
    if (m->header != NULL && m->header[0] != '\0') {
        source_put_word(s, target, "match.header",
                        emit_text(s->emit, "{%s: %s}", emit_quote(s->emit, m->header), emit_quote(s->emit, m->value)),
                        from);
    }
}

const char *match_name(struct source *s, const struct route_match *m)
{
    const char *path = m->path != NULL ? m->path : m->prefix != NULL ? m->prefix : "";
    const char *method = m->method != NULL ? m->method : "";
    const char *header = m->header != NULL ? m->header : "";
    return emit_text(s->emit, "%s%s%s%s%s", method, method[0] != '\0' && path[0] != '\0' ? "-" : "",
                     path[0] == '/' ? path + 1 : path, header[0] != '\0' ? "-" : "", header);
}

void match_whole_segments(struct source *s, struct emit_target *service, const struct from *from, const char *prefix)
{
    size_t length = prefix == NULL ? 0 : strlen(prefix);
    if (length > 0 && prefix[length - 1] != '/') {
        source_no_equal(
            s, service, from,
            emit_text(s->emit, "a prefix ends with a segment, so that %s does not match %ss", prefix, prefix));
    }
}

/* ---- routes ---- */

struct place { /* a match, and where it stood */
    struct place *next;
    struct route_match match;
    struct from from;
};

struct route {
    struct route *next;
    const struct dialect *dialect;
    const char *file;
    struct emit_target *service;
    struct emit_target *rules;
    const char *name; /* NULL: it has none */
    struct from from;
    struct source_list hosts;
    struct place *first;
    struct place *last;
};

struct route *route_add(struct source *s, struct emit_target *service, const char *name, const struct from *from)
{
    struct route *route = emit_take(s->emit, sizeof *route);
    if (route != NULL) {
        *route = (struct route){.dialect = s->dialect,
                                .file = s->file,
                                .service = service,
                                .rules = emit_loose(s->emit, source_where(s, from)),
                                .name = name,
                                .from = *from,
                                .hosts = {.emit = s->emit}};
        *(s->last_route == NULL ? &s->first_route : &s->last_route->next) = route;
        s->last_route = route;
    }
    return route;
}

void route_add_host(struct source *s, struct route *route, const char *host, const struct from *from)
{
    if (route == NULL || host == NULL || strcmp(host, "*") == 0) {
        return;
    }
    const struct from named = {from->node, emit_text(s->emit, "%s \"%s\"", from->path, host), NULL};
    if (!value_match_host(host)) {
        source_no_equal(s, route->service, &named, "a host is matched whole, or by what stands behind *.");
    } else {
        source_list_add(&route->hosts, host);
    }
}

void route_add_match(struct source *s, struct route *route, const struct route_match *match, const struct from *from)
{
    struct place *place = route == NULL ? NULL : emit_take(s->emit, sizeof *place);
    if (place != NULL) {
        *place = (struct place){NULL, *match, *from};
        *(route->last == NULL ? &route->first : &route->last->next) = place;
        route->last = place;
    }
}

struct emit_target *route_rules(struct route *route)
{
    return route == NULL ? NULL : route->rules;
}

/* ---- writing them ---- */

struct reach {
    struct reach *next;
    struct emit_target *service;
    const char *file;
    struct from from;
    const char *host; /* NULL: any */
    const char *prefix;
};

static bool segment_ends(const char *path, size_t at)
{
    return path[at] == '\0' || path[at] == '/' || (at > 0 && path[at - 1] == '/');
}

/* What both lie under. A prefix of ours ends with a segment: of /charge and /check it is /, and not /ch. */
static const char *common_prefix(struct source *s, const char *a, const char *b)
{
    size_t length = 0;
    while (a[length] != '\0' && a[length] == b[length]) {
        length++;
    }
    if (!segment_ends(a, length) || !segment_ends(b, length)) {
        while (length > 0 && a[length - 1] != '/') {
            length--;
        }
        length -= length > 1; /* the slash, which belongs to the next segment */
    }
    return emit_text(s->emit, "%.*s", (int)length, a);
}

static bool same_host(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

struct reaches {
    struct reach *first;
};

static void reach_note(struct source *s, struct reaches *reaches, struct emit_target *service, const char *host,
                       const struct route_match *m, const struct from *from)
{
    const char *prefix = m->path != NULL ? m->path : m->prefix != NULL ? m->prefix : "/";
    if (service == NULL) {
        return;
    }
    struct reach *reach = *emit_slot(service);
    if (reach == NULL) {
        reach = emit_take(s->emit, sizeof *reach);
        if (reach != NULL) {
            *reach = (struct reach){reaches->first, service, s->file, *from, host, prefix};
            reaches->first = reach;
            *emit_slot(service) = reach;
        }
        return;
    }
    reach->prefix = common_prefix(s, reach->prefix, prefix);
    if (!same_host(host, reach->host)) {
        source_no_equal(s, service, from,
                        "it is reached under another host than the routes before it; a service matches one host");
    }
}

static void reach_put(struct source *s, const struct reaches *reaches)
{
    for (const struct reach *reach = reaches->first; reach != NULL; reach = reach->next) {
        struct route_match m = {.host = reach->host, .prefix = reach->prefix};
        if (m.prefix[0] == '\0' || (m.host != NULL && strcmp(m.prefix, "/") == 0)) {
            m.prefix = m.host == NULL ? "/" : NULL;
        }
        s->file = reach->file;
        if (m.prefix == NULL && strcmp(m.host, emit_name(reach->service)) == 0) {
            continue; /* a service without a match is found by its name */
        }
        match_put(s, reach->service, &m, &reach->from);
    }
}

static void left_out(struct source *s, struct emit_target *service, const struct yaml_node *route)
{
    emit_note(
        s->emit, service,
        emit_text(s->emit, "The route at %s:%u is left out: its match can't be said.", s->file, (unsigned)route->line));
}

/* There each route stands for itself, here an endpoint inherits from its service, and a service from the defaults. So
 * what a route does not write is written. */
static void unwritten_put(struct source *s, const struct route *route)
{
    for (const struct unwritten *u = route->dialect->unwritten; u != NULL && u->key != NULL; u++) {
        emit_put(route->rules, u->key, u->value,
                 emit_text(s->emit, "not written at %s: %s", emit_comment(route->rules, NULL), u->remark));
    }
}

struct clash {
    struct source *s;
    const struct route *route;
};

static void route_clash(void *data, const char *key, const char *value, const char *comment, const char *had)
{
    const struct clash *clash = data;
    struct source *s = clash->s;
    (void)comment;
    source_conflict(s, clash->route->service, &clash->route->from, key, value, had);
}

/* Is the match no more than what all requests to the service have? Then the route's rules are the service's own. */
static bool is_all_of_service(const struct route *route, const struct route_match *m)
{
    const struct reach *reach = *emit_slot(route->service);
    bool prefix_only = m->path == NULL && m->method == NULL && m->header == NULL && m->host == NULL;
    const char *prefix = m->prefix == NULL ? "/" : m->prefix;
    return match_is_everything(m) || (prefix_only && reach != NULL && strcmp(prefix, reach->prefix) == 0);
}

static void place_write(struct source *s, const struct route *route, const struct place *place)
{
    const struct route_match *m = &place->match;
    if (!match_is_possible(m)) {
        left_out(s, route->service, place->from.node);
        return;
    }
    if (route->service == emit_defaults(s->emit) && !match_is_everything(m)) {
        source_no_equal(s, route->service, &place->from,
                        "a route with a match is an endpoint of a service, and no host is named");
        return;
    }
    if (route->service != emit_defaults(s->emit)) {
        unwritten_put(s, route);
    }
    if (is_all_of_service(route, m)) {
        emit_copy(route->service, route->rules, route_clash, &(struct clash){s, route});
        return;
    }
    struct emit_target *endpoint = emit_endpoint(route->service, route->name != NULL ? route->name : match_name(s, m),
                                                 source_where(s, &place->from));
    match_put(s, endpoint, m, &place->from);
    emit_copy(endpoint, route->rules, NULL, NULL);
}

typedef void place_fn(struct source *, void *data, const struct route *, const struct place *);

static void places_each(struct source *s, place_fn *each, void *data)
{
    for (struct route *route = s->first_route; route != NULL; route = route->next) {
        const struct place everything = {.from = route->from};
        s->file = route->file;
        s->product = route->dialect->product;
        for (const struct place *place = route->first == NULL ? &everything : route->first; place != NULL;
             place = place->next) {
            each(s, data, route, place);
        }
    }
}

static void place_reach(struct source *s, void *data, const struct route *route, const struct place *place)
{
    if (match_is_possible(&place->match) && route->service != emit_defaults(s->emit)) {
        reach_note(s, data, route->service, source_list_first(&route->hosts), &place->match, &place->from);
    }
}

static void place_print(struct source *s, void *data, const struct route *route, const struct place *place)
{
    (void)data;
    place_write(s, route, place);
}

void routes_write(struct source *s)
{
    struct reaches reaches = {NULL};
    places_each(s, place_reach, &reaches);
    reach_put(s, &reaches);
    places_each(s, place_print, NULL);
}
