/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PLAN_AMPLIFICATION_H
#define BECALM_PLAN_AMPLIFICATION_H

/* The factor by which a chain of services multiplies a client's request when the last service fails everything. Each
 * hop makes its attempts for each attempt of the hop above it, so the loads are a geometric series: attempts^(k-1) at
 * service k. A budget of b lets a hop send at most 1 + b requests for each that it gets. With marks only the hop
 * directly above the failure retries. */

#include <stdbool.h>
#include <stdint.h>

#define PLAN_SERVICES_MAX 64u
#define PLAN_ATTEMPTS_MAX 100u

struct plan_chain {
    uint32_t services;   /* 1 to PLAN_SERVICES_MAX; one less hop retries */
    uint32_t attempts;   /* per hop, the first one included; 1 to PLAN_ATTEMPTS_MAX */
    double rps;          /* requests of clients to the first service, above 0 */
    uint32_t budget_ppm; /* retries per first attempt; read if `budgeted` */
    bool budgeted;
};

/* Requests per second, and the same as a multiple of the clients' requests. */
struct plan_load {
    double rps;
    double factor;
};

struct plan_amplification {
    struct plan_load bare[PLAN_SERVICES_MAX]; /* without budgets; [0] is the first service */
    struct plan_load paid[PLAN_SERVICES_MAX]; /* with them; as `bare` if there are none */
    struct plan_load bare_total;              /* over all services */
    struct plan_load paid_total;
    struct plan_load marked; /* the last service, with marks, and with the budget if there is one */
};

void plan_amplify(const struct plan_chain *, struct plan_amplification *);

#endif
