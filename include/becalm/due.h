/* SPDX-License-Identifier: MIT */
#ifndef BECALM_DUE_H
#define BECALM_DUE_H

/* When is an answer overdue, where the policy has no timeout? Learned from what good answers of the target take: two
 * to four times what seven of eight of them do not exceed, and never less than the policy's attempt_timeout. Until
 * something is known, BECALM_DUE_START.
 *
 * Answers are counted in epochs that last as long as a long answer. Then the level, half of the time, is raised by half
 * if more than one of eight was longer, and halved if not even half of it was exceeded so often. Only good answers
 * teach, at their full length, since none is cut at this time: so it neither shrinks when a service fails fast nor
 * grows when it hangs. One word, shared by threads without locks; where answers are far quicker than the policy's
 * attempt_timeout, one of 16 is noted. */

#include <becalm/ns.h>

BECALM_BEGIN_DECLS

#define BECALM_DUE_START (30 * BECALM_S) /* before anything is known */

#define BECALM_DUE_RARE 8u /* good answers for each overdue one, at least: then these are rare */

/* Touch it only through the functions below. */
struct becalm_due {
    BECALM_ATOMIC(uint64_t) word; /* what is known, and the answers of this epoch: see due_internal.h */
    BECALM_ATOMIC(uint64_t) rest; /* good answers, less BECALM_DUE_RARE for each overdue one: from 0 to 8 times that */
};

BECALM_API void becalm_due_init(struct becalm_due *);

/* A reload: what is known stays known. */
BECALM_API void becalm_due_carry(struct becalm_due *to, const struct becalm_due *from);

/* A good answer took so long. `least` is the policy's attempt_timeout. */
BECALM_API void becalm_due_note(struct becalm_due *, const struct becalm_moment *, becalm_ns least, becalm_ns took);

/* An answer is overdue. Are such ones rare, so that another attempt beside it costs the service little? If more than
 * one of nine is overdue, the service has too much to do or hangs, and more attempts make that worse. False until there
 * were enough good answers, too. To be asked once for each overdue answer, since it counts them. */
BECALM_API bool becalm_due_is_rare(struct becalm_due *);

/* After how long an answer is overdue now. */
BECALM_API becalm_ns becalm_due_time(const struct becalm_due *, becalm_ns least);

/* Does that rest on answers, and not on the beginning? For display. */
BECALM_API bool becalm_due_known(const struct becalm_due *);

BECALM_END_DECLS

#endif
