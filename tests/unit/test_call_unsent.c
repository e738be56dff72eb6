/* SPDX-License-Identifier: MIT */
#include <becalm/call.h>

#include "check.h"

/* An attempt that waits for a connection in our own queue and is never sent is no evidence against the callee. */

#define CALLS 40

struct lab {
    struct becalm_policy policy;
    struct becalm_target target;
    struct becalm_action action;
    struct becalm_call call[CALLS];
    becalm_ns now;
    void *memory;
};

static void lab_open(struct lab *lab, enum becalm_limit_kind kind)
{
    becalm_policy_defaults(&lab->policy);
    becalm_limit_defaults(&lab->policy.limit, kind);
    lab->policy.limit.max = 100;
    lab->policy.breaker.slow_share_ppm = 500000;
    lab->policy.breaker.slow_after = BECALM_S;
    lab->policy.breaker.min_calls = 10;
    lab->now = BECALM_S;
    lab->memory = aligned_alloc(64, becalm_target_bytes(&lab->policy, 2, 1));
    check_eq_u64((uint64_t)becalm_target_init(&lab->target, lab->memory, &lab->policy, 2, 1), 0);
}

static void step(struct lab *lab, struct becalm_call *call, enum becalm_event_kind kind,
                 enum becalm_outcome_kind outcome)
{
    struct becalm_event event = {.kind = kind, .at.now = lab->now, .outcome = {.kind = outcome}};
    becalm_call_step(call, &event, &lab->action);
}

static void begin(struct lab *lab, struct becalm_call *call)
{
    becalm_call_init(call, &lab->policy, &lab->target, &(struct becalm_request){.idempotent = true});
    step(lab, call, BECALM_EVENT_BEGIN, BECALM_OUTCOME_OK);
    assert_true((lab->action.flags & BECALM_DO_SEND) != 0);
}

/* All of them begin; `waits` says whether they stand in our own line. */
static void begin_all(struct lab *lab, bool waits)
{
    for (int i = 0; i < CALLS; i++) {
        begin(lab, &lab->call[i]);
        if (waits) {
            becalm_call_unsent(&lab->call[i], lab->action.slot, lab->action.timeout_at);
            becalm_call_unsent(&lab->call[i], BECALM_SLOTS, 0); /* no host is up */
        }
    }
}

/* Time passes second by second, so that slow attempts are noticed. */
static void pass(struct lab *lab, becalm_ns time)
{
    becalm_ns until = lab->now + time;
    while (lab->now < until) {
        lab->now = becalm_ns_min(until, lab->now + BECALM_S);
        for (int i = 0; i < CALLS; i++) {
            step(lab, &lab->call[i], BECALM_EVENT_TIMER, BECALM_OUTCOME_OK);
        }
    }
}

static bool is_unharmed(const struct lab *lab)
{
    return becalm_limit_now(lab->target.limit, &lab->policy.limit) == 100 &&
           becalm_breaker_closed(lab->target.breaker) && becalm_sketch_count(lab->target.sketch, lab->now) == 0;
}

static void test_unsent__its_timeout_is_held_against_nobody(void **state)
{
    (void)state;
    static const enum becalm_limit_kind kinds[] = {BECALM_LIMIT_AIMD, BECALM_LIMIT_SLOTS};
    for (size_t k = 0; k < 2; k++) {
        struct lab lab;
        lab_open(&lab, kinds[k]);
        begin_all(&lab, true);
        pass(&lab, lab.policy.attempt_timeout);
        for (int i = 0; i < CALLS; i++) {
            assert_true(becalm_call_ended(&lab.call[i]));
            assert_int_equal(lab.call[i].record.reason, BECALM_WHY_NO_CONNECTION);
            check_eq_u64(lab.call[i].record.attempts, 0);
            check_eq_u64(lab.call[i].record.have, lab.policy.attempt_timeout);
        }
        assert_true(is_unharmed(&lab));
        check_eq_u64(becalm_limit_in_flight(lab.target.limit), 0);
        begin_all(&lab, false); /* and an attempt that was sent counts */
        pass(&lab, lab.policy.attempt_timeout);
        assert_false(is_unharmed(&lab));
        free(lab.memory);
    }
}

