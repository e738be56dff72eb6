/* SPDX-License-Identifier: MIT */
/* nginx.conf. An upstream is a service, a location that proxies is a route to it. By nginx's documentation, and by what
 * nginx does: tests/e2e/test_import_live.py asks it. */
#define _POSIX_C_SOURCE 200809L /* fnmatch */
#include "dialect.h"
#include "directives.h"
#include "nginx_on.h"
#include "route.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define INCLUDE_DEPTH  8u
#define LOCATION_DEPTH 16u
#define KEPT_MAX       32u /* variables and named locations of one block: more than anybody has */

enum module { PROXY, GRPC, MODULES };
static const char *const module_prefix[] = {[PROXY] = "proxy_", [GRPC] = "grpc_"};

enum setting {
    NEXT_UPSTREAM,
    NEXT_TRIES,
    NEXT_TIMEOUT,
    CONNECT_TIMEOUT,
    READ_TIMEOUT,
    SSL_VERIFY,
    SSL_TRUSTED,
    SSL_NAME,
    SSL_CERTIFICATE,
    SSL_KEY,
    SETTINGS
};
static const char *const setting_name[] = {
    [NEXT_UPSTREAM] = "next_upstream",         [NEXT_TRIES] = "next_upstream_tries",
    [NEXT_TIMEOUT] = "next_upstream_timeout",  [CONNECT_TIMEOUT] = "connect_timeout",
    [READ_TIMEOUT] = "read_timeout",           [SSL_VERIFY] = "ssl_verify",
    [SSL_TRUSTED] = "ssl_trusted_certificate", [SSL_NAME] = "ssl_name",
    [SSL_CERTIFICATE] = "ssl_certificate",     [SSL_KEY] = "ssl_certificate_key"};

/* A directive, and the file that it stands in: an included one has another than the block around it. */
struct hit {
    const struct yaml_node *node; /* NULL: it is not written */
    const char *file;
};

/* `set $name value`, or a location of the name @name. */
struct kept {
    const char *name;
    struct hit hit;
};

/* What a block writes, or inherits. */
struct scope {
    const struct scope *outer;
    struct hit hit[MODULES][SETTINGS];
    struct kept variable[KEPT_MAX];
    uint32_t variables;
};

struct upstream {
    const char *name;
    struct hit hit;
    struct emit_target *service; /* NULL: nobody has passed a request to it yet */
    uint32_t hosts;
    bool plain; /* a request is passed to it without TLS */
    bool tls;   /* or with it */
};

struct server {
    struct hit hit; /* the directive */
    const struct scope *outer;
    bool proxies;      /* a location of it passes requests on */
    bool shares;       /* one of its sockets is another server's as well, which proxies */
    bool takes_others; /* it is the default of a socket: requests for unknown hosts are its own */
    struct kept named[KEPT_MAX];
    uint32_t names;
};

struct socket {
    const char *address;
    uint32_t server;
    bool marked; /* default_server */
};

/* An array that grows in the arena. */
struct pile {
    void *at;
    uint32_t count;
    uint32_t space;
};

struct nginx {
    struct source *s;
    const struct objects *files;
    bool *included;        /* of each file: another one includes it */
    struct scope *http;    /* of the first http block; NULL: there is none */
    struct pile upstreams; /* struct upstream, by name once all are read */
    struct pile servers;   /* struct server */
    struct pile sockets;   /* struct socket */
    bool names;            /* a host is a name, which may have several addresses */
    bool repeats;          /* somewhere non_idempotent is written: everybody else says that it is not */
    bool others_taken;
};

typedef void directive_fn(struct nginx *, const struct yaml_node *directive, void *data);

static void *pile_add(struct nginx *in, struct pile *pile, size_t size)
{
    if (pile->count == pile->space) { /* the arena keeps the old one as well: twice the memory at most */
        uint32_t space = pile->space == 0 ? 16 : pile->space * 2;
        char *more = emit_take(in->s->emit, space * size);
        if (more == NULL) {
            return NULL;
        }
        if (pile->count > 0) {
            memcpy(more, pile->at, pile->count * size);
        }
        pile->at = more;
        pile->space = space;
    }
    return (char *)pile->at + size * pile->count++;
}

