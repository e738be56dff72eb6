/* SPDX-License-Identifier: MIT */
#include "dist.h"

#include <becalm/rand.h>

#define ONE    (UINT64_C(1) << 32)
#define LN2    UINT64_C(2977044472) /* ln 2, 32 bits of fraction */
#define LOG2_E UINT64_C(6196328019) /* 1 / ln 2, in the same format */

__extension__ typedef unsigned __int128 wide;
__extension__ typedef __int128 signed_wide;

static uint64_t multiply(uint64_t a, uint64_t b) /* of two numbers with 32 bits of fraction */
{
    return (uint64_t)((wide)a * b >> 32);
}

/* log2 of x in [1, 2): every squaring doubles it, and tells one more bit. */
static uint64_t log2_slowly(uint64_t x)
{
    uint64_t log = 0;
    for (int bit = 31; bit >= 0; bit--) {
        x = multiply(x, x);
        if (x >= 2 * ONE) {
            x /= 2;
            log |= UINT64_C(1) << bit;
        }
    }
    return log;
}

static uint64_t root(uint64_t square) /* of a number with 32 bits of fraction */
{
    uint64_t low = 0;
    uint64_t high = UINT64_C(1) << 48;
    while (low < high) {
        uint64_t middle = (low + high + 1) / 2;
        if ((wide)middle * middle <= (wide)square << 32) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* 2^x for x in [0, 1): the product of the factors 2^(1/2), 2^(1/4), ... whose bit in x is set. */
static uint64_t exp2_slowly(uint64_t x)
{
    uint64_t result = ONE;
    uint64_t power = 2 * ONE;
    for (int bit = 31; bit >= 0; bit--) {
        power = root(power);
        if ((x >> bit & 1) != 0) {
            result = multiply(result, power);
        }
    }
    return result;
}

void dist_init(struct dist_tables *tables)
{
    for (uint64_t i = 0; i < 256; i++) {
        tables->log2[i] = i == 0 ? 0 : log2_slowly(ONE + i * (ONE / 256));
        tables->exp2[i] = exp2_slowly(i * (ONE / 256));
    }
    tables->log2[256] = ONE;
    tables->exp2[256] = 2 * ONE;
}

/* Between two entries of a table, in a straight line. x is below one. */
static uint64_t between(const uint64_t table[static 257], uint64_t x)
{
    uint64_t i = x >> 24;
    uint64_t rest = x & 0xffffff;
    return table[i] + ((table[i + 1] - table[i]) * rest >> 24);
}

uint64_t dist_minus_ln(const struct dist_tables *tables, uint64_t u)
{
    int lead = __builtin_clzll(u | 1);
    uint64_t mantissa = (u | 1) << lead << 1 >> 32; /* the 32 bits behind the leading one */
    uint64_t log2 = ((uint64_t)(63 - lead) << 32) + between(tables->log2, mantissa);
    return multiply((UINT64_C(64) << 32) - log2, LN2);
}

uint64_t dist_scale_exp2(const struct dist_tables *tables, uint64_t base, int64_t x)
{
    int64_t whole = x >> 32;
    uint64_t fraction = between(tables->exp2, (uint64_t)x & 0xffffffff);
    wide scaled = (wide)base * fraction >> 32;
    if (whole < 0) {
        return whole < -63 ? 0 : (uint64_t)(scaled >> -whole);
    }
    return whole > 40 || scaled >> (63 - whole) != 0 ? BECALM_NEVER - 1 : (uint64_t)(scaled << whole);
}

/* Marsaglia's polar method: a standard normal draw with 32 bits of fraction. */
static int64_t normal(const struct dist_tables *tables, uint64_t *state)
{
    for (;;) {
        int64_t a = (int64_t)(becalm_rand_next(state) >> 31) - (int64_t)ONE;
        int64_t b = (int64_t)(becalm_rand_next(state) >> 31) - (int64_t)ONE;
        uint64_t s = (uint64_t)((wide)((signed_wide)a * a + (signed_wide)b * b) >> 32);
        if (s == 0 || s >= ONE) {
            continue;
        }
        uint64_t minus_ln = dist_minus_ln(tables, s << 32);
        uint64_t square = (uint64_t)(((wide)minus_ln << 33) / s);
        return (int64_t)((signed_wide)a * (int64_t)root(square) >> 32);
    }
}

static const struct dist *part_draw(const struct dist *mixture, uint64_t *state)
{
    uint64_t at = becalm_rand_below(becalm_rand_next(state), mixture->parts[mixture->count - 1].below);
    uint32_t i = 0;
    while (at >= mixture->parts[i].below) {
        i++;
    }
    return &mixture->parts[i].dist;
}

becalm_ns dist_draw(const struct dist_tables *tables, const struct dist *dist, uint64_t *state)
{
    if (dist->kind == DIST_MIXTURE) {
        dist = part_draw(dist, state);
    }
    switch (dist->kind) {
    case DIST_CONSTANT:
        return dist->mean;
    case DIST_EXPONENTIAL:
        return (becalm_ns)((wide)dist->mean * dist_minus_ln(tables, becalm_rand_next(state)) >> 32);
    case DIST_LOGNORMAL: {
        int64_t exponent = normal(tables, state) * (int64_t)dist->shape / 1000;
        return dist_scale_exp2(tables, dist->mean, (int64_t)((signed_wide)exponent * (int64_t)LOG2_E >> 32));
    }
    case DIST_PARETO: {
        uint64_t exponent = dist_minus_ln(tables, becalm_rand_next(state)) * 1000 / dist->shape;
        return dist_scale_exp2(tables, dist->mean, (int64_t)multiply(exponent, LOG2_E));
    }
    case DIST_NORMAL: {
        int64_t spread = (int64_t)((signed_wide)normal(tables, state) * (int64_t)dist->mean >> 32);
        int64_t value = (int64_t)dist->mean + spread / 1000000 * dist->shape + spread % 1000000 * dist->shape / 1000000;
        return (becalm_ns)(value < 0 ? -value : value);
    }
    case DIST_SAMPLES:
        return dist->samples[becalm_rand_below(becalm_rand_next(state), dist->count)];
    case DIST_MIXTURE:
        break; /* a part is none */
    }
    return 0;
}

bool dist_is_zero(const struct dist *dist)
{
    bool zero = dist->kind == DIST_MIXTURE || dist->kind == DIST_SAMPLES || dist->mean == 0;
    for (uint32_t i = 0; dist->kind == DIST_MIXTURE && i < dist->count; i++) {
        zero = zero && dist->parts[i].dist.mean == 0;
    }
    for (uint32_t i = 0; dist->kind == DIST_SAMPLES && i < dist->count; i++) {
        zero = zero && dist->samples[i] == 0;
    }
    return zero;
}
