/* SPDX-License-Identifier: MIT */
/* nginx.conf. An upstream is a service, a location that proxies is a route to it. Follows nginx's documentation and its
 * behaviour: tests/e2e/test_import_live.py runs nginx. */
#include "nginx_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- how it is called ---- */

static struct from setting_from(struct nginx *in, const struct scope *scope, enum module module, enum setting setting)
{
    const struct hit *hit = &scope->hit[module][setting];
    if (hit->node != NULL) {
        in->s->file = hit->file;
    }
    return (struct from){
        hit->node, emit_text(in->s->emit, "%s%s", nginx_module_prefix[module], nginx_setting_name[setting]), NULL};
}

/* The conditions of proxy_next_upstream. Returns false if it is off. */
static bool conditions_put(struct nginx *in, struct emit_target *rules, const struct from *from, uint64_t retries)
{
    struct nginx_on on = {.list = {.emit = in->s->emit}};
    for (uint32_t i = 1; i < directive_words(from->node); i++) {
        const struct from word = {directive_word(from->node, i), from->path, NULL};
        nginx_on_add(in->s, &on, rules, &word, directive_text(from->node, i));
    }
    return nginx_on_put(in->s, &on, rules, from, retries);
}

static void rules_put(struct nginx *in, struct emit_target *rules, const struct scope *scope, enum module module,
                      uint32_t hosts, const struct from *location)
{
    struct source *s = in->s;
    const char *file = s->file;
    uint64_t tries = 0;
    becalm_ns time = 60 * BECALM_S;
    struct from from = setting_from(in, scope, module, NEXT_TRIES);
    if (from.node != NULL) {
        (void)nginx_number_read(s, &from, directive_word(from.node, 1), &tries);
    }
    uint64_t retries = (tries > 0 && tries < hosts ? tries : hosts) - (hosts > 0);
    struct from count = from.node != NULL && tries < hosts && tries > 0 ? from : *location;
    count.remark = count.node == from.node ? "the first attempt is none"
                   : hosts == 1            ? "there is no next host"
                                           : "each host once";
    const char *count_file = count.node == from.node ? s->file : file;
    from = setting_from(in, scope, module, NEXT_UPSTREAM);
    bool on = true;
    if (from.node != NULL && retries > 0) {
        on = conditions_put(in, rules, &from, retries);
    }
    if (!on) {
        count = from;
        count_file = s->file;
        retries = 0;
    }
    s->file = count_file;
    source_put_integer(s, rules, "maxRetries", retries, &count);
    if (in->repeats && emit_get(rules, "idempotent") == NULL) {
        source_put_word(s, rules, "idempotent", "false", &count);
    }
    if (retries > 0) {
        nginx_at_once(s, rules, &count, from.node != NULL);
    }
    from = setting_from(in, scope, module, CONNECT_TIMEOUT);
    if (from.node != NULL && nginx_time(s, &from, directive_word(from.node, 1), &time)) {
        source_put_duration(s, rules, "connectTimeout", time, &from);
    }
    time = 60 * BECALM_S;
    from = setting_from(in, scope, module, READ_TIMEOUT);
    if (from.node != NULL && nginx_time(s, &from, directive_word(from.node, 1), &time)) {
        source_put_duration(s, rules, "attemptTimeout", time, &from);
    }
    from = setting_from(in, scope, module, NEXT_TIMEOUT);
    if (from.node != NULL && retries > 0) {
        becalm_ns whole = 0;
        if (nginx_time(s, &from, directive_word(from.node, 1), &whole) && whole > 0) {
            nginx_whole_time(s, rules, &from, whole, time);
        }
    }
    s->file = file;
}

/* ---- locations ---- */

/* The directives of a location or a server that decide where a request goes. */
struct contents {
    struct hit pass;
    enum module module;
    struct hit other;      /* fastcgi_pass and the like */
    struct hit own_answer; /* return, root, alias, ...: nginx answers by itself */
    struct hit fallback;   /* try_files to @name */
    uint32_t locations;
};

