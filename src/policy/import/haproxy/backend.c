/* SPDX-License-Identifier: MIT */
#include "haproxy_internal.h"

#include <string.h>

#define ERROR_LIMIT 10u /* of observe */
#define INTER       (2 * BECALM_S)
#define RISE        2u

/* host:port, [v6]:port, a path; NULL: a policy can't say it. */
static const char *address_of(struct source *s, const char *text)
{
    static const char *const families[] = {"ipv4@", "ipv6@", "tcp@", "tcp4@", "tcp6@"};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        size_t length = strlen(families[i]);
        text += strncmp(text, families[i], length) == 0 ? length : 0;
    }
    if (strncmp(text, "unix@", 5) == 0 || text[0] == '/') {
        text = emit_text(s->emit, "unix:%s", text[0] == '/' ? text : text + 5);
    }
    return value_address_of_host(text) ? text : NULL;
}

/* The combined settings of a backend's servers. */
struct members {
    struct source_list hosts;
    const char *weight;
    const struct yaml_node *uneven;
    const struct yaml_node *observed; /* the first that is observed */
    const struct yaml_node *checked;
    const struct yaml_node *most; /* the first with a maxconn */
    uint64_t most_sum;
    uint64_t queue_sum;
    bool unlimited;
    const struct yaml_node *tls; /* the first with `ssl` */
    uint32_t with_tls;
    const struct yaml_node *h2; /* the first with `proto h2` */
    uint32_t with_h2;
};

static void server_read(struct haproxy *in, struct section *section, const struct yaml_node *server, struct members *m)
{
    struct source *s = in->s;
    bool template = directive_is(server, "server-template");
    const char *name = directive_text(server, 1);
    const char *text = directive_text(server, template ? 3 : 2);
    const struct from from = {server, emit_text(s->emit, "server %.64s", name), NULL};
    const char *address = address_of(s, text);
    if (haproxy_has(server, "disabled")) {
        return;
    }
    if (haproxy_has(server, "backup")) {
        source_no_equal(s, section->service, &from, "Becalm has no backup hosts; its host is left out");
        return;
    }
    if (address == NULL) {
        source_no_equal(
            s, section->service, &from,
            emit_text(s->emit, "\"%.64s\" is no address that a policy can have; the host is left out", text));
        return;
    }
    const struct yaml_node *weight = haproxy_parameter(section, server, "weight");
    const char *share = weight == NULL ? "1" : weight->text;
    m->weight = m->weight == NULL ? share : m->weight;
    m->uneven = m->uneven == NULL && strcmp(share, m->weight) != 0 ? server : m->uneven;
    m->observed = m->observed == NULL && haproxy_parameter(section, server, "observe") != NULL ? server : m->observed;
    m->checked = m->checked == NULL && haproxy_parameter(section, server, "check") != NULL ? server : m->checked;
    uint64_t most = haproxy_count(s, section, server, "maxconn", 0);
    m->most = m->most == NULL && most > 0 ? server : m->most;
    m->most_sum += most;
    m->queue_sum += haproxy_count(s, section, server, "maxqueue", 0);
    m->unlimited = m->unlimited || most == 0;
    bool tls = haproxy_has(server, "ssl") || haproxy_has(section->settings.default_server.node, "ssl");
    m->tls = m->tls == NULL && tls ? server : m->tls;
    m->with_tls += tls;
    bool h2 = yaml_is(haproxy_parameter(section, server, "proto"), "h2");
    m->h2 = m->h2 == NULL && h2 ? server : m->h2;
    m->with_h2 += h2;
    if (template) {
        source_aside(s, section->service, &from, "each address of the name is a host");
    }
    source_list_add(&m->hosts, address);
}

/* `ssl` of the servers: verified, unless it says `verify none`. */
static void tls_put(struct source *s, struct section *section, const struct members *m)
{
    static const struct {
        const char *word;
        const char *key;
    } words[] = {{"ca-file", "tls.ca"}, {"verifyhost", "tls.serverName"}, {"crt", "tls.cert"}};
    const struct yaml_node *verify = haproxy_parameter(section, m->tls, "verify");
    const struct from ssl = {m->tls, "ssl", NULL};
    if (m->with_tls != m->hosts.count) {
        source_no_equal(s, section->service, &ssl, "all hosts of a service are called with TLS, or none");
    }
    source_put_word(s, section->service, "tls.verify",
                    verify != NULL && strcmp(verify->text, "none") == 0 ? "none" : "full", &ssl);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const struct yaml_node *value = haproxy_parameter(section, m->tls, words[i].word);
        if (value != NULL) {
            source_put_text(s, section->service, words[i].key, value->text,
                            &(struct from){m->tls, words[i].word, NULL});
        }
        if (value != NULL && strcmp(words[i].word, "crt") == 0) { /* one file has both */
            source_put_text(s, section->service, "tls.key", value->text, &(struct from){m->tls, words[i].word, NULL});
        }
    }
}

/* observe layer7 error-limit 10 on-error mark-down: so many errors in a row take a server out, until two checks, 2 s
 * apart, have found it well. Any other on-error only makes health checks of it. */
