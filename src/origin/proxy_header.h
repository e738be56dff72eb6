/* SPDX-License-Identifier: MIT */
#ifndef BECALM_ORIGIN_PROXY_HEADER_H
#define BECALM_ORIGIN_PROXY_HEADER_H

/* The header of the PROXY protocol, versions 1 and 2 (haproxy.org, proxy-protocol.txt), by which a load balancer that
 * passes bytes on says whose they are. */

#include "loop/address.h"

#define PROXY_HEADER_MAX 1024u /* with the extensions of version 2, which are skipped */

enum proxy_header_result {
    PROXY_HEADER_MORE, /* so far it is one */
    PROXY_HEADER_BAD,
    PROXY_HEADER_DONE
};

/* Reads what a connection begins with. DONE: *length is how long the header is, and *peer the address that it names; if
 * it names none, as a health check of the balancer's own does, *peer stays. */
enum proxy_header_result proxy_header_read(const char *bytes, size_t count, size_t *length, union address_socket *peer);

#endif