static struct hit hit_here(const struct nginx *in, const struct yaml_node *node)
{
    return (struct hit){node, in->s->file};
}

static struct from from_of(const struct yaml_node *directive, const char *remark)
{
    return (struct from){directive, directive_text(directive, 0), remark};
}

/* ---- includes ---- */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* The name of the folder that a path's last part is in, as a length before its slash; 0 if there is none. */
static size_t folder_of(const char *path, const char **folder)
{
    const char *end = last_part(path);
    const char *begin = end == path ? end : end - 1;
    while (begin > path && begin[-1] != '/') {
        begin--;
    }
    *folder = begin;
    return end == path ? 0 : (size_t)(end - 1 - begin);
}

/* Does an `include` mean a file that was given? Its last part fits, and the folder, if both name one. */
static bool include_means(const char *pattern, const char *file)
{
    const char *wanted, *has;
    size_t wanted_length = folder_of(pattern, &wanted);
    size_t has_length = folder_of(file, &has);
    bool folders = wanted_length == 0 || has_length == 0 ||
                   (wanted_length == has_length && memcmp(wanted, has, wanted_length) == 0);
    return folders && fnmatch(last_part(pattern), last_part(file), FNM_PERIOD) == 0;
}

/* Files that say nothing about calls. */
static bool include_is_harmless(const char *pattern)
{
    static const char *const names[] = {"mime.types",  "fastcgi_params", "fastcgi.conf",           "uwsgi_params",
                                        "scgi_params", "koi-utf",        "options-ssl-nginx.conf", "*.load"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (fnmatch(names[i], last_part(pattern), 0) == 0) {
            return true;
        }
    }
    return strstr(pattern, "modules-enabled/") != NULL;
}

/* Calls `each` for the directives of a block; those of a file that it includes and that was given stand there, too. */
static void block_walk(struct nginx *in, const struct yaml_node *block, directive_fn *each, void *data, unsigned depth)
{
    const char *file = in->s->file;
    for (uint32_t i = 0; block != NULL && i < block->count; i++) {
        const struct yaml_node *directive = block->item[i];
        if (!directive_is(directive, "include")) {
            each(in, directive, data);
            continue;
        }
        for (uint32_t k = 0; depth > 0 && k < in->files->count; k++) {
            const struct object *other = &in->files->at[k];
            if (other->file != file && include_means(directive_text(directive, 1), other->file)) {
                in->s->file = other->file;
                block_walk(in, other->node, each, data, depth - 1);
                in->s->file = file;
            }
        }
    }
}

static void block_each(struct nginx *in, const struct yaml_node *block, directive_fn *each, void *data)
{
    block_walk(in, block, each, data, INCLUDE_DEPTH);
}

/* Marks the files that an `include` of this block, or of one in it, means, and tells of those that were not given. */
static void includes_find(struct nginx *in, const struct yaml_node *block, unsigned depth)
{
    for (uint32_t i = 0; i < block->count; i++) {
        const struct yaml_node *directive = block->item[i];
        const struct yaml_node *inner = directive_block(directive);
        if (inner != NULL && depth > 0) {
            includes_find(in, inner, depth - 1);
        }
        if (!directive_is(directive, "include")) {
            continue;
        }
        const char *pattern = directive_text(directive, 1);
        bool given = false;
        for (uint32_t k = 0; k < in->files->count; k++) {
            bool means = in->files->at[k].file != in->s->file && include_means(pattern, in->files->at[k].file);
            in->included[k] = in->included[k] || means;
            given = given || means;
        }
        if (!given && !include_is_harmless(pattern)) {
            const struct from from = {directive, emit_text(in->s->emit, "include %.64s", pattern), NULL};
            source_no_equal(in->s, NULL, &from,
                            "the file is not read; give it as well: becalm import nginx FILE FILE...");
        }
    }
}

/* ---- values ---- */

