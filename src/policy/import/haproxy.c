/* SPDX-License-Identifier: MIT */
/* haproxy.cfg. A backend is a service, default_backend and use_backend of a frontend are routes to it, a listen section
 * is both. By HAProxy's manual, and by what HAProxy does: tests/e2e/test_import_live.py asks it. */
#include "dialect.h"
#include "directives.h"
#include "route.h"

#include <stdlib.h>
#include <string.h>

#define RETRIES     3u       /* what HAProxy does where nothing is written */
#define TURN_AROUND BECALM_S /* the wait before a retry at the same server; timeout connect, if that is shorter */
#define ERROR_LIMIT 10u      /* of observe */
#define INTER       (2 * BECALM_S)
#define RISE        2u
#define MATCHES_MAX 64u /* that one condition may mean */

/* A line, and the file that it stands in. */
struct line {
    const struct yaml_node *node; /* NULL: it is not written */
    const char *file;
};

/* What a section says of calls, or inherits from its defaults. */
struct settings {
    struct line mode;
    struct line retries;
    struct line retry_on;
    struct line redispatch; /* `option redispatch`, or `no option redispatch` */
    struct line connect;
    struct line server;
    struct line queue;
    struct line balance;
    struct line default_server;
    struct line no_retry; /* http-request disable-l7-retry */
};

struct section {
    const char *kind;
    const char *name; /* "" if it has none */
    struct line line;
    struct settings settings;
    struct emit_target *service; /* a backend that somebody leads to; NULL: nobody does yet */
    uint32_t hosts;
};

/* One match of a rule above: HAProxy takes the first rule that fits, Becalm the most exact. */
struct taken {
    struct taken *next;
    struct route_match match;
    struct route *route;
};

struct haproxy {
    struct source *s;
    struct section *section; /* frontends, backends and listens in their order */
    uint32_t count;
    uint32_t space;
    struct taken *taken;
    bool any_taken; /* a frontend above takes the requests that nobody else does */
};

static struct from from_line(const struct haproxy *in, const struct line *line, const char *path, const char *remark)
{
    if (line->node != NULL) {
        in->s->file = line->file;
    }
    return (struct from){line->node, path, remark};
}

/* ---- values ---- */

/* 5000, 5s, 10m, 1h, 1d, 100us: without a unit milliseconds. */
static bool time_read(struct source *s, const struct from *from, const struct yaml_node *word, becalm_ns *out)
{
    static const struct {
        const char *unit;
        becalm_ns length;
    } units[] = {{"us", BECALM_US},    {"ms", BECALM_MS},      {"", BECALM_MS},        {"s", BECALM_S},
                 {"m", 60 * BECALM_S}, {"h", 3600 * BECALM_S}, {"d", 86400 * BECALM_S}};
    const char *text = word == NULL ? "" : word->text;
    size_t digits = strspn(text, "0123456789");
    uint64_t number = 0;
    for (size_t i = 0; i < digits && number < UINT32_MAX; i++) {
        number = number * 10 + (uint64_t)(text[i] - '0');
    }
    for (size_t i = 0; digits > 0 && number < UINT32_MAX && i < sizeof units / sizeof *units; i++) {
        if (strcmp(text + digits, units[i].unit) == 0) {
            *out = number > BECALM_NEVER / 2 / units[i].length ? BECALM_NEVER / 2 : number * units[i].length;
            return true;
        }
    }
    source_error(s, word == NULL ? from->node : word, "bad-value",
                 "%s: \"%.64s\" is not a time; write it like 30s or 500ms", from->path, text);
    return false;
}

/* The word behind a word of the line; NULL: the line has no such word. */
static const struct yaml_node *behind(const struct yaml_node *line, const char *word)
{
    for (uint32_t i = 1; line != NULL && i < directive_words(line); i++) {
        if (strcmp(directive_text(line, i), word) == 0) {
            return directive_word(line, i + 1) == NULL ? directive_word(line, i) : directive_word(line, i + 1);
        }
    }
    return NULL;
}

