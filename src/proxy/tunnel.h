/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_TUNNEL_H
#define BECALM_PROXY_TUNNEL_H

/* Bytes both ways, unread: after CONNECT, and after 101. Of a websocket only the frames are counted. Each direction
 * waits for the slower side, and holds at most one read of it. The call is over when the tunnel opens: it holds no slot
 * of the limit. */

#include <becalm/http.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct attempt;
struct exchange;
struct tunnel;
struct head;

/* The attempt's connection becomes the far end; the exchange has a client. `head` is a 101 answer's, and
 * `behind` came behind it; NULL: the answer to a CONNECT. */
void tunnel_open(struct exchange *, struct attempt *, const struct head *head, struct becalm_text behind);

/* The client's socket can do something. */
void tunnel_ready(struct tunnel *, uint32_t events);

/* The gateway ends soon (worker->leaving): a websocket gets a close frame, 1001, both ways, as soon as it is between
 * two frames. May end the client. */
void tunnel_leave(struct tunnel *);

void tunnel_free(struct tunnel *);

/* Places: at most maxTunnels in all, and maxTunnelsPerHost. Taken when a request asks for a tunnel, given back with its
 * end or the tunnel's. False: there is none. */
bool tunnel_place_take(struct exchange *);
void tunnel_place_give(struct exchange *);
bool tunnel_host_take(struct attempt *);
void tunnel_host_give(struct attempt *);

/* Does it wait for one side only: for the far end to take what was sent, or because the other has ended? */
bool tunnel_lopsided(const struct tunnel *);

uint64_t tunnel_held(const struct tunnel *); /* bytes of its buffer */

#endif
