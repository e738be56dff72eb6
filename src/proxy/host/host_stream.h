/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_HOST_HOST_STREAM_H
#define BECALM_PROXY_HOST_HOST_STREAM_H

/* The host's side of an attempt: one request and its answer on a connection to a host, in whichever protocol. HTTP/1
 * (host_h1.c) has one per connection, HTTP/2 (host_h2.c) many. An attempt knows nothing else of its host's connection;
 * docs/exchange.md says what a side has to do.
 *
 * The attempt embeds the stream and says what is to be done by `ops`; the pool and the side say what has happened by
 * `calls`. Until there is a connection, and when the stream is over, `ops` are host_stream_none: they take nothing and
 * know nothing, but leave the line. */

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
    /* The request: its head, and what there is of its body, in at most one piece. False: it can't be sent; `failed` has
     * been called, and the attempt may be gone. What the host does not take yet waits. */
    bool (*send)(struct host_stream *, const struct draft *, const struct stream_part *);
    /* More of its body. False: the host takes no more; `failed` or an answer follows later. */
    bool (*more)(struct host_stream *, const struct stream_part *);
    /* Does part of the request wait for the host to take it? Then `drained` follows. */
    bool (*blocked)(const struct host_stream *);
    /* Bytes of its buffers. */
    size_t (*held)(const struct host_stream *);
    /* The receiver of the answer takes bytes again. */
    void (*resume)(struct host_stream *);
    /* Nobody wants it any more, or its place in line: the stream is over. */
    void (*drop)(struct host_stream *);
    /* The connection itself, for a tunnel, with what waits in it; the stream is over. NULL: it can't be had. */
    void (*take)(struct host_stream *, struct wire *);
};

/* How an attempt came to nothing. */
struct host_failure {
    enum becalm_http_failure failure;
    const char *rule; /* of the protocol that the host's answer breaks; NULL: none */
    int error;        /* CONNECT: an errno */
    bool untried;     /* CONNECT: there was not even a try */
    bool unsent;      /* no byte of the request was read at the host, and none will be */
    bool stale;       /* a pooled connection was dead: this is not a failure of the host */
    bool h2;          /* the rule is one of HTTP/2 */
    bool reset;       /* HTTP/2: the host has reset the stream, with `code` */
    uint32_t code;
};

/* Whose connection it is from now on. */
struct host_owner {
    struct upstream **own; /* the idle ones of this owner; NULL: it has no owner */
    uint32_t *count; /* how many the owner's client has, by all of its connections; NULL: it can't log in by them */
};

struct host_stream_calls {
    /* From the pool. It waits in our own line for a connection: its host has not seen it. Its turn has come. Does its
     * service refuse everybody, so that it need not even try? */
    void (*waits)(struct host_stream *);
    void (*goes)(struct host_stream *);
    bool (*has_no_host)(const struct host_stream *);
    /* Its connection is a new one: its host is there. `connected` follows. */
    void (*accepted)(struct host_stream *);
    /* It has a connection: send. */
    void (*connected)(struct host_stream *);

    /* Of the request: the host has taken more of what waited; nothing waits any more. May end the attempt. */
    void (*moves)(struct host_stream *);
    void (*drained)(struct host_stream *);

    /* Of the answer. May no more of it be given now? `resume` follows. */
    bool (*full)(const struct host_stream *);
    /* A 1xx. False, as of the next two: the attempt is over, or somebody else's; the stream may be gone. */
    bool (*interim)(struct host_stream *, const struct head *);
    /* Its head, and what there is of its body; then more of that. With `ended` the stream is over, and so it is told
     * nothing more. Its trailers stand in the stream by then. */
    bool (*head)(struct host_stream *, const struct head *, const struct pieces *, bool ended);
    bool (*body)(struct host_stream *, const struct pieces *, bool ended);
    /* 101, and what came behind it: `take` the connection. */
    void (*switched)(struct host_stream *, const struct head *, struct becalm_text behind);
    /* No more will come: the stream is over. */
    void (*failed)(struct host_stream *, const struct host_failure *);
    /* It was used for a login (login.h), or says by the PROXY protocol whose it is: who has it from now on? */
    struct host_owner (*owner)(struct host_stream *);
    /* The PROXY protocol's header about its client, in `version`: how long it is. */
    size_t (*introduces)(const struct host_stream *, uint32_t version, char header[PROXY_HEADER_WRITTEN]);
};

