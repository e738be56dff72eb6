/* SPDX-License-Identifier: MIT */
#ifndef BECALM_ORIGIN_FORWARDED_H
#define BECALM_ORIGIN_FORWARDED_H

/* The fields that tell a host about the client: X-Forwarded-For, -Proto, -Host and -Prefix, and Forwarded (RFC 7239).
 * The values of a trusted peer are kept, and the peer itself is added after them; those of other peers are dropped. */

#include "origin.h"

#include "message/draft.h"

#include <becalm/config.h>

#define FORWARDED_FIELDS                                                                                   \
    (FIELD_BIT(FIELD_FORWARDED_FOR) | FIELD_BIT(FIELD_FORWARDED_PROTO) | FIELD_BIT(FIELD_FORWARDED_HOST) | \
     FIELD_BIT(FIELD_FORWARDED_PREFIX) | FIELD_BIT(FIELD_FORWARDED))

/* Which fields are written: never BECALM_FORWARDED_AUTO. `authority` is the host that was asked for; it may be empty.
 * Adds received fields that must not be passed on unchanged to `skip` of the draft. */
void forwarded_add(struct draft *, const struct origin *, enum becalm_forwarded, struct becalm_text authority);

/* The same lines are written for every request of a client to one host. A worker keeps those that it wrote last, by the
 * client's address: then they are found, and copied at once. */
#define FORWARDED_AUTHORITY  64u /* a longer one is not kept */
#define FORWARDED_LINES      352u
#define FORWARDED_LINES_KEPT 64u /* a power of two */
struct forwarded_lines {
    struct origin_ip ip;
    uint16_t what; /* which fields, and whether with TLS; 0: none is kept here */
    uint16_t length;
    uint32_t authority_length;
    char authority[FORWARDED_AUTHORITY];
    char text[FORWARDED_LINES];
};
struct forwarded_kept {
    struct forwarded_lines lines[FORWARDED_LINES_KEPT];
};

/* As forwarded_add(), for a request by HTTP/1: as the draft's first `lines`, unless they must be appended to the fields
 * of a peer. */
void forwarded_add_kept(struct draft *, struct forwarded_kept *, const struct origin *, enum becalm_forwarded,
                        struct becalm_text authority);

/* Adds X-Forwarded-Prefix after these fields: the part that was removed from the path, so that the host can write
 * links. */
void forwarded_add_prefix(struct draft *, const struct origin *, enum becalm_forwarded, struct becalm_text prefix);

#endif
