/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PLAN_CONTENTION_H
#define BECALM_PLAN_CONTENTION_H

/* Clients that failed together and come back in one of W slots, each at random (binary exponential backoff: W = 2^c
 * after c collisions). Two of them meet with probability 1/W, so N(N-1)/2W pairs do. */

#include <stdint.h>

/* Expected pairs of clients in the same slot. */
double plan_collisions(uint64_t clients, uint64_t slots);

/* Expected clients that have their slot to themselves: N(1-1/W)^(N-1). */
double plan_alone(uint64_t clients, uint64_t slots);

/* The least window with at most one expected collision: it grows with the square of N. */
double plan_quiet_window(uint64_t clients);

/* Expected pairs for each kind of jitter over a delay of `slots` slots. */
struct plan_jitter {
    double none;         /* all in one slot, however long the delay is */
    double full;         /* over the whole delay */
    double equal;        /* over its second half */
    double decorrelated; /* at its cap, where two waits of three are the cap itself */
};

struct plan_jitter plan_jitter(uint64_t clients, uint64_t slots);

#endif
