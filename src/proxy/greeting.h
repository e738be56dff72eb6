/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_GREETING_H
#define BECALM_PROXY_GREETING_H

/* A connection that has come in by a listener with `proxyProtocol`, until it has said whose it is: then it is a client
 * like others, with that address, and speaks TLS or HTTP next. Who says nothing in headerTimeout, or something else, is
 * closed. */

#include "loop/address.h"

struct worker;

/* What happens then, and by which listener it came. */
struct greeting_plan {
    void (*done)(struct worker *, int fd, const union address_socket *peer, uint16_t door); /* takes over fd */
    uint16_t door;
};

/* Takes over a connected descriptor. */
void greeting_begin(struct worker *, int fd, const union address_socket *peer, const struct greeting_plan *);
/* Closes all of a worker's. */
void greetings_close(struct worker *);

#endif
