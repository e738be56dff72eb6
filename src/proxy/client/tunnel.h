/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_CLIENT_TUNNEL_H
#define BECALM_PROXY_CLIENT_TUNNEL_H

/* Copies bytes both ways without interpreting them: after CONNECT, and after 101. Only the frame boundaries of a
 * websocket are followed, so that both ends get a close frame, 1001, between two frames when the gateway ends. Each
 * direction waits for the slower end, and buffers at most one read. The call is over when the tunnel begins: it holds
 * no slot of the limit. The tunnel takes over its exchange's places among maxTunnels and maxTunnelsPerHost. */

#include "client.h"

/* Answers the client, and joins its connection and the host's to a tunnel. The tunnel begins when the exchange is over.
 * False: out of memory. */
bool tunnel_open(struct client *, const struct stream_tunnel *);

#endif
