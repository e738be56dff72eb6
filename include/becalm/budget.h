/* SPDX-License-Identifier: MIT */
#ifndef BECALM_BUDGET_H
#define BECALM_BUDGET_H

/* Retry budgets: every retry must be paid from one. One interface, eight kinds:
 *
 *   earned       the default. A success earns `share` of a token, a retry costs one token, and the token is refunded if
 *                the retry succeeds or is never sent. So retries go on while they succeed, and stop when they fail.
 *                While few of the latest retries were lost, a success earns up to five times `share`; while most were
 *                lost, half of it. A dead service sees 1.0x. It begins with `start`, and holds at most
 *                max(1, min(10, W/10), W/50) tokens, where W is the number of first attempts in the last 10 s.
 *                A retry after an attempt that was never sent costs `never_sent_cost`.
 *   ratio        retries are at most `share` of the first attempts in `window` (SRE book: 10 % over 2 min; Finagle,
 *                Linkerd: plus `min_per_second`); with `of_attempts`, of all attempts (the book's way to count).
 *   tokens       `capacity` tokens, `refill_per_second`, or one `refill_every` so long (a plain token bucket).
 *   concurrency  retries in progress are at most max(floor(share * calls in progress), min_concurrency) (Envoy).
 *   adaptive     retries / first attempts stay below min_share + (max_share - min_share) * success rate.
 *   grpc         gRFC A6: a failure takes a token, a success returns token_ratio; retry while more than half is left.
 *   aws          capacity 500; a retry costs 5, after a timeout 10; its success refunds it, a first success gives 1.
 *   none         every retry is allowed, and counted.
 *
 * Retries and first attempts are always counted in the same unit over the same window. Checking and spending are one
 * atomic step. A budget is shared by all threads that call the target. */

#include <becalm/outcome.h>
#include <becalm/window.h>

BECALM_BEGIN_DECLS

enum becalm_budget_kind {
    BECALM_BUDGET_EARNED,
    BECALM_BUDGET_RATIO,
    BECALM_BUDGET_TOKENS,
    BECALM_BUDGET_CONCURRENCY,
    BECALM_BUDGET_ADAPTIVE,
    BECALM_BUDGET_GRPC,
    BECALM_BUDGET_AWS,
    BECALM_BUDGET_NONE
};

#define BECALM_TOKEN 1000000u /* one token; amounts are in millionths of it */

#define BECALM_EARNED_FAVOUR 5u /* earned: a success earns at most this many times `share`, and at most one token */

struct becalm_budget_policy {
    enum becalm_budget_kind kind;
    uint32_t share_ppm;       /* earned, ratio 100,000; concurrency 200,000; at most 1,000,000, ratio 1000 times that */
    uint32_t start;           /* earned: millionths of a token at the start, 1 token; at most 1000 tokens */
    uint32_t never_sent_cost; /* earned: millionths of a token, half a token; 1 to BECALM_TOKEN */
    becalm_ns window;         /* ratio, adaptive: 2 min; 1 s to 1 h */
    uint32_t min_per_second;  /* ratio: retries a second on top of the share, 0; at most 1,000,000 */
    bool of_attempts;         /* ratio: share of all attempts instead of first attempts, below 1,000,000 */
    uint32_t min_concurrency; /* concurrency: 3; at most 1,000,000 */
    uint32_t min_share_ppm;   /* adaptive: 100,000; at most max_share_ppm */
    uint32_t max_share_ppm;   /* adaptive: 300,000; at most 1,000,000 */
    uint32_t capacity;        /* tokens: 50; aws: 500; whole tokens, 1 to 1,000,000 */
    uint32_t refill_per_second; /* tokens: 20; at most 1,000,000; 0: never refilled */
    becalm_ns refill_every; /* tokens: not 0: one token comes back in so long, and refill_per_second is ignored; 0; at
                               most a day, and 100 years for the whole capacity */
    uint32_t max_tokens_milli;  /* grpc: 10,000 (10 tokens); 1 to 1,000,000 */
    uint32_t token_ratio_milli; /* grpc: 100 (0.1); 1 to 1,000,000 */
    uint32_t retry_cost;        /* aws: 5; 1 to the capacity */
    uint32_t timeout_cost;      /* aws: 10; 1 to the capacity */
};

/* Shared. Lives in becalm_budget_bytes() of memory, aligned to 64, because its window depends on the policy. The
 * numbers of its policy may change while the budget is in use. Another kind, another window or a refill of 0 needs a
 * new budget. */
struct becalm_budget {
    BECALM_ATOMIC(uint64_t) word; /* by kind: tokens left, the instant at which it is full, or retries and calls */
    BECALM_ATOMIC(uint64_t) cap;  /* earned: the cap, and until when it is valid */
    BECALM_ATOMIC(uint64_t) lost; /* earned: how the latest retries ended, and whether overload preceded them */
    /* A window follows, with lanes for first attempts, retries sent, successful attempts, attempts that ended. There is
     * no pointer to it, so that processes can share a budget in memory that each of them maps elsewhere. */
};

