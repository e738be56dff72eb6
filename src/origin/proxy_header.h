/* SPDX-License-Identifier: MIT */
#ifndef BECALM_ORIGIN_PROXY_HEADER_H
#define BECALM_ORIGIN_PROXY_HEADER_H

/* The header of the PROXY protocol, versions 1 and 2 (haproxy.org, proxy-protocol.txt), by which a load balancer that
 * passes bytes on names their client: read where clients connect, written for hosts that want it. */

#include "loop/address.h"

#define PROXY_HEADER_MAX 1024u /* with the extensions of version 2, which are skipped */

#define PROXY_HEADER_WRITTEN 108u /* room for one that we write */

enum proxy_header_result {
    PROXY_HEADER_MORE, /* so far it is one */
    PROXY_HEADER_BAD,
    PROXY_HEADER_DONE
};

/* Reads the first bytes of a connection. DONE: *length is how long the header is, and *peer the address that it names;
 * if it names none, as a health check of the balancer's own does, *peer stays. */
enum proxy_header_result proxy_header_read(const char *bytes, size_t count, size_t *length, union address_socket *peer);

/* Writes the header, in version 1 or 2, of a connection from one address to the other, and returns its length. If
 * `from` is a Unix socket, the header says that the connection was passed on from an unknown address. If only `to` is
 * unknown, it is written as zeroes. */
size_t proxy_header_write(uint32_t version, const union address_socket *from, const union address_socket *to,
                          char header[PROXY_HEADER_WRITTEN]);
/* The same of a connection that we make for ourselves. */
size_t proxy_header_write_local(uint32_t version, char header[PROXY_HEADER_WRITTEN]);

#endif