static void contents_note(struct nginx *in, const struct yaml_node *directive, void *data)
{
    static const char *const others[] = {"fastcgi_pass", "uwsgi_pass", "scgi_pass", "memcached_pass"};
    static const char *const own[] = {"return",    "root",        "alias",     "try_files",
                                      "empty_gif", "stub_status", "autoindex", "content_by_lua_block",
                                      "index"};
    struct contents *c = data;
    const char *name = directive_text(directive, 0);
    if (strcmp(name, "proxy_pass") == 0 || strcmp(name, "grpc_pass") == 0) {
        c->pass = nginx_hit_here(in, directive);
        c->module = name[0] == 'g' ? GRPC : PROXY;
    } else if (strcmp(name, "location") == 0) {
        c->locations++;
    } else if (strcmp(name, "try_files") == 0 && directive_words(directive) > 2 &&
               directive_text(directive, directive_words(directive) - 1)[0] == '@') {
        c->fallback = nginx_hit_here(in, directive);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        c->other = strcmp(name, others[i]) == 0 ? nginx_hit_here(in, directive) : c->other;
    }
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        c->own_answer = strcmp(name, own[i]) == 0 ? nginx_hit_here(in, directive) : c->own_answer;
    }
}

/* Notes directives that change requests or answers. */
static void aside_note(struct nginx *in, const struct yaml_node *directive, void *data)
{
    static const struct {
        const char *name; /* NULL ends the table */
        const char *why;
        enum finding level;
    } rows[] = {{"rewrite", "Becalm passes paths on unchanged", FINDING_WARNING},
                {"error_page", "Becalm passes the answer on unchanged, and asks no other service", FINDING_WARNING},
                {"if", "it is decided by a condition, which no match can have; it is left out", FINDING_WARNING},
                {"proxy_cache", "nothing is cached", FINDING_NOTE},
                {"proxy_cache_use_stale", "nothing is cached", FINDING_NOTE},
                {"mirror", "requests are not copied", FINDING_NOTE},
                {"auth_request", "Becalm asks no other service whether a request may pass", FINDING_NOTE},
                {"auth_basic", "Becalm asks no other service whether a request may pass", FINDING_NOTE},
                {"limit_req", "clients have no rates", FINDING_NOTE},
                {"limit_conn", "write maxConnectionsPerClient", FINDING_NOTE},
                {NULL, NULL, FINDING_NOTE}};
    struct emit_target *service = data;
    for (size_t r = 0; rows[r].name != NULL; r++) {
        const struct yaml_node *block = directive_block(directive);
        bool answers = strcmp(rows[r].name, "error_page") != 0 || strchr(directive_text(directive, 1), '5') != NULL;
        bool passes = strcmp(rows[r].name, "if") != 0;
        for (uint32_t i = 0; block != NULL && i < block->count; i++) {
            passes = passes || directive_is(block->item[i], "proxy_pass") || directive_is(block->item[i], "set");
        }
        if (directive_is(directive, rows[r].name) && answers && passes) {
            const struct from from = nginx_from_of(directive, NULL);
            (rows[r].level == FINDING_WARNING ? source_no_equal : source_aside)(in->s, service, &from, rows[r].why);
        }
    }
}

/* If the regular expression only fixes the beginning of the path, returns that beginning as a prefix. */
static const char *literal_prefix(struct source *s, const char *regex)
{
    size_t length = strcspn(regex, "\\.[](){}*+?|$^");
    if (regex[0] != '^') {
        return NULL;
    }
    length = strcspn(regex + 1, "\\.[](){}*+?|$^");
    const char *rest = regex + 1 + length;
    bool plain = rest[0] == '\0' || strcmp(rest, ".*") == 0 || strcmp(rest, "(.*)") == 0 ||
                 strcmp(rest, "(.*)$") == 0 || strcmp(rest, ".*$") == 0 || strcmp(rest, "(.+)$") == 0;
    return length > 0 && plain ? emit_text(s->emit, "%.*s", (int)length, regex + 1) : NULL;
}

