/* SPDX-License-Identifier: MIT */
#ifndef BECALM_MARK_H
#define BECALM_MARK_H

/* The mark "do not retry" that travels up a chain, so that only the layer directly above a failure retries.
 *
 *   overloaded  set by a gate that sheds more than a tenth of its decisions; always honoured.
 *   spent       set by a hop that has already spent what could be spent on the call; honoured only while the
 *               callee as a whole is failing, else one bad host, or one caller cut off, would silence retries
 *               that work.
 *
 * "Failing as a whole" is an EWMA of the success of its attempts, weight 1/10, below one half. */

#include <becalm/gate.h>
#include <becalm/outcome.h>
#include <becalm/reason.h>

BECALM_BEGIN_DECLS

struct becalm_mark {
    /* EWMA of failures in ppm, so that zeroed memory means healthy and a healthy target is not written. */
    BECALM_ATOMIC(uint64_t) failing;
};

BECALM_API void becalm_mark_init(struct becalm_mark *);

/* A reload: gives `to`, fresh from init, what `from` has learned. */
BECALM_API void becalm_mark_carry(struct becalm_mark *to, const struct becalm_mark *from);

/* An attempt ended. What is neutral to the breaker says nothing: cancelled, rate limited, in conflict. */
BECALM_API void becalm_mark_note(struct becalm_mark *, const struct becalm_outcome *);

/* Is the callee as a whole failing? */
BECALM_API bool becalm_mark_failing(const struct becalm_mark *);

/* Does a mark on an answer forbid a retry? OVERLOADED_HOST does not: it forbids that host (becalm_hosts_note). */
BECALM_API bool becalm_mark_honour(const struct becalm_mark *, enum becalm_mark_kind);

/* Was the call turned away on its way, by an overloaded gate, a limit or an open breaker? Then it says nothing of the
 * health of whom it was for: a breaker that probed learned nothing. */
BECALM_API bool becalm_mark_unasked(enum becalm_mark_kind);

/* The mark for our own answer to a call that ends with this reason. `gate` may be NULL. */
BECALM_API enum becalm_mark_kind becalm_mark_for(enum becalm_reason, const struct becalm_gate *gate);

BECALM_END_DECLS

#endif
