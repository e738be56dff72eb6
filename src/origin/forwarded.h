/* SPDX-License-Identifier: MIT */
#ifndef BECALM_ORIGIN_FORWARDED_H
#define BECALM_ORIGIN_FORWARDED_H

/* What a host is told of who asked: X-Forwarded-For, -Proto, -Host and -Prefix, and Forwarded (RFC 7239). What a
 * trusted peer says of its own client stays, and the peer itself is added behind it; what anybody else says is left
 * out. */

#include "origin.h"

#include "message/draft.h"

#include <becalm/config.h>

#define FORWARDED_FIELDS                                                                                   \
    (FIELD_BIT(FIELD_FORWARDED_FOR) | FIELD_BIT(FIELD_FORWARDED_PROTO) | FIELD_BIT(FIELD_FORWARDED_HOST) | \
     FIELD_BIT(FIELD_FORWARDED_PREFIX) | FIELD_BIT(FIELD_FORWARDED))

/* Which fields are written: never BECALM_FORWARDED_AUTO. `authority` is the host that was asked for; it may be empty.
 * Adds to `skip` of the draft what is not passed on as it came. */
void forwarded_add(struct draft *, const struct origin *, enum becalm_forwarded, struct becalm_text authority);

/* And X-Forwarded-Prefix, behind that: what was taken off the path, so that the host can write links. */
void forwarded_add_prefix(struct draft *, const struct origin *, enum becalm_forwarded, struct becalm_text prefix);

#endif
