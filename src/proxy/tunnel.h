/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_TUNNEL_H
#define BECALM_PROXY_TUNNEL_H

/* Bytes both ways, unread: after CONNECT, and after 101 of a websocket. Each direction waits for the slower side, and
 * holds at most one read of it. The call is over when the tunnel opens: it holds no slot of the limit. */

#include <stddef.h>
#include <stdint.h>

struct attempt;
struct exchange;
struct tunnel;

/* The attempt's connection becomes the far end; the exchange has a client. `bytes` is a 101 answer's head and what came
 * behind it; NULL: the answer to a CONNECT. */
void tunnel_open(struct exchange *, struct attempt *, const char *bytes, size_t length);

/* The client's socket can do something. */
void tunnel_ready(struct tunnel *, uint32_t events);

void tunnel_free(struct tunnel *);

uint64_t tunnel_held(const struct tunnel *); /* bytes of its buffer */

#endif
