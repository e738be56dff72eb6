/* SPDX-License-Identifier: MIT */
#ifndef BECALM_DEADLINE_H
#define BECALM_DEADLINE_H

/* A deadline is absolute inside a process and travels as the time that is left. A call that came with 30 s and spent 7
 * gives its callee 23: never a fresh timeout. */

#include <becalm/ns.h>

/* The deadline of a call that begins now: the earlier of the policy's and the one that came with it. */
static inline becalm_ns becalm_deadline_at(becalm_ns now, becalm_ns policy, becalm_ns carried_at)
{
    return becalm_ns_min(becalm_ns_after(now, policy), carried_at);
}

static inline bool becalm_deadline_passed(becalm_ns now, becalm_ns deadline_at)
{
    return now >= deadline_at;
}

/* How long one attempt may take: the least of its own timeout and what is left. */
static inline becalm_ns becalm_deadline_clip(becalm_ns now, becalm_ns deadline_at, becalm_ns timeout)
{
    return becalm_ns_min(timeout, becalm_ns_left(now, deadline_at));
}

/* Is there time to wait and then to be answered? `typical` is what an attempt usually takes, 0 if nobody knows. */
static inline bool becalm_deadline_fits(becalm_ns now, becalm_ns deadline_at, becalm_ns wait, becalm_ns typical)
{
    return becalm_ns_after(becalm_ns_after(now, wait), typical) < deadline_at || deadline_at == BECALM_NEVER;
}

#endif
