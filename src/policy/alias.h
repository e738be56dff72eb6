/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_ALIAS_H
#define BECALM_POLICY_ALIAS_H

/* Short names of services in Kubernetes: whoever matches payment.shop.svc.cluster.local also means payment.shop.svc,
 * payment.shop and payment, which is what programs write in pods. So does a service without a match whose hosts have
 * such a name. A name that somebody writes is his alone, and one that is short for two is nobody's. */

#include "loader.h"

/* Of all services of the config. False: no memory. */
bool aliases_add(struct loader *);

#endif
