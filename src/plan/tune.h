/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PLAN_TUNE_H
#define BECALM_PLAN_TUNE_H

/* The numbers of a retry policy, from measured latencies:
 *
 *   attemptTimeout  p99.5 * 1.1, rounded up to two digits: just above the latency of a healthy
 *                   service (AWS Builders' Library), so that one answer in 200 at most is given up too early
 *   initialDelay    one healthy round trip (p50, rounded up to two digits), and at least 100 ms where that leaves room
 *                   for a retry
 *   maxRetries      as many as fit into the deadline even if every attempt runs into its timeout and every wait is
 *                   drawn at its longest; at most 2, since three attempts are enough (SRE book)
 *   maxDelay        the longest of these waits
 *
 * The waits double. */

#include <becalm/ns.h>

#define PLAN_RETRIES_ENOUGH 2u
#define PLAN_RETRIES_MAX    100u
#define PLAN_BASE_LEAST     (100 * BECALM_MS)

/* The measurements and the goals; 0: not known. */
struct plan_tune_input {
    becalm_ns deadline; /* needed */
    becalm_ns p50;      /* needed */
    becalm_ns p99_5;
    becalm_ns initial_delay; /* wishes */
    becalm_ns max_delay;
    uint32_t retries;
    bool judge; /* `retries` is a wish, to be judged */
};

/* n retries and the time they may take. */
struct plan_schedule {
    uint32_t retries;
    becalm_ns each; /* of one attempt */
    becalm_ns base;
    becalm_ns cap;
    becalm_ns attempts; /* (retries + 1) * each */
    becalm_ns waits;    /* all of them, each at its longest */
    becalm_ns all;
};

struct plan_tuning {
    becalm_ns attempt_timeout; /* 0: p99.5 is not known */
    becalm_ns base;
    becalm_ns cap;
    uint32_t retries;            /* recommended, or the wish */
    uint32_t fits;               /* how many would fit, up to PLAN_RETRIES_MAX */
    struct plan_schedule worst;  /* of `retries` when every attempt runs into its timeout; p50 if that is not known */
    struct plan_schedule common; /* of `retries` when every attempt takes p50: if this does not fit, it is refused */
    bool refused;                /* the wish */
    bool cut;                    /* the last attempt may have less than its timeout */
    bool whole;                  /* false: the deadline is shorter than one attempt's timeout */
};

void plan_schedule(struct plan_schedule *, uint32_t retries, becalm_ns each, becalm_ns base, becalm_ns cap);

void plan_tune(const struct plan_tune_input *, struct plan_tuning *);

/* The wait before retry n (1 is the first): base * 2^(n-1), at most the cap. */
becalm_ns plan_wait(becalm_ns base, becalm_ns cap, uint32_t n);

#endif
