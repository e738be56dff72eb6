/* SPDX-License-Identifier: MIT */
#include "lease_internal.h"

#include <string.h>

#define FIRST_MAX \
    UINT64_C(1000000000) /* first attempts that are counted in one second; the share of more is not earned */

void becalm__lease_pot_init(struct becalm_lease_pot *pot, becalm_ns now)
{
    memset(pot, 0, sizeof *pot);
    pot->floor_at = now;
}

/* What was told in the busiest of the last ten seconds, this one too. One from ahead of a clock that was set back does
 * not count. */
static uint64_t first_busiest(const struct becalm_lease_pot *pot, uint64_t second)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < BECALM_LEASE_SLICES; i++) {
        bool counts = pot->second[i] <= second && second - pot->second[i] < BECALM_LEASE_SLICES;
        most = counts && pot->first[i] > most ? pot->first[i] : most;
    }
    return most;
}

static void first_note(struct becalm_lease_pot *pot, uint64_t second, uint64_t first)
{
    uint32_t i = (uint32_t)(second % BECALM_LEASE_SLICES);
    uint64_t before = pot->second[i] == second ? pot->first[i] : 0;
    pot->second[i] = second;
    pot->first[i] = first < FIRST_MAX - before ? before + first : FIRST_MAX;
}

/* What the busiest second earned, and always two retries: what is saved up beyond that would be a storm to come. */
static uint64_t cap_of(const struct becalm_lease_pot *pot, uint32_t share_ppm, becalm_ns now)
{
    uint64_t cap = first_busiest(pot, now / BECALM_S) * share_ppm;
    return cap > 2 * BECALM__LEASE_TOKEN ? cap : 2 * BECALM__LEASE_TOKEN;
}

static void stock_add(struct becalm_lease_pot *pot, uint64_t amount, uint64_t cap)
{
    if (pot->stock < cap) { /* a cap that has fallen takes nothing away */
        pot->stock = amount < cap - pot->stock ? pot->stock + amount : cap;
    }
}

/* The floor fills the pot up to one retry and not further: who has that much does not need it. More than a minute since
 * the last time is a clock that was set, or a pot that nobody used. */
static void floor_pay(struct becalm_lease_pot *pot, uint32_t floor, becalm_ns now)
{
    becalm_ns elapsed = becalm_ns_min(becalm_ns_since(now, pot->floor_at), 60 * BECALM_S);
    pot->floor_at = now;
    stock_add(pot, elapsed / BECALM_US * floor / 1000000, BECALM__LEASE_TOKEN);
}

void becalm__lease_pot_earn(struct becalm_lease_pot *pot, uint32_t share_ppm, uint32_t floor, becalm_ns now,
                            uint64_t first)
{
    uint64_t told = first < FIRST_MAX ? first : FIRST_MAX;
    floor_pay(pot, floor, now);
    first_note(pot, now / BECALM_S, told);
    stock_add(pot, told * share_ppm, cap_of(pot, share_ppm, now));
}

uint64_t becalm__lease_pot_whole(const struct becalm_lease_pot *pot)
{
    return pot->stock / BECALM__LEASE_TOKEN;
}

void becalm__lease_pot_draw(struct becalm_lease_pot *pot, uint64_t retries)
{
    BECALM_ASSERT(retries <= becalm__lease_pot_whole(pot));
    pot->stock -= retries * BECALM__LEASE_TOKEN;
}

void becalm__lease_pot_give(struct becalm_lease_pot *pot, uint32_t share_ppm, becalm_ns now, uint64_t retries)
{
    uint64_t bounded = retries < BECALM_LEASE_LEVEL_MAX ? retries : BECALM_LEASE_LEVEL_MAX;
    stock_add(pot, bounded * BECALM__LEASE_TOKEN, cap_of(pot, share_ppm, now));
}
