/* SPDX-License-Identifier: MIT */
#ifndef BECALM_OUTLIER_INTERNAL_H
#define BECALM_OUTLIER_INTERNAL_H

#include <becalm/outlier.h>

/* Took this answer a quarter of the attempt's time or longer? Then its host may have a queue. */
static inline bool becalm__is_slow(becalm_ns took, becalm_ns timeout)
{
    return took >= timeout / 4;
}

/* becalm_hosts_note() with more knowledge: `slow` says that the outcome is a slow answer. */
void becalm__hosts_note(struct becalm_hosts *, const struct becalm_outlier_policy *, const struct becalm_moment *,
                        uint32_t host, const struct becalm_outcome *, bool slow);

#endif
