/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_HOST_UPSTREAM_H
#define BECALM_PROXY_HOST_UPSTREAM_H

/* The pool of connections to hosts. Each worker has its own, by address and TLS settings, and keeps it across
 * snapshots. The number per host is bounded, and at most UPSTREAM_CONNECTING are opened at once, so that a host that
 * restarts is not flooded. A stream that finds no free connection queues for one, as long as its attempt may take. */

#include "host_stream.h"

#include "loop/address.h"
#include "wire/wire_tls.h"

#define UPSTREAM_CONNECTING 16u
#define UPSTREAM_USUAL      1024u /* idle connections that are kept with pool.maxPerHost: auto */

struct worker;

enum upstream_state {
    UPSTREAM_CONNECTING_NOW,
    UPSTREAM_BUSY,
    UPSTREAM_IDLE,
    UPSTREAM_OWNED,  /* idle, and only its owner may use it */
    UPSTREAM_SHARED, /* speaks HTTP/2: has as many streams as it has room for */
    UPSTREAM_LEAVING /* the same, but takes no new streams */
};

/* One connection. */
struct upstream {
    struct wire wire;   /* first */
    struct timer timer; /* connecting: its timeout; idle: when it is closed */
    struct upstream_host *host;
    struct host_stream *stream; /* the stream that uses it; NULL while idle, shared or without an owner */
    struct host_h2 *h2;         /* SHARED, LEAVING: its HTTP/2 session */
    struct host_owner owner;    /* OWNED: its owner. `own` is the pointer to this connection */
    struct upstream *own_next;  /* OWNED: list of its owner's connections */
    struct upstream *next;      /* list of idle connections, of those with an owner, or of those being opened */
    struct upstream *previous;
    becalm_ns idle_since;
    becalm_ns keep_for; /* how long its host keeps it idle; 0: the host has not announced it */
    enum upstream_state state;
    bool only_h1; /* HTTP/2 is not offered */
    bool reused;
    uint8_t personal; /* why only its owner may use it: bits of UPSTREAM_LOGIN and UPSTREAM_INTRODUCED */
};

#define UPSTREAM_LOGIN      1u /* its client has logged in by it, or may have: see login.h */
#define UPSTREAM_INTRODUCED 2u /* the connection began with a PROXY protocol header that names its client */

struct upstream_list {
    struct upstream *latest;
    struct upstream *oldest;
};

/* The bounds of a pool. */
struct upstream_pool {
    uint32_t max;      /* connections; UINT32_MAX: no bound */
    uint32_t max_idle; /* idle connections that are kept */
    becalm_ns idle;    /* how long a connection may be idle */
    uint32_t streams;  /* of one HTTP/2 connection ... */
    uint32_t window;   /* ... and the window of each, in bytes */
};

enum upstream_result {
    UPSTREAM_READY,  /* the stream is connected: send */
    UPSTREAM_LATER,  /* being connected, or in the queue: `connected` or `failed` will be called */
    UPSTREAM_REFUSED /* no connection attempt could be made: errno says why */
};

/* The protocol, from the policy. */
enum upstream_protocol {
    UPSTREAM_AUTO, /* with TLS the host's choice, without TLS HTTP/1 */
    UPSTREAM_H1,
    UPSTREAM_H2 /* without TLS by prior knowledge */
};

/* One address of a host with its protocol, and the pool of connections to it. */
struct upstream_host {
    struct upstream_host *next;
    struct worker *worker;
    union address_socket address;
    struct wire_host *tls; /* NULL: plain */
    enum upstream_protocol protocol;
    uint32_t introduces; /* the version of the PROXY protocol header that each connection begins with; 0: none */
    bool shares;    /* the host speaks or may speak HTTP/2: one connection is opened at a time, and streams share it */
    bool wants_h1;  /* the host chose HTTP/2, and then asked for HTTP/1.1 */
    uint32_t users; /* views that use this host; without any the host is freed with its last connection */
    uint32_t count; /* connections */
    uint32_t connecting;
    struct upstream_pool pool;
    /* upstream_get(), or a test's own. */
    enum upstream_result (*get)(struct upstream_host *, struct host_stream *);
    struct upstream_list idle;
    uint32_t idle_count;
    struct upstream_list owned; /* idle, and owned by a client */
    uint32_t owned_count;
    struct upstream_list shared; /* that speak HTTP/2 and take new streams */
    struct upstream *dialing;    /* being connected */
    struct host_stream *waiting; /* for a connection, in order */
    struct host_stream **last_waiting;
    struct task serve; /* serves the queue later, when no caller up the stack is in the middle of an answer */
    struct timer busy; /* armed: its Unix socket's backlog was full, or there was no descriptor for a connection; it is
                          tried again when this fires */
    bool lacks_descriptor;
    uint8_t squeezes;       /* times that it was tried again for want of a descriptor, since the latest connect */
    becalm_ns barren_until; /* until then no client is looked for that could give up its descriptor */
    const char *rule; /* the HTTP/1 rule that it broke, as last logged, and when: not logged again within a second */
    becalm_ns rule_at;
};

