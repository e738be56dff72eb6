/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TARGET_H
#define BECALM_TARGET_H

/* The state that all calls to one target share: its budget, breaker, limit and so on. A part that is NULL is off.
 * Usually becalm_target_init() makes all parts in one piece. But they are ordinary objects, so an endpoint may borrow
 * its service's limit, or have the service's budget as its second one (then both must pay for a retry). */

#include <becalm/due.h>
#include <becalm/losses.h>
#include <becalm/mark.h>
#include <becalm/policy.h>

BECALM_BEGIN_DECLS

struct becalm_target {
    struct becalm_budget *budget;
    struct becalm_budget *service_budget; /* the second level; NULL: none */
    struct becalm_losses *losses;         /* which clients lose the retries of `budget`, so that no client takes all; */
    struct becalm_losses *service_losses; /* the losses of `service_budget`. NULL: clients are not told apart */
    struct becalm_breaker *breaker;
    struct becalm_throttle *throttle;
    struct becalm_rate *rate;
    struct becalm_limit *limit;
    struct becalm_gate *gate;
    struct becalm_hedge *hedge;
    struct becalm_sketch *sketch;
    struct becalm_due *due; /* NULL: attempt_timeout is exact, and no retry is sent beside an overdue attempt */
    struct becalm_mark *mark;
    struct becalm_hosts *hosts;
    struct becalm_restart *restart; /* belongs to the service: its endpoints share it, as they share its hosts */
    struct becalm_lease *lease;     /* the shared budget: the driver has to ask its store, see lease.h; NULL: none */
};

/* Is the timeout the policy's own? Otherwise it is learned, and attempts are not cut when they are overdue. */
static inline bool becalm_target_timeout_is_written(const struct becalm_target *target,
                                                    const struct becalm_policy *policy)
{
    return target->due == NULL || policy->timeout_kind == BECALM_TIMEOUT_EXACT;
}

/* The time after which an attempt is given up; or, where the timeout is learned, after which it is overdue. */
static inline becalm_ns becalm_target_timeout(const struct becalm_target *target, const struct becalm_policy *policy)
{
    return becalm_target_timeout_is_written(target, policy) ? policy->attempt_timeout
                                                            : becalm_due_time(target->due, policy->attempt_timeout);
}

/* The time after which an attempt is overdue now, so that a retry may be sent beside it; NEVER: the timeout comes
 * first, or no retry is sent beside an attempt: by the policy, in shadow mode, and where calls hedge. Before any
 * latency is known it is BECALM_DUE_START or more, and then a timeout of 30 s or less comes first. */
BECALM_API becalm_ns becalm_target_overdue(const struct becalm_target *, const struct becalm_policy *);

/* Bytes for all parts that the policy switches on; `hosts` may be 0; `cells` is the number of threads, at most 64. */
BECALM_API size_t becalm_target_bytes(const struct becalm_policy *, uint32_t hosts, uint32_t cells);

/* Makes the parts in `memory`, which is 64-aligned and outlives the target. BECALM_EINVAL if the policy does not pass
 * its check. */
BECALM_API int becalm_target_init(struct becalm_target *, void *memory, const struct becalm_policy *, uint32_t hosts,
                                  uint32_t cells);

/* A reload: gives `to`, fresh from init, the fill, state and times of `from`: budget, breaker, limit, gate, rate, mark,
 * hedge and due. Windows, throttle, sketch and lease start empty. Hosts and restart keep their state if the number of
 * hosts is the same. */
BECALM_API void becalm_target_carry(struct becalm_target *to, const struct becalm_policy *to_policy,
                                    const struct becalm_target *from, const struct becalm_policy *from_policy,
                                    becalm_ns now);

BECALM_END_DECLS

#endif
