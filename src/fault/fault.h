/* SPDX-License-Identifier: MIT */
#ifndef BECALM_FAULT_FAULT_H
#define BECALM_FAULT_FAULT_H

/* Faults on order, for game days: which fault an operator wants, which calls it hits, and for how long. The kinds are
 * those of a scenario's faults, and `reset`. docs/faults.md describes the effect of each in a gateway. */

#include "origin/trust.h"
#include "policy/arena.h"
#include "scenario/scenario.h"

#include "policy/yaml.h"

#define FAULT_NAME_MAX   33u /* with its zero */
#define FAULT_ERRORS_ARE 502u
#define FAULT_CAP        100000u
#define FAULT_RESET      ((enum fault_kind)FAULT_KIND_COUNT) /* not in scenarios: the connection breaks */
#define FAULT_WORDS      (FAULT_KIND_COUNT + 1u)
#define FAULT_ALL        1000000u

/* The effect on a call or attempt that is hit. */
enum fault_act {
    FAULT_ACT_STATUS, /* an answer with a status */
    FAULT_ACT_RESET,
    FAULT_ACT_REFUSE,
    FAULT_ACT_SWALLOW, /* no connection, and no word */
    FAULT_ACT_HANG,    /* until the fault is over */
    FAULT_ACT_DELAY
};

struct fault {
    struct arena arena; /* of the texts */
    char name[FAULT_NAME_MAX];
    const char *service;
    const char *endpoint; /* NULL: all of the service; "default": its own rules */
    enum fault_kind word;
    enum fault_act act;
    bool to_clients;            /* calls are hit before they begin, and not attempts */
    bool silent;                /* cutCallers */
    uint32_t share;             /* of attempts or calls, ppm */
    uint32_t callers;           /* of the callers, ppm: always the same ones */
    uint32_t hosts;             /* only the service's first ones; 0: all */
    becalm_ns each;             /* rolling: how long each host is down, one after the other; 0: not rolling */
    becalm_ns latency;          /* DELAY */
    uint32_t status;            /* STATUS */
    becalm_ns length;           /* the fault ends after this time */
    becalm_ns on, off;          /* the fault comes and goes in these periods; on is 0: it stays */
    uint32_t cap;               /* the fault ends when it has hit this many */
    const char *const *clients; /* networks; NULL: all */
    const char *const *headers; /* "name: value" or "name"; NULL: none is asked for */
    struct trust *trust;        /* the clients */
};

/* The word of a policy, of logs and of metrics: "errors". */
const char *fault_word(enum fault_kind);

/* An order, as the admin address takes it. NULL: errors are in *diags, or there is no memory. */
struct fault *fault_read(const struct yaml_tree *, struct becalm_diags *);
void fault_free(struct fault *);

/* Can a gateway inject this fault? The rest are only for the simulator. */
bool fault_is_of_gateways(enum fault_kind);

#endif
