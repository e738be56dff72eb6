/* SPDX-License-Identifier: MIT */
#include <becalm/target.h>

#include <string.h>

#include "due_internal.h"

#define LINE 64u

/* Hands out the parts of one block of memory, line by line; without memory it only measures. */
struct arena {
    unsigned char *memory;
    size_t used;
};

static void *arena_take(struct arena *arena, size_t bytes)
{
    void *part = arena->memory == NULL ? NULL : arena->memory + arena->used;
    arena->used += (bytes + LINE - 1) / LINE * LINE;
    return part;
}

struct shape {
    const struct becalm_policy *policy;
    uint32_t hosts;
    uint32_t cells;
};

/* Says where every part lies. Measuring and making both come here, so that they can't differ. */
static void lay_out(struct becalm_target *target, struct arena *arena, const struct shape *shape)
{
    const struct becalm_policy *policy = shape->policy;
    memset(target, 0, sizeof *target);
    target->budget = arena_take(arena, becalm_budget_bytes(&policy->budget, shape->cells));
    target->breaker = arena_take(arena, becalm_breaker_bytes(&policy->breaker, shape->cells));
    target->limit = arena_take(arena, sizeof *target->limit);
    target->gate = arena_take(arena, sizeof *target->gate);
    target->losses = arena_take(arena, sizeof *target->losses);
    target->sketch = arena_take(arena, sizeof *target->sketch);
    target->mark = arena_take(arena, sizeof *target->mark);
    if (policy->timeout_kind != BECALM_TIMEOUT_EXACT || (policy->retry_overdue && policy->max_retries > 0)) {
        target->due = arena_take(arena, sizeof *target->due);
    }
    if (policy->throttle.enabled) {
        target->throttle = arena_take(arena, becalm_throttle_bytes(&policy->throttle, shape->cells));
    }
    if (policy->rate.enabled) {
        target->rate = arena_take(arena, sizeof *target->rate);
    }
    if (policy->hedge.enabled) {
        target->hedge = arena_take(arena, sizeof *target->hedge);
    }
    if (policy->lease.enabled) {
        target->lease = arena_take(arena, becalm_lease_bytes(shape->cells));
    }
    if (shape->hosts > 0) {
        target->hosts = arena_take(arena, becalm_hosts_bytes(&policy->outlier, shape->hosts, shape->cells));
    }
    target->restart = arena_take(arena, becalm_restart_bytes(shape->hosts));
}

becalm_ns becalm_target_overdue(const struct becalm_target *target, const struct becalm_policy *policy)
{
    bool hedges = target->hedge != NULL && policy->hedge.enabled;
    if (target->due == NULL || !policy->retry_overdue || policy->max_retries == 0 || hedges || policy->shadow ||
        policy->timeout_kind == BECALM_TIMEOUT_NONE) {
        return BECALM_NEVER;
    }
    becalm_ns overdue = becalm__due_time(target->due, becalm__due_least(policy));
    bool cut = policy->timeout_kind == BECALM_TIMEOUT_EXACT && overdue >= policy->attempt_timeout;
    return cut ? BECALM_NEVER : overdue;
}

size_t becalm_target_bytes(const struct becalm_policy *policy, uint32_t hosts, uint32_t cells)
{
    struct becalm_target nowhere;
    struct arena measure = {.memory = NULL};
    lay_out(&nowhere, &measure, &(struct shape){policy, hosts, cells});
    return measure.used;
}

int becalm_target_init(struct becalm_target *target, void *memory, const struct becalm_policy *policy, uint32_t hosts,
                       uint32_t cells)
{
    if (becalm_policy_check(policy, NULL) != 0 || hosts > BECALM_HOSTS_MAX || cells == 0 ||
        cells > BECALM_WINDOW_CELLS_MAX) {
        return BECALM_EINVAL;
    }
    BECALM_ASSERT((uintptr_t)memory % LINE == 0);
    struct arena arena = {.memory = memory};
    lay_out(target, &arena, &(struct shape){policy, hosts, cells});
    target->budget = becalm_budget_init(target->budget, &policy->budget, cells);
    target->breaker = becalm_breaker_init(target->breaker, &policy->breaker, cells);
    becalm_limit_init(target->limit, &policy->limit);
    becalm_gate_init(target->gate);
    becalm_losses_init(target->losses);
    becalm_sketch_init(target->sketch);
    becalm_mark_init(target->mark);
    if (target->due != NULL) {
        becalm_due_init(target->due);
    }
    if (target->throttle != NULL) {
        target->throttle = becalm_throttle_init(target->throttle, &policy->throttle, cells);
    }
    if (target->rate != NULL) {
        becalm_rate_init(target->rate);
    }
    if (target->hedge != NULL) {
        becalm_hedge_init(target->hedge, &policy->hedge);
    }
    if (target->lease != NULL) {
        target->lease = becalm_lease_init(target->lease, cells);
    }
    if (target->hosts != NULL) {
        target->hosts = becalm_hosts_init(target->hosts, &policy->outlier, hosts, cells);
    }
    target->restart = becalm_restart_init(target->restart, hosts);
    return 0;
}

void becalm_target_carry(struct becalm_target *to, const struct becalm_policy *to_policy,
                         const struct becalm_target *from, const struct becalm_policy *from_policy, becalm_ns now)
{
    if (to->budget != NULL && from->budget != NULL) {
        becalm_budget_carry(to->budget, &to_policy->budget, from->budget, &from_policy->budget, now);
    }
    if (to->breaker != NULL && from->breaker != NULL && to_policy->breaker.enabled && from_policy->breaker.enabled) {
        becalm_breaker_carry(to->breaker, from->breaker);
    }
    if (to->limit != NULL && from->limit != NULL) {
        becalm_limit_carry(to->limit, &to_policy->limit, from->limit, &from_policy->limit);
    }
    if (to->gate != NULL && from->gate != NULL) {
        becalm_gate_carry(to->gate, from->gate);
    }
    if (to->rate != NULL && from->rate != NULL) {
        becalm_rate_carry(to->rate, from->rate);
    }
    if (to->mark != NULL && from->mark != NULL) {
        becalm_mark_carry(to->mark, from->mark);
    }
    if (to->due != NULL && from->due != NULL && becalm__due_least(to_policy) == becalm__due_least(from_policy)) {
        becalm_due_carry(to->due, from->due); /* the learned time is kept in terms of the least one */
    }
    if (to->hedge != NULL && from->hedge != NULL) {
        becalm_hedge_carry(to->hedge, &to_policy->hedge, from->hedge, &from_policy->hedge);
    }
    if (to->hosts != NULL && from->hosts != NULL && to->hosts->count == from->hosts->count) {
        becalm_hosts_carry(to->hosts, from->hosts);
    }
    if (to->restart != NULL && from->restart != NULL) {
        becalm_restart_carry(to->restart, from->restart);
    }
}
