/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_ALIAS_H
#define BECALM_POLICY_ALIAS_H

/* Short names of services in Kubernetes: a service that matches payment.shop.svc.cluster.local also matches
 * payment.shop.svc, payment.shop and payment, which is what programs write in pods. So does a service without a match
 * whose hosts have such a name. A name that a service writes is its own, and a name that is short for two services
 * belongs to neither. */

#include "loader.h"

/* Of all services of the config. False: no memory. */
bool aliases_add(struct loader *);

#endif
