/* SPDX-License-Identifier: MIT */
#ifndef BECALM_RATE_H
#define BECALM_RATE_H

/* The client-side rate limit of AWS's `adaptive` retry mode: off until the first throttling answer, then a token bucket
 * whose rate follows CUBIC: down to 0.7 of the measured rate, then up along 0.4 * (t - K)^3 + w_max with K = cbrt(w_max
 * * 0.3 / 0.4). One object per target: throttling by one target must not slow calls to another.
 *
 * Rates are in thousandths of a request per second, times in milliseconds clamped to 60 s, so nothing overflows. */

#include <becalm/outcome.h>

BECALM_BEGIN_DECLS

struct becalm_rate_policy {
    bool enabled; /* false */
};

struct becalm_rate {
    BECALM_ATOMIC(uint64_t) full_at;  /* when the bucket is full again: one word holds level and time */
    BECALM_ATOMIC(uint64_t) fill;     /* requests per second, in thousandths; 0: off, no server has throttled us yet */
    BECALM_ATOMIC(uint64_t) measured; /* requests per second that were sent and are over, in thousandths, smoothed */
    BECALM_ATOMIC(uint64_t) bucket;   /* half second being counted, and its count */
    BECALM_ATOMIC(uint64_t) last_max; /* w_max */
    BECALM_ATOMIC(uint64_t) throttled_at;
};

BECALM_API void becalm_rate_init(struct becalm_rate *);

/* A reload: gives `to`, fresh from init, the rate and the bucket of `from`. */
BECALM_API void becalm_rate_carry(struct becalm_rate *to, const struct becalm_rate *from);

/* One send. Returns how long to wait before it, 0 for none; the token is taken either way. */
BECALM_API becalm_ns becalm_rate_take(struct becalm_rate *, becalm_ns now);

/* How long the next send would have to wait. */
BECALM_API becalm_ns becalm_rate_peek(const struct becalm_rate *, becalm_ns now);

/* Gives back the token of a send that never happened. */
BECALM_API void becalm_rate_give(struct becalm_rate *, becalm_ns now);

/* An attempt ended. A rate-limited or rejected attempt lowers the rate, any other answer raises it. An attempt without
 * an answer only counts as sent, unless it was never sent. */
BECALM_API void becalm_rate_note(struct becalm_rate *, becalm_ns now, const struct becalm_outcome *);

/* The rate now, in thousandths of a request per second; 0 while it is off. */
BECALM_API uint64_t becalm_rate_now(const struct becalm_rate *);

/* CUBIC by itself, for tests and displays: K in milliseconds from w_max, and the rate `since` after a throttle. */
BECALM_API uint64_t becalm_rate_k_ms(uint64_t max_milli);
BECALM_API uint64_t becalm_rate_cubic(uint64_t max_milli, becalm_ns since);

BECALM_END_DECLS

#endif
