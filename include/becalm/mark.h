/* SPDX-License-Identifier: MIT */
#ifndef BECALM_MARK_H
#define BECALM_MARK_H

/* The mark "do not retry" that is passed up a call chain, so that only the layer directly above a failure retries.
 *
 *   overloaded  set by a gate that sheds more than a tenth of its decisions; always honoured.
 *   spent       set by a hop that has already made all the retries that it may make; honoured only while the service
 *               as a whole is failing. Otherwise one bad host, or one caller that is cut off, would stop retries
 *               that would succeed.
 *
 * A service fails as a whole while the EWMA of the success of its attempts, with weight 1/10, is below one half. */

#include <becalm/gate.h>
#include <becalm/outcome.h>
#include <becalm/reason.h>

BECALM_BEGIN_DECLS

struct becalm_mark {
    /* EWMA of failures in ppm, so that zeroed memory means healthy and a healthy target is not written. */
    BECALM_ATOMIC(uint64_t) failing;
};

BECALM_API void becalm_mark_init(struct becalm_mark *);

/* A reload: gives `to`, fresh from init, the average of `from`. */
BECALM_API void becalm_mark_carry(struct becalm_mark *to, const struct becalm_mark *from);

/* An attempt ended. Outcomes that are neutral to the breaker do not count: cancelled, rate limited, in conflict. */
BECALM_API void becalm_mark_note(struct becalm_mark *, const struct becalm_outcome *);

/* Is the service as a whole failing? */
BECALM_API bool becalm_mark_failing(const struct becalm_mark *);

/* Does a mark on an answer forbid a retry? OVERLOADED_HOST does not: it forbids that host (becalm_hosts_note). */
BECALM_API bool becalm_mark_honour(const struct becalm_mark *, enum becalm_mark_kind);

/* Did a layer below refuse the call (an overloaded gate, a limit, an open breaker)? Then the answer says nothing about
 * the health of the service that the call was for, and a breaker's probe has no result. */
BECALM_API bool becalm_mark_unasked(enum becalm_mark_kind);

/* The mark for our own answer to a call that ends with this reason. `gate` may be NULL. */
BECALM_API enum becalm_mark_kind becalm_mark_for(enum becalm_reason, const struct becalm_gate *gate);

BECALM_END_DECLS

#endif
