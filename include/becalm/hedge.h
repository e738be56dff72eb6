/* SPDX-License-Identifier: MIT */
#ifndef BECALM_HEDGE_H
#define BECALM_HEDGE_H

/* Hedging (Dean, Barroso, "The Tail at Scale", 2013): when an attempt takes longer than most, send a second one to
 * another host and take the first answer. Idempotent calls hedge instead of retrying, never both (gRFC A6). A hedge
 * pays from a bucket of its own, into which each success puts `share`, and gets its token back when it wins. In
 * overload hardly any hedge wins, so there are soon no tokens left for more. */

#include <becalm/outcome.h>
#include <becalm/sketch.h>

BECALM_BEGIN_DECLS

struct becalm_hedge_policy {
    bool enabled;          /* false */
    becalm_ns delay;       /* fixed, at most 1 h; 0: at the quantile below */
    uint32_t quantile_ppm; /* 950,000: p95 of the target's first attempts; 1 to 999,999 */
    uint32_t max;          /* hedges per call, 1; at most 4 */
    uint32_t share_ppm;    /* the share of a token that a success earns, 50,000; at most 1,000,000 */
    uint32_t cap;          /* bucket, in millionths of a token, 2 tokens; 1 to 1,000 */
    uint32_t non_fatal;    /* after these the next hedge is sent at once: broken, rejected, refused */
    uint32_t min_notes;    /* no quantile from fewer latencies, 20; 1 to 1,000,000 */
};

struct becalm_hedge {
    BECALM_ATOMIC(uint64_t) tokens; /* millionths; starts full */
    BECALM_ATOMIC(uint64_t) sent;
    BECALM_ATOMIC(uint64_t) won;   /* hedges that answered first */
    BECALM_ATOMIC(uint64_t) saved; /* calls that only a hedge answered, because all other attempts failed */
};

BECALM_API void becalm_hedge_defaults(struct becalm_hedge_policy *);
BECALM_API int becalm_hedge_check(const struct becalm_hedge_policy *, const char **why);
BECALM_API void becalm_hedge_init(struct becalm_hedge *, const struct becalm_hedge_policy *);

/* A reload: gives `to`, fresh from init, the fill fraction and the counts of `from`. */
BECALM_API void becalm_hedge_carry(struct becalm_hedge *to, const struct becalm_hedge_policy *to_policy,
                                   const struct becalm_hedge *from, const struct becalm_hedge_policy *from_policy);

/* How long after an attempt the next hedge is due; NEVER while there is no quantile yet. */
BECALM_API becalm_ns becalm_hedge_delay(const struct becalm_hedge_policy *, struct becalm_sketch *, becalm_ns now);

/* Pays for one hedge. `crowded` (the limit is over 80 % used) and `half_open` refuse. */
BECALM_API bool becalm_hedge_take(struct becalm_hedge *, bool crowded, bool half_open);

/* A success of the target: earns. */
BECALM_API void becalm_hedge_earn(struct becalm_hedge *, const struct becalm_hedge_policy *);

/* A hedge was never sent, or its answer was used: the token is refunded. `saved`: every other attempt had failed. */
BECALM_API void becalm_hedge_give(struct becalm_hedge *, const struct becalm_hedge_policy *);
BECALM_API void becalm_hedge_won(struct becalm_hedge *, const struct becalm_hedge_policy *, bool saved);

BECALM_END_DECLS

#endif
