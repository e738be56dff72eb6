/* SPDX-License-Identifier: MIT */
#ifndef BECALM_RAND_H
#define BECALM_RAND_H

/* Random draws from bits that the driver supplies. Nothing here has state or entropy of its own, so the same event
 * gives the same draw on every machine. A driver without a generator at hand can use becalm_rand_next(). */

#include <becalm/base.h>

BECALM_BEGIN_DECLS

/* Two draws in one step use two lanes of the event's bits; a new lane changes no other lane's draws. */
enum becalm_lane {
    BECALM_LANE_JITTER = 1, /* backoff */
    BECALM_LANE_HINT,       /* spread on a server's Retry-After */
    BECALM_LANE_BREAKER,    /* open time */
    BECALM_LANE_THROTTLE,   /* client-side rejection */
    BECALM_LANE_PACE,       /* limit at one slot */
    BECALM_LANE_PICK,       /* first choice of a host */
    BECALM_LANE_PICK_OTHER, /* second choice of a host */
    BECALM_LANE_SAMPLE,     /* which attempts the latency sketch takes */
    BECALM_LANE_SHED,       /* load shedding by CPU share */
    BECALM_LANE_INSTANCE,   /* the name of an instance that asks for a lease */
    BECALM_LANE_ASK,        /* when to ask the store again */
    BECALM_LANE_TURN,       /* which worker's turn it is at a gate */
    BECALM_LANE_BESIDE,     /* when a layer of a chain sends another attempt beside an overdue one */
    BECALM_LANE_REFUSAL     /* how long a caller's call waits before an open breaker refuses it */
};

/* An independent 64-bit value for one lane of the same bits (the finaliser of SplitMix64). */
BECALM_API uint64_t becalm_rand_lane(uint64_t random, enum becalm_lane lane);

/* Uniform in [0, bound), without modulo bias worth the name: the error is below bound / 2^64 (Lemire's multiply).
 * A bound of 0 or 1 returns 0. */
BECALM_API uint64_t becalm_rand_below(uint64_t random, uint64_t bound);

/* Uniform in [low, high], both included. An empty range (high < low) returns low. */
BECALM_API uint64_t becalm_rand_between(uint64_t random, uint64_t low, uint64_t high);

/* True with probability ppm / 1,000,000. 0 is never, 1,000,000 and more is always. */
BECALM_API bool becalm_rand_chance(uint64_t random, uint32_t ppm);

/* A generator for drivers, tests and simulations: SplitMix64. *state is any seed, also 0. Not for secrets. */
BECALM_API uint64_t becalm_rand_next(uint64_t *state);

BECALM_END_DECLS

#endif
