/* SPDX-License-Identifier: MIT */
/* An answer whose head is good and whose end tells how it went, as gRPC's are. */
#include <becalm/call.h>

#include "check.h"

#include <stdlib.h>

#define MS BECALM_MS

static const struct becalm_outcome good = {.kind = BECALM_OUTCOME_OK, .status = 200, .provisional = true};
static const struct becalm_outcome unavailable = {.kind = BECALM_OUTCOME_REJECTED, .status = 200, .delivered = true};
static const struct becalm_outcome fine = {.kind = BECALM_OUTCOME_OK, .status = 200};

struct stage {
    struct becalm_policy policy;
    struct becalm_target target;
    struct becalm_call call;
    struct becalm_action action;
    void *memory;
};

static void stage_step(struct stage *s, becalm_ns now, enum becalm_event_kind kind,
                       const struct becalm_outcome *outcome)
{
    struct becalm_event event = {.kind = kind, .at.now = now};
    if (outcome != NULL) {
        event.outcome = *outcome;
    }
    becalm_call_step(&s->call, &event, &s->action);
}

/* A call whose first attempt was sent at 1 s, and whose head comes after 20 ms. The breaker opens with one failure, and
 * the budget has only the tokens of successes. */
static void stage_begin(struct stage *s, becalm_ns deadline_at)
{
    becalm_policy_defaults(&s->policy);
    becalm_budget_defaults(&s->policy.budget, BECALM_BUDGET_GRPC);
    s->policy.budget.max_tokens_milli = 10000;
    s->policy.breaker.enabled = true;
    s->policy.breaker.mode = BECALM_BREAKER_CONSECUTIVE;
    s->policy.breaker.failure_threshold = 1;
    s->policy.deadline = 500 * MS;
    s->policy.attempt_timeout = 2 * BECALM_S;
    s->memory = aligned_alloc(64, becalm_target_bytes(&s->policy, 2, 1));
    assert_int_equal(becalm_target_init(&s->target, s->memory, &s->policy, 2, 1), 0);
    struct becalm_request request = {.deadline_at = deadline_at};
    becalm_call_init(&s->call, &s->policy, &s->target, &request);
    stage_step(s, BECALM_S, BECALM_EVENT_BEGIN, NULL);
    assert_true((s->action.flags & BECALM_DO_SEND) != 0);
    stage_step(s, BECALM_S + 20 * MS, BECALM_EVENT_HEAD, &good);
    assert_int_equal(s->action.flags & (BECALM_DO_ANSWER | BECALM_DO_FINISH), BECALM_DO_ANSWER);
    assert_true(s->call.record.attempt[0].open);
    check_eq_u64(becalm_limit_in_flight(s->target.limit), 0);
    check_eq_u64(becalm_limit_answers(s->target.limit), 1);
}

static uint64_t budget_of(const struct stage *s, becalm_ns now)
{
    return becalm_budget_left(s->target.budget, &s->policy.budget, now);
}

/* Nothing is held any more. */
static void stage_end(struct stage *s, enum becalm_reason why)
{
    assert_true(becalm_call_ended(&s->call));
    assert_int_equal(s->call.record.reason, why);
    check_eq_u64(s->action.wake_at, BECALM_NEVER);
    check_eq_u64(becalm_limit_answers(s->target.limit), 0);
    free(s->memory);
}

static void test_provisional__an_end_that_fails_is_a_failure_and_earns_nothing(void **state)
{
    (void)state;
    struct stage s;
    stage_begin(&s, 0);
    uint64_t before = budget_of(&s, BECALM_S);
    assert_true(becalm_breaker_closed(s.target.breaker));
    stage_step(&s, BECALM_S + 90 * MS, BECALM_EVENT_DONE, &unavailable);
    assert_int_equal(s.call.record.attempt[0].outcome, BECALM_OUTCOME_REJECTED);
    assert_false(becalm_breaker_closed(s.target.breaker));
    assert_true(budget_of(&s, BECALM_S + 90 * MS) < before);
    stage_end(&s, BECALM_WHY_ANSWER_DELIVERED);
}

static void test_provisional__an_end_that_is_fine_is_a_success_that_took_as_long_as_its_head(void **state)
{
    (void)state;
    struct stage s;
    stage_begin(&s, 0);
    stage_step(&s, 2 * BECALM_S, BECALM_EVENT_DONE, &fine);
    assert_int_equal(s.call.record.attempt[0].outcome, BECALM_OUTCOME_OK);
    check_eq_u64(s.call.record.attempt[0].took, 20 * MS);
    assert_true(becalm_breaker_closed(s.target.breaker));
    stage_end(&s, BECALM_WHY_OK);
}

static void test_provisional__what_goes_on_for_long_began_well(void **state)
{
    (void)state;
    struct stage s;
    stage_begin(&s, 0);
    becalm_ns judged_at = BECALM_S + 20 * MS + s.policy.attempt_timeout;
    check_eq_u64(s.action.wake_at, judged_at);
    stage_step(&s, judged_at - MS, BECALM_EVENT_TIMER, NULL); /* too early */
    assert_true(s.call.record.attempt[0].open);
    check_eq_u64(s.action.wake_at, judged_at);
    stage_step(&s, judged_at, BECALM_EVENT_TIMER, NULL);
    assert_false(s.call.record.attempt[0].open);
    assert_int_equal(s.call.record.attempt[0].outcome, BECALM_OUTCOME_OK);
    check_eq_u64(s.call.record.attempt[0].took, 20 * MS);
    check_eq_u64(s.action.wake_at, BECALM_NEVER);
    assert_false(s.call.permit.held);
    check_eq_u64(becalm_limit_answers(s.target.limit), 1);
    stage_step(&s, 100 * BECALM_S, BECALM_EVENT_DONE, &unavailable); /* told once: the breaker does not hear of it */
    assert_true(becalm_breaker_closed(s.target.breaker));
    stage_end(&s, BECALM_WHY_ANSWER_DELIVERED);
}