static bool has_word(const struct yaml_node *line, const char *word)
{
    return behind(line, word) != NULL;
}

/* A parameter of a server, or of the default-server above it. */
static const struct yaml_node *parameter(const struct section *section, const struct yaml_node *server,
                                         const char *word)
{
    const struct yaml_node *own = behind(server, word);
    return own != NULL ? own : behind(section->settings.default_server.node, word);
}

/* A number of a server's line; `otherwise`, if it is not written, or is none, which is an error. */
static uint64_t count_of(struct source *s, const struct section *section, const struct yaml_node *server,
                         const char *word, uint64_t otherwise)
{
    const struct yaml_node *value = parameter(section, server, word);
    uint64_t number = 0;
    if (value == NULL) {
        return otherwise;
    }
    if (!value_integer(value->text, &number) || number > UINT32_MAX) {
        source_error(s, value, "bad-value", "%s: \"%.64s\" is not a number", word, value->text);
        return otherwise;
    }
    return number;
}

/* ---- sections ---- */

static void setting_note(struct settings *settings, const struct yaml_node *node, const char *file)
{
    const struct {
        const char *first;
        const char *second; /* NULL: any */
        struct line *line;
    } rows[] = {{"mode", NULL, &settings->mode},
                {"retries", NULL, &settings->retries},
                {"retry-on", NULL, &settings->retry_on},
                {"option", "redispatch", &settings->redispatch},
                {"timeout", "connect", &settings->connect},
                {"timeout", "server", &settings->server},
                {"timeout", "queue", &settings->queue},
                {"contimeout", NULL, &settings->connect},
                {"srvtimeout", NULL, &settings->server},
                {"balance", NULL, &settings->balance},
                {"default-server", NULL, &settings->default_server},
                {"http-request", "disable-l7-retry", &settings->no_retry}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool second = rows[i].second == NULL || strcmp(directive_text(node, 1), rows[i].second) == 0;
        if (strcmp(directive_text(node, 0), rows[i].first) == 0 && second) {
            *rows[i].line = (struct line){node, file};
        }
    }
    if (directive_is(node, "no") && strcmp(directive_text(node, 1), "option") == 0 &&
        strcmp(directive_text(node, 2), "redispatch") == 0) {
        settings->redispatch = (struct line){node, file};
    }
}

static void section_settings(struct section *section, const struct settings *outer)
{
    const struct yaml_node *block = directive_block(section->line.node);
    section->settings = outer == NULL ? (struct settings){0} : *outer;
    section->settings.no_retry = (struct line){0}; /* rules are not inherited */
    for (uint32_t i = 0; block != NULL && i < block->count; i++) {
        setting_note(&section->settings, block->item[i], section->line.file);
    }
}

static bool section_keep(struct haproxy *in, const struct section *section)
{
    if (in->count == in->space) { /* the arena keeps the old ones as well: twice the memory at most */
        uint32_t space = in->space == 0 ? 16 : in->space * 2;
        struct section *more = emit_take(in->s->emit, space * sizeof *more);
        if (more == NULL) {
            return false;
        }
        if (in->count > 0) {
            memcpy(more, in->section, in->count * sizeof *more);
        }
        in->section = more;
        in->space = space;
    }
    in->section[in->count++] = *section;
    return true;
}

/* `from NAME` names the defaults; else they are those above. */
static const struct settings *defaults_of(const struct section *defaults, uint32_t count, const struct yaml_node *line)
{
    const struct yaml_node *from = behind(line, "from");
    for (uint32_t i = count; from != NULL && i-- > 0;) {
        if (strcmp(defaults[i].name, from->text) == 0) {
            return &defaults[i].settings;
        }
    }
    return count == 0 ? NULL : &defaults[count - 1].settings;
}

