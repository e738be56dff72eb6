/* SPDX-License-Identifier: MIT */
#include "h2_session_internal.h"

#define KNOWN 64 /* streams, as many as there are bits */

/* Which bit is a stream's; KNOWN or more: it is forgotten. Only for ids of a client, and none above the highest. */
static uint32_t bit_of(const struct h2_past *past, int32_t id)
{
    return (uint32_t)(past->highest - id) / 2;
}

void h2_past_opened(struct h2_past *past, int32_t id)
{
    uint32_t before = past->highest == 0 ? UINT32_MAX : (uint32_t)past->highest; /* -1: the first one is 1 */
    uint32_t steps = ((uint32_t)id - before) / 2;
    uint64_t known = steps >= KNOWN ? 0 : UINT64_MAX << steps; /* those that were known before, where they stand now */
    past->ended = steps >= KNOWN ? 0 : past->ended << steps;
    past->skipped = (steps >= KNOWN ? 0 : past->skipped << steps) | (~known & ~UINT64_C(1));
    past->highest = id;
}

void h2_past_ended(struct h2_past *past, int32_t id)
{
    uint32_t bit = bit_of(past, id);
    past->ended |= bit < KNOWN ? UINT64_C(1) << bit : 0;
}

bool h2_past_has_ended(const struct h2_past *past, int32_t id)
{
    uint32_t bit = bit_of(past, id);
    return bit < KNOWN && (past->ended >> bit & 1) != 0;
}

bool h2_past_skipped(const struct h2_past *past, int32_t id)
{
    uint32_t bit = bit_of(past, id);
    return bit < KNOWN && (past->skipped >> bit & 1) != 0;
}
