/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_GATEWAY_SHARED_H
#define BECALM_PROXY_GATEWAY_SHARED_H

/* The state that the threads of one gateway share: struct gateway, and the functions that workers, the admin address
 * and the control thread call on it. A gateway is made and ended in gateway/gateway.h. */

#include "h2/h2.h"
#include "passing.h"
#include "snapshot.h"
#include "tally.h"
#include "worker.h"

#include "fault/fault_book.h"
#include "join/join.h"
#include "journal/exporter.h"
#include "journal/log.h"
#include "journal/strangers.h"
#include "keys/store_redis.h"
#include "loop/listen.h"
#include "meter/metrics.h"
#include "origin/peer.h"

#include <pthread.h>

#define GATEWAY_ANSWER_HEAD (64u * 1024)

#define GATEWAY_ID_BYTES 8u

struct control;
struct key_desk;
struct listening;

/* How the latest reload went. */
struct gateway_reload {
    bool successful;
    uint64_t wall;      /* ns since 1970 */
    uint64_t good_wall; /* of the latest that was successful; the start at first */
    uint64_t count;     /* of all */
    uint64_t ordered;   /* the orders that it answered: see gateway_order_reload() */
    char why[1024];     /* the first diagnostic of one that failed */
};

struct gateway {
    char id[2 * GATEWAY_ID_BYTES + 1]; /* in Via, against loops: see gateway_name() */
    char via[40];                      /* Via of a request of HTTP/1.1 that has none yet */
    size_t via_length;
    struct peer_key peer_key;
    char *path;
    char *text;   /* NULL: the policy is in the file */
    char **set;   /* overrides; ends with NULL */
    char **parts; /* files and folders with more services; ends with NULL */
    bool allow_unknown;
    int log_fd;
    int access_fd;
    int *handed_fd;
    struct handed handed;
    pthread_mutex_t lock; /* snapshot, listening, reload */
    /* Held while a thread accepts: when the admin address gives up a descriptor to accept with it, it gets that one,
     * and no worker does. */
    pthread_mutex_t accepting;
    struct snapshot *snapshot;
    struct listening *listening;
    struct gateway_reload reload;
    struct log *log;
    struct exporter *exporter; /* of traces */
    struct store *store;
    struct store_secret store_secret;
    struct store_tally store_tally; /* of keys that are shared */
    struct key_desk *desk;          /* lists the held keys; belongs to the control thread. NULL: none */
    struct worker *worker;
    uint32_t worker_count;
    struct control *control;
    uint64_t started_wall;
    BECALM_ATOMIC(uint64_t) reload_orders;          /* ever */
    BECALM_ATOMIC(uint32_t) connections;            /* of clients, at most maxConnections */
    BECALM_ATOMIC(uint32_t) waiting;                /* and those that wait for a place */
    BECALM_ATOMIC(uint32_t) tunnels;                /* open, or being opened */
    struct tally host_tunnels;                      /* the same by the host's address */
    struct tally clients;                           /* connections by client */
    struct join_table *join;                        /* joins outgoing calls to incoming requests */
    BECALM_ATOMIC(uint64_t) bounds[METRICS_BOUNDS]; /* how often each was reached */
    BECALM_ATOMIC(uint64_t) replay_bytes;
    BECALM_ATOMIC(uint64_t) buffered; /* see buffered.h */
    BECALM_ATOMIC(uint64_t) max_buffered;
    BECALM_ATOMIC(bool) tight;          /* small pieces are read */
    BECALM_ATOMIC(uint64_t) accepted;   /* connections of clients, ever */
    BECALM_ATOMIC(uint64_t) unrouted;   /* requests that belong to no service */
    struct strangers strangers;         /* the hosts in these requests */
    struct passing passing;             /* hosts that no service names, to which requests are passed on ... */
    BECALM_ATOMIC(uint64_t) passed;     /* ... how many requests ... */
    struct strangers passed_hosts;      /* ... and for which */
    BECALM_ATOMIC(uint64_t) refused[6]; /* answers to requests that never became a call, by hundreds of their status */
    BECALM_ATOMIC(uint64_t) h2_ends[H2_END_COUNT];      /* client connections that the gateway ended, by reason */
    BECALM_ATOMIC(uint64_t) h2_host_ends[H2_END_COUNT]; /* and host connections, by reason */
    BECALM_ATOMIC(bool) draining;
    struct tls_tickets *tickets; /* the keys of all listeners that name none */
    struct tls_counts tls;
    struct fault_book faults;
    BECALM_ATOMIC(uint32_t) told; /* bits of enum gateway_once */
};

/* Warnings that are logged once, because every connection of the kind would repeat them. */
enum gateway_once {
    GATEWAY_PLAIN_TO_TLS, /* a client speaks plain HTTP to a listener with TLS */
    GATEWAY_TLS_TO_PLAIN,
    GATEWAY_HTTP2,
    GATEWAY_ONLY_HTTP2,
    GATEWAY_NO_PROXY_HEADER
};
/* Logs the warning, unless it was logged since the policy was loaded. */
void gateway_tell_once(struct worker *, enum gateway_once, const char *message, const char *remedy,
                       struct becalm_text peer);

/* The identity of this gateway. */
void gateway_name(struct gateway *, const unsigned char random[GATEWAY_ID_BYTES]);

struct snapshot *gateway_snapshot(struct gateway *);   /* with a use of the caller's */
void gateway_wake(struct gateway *, uint64_t workers); /* bit n: a call waits at worker n */
void gateway_order_all(struct gateway *, unsigned orders);
/* A request belongs to no service: counts it, and logs the first request for each unknown host. */
void gateway_unrouted(struct worker *, struct becalm_text host, struct becalm_text peer);
/* A request is passed on to a host that no service names: counts it, and logs the first request for each of these
 * hosts. */
void gateway_passed(struct worker *, struct becalm_text host, struct becalm_text peer);
void gateway_count_refusal(struct gateway *, uint32_t status);
void gateway_count_h2_end(struct gateway *, enum h2_end);
void gateway_count_h2_host_end(struct gateway *, enum h2_end);
void gateway_count_bound(struct gateway *, enum metrics_bound);
void gateway_breaker_moved(struct worker *, const struct snapshot_target *, enum becalm_breaker_state from,
                           enum becalm_breaker_state to);
/* The mark as this role sends it: a gate in role sidecar speaks for its own host only. */
enum becalm_mark_kind gateway_mark(enum becalm_role, enum becalm_mark_kind);

#endif
