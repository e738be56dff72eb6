/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_HAPROXY_INTERNAL_H
#define BECALM_IMPORT_HAPROXY_INTERNAL_H

/* Functions that the files about haproxy.cfg share: section.c has sections with their inherited and own values,
 * backend.c the servers of a backend, calls.c the rules for calls, condition.c conditions after `if`, haproxy.c
 * frontends. */

#include "../dialect.h"
#include "../directives.h"
#include "../route.h"

#define MATCHES_MAX 64u /* that one condition may mean */

/* A line, and the file that it stands in. */
struct line {
    const struct yaml_node *node; /* NULL: it is not written */
    const char *file;
};

/* The settings for calls of a section, its own or from its defaults. */
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
    struct emit_target *service; /* a backend that is in use; NULL: no frontend uses it yet */
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
    bool any_taken; /* an earlier frontend takes all remaining requests */
};

/* The alternatives of a condition: any of these. */
struct choices {
    struct route_match match[MATCHES_MAX];
    uint32_t count;
    bool impossible; /* a policy can't say it */
};

/* ---- section.c ---- */

/* Where a line stands; the file of the source is the line's from now on. */
struct from haproxy_from(const struct haproxy *, const struct line *, const char *path, const char *remark);

/* 5000, 5s, 10m, 1h, 1d, 100us: without a unit milliseconds. False: it is none, and reported. */
bool haproxy_time(struct source *, const struct from *, const struct yaml_node *word, becalm_ns *);

/* The word after the given word of the line; NULL: the line does not have the word. */
const struct yaml_node *haproxy_behind(const struct yaml_node *line, const char *word);
bool haproxy_has(const struct yaml_node *line, const char *word);

/* A parameter of a server, or of the default-server above it. */
const struct yaml_node *haproxy_parameter(const struct section *, const struct yaml_node *server, const char *word);

/* A number of a server's line; `otherwise`, if it is not written, or is none, which is an error. */
uint64_t haproxy_count(struct source *, const struct section *, const struct yaml_node *server, const char *word,
                       uint64_t otherwise);

void haproxy_file(struct haproxy *, const struct object *); /* reads the sections of a file */
bool haproxy_is_http(const struct section *);

/* ---- backend.c ---- */

/* A frontend uses this backend: it becomes a service. */
void haproxy_backend_use(struct haproxy *, struct section *);
/* Notes a line of a section that has no equivalent in a policy. */
void haproxy_backend_aside(struct haproxy *, const struct section *, const struct yaml_node *line);

/* ---- calls.c ---- */

/* Retries and timeouts of a backend. */
void haproxy_rules_put(struct haproxy *, struct section *, struct emit_target *rules);

/* ---- condition.c ---- */

/* Reads the condition after `if`: adjacent tests must all hold; || and `or` separate alternatives. `at` is its first
 * word. */
void haproxy_condition(struct haproxy *, struct choices *, const struct section *, const struct yaml_node *line,
                       uint32_t at);
void haproxy_choice_add(struct choices *, const struct route_match *);

#endif
