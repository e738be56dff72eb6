/* SPDX-License-Identifier: MIT */
#ifndef BECALM_METER_METRICS_GATEWAY_H
#define BECALM_METER_METRICS_GATEWAY_H

/* The metrics of a gateway itself and of its process, beside those of its targets. */

#include "meter.h"
#include "metrics_redis.h"
#include "metrics_text.h"

/* The gateway's store of answers by idempotency key. */
struct store_counts {
    uint64_t entries, bytes, held;                       /* now */
    uint64_t begun, answered, in_flight, mismatch, full; /* verdicts */
    uint64_t unknown, answer_lost, other_scope;
    uint64_t stored, released, too_large; /* ends */
    uint64_t expired, evicted;
    /* Keys that gateways share: calls while the store was away, by their result; keys that the store may have
     * forgotten; ends that came too late; how long beginnings waited for the store. */
    bool shared;
    uint64_t away, forgot, local, passed, fenced;
    struct metrics_waits waits;
};

/* Events at a bound of the gateway. */
enum metrics_bound {
    METRICS_CONNECTIONS_DISPLACED,
    METRICS_CONNECTIONS_REFUSED,
    METRICS_CLIENT_DISPLACED,
    METRICS_CLIENT_REFUSED,
    METRICS_BODY_CUT,
    METRICS_BUFFERED_CUT,
    METRICS_BUFFERED_REFUSED,
    METRICS_TUNNELS_REFUSED,
    METRICS_HOST_TUNNELS_REFUSED,
    METRICS_BOUNDS
};

/* How often handshakes of TLS ended in one way, and when a certificate ends. */
struct metrics_handshakes {
    const char *side;   /* "clients", "hosts" */
    const char *result; /* "full", "resumed", or why it failed */
    uint64_t count;
};
struct metrics_certificate {
    const char *file;
    uint64_t expires; /* seconds since 1970 */
};

#define METRICS_H2_WHY 16u

/* Spans of traces, by result. */
struct metrics_spans {
    uint64_t exported;
    uint64_t no_room; /* dropped */
    uint64_t failed;
    uint64_t refused;
};

/* Outgoing calls of the program, by whether the sidecar found their incoming request. */
struct metrics_joins {
    uint64_t joined;
    uint64_t unknown;
    uint64_t no_id;
    uint64_t strange;
    uint64_t expired;
    uint64_t pushed_out; /* entries of requests in progress, by others */
};

struct metrics_gateway {
    uint32_t workers;
    uint64_t connections; /* of clients, open now */
    uint64_t accepted;    /* and ever */
    uint64_t bounds[METRICS_BOUNDS];
    uint64_t h2_ended[METRICS_H2_WHY];      /* HTTP/2 connections that the gateway closed with GOAWAY, by reason ... */
    uint64_t h2_host_ended[METRICS_H2_WHY]; /* and connections to hosts that were ended ... */
    const char *h2_why[METRICS_H2_WHY];     /* ... which is said so; NULL: no row */
    uint64_t tunnels;                       /* open now, or being opened */
    uint64_t buffered;                      /* bytes that wait in user space, and their bound */
    uint64_t buffered_max;
    bool reload_ok;     /* the latest one */
    uint64_t reload_at; /* of the latest that went well: seconds since 1970 */
    uint64_t log_dropped;
    uint64_t passed;                       /* requests that went to hosts that no service names */
    const struct metrics_joins *joins;     /* NULL: calls are not joined to requests */
    const struct metrics_spans *spans;     /* NULL: nothing is traced */
    uint32_t faults;                       /* on order, in force now */
    const char *fault_words[METER_FAULTS]; /* by their number in a meter; NULL: there is none */
    const struct store_counts *store;      /* NULL: no endpoint stores answers */
    const struct metrics_handshakes *handshakes;
    uint32_t handshakes_count; /* 0: there is no TLS */
    const struct metrics_certificate *certificate;
    uint32_t certificate_count;
};

void metrics_gateway_write(struct metrics_text *, const struct metrics_gateway *);

/* Nothing, where the operating system does not tell. */
void metrics_process_write(struct metrics_text *);

#endif
