/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_HOST_UPSTREAM_H
#define BECALM_PROXY_HOST_UPSTREAM_H

/* Connections to hosts, kept and used again. Each worker has its own, by address and TLS, across snapshots. At most so
 * many per host, and at most UPSTREAM_CONNECTING being made at once: a host that restarts is not flooded. A stream
 * that finds no free connection waits in line for one, as long as it may take. */

#include "host_stream.h"

#include "loop/address.h"
#include "wire/wire_tls.h"

#define UPSTREAM_CONNECTING 16u
#define UPSTREAM_USUAL      1024u /* idle ones that are kept where the policy does not say how many there may be */

struct worker;

enum upstream_state {
    UPSTREAM_CONNECTING_NOW,
    UPSTREAM_BUSY,
    UPSTREAM_IDLE,
    UPSTREAM_OWNED,  /* idle, and its owner's alone */
    UPSTREAM_SHARED, /* speaks HTTP/2: for as many streams as it has room for */
    UPSTREAM_LEAVING /* the same, but no new ones */
};

/* One connection. */
struct upstream {
    struct wire wire;   /* first */
    struct timer timer; /* connecting: its timeout; idle: when it is closed */
    struct upstream_host *host;
    struct host_stream *stream; /* the stream that uses it; NULL while idle, shared or without an owner */
    struct host_h2 *h2;         /* SHARED, LEAVING: what it speaks */
    struct host_owner owner;    /* OWNED: whose it is. `own` is what points to this one */
    struct upstream *own_next;  /* OWNED: among those of its owner */
    struct upstream *next;      /* among the idle ones, those with an owner, or those being connected */
    struct upstream *previous;
    becalm_ns idle_since;
    becalm_ns keep_for; /* idle, before its host may close it; 0: the host has not said */
    enum upstream_state state;
    bool only_h1; /* HTTP/2 is not offered */
    bool reused;
    uint8_t personal; /* why only its owner may use it: bits of UPSTREAM_LOGIN and UPSTREAM_INTRODUCED */
};

#define UPSTREAM_LOGIN      1u /* its client has logged in by it, or may have: see login.h */
#define UPSTREAM_INTRODUCED 2u /* it began with a header of the PROXY protocol that names its client */

struct upstream_list {
    struct upstream *latest;
    struct upstream *oldest;
};

/* How many there may be, and for how long. */
struct upstream_pool {
    uint32_t max;      /* UINT32_MAX: as many as are wanted at once */
    uint32_t max_idle; /* no more are kept */
    becalm_ns idle;
    uint32_t streams; /* of one connection that speaks HTTP/2 ... */
    uint32_t window;  /* ... and what of each may wait */
};

enum upstream_result {
    UPSTREAM_READY,  /* the stream is connected: send */
    UPSTREAM_LATER,  /* being connected, or in line: `connected` or `failed` will be called */
    UPSTREAM_REFUSED /* could not even be tried: errno says why */
};

/* What is spoken: as the policy says. */
enum upstream_protocol {
    UPSTREAM_AUTO, /* with TLS what the host chooses, without HTTP/1 */
    UPSTREAM_H1,
    UPSTREAM_H2 /* without TLS by prior knowledge */
};

/* One address, and how it is spoken to. */
struct upstream_host {
    struct upstream_host *next;
    struct worker *worker;
    union address_socket address;
    struct wire_host *tls; /* NULL: plain */
    enum upstream_protocol protocol;
    uint32_t introduces; /* the version of the PROXY protocol that each connection begins with; 0: none does */
    bool shares;         /* it speaks HTTP/2, or may: one connection is made at a time, and its streams are shared */
    bool wants_h1;       /* it has chosen HTTP/2, and then asked for HTTP/1.1 */
    uint32_t users;      /* views that name it; without any it goes with its last connection */
    uint32_t count;      /* connections */
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
    struct task serve; /* serves the line later, when no caller up the stack is in the middle of an answer */
    struct timer busy; /* armed: its Unix socket's backlog was full, and is asked again when this fires */
    const char *rule;  /* of HTTP/1 that it broke, as it was logged last, and when: not the same again in a second */
    becalm_ns rule_at;
};

/* Where a host is, and what is spoken there. */
struct upstream_place {
    const union address_socket *address;
    struct tls_context *tls; /* NULL: plain */
    const char *name;        /* with TLS: that its certificate must have */
    enum upstream_protocol protocol;
    uint32_t introduces;
};
struct upstream_host *upstream_host_use(struct worker *, const struct upstream_place *, const struct upstream_pool *);
void upstream_host_drop(struct upstream_host *);

/* Finds a connection for a stream, which says what it wants: its `calls`, `fresh`, `careful` and `connect_timeout`. */
enum upstream_result upstream_get(struct upstream_host *, struct host_stream *);

/* A stream is through with its connection: it may be used again, or not. */
void upstream_put(struct upstream *);
void upstream_close(struct upstream *);

/* The host says for how long it keeps an idle connection: from now on this one is closed a second before. */
void upstream_keep_for(struct upstream *, becalm_ns);

/* The host has sent its FIN: what became of the bytes that were written since the connection was last idle, or made?
 *
 * A FIN acknowledges all that has reached its sender. So if not one of the bytes is acknowledged, the host had closed
 * before they came. Then its system answers them with a reset, unless the host had only closed one side of the
 * connection and goes on reading. Both together, nothing acknowledged and a reset behind the FIN, say that no program
 * has read them. Not so for one that closes its side, reads and acts all the same, and then aborts the connection
 * before its system acknowledges anything; such a program could never have answered. */
enum upstream_fate {
    UPSTREAM_FATE_OPEN,   /* neither acknowledged nor refused yet: ask again */
    UPSTREAM_FATE_UNREAD, /* the host's kernel has refused them: no process has read them */
    UPSTREAM_FATE_UNKNOWN /* the host may have them; always so of a Unix socket */
};
enum upstream_fate upstream_fate(const struct upstream *, size_t written);

/* Calls host_h1_ready() again soon, though nothing may have happened. */
void upstream_look_again(struct upstream *);

/* A connection that is personal is its owner's from now on, or closed where there is none; the stream is through with
 * it. An owner has one with a login. Idle ones with a login have at most half of the pool while a stream waits for a
 * connection: then the longest idle one of the client with the most is closed. */
void upstream_own(struct upstream *, struct host_owner);
/* The one by which its owner has logged in, or is about to. NULL: none. */
struct upstream *upstream_login(const struct host_owner *);
/* The stream gets the connection that its client owns. False: it does not live any more. */
bool upstream_get_own(struct upstream *, struct host_stream *);
/* As upstream_get(), of a host that is told whose each connection is: the stream gets one of its client's own, or a new
 * one. */
enum upstream_result upstream_get_introduced(struct upstream_host *, struct host_stream *);
/* The owner goes, or needs them no more. */
void upstream_disown(struct upstream **own);

/* For host_h2.c. One of its streams has ended, `last`: there is no other. Its host has said how many it takes, or what
 * it said was read: there may be room for who waits. It takes no more of them. */
void upstream_shared_ended(struct upstream *, bool last);
void upstream_shared_room(struct upstream *);
void upstream_shared_leave(struct upstream *);
/* Its host wants HTTP/1.1 from now on. False: the policy does not leave it the choice. */
bool upstream_goes_h1(struct upstream *);

/* Closes all idle ones. */
void upstream_host_quiet(struct upstream_host *);

#endif
