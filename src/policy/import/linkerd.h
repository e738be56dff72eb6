/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_LINKERD_H
#define BECALM_IMPORT_LINKERD_H

/* Linkerd's annotations stand at objects of Kubernetes that other dialects read. */

#include "source.h"

/* Has the object an annotation retry.linkerd.io/... or timeout.linkerd.io/...? */
bool linkerd_annotated(const struct yaml_node *object);

/* Applies the annotations: maxRetries, retryOn, attemptTimeout, deadline. */
void linkerd_annotations(struct source *, struct emit_target *rules, const struct yaml_node *object);

#endif
