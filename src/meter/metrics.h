/* SPDX-License-Identifier: MIT */
#ifndef BECALM_METER_METRICS_H
#define BECALM_METER_METRICS_H

/* The page /metrics: Prometheus' text format 0.0.4, or OpenMetrics 1.0.0. becalm-metrics(7) explains each name. Series
 * are bounded by the policy file and by the enums of the engine: no path, header or number of a client ever becomes a
 * label, but for answered statuses, of which each worker keeps METER_CODES per target. */

#include "buffer.h"
#include "meter.h"
#include "metrics_gateway.h"
#include "metrics_redis.h"

/* The label `endpoint` of calls that belong to no endpoint of their service. The policy file refuses it as a name. */
#define METRICS_DEFAULT "default"

/* The results of a host's active health checks. */
struct metrics_health {
    bool checked;
    bool passes;
    uint64_t passed, failed; /* checks */
};

/* A service's own rules, or one endpoint of it. */
struct metrics_target {
    const char *service;
    const char *endpoint;  /* NULL: the service's own rules */
    const char *operation; /* the program's name for the place that makes the calls; NULL: no label */
    const struct becalm_policy *policy;
    const struct becalm_target *target;
    const struct meter *const *meters; /* one per worker */
    uint32_t meter_count;
    const char *const *hosts; /* the names of target->hosts; may be NULL */
    uint32_t host_count;
    const struct metrics_health *health; /* of the same hosts; NULL: none is checked */
};

/* Targets of one service stand together, its own rules first, and targets without an operation before those with one: a
 * part that endpoints share with their service (a limit, a gate, hosts) is written once, for the first target that has
 * it. */
struct metrics {
    const struct metrics_gateway *gateway; /* NULL: a client in another program, without metrics of the process */
    const struct metrics_target *target;
    uint32_t target_count;
    const struct metrics_redis *redis; /* the stores that instances share; NULL: none */
    uint32_t redis_count;
    uint64_t unrouted; /* requests that belong to no service */
    becalm_ns now;     /* on the clock of the targets */
    bool open_metrics;
};

/* Adds the page to the buffer; buffer.full says that there was no memory. */
void metrics_write(struct buffer *, const struct metrics *);

/* Does this Accept header ask for OpenMetrics? And the Content-Type of either. */
bool metrics_accepts_open(struct becalm_text accept);
const char *metrics_content_type(bool open_metrics);

#endif
