/* SPDX-License-Identifier: MIT */
#include <becalm/rand.h>

#include "wide_internal.h"

/* SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014): a counter that steps by the
 * golden ratio, and a finaliser that turns neighbouring counters into unrelated values. */
#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

/* The distance between two lanes is another odd number. Were it GOLDEN, a host that hands out the counter itself would
 * find lane 2 of one event in lane 1 of the next. */
#define LANE UINT64_C(0xd1342543de82ef95)

static uint64_t finalise(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t becalm_rand_lane(uint64_t random, enum becalm_lane lane)
{
    return finalise(random + LANE * (uint64_t)lane);
}

uint64_t becalm_rand_below(uint64_t random, uint64_t bound)
{
    return becalm__wide_high(random, bound);
}

uint64_t becalm_rand_between(uint64_t random, uint64_t low, uint64_t high)
{
    if (high < low) {
        return low;
    }
    uint64_t values = high - low + 1;
    if (values == 0) {
        return random; /* the whole range of 2^64 values, whose number does not fit a word */
    }
    return low + becalm_rand_below(random, values);
}

bool becalm_rand_chance(uint64_t random, uint32_t ppm)
{
    return becalm_rand_below(random, 1000000) < ppm;
}

uint64_t becalm_rand_next(uint64_t *state)
{
    *state += GOLDEN;
    return finalise(*state);
}
