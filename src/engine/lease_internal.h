/* SPDX-License-Identifier: MIT */
#ifndef BECALM_LEASE_INTERNAL_H
#define BECALM_LEASE_INTERNAL_H

/* The pot of a shared budget, for both of its halves: lease_pot.c. Integers stay below 2^53, so that a store whose
 * numbers are doubles counts the same. */

#include <becalm/lease.h>

#define BECALM__LEASE_TOKEN UINT64_C(1000000) /* one retry; the stock is in millionths of it */

/* Empty; its floor begins now. */
void becalm__lease_pot_init(struct becalm_lease_pot *, becalm_ns now);

/* So many first attempts were made: they earn their share. `floor` is in millionths of a retry a second. */
void becalm__lease_pot_earn(struct becalm_lease_pot *, uint32_t share_ppm, uint32_t floor, becalm_ns now,
                            uint64_t first);

/* Whole retries that are there; and takes so many of them, or puts them back as far as there is room. */
uint64_t becalm__lease_pot_whole(const struct becalm_lease_pot *);
void becalm__lease_pot_draw(struct becalm_lease_pot *, uint64_t retries);
void becalm__lease_pot_give(struct becalm_lease_pot *, uint32_t share_ppm, becalm_ns now, uint64_t retries);

#endif