/* The price that one retry paid; the call that took it ends it with exactly one give. Zeroed: nothing is held. */
struct becalm_spend {
    uint64_t amount;
    becalm_ns taken_at;
    uint32_t cell;
    bool held;
    bool hard; /* the attempt before it timed out or was rejected, which are the signs of overload */
};

/* How a spend ends. */
enum becalm_spend_end {
    BECALM_SPEND_UNUSED, /* the retry was never sent: the price is refunded */
    BECALM_SPEND_WON,    /* the retry succeeded: earned and aws refund it */
    BECALM_SPEND_BEATEN, /* it was sent beside another attempt, which was answered first: refunded as if it had won, but
                            it says nothing about how retries end */
    BECALM_SPEND_LOST    /* the retry failed or was abandoned */
};

/* The defaults of one kind; every field is set, also those that the kind does not use. */
BECALM_API void becalm_budget_defaults(struct becalm_budget_policy *, enum becalm_budget_kind);

/* 0, or BECALM_EINVAL with a sentence in *why (if why is not NULL) that names the field. */
BECALM_API int becalm_budget_check(const struct becalm_budget_policy *, const char **why);

/* Bytes for one budget, a multiple of 64; 0 if the policy fails its check. `cells` is the number of threads; numbers
 * beyond the window's bounds are cut to them. */
BECALM_API size_t becalm_budget_bytes(const struct becalm_budget_policy *, uint32_t cells);

/* Makes a budget in `memory`, which is 64-aligned and of becalm_budget_bytes(). The policy must pass its check. */
BECALM_API struct becalm_budget *becalm_budget_init(void *memory, const struct becalm_budget_policy *, uint32_t cells);

/* For memory that another process may have damaged, like a file that processes share: does it hold a valid budget of
 * this very policy? The memory is as large and aligned as for init. */
BECALM_API bool becalm_budget_sound(const void *memory, const struct becalm_budget_policy *, uint32_t cells,
                                    becalm_ns now);

/* A reload: gives `to`, fresh from init, the fill fraction of `from`. Windows start empty; calls and retries in
 * progress are not carried, because they end in the budget in which they began. */
BECALM_API void becalm_budget_carry(struct becalm_budget *to, const struct becalm_budget_policy *to_policy,
                                    const struct becalm_budget *from, const struct becalm_budget_policy *from_policy,
                                    becalm_ns now);

/* A call begins with the sending of its first attempt, and ends: exactly once each. */
BECALM_API void becalm_budget_begin(struct becalm_budget *, const struct becalm_budget_policy *,
                                    const struct becalm_moment *);
BECALM_API void becalm_budget_end(struct becalm_budget *, const struct becalm_budget_policy *);

/* An attempt ended. `retried` says that it was a retry or hedge. Call this before the take for the next retry. */
BECALM_API void becalm_budget_note(struct becalm_budget *, const struct becalm_budget_policy *,
                                   const struct becalm_moment *, const struct becalm_outcome *, bool retried);

/* Asks for a retry after an attempt that ended as `cause`. True: paid, *spend is held. False: *spend is as it was. */
BECALM_API bool becalm_budget_take(struct becalm_budget *, const struct becalm_budget_policy *,
                                   const struct becalm_moment *, enum becalm_outcome_kind cause,
                                   struct becalm_spend *spend);

/* The price of a retry after an attempt with this outcome, in the unit of becalm_budget_left(). */
BECALM_API uint64_t becalm_budget_price(const struct becalm_budget_policy *, enum becalm_outcome_kind cause);

/* Ends a spend. A spend that is not held is left alone, so that giving back twice is harmless. */
BECALM_API void becalm_budget_give(struct becalm_budget *, const struct becalm_budget_policy *,
                                   const struct becalm_moment *, struct becalm_spend *, enum becalm_spend_end);

/* The retries that are left now, in millionths of a retry. earned, tokens, aws: the retries that the tokens pay for;
 * grpc: the tokens above half; ratio, adaptive, concurrency: how many more retries there is room for; none: UINT64_MAX.
 */
BECALM_API uint64_t becalm_budget_left(const struct becalm_budget *, const struct becalm_budget_policy *,
                                       becalm_ns now);

/* For display: the most that the budget may hold now. For kinds that count retries, this is the number that would be
 * left if no retry had been made. The second function returns becalm_budget_left() as a share of it, in ppm. */
BECALM_API uint64_t becalm_budget_cap(const struct becalm_budget *, const struct becalm_budget_policy *, becalm_ns now);
BECALM_API uint32_t becalm_budget_fill_ppm(const struct becalm_budget *, const struct becalm_budget_policy *,
                                           becalm_ns now);

/* Retries as a share of first attempts over the budget's window (10 s for kinds without one), in ppm. */
BECALM_API uint32_t becalm_budget_retry_ratio(const struct becalm_budget *, becalm_ns now);

/* The window's sums for display: first attempts, retries sent; adaptive: successful attempts, attempts that ended. */
BECALM_API void becalm_budget_read(const struct becalm_budget *, becalm_ns now, struct becalm_window_sums *);

BECALM_END_DECLS

#endif
