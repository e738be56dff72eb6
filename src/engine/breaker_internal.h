/* SPDX-License-Identifier: MIT */
#ifndef BECALM_BREAKER_INTERNAL_H
#define BECALM_BREAKER_INTERNAL_H

#include <becalm/breaker.h>

/* The word: 3 bits of state, 16 of probes left, 13 of openings in a row, 32 of generation. */

#define BECALM__GENERATION_SHIFT 32

static inline enum becalm_breaker_state becalm__breaker_word_state(uint64_t word)
{
    return (enum becalm_breaker_state)(word & 7u);
}

static inline uint32_t becalm__breaker_word_generation(uint64_t word)
{
    return (uint32_t)(word >> BECALM__GENERATION_SHIFT);
}

static inline uint64_t becalm__breaker_word(const struct becalm_breaker *b)
{
    /* acquire: pairs with breaker_enter's release, so that the words written for this generation are seen with it. */
    return atomic_load_explicit(&b->word, memory_order_acquire);
}

/* Is it CLOSED? Nearly always, so a hot path asks this first, without a function call. */
static inline bool becalm__breaker_plain(const struct becalm_breaker *b)
{
    return becalm__breaker_word_state(becalm__breaker_word(b)) == BECALM_BREAKER_CLOSED;
}

static inline bool becalm__permit_give(struct becalm_permit *permit, uint64_t word, becalm_ns expires_at)
{
    permit->generation = becalm__breaker_word_generation(word);
    permit->held = true;
    permit->probe = becalm__breaker_word_state(word) == BECALM_BREAKER_HALF_OPEN;
    permit->slow = false;
    permit->expires_at = expires_at;
    return true;
}

/* becalm_breaker_admit() in any state. */
bool becalm__breaker_admit_any(struct becalm_breaker *, const struct becalm_breaker_policy *,
                               const struct becalm_moment *, uint64_t word, struct becalm_permit *);

/* becalm_breaker_admit(), with the usual way inlined. */
static inline bool becalm__breaker_admit(struct becalm_breaker *b, const struct becalm_breaker_policy *policy,
                                         const struct becalm_moment *at, struct becalm_permit *permit)
{
    uint64_t word = becalm__breaker_word(b);
    permit->from = permit->to = becalm__breaker_word_state(word);
    if (becalm__breaker_word_state(word) == BECALM_BREAKER_CLOSED) {
        return becalm__permit_give(permit, word, BECALM_NEVER);
    }
    return becalm__breaker_admit_any(b, policy, at, word, permit);
}

#endif
