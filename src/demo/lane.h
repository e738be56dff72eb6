/* SPDX-License-Identifier: MIT */
#ifndef BECALM_DEMO_LANE_H
#define BECALM_DEMO_LANE_H

/* Users, three services in a chain, and one gateway that all calls between them go through. There are two such lanes,
 * which differ in the gateway's policy alone: what each service is, and how it is hurt, is the same. */

#include "load.h"
#include "service.h"

#include "proxy/gateway.h"

#define LANE_SERVICES 3u
#define LANE_LAST     (LANE_SERVICES - 1)
#define LANE_RATE     50u /* calls per second */
#define LANE_ATTEMPTS 3u  /* of each hop, in both lanes */
#define LANE_TIMEOUT  BECALM_S
#define LANE_PATIENCE (3 * BECALM_S)
#define LANE_TICK     (500 * BECALM_MS)
#define LANE_TICKS    2400u /* that are remembered: 20 minutes */

/* The chain, the same in both lanes. */
extern const struct service_plan lane_services[LANE_SERVICES];

enum lane_kind { LANE_NAIVE, LANE_BECALM, LANE_COUNT };
const char *lane_name(enum lane_kind);

/* One service in one tick: what happened in it, then how things were at its end. */
struct lane_service_sample {
    uint32_t arrivals; /* as the service itself counted */
    uint32_t retries;  /* that the gateway sent, and those that it did not let through */
    uint32_t refused;
    uint32_t shed;        /* calls that ended before their first attempt */
    uint32_t queue;       /* at the service */
    uint32_t gate;        /* and in front of it, in the gateway */
    uint32_t in_flight;   /* attempts */
    uint32_t limit;       /* UINT32_MAX: none */
    uint32_t budget_left; /* thousandths of a retry; UINT32_MAX: no bound */
    enum becalm_breaker_state breaker;
    bool has_breaker;
};

struct lane_sample {
    uint32_t begun;
    uint32_t good; /* calls that ended in this tick */
    uint32_t failed;
    struct lane_service_sample service[LANE_SERVICES];
};

struct lane {
    enum lane_kind kind;
    struct loop *loop;
    struct caller users;
    struct caller inner; /* by which services ask */
    struct service service[LANE_SERVICES];
    struct load load;
    struct gateway *gateway;
    union address_socket address; /* of the gateway */
    char admin[ADDRESS_TEXT_MAX];
    char *policy;              /* the text */
    struct lane_sample before; /* counts at the last tick, as they were then */
    struct lane_sample *sample;
    uint32_t ticks; /* ever */
};

/* Makes and starts it all. 0; BECALM_EIO with errno or a diagnostic, BECALM_EPARSE, or BECALM_ENOMEM; lane_close() in
 * any case. */
int lane_open(struct lane *, enum lane_kind, struct loop *, struct becalm_diags *);
void lane_close(struct lane *);

void lane_tick(struct lane *);
/* The n-th tick ever; NULL: not yet, or forgotten. */
const struct lane_sample *lane_at(const struct lane *, uint32_t tick);

/* Requests that reached the last service for one call of the users, over these ticks, in thousandths; 0 without calls.
 * And the share of calls that ended well, in ppm; 1,000,000 without any. */
uint64_t lane_factor_milli(const struct lane *, uint32_t from, uint32_t to);
uint32_t lane_success_ppm(const struct lane *, uint32_t from, uint32_t to);

#endif
