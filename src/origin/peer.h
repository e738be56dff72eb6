/* SPDX-License-Identifier: MIT */
#ifndef BECALM_ORIGIN_PEER_H
#define BECALM_ORIGIN_PEER_H

/* The identity of a client, for everything that is divided among clients: 64 bits that stand for an IPv4 address, a
 * network of IPv6 with 64 bits (a client with one address there has all of them), or a user of this machine at a Unix
 * socket. An IPv4 address inside of an IPv6 one is IPv4. The bits are SipHash-2-4 (Aumasson, Bernstein 2012) with a key
 * that each process draws, so that an attacker can't choose addresses or names that collide in a table. The bits are
 * valid in one process and are never shown. */

#include "loop/address.h"

#include <becalm/http.h>

#define PEER_NOBODY UINT64_C(0) /* no identity is 0 */

struct peer_key {
    uint64_t half[2];
};

/* Where the system gives no random bytes the key is made of the clock and the process: harder to guess than nothing. */
void peer_key_draw(struct peer_key *);

/* The peer of a connected descriptor. The descriptor is asked only at a Unix socket, for the user at its other end
 * (SO_PEERCRED); where the system does not tell, they are all one. */
uint64_t peer_of_socket(const struct peer_key *, int fd, const union address_socket *);

/* A client that is identified by a name, such as the value of a header. Never equal to an address. */
uint64_t peer_of_name(const struct peer_key *, struct becalm_text);

/* SipHash-2-4 itself. */
uint64_t peer_hash(const struct peer_key *, const void *bytes, size_t length);

#endif