static void file_read(struct haproxy *in, const struct object *file)
{
    static const char *const kinds[] = {"frontend", "backend", "listen"};
    uint32_t count = 0;
    for (uint32_t i = 0; i < file->node->count; i++) {
        count += directive_is(file->node->item[i], "defaults");
    }
    struct section *defaults = emit_take(in->s->emit, (count + 1) * sizeof *defaults);
    if (defaults == NULL) {
        return;
    }
    count = 0;
    in->s->file = file->file;
    for (uint32_t i = 0; i < file->node->count; i++) {
        const struct yaml_node *node = file->node->item[i];
        struct section section = {.line = {node, file->file}, .name = directive_text(node, 1)};
        if (directive_text(node, 0)[0] == '.') {
            source_no_equal(in->s, NULL, &(struct from){node, directive_text(node, 0), NULL},
                            "conditions are not looked at: what stands between them is read");
        }
        if (directive_is(node, "defaults")) {
            section_settings(&section, has_word(node, "from") ? defaults_of(defaults, count, node) : NULL);
            defaults[count++] = section;
        }
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            if (directive_is(node, kinds[k])) {
                section.kind = kinds[k];
                section_settings(&section, defaults_of(defaults, count, node));
                (void)section_keep(in, &section);
            }
        }
    }
}

static bool is_http(const struct section *section)
{
    return strcmp(directive_text(section->settings.mode.node == NULL ? section->line.node : section->settings.mode.node,
                                 1),
                  "http") == 0;
}

/* ---- backends ---- */

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
    return value_address(text) ? text : NULL;
}

/* What the servers of a backend say together. */
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
    if (has_word(server, "disabled")) {
        return;
    }
    if (has_word(server, "backup")) {
        source_no_equal(s, section->service, &from, "nobody is a backup; its host is left out");
        return;
    }
    if (address == NULL) {
        source_no_equal(
            s, section->service, &from,
            emit_text(s->emit, "\"%.64s\" is no address that a policy can say; the host is left out", text));
        return;
    }
    const struct yaml_node *weight = parameter(section, server, "weight");
    const char *share = weight == NULL ? "1" : weight->text;
    m->weight = m->weight == NULL ? share : m->weight;
    m->uneven = m->uneven == NULL && strcmp(share, m->weight) != 0 ? server : m->uneven;
    m->observed = m->observed == NULL && parameter(section, server, "observe") != NULL ? server : m->observed;
    m->checked = m->checked == NULL && parameter(section, server, "check") != NULL ? server : m->checked;
    uint64_t most = count_of(s, section, server, "maxconn", 0);
    m->most = m->most == NULL && most > 0 ? server : m->most;
    m->most_sum += most;
    m->queue_sum += count_of(s, section, server, "maxqueue", 0);
    m->unlimited = m->unlimited || most == 0;
    bool tls = has_word(server, "ssl") || has_word(section->settings.default_server.node, "ssl");
    m->tls = m->tls == NULL && tls ? server : m->tls;
    m->with_tls += tls;
    bool h2 = yaml_is(parameter(section, server, "proto"), "h2");
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
    const struct yaml_node *verify = parameter(section, m->tls, "verify");
    const struct from ssl = {m->tls, "ssl", NULL};
    if (m->with_tls != m->hosts.count) {
        source_no_equal(s, section->service, &ssl, "all hosts of a service are called with TLS, or none");
    }
    source_put_word(s, section->service, "tls.verify",
                    verify != NULL && strcmp(verify->text, "none") == 0 ? "none" : "full", &ssl);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const struct yaml_node *value = parameter(section, m->tls, words[i].word);
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
    const struct yaml_node *then = parameter(section, m->observed, "on-error");
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
                       count_of(s, section, m->observed, "error-limit", ERROR_LIMIT), &limit);
    const struct yaml_node *word = parameter(section, m->observed, "inter");
    if (word == NULL || time_read(s, &rise, word, &inter)) {
        uint64_t checks = count_of(s, section, m->observed, "rise", RISE);
        source_put_duration(s, section->service, "outlier.baseEjectionTime", inter * (checks > 1000 ? 1000 : checks),
                            &rise);
    }
}