/* location /x, = /x, ^~ /x, ~ regex, @name */
static struct route_match location_match(struct nginx *in, const struct yaml_node *location)
{
    struct source *s = in->s;
    struct route_match m = {0};
    const char *first = directive_text(location, 1);
    bool bare = directive_words(location) == 2;
    /* "=/x" and "~x" may be written without a blank. */
    size_t sign = strspn(first, "=~^*");
    const char *how = bare ? emit_text(s->emit, "%.*s", (int)sign, first) : first;
    const char *path = bare ? first + sign : directive_text(location, 2);
    const struct from from = {location, emit_text(s->emit, "location %s%s%.96s", how, how[0] == '\0' ? "" : " ", path),
                              NULL};
    if (strcmp(how, "=") == 0) {
        m.path = path;
    } else if (how[0] == '~') {
        const char *prefix = strcmp(how, "~") == 0 ? literal_prefix(s, path) : NULL;
        m.impossible = prefix == NULL;
        if (m.impossible) {
            source_no_equal(s, NULL, &from,
                            "no match can be a regular expression; its requests go where their path leads without it");
        } else {
            match_begins_with(&m, prefix);
        }
    } else {
        match_begins_with(&m, path);
    }
    return m;
}

/* The hosts of a server: its names, except for a server that also takes requests for hosts that no other server has. */
static void hosts_put(struct nginx *in, struct route *route, const struct server *server)
{
    struct source *s = in->s;
    const char *file = s->file;
    s->file = server->hit.file;
    const struct yaml_node *block = directive_block(server->hit.node);
    for (uint32_t i = 0; block != NULL && i < block->count && !server->takes_others; i++) {
        const struct yaml_node *directive = block->item[i];
        for (uint32_t k = 1; directive_is(directive, "server_name") && k < directive_words(directive); k++) {
            const char *name = directive_text(directive, k);
            const struct from from = {directive_word(directive, k), "server_name", NULL};
            if (name[0] == '.') {
                route_add_host(s, route, name + 1, &from);
                route_add_host(s, route, emit_text(s->emit, "*%s", name), &from);
            } else if (name[0] != '\0' && strcmp(name, "_") != 0) {
                route_add_host(s, route, name, &from);
            }
        }
    }
    s->file = file;
}

struct inside {
    struct server *server;
    const struct scope *scope;
    unsigned depth;
};

static const struct hit *named_find(const struct server *server, const char *name)
{
    for (uint32_t i = 0; i < server->names; i++) {
        if (strcmp(server->named[i].name, name) == 0) {
            return &server->named[i].hit;
        }
    }
    return NULL;
}

static void route_read(struct nginx *in, const struct inside *around, const struct yaml_node *location,
                       const struct scope *scope, const struct contents *c)
{
    struct source *s = in->s;
    const char *file = s->file;
    struct route_match m = location == NULL ? (struct route_match){.prefix = "/"} : location_match(in, location);
    if (m.impossible) {
        return;
    }
    s->file = c->pass.file;
    const struct passed to = nginx_pass_read(in, scope, c->pass.node);
    if (to.service == NULL) {
        s->file = file;
        return;
    }
    const char *path = m.path != NULL ? m.path : m.start != NULL ? m.start : m.prefix != NULL ? m.prefix : "/";
    const struct from pass = nginx_from_of(c->pass.node, NULL);
    if (to.uri[0] != '\0' && strcmp(to.uri, path) != 0) {
        source_no_equal(
            s, to.service, &pass,
            emit_text(s->emit, "it puts %.64s in the place of %.64s; Becalm passes paths on unchanged", to.uri, path));
    }
    s->file = file;
    const struct from from = {location == NULL ? c->pass.node : location,
                              location == NULL ? "server" : emit_text(s->emit, "location %.96s", path), NULL};
    struct route *route = route_add(s, to.service, NULL, &from);
    route_add_match(s, route, &m, &from);
    hosts_put(in, route, around->server);
    rules_put(in, route_rules(route), scope, c->module, to.hosts, &from);
    nginx_block_each(in, location == NULL ? NULL : directive_block(location), aside_note, to.service);
}

/* A location that nginx answers itself: in Becalm its requests go where their path leads without the location. */
static void own_answer_tell(struct nginx *in, const struct yaml_node *location, const struct contents *c,
                            bool others_proxy)
{
    struct source *s = in->s;
    const struct from from = {
        location, emit_text(s->emit, "location %.64s %.64s", directive_text(location, 1), directive_text(location, 2)),
        NULL};
    if (c->other.node != NULL) {
        source_no_equal(
            s, NULL, &from,
            emit_text(s->emit, "%s is no HTTP; its requests are left out", directive_text(c->other.node, 0)));
    } else if (others_proxy) {
        source_no_equal(s, NULL, &from,
                        "nginx answers it by itself; here its requests go where their path leads without it");
    }
}

