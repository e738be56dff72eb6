/* SPDX-License-Identifier: MIT */
#ifndef BECALM_BREAKER_H
#define BECALM_BREAKER_H

/* Circuit breaker: stops calls to a target that is clearly broken, and finds out when it works again.
 *
 *            failure rate or slow-call rate reached
 *   CLOSED ------------------------------------------> OPEN <--------------.
 *     ^                                                 |                  |
 *     |  probes below the thresholds                    | open time over   | probes at or above them,
 *     '------------------- HALF_OPEN <------------------'                  | or missing when the lease ends
 *                              '-------------------------------------------'
 *   DISABLED (lets all calls pass, counts nothing), FORCED_OPEN (refuses all) and METRICS_ONLY (counts, never opens)
 *   are entered and left only by becalm_breaker_force().
 *
 * Parameters and names are Resilience4j's. Known faults of other breakers are avoided: every admission is a permit
 * that ends exactly once; a result from before the last state change is counted but changes no state; a cancelled probe
 * gives its place back; the half-open state has a lease, so lost probes can't block it for ever; a call counts as slow
 * when it becomes slow, not when it ends; the open time has jitter. Shared by threads without locks. */

#include <becalm/outcome.h>
#include <becalm/rand.h>
#include <becalm/window.h>

BECALM_BEGIN_DECLS

enum becalm_breaker_state {
    BECALM_BREAKER_CLOSED,
    BECALM_BREAKER_OPEN,
    BECALM_BREAKER_HALF_OPEN,
    BECALM_BREAKER_DISABLED,
    BECALM_BREAKER_FORCED_OPEN,
    BECALM_BREAKER_METRICS_ONLY
};

enum becalm_breaker_mode {
    BECALM_BREAKER_RATE,       /* share of the window */
    BECALM_BREAKER_CONSECUTIVE /* failures in a row; successes in a row close it again */
};

#define BECALM_BREAKER_SLOW_OFF 0u /* slow_share_ppm: no slow-call rule */

struct becalm_breaker_policy {
    bool enabled;
    bool per_attempt; /* record every attempt instead of every call */
    enum becalm_breaker_mode mode;
    uint32_t failure_share_ppm;          /* RATE: opens at this share or above, 1,000,000 */
    uint32_t slow_share_ppm;             /* RATE: the same for slow calls; BECALM_BREAKER_SLOW_OFF */
    becalm_ns slow_after;                /* a call that takes this long is slow, 60 s */
    enum becalm_window_kind window_kind; /* TIME */
    uint32_t window_size;                /* COUNT: calls; TIME: seconds; 10 */
    uint32_t min_calls;                  /* with fewer calls in the window there is no rate, 20 */
    uint32_t probes;                     /* calls let through while half open, 1; at most 65,535 */
    becalm_ns half_open_for;             /* the lease of a half-open episode, 5 s */
    becalm_ns open_for;                  /* 1 s; drawn from U[0.8, 1.0] of it */
    uint32_t open_factor_ppm;            /* 1,000,000; above: the open time grows with each opening in a row */
    becalm_ns open_cap;                  /* and never beyond this, 60 s */
    uint32_t failure_threshold;          /* CONSECUTIVE: 5 */
    uint32_t success_threshold;          /* CONSECUTIVE: 2, and as many probes */
};

/* Touch it only through the functions below. */
struct becalm_breaker {
    BECALM_ATOMIC(uint64_t) word;   /* state, generation, probes left, openings in a row: one CAS moves them together */
    BECALM_ATOMIC(uint64_t) retest; /* OPEN: when to try again; HALF_OPEN: when the lease ends; and the generation */
    BECALM_ATOMIC(uint64_t) tally;  /* the results that decide in this generation: of probes, or failures in a row */
    BECALM_ATOMIC(uint64_t) plain_until; /* until which note or instant a plain success may open it; 0: it can not */
    BECALM_ATOMIC(uint64_t) late;        /* results that came after their generation had ended */
    BECALM_ATOMIC(uint64_t) failed_took; /* how long the latest failed call took, and 1; 0: none has failed */
    /* A window follows, with lanes for calls, failed calls and slow calls. There is no pointer to it, so that processes
     * can share a breaker in memory that each of them maps elsewhere. */
};

