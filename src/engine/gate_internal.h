/* SPDX-License-Identifier: MIT */
#ifndef BECALM_GATE_INTERNAL_H
#define BECALM_GATE_INTERNAL_H

#include <becalm/gate.h>

#define BECALM__GATE_MAX_WAIT BECALM_S /* the default, which nobody has asked for */

/* What a hot path asks without a call. */

/* Does anybody wait, at any worker? */
static inline bool becalm__gate_waits(const struct becalm_gate *gate)
{
    return atomic_load_explicit(&gate->waiting, memory_order_relaxed) > 0;
}

#endif
