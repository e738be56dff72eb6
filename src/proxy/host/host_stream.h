/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_HOST_HOST_STREAM_H
#define BECALM_PROXY_HOST_HOST_STREAM_H

/* The host's side of an attempt: one request and its answer on a connection to a host, independent of the protocol.
 * HTTP/1 (host_h1.c) has one stream per connection, HTTP/2 (host_h2.c) many. An attempt knows its host's connection
 * only through this interface; docs/exchange.md lists the duties of a side.
 *
 * The attempt embeds the stream and gives orders by `ops`; the pool and the side report events by `calls`. Until there
 * is a connection, and when the stream is over, `ops` is host_stream_none, which does nothing, except that `drop`
 * leaves the queue. */

#include "h1/h1.h"
#include "loop/bytes.h"
#include "loop/loop.h"
#include "message/draft.h"
#include "message/pieces.h"
#include "origin/proxy_header.h"
#include "wire/wire.h"

struct host_stream;
struct upstream;
struct upstream_host;

struct host_stream_ops {
    /* Sends the request's head, and the part of its body that is here, in at most one piece. False: it can't be sent;
     * `failed` has been called, and the attempt may be freed. Bytes that the host does not take yet wait. */
    bool (*send)(struct host_stream *, const struct draft *, const struct stream_part *);
    /* Sends more of its body. False: the host takes no more; `failed` or an answer follows later. */
    bool (*more)(struct host_stream *, const struct stream_part *);
    /* Does part of the request wait for the host to take it? Then `drained` follows. */
    bool (*blocked)(const struct host_stream *);
    /* Bytes of its buffers. */
    size_t (*held)(const struct host_stream *);
    /* The client takes bytes of the answer again. */
    void (*resume)(struct host_stream *);
    /* The attempt is abandoned, or leaves the queue for a connection: the stream is over. */
    void (*drop)(struct host_stream *);
    /* Hands over the connection itself, for a tunnel, with its waiting bytes; the stream is over. NULL: not possible.
     */
    void (*take)(struct host_stream *, struct wire *);
};

/* Why an attempt has no complete answer. */
struct host_failure {
    enum becalm_http_failure failure;
    const char *rule; /* the rule of the protocol that the host's answer breaks; NULL: none */
    int error;        /* CONNECT: an errno */
    bool untried;     /* CONNECT: no connection attempt was made */
    bool unsent;      /* the host has read no byte of the request, and never will */
    bool stale;       /* a pooled connection was dead: this is not a failure of the host */
    bool h2;          /* the rule is one of HTTP/2 */
    bool reset;       /* HTTP/2: the host has reset the stream, with `code` */
    uint32_t code;
};

/* The client that owns a connection to a host. */
struct host_owner {
    struct upstream **own; /* list of the owner's idle connections; NULL: no owner */
    uint32_t *count; /* how many the owner's client has, over all of its connections; NULL: no logins by connection */
};

struct host_stream_calls {
    /* From the pool. `waits`: the stream queues for a connection, and its host has not seen it. `goes`: it gets one.
     * `has_no_host`: does every host of its service refuse connections, so that it need not try? */
    void (*waits)(struct host_stream *);
    void (*goes)(struct host_stream *);
    bool (*has_no_host)(const struct host_stream *);
    /* Its connection is new: the host accepts connections. `connected` follows. */
    void (*accepted)(struct host_stream *);
    /* The stream has a connection: send. */
    void (*connected)(struct host_stream *);

    /* Of the request: the host has taken more of the waiting bytes; no bytes wait any more. May end the attempt. */
    void (*moves)(struct host_stream *);
    void (*drained)(struct host_stream *);

    /* Of the answer: must the side stop delivering it for now? `resume` follows. */
    bool (*full)(const struct host_stream *);
    /* A 1xx. False, as for the next two: the attempt is over, or has given up its stream, which may be freed. */
    bool (*interim)(struct host_stream *, const struct head *);
    /* Its head, and the part of its body that is here; then more of the body. With `ended` the stream is over, and no
     * more calls follow. Its trailers are in the stream by then. */
    bool (*head)(struct host_stream *, const struct head *, const struct pieces *, bool ended);
    bool (*body)(struct host_stream *, const struct pieces *, bool ended);
    /* A 101, and the bytes that came after it: the attempt takes the connection with `take`. */
    void (*switched)(struct host_stream *, const struct head *, struct becalm_text behind);
    /* There is no answer, or no more of it: the stream is over. */
    void (*failed)(struct host_stream *, const struct host_failure *);
    /* The connection was used for a login (login.h), or names its client by the PROXY protocol: which client owns it?
     */
    struct host_owner (*owner)(struct host_stream *);
    /* Writes the PROXY protocol's header about the client, in `version`, and returns its length. */
    size_t (*introduces)(const struct host_stream *, uint32_t version, char header[PROXY_HEADER_WRITTEN]);
};