static bool number_read(struct source *s, const struct from *from, const struct yaml_node *word, uint64_t *out)
{
    const struct from value = {word == NULL ? from->node : word, from->path, NULL};
    return source_integer(s, &value, out);
}

/* The value of a parameter name=value among the words of a directive; NULL: it has none. */
static const char *parameter(const struct yaml_node *directive, const char *name)
{
    size_t length = strlen(name);
    for (uint32_t i = 2; i < directive_words(directive); i++) {
        const char *text = directive_text(directive, i);
        if (strncmp(text, name, length) == 0 && text[length] == '=') {
            return text + length + 1;
        }
    }
    return NULL;
}

static bool has_word(const struct yaml_node *directive, const char *word)
{
    for (uint32_t i = 1; i < directive_words(directive); i++) {
        if (strcmp(directive_text(directive, i), word) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- scopes ---- */

static void setting_note(struct nginx *in, const struct yaml_node *directive, void *data)
{
    struct scope *scope = data;
    const char *name = directive_text(directive, 0);
    for (int m = 0; m < MODULES; m++) {
        size_t length = strlen(module_prefix[m]);
        for (int i = 0; strncmp(name, module_prefix[m], length) == 0 && i < SETTINGS; i++) {
            if (strcmp(name + length, setting_name[i]) == 0) {
                scope->hit[m][i] = hit_here(in, directive);
                in->repeats = in->repeats || has_word(directive, "non_idempotent");
            }
        }
    }
    if (strcmp(name, "set") == 0 && scope->variables < KEPT_MAX) {
        scope->variable[scope->variables++] = (struct kept){directive_text(directive, 1), hit_here(in, directive)};
    }
}

/* The settings of a block, with those of the one around it that it does not write. */
static void scope_read(struct nginx *in, struct scope *scope, const struct scope *outer, const struct yaml_node *block)
{
    scope->outer = outer;
    scope->variables = 0;
    if (outer != NULL) {
        memcpy(scope->hit, outer->hit, sizeof scope->hit);
    } else {
        memset(scope->hit, 0, sizeof scope->hit);
    }
    block_each(in, block, setting_note, scope);
}

static const char *variable_find(const struct scope *scope, const char *name, size_t length)
{
    for (; scope != NULL; scope = scope->outer) {
        for (uint32_t i = scope->variables; i-- > 0;) {
            const char *known = scope->variable[i].name;
            if (known[0] == '$' && strlen(known + 1) == length && memcmp(known + 1, name, length) == 0) {
                return directive_text(scope->variable[i].hit.node, 2);
            }
        }
    }
    return NULL;
}

/* A text with the variables that are set in reach of it. NULL: one of them is not, so that nobody knows. */
static const char *variables_put(struct nginx *in, const struct scope *scope, const char *text)
{
    for (unsigned rounds = 0; strchr(text, '$') != NULL; rounds++) {
        const char *dollar = strchr(text, '$');
        bool braces = dollar[1] == '{';
        const char *name = dollar + 1 + braces;
        size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
        const char *value = rounds < 8 ? variable_find(scope, name, length) : NULL;
        if (value == NULL || strlen(value) > 1024) {
            return NULL;
        }
        text = emit_text(in->s->emit, "%.*s%s%s", (int)(dollar - text), text, value,
                         name + length + (braces && name[length] == '}'));
    }
    return text;
}

/* ---- upstreams ---- */

/* What the servers of an upstream say together. */
struct members {
    struct upstream *upstream;
    struct source_list hosts;
    const char *weight;                  /* of the first; "1" if it has none */
    const struct yaml_node *uneven;      /* a server of another weight */
    const struct yaml_node *fails;       /* the first that writes max_fails or fail_timeout */
    const struct yaml_node *connections; /* the first that writes max_conns */
    uint64_t connections_sum;
    bool unlimited; /* one has no max_conns */
};

/* host, host:port, unix:/path; a port that is not written is 80. NULL: a policy can't say it. */
static const char *address_of(struct source *s, const char *text)
{
    bool unix_path = strncmp(text, "unix:", 5) == 0;
    const char *bracket = strrchr(text, ']');
    bool port = strchr(bracket == NULL ? text : bracket, ':') != NULL;
    const char *address = unix_path || port ? text : emit_text(s->emit, "%s:80", text);
    return value_address(address) ? address : NULL;
}

static void member_read(struct nginx *in, const struct yaml_node *directive, void *data)
{
    static const char balances[] = "of two hosts picked at random the less busy one is used";
    static const char *const ways[] = {"ip_hash", "hash", "random", "least_conn", "least_time", "sticky"};
    struct members *m = data;
    struct source *s = in->s;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (directive_is(directive, ways[i])) {
            const struct from from = from_of(directive, NULL);
            source_aside(s, m->upstream->service, &from, balances);
        }
    }
    if (!directive_is(directive, "server") || has_word(directive, "down")) {
        return;
    }
    const struct from from = {directive, emit_text(s->emit, "server %.64s", directive_text(directive, 1)), NULL};
    const char *address = address_of(s, directive_text(directive, 1));
    const char *weight = parameter(directive, "weight");
    if (has_word(directive, "backup")) {
        source_no_equal(s, m->upstream->service, &from, "nobody is a backup; its host is left out");
        return;
    }
    if (address == NULL) {
        source_no_equal(s, m->upstream->service, &from, "it is no address that a policy can say; the host is left out");
        return;
    }
    weight = weight == NULL ? "1" : weight;
    m->weight = m->weight == NULL ? weight : m->weight;
    m->uneven = m->uneven == NULL && strcmp(weight, m->weight) != 0 ? directive : m->uneven;
    bool fails = parameter(directive, "max_fails") != NULL || parameter(directive, "fail_timeout") != NULL;
    m->fails = m->fails == NULL && fails ? directive : m->fails;
    const char *most = parameter(directive, "max_conns");
    uint64_t number = 0;
    bool limited = most != NULL && value_integer(most, &number) && number > 0 && number <= UINT32_MAX;
    m->connections = m->connections == NULL && limited ? directive : m->connections;
    m->connections_sum += limited ? number : 0;
    m->unlimited = m->unlimited || !limited;
    in->names = in->names || value_address_is_name(address);
    source_list_add(&m->hosts, address);
}

/* max_fails failures within fail_timeout take a server out for fail_timeout. nginx counts what proxy_next_upstream
 * lists, Becalm counts every 5xx, so that one failure (nginx's default) would be far too few here. */
static void fails_put(struct nginx *in, const struct members *m)
{
    struct source *s = in->s;
    struct emit_target *service = m->upstream->service;
    const char *times = parameter(m->fails, "max_fails");
    const char *pause = parameter(m->fails, "fail_timeout");
    const struct from most = {m->fails, "max_fails", "every 5xx counts here"};
    const struct from time = {m->fails, "fail_timeout", NULL};
    uint64_t number = 1;
    becalm_ns wait = 0;
    if (times != NULL && !value_integer(times, &number)) {
        source_error(s, m->fails, "bad-value", "max_fails: \"%.64s\" is not a whole number", times);
        return;
    }
    if (number == 0) {
        source_put_word(s, service, "outlier.enabled", "false", &most);
        return;
    }
    if (number > 1) {
        source_put_integer(s, service, "outlier.consecutive5xxErrors", number, &most);
    } else {
        source_aside(s, service, &most, "one failure takes a host out there; here it is half of at least five results");
    }
    struct yaml_node word = {.kind = YAML_SCALAR, .line = m->fails->line, .column = m->fails->column, .text = pause};
    if (pause != NULL && nginx_time(s, &time, &word, &wait) && wait > 0) {
        source_put_duration(s, service, "outlier.baseEjectionTime", wait, &time);
    }
}

static void upstream_use(struct nginx *in, struct upstream *u)
{
    struct source *s = in->s;
    const char *file = s->file;
    s->file = u->hit.file;
    const struct from from = {u->hit.node, emit_text(s->emit, "upstream %.64s", u->name), NULL};
    u->service = emit_service(s->emit, u->name, source_where(s, &from));
    struct members m = {.upstream = u, .hosts = {.emit = s->emit}};
    block_each(in, directive_block(u->hit.node), member_read, &m);
    u->hosts = m.hosts.count;
    if (m.hosts.count > 0) {
        source_put_list(s, u->service, "hosts", &m.hosts, &from);
    }
    if (m.uneven != NULL) {
        source_no_equal(s, u->service, &(struct from){m.uneven, "weight", NULL},
                        "requests are spread evenly over the hosts");
    }
    if (m.fails != NULL && m.hosts.count > 1) {
        fails_put(in, &m);
    }
    if (m.connections != NULL && !m.unlimited) {
        const struct from most = {m.connections, "max_conns", "of all servers together"};
        source_put_word(s, u->service, "limit.kind", "fixed", &most);
        source_put_integer(s, u->service, "limit.max", m.connections_sum, &most);
    } else if (m.connections != NULL) {
        source_no_equal(s, u->service, &(struct from){m.connections, "max_conns", NULL},
                        "a limit holds for all hosts of a service, and not all servers have one");
    }
    s->file = file;
}

static int upstream_order(const void *a, const void *b)
{
    return strcmp(((const struct upstream *)a)->name, ((const struct upstream *)b)->name);
}

static struct upstream *upstream_find(const struct nginx *in, const char *name)
{
    const struct upstream wanted = {.name = name};
    return in->upstreams.count == 0
               ? NULL
               : bsearch(&wanted, in->upstreams.at, in->upstreams.count, sizeof wanted, upstream_order);
}

/* ---- where a request is passed to ---- */

struct passed {
    struct emit_target *service; /* NULL: nobody knows; it was reported */
    uint32_t hosts;
    const char *uri; /* that takes the place of the location's prefix; "": the path stays as it is */
};

static struct passed unknown(struct nginx *in, const struct yaml_node *pass, const char *why)
{
    const struct from from = {
        pass, emit_text(in->s->emit, "%s %.96s", directive_text(pass, 0), directive_text(pass, 1)), NULL};
    source_no_equal(in->s, NULL, &from, why);
    return (struct passed){0};
}

/* One of the settings of TLS that names a file or a host. */
static void tls_word_put(struct nginx *in, const struct scope *scope, enum module module, enum setting setting,
                         struct emit_target *service, const char *key)
{
    const struct hit *hit = &scope->hit[module][setting];
    const char *text = hit->node == NULL ? "" : directive_text(hit->node, 1);
    if (text[0] != '\0' && strchr(text, '$') == NULL && emit_get(service, key) == NULL) {
        in->s->file = hit->file;
        source_put_text(in->s, service, key, text,
                        &(struct from){hit->node,
                                       emit_text(in->s->emit, "%s%s", module_prefix[module], setting_name[setting]),
                                       NULL});
    }
}

/* nginx verifies no host unless it is told to. */
static void tls_put(struct nginx *in, const struct scope *scope, enum module module, struct emit_target *service,
                    const struct from *pass)
{
    const char *file = in->s->file;
    const struct yaml_node *verify = scope->hit[module][SSL_VERIFY].node;
    if (verify != NULL && strcmp(directive_text(verify, 1), "on") == 0) {
        source_put_word(in->s, service, "tls.verify", "full",
                        &(struct from){verify, emit_text(in->s->emit, "%sssl_verify", module_prefix[module]), NULL});
    } else {
        source_put_word(in->s, service, "tls.verify", "none",
                        &(struct from){pass->node, pass->path, "nginx's default: ssl_verify is off"});
    }
    tls_word_put(in, scope, module, SSL_TRUSTED, service, "tls.ca");
    tls_word_put(in, scope, module, SSL_NAME, service, "tls.serverName");
    tls_word_put(in, scope, module, SSL_CERTIFICATE, service, "tls.cert");
    tls_word_put(in, scope, module, SSL_KEY, service, "tls.key");
    in->s->file = file;
}

/* proxy_pass scheme://upstream/uri, scheme://host:port, scheme://unix:/path:/uri */
static struct passed pass_read(struct nginx *in, const struct scope *scope, const struct yaml_node *pass)
{
    struct source *s = in->s;
    const struct from from = from_of(pass, NULL);
    const char *text = variables_put(in, scope, directive_text(pass, 1));
    if (text == NULL) {
        return unknown(in, pass,
                       "where it leads is decided for each request, by a variable; its requests are left out");
    }
    const char *rest = strstr(text, "://");
    bool tls = rest != NULL && (strncmp(text, "https", 5) == 0 || strncmp(text, "grpcs", 5) == 0);
    rest = rest == NULL ? text : rest + 3;
    bool unix_path = strncmp(rest, "unix:", 5) == 0;
    const char *colon = unix_path ? strchr(rest + 5, ':') : NULL;
    const char *uri = unix_path ? (colon == NULL ? "" : colon + 1) : rest + strcspn(rest, "/?");
    size_t length = unix_path && colon != NULL ? (size_t)(colon - rest)
                                               : (size_t)(uri[0] == '\0' ? strlen(rest) : (size_t)(uri - rest));
    const char *name = emit_text(s->emit, "%.*s", (int)length, rest);
    struct upstream *u = upstream_find(in, name);
    struct passed to = {.uri = emit_text(s->emit, "%s", uri)};
    if (u != NULL) {
        if (u->service == NULL) {
            upstream_use(in, u);
        }
        to.service = u->service;
        to.hosts = u->hosts;
        if (tls ? u->plain : u->tls) {
            source_no_equal(s, to.service, &from,
                            "its hosts are asked with TLS in one place and without it in another");
        }
        *(tls ? &u->tls : &u->plain) = true;
    } else {
        bool port = strchr(name, ':') != NULL;
        const char *address = address_of(s, tls && !port ? emit_text(s->emit, "%s:443", name) : name);
        if (address == NULL) {
            return unknown(in, pass, "it is neither an upstream of the file nor an address; its requests are left out");
        }
        struct source_list hosts = {.emit = s->emit};
        source_list_add(&hosts, address);
        to.service = emit_service(s->emit, name, source_where(s, &from));
        if (emit_get(to.service, "hosts") == NULL) {
            source_put_list(s, to.service, "hosts", &hosts, &from);
        }
        in->names = in->names || value_address_is_name(address);
        to.hosts = 1;
    }
    if (tls) {
        tls_put(in, scope, strncmp(directive_text(pass, 0), "grpc", 4) == 0 ? GRPC : PROXY, to.service, &from);
    }
    return to;
}

/* ---- how it is called ---- */

static struct from setting_from(struct nginx *in, const struct scope *scope, enum module module, enum setting setting)
{
    const struct hit *hit = &scope->hit[module][setting];
    if (hit->node != NULL) {
        in->s->file = hit->file;
    }
    return (struct from){hit->node, emit_text(in->s->emit, "%s%s", module_prefix[module], setting_name[setting]), NULL};
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
        (void)number_read(s, &from, directive_word(from.node, 1), &tries);
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

/* What stands in a location or a server, as far as it decides where a request goes. */
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
        c->pass = hit_here(in, directive);
        c->module = name[0] == 'g' ? GRPC : PROXY;
    } else if (strcmp(name, "location") == 0) {
        c->locations++;
    } else if (strcmp(name, "try_files") == 0 && directive_words(directive) > 2 &&
               directive_text(directive, directive_words(directive) - 1)[0] == '@') {
        c->fallback = hit_here(in, directive);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        c->other = strcmp(name, others[i]) == 0 ? hit_here(in, directive) : c->other;
    }
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        c->own_answer = strcmp(name, own[i]) == 0 ? hit_here(in, directive) : c->own_answer;
    }
}

