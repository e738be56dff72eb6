/* SPDX-License-Identifier: MIT */
#include "lease_internal.h"

#include <string.h>

#define FIRST_MAX \
    UINT64_C(1000000000)  /* first attempts that are counted in one second; the share of more is not earned */
#define FLOOR_TIME 60000u /* more than a minute since the last time is a clock that was set, or a pot that was idle */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void becalm__lease_pot_init(struct becalm_lease_pot *pot, uint64_t now_ms)
{
    memset(pot, 0, sizeof *pot);
    pot->floor_at = now_ms;
}

/* A clock that was set back by more than a second begins a new one; one that trembles does not. */
static void second_move(struct becalm_lease_pot *pot, uint64_t second)
{
    if (second > pot->second || pot->second - second > 1) {
        pot->second = second;
        pot->told = 0;
    }
    uint64_t ten = pot->second / 10;
    if (ten != pot->ten) {
        pot->peak_before = ten == pot->ten + 1 ? pot->peak : 0;
        pot->peak = 0;
        pot->ten = ten;
    }
}

uint64_t becalm__lease_pot_cap(const struct becalm_lease_pot *pot, const struct becalm__lease_terms *terms)
{
    uint64_t cap = most(pot->peak, pot->peak_before) * terms->share_ppm / 2;
    return most(least(cap, BECALM__LEASE_MOST), 2 * BECALM__LEASE_TOKEN);
}

static void stock_add(struct becalm_lease_pot *pot, uint64_t amount, uint64_t cap)
{
    if (pot->stock < cap) { /* a cap that has fallen takes nothing away */
        pot->stock += least(amount, cap - pot->stock);
    }
}

/* The floor fills the pot up to one retry and not further: an instance that has that much does not need it. */
static void floor_pay(struct becalm_lease_pot *pot, uint32_t floor, uint64_t now_ms)
{
    uint64_t elapsed = now_ms > pot->floor_at ? least(now_ms - pot->floor_at, FLOOR_TIME) : 0;
    pot->floor_at = now_ms;
    stock_add(pot, elapsed * floor / 1000, BECALM__LEASE_TOKEN);
}

void becalm__lease_pot_earn(struct becalm_lease_pot *pot, const struct becalm__lease_terms *terms, uint64_t now_ms,
                            uint64_t first, uint64_t returned)
{
    uint64_t told = least(first, FIRST_MAX);
    floor_pay(pot, terms->floor, now_ms);
    second_move(pot, now_ms / 1000);
    pot->told = least(pot->told + told, FIRST_MAX);
    pot->peak = most(pot->peak, pot->told);
    uint64_t cap = becalm__lease_pot_cap(pot, terms);
    stock_add(pot, least(returned, BECALM_LEASE_LEVEL_MAX) * BECALM__LEASE_TOKEN, cap);
    stock_add(pot, told * terms->share_ppm, cap);
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
