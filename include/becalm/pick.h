/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PICK_H
#define BECALM_PICK_H

/* Chooses the host of an attempt: of two random hosts, the one with fewer attempts in flight (Mitzenmacher, 2001). A
 * retry or hedge avoids every host that this call has tried, and prefers a host that has sent no Retry-After. Ejected
 * hosts and hosts that fail their checks are avoided. If no host is left, the rules are dropped in this order:
 * Retry-After, "tried", ejection, checks. So a call always gets a host if the service has one. */

#include <becalm/outlier.h>
#include <becalm/rand.h>

BECALM_BEGIN_DECLS

/* The hosts that this call has tried. A count above 0 means that the attempt is a retry or hedge. */
struct becalm_tried {
    const uint32_t *host;
    uint32_t count;
};

/* The host to use, or BECALM_NO_HOST if there are none. `tried` may be NULL. Counts nothing: becalm_hosts_sent() does.
 */
BECALM_API uint32_t becalm_pick(const struct becalm_hosts *, const struct becalm_outlier_policy *,
                                const struct becalm_moment *, const struct becalm_tried *tried);

/* The host for a probe of the breaker, whose result decides for the whole service: of the hosts that becalm_pick()
 * would choose from, one with the fewest failures in a row, however long ago they were. */
BECALM_API uint32_t becalm_pick_probe(const struct becalm_hosts *, const struct becalm_outlier_policy *,
                                      const struct becalm_moment *);

BECALM_END_DECLS

#endif
