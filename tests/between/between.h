/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TESTS_BETWEEN_H
#define BECALM_TESTS_BETWEEN_H

/* Included before everything else into a second build of the engine: each of its atomic operations first calls
 * between_point(). A test lets "another thread" act there, once, in every place in turn: so every effect of an action
 * between two steps of a function is seen, without threads and without chance. */

#include <stdatomic.h>

void between_point(void);

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_fetch_or_explicit
#undef atomic_fetch_and_explicit
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak_explicit

#define BETWEEN(operation) (between_point(), operation)

/* In the strictest order; a weak exchange, which may fail by chance, never does here. */
#define atomic_load_explicit(at, order)             BETWEEN(*(at))
#define atomic_store_explicit(at, value, order)     ((void)BETWEEN(*(at) = (value)))
#define atomic_exchange_explicit(at, value, order)  BETWEEN(__atomic_exchange_n(at, value, __ATOMIC_SEQ_CST))
#define atomic_fetch_add_explicit(at, value, order) BETWEEN(__atomic_fetch_add(at, value, __ATOMIC_SEQ_CST))
#define atomic_fetch_sub_explicit(at, value, order) BETWEEN(__atomic_fetch_sub(at, value, __ATOMIC_SEQ_CST))
#define atomic_fetch_or_explicit(at, value, order)  BETWEEN(__atomic_fetch_or(at, value, __ATOMIC_SEQ_CST))
#define atomic_fetch_and_explicit(at, value, order) BETWEEN(__atomic_fetch_and(at, value, __ATOMIC_SEQ_CST))
#define BETWEEN_SWAP(at, expected, value) \
    BETWEEN(__atomic_compare_exchange_n(at, expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
#define atomic_compare_exchange_strong_explicit(at, expected, value, won, lost) BETWEEN_SWAP(at, expected, value)
#define atomic_compare_exchange_weak_explicit(at, expected, value, won, lost)   BETWEEN_SWAP(at, expected, value)

#endif
