/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_GREETING_H
#define BECALM_PROXY_GREETING_H

/* A new connection at a listener with `proxyProtocol`, until its PROXY protocol header has arrived. Then it becomes a
 * client with the address of the header, and speaks TLS or HTTP. A connection that sends no header within
 * headerTimeout, or something else, is closed. */

#include "loop/address.h"

#include <becalm/ns.h>

struct worker;

/* The function to call with the client's address, and the listener. */
struct greeting_plan {
    void (*done)(struct worker *, int fd, const union address_socket *peer, uint16_t door); /* takes over fd */
    uint16_t door;
};

/* Takes over a connected descriptor. */
void greeting_begin(struct worker *, int fd, const union address_socket *peer, const struct greeting_plan *);
/* Closes the oldest connection whose header has not arrived yet, also not unread, if it is at least this old. False:
 * there is none. */
bool greeting_give_up(struct worker *, becalm_ns age);
/* Closes all connections of a worker whose header has not arrived yet. */
void greetings_close(struct worker *);

#endif
