/* SPDX-License-Identifier: MIT */
#ifndef BECALM_RUN_H
#define BECALM_RUN_H

/* For programs that just want to call a blocking function with retries. This is a small driver around the engine: it
 * reads the clock, draws random numbers and sleeps.
 *
 *   struct becalm_guard *guard = becalm_guard_new(NULL, NULL);            once per service that is called
 *   enum becalm_reason why = becalm_run(guard, fetch, &order);             from any thread, as often as you like
 *   becalm_guard_free(guard);
 *
 * A first attempt that finds no slot in the limit waits in a queue. So does an attempt whose connection was refused
 * (outcome.no_listener) while its host restarts. Another thread wakes it.
 *
 * Your function makes one attempt and reports how it ended. It blocks, so the engine can't cut it short: the function
 * is told its timeout and must keep to it by itself. For the same reason there is no hedging here. */

#include <becalm/call.h>

BECALM_BEGIN_DECLS

/* A policy and the state that all calls to one target share. */
struct becalm_guard;

/* The input of one attempt. */
struct becalm_try {
    uint32_t attempt;  /* 0 is the first */
    uint32_t host;     /* which of the guard's hosts; BECALM_NO_HOST if it has none */
    becalm_ns timeout; /* how long this attempt may take, at least 1 ms; round up when you convert it to another unit */
};

/* Makes one attempt. *outcome is zeroed, which means success; set at least its kind otherwise. */
typedef void becalm_try_fn(const struct becalm_try *, struct becalm_outcome *outcome, void *data);

/* The values of a log line about a retry. */
struct becalm_retry {
    uint32_t retry; /* 1 is the first retry */
    uint32_t of;    /* how many retries the policy allows */
    struct becalm_outcome outcome;
    struct becalm_wait wait;
};

struct becalm_guard_options {
    const struct becalm_policy *policy; /* copied; NULL: the defaults */
    uint32_t hosts;                     /* how many hosts the target has; 0: the function knows where to go */
    void (*on_retry)(const struct becalm_retry *, void *data);
    void (*on_breaker)(enum becalm_breaker_state from, enum becalm_breaker_state to, void *data);
    void *data; /* for these two callbacks, which run in the thread of the call */
};

/* A guard on the heap; `options` may be NULL. NULL: the policy does not pass its check (then *complaint, if given, has
 * the error) or memory ran out (then its sentence is NULL). */
BECALM_API struct becalm_guard *becalm_guard_new(const struct becalm_guard_options *options,
                                                 struct becalm_complaint *complaint);

/* No call may be in progress. NULL is fine. */
BECALM_API void becalm_guard_free(struct becalm_guard *);

/* The shared state, to look at it: becalm_breaker_state(becalm_guard_target(guard)->breaker). */
BECALM_API const struct becalm_target *becalm_guard_target(const struct becalm_guard *);

/* Ends calls from another thread, also in the middle of a wait. One object may serve many calls. */
struct becalm_cancel;
BECALM_API struct becalm_cancel *becalm_cancel_new(void);
BECALM_API void becalm_cancel(struct becalm_cancel *);
BECALM_API void becalm_cancel_free(struct becalm_cancel *);

/* Runs the function until it succeeds or must not be tried again, and returns the reason: BECALM_WHY_OK or another. The
 * call counts as idempotent, because the program asks for retries. */
BECALM_API enum becalm_reason becalm_run(struct becalm_guard *, becalm_try_fn *, void *data);

struct becalm_run_options {
    struct becalm_request request; /* zeroed: NOT idempotent; deadline_at is on becalm_run_now()'s clock */
    struct becalm_cancel *cancel;  /* NULL: can't be cancelled */
    struct becalm_record *record;  /* NULL, or where the decision record goes */
};

/* The same, with all options of a call. */
BECALM_API enum becalm_reason becalm_run_with(struct becalm_guard *, const struct becalm_run_options *, becalm_try_fn *,
                                              void *data);

/* The clock of this driver: CLOCK_MONOTONIC. */
BECALM_API becalm_ns becalm_run_now(void);

BECALM_END_DECLS

#endif