/* The address of a host, and its protocol. */
struct upstream_place {
    const union address_socket *address;
    struct tls_context *tls; /* NULL: plain */
    const char *name;        /* with TLS: the name that its certificate must have */
    enum upstream_protocol protocol;
    uint32_t introduces;
};
struct upstream_host *upstream_host_use(struct worker *, const struct upstream_place *, const struct upstream_pool *);
void upstream_host_drop(struct upstream_host *);

/* Finds a connection for a stream. Set its `calls`, `fresh`, `careful` and `connect_timeout` before. */
enum upstream_result upstream_get(struct upstream_host *, struct host_stream *);

/* A stream has finished with its connection. put: it may be used again; close: it may not. */
void upstream_put(struct upstream *);
void upstream_close(struct upstream *);

/* The host has announced how long it keeps an idle connection: this one is closed a second before that. */
void upstream_keep_for(struct upstream *, becalm_ns);

/* The host has sent its FIN: has it read the bytes that were written since the connection was last idle, or opened?
 *
 * A FIN acknowledges all bytes that have reached the host. So if none of the bytes is acknowledged, the host had closed
 * before they came. Then its kernel answers them with a reset, unless the host had only closed its sending side and
 * goes on reading. Both together, no byte acknowledged and a reset after the FIN, prove that no program has read them.
 * The one exception is a program that closes its sending side, still reads and acts, and then aborts the connection
 * before its kernel acknowledges anything; such a program could never have answered. */
enum upstream_fate {
    UPSTREAM_FATE_OPEN,   /* neither acknowledged nor refused yet: ask again */
    UPSTREAM_FATE_UNREAD, /* the host's kernel has refused them: no process has read them */
    UPSTREAM_FATE_UNKNOWN /* the host may have read them; always so with a Unix socket */
};
enum upstream_fate upstream_fate(const struct upstream *, size_t written);

/* Calls host_h1_ready() again soon, even without an event. */
void upstream_look_again(struct upstream *);

/* The stream has finished with a personal connection: from now on it belongs to this owner, or is closed if there is
 * none. An owner has at most one connection with a login. While a stream waits for a connection, idle connections with
 * a login may be at most half of the pool: beyond that the longest idle one of the client with the most is closed. */
void upstream_own(struct upstream *, struct host_owner);
/* The owner's connection with a login, finished or in progress. NULL: none. */
struct upstream *upstream_login(const struct host_owner *);
/* Gives the stream the connection that its client owns. False: the connection is dead. */
bool upstream_get_own(struct upstream *, struct host_stream *);
/* As upstream_get(), for a host whose connections name their client (PROXY protocol): the stream gets a connection of
 * its own client, or a new one. */
enum upstream_result upstream_get_introduced(struct upstream_host *, struct host_stream *);
/* Closes the connections of an owner that goes away, or no longer needs them. */
void upstream_disown(struct upstream **own);

/* For host_h2.c. `ended`: one of its streams has ended; `last`: there is no other. `room`: the host's SETTINGS or other
 * frames were read, so there may be room for waiting streams. `leave`: the connection takes no new streams. */
void upstream_shared_ended(struct upstream *, bool last);
void upstream_shared_room(struct upstream *);
void upstream_shared_leave(struct upstream *);
/* Its host asks for HTTP/1.1 from now on. False: the policy allows only HTTP/2. */
bool upstream_goes_h1(struct upstream *);

/* Closes all idle connections. */
void upstream_host_quiet(struct upstream_host *);

#endif
