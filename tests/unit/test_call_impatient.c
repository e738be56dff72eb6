/* SPDX-License-Identifier: MIT */
/* Callers with a time of their own for an attempt, as CURLOPT_TIMEOUT_MS is. */
#include <becalm/call.h>

#include "check.h"

#include <stdlib.h>

#define MS    BECALM_MS
#define USUAL (100 * MS)

static const struct becalm_outcome hasty = {.kind = BECALM_OUTCOME_TIMED_OUT, .impatient = true};
static const struct becalm_outcome never_sent = {.kind = BECALM_OUTCOME_REFUSED, .impatient = true};
static const struct becalm_outcome fine = {.kind = BECALM_OUTCOME_OK, .status = 200};

struct stage {
    struct becalm_policy policy;
    struct becalm_target target;
    struct becalm_call call;
    struct becalm_action action;
    becalm_ns now;
    void *memory;
};

static void stage_step(struct stage *s, enum becalm_event_kind kind, const struct becalm_outcome *outcome)
{
    struct becalm_event event = {.kind = kind, .at.now = s->now};
    if (outcome != NULL) {
        event.outcome = *outcome;
    }
    becalm_call_step(&s->call, &event, &s->action);
}

/* A call whose first attempt ends with this outcome after this time. */
static void stage_call(struct stage *s, becalm_ns took, const struct becalm_outcome *outcome)
{
    struct becalm_request request = {.idempotent = true};
    becalm_call_init(&s->call, &s->policy, &s->target, &request);
    stage_step(s, BECALM_EVENT_BEGIN, NULL);
    assert_true((s->action.flags & BECALM_DO_SEND) != 0);
    s->now += took;
    stage_step(s, BECALM_EVENT_DONE, outcome);
}

/* The breaker opens with one failure. `answered` calls have been answered, each after the usual time. */
static void stage_begin(struct stage *s, int answered)
{
    s->now = BECALM_S;
    becalm_policy_defaults(&s->policy);
    s->policy.limit.kind = BECALM_LIMIT_AIMD;
    s->policy.breaker.enabled = true;
    s->policy.breaker.mode = BECALM_BREAKER_CONSECUTIVE;
    s->policy.breaker.failure_threshold = 1;
    s->policy.breaker.per_attempt = true;
    s->memory = aligned_alloc(64, becalm_target_bytes(&s->policy, 2, 1));
    assert_int_equal(becalm_target_init(&s->target, s->memory, &s->policy, 2, 1), 0);
    for (int i = 0; i < answered; i++) {
        stage_call(s, USUAL, &fine);
    }
}

static void check_goes_on(struct stage *s, enum becalm_outcome_kind kind)
{
    assert_true(becalm_breaker_closed(s->target.breaker));
    assert_false(becalm_call_ended(&s->call));
    assert_int_equal(s->call.record.attempt[0].outcome, kind);
    stage_step(s, BECALM_EVENT_CANCEL, NULL);
}

static void test_impatient__a_cut_before_what_is_usual_is_retried_and_no_evidence(void **state)
{
    (void)state;
    struct stage s;
    stage_begin(&s, 20);
    stage_call(&s, USUAL / 2, &hasty);
    check_goes_on(&s, BECALM_OUTCOME_TIMED_OUT);
    stage_call(&s, USUAL / 2, &never_sent);
    check_goes_on(&s, BECALM_OUTCOME_REFUSED);
    free(s.memory);
}

static void test_impatient__hundreds_of_hasty_calls_do_not_make_what_is_usual(void **state)
{
    (void)state;
    struct stage s;
    stage_begin(&s, 20);
    for (int i = 0; i < 300; i++) {
        stage_call(&s, USUAL / 5, &hasty);
        stage_step(&s, BECALM_EVENT_CANCEL, NULL);
        if (i % 10 == 0) {
            stage_call(&s, USUAL, &fine); /* another caller is patient */
        }
    }
    assert_true(becalm_breaker_closed(s.target.breaker));
    assert_true(becalm_sketch_typical(s.target.sketch, s.now) >= USUAL / 10 * 9);
    free(s.memory);
}

static void test_impatient__what_takes_longer_than_usual_is_a_timeout(void **state)
{
    (void)state;
    struct stage s;
    stage_begin(&s, 20);
    stage_call(&s, USUAL * 2, &hasty);
    assert_false(becalm_breaker_closed(s.target.breaker));
    free(s.memory);
}

static void test_impatient__where_nothing_is_usual_yet_it_is_a_timeout(void **state)
{
    (void)state;
    struct stage s;
    stage_begin(&s, 0);
    stage_call(&s, USUAL / 2, &hasty);
    assert_false(becalm_breaker_closed(s.target.breaker));
    free(s.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_impatient__a_cut_before_what_is_usual_is_retried_and_no_evidence),
        cmocka_unit_test(test_impatient__hundreds_of_hasty_calls_do_not_make_what_is_usual),
        cmocka_unit_test(test_impatient__what_takes_longer_than_usual_is_a_timeout),
        cmocka_unit_test(test_impatient__where_nothing_is_usual_yet_it_is_a_timeout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
