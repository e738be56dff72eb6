/* SPDX-License-Identifier: MIT */
#ifndef BECALM_BREAKER_INTERNAL_H
#define BECALM_BREAKER_INTERNAL_H

#include <becalm/breaker.h>

static inline enum becalm_breaker_state becalm__breaker_word_state(uint64_t word)
{
    return (enum becalm_breaker_state)(word & 7u);
}

/* CLOSED and nothing else: nearly always, so that a hot path can ask this first and without a call. */
static inline bool becalm__breaker_plain(const struct becalm_breaker *b)
{
    /* acquire: pairs with breaker_enter's release */
    return becalm__breaker_word_state(atomic_load_explicit(&b->word, memory_order_acquire)) == BECALM_BREAKER_CLOSED;
}

#endif