/* maxconn: a server takes so many requests, and the others wait in its queue, for timeout queue. */
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
        from_line(in, line, line == &section->settings.queue ? "timeout queue" : "timeout connect",
                  line == &section->settings.queue ? NULL : "timeout queue is not written");
    if (queue.node != NULL && time_read(s, &queue, directive_word(queue.node, 2), &wait) && wait > 0) {
        source_put_duration(s, section->service, "gate.maxQueueTime", wait, &queue);
    }
}

static void backend_aside(struct haproxy *in, const struct section *section, const struct yaml_node *line)
{
    static const struct {
        const char *first;
        const char *second; /* NULL: any */
        const char *why;
        bool warning;
    } rows[] = {
        {"http-request", "set-path", "paths are passed on as they came", true},
        {"http-request", "replace-path", "paths are passed on as they came", true},
        {"http-request", "replace-uri", "paths are passed on as they came", true},
        {"http-request", "set-uri", "paths are passed on as they came", true},
        {"reqrep", NULL, "paths are passed on as they came", true},
        {"use-server", NULL, "of two hosts picked at random the less busy one is used", true},
        {"http-request", "return", "requests are passed on, not answered", true},
        {"http-request", "redirect", "requests are passed on, not answered", true},
        {"redirect", NULL, "requests are passed on, not answered", true},
        {"http-request", "deny", "nobody is turned away by a condition", false},
        {"http-request", "auth", "nobody is asked whether a request may pass", false},
        {"cookie", NULL, "of two hosts picked at random the less busy one is used", false},
        {"stick", NULL, "of two hosts picked at random the less busy one is used", false},
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

static void backend_use(struct haproxy *in, struct section *section)
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
        backend_aside(in, section, line);
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

/* ---- how it is called ---- */

struct conditions {
    struct source_list on;
    bool layer7; /* more than a connection that failed */
    bool application;
};

static void condition_add(struct haproxy *in, struct conditions *c, const struct from *from,
                          const struct yaml_node *word)
{
    static const struct {
        const char *theirs;
        const char *ours[5];
    } rows[] = {{"conn-failure", {"connect-failure", "refused-stream", NULL}},
                {"empty-response", {"reset", NULL}},
                {"junk-response", {"reset", NULL}},
                {"response-timeout", {"timeout", NULL}},
                {"0rtt-rejected", {NULL}},
                {"none", {NULL}}};
    const char *text = word->text;
    if (strcmp(text, "all-retryable-errors") == 0) {
        static const char *const all[] = {
            "connect-failure", "refused-stream", "reset", "timeout", "500", "502", "503", "504"};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            source_list_add(&c->on, all[i]);
        }
        c->layer7 = true;
        c->application = true;
        return;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(text, rows[i].theirs) == 0) {
            for (size_t k = 0; rows[i].ours[k] != NULL; k++) {
                source_list_add(&c->on, rows[i].ours[k]);
                c->layer7 = c->layer7 || i > 0;
            }
            return;
        }
    }
    if (strlen(text) == 3 && strspn(text, "0123456789") == 3 && text[0] >= '4' && text[0] <= '5') {
        source_list_add(&c->on, text);
        c->layer7 = true;
        c->application = c->application || strcmp(text, "500") == 0 || strcmp(text, "501") == 0;
        return;
    }
    source_error(in->s, word, "bad-value", "%s: \"%.64s\" is no condition of HAProxy", from->path, text);
}

