/* SPDX-License-Identifier: MIT */
#ifndef BECALM_DEMO_LANE_H
#define BECALM_DEMO_LANE_H

/* Users, three services in a chain, and one gateway that all calls between them go through. There are two lanes, which
 * differ only in the gateway's policy: the services, the headers that they pass on, and the faults are the same. */

#include "load.h"
#include "service.h"
#include "storm.h"

#include "gateway/gateway.h"

#define LANE_SERVICES 3u
#define LANE_LAST     (LANE_SERVICES - 1)
#define LANE_RATE     50u /* calls per second */
#define LANE_ATTEMPTS 3u  /* of each hop, in both lanes */
#define LANE_TIMEOUT  BECALM_S
#define LANE_PATIENCE (3 * BECALM_S)
#define LANE_TICK     (500 * BECALM_MS)
#define LANE_TICKS    2400u /* that are remembered: 20 minutes */
#define LANE_UNKNOWN  UINT32_MAX

/* The chain, the same in both lanes. */
extern const struct service_plan lane_services[LANE_SERVICES];

enum lane_kind { LANE_NAIVE, LANE_BECALM, LANE_COUNT };
const char *lane_name(enum lane_kind);

/* One service in one tick: the counts of the tick, then the state at its end. */
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

/* Retries and calls that the gateway refused, for each service. */
struct lane_refusals {
    uint32_t by[LANE_SERVICES][BECALM_REASON_COUNT];
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
    char *policy;                        /* the text */
    struct lane_sample before;           /* counts at the last tick, as they were then */
    struct lane_refusals refused;        /* ever, as of the last tick */
    struct lane_refusals refused_before; /* lane_refusals_anew() */
    uint64_t begun_before;               /* lane_factor_anew() */
    uint64_t arrivals_before;
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

/* The share of calls that ended well, of those that ended in these ticks, in ppm. LANE_UNKNOWN: none did. */
uint32_t lane_success_ppm(const struct lane *, uint32_t from, uint32_t to);
/* The same now: over the last ticks; LANE_UNKNOWN too if none ended in the newest, for then users wait, or are gone. */
uint32_t lane_success_now(const struct lane *);

/* Requests that reached the last service for each call of the users, in thousandths, counted from an instant on:
 * over a few seconds only, it would be the requests of many calls divided by few. LANE_UNKNOWN: too few calls since. */
void lane_factor_anew(struct lane *);
uint32_t lane_factor_milli(const struct lane *);
/* Requests that reach the last service in a second, over these ticks. */
uint32_t lane_reach(const struct lane *, uint32_t from, uint32_t to);

/* Refusals since lane_refusals_anew(), of one service and for one reason. */
void lane_refusals_anew(struct lane *);
uint32_t lane_refusals(const struct lane *, uint32_t service, enum becalm_reason);

/* Calls and requests in progress, also those that no client waits for any more; without those in a last service that
 * will never answer. */
uint32_t lane_holds(const struct lane *);

#endif
