/* SPDX-License-Identifier: MIT */
#ifndef BECALM_BENCH_SERVICE_H
#define BECALM_BENCH_SERVICE_H

/* The services of a scenario as real ones: each host is a listener with workers and a queue, and has the scenario's
 * faults. It behaves like src/sim/server.c, so that only the network, the proxies and the machine differ, not the
 * service. */

#include "caller.h"
#include "scenario/scenario.h"

struct stage;
struct job;

struct host {
    struct source *listener; /* NULL: it refuses connections */
    struct service *service;
    char address[32];
    uint32_t number;
    uint32_t busy;
    uint32_t waiting;
    struct job *first, **last; /* the queue */
    struct job *jobs;          /* all that it has: waiting, at work, calling others */
    struct host_conn *conns;
    bool killed;
};

struct service {
    struct stage *stage;
    const struct scenario_service *plan;
    struct host *host;
    uint32_t calls; /* how many services it calls, each fan_out times */
    /* The effects of faults, as in the simulator; UINT32_MAX: none. */
    uint32_t capacity_ppm;
    uint32_t error_ppm;
    uint32_t hang_ppm;
    uint32_t bad_hosts;
    becalm_ns latency;
    bool dead;
    bool cut; /* messages vanish */
    bool refuses;
    bool swallows; /* new connections; the others go on */
    /* Counts, by the second. */
    uint64_t *arrivals;
    uint64_t *good;
    uint64_t *failed;
    uint64_t requests; /* also of those that came after the end */
};

void service_make(struct service *, struct stage *, const struct scenario_service *, uint32_t seconds);
/* Where a host listens. */
void host_open(struct host *, const char *address);
/* A fault comes or goes; `since` is the time from its start. */
void service_turn(struct service *, const struct scenario_fault *, bool on, becalm_ns since);

/* ---- the stage's interface for its services ---- */

struct loop *stage_loop(struct stage *);
const struct dist_tables *stage_tables(const struct stage *);
/* The proxy through which an instance of `from` asks for its n-th callee. */
struct caller *stage_caller(struct stage *, const struct service *from, uint32_t callee);
/* The second that counts now; UINT32_MAX: the run is over. */
uint32_t stage_second(const struct stage *);

#endif
