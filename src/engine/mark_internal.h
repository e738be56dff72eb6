/* SPDX-License-Identifier: MIT */
#ifndef BECALM_MARK_INTERNAL_H
#define BECALM_MARK_INTERNAL_H

#include <becalm/mark.h>

/* The average of a healthy service is 0, and one more success leaves it there. Inline for the hot path; relaxed, like
 * all accesses to the mark. */
static inline bool becalm__mark_rests(const struct becalm_mark *mark, enum becalm_verdict verdict)
{
    return verdict == BECALM_VERDICT_OK && atomic_load_explicit(&mark->failing, memory_order_relaxed) == 0;
}

#endif
