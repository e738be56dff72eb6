/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_GATEWAY_H
#define BECALM_PROXY_GATEWAY_H

/* A gateway: workers, a control thread, and what they share. No process globals: a program may run several. */

#include "listener.h"
#include "log.h"
#include "peer.h"
#include "snapshot.h"
#include "store.h"
#include "tally.h"
#include "worker.h"

#include "meter/metrics.h"

#include <pthread.h>

#define GATEWAY_REQUEST_HEAD (64u * 1024) /* the most that maxHeaderBytes can ask for */
#define GATEWAY_ANSWER_HEAD  (64u * 1024)

struct control;

struct gateway_options {
    const char *path; /* of the policy; with `text` its name in diagnostics */
    const char *text; /* the policy itself, for a program that carries it; NULL: read the file */
    const struct becalm_load_options *load;
    struct handed handed;
    int log_fd;
    int access_fd;
};

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
    char id[17]; /* in Via, against loops */
    struct peer_key peer_key;
    char *path;
    char *text; /* NULL: the policy is in the file */
    char **set; /* overrides; ends with NULL */
    bool allow_unknown;
    int log_fd;
    int access_fd;
    int *handed_fd;
    struct handed handed;
    pthread_mutex_t lock; /* snapshot, listening, reload */
    struct snapshot *snapshot;
    struct listening *listening;
    struct gateway_reload reload;
    struct log *log;
    struct store *store;
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
    BECALM_ATOMIC(uint64_t) bounds[METRICS_BOUNDS]; /* how often each was reached */
    BECALM_ATOMIC(uint64_t) replay_bytes;
    BECALM_ATOMIC(uint64_t) buffered; /* see buffered.h */
    BECALM_ATOMIC(uint64_t) max_buffered;
    BECALM_ATOMIC(bool) tight;          /* small pieces are read */
    BECALM_ATOMIC(uint64_t) accepted;   /* connections of clients, ever */
    BECALM_ATOMIC(uint64_t) unrouted;   /* requests that belong to no service */
    BECALM_ATOMIC(uint64_t) refused[6]; /* answers to what never became a call, by hundreds of their status */
    BECALM_ATOMIC(bool) draining;
};

/* Loads the policy and opens the listeners, but serves nobody yet. 0; BECALM_EPARSE or BECALM_EIO with diagnostics; or
 * BECALM_ENOMEM. */
int gateway_make(struct gateway **, const struct gateway_options *, struct becalm_diags *);
/* Starts its threads. 0, or BECALM_EIO with errno. */
int gateway_start(struct gateway *);
void gateway_free(struct gateway *); /* ends everything at once, if it has not ended */

/* From any thread. They return at once; gateway_wait() waits for the end. */
uint64_t gateway_order_reload(struct gateway *); /* the order's number */
void gateway_order_drain(struct gateway *);
void gateway_order_stop(struct gateway *);
void gateway_wait(struct gateway *);
int gateway_end_fd(const struct gateway *); /* becomes readable at the end, for who has other things to wait for */

/* Becomes readable when a reload is over, whoever ordered it: every worker serves by the new policy, or it was refused.
 * gateway_reload_told() makes it unreadable again, writes how the latest went as one line, and returns the number of
 * the latest order that is answered by it. */
int gateway_reload_fd(const struct gateway *);
uint64_t gateway_reload_told(struct gateway *, char *text, size_t size);

/* Have all workers and the control thread come round since this was asked the last time? For a watchdog, which asks
 * again and again, from one thread. */
bool gateway_moves(struct gateway *);

/* Loads the policy again and publishes it, or keeps the old one and says why. The control thread's. */
int gateway_reload_now(struct gateway *, struct becalm_diags *, becalm_ns now);
/* Does every worker serve by what was published last? And: it does, or it was refused, so the orders up to this one are
 * answered. The control thread's. */
bool gateway_in_force(const struct gateway *);
void gateway_reload_over(struct gateway *, uint64_t ordered);
/* The same config with other addresses of its names. */
int gateway_readdress(struct gateway *, becalm_ns now);

/* For workers and the control thread. */
struct snapshot *gateway_snapshot(struct gateway *);   /* with a use of the caller's */
void gateway_wake(struct gateway *, uint64_t workers); /* bit n: worker n has somebody to serve */
void gateway_order_all(struct gateway *, unsigned orders);
void gateway_count_refusal(struct gateway *, uint32_t status);
void gateway_count_bound(struct gateway *, enum metrics_bound);
void gateway_breaker_moved(struct worker *, const struct snapshot_target *, enum becalm_breaker_state from,
                           enum becalm_breaker_state to);
/* A gate in role sidecar speaks for its host alone. */
enum becalm_mark_kind gateway_mark(const struct becalm_settings *, enum becalm_mark_kind);

#endif