/* What is retried, if anything is. */
static bool conditions_put(struct haproxy *in, struct section *section, struct emit_target *rules, uint64_t retries)
{
    struct source *s = in->s;
    struct conditions c = {.on = {.emit = s->emit}};
    const struct from off = from_line(in, &section->settings.no_retry, "http-request disable-l7-retry", NULL);
    const struct from from = from_line(in, &section->settings.retry_on, "retry-on", NULL);
    bool never = off.node != NULL && directive_words(off.node) == 2;
    for (uint32_t i = 1; from.node != NULL && i < directive_words(from.node); i++) {
        const struct yaml_node *word = directive_word(from.node, i);
        if (!never || strcmp(word->text, "conn-failure") == 0 || strcmp(word->text, "all-retryable-errors") == 0) {
            condition_add(in, &c, &from, word);
        }
    }
    if (from.node == NULL || (never && c.layer7)) {
        c = (struct conditions){.on = {.emit = s->emit}};
        source_list_add(&c.on, "connect-failure");
        source_list_add(&c.on, "refused-stream");
    }
    if (c.on.count == 0) {
        return false;
    }
    if (c.application && retries > 1) {
        source_no_equal(s, rules, &from,
                        "an error of the application is retried once per call, not as often as others");
    }
    bool spared = off.node != NULL && has_word(off.node, "METH_POST");
    if (c.layer7 && !spared) {
        source_aside(s, rules, &from, "POST and PATCH are repeated there; here with `idempotent: true` only");
    }
    if (off.node != NULL && !never && !spared) {
        source_no_equal(s, rules, &off, "its condition is not looked at");
    }
    if (from.node == NULL) {
        s->file = section->line.file;
    }
    const struct from unwritten = {section->line.node, "retry-on", "HAProxy's default: conn-failure"};
    source_put_list(s, rules, "retryOn", &c.on, from.node != NULL ? &from : &unwritten);
    return true;
}

/* A retry goes to the same server after a second, unless redispatch lets another one have it at once. */
static void waits_put(struct haproxy *in, struct section *section, struct emit_target *rules, const struct from *count)
{
    struct source *s = in->s;
    const struct line *line = &section->settings.redispatch;
    bool on = line->node != NULL && directive_is(line->node, "option");
    const char *balance =
        section->settings.balance.node == NULL ? "roundrobin" : directive_text(section->settings.balance.node, 1);
    bool turns = strcmp(balance, "roundrobin") == 0 || strcmp(balance, "static-rr") == 0;
    becalm_ns wait = TURN_AROUND;
    becalm_ns connect = 0;
    const struct from connecting = from_line(in, &section->settings.connect, "timeout connect", NULL);
    if (connecting.node != NULL && time_read(s, &connecting, directive_word(connecting.node, 2), &connect) &&
        connect > 0 && connect < wait) {
        wait = connect;
    }
    if (on && section->hosts > 1 && turns) {
        const struct from from = from_line(in, line, "option redispatch", "at once, at another server");
        source_put_duration(s, rules, "initialDelay", 0, &from);
        return;
    }
    s->file = section->line.file;
    if (section->hosts > 1) {
        const struct from from = {section->line.node, "retries", NULL};
        source_no_equal(s, rules, &from,
                        on ? "most of them go to the same server; here each goes to another host"
                           : "without `option redispatch` they go to the same server; here each goes to another host");
    }
    const struct from from = {count->node, "retries", "HAProxy waits so long before it asks a server again"};
    source_put_word(s, rules, "growth", "constant", &from);
    source_put_duration(s, rules, "initialDelay", wait, &from);
    source_put_word(s, rules, "jitter", "none", &from);
}

static void rules_put(struct haproxy *in, struct section *section, struct emit_target *rules)
{
    struct source *s = in->s;
    const char *file = s->file;
    uint64_t retries = RETRIES;
    becalm_ns time = 0;
    struct from from = from_line(in, &section->settings.retries, "retries", NULL);
    if (from.node != NULL) {
        (void)source_integer(s, &(struct from){directive_word(from.node, 1), "retries", NULL}, &retries);
    } else {
        s->file = section->line.file;
        from = (struct from){section->line.node, "retries", "HAProxy's default"};
    }
    const char *count_file = s->file;
    bool on = retries > 0 && conditions_put(in, section, rules, retries);
    if (!on && retries > 0) {
        from = from_line(in, &section->settings.retry_on, "retry-on", NULL);
        count_file = s->file;
        retries = 0;
    }
    s->file = count_file;
    source_put_integer(s, rules, "maxRetries", retries, &from);
    if (retries > 0) {
        waits_put(in, section, rules, &from);
    }
    from = from_line(in, &section->settings.connect, "timeout connect", NULL);
    if (from.node != NULL && time_read(s, &from, directive_word(from.node, directive_words(from.node) - 1), &time) &&
        time > 0) {
        source_put_duration(s, rules, "connectTimeout", time, &from);
    }
    from = from_line(in, &section->settings.server, "timeout server", NULL);
    if (from.node != NULL && time_read(s, &from, directive_word(from.node, directive_words(from.node) - 1), &time) &&
        time > 0) {
        source_put_duration(s, rules, "attemptTimeout", time, &from);
    }
    s->file = file;
}

