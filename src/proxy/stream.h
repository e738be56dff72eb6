/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_STREAM_H
#define BECALM_PROXY_STREAM_H

/* The client's side of an exchange: one request and its answer on a client's connection, independent of the protocol.
 * HTTP/1 has one stream per connection, which client.c embeds. An exchange knows its client only through this
 * interface; docs/exchange.md lists the duties of a side, and the functions that it may call.
 *
 * The side reports bytes and events (exchange_open() and the functions below it in exchange.h), the exchange answers by
 * these functions. After `done` or `cut` a stream has no exchange any more. Its memory must stay valid until the end of
 * the event loop's turn, because the caller may look at it once more. */

#include "host/host_stream.h"

#include "message/draft.h"
#include "message/pieces.h"
#include "origin/origin.h"

struct exchange;
struct client_stream;

/* The far end of a tunnel. */
struct stream_tunnel {
    struct host_stream *host; /* the tunnel takes over its connection */
    uint64_t host_key; /* its place among maxTunnelsPerHost, which the tunnel takes over with that of maxTunnels */
    const struct head *head;   /* of a 101 answer; NULL: the answer to a CONNECT */
    struct becalm_text behind; /* bytes that came after it */
};

struct client_stream_ops {
    /* Writes the answer's head, and the part of its body that is here. False: the client can't be written to any more.
     * Bytes that the client does not take yet wait. */
    bool (*begin)(struct client_stream *, const struct draft *, const struct stream_part *);
    /* Writes more of its body. False: as for `begin`. */
    bool (*more)(struct client_stream *, const struct stream_part *);
    /* Writes a 1xx before the answer. False: as for `begin`. */
    bool (*interim)(struct client_stream *, const struct draft *);
    /* Does part of the answer wait for the client to read? Then nothing more is read from the host, until
     * exchange_unblocked(). */
    bool (*blocked)(const struct client_stream *);
    /* The host's side has made progress: the client's idle timeout starts again. */
    void (*moves)(struct client_stream *);
    /* There is room for more of the request's body. */
    void (*took)(struct client_stream *);
    /* The call has begun: from now on the side reads only a streamed body. */
    void (*began)(struct client_stream *);
    /* Has the client sent its FIN? */
    bool (*left)(const struct client_stream *);
    /* The exchange is over and its answer written. `keep`: another request may follow on the connection. */
    void (*done)(struct client_stream *, bool keep);
    /* Cuts the answer here, so that the client does not take it for a complete one, or because the client can't be
     * written to. If the stream still has an exchange, the side calls exchange_cancel(). */
    void (*cut)(struct client_stream *);
    /* About the client: a number that no other client has; whether its deadlines and marks count; where it comes from;
     * its address as text. */
    uint64_t (*identity)(const struct client_stream *);
    bool (*trusted)(struct client_stream *);
    void (*origin)(struct client_stream *, struct origin *);
    struct becalm_text (*peer)(const struct client_stream *, char *text, size_t size);
    /* The list of connections to hosts that belong to this client. They may have a login (login.h) only if this stream
     * has the client's connection for itself. */
    struct host_owner (*owner)(struct client_stream *);
    /* The client's address and ours; AF_UNIX: there is none. False: the client has gone. */
    bool (*ends)(const struct client_stream *, union address_socket *from, union address_socket *to);
    /* Writes the answer; from `done` on the whole client connection is a tunnel, and bytes go both ways. False: there
     * is no memory, or the client can't be written to any more, and `done` ends the connection. NULL: no tunnels,
     * because other streams share the connection. */
    bool (*tunnel)(struct client_stream *, const struct stream_tunnel *);
};

struct client_stream {
    const struct client_stream_ops *ops;
    struct exchange *exchange; /* NULL: none now */
};

/* Stands in for a client that has gone, so that `stream` of an exchange is never NULL: accepts every call and ignores
 * it. */
extern struct client_stream stream_nobody;

#endif
