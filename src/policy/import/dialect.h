/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_DIALECT_H
#define BECALM_IMPORT_DIALECT_H

/* One function per foreign dialect, each in its file. All documents of all files are given together, because a service
 * may be spread over several of them. */

#include "source.h"

struct documents {
    struct yaml_tree *const *tree;
    uint32_t count;
};

void istio_read(struct source *, const struct documents *);
void grpc_read(struct source *, const struct documents *);
void envoy_read(struct source *, const struct documents *);
void gateway_api_read(struct source *, const struct documents *);

/* Calls `each` for every Kubernetes object of a document, and for the items of a List. `kind` is "" if it has none. */
typedef void object_fn(void *data, const struct yaml_node *object, const char *kind);
void objects_each(struct source *, const struct yaml_node *root, object_fn *each, void *data);

#endif