/* The HTTP/1 state of one request and its answer. */
struct host_h1 {
    bool chunks;         /* the request's body is sent in chunks */
    bool said;           /* all of the request is written, or waits */
    bool wrote;          /* a byte of the request may have reached the host */
    bool unread;         /* but the host has not read it, and never will */
    bool heard;          /* a byte of the answer has come */
    bool blank;          /* and an empty line before its head: one is left out */
    bool answers;        /* its head has been delivered */
    bool keep_alive;     /* of the answer */
    uint8_t interim;     /* how many 1xx came before the answer */
    bool uncounted;      /* the socket took bytes of the request that `written` does not have */
    size_t written;      /* bytes of the request, on this connection */
    becalm_ns fin_at;    /* when the host closed before it answered; 0: it did not */
    struct bytes part;   /* of the answer's head */
    size_t scanned;      /* bytes of `part` that hold no head's end */
    struct h1_body body; /* of the answer */
};

/* The same for HTTP/2: the part of the answer that has arrived and is not delivered yet, and the part that has been
 * delivered. */
struct host_h2_stream {
    struct h2_stream *stream; /* NULL: it is over for the host */
    struct host_stream *next; /* list of the streams of its connection */
    struct host_stream **link;
    struct host_stream *noted_next; /* list of the streams with undelivered events */
    struct head *interim;           /* a 1xx */
    struct head *head;              /* of the answer */
    struct bytes in;                /* of its body */
    const char *rule;               /* the rule that it breaks; NULL: none */
    uint64_t feeds;                 /* reads of the connection when the request was given to it */
    uint32_t code;                  /* with which the host closed it */
    uint8_t interims;
    bool continues; /* there was a 100 before `interim` */
    bool noted;
    bool told;    /* the answer's head has been delivered */
    bool ended;   /* the answer has arrived to its end */
    bool closed;  /* the host will send no more */
    bool drained; /* there is room for more of the request */
};

struct host_stream {
    const struct host_stream_ops *ops;
    const struct host_stream_calls *calls;
    struct upstream *upstream; /* its connection, or the one that is being made for it; NULL: none */
    struct upstream_host *host;
    struct host_stream *next;  /* in line for a connection */
    struct host_stream **link; /* NULL: not in line */
    struct task task;          /* for the attempt: calls `resume` after other connections had their turn */
    becalm_ns connect_timeout;
    bool dials;   /* must open a new connection for itself */
    bool only_h1; /* with HTTP/1 on it, if its host leaves the choice: it becomes a tunnel, or has a login */
    bool fresh;   /* must be a new connection, or a shared one */
    bool careful; /* a pooled connection must be probed first, because the request can't be sent twice */
    bool login;   /* its request logs in by the connection, or may: see login.h */
    bool to_head; /* its request is a HEAD: no body follows the answer's head */
    bool watch; /* if the host closes, find out whether it has read the request, which can't be sent twice otherwise */
    struct bytes trailers; /* of the answer, as HTTP/1 writes them */

    /* From here on nothing is zeroed: the pool fills it with the connection. */
    union {
        struct host_h1 h1;
        struct host_h2_stream h2;
        struct fault_hold *fault; /* an injected fault delays it: attempt_fault.c */
    };
};

extern const struct host_stream_ops host_stream_none;
extern const struct host_stream_ops host_h1_ops;
extern const struct host_stream_ops host_h2_ops;

/* For the pool: an event on the connection of an HTTP/1 stream. */
void host_h1_ready(struct host_stream *, uint32_t events);

/* ---- host_h2.c, for the pool ---- */

/* The connection is made, and speaks HTTP/2 from now on. False: no memory. */
bool host_h2_begin(struct upstream *);
void host_h2_free(struct upstream *);
/* Gives the connection to a stream. */
void host_h2_open(struct host_stream *);
/* An event on the connection; its timer fires. May close it. */
void host_h2_ready(struct upstream *, uint32_t events);
void host_h2_time(struct upstream *);
/* How many more streams the connection can take now. */
uint32_t host_h2_room(const struct upstream *);
/* Are there no unread bytes on it? They could be a GOAWAY. */
bool host_h2_silent(struct upstream *);
/* Have the host's SETTINGS arrived, which say how many streams it takes? */
bool host_h2_settled(const struct upstream *);
/* Closes it, if it has no stream. */
void host_h2_quiet(struct upstream *);

/* Ends the stream, before its attempt is told. */
static inline void host_stream_over(struct host_stream *stream)
{
    stream->ops = &host_stream_none;
    stream->upstream = NULL;
}

#endif
