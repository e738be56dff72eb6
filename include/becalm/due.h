/* SPDX-License-Identifier: MIT */
#ifndef BECALM_DUE_H
#define BECALM_DUE_H

/* After how long is an attempt overdue, where the policy has no timeout? The time is learned from the latencies of good
 * answers: two to four times the latency that seven of eight of them do not exceed, and never less than the policy's
 * attempt_timeout. Until anything is known, it is BECALM_DUE_START.
 *
 * Answers are counted in epochs that last as long as a long answer. At the end of an epoch the level, which is half of
 * the time, is raised by half if more than one of eight answers was longer, and halved if no more than one of eight was
 * longer than half of it. Only good answers count, with their full latency, because none is cut at this time. So the
 * time neither shrinks when a service fails fast nor grows when it hangs. It is one word, shared by threads without
 * locks; where answers are far quicker than the policy's attempt_timeout, one of 16 is noted. */

#include <becalm/ns.h>

BECALM_BEGIN_DECLS

#define BECALM_DUE_START (30 * BECALM_S) /* before anything is known */

#define BECALM_DUE_RARE 8u /* overdue attempts are rare if there are at least so many good answers for each */

/* Touch it only through the functions below. */
struct becalm_due {
    BECALM_ATOMIC(uint64_t) word; /* the learned level, and the answers of this epoch: see due_internal.h */
    BECALM_ATOMIC(uint64_t) rest; /* good answers, less BECALM_DUE_RARE for each overdue one: from 0 to 8 times that */
};

BECALM_API void becalm_due_init(struct becalm_due *);

/* A reload: keeps the learned time. */
BECALM_API void becalm_due_carry(struct becalm_due *to, const struct becalm_due *from);

/* Records the latency of a good answer. `least` is the policy's attempt_timeout. */
BECALM_API void becalm_due_note(struct becalm_due *, const struct becalm_moment *, becalm_ns least, becalm_ns took);

/* An attempt is overdue. Are overdue attempts rare, so that a second attempt costs the service little? If more than
 * one of nine is overdue, the service is overloaded or hangs, and more attempts make that worse. Also false until there
 * were enough good answers. Call it once for each overdue attempt, because it counts them. */
BECALM_API bool becalm_due_is_rare(struct becalm_due *);

/* The time after which an attempt is overdue now. */
BECALM_API becalm_ns becalm_due_time(const struct becalm_due *, becalm_ns least);

/* Was that time learned from answers, or is it still BECALM_DUE_START? For display. */
BECALM_API bool becalm_due_known(const struct becalm_due *);

BECALM_END_DECLS

#endif
