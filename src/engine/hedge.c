/* SPDX-License-Identifier: MIT */
#include <becalm/hedge.h>

#define TOKEN       UINT64_C(1000000) /* amounts are in millionths of a token */
#define PPM         1000000u
#define MAX_MAX     4u
#define CAP_MAX     1000000000u /* 1,000 tokens */
#define DELAY_MAX   (3600 * BECALM_S)
#define NOTES_MAX   1000000u
#define DELAY_LEAST BECALM_US /* the sketch's own resolution */

void becalm_hedge_defaults(struct becalm_hedge_policy *policy)
{
    *policy = (struct becalm_hedge_policy){
        .enabled = false,
        .delay = 0,
        .quantile_ppm = 950000,
        .max = 1,
        .share_ppm = 50000,
        .cap = 2 * TOKEN,
        .non_fatal = BECALM_OUTCOME_BIT(BECALM_OUTCOME_BROKEN) | BECALM_OUTCOME_BIT(BECALM_OUTCOME_REJECTED) |
                     BECALM_OUTCOME_BIT(BECALM_OUTCOME_REFUSED),
        .min_notes = 20,
    };
}

/* After these there is nothing left to send a hedge for. */
#define FATAL                                                                               \
    (BECALM_OUTCOME_BIT(BECALM_OUTCOME_OK) | BECALM_OUTCOME_BIT(BECALM_OUTCOME_PERMANENT) | \
     BECALM_OUTCOME_BIT(BECALM_OUTCOME_CANCELLED))

int becalm_hedge_check(const struct becalm_hedge_policy *policy, const char **why)
{
    const char *wrong = NULL;
    if (policy->delay > DELAY_MAX) {
        wrong = "delay must be at most 1 h";
    } else if (policy->quantile_ppm < 1 || policy->quantile_ppm >= PPM) {
        wrong = "quantile_ppm must be from 1 to 999,999";
    } else if (policy->max < 1 || policy->max > MAX_MAX) {
        wrong = "max must be from 1 to 4";
    } else if (policy->share_ppm > PPM) {
        wrong = "share_ppm must be at most 1,000,000 (1)";
    } else if (policy->cap < TOKEN || policy->cap > CAP_MAX) {
        wrong = "cap must be from 1,000,000 (1 token) to 1,000,000,000 (1,000 tokens)";
    } else if (policy->non_fatal >> BECALM_OUTCOME_COUNT != 0) {
        wrong = "non_fatal must be a set of BECALM_OUTCOME_BIT()";
    } else if ((policy->non_fatal & FATAL) != 0) {
        wrong = "non_fatal must not contain ok, permanent or cancelled";
    } else if (policy->min_notes < 1 || policy->min_notes > NOTES_MAX) {
        wrong = "min_notes must be from 1 to 1,000,000";
    }
    if (why != NULL) {
        *why = wrong;
    }
    return wrong == NULL ? 0 : BECALM_EINVAL;
}

void becalm_hedge_init(struct becalm_hedge *hedge, const struct becalm_hedge_policy *policy)
{
    BECALM_ASSERT(becalm_hedge_check(policy, NULL) == 0);
    atomic_init(&hedge->tokens, policy->cap);
    atomic_init(&hedge->sent, 0);
    atomic_init(&hedge->won, 0);
    atomic_init(&hedge->saved, 0);
}

/* Everything here is relaxed: the token count guards no other memory, a lost race only re-reads it, and the counters
 * are for display. */

void becalm_hedge_carry(struct becalm_hedge *to, const struct becalm_hedge_policy *to_policy,
                        const struct becalm_hedge *from, const struct becalm_hedge_policy *from_policy)
{
    uint64_t tokens = atomic_load_explicit(&from->tokens, memory_order_relaxed);
    tokens = tokens * to_policy->cap / from_policy->cap; /* both at most 10^9, see the check */
    atomic_store_explicit(&to->tokens, tokens, memory_order_relaxed);
    atomic_store_explicit(&to->sent, atomic_load_explicit(&from->sent, memory_order_relaxed), memory_order_relaxed);
    atomic_store_explicit(&to->won, atomic_load_explicit(&from->won, memory_order_relaxed), memory_order_relaxed);
    atomic_store_explicit(&to->saved, atomic_load_explicit(&from->saved, memory_order_relaxed), memory_order_relaxed);
}

becalm_ns becalm_hedge_delay(const struct becalm_hedge_policy *policy, struct becalm_sketch *sketch, becalm_ns now)
{
    if (policy->delay != 0) {
        return policy->delay;
    }
    if (sketch == NULL || becalm_sketch_count(sketch, now) < policy->min_notes) {
        return BECALM_NEVER;
    }
    return becalm_ns_max(becalm_sketch_live(sketch, now, policy->quantile_ppm), DELAY_LEAST);
}

bool becalm_hedge_take(struct becalm_hedge *hedge, bool crowded, bool half_open)
{
    if (crowded || half_open) {
        return false;
    }
    uint64_t have = atomic_load_explicit(&hedge->tokens, memory_order_relaxed);
    while (have >= TOKEN) {
        if (atomic_compare_exchange_weak_explicit(&hedge->tokens, &have, have - TOKEN, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            atomic_fetch_add_explicit(&hedge->sent, 1, memory_order_relaxed);
            return true;
        }
    }
    return false;
}

/* A full bucket is not written at all. */
static void deposit(struct becalm_hedge *hedge, uint64_t amount, uint64_t cap)
{
    uint64_t have = atomic_load_explicit(&hedge->tokens, memory_order_relaxed);
    while (have < cap && amount != 0) {
        uint64_t then = cap - have > amount ? have + amount : cap;
        if (atomic_compare_exchange_weak_explicit(&hedge->tokens, &have, then, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            return;
        }
    }
}

void becalm_hedge_earn(struct becalm_hedge *hedge, const struct becalm_hedge_policy *policy)
{
    deposit(hedge, policy->share_ppm, policy->cap);
}

void becalm_hedge_give(struct becalm_hedge *hedge, const struct becalm_hedge_policy *policy)
{
    atomic_fetch_sub_explicit(&hedge->sent, 1, memory_order_relaxed);
    deposit(hedge, TOKEN, policy->cap);
}

void becalm_hedge_won(struct becalm_hedge *hedge, const struct becalm_hedge_policy *policy, bool saved)
{
    atomic_fetch_add_explicit(&hedge->won, 1, memory_order_relaxed);
    if (saved) {
        atomic_fetch_add_explicit(&hedge->saved, 1, memory_order_relaxed);
    }
    deposit(hedge, TOKEN, policy->cap);
}
