/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TESTS_OVERDUE_LAB_H
#define BECALM_TESTS_OVERDUE_LAB_H

/* Calls to a target with two hosts, one event at a time. */

#include <becalm/call.h>

#include "check.h"

#define CALLS 40

struct lab {
    struct becalm_policy policy;
    struct becalm_target target;
    struct becalm_action action;
    struct becalm_call call[CALLS];
    becalm_ns now;
    void *memory;
};

/* Fresh state, by the policy as it is now. */
static inline void lab_reopen(struct lab *lab)
{
    free(lab->memory);
    lab->memory = aligned_alloc(64, becalm_target_bytes(&lab->policy, 2, 1));
    check_eq_u64((uint64_t)becalm_target_init(&lab->target, lab->memory, &lab->policy, 2, 1), 0);
}

static inline void lab_open(struct lab *lab)
{
    becalm_policy_defaults(&lab->policy);
    lab->policy.timeout_kind = BECALM_TIMEOUT_LEARNED;
    lab->policy.retry_overdue = true;
    lab->policy.deadline = 60 * BECALM_S;
    lab->now = BECALM_S;
    lab->memory = NULL;
    lab_reopen(lab);
}

static inline void step_with(struct lab *lab, struct becalm_call *call, struct becalm_event event, uint64_t random)
{
    event.at = (struct becalm_moment){.now = lab->now, .random = random};
    becalm_call_step(call, &event, &lab->action);
}

static inline void step(struct lab *lab, struct becalm_call *call, struct becalm_event event)
{
    step_with(lab, call, event, 0);
}

static inline void timer(struct lab *lab, struct becalm_call *call)
{
    step(lab, call, (struct becalm_event){.kind = BECALM_EVENT_TIMER});
}

static inline void done(struct lab *lab, struct becalm_call *call, uint32_t slot, enum becalm_outcome_kind kind)
{
    step(lab, call,
         (struct becalm_event){.kind = BECALM_EVENT_DONE,
                               .slot = slot,
                               .outcome = {.kind = kind, .status = kind == BECALM_OUTCOME_OK ? 200 : 503}});
}

static inline void begin_request(struct lab *lab, struct becalm_call *call, const struct becalm_request *request)
{
    becalm_call_init(call, &lab->policy, &lab->target, request);
    step(lab, call, (struct becalm_event){.kind = BECALM_EVENT_BEGIN});
    assert_true((lab->action.flags & BECALM_DO_SEND) != 0);
}

static inline void begin(struct lab *lab, struct becalm_call *call, bool idempotent)
{
    begin_request(lab, call, &(struct becalm_request){.idempotent = idempotent});
}

/* `count` good answers of this duration, one after another. */
static inline void answers(struct lab *lab, becalm_ns took, int count)
{
    for (int i = 0; i < count; i++) {
        struct becalm_call call;
        begin(lab, &call, true);
        lab->now += took;
        done(lab, &call, 0, BECALM_OUTCOME_OK);
    }
}

#endif
