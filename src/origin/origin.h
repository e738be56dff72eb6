/* SPDX-License-Identifier: MIT */
#ifndef BECALM_ORIGIN_ORIGIN_H
#define BECALM_ORIGIN_ORIGIN_H

/* Where a request came from: the address of who asked, what was spoken on the way, and whether we believe what that
 * peer says about others. */

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
