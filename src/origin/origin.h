/* SPDX-License-Identifier: MIT */
#ifndef BECALM_ORIGIN_ORIGIN_H
#define BECALM_ORIGIN_ORIGIN_H

/* Where a request came from: the peer's address, its protocol, and whether the gateway trusts the peer's fields about
 * its own client. */

#include "loop/address.h"

#define ORIGIN_IP_BYTES 16u

/* An address of IPv6, or of IPv4 as IPv6 has it (::ffff:10.0.0.1). All zero: a Unix socket's, which has none. */
struct origin_ip {
    unsigned char bytes[ORIGIN_IP_BYTES];
};

struct origin {
    struct origin_ip ip;
    bool tls;
    bool trusted;
    uint16_t door; /* by which listener it came: an index in snapshot->door */
};

void origin_ip_set(struct origin_ip *, const union address_socket *);

/* The same as a socket's address, without a port; AF_UNIX if there is none. */
void origin_ip_socket(const struct origin_ip *, union address_socket *);

#endif
