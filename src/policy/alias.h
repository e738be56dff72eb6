/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_ALIAS_H
#define BECALM_POLICY_ALIAS_H

/* Short names of services in Kubernetes: a service that matches payment.shop.svc.cluster.local also matches
 * payment.shop.svc, payment.shop and payment, as programs in pods write it. So does a service without a match whose
 * hosts have a name of this form. A name that a service writes itself belongs to that service, and a short name of two
 * services belongs to neither. */

#include "loader.h"

/* Of all services of the config. False: no memory. */
bool aliases_add(struct loader *);

#endif