/* The admission of one call; it ends exactly once, with becalm_breaker_note(). */
struct becalm_permit {
    uint32_t generation;
    bool held;
    bool probe;
    bool slow;     /* counted as slow already */
    bool overdue;  /* private to the call: it ended as a timeout, and an answer may still come */
    uint64_t note; /* the window's number of that slow note */
    becalm_ns expires_at;
    /* The state change that the last function on this permit made; from == to: none. */
    enum becalm_breaker_state from;
    enum becalm_breaker_state to;
};

BECALM_API void becalm_breaker_defaults(struct becalm_breaker_policy *);

/* Exactly Resilience4j's defaults: 50 %, 100 %, 60 s, COUNT_BASED, 100, 100, 10 probes, 60 s; but a lease of 5 s. */
BECALM_API void becalm_breaker_resilience4j(struct becalm_breaker_policy *);

/* 0, or BECALM_EINVAL with a sentence in *why (if why is not NULL) that names the field. */
BECALM_API int becalm_breaker_check(const struct becalm_breaker_policy *, const char **why);

BECALM_API size_t becalm_breaker_bytes(const struct becalm_breaker_policy *, uint32_t cells);
BECALM_API struct becalm_breaker *becalm_breaker_init(void *memory, const struct becalm_breaker_policy *,
                                                      uint32_t cells);

/* For memory that another process may have damaged, like a file that processes share: does it hold a valid breaker of
 * this very policy? The memory is as large and aligned as for init. */
BECALM_API bool becalm_breaker_sound(const void *memory, const struct becalm_breaker_policy *, uint32_t cells,
                                     becalm_ns now);

/* A reload: gives `to`, fresh from init, the state, times and generation of `from`. The window starts empty. A
 * half-open breaker becomes an open one whose time is over, because its probes report to `from`. If `to`'s policy
 * switches the breaker off, it stays off. */
BECALM_API void becalm_breaker_carry(struct becalm_breaker *to, const struct becalm_breaker *from);

/* May a call be sent? True hands out a permit. Ask the breaker last, after every other rule, so that no other rule
 * refuses a call that already holds a probe. */
BECALM_API bool becalm_breaker_admit(struct becalm_breaker *, const struct becalm_breaker_policy *,
                                     const struct becalm_moment *, struct becalm_permit *);

/* Would a call be let through, or is it refused for certain? Takes and moves nothing. */
BECALM_API bool becalm_breaker_peek(const struct becalm_breaker *, becalm_ns now);

/* Are all probes of a half-open breaker in flight, so that the next call would be refused until they are answered? */
BECALM_API bool becalm_breaker_probes(const struct becalm_breaker *, becalm_ns now);

/* Does it let everything through: CLOSED, DISABLED or METRICS_ONLY? A retry or hedge needs that; probes are first
 * attempts. */
BECALM_API bool becalm_breaker_closed(const struct becalm_breaker *);

/* The call behind the permit has just become slow: counts it now. The permit stays held. */
BECALM_API void becalm_breaker_slow(struct becalm_breaker *, const struct becalm_breaker_policy *,
                                    const struct becalm_moment *, struct becalm_permit *);

/* Ends a permit. `took` is the time spent in attempts. A permit that is not held is left alone. */
BECALM_API void becalm_breaker_note(struct becalm_breaker *, const struct becalm_breaker_policy *,
                                    const struct becalm_moment *, struct becalm_permit *, enum becalm_verdict,
                                    becalm_ns took);

/* An operator's hand: any of the six states. Returns the state before. */
BECALM_API enum becalm_breaker_state becalm_breaker_force(struct becalm_breaker *, const struct becalm_breaker_policy *,
                                                          const struct becalm_moment *, enum becalm_breaker_state);

BECALM_API enum becalm_breaker_state becalm_breaker_state(const struct becalm_breaker *);

/* OPEN: when the breaker lets a probe through. HALF_OPEN: when it gives up on its probes. NEVER in other states. */
BECALM_API becalm_ns becalm_breaker_retest_at(const struct becalm_breaker *);

/* How many results came after their generation had ended, and so changed no state. */
BECALM_API uint64_t becalm_breaker_late(const struct becalm_breaker *);

/* The window's sums for display: calls, failed, slow. Probes are not in it. */
BECALM_API void becalm_breaker_read(const struct becalm_breaker *, becalm_ns now, struct becalm_window_sums *);

/* "HALF_OPEN". Never NULL. */
BECALM_API const char *becalm_breaker_word(enum becalm_breaker_state);

BECALM_END_DECLS

#endif
