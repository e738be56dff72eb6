/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PLAN_BUDGET_H
#define BECALM_PLAN_BUDGET_H

/* The percentage for a retry budget, by the method of Agoda ("How Agoda Solved Retry Storms", 2024): the most retries
 * per second at a peak of healthy traffic, divided by the average of requests per second. And where a budget on
 * requests in flight breaks down: an instance with few of them is allowed less than one retry. */

#include <becalm/ns.h>

#define PLAN_BUDGET_STORM_PERCENT 20u /* the default of Envoy and Finagle: a larger budget does not prevent storms */
#define PLAN_BUDGET_WINDOW        (120 * (becalm_ns)BECALM_S) /* of the recommended ratio */

struct plan_traffic {
    double requests;    /* average per second on the wire, retries included; above 0 */
    double retries;     /* most per second */
    becalm_ns latency;  /* of one request, on average; 0: not known */
    uint32_t instances; /* that send them; at least 1 */
};

struct plan_budget {
    double share;     /* retries / requests */
    uint32_t percent; /* recommended: the next whole one, 1 to PLAN_BUDGET_STORM_PERCENT */
    bool storm;       /* the share is above that: these retries are the disease, not the measure */

    /* The rest is known when the latency is; by Little's law requests in flight are rate times latency. */
    double active;          /* requests in flight, of all instances */
    double active_each;     /* of one */
    double allowed;         /* retries in flight that the percentage allows, all traffic being in one place */
    double allowed_each;    /* of one instance */
    bool low;               /* allowed_each is below one */
    uint32_t minimum;       /* then: the least concurrency of retries an instance needs */
    uint64_t minimum_total; /* instances * minimum */

    double window_each; /* retries of one instance in the window of a ratio: its way out of low concurrency */
    bool sparse;        /* below one, too */
};

void plan_budget(const struct plan_traffic *, struct plan_budget *);

#endif
