/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_SNAPSHOT_H
#define BECALM_PROXY_SNAPSHOT_H

/* Everything that a reload changes, in one immutable object: the config, its routes, the addresses of its hosts, and
 * for every target its policy and its state. Workers move from one snapshot to the next between two wake-ups, and a
 * call keeps the snapshot that it began with.
 *
 * State outlives snapshots: if the policy of a target did not change, the old and the new snapshot share its state;
 * else its budget, breaker, limit and so on are carried over. Ejections and refusals belong to an address: they move
 * with it, and a new address has none. Its meters always keep their counts. */

#include "keys/keyring.h"
#include "loop/address.h"
#include "meter/meter.h"
#include "origin/trust.h"
#include "policy/routing/route.h"
#include "tls/tls_set.h"

/* The config and how many snapshots use it: an address that changed makes a new snapshot of the same file. */
struct shared_config {
    BECALM_ATOMIC(uint32_t) users;
    struct becalm_config *config;
    /* By target, in the order of the snapshot: the policy sets no attemptTimeout, and no attempt has been ended by the
     * default yet. */
    BECALM_ATOMIC(bool) unwritten_timeout[];
};

/* One worker's calls that wait at a gate, of all targets that share it. Touched by its worker only. */
struct waiting {
    _Alignas(64) struct becalm_queue queue;
    struct state *state;   /* the state that has this gate */
    struct waiting *next;  /* list of the worker's queues in which calls wait */
    struct waiting **link; /* NULL: not in it */
    uint64_t looked;       /* the number of the order for which the worker last served it */
};

/* The state that all calls to a target share, and the policy that it was made for. If only the hosts of a service
 * change, its new state borrows all parts from the state before but for those of the hosts: calls in flight stay
 * counted. */
struct state {
    BECALM_ATOMIC(uint32_t) users;
    struct state *service; /* the service's state, whose parts this endpoint's state borrows; NULL: this is a service's
                              own state */
    struct state *whole;   /* the state with the old hosts, whose parts it borrows; NULL: it has its own */
    struct becalm_policy policy;
    struct becalm_target target;
    struct waiting *waiting; /* by worker; its service's, if the gate is */
    void *memory;
};

/* One meter for each worker. They live as long as the target's name is in use. */
struct meters {
    BECALM_ATOMIC(uint32_t) users;
    uint32_t count;
    struct meter *meter[]; /* each in cache lines of its own */
};

/* A service's own rules, or one endpoint of it. */
struct snapshot_target {
    const struct becalm_service *service;
    const struct becalm_endpoint *endpoint; /* NULL: the service's own rules */
    const struct becalm_rules *rules;
    uint32_t service_index;
    struct state *state;
    struct meters *meters;
    const struct snapshot_target
        *fallback; /* the target that is called instead, by its service's own rules; NULL: none */
};

struct snapshot_host {
    union address_socket address;
    bool known;       /* false: a name that has not been resolved (yet) */
    const char *name; /* as in the file */
};

struct snapshot_service {
    const struct becalm_service *service;
    uint32_t first_target; /* its own; then its endpoints' */
    struct snapshot_host *host;
    const char **host_name; /* the same hosts' names */
    uint32_t host_count;    /* at least 1 */
};

/* One address that this gateway listens at, or has listened at: its connections stay when the address is removed. Its
 * index is the same in all snapshots. */
struct snapshot_door {
    char *text;       /* as in the policy */
    char *name;       /* of the one service behind it; NULL: all services */
    uint32_t service; /* the same as an index; ROUTE_NONE: it is not there (any more) */
    enum becalm_role role;
    bool passes; /* services with `unlisted` are found by it */
};

struct snapshot {
    BECALM_ATOMIC(uint32_t) users;
    uint64_t number; /* counts up */
    struct shared_config *shared;
    const struct becalm_config *config;
    const struct becalm_settings *settings;
    struct route_table *routes;
    struct snapshot_door *door;
    uint32_t door_count;             /* at least 1 */
    bool joins;                      /* joins outgoing calls to incoming requests: there are listeners of both roles */
    bool traces;                     /* traces are continued and begun */
    uint64_t trace_least;            /* see trace_sampled() */
    struct trust *trust[2];          /* by the role of the listener */
    struct tls_set *tls;             /* NULL: there is none */
    bool client_certificate;         /* `clientKey` is the certificate */
    struct becalm_text client_field; /* the header field that `clientKey` names; absent: clients differ by address */
    struct snapshot_service *service;
    uint32_t service_count;
    struct snapshot_target *target;
    uint32_t target_count;
    struct keyring *keyring;        /* of idempotency keys that are shared; NULL: they are not */
    struct snapshot_host *key_host; /* the addresses of its store's DNS names */
    uint32_t key_host_count;
};

/* The resolver, asked for every host that is a DNS name: returns the number of addresses, in a stable order; 0: not
 * known. */
struct snapshot_names {
    uint32_t (*find)(void *self, const char *name, uint16_t port, const union address_socket **list);
    void *self;
};

struct snapshot_plan {
    struct shared_config *config;
    const struct snapshot *before; /* the snapshot that is replaced; NULL: none */
    struct snapshot_names names;
    struct tls_set *tls;     /* its certificates and the like; NULL: none */
    struct keyring *keyring; /* NULL: none */
    uint32_t workers;
    becalm_ns now;
};

struct shared_config *shared_config_make(struct becalm_config *); /* takes it over; NULL: no memory, and it is freed */
void shared_config_drop(struct shared_config *);
/* An attempt to the target has timed out. True: by a default, and this was not logged since this config was loaded. */
bool snapshot_tells_timeout(const struct snapshot *, const struct snapshot_target *);

/* NULL: no memory. Has one user, the caller. */
struct snapshot *snapshot_make(const struct snapshot_plan *);
void snapshot_use(struct snapshot *);
void snapshot_drop(struct snapshot *); /* frees it with its last user; any thread */

void state_use(struct state *);
void state_drop(struct state *); /* frees it with its last user; any thread */

/* The name that the certificate of a service's host must have: serverName of the policy, or the host's own name without
 * its port; with SRV records the domain of the query; for a Unix socket the service's name. `name` is room for it. */
const char *snapshot_server_name(const struct becalm_service *, const char *host, char name[256]);

/* The index of the listener with this address; clients keep it. */
uint16_t snapshot_door_of(const struct snapshot *, const char *address);

static inline struct trust *snapshot_trust(const struct snapshot *snapshot, uint16_t door)
{
    return snapshot->trust[snapshot->door[door].role];
}

/* The target of a route. */
static inline uint32_t snapshot_target_of(const struct snapshot *snapshot, const struct route *route)
{
    return snapshot->service[route->service].first_target + (route->endpoint == ROUTE_NONE ? 0 : route->endpoint + 1);
}

#endif
