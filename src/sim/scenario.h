/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_SCENARIO_H
#define BECALM_SIM_SCENARIO_H

/* What a world is made of. A scenario is a YAML file, checked as strictly as a policy; docs/simulation.md explains its
 * keys. */

#include <becalm/config.h>

#include "dist.h"

#define SCENARIO_NONE UINT32_MAX

struct scenario_service {
    const char *name;
    uint32_t workers;   /* per host; 0: any number */
    uint32_t hosts;     /* behind a balancer */
    uint32_t queue_max; /* per host; UINT32_MAX: no bound */
    bool expiry;        /* what its caller has given up is not served */
    bool gate;          /* a gateway of ours stands in front of it */
    uint32_t instances; /* as a caller: each with an engine state of its own */
    struct dist time;
    uint32_t error_ppm; /* of its own answers */
    uint32_t hang_ppm;  /* of the attempts that reach it: `hang` is added */
    bool hang_first;    /* only first attempts hang */
    becalm_ns hang;
    const char *const *calls; /* services that it calls for each request, all at once; ends with NULL; may be NULL */
    uint32_t fan_out;         /* so many times each */
};

struct scenario_client {
    const char *name;
    const char *to;
    uint64_t rate_milli; /* calls per second, in thousandths, Poisson */
    uint32_t callers;    /* instances, chosen at random */
    bool retries;        /* false: this hop makes one attempt, whatever the policy */
};

enum fault_kind {
    FAULT_CAPACITY,
    FAULT_ERRORS,
    FAULT_DEAD,
    FAULT_LATENCY,
    FAULT_HANG,
    FAULT_BAD_HOSTS,
    FAULT_CUT_CALLERS
};

struct scenario_fault {
    const char *name;
    const char *service;
    enum fault_kind kind;
    becalm_ns at;
    becalm_ns length;
    uint32_t ppm;      /* capacity left; share of errors, hangs, callers cut off */
    uint32_t count;    /* bad hosts */
    becalm_ns latency; /* added */
};

/* A policy that the scenario brings along, to be run by name: what is interesting here is seldom what the field's
 * reference policies differ in. */
struct scenario_policy {
    const char *name;
    struct becalm_policy policy;
    bool has_timeout; /* it is written there; else the scenario's */
    bool has_deadline;
};

struct scenario {
    const char *name;
    const char *about;
    becalm_ns length;
    uint32_t attempts; /* of the reference policies */
    becalm_ns timeout; /* of an attempt; BECALM_NEVER: none */
    becalm_ns link;    /* one way */
    const struct scenario_service *services;
    uint32_t service_count;
    const struct scenario_client *clients;
    uint32_t client_count;
    const struct scenario_fault *faults;
    uint32_t fault_count;
    const struct scenario_policy *policies;
    uint32_t policy_count;
};

/* A loaded file, and the memory of the scenario in it. */
struct scenario_file;

/* Loads a file, or text that is already in memory (`name` is for the diagnostics). 0, BECALM_EPARSE with errors in
 * *diags, BECALM_EIO with errno and a diagnostic, or BECALM_ENOMEM. `options` may be NULL; its overrides are
 * "services.api.errors=30%" and the like. */
int scenario_load(struct scenario_file **, const char *path, const struct becalm_load_options *, struct becalm_diags *);
int scenario_parse(struct scenario_file **, const char *name, const char *text, size_t length,
                   const struct becalm_load_options *, struct becalm_diags *);
void scenario_free(struct scenario_file *);

/* Valid as long as the file. */
const struct scenario *scenario_of(const struct scenario_file *);

#endif
