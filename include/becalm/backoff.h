/* SPDX-License-Identifier: MIT */
#ifndef BECALM_BACKOFF_H
#define BECALM_BACKOFF_H

/* How long to wait before a retry. Growth spreads retries over time, jitter over callers (Brooker, "Exponential Backoff
 * and Jitter", 2015). The cap is applied first, and jitter only shortens the capped wait. So a fleet whose waits have
 * all reached the cap is still spread out, and no wait exceeds the cap. Nothing overflows: the growth saturates at the
 * cap. */

#include <becalm/ns.h>
#include <becalm/rand.h>

BECALM_BEGIN_DECLS

enum becalm_growth {
    BECALM_GROWTH_EXPONENTIAL, /* base * factor^(n-1) */
    BECALM_GROWTH_LINEAR,      /* base * n */
    BECALM_GROWTH_CONSTANT     /* base */
};

enum becalm_jitter {
    BECALM_JITTER_FULL,         /* U[0, d] */
    BECALM_JITTER_NONE,         /* d */
    BECALM_JITTER_EQUAL,        /* d/2 + U[0, d/2] */
    BECALM_JITTER_DECORRELATED, /* min(cap, U[base, 3 * previous]); growth is not used */
    BECALM_JITTER_PROPORTIONAL, /* U[d(1-f), min(cap, d(1+f))] */
    BECALM_JITTER_CUSTOM        /* policy.custom */
};

/* The caller's own jitter: from the capped delay and 64 random bits to a wait. The result is cut at the cap. */
typedef becalm_ns becalm_jitter_fn(becalm_ns delay, uint64_t random, void *data);

struct becalm_backoff_policy {
    enum becalm_growth growth;
    enum becalm_jitter jitter;
    becalm_ns base;      /* 100 ms; at least one healthy round trip. In a caller, calls wait for less than this before
                            an open breaker refuses them */
    becalm_ns cap;       /* 10 s; at least the base */
    uint32_t factor_ppm; /* 2,000,000: doubling; 1,000,000 to 100,000,000 */
    uint32_t jitter_ppm; /* PROPORTIONAL: 500,000 is half; at most 1,000,000 */
    becalm_jitter_fn *custom;
    void *custom_data;
};

/* One wait, and the numbers that it was computed from, for the log line. */
struct becalm_wait {
    becalm_ns delay;    /* by growth and cap, before jitter */
    becalm_ns jittered; /* after jitter */
    becalm_ns wait;     /* how long to sleep: `jittered`, raised to the server's hint */
    bool hinted;        /* the hint decided */
};

BECALM_API void becalm_backoff_defaults(struct becalm_backoff_policy *);

/* 0, or BECALM_EINVAL with a sentence in *why (if why is not NULL) that names the field. */
BECALM_API int becalm_backoff_check(const struct becalm_backoff_policy *, const char **why);

/* Delay before retry n (1 is the first), by growth and cap alone. n = 0 gives 0. */
BECALM_API becalm_ns becalm_backoff_delay(const struct becalm_backoff_policy *, uint32_t n);

/* The inputs of one wait. */
struct becalm_backoff_draw {
    uint32_t n;         /* which retry: 1 is the first */
    becalm_ns previous; /* the jittered wait of retry n-1; 0 before the first */
    becalm_ns hint;     /* the wait that the server asked for; BECALM_NEVER: it asked for none */
    uint64_t random;    /* the event's bits */
};

/* The whole wait. A server's hint is a floor, spread upwards: max(jittered, hint * U[1.0, 1.5)), so that a thousand
 * clients that were told "in 5 s" do not all retry after exactly 5 s. */
BECALM_API void becalm_backoff_wait(const struct becalm_backoff_policy *, const struct becalm_backoff_draw *,
                                    struct becalm_wait *);

BECALM_END_DECLS

#endif