/* Tells of what changes requests, or answers, on their way. */
static void aside_note(struct nginx *in, const struct yaml_node *directive, void *data)
{
    static const struct {
        const char *name; /* NULL ends the table */
        const char *why;
        enum finding level;
    } rows[] = {{"rewrite", "paths are passed on as they came", FINDING_WARNING},
                {"error_page", "an answer is passed on as it came; nobody else is asked", FINDING_WARNING},
                {"if", "it is decided by a condition, which no match can have; it is left out", FINDING_WARNING},
                {"proxy_cache", "nothing is cached", FINDING_NOTE},
                {"proxy_cache_use_stale", "nothing is cached", FINDING_NOTE},
                {"mirror", "requests are not copied", FINDING_NOTE},
                {"auth_request", "nobody is asked whether a request may pass", FINDING_NOTE},
                {"auth_basic", "nobody is asked whether a request may pass", FINDING_NOTE},
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
            const struct from from = from_of(directive, NULL);
            (rows[r].level == FINDING_WARNING ? source_no_equal : source_aside)(in->s, service, &from, rows[r].why);
        }
    }
}

/* Is it a regular expression that only says what the path begins with? Then that is the prefix. */
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

/* The hosts of a server: its names, but for a server that also takes requests for hosts that nobody else has. */
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
    const struct passed to = pass_read(in, scope, c->pass.node);
    if (to.service == NULL) {
        s->file = file;
        return;
    }
    const char *path = m.path != NULL ? m.path : m.start != NULL ? m.start : m.prefix != NULL ? m.prefix : "/";
    const struct from pass = from_of(c->pass.node, NULL);
    if (to.uri[0] != '\0' && strcmp(to.uri, path) != 0) {
        source_no_equal(
            s, to.service, &pass,
            emit_text(s->emit, "it puts %.64s in the place of %.64s; paths are passed on as they came", to.uri, path));
    }
    s->file = file;
    const struct from from = {location == NULL ? c->pass.node : location,
                              location == NULL ? "server" : emit_text(s->emit, "location %.96s", path), NULL};
    struct route *route = route_add(s, to.service, NULL, &from);
    route_add_match(s, route, &m, &from);
    hosts_put(in, route, around->server);
    rules_put(in, route_rules(route), scope, c->module, to.hosts, &from);
    block_each(in, location == NULL ? NULL : directive_block(location), aside_note, to.service);
}

