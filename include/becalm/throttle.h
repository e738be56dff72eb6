/* SPDX-License-Identifier: MIT */
#ifndef BECALM_THROTTLE_H
#define BECALM_THROTTLE_H

/* Adaptive throttling (SRE book, chapter 21): a caller whose calls are turned away stops sending some of them, with
 * probability max(0, (requests - K * accepts) / (requests + 1)) over a window. Every call counts as a request at its
 * start, locally rejected ones included; the probability stays below 1, so probes always pass. A call is judged by the
 * requests before it that have been decided: one that comes alone is never rejected, and neither is a burst to a callee
 * that is only slow, since a call that still waits for its answer was not rejected. */

#include <becalm/outcome.h>
#include <becalm/rand.h>
#include <becalm/window.h>

BECALM_BEGIN_DECLS

struct becalm_throttle_policy {
    bool enabled;     /* false */
    uint32_t k_milli; /* 2,000: K = 2; 1,000 to 100,000 */
    becalm_ns window; /* 2 min; longer than the longest timeout; 1 s to 1 h */
};

struct becalm_throttle {
    struct becalm_window *window;    /* lanes: requests, accepts */
    BECALM_ATOMIC(uint64_t) waiting; /* calls that were sent and are neither accepted nor turned away yet */
    BECALM_ATOMIC(uint64_t) credit;  /* {slice, count}: how many more calls pass in this slice without a draw */
};

BECALM_API void becalm_throttle_defaults(struct becalm_throttle_policy *);
BECALM_API int becalm_throttle_check(const struct becalm_throttle_policy *, const char **why);

/* Bytes for one throttle; 0 for a window or a number of cells (1 to 64) outside of its range. */
BECALM_API size_t becalm_throttle_bytes(const struct becalm_throttle_policy *, uint32_t cells);

/* Makes a throttle in `memory`, which is 64-aligned and of becalm_throttle_bytes(). The policy must pass its check. */
BECALM_API struct becalm_throttle *becalm_throttle_init(void *memory, const struct becalm_throttle_policy *,
                                                        uint32_t cells);

/* Counts a call, however it ends, and says whether to send it. */
BECALM_API bool becalm_throttle_admit(struct becalm_throttle *, const struct becalm_throttle_policy *,
                                      const struct becalm_moment *);

/* An admitted call waits for the callee's answer; later it gets the answer or gives up. Each _wait is followed by one
 * _decided. Calls that wait are left out of the requests. */
BECALM_API void becalm_throttle_wait(struct becalm_throttle *);
BECALM_API void becalm_throttle_decided(struct becalm_throttle *);

/* An attempt ended: counts an accept if the outcome is one. At most one accept per call: the caller sees to that. */
BECALM_API void becalm_throttle_note(struct becalm_throttle *, const struct becalm_moment *,
                                     const struct becalm_outcome *);

/* The probability of rejection now, in ppm. */
BECALM_API uint32_t becalm_throttle_chance(const struct becalm_throttle *, const struct becalm_throttle_policy *,
                                           becalm_ns now);

BECALM_END_DECLS

#endif
