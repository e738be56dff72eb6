/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_DIALECT_H
#define BECALM_IMPORT_DIALECT_H

/* The configuration format of another product is one file that defines one `struct dialect`; import.c lists them. A
 * dialect recognises its objects and reads them into the model that all dialects share: services (emit_service), which
 * have hosts, limits and budgets, and routes to them (route_add), which say which requests go where and how they are
 * called. routes_write() turns the model into a policy. */

#include "source.h"

/* One thing of a file: a document, an item of a Kubernetes List, or an item of a list at the top. */
struct object {
    const char *file;
    const struct yaml_node *node;
    const char *kind;  /* of a Kubernetes object; "" if it has none */
    const char *group; /* the part of its apiVersion before the slash; "" if there is none */
};

/* All objects that a dialect recognised, of all files and in their order: a service may be spread over several files.
 */
struct objects {
    const struct object *at;
    uint32_t count;
};

/* The product's own defaults, as keys of the policy: each route gets these for keys that it does not set. */
struct unwritten {
    const char *key; /* NULL ends the table */
    const char *value;
    const char *remark;
};

/* Which of the routes that match a request is taken: the most specific one, as in Becalm, the first of its host, or the
 * first of all, with any host. */
enum route_order { ORDER_SPECIFIC, ORDER_FIRST, ORDER_FIRST_OF_ALL };

struct dialect {
    const char *word;    /* on the command line: "istio" */
    const char *product; /* the product that has this format, for sentences: "Istio" */
    const struct unwritten *unwritten;
    enum route_order order;
    bool host_decides; /* a request that fits no route of its host is refused, even if a route for other hosts would
                          take it */

    /* Does the object belong to this dialect? Asked in the order of import.c's list, so be exact: by kind and group, or
     * by a key that no other dialect has. Reports nothing. */
    bool (*recognises)(const struct object *);

    /* Reads all of them. Objects that no dialect recognises come here, too, if the dialect stands on the command line.
     */
    void (*read)(struct source *, const struct objects *);

    /* For a language that is not YAML; else NULL. is_text: does the text look like this language? parse: its tree; NULL
     * after an error. */
    bool (*is_text)(const char *text, size_t length);
    struct yaml_tree *(*parse)(const char *name, const char *text, size_t length, struct becalm_diags *);
    bool yaml; /* files may also be YAML: parse() is only for texts that is_text() accepts */

    bool beside; /* also reads its part of objects that belong to another dialect */
};

extern const struct dialect dialect_istio, dialect_grpc, dialect_envoy, dialect_gateway_api, dialect_nginx,
    dialect_haproxy, dialect_ingress_nginx, dialect_resilience4j, dialect_linkerd, dialect_kong, dialect_traefik,
    dialect_consul, dialect_dapr, dialect_aws, dialect_spring_gateway;

#endif
