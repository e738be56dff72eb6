/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_SCENARIO_SCHEMA_H
#define BECALM_SIM_SCENARIO_SCHEMA_H

/* The keys of a scenario file, in the same kind of tables as those of a policy. */

#include "policy/schema.h"
#include "scenario.h"

#define SCENARIO_MANUAL "becalm-sim(1)" /* the page that lists the keys */

/* A distribution, before it is known which one it is. */
struct dist_keys {
    uint32_t weight; /* in a mixture */
    becalm_ns constant;
    becalm_ns exponential;
    becalm_ns median;
    uint32_t sigma;
    becalm_ns least;
    uint32_t alpha;
    becalm_ns mean;
    becalm_ns deviation;
};

/* The keys of a fault, read before its kind is known. */
struct fault_keys {
    uint32_t capacity;
    uint32_t errors;
    bool dead;
    becalm_ns latency;
    uint32_t hangs;
    uint32_t bad_hosts;
    uint32_t cut_callers;
    bool refuse;
    bool swallow;
    uint32_t kill_hosts;
    becalm_ns rolling;
    bool partition;
    uint32_t surge;
    becalm_ns store;      /* BECALM_NEVER: away */
    becalm_ns kill_store; /* BECALM_NEVER: it comes back empty */
    bool hang_store;
    bool empty_store;
    uint32_t lose_connections;
};

extern const struct schema schema_scenario;          /* struct scenario */
extern const struct schema schema_scenario_service;  /* struct scenario_service */
extern const struct schema schema_scenario_endpoint; /* struct scenario_endpoint */
extern const struct schema schema_scenario_dist;     /* struct dist_keys */
extern const struct schema schema_scenario_weight;   /* struct dist_keys, beside it in a mixture */
extern const struct schema schema_scenario_link;     /* struct scenario_link */
extern const struct schema schema_scenario_client;   /* struct scenario_client */
extern const struct schema schema_scenario_policy;   /* struct scenario_policy, beside the keys of a policy file */
extern const struct schema schema_scenario_fault;    /* struct scenario_fault */
extern const struct schema schema_scenario_effect;   /* struct fault_keys, beside it in a fault */

#endif
