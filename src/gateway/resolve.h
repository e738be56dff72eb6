/* SPDX-License-Identifier: MIT */
#ifndef BECALM_GATEWAY_RESOLVE_H
#define BECALM_GATEWAY_RESOLVE_H

/* Resolves names into addresses, again and again. A name that was started is resolved at once, then whenever its
 * records expire (the TTL is clamped to 1 s .. 5 min), A and AAAA, with /etc/hosts and the search list of
 * /etc/resolv.conf.
 *
 * A service name (SRV) gives hosts, each with its port: the hosts of the best priority that have addresses.
 *
 * When resolving fails, the old addresses stay in use, and the next try follows after the engine's backoff with full
 * jitter: a name server in trouble must neither take the hosts away nor get a storm of retries. Addresses that this
 * machine has no route to (IPv6, mostly) are left out, unless the name has no other addresses.
 *
 * Belongs to one thread, blocks nowhere, and calls back only from resolver_run(). c-ares sends the queries. */

#include <becalm/backoff.h>

#include "loop/address.h"

#define RESOLVE_ADDRESSES_MAX 256u /* of one name; more are left out */
#define RESOLVE_SRV           0u   /* as a port: SRV records give the port */
#define RESOLVE_NO_CHANNEL    "the list of name servers can't be read, or there is no memory" /* as `why` */
#define RESOLVE_TTL_MIN       BECALM_S
#define RESOLVE_TTL_MAX       (300 * BECALM_S)

struct resolver;
struct resolve; /* one name that is being resolved, until it is stopped */

/* How one question ended. */
struct resolve_result {
    const char *name;
    const union address_socket *addresses; /* each once, sorted: a name server that turns its list changes nothing */
    uint32_t count;                        /* after a failure the addresses from before, if any */
    bool changed;                          /* against the result before */
    const char *why;                       /* why resolving failed, a constant sentence; NULL: it succeeded */
    becalm_ns wait;                        /* the time until the name is resolved again */
};

typedef void resolve_fn(const struct resolve_result *, void *data);

struct resolver_options {
    uint64_t seed;       /* of the backoff's jitter */
    const char *servers; /* name servers, for tests: "127.0.0.1:5353"; NULL: those of the system */
    uint32_t timeout_ms; /* for tests: of one question; 0: the system's, usually 5 s with 4 tries */
};

/* NULL: no memory, or the system refused a descriptor. */
struct resolver *resolver_make(const struct resolver_options *);
void resolver_free(struct resolver *);

/* Reads the list of name servers before there are names, while there are descriptors. Where that fails, each question
 * tries it again, and fails with RESOLVE_NO_CHANNEL. */
void resolver_prepare(struct resolver *);

/* Becomes readable when there is something to do: an epoll descriptor, to be watched for reading. */
int resolver_fd(const struct resolver *);

/* When resolver_run() is to be called if the descriptor stays silent. Ask again after every start, stop and run. */
becalm_ns resolver_wake_at(const struct resolver *);

/* Sends queries that are due, takes their answers, and calls back. */
void resolver_run(struct resolver *, becalm_ns now);

struct resolve_request {
    const char *name; /* at most ADDRESS_NAME_MAX bytes */
    uint16_t port;    /* RESOLVE_SRV: the name is that of a service, _http._tcp.example.com */
    resolve_fn *each; /* called for every result until resolve_stop(), which it may call itself */
    void *data;
};

/* NULL: no memory. */
struct resolve *resolve_start(struct resolver *, const struct resolve_request *, becalm_ns now);
void resolve_stop(struct resolver *, struct resolve *);

#endif
