/* SPDX-License-Identifier: MIT */
#ifndef BECALM_RESTART_INTERNAL_H
#define BECALM_RESTART_INTERNAL_H

#include <becalm/restart.h>

/* Inline functions for the hot path. */

/* May some host take calls, as far as is known? */
static inline bool becalm__restart_is_up(const struct becalm_restart *restart)
{
    return atomic_load_explicit(&restart->down_since, memory_order_relaxed) == 0; /* guards no other memory */
}

#endif
