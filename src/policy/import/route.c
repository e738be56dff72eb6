/* SPDX-License-Identifier: MIT */
#include "route.h"

#include "../value.h"

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

void route_left_out(struct source *s, struct emit_target *service, const struct yaml_node *route)
{
    emit_note(
        s->emit, service,
        emit_text(s->emit, "The route at %s:%u is left out: its match can't be said.", s->file, (unsigned)route->line));
}

static void stand_alone(struct source *s, struct emit_target *target, const struct emit_target *outer,
                        const struct neutral *table)
{
    for (const struct neutral *n = table; n->key != NULL; n++) {
        if (emit_get(outer, n->key) != NULL && emit_get(target, n->key) == NULL) {
            emit_put(target, n->key, n->value,
                     emit_text(s->emit, "not written at %s: %s", emit_comment(target, NULL), n->remark));
        }
    }
}

static bool has_rules(const struct emit_target *target, const struct neutral *table)
{
    while (table->key != NULL && emit_get(target, table->key) == NULL) {
        table++;
    }
    return table->key != NULL;
}

void routes_stand_alone(struct source *s, const struct neutral *table, bool from_defaults)
{
    const struct emit_target *defaults = from_defaults ? emit_defaults(s->emit) : NULL;
    for (struct emit_target *service = emit_next(s->emit, NULL); service != NULL;
         service = emit_next(s->emit, service)) {
        if (has_rules(service, table)) {
            stand_alone(s, service, defaults, table);
        }
        for (struct emit_target *endpoint = emit_next_endpoint(service, NULL); endpoint != NULL;
             endpoint = emit_next_endpoint(service, endpoint)) {
            stand_alone(s, endpoint, service, table);
            stand_alone(s, endpoint, defaults, table);
        }
    }
}

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
    return path[at] == '\0' || path[at] == '/';
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

void reach_note(struct source *s, struct reaches *reaches, struct emit_target *service, const char *host,
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

void reach_put(struct source *s, const struct reaches *reaches)
{
    for (const struct reach *reach = reaches->first; reach != NULL; reach = reach->next) {
        struct route_match m = {.host = reach->host, .prefix = reach->prefix};
        if (m.prefix[0] == '\0' || (m.host != NULL && strcmp(m.prefix, "/") == 0)) {
            m.prefix = m.host == NULL ? "/" : NULL;
        }
        s->file = reach->file;
        match_put(s, reach->service, &m, &reach->from);
    }
}