static void test_unsent__the_caller_is_told_that_nobody_was_asked(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, BECALM_LIMIT_SLOTS);
    begin(&lab, &lab.call[0]);
    becalm_call_unsent(&lab.call[0], lab.action.slot, lab.action.timeout_at);
    lab.now += lab.policy.attempt_timeout;
    step(&lab, &lab.call[0], BECALM_EVENT_TIMER, BECALM_OUTCOME_OK);
    assert_int_equal(lab.action.flags, BECALM_DO_CANCEL | BECALM_DO_FINISH);
    assert_int_equal(lab.action.cancel, 1);
    assert_int_equal(lab.action.why, BECALM_WHY_NO_CONNECTION);
    assert_int_equal(lab.action.mark, BECALM_MARK_UNASKED);
    check_eq_u64(lab.action.retry_after, lab.policy.gate.retry_after);
    free(lab.memory);
}

static void test_unsent__a_caller_that_leaves_the_line_says_nothing(void **state)
{
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        struct lab lab;
        lab_open(&lab, BECALM_LIMIT_SLOTS);
        begin_all(&lab, waits == 1);
        lab.now += lab.policy.attempt_timeout / 2;
        for (int i = 0; i < CALLS; i++) {
            step(&lab, &lab.call[i], BECALM_EVENT_CANCEL, BECALM_OUTCOME_OK);
        }
        assert_int_equal(becalm_limit_now(lab.target.limit, &lab.policy.limit) == 100, waits == 1);
        free(lab.memory);
    }
}

static void test_unsent__its_time_begins_when_it_goes(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, BECALM_LIMIT_AIMD);
    struct becalm_call *call = &lab.call[0];
    begin(&lab, call);
    check_eq_u64(becalm_call_goes(call, 0, lab.now + BECALM_S), lab.action.timeout_at); /* it did not wait */
    becalm_call_unsent(call, 0, lab.action.timeout_at);
    lab.now += lab.policy.attempt_timeout - 1;
    becalm_ns timeout_at = becalm_call_goes(call, 0, lab.now);
    check_eq_u64(timeout_at, lab.now + lab.policy.attempt_timeout);
    lab.now++;
    step(&lab, call, BECALM_EVENT_TIMER, BECALM_OUTCOME_OK); /* the timer of before does no harm */
    assert_false(becalm_call_ended(call));
    check_eq_u64(lab.action.wake_at, becalm_ns_min(timeout_at, lab.now - 1 + lab.policy.breaker.slow_after));
    lab.now += 20 * BECALM_MS;
    step(&lab, call, BECALM_EVENT_DONE, BECALM_OUTCOME_OK);
    assert_int_equal(call->record.reason, BECALM_WHY_OK);
    check_eq_u64(call->record.attempt[0].took, 20 * BECALM_MS + 1);
    check_eq_u64(becalm_call_goes(call, 0, lab.now), BECALM_NEVER); /* it is over */
    free(lab.memory);
}

static void test_unsent__nobody_waits_in_line_beyond_the_deadline(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, BECALM_LIMIT_AIMD);
    lab.policy.deadline = lab.policy.attempt_timeout / 2;
    begin_all(&lab, true);
    check_eq_u64(becalm_call_goes(&lab.call[1], 0, lab.now + BECALM_S), lab.now + lab.policy.deadline);
    lab.now += lab.policy.deadline;
    step(&lab, &lab.call[0], BECALM_EVENT_TIMER, BECALM_OUTCOME_OK);
    assert_int_equal(lab.call[0].record.reason, BECALM_WHY_NO_CONNECTION);
    step(&lab, &lab.call[1], BECALM_EVENT_TIMER, BECALM_OUTCOME_OK);
    assert_int_equal(lab.call[1].record.reason, BECALM_WHY_DEADLINE);
    free(lab.memory);
}

