/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PLAN_LATENCY_H
#define BECALM_PLAN_LATENCY_H

/* Measured latencies as a distribution: all of them from a file, or a Prometheus histogram. Both answer the same
 * questions: which latency do this share of answers not exceed, and which with a hedge. */

#include <becalm/ns.h>

#include <stdio.h>

#define PLAN_LATENCIES_MAX 1000000u                          /* lines of a file */
#define PLAN_LATENCY_MAX   (24 * 3600 * (becalm_ns)BECALM_S) /* of one */
#define PLAN_WHY_MAX       256u                              /* of an error's sentence */

/* One bucket of a histogram: how many answers took at most `le` seconds; +Inf is INFINITY. */
struct plan_bucket {
    double le;
    double count;
};

struct plan_point {
    double at;    /* nanoseconds */
    double share; /* of the answers that took at most that long */
};

struct plan_latency {
    struct plan_point *point; /* both coordinates ascend */
    size_t count;
    uint64_t answers; /* how many were measured */
    bool single;      /* each answer is a point: the share jumps there; otherwise it is linear between points */
};

/* Reads one latency per line: a duration (12.5ms) or a number of milliseconds; blank lines and comments after # are
 * skipped. On failure false, with "name:line: the error" in `why`. Free it in either case. */
bool plan_latency_read(struct plan_latency *, FILE *in, const char *name, char why[PLAN_WHY_MAX]);

/* From the buckets of a histogram in any order; sorts them. False if nothing is in them. */
bool plan_latency_from_buckets(struct plan_latency *, struct plan_bucket *, size_t count, char why[PLAN_WHY_MAX]);

void plan_latency_free(struct plan_latency *);

/* The latency that a share `q` of the answers does not exceed. False, with the last bound, when it lies beyond that. */
bool plan_latency_quantile(const struct plan_latency *, double q, becalm_ns *out);

/* The same when a second request is sent after `delay` and the first answer is taken. It assumes that the two are slow
 * independently of each other. */
bool plan_latency_hedged(const struct plan_latency *, becalm_ns delay, double q, becalm_ns *out);

#endif
