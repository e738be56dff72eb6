/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PLAN_PROMETHEUS_H
#define BECALM_PLAN_PROMETHEUS_H

/* Asks a Prometheus over its HTTP API. An answer is bounded in time and size; any error is reported as one sentence. */

#include "latency.h"

#define PROMETHEUS_RETRIES  "http_client_retry_attempts_total"
#define PROMETHEUS_REQUESTS "http_client_requests_total"
#define PROMETHEUS_LATENCY  "becalm_request_duration_seconds"

struct prometheus {
    const char *url;     /* http://127.0.0.1:9090, or with a path before /api */
    const char *service; /* NULL: all services together */
    becalm_ns window;    /* how far back, whole seconds, at least 1 */
    becalm_ns rate;      /* the range of rate(), whole seconds, at least 1 */
    becalm_ns timeout;   /* of one question */
};

/* The most retries per second and the average of requests per second within the window. */
bool prometheus_traffic(const struct prometheus *, double *requests, double *retries, char why[PLAN_WHY_MAX]);

/* The distribution within the window of a histogram; `metric` is its name without _bucket. Free it in either case. */
bool prometheus_latency(const struct prometheus *, const char *metric, struct plan_latency *, char why[PLAN_WHY_MAX]);

/* Is this a metric's name: letters, digits, _ and :, no digit first? Others would be a query of their own. */
bool prometheus_metric_name(const char *);

/* The answer of /api/v1/query: each sample's value, and its label `le` as a number (0 if it has none). Returns how many
 * there are, at most `room`; -1 with a sentence if the answer is invalid, or the server reports an error. */
int prometheus_parse(const char *text, size_t length, struct plan_bucket *sample, size_t room, char why[PLAN_WHY_MAX]);

#endif
