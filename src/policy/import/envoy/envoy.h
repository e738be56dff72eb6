/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_ENVOY_H
#define BECALM_IMPORT_ENVOY_H

/* Functions that the files about Envoy share: envoy.c has routes, envoy_cluster.c clusters, envoy_dump.c Envoy's config
 * dump, envoy_filter.c the patches that Istio applies to it, envoy_listener.c listeners, envoy_tls.c the TLS of both
 * sides. */

#include "policy/import/dialect.h"

/* The addresses of a cluster that stand elsewhere: EDS, or a dump. */
struct envoy_assignment {
    struct envoy_assignment *next;
    const struct yaml_node *node;
    const char *file;
};

/* A cluster whose addresses are listed under another name (EDS). */
struct envoy_eds {
    struct envoy_eds *next;
    const char *name; /* that of the assignment */
    struct emit_target *service;
};

struct envoy {
    struct source *s;
    struct envoy_assignment *assignments;
    struct envoy_eds *eds;
};

/* Requests that come in, or go where they were sent to: clusters that Istio makes for itself. */
bool envoy_is_mesh_own(const char *cluster);

/* A cluster, with or without a name. */
void envoy_cluster_read(struct envoy *, const struct yaml_node *);

/* The rules of a cluster for calls, without its addresses. */
void envoy_cluster_rules(struct source *, struct emit_target *, const struct yaml_node *);

/* Remembers addresses; envoy_assignments_put() gives them to the clusters, once all of these are known. */
void envoy_assignment_keep(struct envoy *, const struct yaml_node *);
void envoy_assignments_put(struct envoy *);

/* http2_protocol_options of a listener or a cluster: its numbers are those of the whole policy. `streams`: the key of
 * its streams. */
void envoy_http2_read(struct source *, const struct from *options, const char *streams);

/* A transport_socket, or a tls_context: how the hosts of a service are called, and how clients come in. The second is
 * false where there is no TLS, and says whether HTTP/2 is offered by ALPN. */
struct listener;
void envoy_host_tls_read(struct source *, struct emit_target *service, const struct from *socket);
bool envoy_client_tls_read(struct source *, struct listener *, const struct from *socket, bool *offers_h2);

/* The address of a listener, and its protocols. */
void envoy_listener_read(struct source *, const struct yaml_node *listener);

/* A piece of a route or a cluster, without its surroundings. */
void envoy_piece_read(struct source *, struct emit_target *, const struct yaml_node *);

/* The settings of a filter or a transport socket: typed_config or, as Envoy's second version wrote it, config. NULL:
 * none. */
const struct yaml_node *envoy_config_of(const struct yaml_node *);

/* A file or a part of one, recognised by its keys. */
void envoy_anything_read(struct envoy *, const struct yaml_node *, unsigned depth);

/* /config_dump of Envoy's administration. */
bool envoy_dump_is(const struct yaml_node *);
void envoy_dump_read(struct envoy *, const struct yaml_node *dump, unsigned depth);

/* Istio's EnvoyFilter. */
bool envoy_filter_is(const struct object *);
void envoy_filter_read(struct source *, const struct object *);

#endif
