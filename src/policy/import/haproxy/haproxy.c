/* SPDX-License-Identifier: MIT */
/* haproxy.cfg. A backend is a service, default_backend and use_backend of a frontend are routes to it, a listen section
 * is both. Follows HAProxy's manual and its behaviour: tests/e2e/test_import_live.py runs HAProxy. */
#include "haproxy_internal.h"

#include <stdlib.h>
#include <string.h>

static int section_order(const void *a, const void *b)
{
    return strcmp((*(struct section *const *)a)->name, (*(struct section *const *)b)->name);
}

static bool same_or_any(const char *any, const char *one)
{
    return any == NULL || (one != NULL && strcmp(any, one) == 0);
}

/* Does a rule above take every request that this one asks for? */
static bool is_covered(const struct route_match *above, const struct route_match *m)
{
    const char *path = m->path != NULL ? m->path : m->prefix;
    bool paths = above->path != NULL     ? m->path != NULL && strcmp(above->path, m->path) == 0
                 : above->prefix != NULL ? path != NULL && strncmp(path, above->prefix, strlen(above->prefix)) == 0
                                         : true;
    return paths && same_or_any(above->host, m->host) && same_or_any(above->method, m->method) &&
           same_or_any(above->header, m->header) && same_or_any(above->value, m->value);
}

/* path_beg may end inside of a segment. */
static void match_add(struct source *s, struct route *route, const struct route_match *m, const struct from *from)
{
    struct route_match written = *m;
    written.prefix = NULL;
    match_begins_with(&written, m->prefix);
    route_add_match(s, route, &written, from);
}

/* Adds a match, unless a rule above has it: there the first rule wins. A rule above for any host wins also over one for
 * this host, though that is more exact, so it gets this host as well. */
static bool match_take(struct haproxy *in, struct route *route, const struct route_match *m, const struct from *from)
{
    struct source *s = in->s;
    struct taken *taken = emit_take(s->emit, sizeof *taken);
    for (const struct taken *above = in->taken; above != NULL; above = above->next) {
        if (is_covered(&above->match, m)) {
            return false;
        }
    }
    for (const struct taken *above = in->taken; above != NULL && m->host != NULL; above = above->next) {
        if (above->match.host == NULL && above->route != route) {
            struct route_match both = above->match;
            both.host = m->host;
            match_add(s, above->route, &both, from);
        }
    }
    if (taken != NULL) {
        *taken = (struct taken){in->taken, *m, route};
        in->taken = taken;
    }
    match_add(s, route, m, from);
    return true;
}

struct backends {
    struct section **sorted;
    uint32_t count;
};

static struct section *backend_find(const struct backends *backends, const char *name)
{
    struct section wanted = {.name = name};
    struct section *const pointer = &wanted;
    struct section *const *found =
        backends->count == 0 ? NULL
                             : bsearch(&pointer, backends->sorted, backends->count, sizeof pointer, section_order);
    return found == NULL ? NULL : *found;
}

/* A route to a backend; NULL: there is none, or none that is HTTP. */
static struct route *route_to(struct haproxy *in, const struct backends *backends, const char *name,
                              const struct from *from)
{
    struct source *s = in->s;
    struct section *section = backend_find(backends, name);
    if (section == NULL || !haproxy_is_http(section)) {
        const struct from at = {from->node, emit_text(s->emit, "%s %.64s", from->path, name), NULL};
        source_no_equal(s, NULL, &at,
                        section != NULL ? "the backend is not HTTP; its requests are left out"
                        : strchr(name, '%') != NULL
                            ? "where it leads is decided for each request; its requests are left out"
                            : "there is no such backend in the files; its requests are left out");
        return NULL;
    }
    if (section->service == NULL) {
        haproxy_backend_use(in, section);
    }
    struct route *route = route_add(s, section->service, NULL, from);
    haproxy_rules_put(in, section, route_rules(route));
    return route;
}

/* use_backend NAME if CONDITION */
static void rule_read(struct haproxy *in, const struct backends *backends, const struct section *section,
                      const struct yaml_node *line)
{
    struct source *s = in->s;
    const struct from from = {line, "use_backend", NULL};
    const char *name = directive_text(line, 1);
    const struct from named = {line, emit_text(s->emit, "use_backend %.64s", name), NULL};
    struct choices choices = {0};
    if (directive_words(line) == 2) {
        haproxy_choice_add(&choices, &(struct route_match){0});
    } else if (strcmp(directive_text(line, 2), "if") == 0) {
        haproxy_condition(in, &choices, section, line, 3);
    } else {
        choices.impossible = true;
    }
    for (uint32_t i = 0; i < choices.count; i++) {
        choices.impossible = choices.impossible || !match_is_possible(&choices.match[i]);
    }
    if (choices.impossible) {
        source_no_equal(s, NULL, &named, "no match can have its condition; its requests go where they lead without it");
        return;
    }
    struct route *route = route_to(in, backends, name, &from);
    bool reached = false;
    for (uint32_t i = 0; route != NULL && i < choices.count; i++) {
        reached = match_take(in, route, &choices.match[i], &from) || reached;
    }
    if (route != NULL && !reached) {
        route_add_match(s, route, &(struct route_match){.impossible = true}, &from);
        source_aside(s, NULL, &named, "a rule above takes all of its requests");
    }
}

