/* SPDX-License-Identifier: MIT */
#ifndef BECALM_DEMO_REHEARSAL_H
#define BECALM_DEMO_REHEARSAL_H

/* Repeats the latest run of the lanes in the simulator: the same services, users, faults, pauses and policies in
 * virtual time. On a thread of its own, since a storm has many events. */

#include "lane.h"

#define REHEARSAL_SECONDS_MAX 600u
#define REHEARSAL_FAULTS_MAX  64u
#define REHEARSAL_PAUSES_MAX  64u

struct rehearsal_fault {
    enum service_fault fault;
    becalm_ns at; /* since the beginning of the rehearsed time */
    becalm_ns length;
};

/* No calls. */
struct rehearsal_pause {
    becalm_ns at;
    becalm_ns length;
};

struct rehearsal_plan {
    uint32_t seconds;
    const char *policy[LANE_COUNT]; /* the lanes' texts; they outlive the rehearsal */
    struct rehearsal_fault fault[REHEARSAL_FAULTS_MAX];
    uint32_t fault_count;
    struct rehearsal_pause pause[REHEARSAL_PAUSES_MAX];
    uint32_t pause_count;
};

/* By the second. */
struct rehearsal_lane {
    uint32_t arrivals[REHEARSAL_SECONDS_MAX]; /* at the last service */
    uint32_t begun[REHEARSAL_SECONDS_MAX];
    uint32_t good[REHEARSAL_SECONDS_MAX]; /* of those begun */
};

struct rehearsal_result {
    int rc; /* 0, or BECALM_E... */
    uint32_t seconds;
    uint64_t events;
    becalm_ns took;
    struct rehearsal_lane lane[LANE_COUNT];
};

/* The scenario as a file for `becalm sim`. Its length; 0: it does not fit. */
size_t rehearsal_write(const struct rehearsal_plan *, char *text, size_t size);

/* Runs it now, on the caller's thread. */
void rehearsal_run(const struct rehearsal_plan *, struct rehearsal_result *);

/* The same on a thread of its own, which wakes the loop when it is done. */
struct rehearsal;
struct rehearsal *rehearsal_begin(const struct rehearsal_plan *, struct loop *); /* NULL with errno */
bool rehearsal_done(struct rehearsal *);                                         /* the result may be looked at */
const struct rehearsal_result *rehearsal_result(const struct rehearsal *);
void rehearsal_free(struct rehearsal *); /* waits for its end */

#endif