static void location_read(struct nginx *in, const struct yaml_node *location, void *data)
{
    const struct inside *around = data;
    struct contents c = {0};
    if (!directive_is(location, "location") || around->depth == 0) {
        return;
    }
    const struct yaml_node *block = directive_block(location);
    nginx_block_each(in, block, contents_note, &c);
    if (directive_text(location, 1)[0] == '@') {
        return; /* a location that jumps there reads it */
    }
    struct scope scope;
    nginx_scope_read(in, &scope, around->scope, block);
    const struct hit *named =
        c.pass.node == NULL && c.fallback.node != NULL
            ? named_find(around->server, directive_text(c.fallback.node, directive_words(c.fallback.node) - 1))
            : NULL;
    if (c.pass.node != NULL) {
        route_read(in, around, location, &scope, &c);
    } else if (named != NULL) {
        struct scope there;
        struct contents at = {0};
        const struct from from = nginx_from_of(c.fallback.node, NULL);
        nginx_scope_read(in, &there, around->scope, directive_block(named->node));
        nginx_block_each(in, directive_block(named->node), contents_note, &at);
        if (at.pass.node != NULL) {
            source_no_equal(in->s, NULL, &from,
                            "nginx answers with a file if there is one; here every request is passed on");
            route_read(in, around, location, &there, &at);
        }
    } else if (c.locations == 0) {
        own_answer_tell(in, location, &c, around->server->proxies);
    }
    const struct inside inner = {around->server, &scope, around->depth - 1};
    nginx_block_each(in, block, location_read, (void *)&inner);
}

/* ---- servers ---- */

static void proxies_note(struct nginx *in, const struct yaml_node *directive, void *data)
{
    struct server *server = data;
    const struct yaml_node *block = directive_block(directive);
    if (directive_is(directive, "proxy_pass") || directive_is(directive, "grpc_pass")) {
        server->proxies = true;
    }
    if (directive_is(directive, "location") && directive_text(directive, 1)[0] == '@' && server->names < KEPT_MAX) {
        server->named[server->names++] = (struct kept){directive_text(directive, 1), nginx_hit_here(in, directive)};
    }
    for (uint32_t i = 0; block != NULL && i < block->count && !server->proxies; i++) {
        proxies_note(in, block->item[i], data); /* as deep as the parser lets blocks be */
    }
}

/* host:port, host, port, unix:path: as the address and port of a socket. */
static const char *socket_name(struct source *s, const char *text)
{
    bool port_only = text[0] != '\0' && strspn(text, "0123456789") == strlen(text);
    const char *bracket = strrchr(text, ']');
    bool port = strchr(bracket == NULL ? text : bracket, ':') != NULL;
    if (port_only || strncmp(text, "[::]:", 5) == 0 || strncmp(text, "*:", 2) == 0 ||
        strncmp(text, "0.0.0.0:", 8) == 0) {
        const char *colon = strrchr(text, ':');
        return emit_text(s->emit, "*:%s", colon == NULL ? text : colon + 1);
    }
    return port ? text : emit_text(s->emit, "%s:80", text);
}

struct listens {
    uint32_t server;
    bool any;
};

static void listen_note(struct nginx *in, const struct yaml_node *directive, void *data)
{
    struct listens *listens = data;
    if (!directive_is(directive, "listen")) {
        return;
    }
    listens->any = true;
    struct socket *socket = nginx_pile_add(in, &in->sockets, sizeof *socket);
    if (socket != NULL) {
        *socket = (struct socket){socket_name(in->s, directive_text(directive, 1)), listens->server,
                                  nginx_has_word(directive, "default_server") || nginx_has_word(directive, "default")};
    }
}

static int socket_order(const void *a, const void *b)
{
    const struct socket *x = a;
    const struct socket *y = b;
    int names = strcmp(x->address, y->address);
    return names != 0               ? names
           : x->marked != y->marked ? y->marked - x->marked
                                    : (x->server > y->server) - (x->server < y->server);
}

