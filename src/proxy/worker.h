/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_WORKER_H
#define BECALM_PROXY_WORKER_H

/* One thread of the gateway: its loop, its view of the snapshot, its connections. Workers share the state of targets
 * and nothing else. */

#include "crowd.h"
#include "snapshot.h"

#include "h1/h1.h"
#include "journal/decisions.h"
#include "journal/exporter.h"
#include "journal/log.h"
#include "loop/loop.h"
#include "origin/forwarded.h"
#include "wire/wire_tls.h"

#include <pthread.h>

#define WORKER_IN                                                                                      \
    (192u * 1024) /* one read takes at most this much: the largest body that is passed on in one piece \
                   */
#define WORKER_OUT                                                                                     \
    (192u * 1024) /* heads that are being written: twice the largest that comes in, and our own fields \
                   */

/* Where in `out` the values of a request's head are made, and its trailers. */
#define WORKER_VALUES   (WORKER_OUT / 2)
#define WORKER_TRAILERS (WORKER_OUT - 2 * H1_TRAILER_BYTES)

struct gateway;
struct store;
struct h2_room;
struct client;
struct exchange;
struct client_places;
struct room;
struct listener;
struct greeting;
struct upstream_host;
struct attempt;

/* A snapshot, as one worker uses it. */
struct view {
    struct view *next;
    struct snapshot *snapshot;
    uint64_t calls;                 /* in progress */
    struct upstream_host **host;    /* by service and host: host[first_host[service] + index] */
    uint32_t *first_host;           /* by service */
    struct becalm_parking *parking; /* by target */
};

/* Orders of other threads to a worker, as bits. */
enum worker_order {
    WORKER_SNAPSHOT = 1 << 0, /* there is a new one */
    WORKER_SERVE = 1 << 1,    /* a slot of some gate came free */
    WORKER_PARKED = 1 << 2,   /* a host that calls wait for is back */
    WORKER_DRAIN = 1 << 3,    /* tell clients with every answer to close */
    WORKER_CLOSE = 1 << 4,    /* stop accepting; close idle connections, and busy ones after their answer */
    WORKER_LEAVE = 1 << 5,    /* the end is near: tell websockets */
    WORKER_STOP = 1 << 6,     /* end now */
    WORKER_ROOM = 1 << 7,     /* another worker's client wants the place of an idle connection */
    WORKER_ROOMED = 1 << 8,   /* all others have looked for one */
    WORKER_SHRINK = 1 << 9,   /* too much is waiting, and the largest buffer is here */
    WORKER_FAULTS = 1 << 10,  /* a fault is over: calls that it held continue */
    WORKER_NAMES = 1 << 11,   /* names of hosts that no service names have been resolved */
    WORKER_SQUEEZE = 1 << 12  /* another worker has no descriptor left: close idle connections */
};

#define WORKER_PASSED 64u /* the most hosts that no service names and whose connections are kept */

/* No descriptor is left, and a connection that could be given up is looked for. */
enum worker_squeeze {
    SQUEEZE_DONE,   /* there is a descriptor now */
    SQUEEZE_SOON,   /* another worker may close some connections: look again */
    SQUEEZE_NOTHING /* no worker has a connection to close */
};

/* A cache of header lines for HTTP/1 hosts: Via, the attempt's number and the time left, as written for the last first
 * attempt with the same whole milliseconds, which are the same for most calls of a service. */
#define WORKER_TOLD 8u /* a power of two */
#define TOLD_ROOM   192u
struct told_lines {
    uint64_t left_ms;
    uint32_t send;   /* the fields that the service gets, of enum becalm_send */
    uint32_t length; /* 0: none are kept here */
    char text[TOLD_ROOM];
};

struct worker {
    struct loop loop; /* first: the loop's callbacks find the worker by it */
    struct gateway *gateway;
    uint32_t number;
    pthread_t thread;
    bool running;
    BECALM_ATOMIC(uint32_t) orders;
    struct view *view;                       /* the present one; older ones with calls follow it */
    BECALM_ATOMIC(uint64_t) snapshot_number; /* of the latest snapshot that it has looked at */
    struct log_source *log;
    struct span_source *spans;
    struct decisions decisions;
    char *in;
    char *out;
    struct wire_room sealed; /* buffers for TLS */
    struct head head;        /* of the message that is being read */
    struct h2_room *h2;      /* memory that HTTP/2 connections share; NULL: there were none */
    struct upstream_host *hosts;
    struct upstream_host *passed[WORKER_PASSED]; /* hosts that no service names, by their address; see passing.h */
    struct attempt *unnamed;                     /* attempts that wait until the name of an unlisted host is resolved */
    struct listener *listeners;
    struct client *clients;
    struct greeting *greetings; /* connections whose PROXY protocol header has not arrived yet */
    struct greeting *latest_greeting;
    uint32_t greeting_count;
    struct crowd crowd;
    struct room *room;
    const struct client_places *places;              /* gives clients their places: room.h */
    enum worker_squeeze (*squeeze)(struct worker *); /* for a connection to a host: room_squeeze() */
    struct task shrink;                              /* cuts connections with the largest buffers: see shrink.h */
    BECALM_ATOMIC(uint64_t) largest; /* roughly the bytes of its largest connection, for the other workers */
    becalm_ns shrink_told_at;
    uint32_t head_room; /* maxHeaderBytes */
    BECALM_ATOMIC(uint32_t) exchange_count;
    struct fault_book *faults; /* the gateway's */
    struct fault_hold *holds;  /* calls and attempts that injected faults delay */
    struct exchange *orphans;  /* calls that go on without their client */
    struct exchange *spare;    /* exchanges to be used again */
    uint32_t spare_count;
    bool draining;                    /* every answer is the last on its connection */
    bool closing;                     /* no new connections */
    bool leaving;                     /* websockets get a close frame */
    void (*serve)(struct exchange *); /* the turn of a waiting call has come: exchange_serve() */
    struct waiting *waiting;          /* the queues in which a call waits */
    uint64_t looks;                   /* number of orders to serve all of them */
    const struct waiting *serving;    /* the queue that is being served; NULL: none */
    struct task lines;                /* serves the parked calls */
    struct timer lines_timer;         /* when to do that again */
    uint64_t request_ids;             /* the state from which request ids are drawn */
    struct forwarded_kept forwarded;  /* lines about clients, as they were last written */
    struct told_lines told[WORKER_TOLD];
    struct key_hash *key_hash; /* of keys in memory; NULL: none came yet */
    struct worker_keys *keys;  /* the store of its keys, and older ones in which keys are held; see key_store.h */
    char date[30];
    int64_t date_second;
};

/* From any thread. */
void worker_order(struct worker *, unsigned orders);

struct becalm_moment worker_moment(struct worker *);

/* "Sun, 06 Nov 1994 08:49:37 GMT". */
struct becalm_text worker_date(struct worker *);

#endif