/* What HTTP/1 remembers of one request and its answer. */
struct host_h1 {
    bool chunks;         /* the request's body is sent in chunks */
    bool said;           /* all of the request is written, or waits */
    bool wrote;          /* a byte of it may have reached the host */
    bool unread;         /* but the host has not read it, and never will */
    bool heard;          /* a byte of the answer has come */
    bool blank;          /* and an empty line before its head: one is left out */
    bool answers;        /* its head is through */
    bool keep_alive;     /* of the answer */
    uint8_t interim;     /* how many 1xx came before the answer */
    size_t written;      /* bytes of the request, on this connection */
    becalm_ns fin_at;    /* when the host closed before it answered; 0: it did not */
    struct bytes part;   /* of the answer's head */
    size_t scanned;      /* bytes of `part` that hold no head's end */
    struct h1_body body; /* of the answer */
};

/* The same of HTTP/2: what has come and is not told yet, and what has been. */
struct host_h2_stream {
    struct h2_stream *stream; /* NULL: it is over for the host */
    struct host_stream *next; /* among those of its connection */
    struct host_stream **link;
    struct host_stream *noted_next; /* among those that something has happened on */
    struct head *interim;           /* a 1xx */
    struct head *head;              /* of the answer */
    struct bytes in;                /* of its body */
    const char *rule;               /* that it breaks; NULL: none */
    uint64_t feeds;                 /* of the connection, when the request was given to it */
    uint32_t code;                  /* with which the host closed it */
    uint8_t interims;
    bool continues; /* there was a 100 before `interim` */
    bool noted;
    bool told;    /* the answer's head is */
    bool ended;   /* the answer has come to its end */
    bool closed;  /* nothing more will come */
    bool drained; /* there is room for more of the request */
};

struct host_stream {
    const struct host_stream_ops *ops;
    const struct host_stream_calls *calls;
    struct upstream *upstream; /* its connection, or the one that is being made for it; NULL: none */
    struct upstream_host *host;
    struct host_stream *next;  /* in line for a connection */
    struct host_stream **link; /* NULL: not in line */
    struct task task;          /* the attempt's: calls `resume`, after others had their turn */
    becalm_ns connect_timeout;
    bool dials;   /* wants a connection of its own */
    bool only_h1; /* and HTTP/1 on it, if its host leaves the choice: it becomes a tunnel, or is logged in to */
    bool fresh;   /* wants a connection that was not used before; one that is shared will do */
    bool careful; /* or one that was looked at, since the request can't be sent twice */
    bool login;   /* its request logs in by the connection, or may: see login.h */
    bool to_head; /* its request is a HEAD: no body follows the answer's head */
    bool watch;   /* if the host closes, find out whether it has read the request: it can't be sent twice otherwise */
    struct bytes trailers; /* of the answer, as HTTP/1 writes them */

    /* From here on nothing is zeroed: the pool fills it with the connection. */
    union {
        struct host_h1 h1;
        struct host_h2_stream h2;
        struct fault_hold *fault; /* an order has it: attempt_fault.c */
    };
};

extern const struct host_stream_ops host_stream_none;
extern const struct host_stream_ops host_h1_ops;
extern const struct host_stream_ops host_h2_ops;

/* For the pool: something has happened on the connection of a stream that speaks HTTP/1. */
void host_h1_ready(struct host_stream *, uint32_t events);

/* ---- host_h2.c, for the pool ---- */

/* The connection is made, and speaks HTTP/2 from now on. False: no memory. */
bool host_h2_begin(struct upstream *);
void host_h2_free(struct upstream *);
/* A stream gets it. */
void host_h2_open(struct host_stream *);
/* Something has happened on it; its timer fires. May close it. */
void host_h2_ready(struct upstream *, uint32_t events);
void host_h2_time(struct upstream *);
/* For how many more streams it has room now. */
uint32_t host_h2_room(const struct upstream *);
/* Has it nothing to say that waits to be read? It could be a GOAWAY. */
bool host_h2_silent(struct upstream *);
/* Has its host said how many it takes? */
bool host_h2_settled(const struct upstream *);
/* Closes it, if it has no stream. */
void host_h2_quiet(struct upstream *);

/* The stream is over before its attempt is told. */
static inline void host_stream_over(struct host_stream *stream)
{
    stream->ops = &host_stream_none;
    stream->upstream = NULL;
}

#endif
