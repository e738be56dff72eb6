/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PICK_H
#define BECALM_PICK_H

/* Which host: two random choices, and of them the one with fewer attempts in flight (Mitzenmacher, 2001). A retry or
 * hedge avoids every host that this call has tried, and rather takes one whose server has not asked for quiet; ejected
 * hosts and those that fail their checks are avoided. When that leaves no host, the quiet is ignored first, then
 * "tried", then ejection, then checks: a call always gets a host if there is one. */

#include <becalm/outlier.h>
#include <becalm/rand.h>

BECALM_BEGIN_DECLS

/* The hosts that this call has been to. A count above 0 means that a retry or hedge is asking. */
struct becalm_tried {
    const uint32_t *host;
    uint32_t count;
};

/* The host to use, or BECALM_NO_HOST if there are none. `tried` may be NULL. Counts nothing: becalm_hosts_sent() does.
 */
BECALM_API uint32_t becalm_pick(const struct becalm_hosts *, const struct becalm_outlier_policy *,
                                const struct becalm_moment *, const struct becalm_tried *tried);

/* The host for a probe of the breaker, on which it hangs whether the whole service is refused for longer: one with the
 * fewest failures in a row, however long ago, of those that becalm_pick() would choose from. */
BECALM_API uint32_t becalm_pick_probe(const struct becalm_hosts *, const struct becalm_outlier_policy *,
                                      const struct becalm_moment *);

BECALM_END_DECLS

#endif
