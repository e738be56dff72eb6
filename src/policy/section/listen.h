/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_SECTION_LISTEN_H
#define BECALM_POLICY_SECTION_LISTEN_H

/* Reads `listen` and `admin`: an address, or a mapping with an address, TLS and protocols; and `hosts` and `tls` of a
 * service. All functions return false after an error that was reported, or without memory. */

#include "policy/loader.h"

/* The role in which a service is called: that of its listeners, which must agree. */
enum becalm_role listen_service_role(struct loader *, const struct becalm_service *);
/* Puts the listeners of all services behind those of the settings. `written`: where `listen` stands; NULL: nowhere. */
bool listen_gather(struct loader *, const struct yaml_node *written);

/* The values of these keys: `listen`, `admin` as a mapping, `certificates` and `protocols`. */
loader_nested_fn listen_load_nested;

/* Removes https:// from the hosts, sets `tls` of the service accordingly and checks it. `node` is the service's
 * mapping. False: no memory. */
bool listen_settle_hosts(struct loader *, struct becalm_service *, const struct yaml_node *node);

#endif