static void test_provisional__without_a_timeout_it_is_judged_after_ten_seconds(void **state)
{
    (void)state;
    struct stage s;
    stage_begin(&s, 0);
    s.policy.attempt_timeout = BECALM_NEVER;
    stage_step(&s, BECALM_S + 30 * MS, BECALM_EVENT_TIMER, NULL);
    check_eq_u64(s.action.wake_at, 11 * BECALM_S + 20 * MS);
    stage_step(&s, 12 * BECALM_S, BECALM_EVENT_DONE, &fine);
    stage_end(&s, BECALM_WHY_OK);
}

static void test_provisional__the_callers_deadline_ends_it_and_the_policys_does_not(void **state)
{
    (void)state;
    struct stage s;
    stage_begin(&s, 5 * BECALM_S);
    stage_step(&s, 3 * BECALM_S + 20 * MS, BECALM_EVENT_TIMER, NULL); /* judged; the policy's 500 ms are long over */
    check_eq_u64(s.action.wake_at, 5 * BECALM_S);
    stage_step(&s, 4 * BECALM_S, BECALM_EVENT_DONE, NULL); /* of nothing that flies */
    stage_step(&s, 5 * BECALM_S, BECALM_EVENT_TIMER, NULL);
    stage_end(&s, BECALM_WHY_OK);
}

static void test_provisional__cut_by_the_callers_deadline_it_proves_nothing(void **state)
{
    (void)state;
    struct stage s;
    stage_begin(&s, BECALM_S + 300 * MS);
    uint64_t before = budget_of(&s, BECALM_S);
    check_eq_u64(s.action.wake_at, BECALM_S + 300 * MS);
    stage_step(&s, BECALM_S + 300 * MS, BECALM_EVENT_TIMER, NULL);
    assert_int_equal(s.action.flags & (BECALM_DO_CANCEL | BECALM_DO_FINISH), BECALM_DO_CANCEL | BECALM_DO_FINISH);
    assert_int_equal(s.call.record.attempt[0].outcome, BECALM_OUTCOME_CANCELLED);
    assert_true(becalm_breaker_closed(s.target.breaker));
    check_eq_u64(budget_of(&s, 2 * BECALM_S), before);
    stage_end(&s, BECALM_WHY_DEADLINE);
}

static void test_provisional__a_caller_that_goes_proves_nothing(void **state)
{
    (void)state;
    struct stage s;
    stage_begin(&s, 0);
    uint64_t before = budget_of(&s, BECALM_S);
    stage_step(&s, 2 * BECALM_S, BECALM_EVENT_CANCEL, NULL);
    assert_int_equal(s.call.record.attempt[0].outcome, BECALM_OUTCOME_CANCELLED);
    assert_true(becalm_breaker_closed(s.target.breaker));
    check_eq_u64(budget_of(&s, 2 * BECALM_S), before);
    stage_end(&s, BECALM_WHY_CANCELLED);
}

/* A body that is recorded while it streams. */
static void test_provisional__a_retry_of_what_has_come_in_full_has_its_time_from_the_beginning(void **state)
{
    (void)state;
    struct becalm_policy policy;
    struct becalm_target target = {0};
    struct becalm_request request = {.streams = true, .idempotent = true};
    struct becalm_call call;
    struct becalm_action action;
    becalm_policy_defaults(&policy);
    becalm_call_init(&call, &policy, &target, &request);
    struct becalm_event event = {.kind = BECALM_EVENT_BEGIN, .at.now = BECALM_S};
    becalm_call_step(&call, &event, &action);
    check_eq_u64(action.timeout_at, BECALM_NEVER);
    becalm_call_streamed(&call, 2 * BECALM_S);
    event = (struct becalm_event){
        .kind = BECALM_EVENT_DONE, .at.now = 3 * BECALM_S, .outcome = {.kind = BECALM_OUTCOME_REJECTED, .status = 503}};
    becalm_call_step(&call, &event, &action);
    event = (struct becalm_event){.kind = BECALM_EVENT_TIMER, .at.now = action.wake_at};
    becalm_call_step(&call, &event, &action);
    assert_true((action.flags & BECALM_DO_SEND) != 0);
    check_eq_u64(action.timeout_at, event.at.now + policy.attempt_timeout);
    check_eq_u64(call.deadline_at, 2 * BECALM_S + policy.deadline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_provisional__an_end_that_fails_is_a_failure_and_earns_nothing),
        cmocka_unit_test(test_provisional__an_end_that_is_fine_is_a_success_that_took_as_long_as_its_head),
        cmocka_unit_test(test_provisional__what_goes_on_for_long_began_well),
        cmocka_unit_test(test_provisional__without_a_timeout_it_is_judged_after_ten_seconds),
        cmocka_unit_test(test_provisional__the_callers_deadline_ends_it_and_the_policys_does_not),
        cmocka_unit_test(test_provisional__cut_by_the_callers_deadline_it_proves_nothing),
        cmocka_unit_test(test_provisional__a_caller_that_goes_proves_nothing),
        cmocka_unit_test(test_provisional__a_retry_of_what_has_come_in_full_has_its_time_from_the_beginning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