/* A location that nginx answers without asking anybody: here its requests go where their path leads without it. */
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
    block_each(in, block, contents_note, &c);
    if (directive_text(location, 1)[0] == '@') {
        return; /* who leads there reads it */
    }
    struct scope scope;
    scope_read(in, &scope, around->scope, block);
    const struct hit *named =
        c.pass.node == NULL && c.fallback.node != NULL
            ? named_find(around->server, directive_text(c.fallback.node, directive_words(c.fallback.node) - 1))
            : NULL;
    if (c.pass.node != NULL) {
        route_read(in, around, location, &scope, &c);
    } else if (named != NULL) {
        struct scope there;
        struct contents at = {0};
        const struct from from = from_of(c.fallback.node, NULL);
        scope_read(in, &there, around->scope, directive_block(named->node));
        block_each(in, directive_block(named->node), contents_note, &at);
        if (at.pass.node != NULL) {
            source_no_equal(in->s, NULL, &from,
                            "nginx answers with a file if there is one; here every request is passed on");
            route_read(in, around, location, &there, &at);
        }
    } else if (c.locations == 0) {
        own_answer_tell(in, location, &c, around->server->proxies);
    }
    const struct inside inner = {around->server, &scope, around->depth - 1};
    block_each(in, block, location_read, (void *)&inner);
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
        server->named[server->names++] = (struct kept){directive_text(directive, 1), hit_here(in, directive)};
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
    struct socket *socket = pile_add(in, &in->sockets, sizeof *socket);
    if (socket != NULL) {
        *socket = (struct socket){socket_name(in->s, directive_text(directive, 1)), listens->server,
                                  has_word(directive, "default_server") || has_word(directive, "default")};
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
        struct upstream *u = pile_add(in, &in->upstreams, sizeof *u);
        if (u != NULL) {
            *u = (struct upstream){.name = directive_text(directive, 1), .hit = hit_here(in, directive)};
        }
    } else if (strcmp(name, "server") == 0) {
        struct server *server = pile_add(in, &in->servers, sizeof *server);
        if (server == NULL) {
            return;
        }
        *server = (struct server){.hit = hit_here(in, directive), .outer = scope};
        block_each(in, directive_block(directive), proxies_note, server);
        struct listens listens = {in->servers.count - 1, false};
        block_each(in, directive_block(directive), listen_note, &listens);
        struct socket *socket = listens.any ? NULL : pile_add(in, &in->sockets, sizeof *socket);
        if (socket != NULL) {
            *socket = (struct socket){"*:80", listens.server, false};
        }
    } else if (strcmp(name, "stream") == 0 || strcmp(name, "mail") == 0) {
        const struct from from = from_of(directive, NULL);
        source_aside(in->s, NULL, &from, "it is not HTTP, and left out");
    }
}

