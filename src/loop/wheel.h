/* SPDX-License-Identifier: MIT */
#ifndef BECALM_LOOP_WHEEL_H
#define BECALM_LOOP_WHEEL_H

/* Timers by the million: arming and disarming cost a few instructions, and nothing is allocated. A hierarchical wheel
 * (Varghese and Lauck, 1987) with ticks of 1 ms; a timer fires at its time or up to 1 ms later, never before. */

#include <becalm/ns.h>

#define WHEEL_LEVELS 5u
#define WHEEL_SLOTS  64u

/* Embedded in its owner. Zeroed: not armed. */
struct timer {
    struct timer *next;
    struct timer **link; /* the pointer to this timer; NULL: not armed */
    becalm_ns at;
    void (*fire)(struct timer *);
};

struct wheel {
    uint64_t tick;               /* the next one to be run; everything before it has fired */
    uint64_t used[WHEEL_LEVELS]; /* bit n: slot n may hold timers */
    struct timer *slot[WHEEL_LEVELS][WHEEL_SLOTS];
};

void wheel_init(struct wheel *, becalm_ns now);

/* Arms or re-arms. BECALM_NEVER disarms. A time that has passed fires at the next run. */
void wheel_arm(struct wheel *, struct timer *, becalm_ns at);
void timer_disarm(struct timer *);

static inline bool timer_armed(const struct timer *timer)
{
    return timer->link != NULL;
}

/* No timer fires before this; BECALM_NEVER: none is armed. The result may be too early, never too late. */
becalm_ns wheel_next(struct wheel *);

/* Fires all timers that are due. A timer is disarmed when it fires; `fire` may arm and disarm any timer. */
void wheel_run(struct wheel *, becalm_ns now);

#endif