static void observed_put(struct haproxy *in, struct section *section, const struct members *m)
{
    struct source *s = in->s;
    const struct yaml_node *then = haproxy_parameter(section, m->observed, "on-error");
    const struct from limit = {m->observed, "error-limit", "every 5xx counts here"};
    const struct from rise = {m->observed, "inter", "rise checks"};
    becalm_ns inter = INTER;
    if (then == NULL || strcmp(then->text, "mark-down") != 0) {
        source_aside(
            s, section->service, &(struct from){m->observed, "observe", NULL},
            "its errors only fail health checks, and there are none; half of at least five results take a host out");
        return;
    }
    source_put_integer(s, section->service, "outlier.consecutive5xxErrors",
                       haproxy_count(s, section, m->observed, "error-limit", ERROR_LIMIT), &limit);
    const struct yaml_node *word = haproxy_parameter(section, m->observed, "inter");
    if (word == NULL || haproxy_time(s, &rise, word, &inter)) {
        uint64_t checks = haproxy_count(s, section, m->observed, "rise", RISE);
        source_put_duration(s, section->service, "outlier.baseEjectionTime", inter * (checks > 1000 ? 1000 : checks),
                            &rise);
    }
}

/* maxconn: a server gets this many requests at once, and further requests wait in its queue for `timeout queue`. */
static void limit_put(struct haproxy *in, struct section *section, const struct members *m)
{
    struct source *s = in->s;
    const struct from most = {m->most, "maxconn", "of all servers together"};
    becalm_ns wait = 0;
    if (m->unlimited) {
        source_no_equal(s, section->service, &(struct from){m->most, "maxconn", NULL},
                        "a limit holds for all hosts of a service, and not all servers have one");
        return;
    }
    source_put_word(s, section->service, "limit.kind", "fixed", &most);
    source_put_integer(s, section->service, "limit.max", m->most_sum, &most);
    if (m->queue_sum > 0) {
        source_put_integer(s, section->service, "gate.maxQueue", m->queue_sum,
                           &(struct from){m->most, "maxqueue", "of all servers together"});
    }
    const struct line *line =
        section->settings.queue.node != NULL ? &section->settings.queue : &section->settings.connect;
    const struct from queue =
        haproxy_from(in, line, line == &section->settings.queue ? "timeout queue" : "timeout connect",
                     line == &section->settings.queue ? NULL : "timeout queue is not written");
    if (queue.node != NULL && haproxy_time(s, &queue, directive_word(queue.node, 2), &wait) && wait > 0) {
        source_put_duration(s, section->service, "gate.maxQueueTime", wait, &queue);
    }
}

void haproxy_backend_aside(struct haproxy *in, const struct section *section, const struct yaml_node *line)
{
    static const struct {
        const char *first;
        const char *second; /* NULL: any */
        const char *why;
        bool warning;
    } rows[] = {
        {"http-request", "set-path", "Becalm passes paths on unchanged", true},
        {"http-request", "replace-path", "Becalm passes paths on unchanged", true},
        {"http-request", "replace-uri", "Becalm passes paths on unchanged", true},
        {"http-request", "set-uri", "Becalm passes paths on unchanged", true},
        {"reqrep", NULL, "Becalm passes paths on unchanged", true},
        {"use-server", NULL, "Becalm picks two hosts at random and uses the less busy one", true},
        {"http-request", "return", "requests are passed on, not answered", true},
        {"http-request", "redirect", "requests are passed on, not answered", true},
        {"redirect", NULL, "requests are passed on, not answered", true},
        {"http-request", "deny", "Becalm refuses no request by a condition", false},
        {"http-request", "auth", "Becalm asks no other service whether a request may pass", false},
        {"cookie", NULL, "Becalm picks two hosts at random and uses the less busy one", false},
        {"stick", NULL, "Becalm picks two hosts at random and uses the less busy one", false},
        {"dispatch", NULL, "hosts are those of `server`", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool second = rows[i].second == NULL || strcmp(directive_text(line, 1), rows[i].second) == 0;
        if (directive_is(line, rows[i].first) && second) {
            const struct from from = {
                line,
                rows[i].second == NULL ? rows[i].first : emit_text(in->s->emit, "%s %s", rows[i].first, rows[i].second),
                NULL};
            (rows[i].warning ? source_no_equal : source_aside)(in->s, section->service, &from, rows[i].why);
        }
    }
}

void haproxy_backend_use(struct haproxy *in, struct section *section)
{
    struct source *s = in->s;
    const char *file = s->file;
    s->file = section->line.file;
    const struct yaml_node *block = directive_block(section->line.node);
    const struct from from = {section->line.node, emit_text(s->emit, "%s %.64s", section->kind, section->name), NULL};
    struct members m = {.hosts = {.emit = s->emit}};
    section->service = emit_service(s->emit, section->name, source_where(s, &from));
    for (uint32_t i = 0; block != NULL && i < block->count; i++) {
        const struct yaml_node *line = block->item[i];
        if (directive_is(line, "server") || directive_is(line, "server-template")) {
            server_read(in, section, line, &m);
        }
        haproxy_backend_aside(in, section, line);
    }
    section->hosts = m.hosts.count;
    if (m.hosts.count > 0) {
        source_put_list(s, section->service, "hosts", &m.hosts, &from);
    }
    if (m.uneven != NULL) {
        source_no_equal(s, section->service, &(struct from){m.uneven, "weight", NULL},
                        "requests are spread evenly over the hosts");
    }
    if (m.tls != NULL) {
        tls_put(s, section, &m);
    }
    if (m.h2 != NULL) {
        const struct from proto = {m.h2, "proto h2", NULL};
        source_put_h2(s, section->service, &proto);
        if (m.with_h2 != m.hosts.count) {
            source_no_equal(s, section->service, &proto, "all hosts of a service speak the same protocol");
        }
    }
    if (m.observed != NULL) {
        observed_put(in, section, &m);
    } else if (m.checked != NULL) {
        source_aside(s, section->service, &(struct from){m.checked, "check", NULL},
                     "hosts are judged by their answers, not by checks");
    }
    if (m.most != NULL) {
        limit_put(in, section, &m);
    }
    s->file = file;
}