static void test_unsent__it_waits_as_long_as_its_program_likes(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, BECALM_LIMIT_AIMD);
    struct becalm_call *call = &lab.call[0];
    begin(&lab, call);
    becalm_call_unsent(call, 0, BECALM_NEVER);
    lab.now += lab.policy.deadline - 1;
    step(&lab, call, BECALM_EVENT_TIMER, BECALM_OUTCOME_OK);
    assert_false(becalm_call_ended(call));
    check_eq_u64(lab.action.wake_at, lab.now + 1);
    lab.now++;
    step(&lab, call, BECALM_EVENT_TIMER, BECALM_OUTCOME_OK);
    assert_int_equal(call->record.reason, BECALM_WHY_NO_CONNECTION);
    free(lab.memory);
}

static void test_unsent__a_retry_in_line_gets_what_was_paid_back(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, BECALM_LIMIT_AIMD);
    struct becalm_call *call = &lab.call[0];
    uint64_t full = becalm_budget_left(lab.target.budget, &lab.policy.budget, lab.now);
    begin(&lab, call);
    step(&lab, call, BECALM_EVENT_DONE, BECALM_OUTCOME_BROKEN);
    lab.now = lab.action.wake_at;
    step(&lab, call, BECALM_EVENT_TIMER, BECALM_OUTCOME_OK);
    assert_true((lab.action.flags & BECALM_DO_SEND) != 0);
    assert_true(becalm_budget_left(lab.target.budget, &lab.policy.budget, lab.now) < full);
    becalm_call_unsent(call, lab.action.slot, lab.action.timeout_at);
    lab.now += lab.policy.attempt_timeout;
    step(&lab, call, BECALM_EVENT_TIMER, BECALM_OUTCOME_OK);
    assert_int_equal(call->record.reason, BECALM_WHY_NO_CONNECTION);
    check_eq_u64(call->record.attempts, 1);
    check_eq_u64(becalm_budget_left(lab.target.budget, &lab.policy.budget, lab.now), full);
    free(lab.memory);
}

static void test_unsent__a_hedge_in_line_is_dropped_and_the_call_goes_on(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, BECALM_LIMIT_AIMD);
    lab.policy.hedge.enabled = true;
    lab.policy.hedge.delay = 100 * BECALM_MS;
    free(lab.memory);
    lab.memory = aligned_alloc(64, becalm_target_bytes(&lab.policy, 2, 1));
    check_eq_u64((uint64_t)becalm_target_init(&lab.target, lab.memory, &lab.policy, 2, 1), 0);
    struct becalm_call *call = &lab.call[0];
    begin(&lab, call);
    becalm_call_unsent(call, 0, lab.action.timeout_at); /* the first one waits, and its hedge does not */
    lab.now += 100 * BECALM_MS;
    step(&lab, call, BECALM_EVENT_TIMER, BECALM_OUTCOME_OK);
    assert_true((lab.action.flags & BECALM_DO_SEND) != 0 && lab.action.slot == 1);
    lab.now += lab.policy.attempt_timeout - 100 * BECALM_MS;
    step(&lab, call, BECALM_EVENT_TIMER, BECALM_OUTCOME_OK);
    assert_int_equal(lab.action.cancel, 1);
    assert_false(becalm_call_ended(call));
    struct becalm_event event = {.kind = BECALM_EVENT_DONE, .at.now = lab.now, .slot = 1};
    becalm_call_step(call, &event, &lab.action);
    assert_int_equal(call->record.reason, BECALM_WHY_OK);
    check_eq_u64(becalm_limit_now(lab.target.limit, &lab.policy.limit), 100);
    free(lab.memory);
}

BECALM_TESTS(cmocka_unit_test(test_unsent__its_timeout_is_held_against_nobody),
             cmocka_unit_test(test_unsent__the_caller_is_told_that_nobody_was_asked),
             cmocka_unit_test(test_unsent__a_caller_that_leaves_the_line_says_nothing),
             cmocka_unit_test(test_unsent__its_time_begins_when_it_goes),
             cmocka_unit_test(test_unsent__nobody_waits_in_line_beyond_the_deadline),
             cmocka_unit_test(test_unsent__it_waits_as_long_as_its_program_likes),
             cmocka_unit_test(test_unsent__a_retry_in_line_gets_what_was_paid_back),
             cmocka_unit_test(test_unsent__a_hedge_in_line_is_dropped_and_the_call_goes_on))