static bool has_name(const struct server *server)
{
    const struct yaml_node *block = directive_block(server->hit.node);
    for (uint32_t i = 0; block != NULL && i < block->count; i++) {
        if (directive_is(block->item[i], "server_name") && !has_word(block->item[i], "_")) {
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
    scope_read(in, &scope, server->outer, block);
    block_each(in, block, contents_note, &c);
    block_each(in, block, aside_note, NULL);
    const struct inside inside = {server, &scope, LOCATION_DEPTH};
    block_each(in, block, location_read, (void *)&inside);
}

/* ---- files ---- */

static void http_find(struct nginx *in, const struct yaml_node *directive, void *data)
{
    struct scope **scope = data;
    if (directive_is(directive, "http") && *scope == NULL) {
        *scope = emit_take(in->s->emit, sizeof **scope);
        if (*scope != NULL) {
            scope_read(in, *scope, NULL, directive_block(directive));
        }
    }
}

static void file_note(struct nginx *in, const struct yaml_node *directive, void *data)
{
    if (directive_is(directive, "http")) {
        struct scope *scope = emit_take(in->s->emit, sizeof *scope);
        if (scope != NULL) {
            scope_read(in, scope, NULL, directive_block(directive));
            block_each(in, directive_block(directive), http_note, scope);
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
        scope_read(in, scope, in->http, file->node);
        block_each(in, file->node, file_note, scope);
    }
}

/* Locations or settings without a server around them. */
static void piece_read(struct nginx *in, const struct object *file)
{
    struct server server = {.hit = {file->node, file->file}, .takes_others = true};
    struct scope scope;
    struct contents c = {0};
    in->s->file = file->file;
    block_each(in, file->node, proxies_note, &server);
    block_each(in, file->node, contents_note, &c);
    scope_read(in, &scope, NULL, file->node);
    const struct inside inside = {&server, &scope, LOCATION_DEPTH};
    if (c.pass.node != NULL) {
        route_read(in, &inside, NULL, &scope, &c);
    } else if (c.locations > 0) {
        block_each(in, file->node, location_read, (void *)&inside);
    } else {
        const struct from tries = setting_from(in, &scope, PROXY, NEXT_TRIES);
        const struct from on = setting_from(in, &scope, PROXY, NEXT_UPSTREAM);
        const struct from read = setting_from(in, &scope, PROXY, READ_TIMEOUT);
        uint64_t number = 0;
        bool counted = tries.node != NULL && number_read(in->s, &tries, directive_word(tries.node, 1), &number);
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
        includes_find(&in, files->at[i].node, LOCATION_DEPTH);
    }
    for (uint32_t i = 0; i < files->count; i++) {
        s->file = files->at[i].file;
        block_each(&in, files->at[i].node, http_find, &in.http);
    }
    for (uint32_t i = 0; i < files->count; i++) {
        if (!in.included[i]) {
            file_read(&in, &files->at[i]);
        }
    }
    if (in.upstreams.count > 0) {
        qsort(in.upstreams.at, in.upstreams.count, sizeof(struct upstream), upstream_order);
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
