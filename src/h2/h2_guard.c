/* SPDX-License-Identifier: MIT */
#include "h2_guard.h"

void h2_guard_init(struct h2_guard *guard)
{
    *guard = (struct h2_guard){.frames = H2_GUARD_FRAMES, .resets = H2_GUARD_RESETS, .faults = H2_GUARD_FAULTS};
}

static void give(uint32_t *left, uint32_t most, uint64_t more)
{
    *left = more < most - *left ? *left + (uint32_t)more : most;
}

static bool take(uint32_t *left)
{
    if (*left == 0) {
        return false;
    }
    --*left;
    return true;
}

void h2_guard_time(struct h2_guard *guard, becalm_ns now)
{
    becalm_ns passed = becalm_ns_since(now, guard->since);
    if (guard->since == 0) {
        guard->since = now;
    } else if (passed >= H2_GUARD_EACH) {
        give(&guard->frames, H2_GUARD_FRAMES, passed / H2_GUARD_EACH);
        give(&guard->faults, H2_GUARD_FAULTS, passed / H2_GUARD_EACH);
        guard->since = now;
    }
}

bool h2_guard_frame(struct h2_guard *guard)
{
    return take(&guard->frames);
}

bool h2_guard_fault(struct h2_guard *guard)
{
    return take(&guard->faults);
}

/* A stream that was open for a while has used one of the peer's streams meanwhile. And a caller whose time is over
 * resets all streams that it waits for: in an outage that is every stream. */
bool h2_guard_reset(struct h2_guard *guard, becalm_ns age)
{
    return age >= H2_GUARD_YOUNG || take(&guard->resets);
}

void h2_guard_asked(struct h2_guard *guard)
{
    give(&guard->frames, H2_GUARD_FRAMES, H2_GUARD_PER_ASKED);
}

void h2_guard_answered(struct h2_guard *guard)
{
    give(&guard->resets, H2_GUARD_RESETS, 1);
}

void h2_guard_sent(struct h2_guard *guard)
{
    give(&guard->frames, H2_GUARD_FRAMES, H2_GUARD_PER_SENT);
}

void h2_guard_came(struct h2_guard *guard, size_t bytes)
{
    uint64_t all = (uint64_t)guard->bytes + bytes;
    give(&guard->frames, H2_GUARD_FRAMES, all / H2_GUARD_PER_BYTES);
    guard->bytes = (uint32_t)(all % H2_GUARD_PER_BYTES);
}
