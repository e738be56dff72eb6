/* SPDX-License-Identifier: MIT */
#ifndef BECALM_LEASE_INTERNAL_H
#define BECALM_LEASE_INTERNAL_H

/* The pot of a shared budget, for both of its halves: lease_pot.c. Integers have at most 15 digits and times are in
 * milliseconds, so that a store whose numbers are doubles counts the same. */

#include <becalm/lease.h>

#define BECALM__LEASE_TOKEN UINT64_C(1000000)         /* one retry; the stock is in millionths of it */
#define BECALM__LEASE_MOST  UINT64_C(100000000000000) /* of all that is counted */

/* How a pot earns. */
struct becalm__lease_terms {
    uint32_t share_ppm;
    uint32_t floor; /* millionths of a retry a second */
};

/* Empty; its floor begins now. */
void becalm__lease_pot_init(struct becalm_lease_pot *, uint64_t now_ms);

/* So many first attempts were made: they earn their share. So many retries come back. */
void becalm__lease_pot_earn(struct becalm_lease_pot *, const struct becalm__lease_terms *, uint64_t now_ms,
                            uint64_t first, uint64_t returned);

/* The most that it may hold now, in millionths of a retry. */
uint64_t becalm__lease_pot_cap(const struct becalm_lease_pot *, const struct becalm__lease_terms *);

/* Whole retries that are there; and takes so many of them. */
uint64_t becalm__lease_pot_whole(const struct becalm_lease_pot *);
void becalm__lease_pot_draw(struct becalm_lease_pot *, uint64_t retries);

#endif