/* The default of a socket is the server that says so, or the first. */
static void defaults_find(struct nginx *in)
{
    struct socket *socket = in->sockets.at;
    struct server *server = in->servers.at;
    if (in->sockets.count > 0) {
        qsort(socket, in->sockets.count, sizeof *socket, socket_order);
    }
    for (uint32_t i = 0; i < in->sockets.count;) {
        uint32_t end = i;
        bool proxies = false;
        for (; end < in->sockets.count && strcmp(socket[end].address, socket[i].address) == 0; end++) {
            proxies = proxies || server[socket[end].server].proxies;
        }
        server[socket[i].server].takes_others = true;
        for (; i < end; i++) {
            server[socket[i].server].shares = server[socket[i].server].shares || proxies;
        }
    }
}

static void http_note(struct nginx *in, const struct yaml_node *directive, void *data)
{
    const struct scope *scope = data;
    const char *name = directive_text(directive, 0);
    if (strcmp(name, "upstream") == 0) {
        struct upstream *u = nginx_pile_add(in, &in->upstreams, sizeof *u);
        if (u != NULL) {
            *u = (struct upstream){.name = directive_text(directive, 1), .hit = nginx_hit_here(in, directive)};
        }
    } else if (strcmp(name, "server") == 0) {
        struct server *server = nginx_pile_add(in, &in->servers, sizeof *server);
        if (server == NULL) {
            return;
        }
        *server = (struct server){.hit = nginx_hit_here(in, directive), .outer = scope};
        nginx_block_each(in, directive_block(directive), proxies_note, server);
        struct listens listens = {in->servers.count - 1, false};
        nginx_block_each(in, directive_block(directive), listen_note, &listens);
        struct socket *socket = listens.any ? NULL : nginx_pile_add(in, &in->sockets, sizeof *socket);
        if (socket != NULL) {
            *socket = (struct socket){"*:80", listens.server, false};
        }
    } else if (strcmp(name, "stream") == 0 || strcmp(name, "mail") == 0) {
        const struct from from = nginx_from_of(directive, NULL);
        source_aside(in->s, NULL, &from, "it is not HTTP, and left out");
    }
}

static bool has_name(const struct server *server)
{
    const struct yaml_node *block = directive_block(server->hit.node);
    for (uint32_t i = 0; block != NULL && i < block->count; i++) {
        if (directive_is(block->item[i], "server_name") && !nginx_has_word(block->item[i], "_")) {
            return true;
        }
    }
    return false;
}

static void server_read(struct nginx *in, struct server *server)
{
    struct source *s = in->s;
    struct scope scope;
    struct contents c = {0};
    s->file = server->hit.file;
    const struct from from = {server->hit.node, "server", NULL};
    const struct yaml_node *block = directive_block(server->hit.node);
    if (!server->proxies) {
        (server->shares ? source_no_equal : source_aside)(s, NULL, &from, "nginx answers its requests by itself");
        return;
    }
    if (server->takes_others && in->others_taken) {
        server->takes_others = false;
        if (!has_name(server)) {
            source_no_equal(
                s, NULL, &from,
                "it differs from a server above by its port alone, which no match can have; it is left out");
            return;
        }
        source_no_equal(s, NULL, &from,
                        "at its port it also takes hosts that it does not name; here a server above has them");
    }
    in->others_taken = in->others_taken || server->takes_others;
    nginx_scope_read(in, &scope, server->outer, block);
    nginx_block_each(in, block, contents_note, &c);
    nginx_block_each(in, block, aside_note, NULL);
    const struct inside inside = {server, &scope, LOCATION_DEPTH};
    nginx_block_each(in, block, location_read, (void *)&inside);
}

/* ---- files ---- */

static void http_find(struct nginx *in, const struct yaml_node *directive, void *data)
{
    struct scope **scope = data;
    if (directive_is(directive, "http") && *scope == NULL) {
        *scope = emit_take(in->s->emit, sizeof **scope);
        if (*scope != NULL) {
            nginx_scope_read(in, *scope, NULL, directive_block(directive));
        }
    }
}

static void file_note(struct nginx *in, const struct yaml_node *directive, void *data)
{
    if (directive_is(directive, "http")) {
        struct scope *scope = emit_take(in->s->emit, sizeof *scope);
        if (scope != NULL) {
            nginx_scope_read(in, scope, NULL, directive_block(directive));
            nginx_block_each(in, directive_block(directive), http_note, scope);
        }
        return;
    }
    http_note(in, directive, data);
}

