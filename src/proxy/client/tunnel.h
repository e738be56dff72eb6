/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_CLIENT_TUNNEL_H
#define BECALM_PROXY_CLIENT_TUNNEL_H

/* Bytes both ways, unread: after CONNECT, and after 101. Of a websocket only the frames are counted, so that it gets a
 * close frame, 1001, both ways when the gateway ends, as soon as it is between two frames. Each direction waits for the
 * slower side, and holds at most one read of it. The call is over when the tunnel begins: it holds no slot of the
 * limit. Its places among maxTunnels and maxTunnelsPerHost are those that its exchange has taken. */

#include "client.h"

/* Answers the client, and makes a tunnel of its connection and the host's; it begins when the exchange is over. False:
 * no memory. */
bool tunnel_open(struct client *, const struct stream_tunnel *);

#endif
