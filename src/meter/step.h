/* SPDX-License-Identifier: MIT */
#ifndef BECALM_METER_STEP_H
#define BECALM_METER_STEP_H

/* The meaning of a call's steps for counters and logs, for every driver: which step begins a wait, which one sends a
 * retry for the first time, which one moves the circuit breaker. */

#include "meter.h"

/* The state of one call's steps so far; meter_begin() fills it. Of the latest retry or hedge: */
struct meter_steps {
    bool retries;            /* the call is one of `active_retries` */
    bool due;                /* the retry was decided on and not sent yet */
    uint32_t sent;           /* the highest number among the attempts that were sent; 0 is the first attempt's */
    enum becalm_reason why;  /* BACKOFF, HINT or HEDGE; NONE: there was none */
    struct becalm_wait wait; /* how its wait was made */
    becalm_ns since;         /* when its wait began */
    becalm_ns waited;        /* how long it took until it was sent */
};

/* The meaning of one step, as bits. */
enum {
    METER_STEP_BREAKER = 1 << 0, /* the circuit breaker changed its state */
    METER_STEP_WAITS = 1 << 1,   /* a retry was decided on, and waits */
    METER_STEP_SENDS = 1 << 2    /* a retry or a hedge is sent; not set when it is sent again because no host took it */
};

/* Returns the meaning of a step; nothing is counted. A retry that no host took is sent again under its number, unless
 * the number was a hedge's, which was withdrawn: then a wait lies between. */
static inline unsigned meter_step_means(const struct meter_steps *steps, const struct becalm_action *action)
{
    bool again = (action->flags & BECALM_DO_SEND) != 0 && action->attempt > 0;
    return (becalm_action_moves_breaker(action) ? METER_STEP_BREAKER : 0) |
           (becalm_action_delays_retry(action) ? METER_STEP_WAITS : 0) |
           (again && (steps->due || action->attempt > steps->sent) ? METER_STEP_SENDS : 0);
}

/* A call begins: one more in progress. */
static inline void meter_begin(struct meter *meter, struct meter_steps *steps)
{
    steps->retries = false;
    steps->due = false;
    steps->sent = 0;
    steps->why = BECALM_WHY_NONE;
    meter_add(&meter->active, 1);
}

/* Counts a step at `now`, with the meaning from meter_step_means(). A step without a meaning need not be counted. */
void meter_step(struct meter *, struct meter_steps *, unsigned means, const struct becalm_action *, becalm_ns now);

/* The call has ended, and this was its last step: `status` was told to its caller, or METER_CLIENT_LEFT. */
void meter_end(struct meter *, const struct meter_steps *, const struct becalm_record *, uint32_t status);

/* The same for a call whose caller has no answer yet, because a fallback is called for it. */
void meter_end_untold(struct meter *, const struct meter_steps *, const struct becalm_record *);

/* An attempt has ended with this status (0: without an answer), and the step of its end gave this action. If no host
 * took it and its call waits for one, it counts as a probe and not as an attempt. */
static inline void meter_attempt_ended(struct meter *meter, const struct becalm_action *action, uint32_t status)
{
    if (action->why == BECALM_WHY_NO_HOST) {
        meter_add(&meter->probes, 1);
    } else {
        meter_attempt(meter, &(struct becalm_outcome){.status = status});
    }
}

#endif