/* ---- conditions of rules ---- */

/* What a condition may mean: any of these. */
struct choices {
    struct route_match match[MATCHES_MAX];
    uint32_t count;
    bool impossible; /* a policy can't say it */
};

/* What both ask for together; false: they ask for the same thing twice. */
static bool match_join(struct route_match *to, const struct route_match *other)
{
    const char **const ours[] = {&to->path, &to->prefix, &to->method, &to->header, &to->value, &to->host};
    const char *const theirs[] = {other->path, other->prefix, other->method, other->header, other->value, other->host};
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++) {
        if (theirs[i] != NULL && *ours[i] != NULL && strcmp(*ours[i], theirs[i]) != 0) {
            return false;
        }
        *ours[i] = theirs[i] != NULL ? theirs[i] : *ours[i];
    }
    return to->path == NULL || to->prefix == NULL;
}

/* a and b: each of the one with each of the other. */
static void choices_join(struct choices *to, const struct choices *other)
{
    struct choices all = {.impossible = to->impossible || other->impossible};
    for (uint32_t i = 0; i < to->count; i++) {
        for (uint32_t k = 0; k < other->count; k++) {
            struct route_match both = to->match[i];
            if (all.count == MATCHES_MAX || !match_join(&both, &other->match[k])) {
                all.impossible = true;
            } else {
                all.match[all.count++] = both;
            }
        }
    }
    *to = all;
}

static void choice_add(struct choices *to, const struct route_match *match)
{
    if (to->count < MATCHES_MAX) {
        to->match[to->count++] = *match;
    } else {
        to->impossible = true;
    }
}

/* The name in brackets of hdr(host): "" if there are none. */
static const char *argument_of(struct source *s, const char *sample)
{
    const char *open = strchr(sample, '(');
    const char *close = open == NULL ? NULL : strchr(open, ')');
    return close == NULL ? "" : emit_text(s->emit, "%.*s", (int)(close - open - 1), open + 1);
}

/* One test: a sample, flags, values. `at` is its first word, `end` one behind its last. */
static void test_read(struct haproxy *in, struct choices *out, const struct yaml_node *line, uint32_t at, uint32_t end)
{
    struct source *s = in->s;
    const char *sample = directive_text(line, at);
    const char *method = "";
    uint32_t value = at + 1;
    for (; value < end && directive_text(line, value)[0] == '-' && strcmp(directive_text(line, value), "--") != 0;
         value++) {
        if (strcmp(directive_text(line, value), "-m") == 0) {
            method = directive_text(line, ++value);
        } else if (strcmp(directive_text(line, value), "-i") != 0) {
            out->impossible = true; /* -f FILE and others */
        }
    }
    const char *name = strncmp(sample, "req.", 4) == 0 ? sample + 4 : sample;
    size_t length = strcspn(name, "(,");
    const char *base = emit_text(s->emit, "%.*s", (int)length, name);
    const char *argument = argument_of(s, name);
    bool plain = strcspn(name, ",") == strlen(name) || strcmp(name + strcspn(name, ","), ",lower") == 0;
    bool exact = method[0] == '\0' || strcmp(method, "str") == 0;
    bool host = (strcmp(argument, "host") == 0 || strcmp(argument, "Host") == 0) && strncmp(base, "hdr", 3) == 0;
    bool begins = strcmp(base, "path_beg") == 0 || (strcmp(base, "path") == 0 && strcmp(method, "beg") == 0);
    bool ends = strcmp(base, "hdr_end") == 0 || (strcmp(base, "hdr") == 0 && strcmp(method, "end") == 0);
    if (value >= end || !plain) {
        out->impossible = true;
    }
    for (; value < end; value++) {
        const char *text = directive_text(line, value);
        struct route_match m = {0};
        if (begins) {
            m.prefix = text;
        } else if (strcmp(base, "path") == 0 && exact) {
            m.path = text;
        } else if (strcmp(base, "method") == 0 && exact) {
            m.method = text;
        } else if (host && strcmp(base, "hdr") == 0 && exact) {
            m.host = text;
        } else if (host && ends && text[0] == '.') {
            m.host = emit_text(s->emit, "*%s", text);
        } else if (strcmp(base, "hdr") == 0 && exact && argument[0] != '\0' && !host) {
            m.header = argument;
            m.value = text;
        } else {
            out->impossible = true;
        }
        choice_add(out, &m);
    }
}