/* The backend of all remaining requests: default_backend, or the servers of a listen section. */
static void rest_read(struct haproxy *in, const struct backends *backends, const char *name, const struct from *from)
{
    if (in->any_taken) {
        const struct from at = {from->node, emit_text(in->s->emit, "%s %.64s", from->path, name), NULL};
        source_no_equal(in->s, NULL, &at,
                        "it differs from a frontend above by its port alone, which no match can have; it is left out");
        return;
    }
    struct route *route = route_to(in, backends, name, from);
    if (route != NULL) {
        in->any_taken = true;
        (void)match_take(in, route, &(struct route_match){.prefix = "/"}, from);
    }
}

static void frontend_read(struct haproxy *in, const struct backends *backends, struct section *section)
{
    struct source *s = in->s;
    const struct yaml_node *block = directive_block(section->line.node);
    bool listen = strcmp(section->kind, "listen") == 0;
    bool servers = false;
    const struct yaml_node *rest = NULL;
    s->file = section->line.file;
    const struct from whole = {section->line.node, emit_text(s->emit, "%s %.64s", section->kind, section->name), NULL};
    if (!haproxy_is_http(section)) {
        source_aside(s, NULL, &whole, "it is not `mode http`, and left out");
        return;
    }
    for (uint32_t i = 0; block != NULL && i < block->count; i++) {
        const struct yaml_node *line = block->item[i];
        servers = servers || directive_is(line, "server") || directive_is(line, "server-template");
        rest = directive_is(line, "default_backend") ? line : rest;
        if (directive_is(line, "use_backend")) {
            rule_read(in, backends, section, line);
        }
        if (!listen) {
            haproxy_backend_aside(in, section, line);
        }
    }
    if (rest != NULL) {
        rest_read(in, backends, directive_text(rest, 1), &(struct from){rest, "default_backend", NULL});
    } else if (listen && servers) {
        rest_read(in, backends, section->name, &whole);
    }
}

static void preface(struct source *s)
{
    emit_note(s->emit, NULL,
              "HAProxy counts timeout server from the last byte, Becalm counts attemptTimeout from the start of the "
              "attempt. `reset` stands for empty-response and for junk-response, whichever is written.");
}

static void haproxy_read(struct source *s, const struct objects *files)
{
    struct haproxy in = {.s = s};
    struct backends backends = {0};
    preface(s);
    for (uint32_t i = 0; i < files->count; i++) {
        haproxy_file(&in, &files->at[i]);
    }
    backends.sorted = emit_take(s->emit, (in.count + 1) * sizeof *backends.sorted);
    if (backends.sorted == NULL) {
        return;
    }
    uint32_t frontends = 0;
    for (uint32_t i = 0; i < in.count; i++) {
        bool frontend = strcmp(in.section[i].kind, "frontend") == 0;
        frontends += frontend || strcmp(in.section[i].kind, "listen") == 0;
        if (!frontend) {
            backends.sorted[backends.count++] = &in.section[i];
        }
    }
    if (backends.count > 0) {
        qsort(backends.sorted, backends.count, sizeof *backends.sorted, section_order);
    }
    for (uint32_t i = 0; i < in.count; i++) {
        if (strcmp(in.section[i].kind, "backend") != 0) {
            frontend_read(&in, &backends, &in.section[i]);
        }
    }
    /* Backends without a frontend are a piece: each is a service, found by its name. */
    for (uint32_t i = 0; i < in.count && frontends == 0; i++) {
        s->file = in.section[i].line.file;
        const struct from from = {in.section[i].line.node, "backend", NULL};
        struct route *route = route_to(&in, &backends, in.section[i].name, &from);
        route_add_host(s, route, in.section[i].name, &from);
    }
}

static bool haproxy_recognises(const struct object *object)
{
    (void)object;
    return false; /* its texts are never YAML */
}

static const struct unwritten haproxy_unwritten[] = {{"connectTimeout", "1h", "HAProxy has none, and this is the most"},
                                                     {"attemptTimeout", "none", "HAProxy has none"},
                                                     {"deadline", "none", "HAProxy has none"},
                                                     {NULL, NULL, NULL}};

const struct dialect dialect_haproxy = {.word = "haproxy",
                                        .product = "HAProxy",
                                        .unwritten = haproxy_unwritten,
                                        .recognises = haproxy_recognises,
                                        .read = haproxy_read,
                                        .is_text = haproxy_is,
                                        .parse = haproxy_parse};
