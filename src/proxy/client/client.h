/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_CLIENT_CLIENT_H
#define BECALM_PROXY_CLIENT_CLIENT_H

/* A client's connection. Between requests it has no buffer. While a request is answered the connection is not read, so
 * a client that sends more waits in its own kernel. */

#include "proxy/crowd.h"
#include "proxy/stream.h"

#include "loop/address.h"
#include "loop/loop.h"
#include "message/head.h"
#include "wire/wire.h"

#include <becalm/http.h>

#include <sys/uio.h>

struct client;
struct worker;
struct tls_context;
struct client_h2;

/* The new owner of a whole connection: a tunnel, which embeds this. */
struct client_taker {
    const struct client_taker_ops *ops;
};
struct client_taker_ops {
    /* The exchange is over: bytes go both ways from now on. */
    void (*begin)(struct client_taker *);
    /* The client's socket is ready for reading or writing; its wire has noted the events. */
    void (*ready)(struct client_taker *);
    /* The gateway ends soon (worker->leaving): tells the peers, if the protocol has a way. May end the client. */
    void (*leave)(struct client_taker *);
    /* Is only one direction still open or moving: one end does not read its bytes, or one end has closed? */
    bool (*lopsided)(const struct client_taker *);
    uint64_t (*held)(const struct client_taker *); /* bytes of its buffer */
    void (*free)(struct client_taker *);
};

/* Where clients get a place among maxConnections: room.h. */
struct client_places {
    void (*enter)(struct client *); /* a new connection: admits it, answers it, or lets it wait */
    void (*late)(struct client *);  /* the client has waited for CLIENT_PLACE_PATIENCE: admits or answers it */
    void (*leave)(struct client *); /* the client is being closed */
};
#define CLIENT_PLACE_PATIENCE BECALM_S

enum client_state {
    CLIENT_WAITING, /* has no place among maxConnections yet: see room.h */
    CLIENT_IDLE,    /* between requests */
    CLIENT_HEAD,    /* part of a head has come */
    CLIENT_BODY,    /* a body is coming, and is collected */
    CLIENT_BUSY,    /* a request is being answered */
    CLIENT_TUNNEL,  /* bytes go both ways */
    CLIENT_H2,      /* speaks HTTP/2: see client_h2.c */
    CLIENT_LINGER   /* has sent its last answer: waits for the client to close, so that it can read the answer */
};

struct client {
    struct wire wire;   /* first */
    struct timer timer; /* left armed: when it fires, `since` decides whether a timeout is over */
    struct task task;   /* look for the next request */
    struct worker *worker;
    struct client *next;
    struct client **link;
    struct crowd_member member;  /* of the group of its client's connections */
    struct client_stream stream; /* its one request at a time */
    union {
        struct client_taker *taker; /* CLIENT_TUNNEL; NULL: no memory for it */
        struct client_h2 *h2;       /* CLIENT_H2 */
        struct upstream *own;       /* else: idle connections to hosts that are its own, see struct host_owner */
    };
    struct origin_ip ip; /* its address */
    struct bytes in;     /* part of a head, or requests that came early */
    becalm_ns since;     /* the time of the latest progress */
    uint32_t scanned;    /* bytes of `in` that hold no head's end */
    uint32_t unread;     /* bytes in the kernel's buffer when the timer last checked */
    uint32_t read;       /* bytes that its kernel had taken at read_at, modulo 2^32 */
    uint32_t trusted_in; /* the number of the snapshot for which `trusted` is valid, modulo 2^32 */
    uint16_t door;       /* the listener that accepted it: an index in snapshot->door */
    uint16_t port;       /* of its address, in the network's order */
    uint8_t read_at;     /* when its reading of this answer was last measured from, in seconds modulo 256, see
                            client_price(); 0: not yet */
    enum client_state state : 8;
    bool http_1_0; /* as its present request says */
    bool trusted : 1;
    bool chunks : 1;      /* the answer that is being written is sent in chunks */
    bool close_after : 1; /* close when all bytes are written */
    bool placed : 1;      /* this connection is counted in maxConnections */
    bool asked : 1;       /* HTTP/2 can't begin: a request has come, the listener has no h2, or TLS has chosen HTTP/1 */
    bool only_h2 : 1;     /* its listener speaks only HTTP/2 */
    bool tallied : 1;     /* this connection is counted in maxConnectionsPerClient */
};

/* malloc() has a class for this, and idle connections are mostly this. */
_Static_assert(sizeof(void *) != 8 || sizeof(struct client) <= 248, "an idle connection costs at most 256 bytes");

