/* SPDX-License-Identifier: MIT */
#ifndef BECALM_IMPORT_ISTIO_H
#define BECALM_IMPORT_ISTIO_H

/* Functions that the files about Istio share: istio.c has VirtualService and DestinationRule, istio_gateway.c Gateway.
 */

#include "dialect.h"

/* Istio's Gateway, and not that of the Gateway API. */
bool istio_gateway_is(const struct object *);
void istio_gateway_read(struct source *, const struct yaml_node *spec);

#endif