/* An ACL by its name: all its lines, each of which will do. */
static void acl_read(struct haproxy *in, struct choices *out, const struct section *section, const char *name)
{
    const struct yaml_node *block = directive_block(section->line.node);
    if (strncmp(name, "METH_", 5) == 0) {
        choice_add(out, &(struct route_match){.method = name + 5});
        return;
    }
    for (uint32_t i = 0; block != NULL && i < block->count; i++) {
        if (directive_is(block->item[i], "acl") && strcmp(directive_text(block->item[i], 1), name) == 0) {
            test_read(in, out, block->item[i], 2, directive_words(block->item[i]));
        }
    }
    out->impossible = out->impossible || out->count == 0;
}

/* What stands behind `if`: tests side by side must all hold, || and `or` part them. */
static void condition_read(struct haproxy *in, struct choices *out, const struct section *section,
                           const struct yaml_node *line, uint32_t at)
{
    struct choices all = {.match = {{0}}, .count = 1}; /* of the tests since the last `or` */
    uint32_t words = directive_words(line);
    for (; at < words; at++) {
        const char *word = directive_text(line, at);
        struct choices one = {0};
        if (strcmp(word, "||") == 0 || strcmp(word, "or") == 0) {
            for (uint32_t i = 0; i < all.count; i++) {
                choice_add(out, &all.match[i]);
            }
            out->impossible = out->impossible || all.impossible;
            all = (struct choices){.match = {{0}}, .count = 1};
            continue;
        }
        if (strcmp(word, "{") == 0) {
            uint32_t end = at + 1;
            while (end < words && strcmp(directive_text(line, end), "}") != 0) {
                end++;
            }
            test_read(in, &one, line, at + 1, end);
            at = end;
        } else if (word[0] == '!') {
            one.impossible = true;
        } else {
            acl_read(in, &one, section, word);
        }
        choices_join(&all, &one);
    }
    for (uint32_t i = 0; i < all.count; i++) {
        choice_add(out, &all.match[i]);
    }
    out->impossible = out->impossible || all.impossible;
}

/* ---- frontends ---- */

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
    if (section == NULL || !is_http(section)) {
        const struct from at = {from->node, emit_text(s->emit, "%s %.64s", from->path, name), NULL};
        source_no_equal(s, NULL, &at,
                        section != NULL ? "the backend is not HTTP; its requests are left out"
                        : strchr(name, '%') != NULL
                            ? "where it leads is decided for each request; its requests are left out"
                            : "there is no such backend in the files; its requests are left out");
        return NULL;
    }
    if (section->service == NULL) {
        backend_use(in, section);
    }
    struct route *route = route_add(s, section->service, NULL, from);
    rules_put(in, section, route_rules(route));
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
        choice_add(&choices, &(struct route_match){0});
    } else if (strcmp(directive_text(line, 2), "if") == 0) {
        condition_read(in, &choices, section, line, 3);
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

/* What takes the rest: default_backend, or the servers of a listen section. */
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
    if (!is_http(section)) {
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
            backend_aside(in, section, line);
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
        file_read(&in, &files->at[i]);
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
