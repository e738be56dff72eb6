/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_MEASURE_H
#define BECALM_SIM_MEASURE_H

/* The results of a run, in the figures that people compare. Shares and factors are in parts per million, so that the
 * same run prints the same digits on every machine.
 *
 *   mean       arrivals caused by calls begun from 1 s after the fault's start to its end, relative to the offered load
 *              of these calls; of all calls where there is no fault
 *   peak_5s    the worst 5 s / offered; peak_1s: the worst second, of the whole run
 *   success    by the instant at which a call began
 *   recovered  the first of ten seconds in a row with 99 % success, counted from the first whole second after the
 *              fault's end; seconds in which no call begins neither count nor break the row
 *   retries stop  since when, counted from there, no 5 s have more retries to any service than 1 % of what is offered
 *              to it in these seconds, or than what chance makes of its usual share before the fault: 3 sigma above it
 *   completed  when the last call of clients that make so many and no more has ended */

#include "world.h"

#define MEASURE_NEVER     UINT32_MAX
#define MEASURE_TOO_SHORT (UINT32_MAX - 1) /* all was well soon, and until the end, but not for ten seconds */
#define MEASURE_NEVER_US  UINT64_MAX
#define MEASURE_NO_MEAN   UINT64_MAX /* nothing was offered in its window: the fault lasts 1 s or less */
#define MEASURE_NO_SHARE  UINT64_MAX /* no call began in that time */

struct measure_service {
    uint64_t offered_milli;  /* arrivals per second if every hop made one attempt, in thousandths */
    const uint64_t *offered; /* the same by the second, for the calls that clients did begin in it */
    uint64_t mean_ppm;       /* or MEASURE_NO_MEAN */
    uint64_t peak_1s_ppm;
    uint64_t peak_5s_ppm;
    uint64_t refused_ppm; /* the same three for attempts whose connection was refused, which are no load */
    uint64_t refused_1s_ppm;
    uint64_t refused_5s_ppm;
    uint64_t queue_most;         /* requests that waited at the end of some second */
    uint64_t retry_ratio_ppm;    /* retries per first attempt sent to it */
    uint64_t endpoint_ratio_ppm; /* the same of its endpoint with the most; 0 without any */
    uint64_t attempts;           /* sent to it in the whole run */
    uint64_t falls;              /* recoveries after which it fell over again */
    uint64_t worst_100ms;        /* the most connections that reached it in 100 ms, after a recovery */
    struct world_effects effects;
};

struct measure {
    uint64_t calls;
    uint64_t connections;        /* that clients keep; success is then the share that is there */
    uint64_t success_ppm;        /* over the whole run; this and those below: or MEASURE_NO_SHARE */
    uint64_t success_before_ppm; /* before the fault: see scenario_fault_span() */
    uint64_t success_in_fault_ppm;
    uint64_t success_after_ppm;  /* in the 60 s after it */
    uint64_t fairness_ppm;       /* of the calls that succeeded in the fault, or in all without one: how many would have
                                    in a fair division too, in which every caller has the same and one that wants less leaves
                                    the rest; MEASURE_NO_SHARE: no two clients called then, or none had success */
    uint64_t failed_locally_ppm; /* of the calls in the window of the mean: refused before any attempt was sent */
    uint32_t recovered_after_s;  /* MEASURE_NEVER: not in this run, or there is no fault; or MEASURE_TOO_SHORT */
    uint32_t retries_stop_after_s;
    uint64_t completed_us;    /* MEASURE_NEVER_US: not in this run, or there is no end to the calls */
    uint64_t latency_mean_us; /* of successful calls: the mean, and quantiles */
    uint64_t latency_p50_us;
    uint64_t latency_p50_in_fault_us; /* of calls begun in the window of the mean */
    uint64_t latency_p99_us;
    uint64_t latency_p999_us;
    struct measure_service *service; /* one per service of the scenario */
    uint64_t *offered;               /* the memory that the entries point into */
};

/* Retries per first attempt, in ppm. */
uint64_t measure_retry_ratio_ppm(const struct world_sent *);

/* Is every client a loop of a certain number of calls, and then no more? */
bool measure_is_bounded(const struct scenario *);

/* A client's calls in the fault, or all of them where there is none. */
const struct world_tally *measure_client_window(const struct scenario *, const struct world_result *, uint32_t client);

/* 0 or BECALM_ENOMEM. */
int measure_take(const struct scenario *, const struct world_result *, struct measure *);
void measure_free(struct measure *);

/* The attempts that would have reached a service in the seconds [from, to) if every hop had made one attempt for each
 * call that clients began in these seconds; in thousandths. */
uint64_t measure_offered_milli(const struct measure *, uint32_t service, uint32_t from, uint32_t to);

#endif
