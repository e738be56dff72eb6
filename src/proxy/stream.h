/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_STREAM_H
#define BECALM_PROXY_STREAM_H

/* The client's side of an exchange: one request and its answer on a client's connection, in whichever protocol. HTTP/1
 * has one per connection, which client.c embeds. An exchange knows nothing else of its client; docs/exchange.md says
 * what a side has to do, and what it may call.
 *
 * The side says what has come (exchange_open() and the others of exchange.h), the exchange answers by these functions.
 * A stream that is told `done` or `cut` has no exchange any more. Its memory stays until the loop's turn is over, since
 * its caller may look at it once more. */

#include "host/host_stream.h"

#include "message/draft.h"
#include "message/pieces.h"
#include "origin/origin.h"

struct exchange;
struct client_stream;

/* The far end of a tunnel. */
struct stream_tunnel {
    struct host_stream *host;  /* whose connection it gets */
    uint64_t host_key;         /* its place among maxTunnelsPerHost, which it gets with that among maxTunnels */
    const struct head *head;   /* of a 101 answer; NULL: the answer to a CONNECT */
    struct becalm_text behind; /* what came behind it */
};

struct client_stream_ops {
    /* The answer's head, and what there is of its body. False: the client can't be written to any more. What it does
     * not take yet waits. */
    bool (*begin)(struct client_stream *, const struct draft *, const struct stream_part *);
    /* More of its body. False: as of `begin`. */
    bool (*more)(struct client_stream *, const struct stream_part *);
    /* A 1xx before the answer. False: as of `begin`. */
    bool (*interim)(struct client_stream *, const struct draft *);
    /* Does part of the answer wait for the client to read? Then nothing more is read from the host, until
     * exchange_unblocked(). */
    bool (*blocked)(const struct client_stream *);
    /* Something moves at the host's side: the client's patience begins anew. */
    void (*moves)(struct client_stream *);
    /* There is room for more of the request's body. */
    void (*took)(struct client_stream *);
    /* The call has begun: from now on the side reads only a body that streams. */
    void (*began)(struct client_stream *);
    /* Has the client said that it sends nothing more? */
    bool (*left)(const struct client_stream *);
    /* The exchange is over and its answer written. `keep`: another request may follow on the connection. */
    void (*done)(struct client_stream *, bool keep);
    /* The answer ends here, so that nobody takes what was sent for a whole one, or the client can't be written to. If
     * the stream still has an exchange, the side calls exchange_cancel(). */
    void (*cut)(struct client_stream *);
    /* Who asks: a number that others do not have; whether its deadlines and marks count; where it comes from; its
     * address as text. */
    uint64_t (*identity)(const struct client_stream *);
    bool (*trusted)(struct client_stream *);
    void (*origin)(struct client_stream *, struct origin *);
    struct becalm_text (*peer)(const struct client_stream *, char *text, size_t size);
    /* Where connections to hosts are kept that belong to this client; none with a login (login.h) unless all of the
     * client's connection is this stream's. */
    struct host_owner (*owner)(struct client_stream *);
    /* The client's address and ours; AF_UNIX: there is none. False: the client has gone. */
    bool (*ends)(const struct client_stream *, union address_socket *from, union address_socket *to);
    /* The answer is written, and from `done` on bytes go both ways: all of the client's connection is a tunnel's.
     * False: there is no memory for it, or the client can't be written to any more, and `done` ends the connection.
     * NULL: a stream beside which there are others has no tunnels. */
    bool (*tunnel)(struct client_stream *, const struct stream_tunnel *);
};

struct client_stream {
    const struct client_stream_ops *ops;
    struct exchange *exchange; /* NULL: none now */
};

/* Stands in for a client that has gone, so that no exchange is ever without one: takes everything, wants nothing. */
extern struct client_stream stream_nobody;

#endif
