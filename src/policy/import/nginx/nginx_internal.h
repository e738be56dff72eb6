/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_NGINX_INTERNAL_H
#define BECALM_IMPORT_NGINX_INTERNAL_H

/* Functions that the files about nginx.conf share: block.c has blocks, includes and inherited values, upstream.c the
 * targets of proxy_pass, nginx.c locations and servers. */

#include "../dialect.h"
#include "../directives.h"
#include "../nginx_on.h"
#include "../route.h"

#define INCLUDE_DEPTH  8u
#define LOCATION_DEPTH 16u
#define KEPT_MAX       32u /* variables and named locations of one block: more than real files have */

enum module { PROXY, GRPC, MODULES };

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

/* The values of a block, its own or inherited. */
struct scope {
    const struct scope *outer;
    struct hit hit[MODULES][SETTINGS];
    struct kept variable[KEPT_MAX];
    uint32_t variables;
};

struct upstream {
    const char *name;
    struct hit hit;
    struct emit_target *service; /* NULL: no location passes requests to it yet */
    uint32_t hosts;
    bool plain; /* a request is passed to it without TLS */
    bool tls;   /* or with it */
};

struct server {
    struct hit hit; /* the directive */
    const struct scope *outer;
    bool proxies;      /* a location of it passes requests on */
    bool shares;       /* one of its sockets is another server's as well, which proxies */
    bool takes_others; /* the default server of a socket, which gets requests for unknown hosts */
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
    bool repeats; /* non_idempotent is written somewhere: all other locations then write that they do not have it */
    bool others_taken;
};

struct passed {
    struct emit_target *service; /* NULL: unknown, which was reported */
    uint32_t hosts;
    const char *uri; /* that takes the place of the location's prefix; "": the path stays as it is */
};

typedef void nginx_directive_fn(struct nginx *, const struct yaml_node *directive, void *data);

extern const char *const nginx_module_prefix[MODULES];
extern const char *const nginx_setting_name[SETTINGS];

/* A place at the end of a pile; NULL for lack of memory. */
void *nginx_pile_add(struct nginx *in, struct pile *pile, size_t size);

struct hit nginx_hit_here(const struct nginx *in, const struct yaml_node *node);
struct from nginx_from_of(const struct yaml_node *directive, const char *remark);

/* Calls `each` for every directive of a block, those of included files in their place. */
void nginx_block_each(struct nginx *in, const struct yaml_node *block, nginx_directive_fn *each, void *data);

/* Marks the files that a block includes. */
void nginx_includes_find(struct nginx *in, const struct yaml_node *block, unsigned depth);

/* A number of a directive; false: there is none, or an error was reported. */
bool nginx_number_read(struct source *s, const struct from *from, const struct yaml_node *word, uint64_t *out);

/* The value of name=value among the words; NULL: there is none. And a word by itself. */
const char *nginx_parameter(const struct yaml_node *directive, const char *name);
bool nginx_has_word(const struct yaml_node *directive, const char *word);

/* Reads the values of a block over those of the block around it. */
void nginx_scope_read(struct nginx *in, struct scope *scope, const struct scope *outer, const struct yaml_node *block);

/* A text with the variables that are set in it; NULL: it has another one. */
const char *nginx_variables_put(struct nginx *in, const struct scope *scope, const char *text);

/* By name, for qsort. */
int nginx_upstream_order(const void *a, const void *b);

/* Where a proxy_pass or grpc_pass leads. */
struct passed nginx_pass_read(struct nginx *in, const struct scope *scope, const struct yaml_node *pass);

#endif
