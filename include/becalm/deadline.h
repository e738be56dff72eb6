/* SPDX-License-Identifier: MIT */
#ifndef BECALM_DEADLINE_H
#define BECALM_DEADLINE_H

/* Inside a process a deadline is an instant; between processes the time that is left is sent. A call that arrived with
 * 30 s and has spent 7 gives the next service 23 s, never a fresh timeout. */

#include <becalm/ns.h>

/* The deadline of a call that begins now: the earlier of the policy's and the caller's (`carried_at`). */
static inline becalm_ns becalm_deadline_at(becalm_ns now, becalm_ns policy, becalm_ns carried_at)
{
    return becalm_ns_min(becalm_ns_after(now, policy), carried_at);
}

static inline bool becalm_deadline_passed(becalm_ns now, becalm_ns deadline_at)
{
    return now >= deadline_at;
}

/* How long one attempt may take: its own timeout, or the time to the deadline if that is less. */
static inline becalm_ns becalm_deadline_clip(becalm_ns now, becalm_ns deadline_at, becalm_ns timeout)
{
    return becalm_ns_min(timeout, becalm_ns_left(now, deadline_at));
}

/* Is there time for a wait and then an answer? `typical` is the usual latency of an attempt, 0 if it is unknown. */
static inline bool becalm_deadline_fits(becalm_ns now, becalm_ns deadline_at, becalm_ns wait, becalm_ns typical)
{
    return becalm_ns_after(becalm_ns_after(now, wait), typical) < deadline_at || deadline_at == BECALM_NEVER;
}

#endif