/* A file without an http block is one that would be included there. */
static void file_read(struct nginx *in, const struct object *file)
{
    struct scope *scope = emit_take(in->s->emit, sizeof *scope);
    in->s->file = file->file;
    if (scope != NULL) {
        nginx_scope_read(in, scope, in->http, file->node);
        nginx_block_each(in, file->node, file_note, scope);
    }
}

/* Locations or settings without a server around them. */
static void piece_read(struct nginx *in, const struct object *file)
{
    struct server server = {.hit = {file->node, file->file}, .takes_others = true};
    struct scope scope;
    struct contents c = {0};
    in->s->file = file->file;
    nginx_block_each(in, file->node, proxies_note, &server);
    nginx_block_each(in, file->node, contents_note, &c);
    nginx_scope_read(in, &scope, NULL, file->node);
    const struct inside inside = {&server, &scope, LOCATION_DEPTH};
    if (c.pass.node != NULL) {
        route_read(in, &inside, NULL, &scope, &c);
    } else if (c.locations > 0) {
        nginx_block_each(in, file->node, location_read, (void *)&inside);
    } else {
        const struct from tries = setting_from(in, &scope, PROXY, NEXT_TRIES);
        const struct from on = setting_from(in, &scope, PROXY, NEXT_UPSTREAM);
        const struct from read = setting_from(in, &scope, PROXY, READ_TIMEOUT);
        uint64_t number = 0;
        bool counted = tries.node != NULL && nginx_number_read(in->s, &tries, directive_word(tries.node, 1), &number);
        if (on.node != NULL || read.node != NULL || counted) {
            const struct from from = tries.node != NULL ? tries : on.node != NULL ? on : read;
            rules_put(in, emit_defaults(in->s->emit), &scope, PROXY,
                      counted && number > 0 ? (uint32_t)(number % 1000) : 1, &from);
            source_no_equal(in->s, NULL, &from,
                            "it belongs to a location; how often a request is passed on depends on its hosts");
        }
    }
}

static void nginx_read(struct source *s, const struct objects *files)
{
    struct nginx in = {.s = s, .files = files};
    in.included = emit_take(s->emit, files->count * sizeof *in.included + 1);
    if (in.included == NULL) {
        return;
    }
    for (uint32_t i = 0; i < files->count; i++) {
        s->file = files->at[i].file;
        nginx_includes_find(&in, files->at[i].node, LOCATION_DEPTH);
    }
    for (uint32_t i = 0; i < files->count; i++) {
        s->file = files->at[i].file;
        nginx_block_each(&in, files->at[i].node, http_find, &in.http);
    }
    for (uint32_t i = 0; i < files->count; i++) {
        if (!in.included[i]) {
            file_read(&in, &files->at[i]);
        }
    }
    if (in.upstreams.count > 0) {
        qsort(in.upstreams.at, in.upstreams.count, sizeof(struct upstream), nginx_upstream_order);
    }
    defaults_find(&in);
    nginx_preface(s);
    for (uint32_t i = 0; i < in.servers.count; i++) {
        server_read(&in, (struct server *)in.servers.at + i);
    }
    for (uint32_t i = 0; i < files->count && in.servers.count == 0; i++) {
        piece_read(&in, &files->at[i]);
    }
    if (in.names) {
        emit_note(s->emit, NULL,
                  "A host name counts as one host. nginx tries every address that it has: for more than one raise "
                  "maxRetries.");
    }
}

static bool nginx_recognises(const struct object *object)
{
    (void)object;
    return false; /* its texts are never YAML */
}

static const struct unwritten nginx_unwritten[] = {{"connectTimeout", "60s", "nginx's default"},
                                                   {"attemptTimeout", "60s", "nginx's default"},
                                                   {"deadline", "none", "nginx has none"},
                                                   {NULL, NULL, NULL}};

const struct dialect dialect_nginx = {.word = "nginx",
                                      .product = "nginx",
                                      .unwritten = nginx_unwritten,
                                      .host_decides = true,
                                      .recognises = nginx_recognises,
                                      .read = nginx_read,
                                      .is_text = nginx_is,
                                      .parse = nginx_parse};
