/* SPDX-License-Identifier: MIT */
#ifndef BECALM_MARK_INTERNAL_H
#define BECALM_MARK_INTERNAL_H

#include <becalm/mark.h>

/* A healthy callee's average is 0, and one success more leaves it there. Here, so that a hot path can ask without a
 * call; relaxed, as everything about the mark. */
static inline bool becalm__mark_rests(const struct becalm_mark *mark, enum becalm_verdict verdict)
{
    return verdict == BECALM_VERDICT_OK && atomic_load_explicit(&mark->failing, memory_order_relaxed) == 0;
}

#endif
