/* SPDX-License-Identifier: MIT */
#ifndef BECALM_NS_H
#define BECALM_NS_H

/* Time. Everything is nanoseconds on the driver's monotonic clock; an instant ends in _at, a duration is a noun.
 * Arithmetic saturates: NEVER stays NEVER, and nothing wraps into the past in the middle of an incident.
 *
 * Workers cache their clocks, so two threads may hand the same object slightly different instants. Only
 * becalm_ns_since() subtracts instants, and it saturates at 0: an older now never moves anything back. */

#include <becalm/base.h>

BECALM_BEGIN_DECLS

typedef uint64_t becalm_ns; /* nanoseconds: an instant on the driver's clock, or a duration */

#define BECALM_NEVER UINT64_MAX
#define BECALM_US    ((becalm_ns)1000)
#define BECALM_MS    ((becalm_ns)1000000)
#define BECALM_S     ((becalm_ns)1000000000)

/* The instant `wait` after `at`. */
static inline becalm_ns becalm_ns_after(becalm_ns at, becalm_ns wait)
{
    becalm_ns after = at + wait;
    return after >= at ? after : BECALM_NEVER; /* below: it has wrapped */
}

/* How long ago `then` was; 0 if it has not come yet. */
static inline becalm_ns becalm_ns_since(becalm_ns now, becalm_ns then)
{
    return now > then ? now - then : 0;
}

/* How long it is until `at`; 0 if it is past; NEVER for NEVER. */
static inline becalm_ns becalm_ns_left(becalm_ns now, becalm_ns at)
{
    return at == BECALM_NEVER ? BECALM_NEVER : becalm_ns_since(at, now);
}

static inline becalm_ns becalm_ns_min(becalm_ns a, becalm_ns b)
{
    return a < b ? a : b;
}

static inline becalm_ns becalm_ns_max(becalm_ns a, becalm_ns b)
{
    return a > b ? a : b;
}

/* d * numerator / denominator, rounded down, without overflow in between. Saturates at NEVER; NEVER stays NEVER with
 * any ratio, and a denominator of 0 gives NEVER. */
BECALM_API becalm_ns becalm_ns_scale(becalm_ns d, uint32_t numerator, uint32_t denominator);

/* The inputs from outside that an event brings; the same for every object that the event touches. */
struct becalm_moment {
    becalm_ns now;   /* monotonic, read once per wake-up by the driver */
    uint64_t random; /* 64 fresh bits; a counter will do, because every draw mixes them. Steps without a draw ignore it
                      */
    uint32_t cell;   /* which statistics cell to touch: a hint, usually the worker's number; any value is correct */
};

BECALM_END_DECLS

#endif
