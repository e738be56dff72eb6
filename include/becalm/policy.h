/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_H
#define BECALM_POLICY_H

/* One target's rules: a value of fixed size. Fill it with becalm_policy_defaults(), change fields, check it. */

#include <becalm/backoff.h>
#include <becalm/breaker.h>
#include <becalm/budget.h>
#include <becalm/gate.h>
#include <becalm/hedge.h>
#include <becalm/lease.h>
#include <becalm/limit.h>
#include <becalm/outlier.h>
#include <becalm/rate.h>
#include <becalm/restart.h>
#include <becalm/throttle.h>

BECALM_BEGIN_DECLS

#define BECALM_RETRIES_MAX 1000u

/* The kind of an attempt's timeout. Where it is not exact, attempt_timeout is the minimum time after which an attempt
 * is overdue (see due.h): limit and breaker then count a timeout, and the attempt continues. Where it is exact, half of
 * attempt_timeout is that minimum, and limit and breaker do not hear of an overdue attempt. */
enum becalm_timeout_kind {
    BECALM_TIMEOUT_EXACT,   /* an attempt is cut at attempt_timeout */
    BECALM_TIMEOUT_LEARNED, /* an open breaker ends an overdue attempt at twice the time, else the deadline does */
    BECALM_TIMEOUT_NONE     /* only the deadline ends an attempt, and no second attempt is sent beside it */
};

struct becalm_policy {
    uint32_t max_retries;                  /* 2: retries, not attempts */
    becalm_ns attempt_timeout;             /* 5 s, until the answer's head */
    enum becalm_timeout_kind timeout_kind; /* exact */
    bool retry_overdue;                    /* false; true: a retry may be sent beside an attempt that is overdue */
    becalm_ns deadline;                    /* 16 s, of the whole call, until the answer's head; NEVER for none */
    uint32_t retry_on;                     /* a set of BECALM_OUTCOME_BIT() */
    bool idempotent;                       /* true: every call of this target may be repeated */
    bool shadow;                           /* count the decisions, but refuse and retry nothing */
    struct becalm_backoff_policy backoff;
    struct becalm_budget_policy budget;
    struct becalm_budget_policy service_budget; /* used when the target has a second budget */
    struct becalm_breaker_policy breaker;
    struct becalm_throttle_policy throttle;
    struct becalm_rate_policy rate;
    struct becalm_limit_policy limit;
    struct becalm_gate_policy gate;
    struct becalm_hedge_policy hedge;
    struct becalm_outlier_policy outlier;
    struct becalm_restart_policy restart;
    struct becalm_lease_policy lease; /* the shared budget; if enabled, it must pay for a retry as well */
};

BECALM_API void becalm_policy_defaults(struct becalm_policy *);

/* An error in a policy: the part, and a sentence that begins with the name of its field. Both are constants. Print
 * them one after the other: "backoff cap must be at least base". */
struct becalm_complaint {
    const char *part;     /* "backoff"; "" for the fields above */
    const char *sentence; /* "cap must be at least base" */
};

/* 0, or BECALM_EINVAL with the first complaint in *complaint (if it is not NULL). */
BECALM_API int becalm_policy_check(const struct becalm_policy *, struct becalm_complaint *complaint);

BECALM_END_DECLS

#endif