/* The client's identity by its address: see peer.h. */
static inline uint64_t client_identity(const struct client *client)
{
    return client->member.group->node.key;
}

/* The one writer of its state. */
static inline void client_enter(struct client *client, enum client_state state)
{
    client->state = state;
}

/* There was progress, on either side: its timeout starts again. */
void client_moves(struct client *);

/* The properties of the listener that accepted a client. */
struct client_door {
    struct tls_context *tls; /* of the worker's snapshot; NULL: plain */
    uint16_t number;         /* see snapshot_door_of() */
    bool h1;                 /* spoken here */
    bool h2;                 /* spoken here, too */
};

/* Takes over a connected descriptor. */
void client_accept(struct worker *, int fd, const union address_socket *peer, const struct client_door *);

/* Writes; bytes that the socket does not take wait. False: the connection is broken, and the caller may only cancel the
 * exchange. */
bool client_write(struct client *, struct iovec *, int count);
/* An answer that is whole, or a 1xx. */
bool client_answer(struct client *, const struct draft *, struct becalm_text body);
bool client_blocked(const struct client *);

void client_close(struct client *);
/* Resets the connection, so that the client can't mistake a partial answer for a complete one. */
void client_abort(struct client *);

/* The client has a place: its request is read. */
void client_admit(struct client *);
/* Makes an answer to a request that never became an exchange: fills the draft and returns the body; both use `room`
 * (OWN_ROOM bytes). Counts and logs it. */
struct becalm_text client_refusal(const struct client *, struct draft *, char *room, uint32_t status,
                                  const char *reason, const char *what);
/* Closes the connection when all bytes are written. */
void client_goodbye(struct client *);
/* Answers a request that never became an exchange, and ends the connection. */
void client_refuse(struct client *, uint32_t status, const char *reason, const char *what);
/* Closes the client now, to make room for another one. A client in the middle of a request gets an answer with the
 * reason, if its socket accepts that without waiting. */
void client_displace(struct client *, const char *reason, const char *what);
/* The price of closing this client, by which its crowd chooses. */
enum price client_price(struct crowd_member *, becalm_ns *since);

/* Closes it if it is idle. */
void client_quiet(struct client *);

/* The identity to which its calls are counted: its address, or with `clientKey: certificate` its certificate's name. */
uint64_t client_caller(const struct client *);

/* Do its deadline, attempt and mark headers count? */
bool client_trusted(struct client *);

/* Where its requests come from. */
void client_origin(struct client *, struct origin *);
/* Its address and ours, with their ports; AF_UNIX: there is none. */
void client_ends(const struct client *, union address_socket *from, union address_socket *to);

/* The size of all buffers that wait for this client or because of it. */
uint64_t client_held(const struct client *);

struct becalm_text client_peer(const struct client *, char *text, size_t size);

/* ---- client_h1.c ---- */

/* The client's side of an exchange for HTTP/1: it writes one answer at a time to the connection. */
extern const struct client_stream_ops client_h1_ops;

/* The answer is written, or cut, and the exchange is over. Without `keep` the connection ends. */
void client_answered(struct client *, bool keep);

/* ---- client_h2.c ----
 *
 * A connection that speaks HTTP/2: each of its streams is the client's side of an exchange, see stream.h. Frames for
 * the peer are written once, when the events of a wake-up are done. */

/* The client has sent HTTP/2's preface, which is fed next. False: no memory. */
bool client_h2_begin(struct client *);
/* Bytes came. May close the connection. */
void client_h2_feed(struct client *, const char *bytes, size_t length);
/* Its socket takes bytes again. */
void client_h2_unblocked(struct client *);
/* The peer will send no more. */
void client_h2_left(struct client *);
/* There was no progress for too long: sends GOAWAY. May close it. */
void client_h2_idle(struct client *);
/* The gateway drains: no new streams, soon. */
void client_h2_drain(struct client *);
/* The number of streams whose requests are not answered yet; and the waiting bytes of all streams. */
uint32_t client_h2_busy(const struct client *);
/* What all of its streams together do. */
enum client_pace {
    CLIENT_PACE_NONE,    /* there is none */
    CLIENT_PACE_UPLOADS, /* all are uploads that come slowly, or wait as well */
    CLIENT_PACE_WAITS, /* all wait for the client to take what was said, also those that are over for their exchange */
    CLIENT_PACE_MOVES  /* one is at work */
};
enum client_pace client_h2_pace(const struct client *);
/* It is closed for another one: what is known of its streams is said. */
void client_h2_displace(struct client *);
uint64_t client_h2_held(const struct client *);
/* Frees the HTTP/2 state: the connection is going to be closed. */
void client_h2_free(struct client *);

#endif
