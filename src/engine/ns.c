/* SPDX-License-Identifier: MIT */
#include <becalm/ns.h>

becalm_ns becalm_ns_scale(becalm_ns d, uint32_t numerator, uint32_t denominator)
{
    if (d == BECALM_NEVER || denominator == 0) {
        return BECALM_NEVER;
    }
    /* d = whole * denominator + rest, and rest is below 2^32: its product with the numerator fits 64 bits. */
    uint64_t whole = d / denominator;
    uint64_t rest = d % denominator;
    uint64_t small = rest * numerator / denominator;
    if (numerator != 0 && whole > (BECALM_NEVER - small) / numerator) {
        return BECALM_NEVER;
    }
    return whole * numerator + small;
}
