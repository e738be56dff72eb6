/* SPDX-License-Identifier: MIT */
#include "nginx_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- upstreams ---- */

/* The combined settings of an upstream's servers. */
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
    return value_address_of_host(address) ? address : NULL;
}

static void member_read(struct nginx *in, const struct yaml_node *directive, void *data)
{
    static const char balances[] = "Becalm picks two hosts at random and uses the less busy one";
    static const char *const ways[] = {"ip_hash", "hash", "random", "least_conn", "least_time", "sticky"};
    struct members *m = data;
    struct source *s = in->s;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (directive_is(directive, ways[i])) {
            const struct from from = nginx_from_of(directive, NULL);
            source_aside(s, m->upstream->service, &from, balances);
        }
    }
    if (!directive_is(directive, "server") || nginx_has_word(directive, "down")) {
        return;
    }
    const struct from from = {directive, emit_text(s->emit, "server %.64s", directive_text(directive, 1)), NULL};
    const char *address = address_of(s, directive_text(directive, 1));
    const char *weight = nginx_parameter(directive, "weight");
    if (nginx_has_word(directive, "backup")) {
        source_no_equal(s, m->upstream->service, &from, "Becalm has no backup hosts; its host is left out");
        return;
    }
    if (address == NULL) {
        source_no_equal(s, m->upstream->service, &from,
                        "it is no address that a policy can have; the host is left out");
        return;
    }
    weight = weight == NULL ? "1" : weight;
    m->weight = m->weight == NULL ? weight : m->weight;
    m->uneven = m->uneven == NULL && strcmp(weight, m->weight) != 0 ? directive : m->uneven;
    bool fails = nginx_parameter(directive, "max_fails") != NULL || nginx_parameter(directive, "fail_timeout") != NULL;
    m->fails = m->fails == NULL && fails ? directive : m->fails;
    const char *most = nginx_parameter(directive, "max_conns");
    uint64_t number = 0;
    bool limited = most != NULL && value_integer(most, &number) && number > 0 && number <= UINT32_MAX;
    m->connections = m->connections == NULL && limited ? directive : m->connections;
    m->connections_sum += limited ? number : 0;
    m->unlimited = m->unlimited || !limited;
    in->names = in->names || value_address_is_name(address);
    source_list_add(&m->hosts, address);
}

/* max_fails failures within fail_timeout take a server out for fail_timeout. nginx counts the failures that
 * proxy_next_upstream lists, Becalm counts every 5xx, so that one failure (nginx's default) would be far too few here.
 */
static void fails_put(struct nginx *in, const struct members *m)
{
    struct source *s = in->s;
    struct emit_target *service = m->upstream->service;
    const char *times = nginx_parameter(m->fails, "max_fails");
    const char *pause = nginx_parameter(m->fails, "fail_timeout");
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
    nginx_block_each(in, directive_block(u->hit.node), member_read, &m);
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

int nginx_upstream_order(const void *a, const void *b)
{
    return strcmp(((const struct upstream *)a)->name, ((const struct upstream *)b)->name);
}

static struct upstream *upstream_find(const struct nginx *in, const char *name)
{
    const struct upstream wanted = {.name = name};
    return in->upstreams.count == 0
               ? NULL
               : bsearch(&wanted, in->upstreams.at, in->upstreams.count, sizeof wanted, nginx_upstream_order);
}

/* ---- where a request is passed to ---- */

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
        source_put_text(
            in->s, service, key, text,
            &(struct from){hit->node,
                           emit_text(in->s->emit, "%s%s", nginx_module_prefix[module], nginx_setting_name[setting]),
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
        source_put_word(
            in->s, service, "tls.verify", "full",
            &(struct from){verify, emit_text(in->s->emit, "%sssl_verify", nginx_module_prefix[module]), NULL});
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
struct passed nginx_pass_read(struct nginx *in, const struct scope *scope, const struct yaml_node *pass)
{
    struct source *s = in->s;
    const struct from from = nginx_from_of(pass, NULL);
    const char *text = nginx_variables_put(in, scope, directive_text(pass, 1));
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
    enum module module = directive_is(pass, "grpc_pass") ? GRPC : PROXY;
    if (module == GRPC) {
        source_put_h2(s, to.service, &from);
    }
    if (tls) {
        tls_put(in, scope, module, to.service, &from);
    }
    return to;
}
