/* SPDX-License-Identifier: MIT */
#include "overdue_lab.h"

#include <string.h>

/* With a timeout in the policy, an attempt that takes much longer than usual gets a second one beside it after half of
 * the timeout, if the service has answered a later attempt and few attempts are overdue. Limit and breaker hear nothing
 * of that: the timeout is what they judge by. */

#define TIMEOUT BECALM_S

/* A timeout of a second, and a service that is known to answer in 20 ms. */
static void lab_written(struct lab *lab)
{
    lab_open(lab);
    lab->policy.timeout_kind = BECALM_TIMEOUT_EXACT;
    lab->policy.attempt_timeout = TIMEOUT;
    lab_reopen(lab);
    answers(lab, 20 * BECALM_MS, 400);
}

/* A call, and another one that began at the same time and has its answer after 20 ms. */
static struct becalm_call *overtaken(struct lab *lab, const struct becalm_request *request)
{
    struct becalm_call *call = &lab->call[0];
    begin_request(lab, call, request);
    struct becalm_action first = lab->action;
    begin(lab, &lab->call[1], true);
    lab->now += 20 * BECALM_MS;
    done(lab, &lab->call[1], 0, BECALM_OUTCOME_OK);
    lab->action = first;
    return call;
}

/* Lets the call's time pass until it sends another attempt, or ends. How long that took; NEVER: it sent none while its
 * first attempt was in flight. */
static becalm_ns sends_beside_after(struct lab *lab, struct becalm_call *call)
{
    while (!becalm_call_ended(call) && lab->action.wake_at != BECALM_NEVER) {
        lab->now = lab->action.wake_at;
        timer(lab, call);
        if ((lab->action.flags & BECALM_DO_SEND) != 0) {
            bool beside = (call->live & 1) != 0 && lab->action.slot != 0;
            return beside ? becalm_ns_since(lab->now, call->record.began_at) : BECALM_NEVER;
        }
    }
    return BECALM_NEVER;
}

static becalm_ns beside_after(struct becalm_request request)
{
    struct lab lab;
    lab_written(&lab);
    request.idempotent = true;
    becalm_ns after = sends_beside_after(&lab, overtaken(&lab, &request));
    free(lab.memory);
    return after;
}

static void test_beside__after_half_of_a_written_timeout_a_second_attempt_goes_to_another_host(void **state)
{
    (void)state;
    struct lab lab;
    lab_written(&lab);
    uint64_t before = becalm_budget_left(lab.target.budget, &lab.policy.budget, lab.now);
    struct becalm_call *call = overtaken(&lab, &(struct becalm_request){.idempotent = true});
    uint32_t host = call->slot[0].host;
    check_eq_u64(lab.action.wake_at, call->record.began_at + TIMEOUT / 2);
    check_eq_u64(lab.action.timeout_at, call->record.began_at + TIMEOUT); /* the service still has all of it */
    check_eq_u64(sends_beside_after(&lab, call), TIMEOUT / 2);
    assert_int_equal(lab.action.slot, 1);
    assert_int_equal(lab.action.attempt, 1);
    assert_int_equal(lab.action.why, BECALM_WHY_HEDGE);
    assert_int_equal(lab.action.cancel, 0);
    assert_true(lab.action.host != host);
    check_eq_u64(lab.action.timeout_at, lab.now + TIMEOUT);
    check_eq_u64(becalm_limit_in_flight(lab.target.limit), 2);
    lab.now += 20 * BECALM_MS;
    done(&lab, call, 1, BECALM_OUTCOME_OK);
    assert_int_equal(call->record.reason, BECALM_WHY_OK);
    assert_int_equal(lab.action.cancel, 1);
    check_eq_u64(becalm_limit_in_flight(lab.target.limit), 0);
    check_between_u64(becalm_budget_left(lab.target.budget, &lab.policy.budget, lab.now), before, UINT64_MAX);
    free(lab.memory);
}

static void test_beside__the_first_may_still_answer_and_its_second_costs_nothing(void **state)
{
    (void)state;
    struct lab lab;
    lab_written(&lab);
    struct becalm_call *call = overtaken(&lab, &(struct becalm_request){.idempotent = true});
    uint64_t before = becalm_budget_left(lab.target.budget, &lab.policy.budget, lab.now);
    check_eq_u64(sends_beside_after(&lab, call), TIMEOUT / 2);
    assert_true(becalm_budget_left(lab.target.budget, &lab.policy.budget, lab.now) < before);
    lab.now += TIMEOUT / 4;
    done(&lab, call, 0, BECALM_OUTCOME_OK);
    assert_int_equal(call->record.reason, BECALM_WHY_OK);
    assert_int_equal(lab.action.cancel, 2);
    check_between_u64(becalm_budget_left(lab.target.budget, &lab.policy.budget, lab.now), before, UINT64_MAX);
    free(lab.memory);
}

static void test_beside__the_first_times_out_and_the_second_goes_on(void **state)
{
    (void)state;
    struct lab lab;
    lab_written(&lab);
    struct becalm_call *call = overtaken(&lab, &(struct becalm_request){.idempotent = true});
    check_eq_u64(sends_beside_after(&lab, call), TIMEOUT / 2);
    check_eq_u64(lab.action.wake_at, call->record.began_at + TIMEOUT);
    lab.now = lab.action.wake_at;
    timer(&lab, call);
    assert_int_equal(lab.action.flags, BECALM_DO_CANCEL);
    assert_int_equal(lab.action.cancel, 1);
    assert_int_equal(call->record.attempt[0].outcome, BECALM_OUTCOME_TIMED_OUT);
    check_eq_u64(lab.action.wake_at, call->record.began_at + TIMEOUT + TIMEOUT / 2);
    lab.now += TIMEOUT / 4;
    done(&lab, call, 1, BECALM_OUTCOME_OK);
    assert_int_equal(call->record.reason, BECALM_WHY_OK);
    free(lab.memory);
}

static void test_beside__where_both_fail_the_retries_that_are_left_follow(void **state)
{
    (void)state;
    struct lab lab;
    lab_written(&lab);
    answers(&lab, 20 * BECALM_MS, 400);
    struct becalm_call *call = overtaken(&lab, &(struct becalm_request){.idempotent = true});
    check_eq_u64(sends_beside_after(&lab, call), TIMEOUT / 2);
    while (!becalm_call_ended(call)) {
        lab.now = lab.action.wake_at;
        timer(&lab, call);
    }
    check_eq_u64(call->record.attempts, lab.policy.max_retries + 1);
    assert_int_equal(call->record.reason, BECALM_WHY_ATTEMPTS_SPENT);
    for (uint32_t i = 0; i < call->record.attempts; i++) {
        assert_int_equal(call->record.attempt[i].outcome, BECALM_OUTCOME_TIMED_OUT);
    }
    free(lab.memory);
}

static void test_beside__not_where_no_later_attempt_was_answered(void **state)
{
    (void)state;
    static const enum becalm_limit_kind kinds[] = {BECALM_LIMIT_AIMD, BECALM_LIMIT_SLOTS, BECALM_LIMIT_FIXED,
                                                   BECALM_LIMIT_NONE};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct lab lab;
        lab_written(&lab);
        becalm_limit_defaults(&lab.policy.limit, kinds[i]);
        lab_reopen(&lab);
        answers(&lab, 20 * BECALM_MS, 400);
        begin(&lab, &lab.call[0], true);
        bool knows = kinds[i] == BECALM_LIMIT_AIMD || kinds[i] == BECALM_LIMIT_SLOTS;
        check_eq_u64(sends_beside_after(&lab, &lab.call[0]), knows ? BECALM_NEVER : TIMEOUT / 2);
        free(lab.memory);
    }
    check_eq_u64(beside_after((struct becalm_request){0}), TIMEOUT / 2);
}

/* `usual`: the time that answers take. */
static becalm_ns beside_where_usual(becalm_ns usual)
{
    struct lab lab;
    lab_written(&lab);
    lab_reopen(&lab);
    answers(&lab, usual, 600);
    becalm_ns told = becalm_target_overdue(&lab.target, &lab.policy);
    becalm_ns after = sends_beside_after(&lab, overtaken(&lab, &(struct becalm_request){.idempotent = true}));
    check_eq_u64(after, told);
    free(lab.memory);
    return after;
}

static void test_beside__not_before_twice_the_usual_time(void **state)
{
    (void)state;
    check_eq_u64(beside_where_usual(20 * BECALM_MS), TIMEOUT / 2);
    check_between_u64(beside_where_usual(300 * BECALM_MS), 2 * 300 * BECALM_MS, TIMEOUT - 1);
    check_eq_u64(beside_where_usual(700 * BECALM_MS), BECALM_NEVER); /* the timeout comes first */
}

static void test_beside__not_before_anything_is_known(void **state)
{
    (void)state;
    struct lab lab;
    lab_written(&lab);
    lab_reopen(&lab);
    struct becalm_call *call = overtaken(&lab, &(struct becalm_request){.idempotent = true});
    check_eq_u64(becalm_target_overdue(&lab.target, &lab.policy), BECALM_NEVER);
    check_eq_u64(lab.action.wake_at, call->record.began_at + TIMEOUT);
    check_eq_u64(sends_beside_after(&lab, call), BECALM_NEVER);
    free(lab.memory);
}

static void test_beside__eight_of_many_that_are_overdue_at_once_get_one(void **state)
{
    (void)state;
    struct lab lab;
    lab_written(&lab);
    answers(&lab, 20 * BECALM_MS, 400);
    for (int i = 0; i < CALLS - 1; i++) {
        begin(&lab, &lab.call[i], true);
    }
    begin(&lab, &lab.call[CALLS - 1], true);
    lab.now += 20 * BECALM_MS;
    done(&lab, &lab.call[CALLS - 1], 0, BECALM_OUTCOME_OK);
    lab.now += TIMEOUT / 2;
    uint64_t sent = 0;
    for (int i = 0; i < CALLS - 1; i++) {
        timer(&lab, &lab.call[i]);
        sent += (lab.action.flags & BECALM_DO_SEND) != 0;
    }
    check_between_u64(sent, 1, 8);
    free(lab.memory);
}

static void test_beside__limit_and_breaker_hear_of_the_timeout_only(void **state)
{
    (void)state;
    struct lab lab;
    lab_written(&lab);
    lab.now += 30 * BECALM_S; /* the breaker's window has forgotten the answers */
    for (int i = 0; i < CALLS; i++) {
        begin(&lab, &lab.call[i], false);
    }
    uint32_t before = becalm_limit_now(lab.target.limit, &lab.policy.limit);
    lab.now += TIMEOUT - 1;
    for (int i = 0; i < CALLS; i++) {
        timer(&lab, &lab.call[i]);
        assert_int_equal(lab.action.flags, 0);
    }
    check_eq_u64(becalm_limit_in_flight(lab.target.limit), CALLS);
    check_eq_u64(becalm_limit_now(lab.target.limit, &lab.policy.limit), before);
    assert_true(becalm_breaker_closed(lab.target.breaker));
    lab.now += 1;
    for (int i = 0; i < CALLS; i++) {
        timer(&lab, &lab.call[i]);
        assert_true(becalm_call_ended(&lab.call[i]));
    }
    assert_true(becalm_limit_now(lab.target.limit, &lab.policy.limit) < before);
    assert_false(becalm_breaker_closed(lab.target.breaker));
    free(lab.memory);
}

/* Without one, the next wake-up is the timeout. */
static bool is_watched(struct becalm_request request, bool hedges)
{
    struct lab lab;
    lab_written(&lab);
    lab.policy.hedge.enabled = hedges;
    lab.policy.hedge.delay = TIMEOUT / 4;
    lab_reopen(&lab);
    answers(&lab, 20 * BECALM_MS, 400);
    request.idempotent = true;
    begin_request(&lab, &lab.call[0], &request);
    becalm_call_unsent(&lab.call[0], 0, BECALM_NEVER);
    (void)becalm_call_goes(&lab.call[0], 0, lab.now);
    timer(&lab, &lab.call[0]);
    becalm_ns after = lab.action.wake_at - lab.now;
    assert_true(after == TIMEOUT / 2 || after == (hedges ? TIMEOUT / 4 : TIMEOUT));
    free(lab.memory);
    return after == TIMEOUT / 2;
}

static void test_beside__attempts_that_get_none_are_not_watched(void **state)
{
    (void)state;
    assert_true(is_watched((struct becalm_request){.attempt_from_above = true}, false));
    assert_false(is_watched((struct becalm_request){.retry_from_above = true}, false));
    assert_false(is_watched((struct becalm_request){.alone = true}, false));
    assert_false(is_watched((struct becalm_request){0}, true)); /* a call has hedges or retries, not both */
}

static void test_beside__retries_are_not_watched(void **state)
{
    (void)state;
    struct lab lab;
    lab_written(&lab);
    struct becalm_call *call = &lab.call[0];
    begin(&lab, call, true);
    done(&lab, call, 0, BECALM_OUTCOME_BROKEN);
    while ((lab.action.flags & BECALM_DO_SEND) == 0) {
        lab.now = lab.action.wake_at;
        timer(&lab, call);
    }
    check_eq_u64(lab.action.wake_at, lab.now + TIMEOUT);
    free(lab.memory);
}

static void test_beside__what_forbids_it(void **state)
{
    (void)state;
    check_eq_u64(beside_after((struct becalm_request){.attempt_from_above = true}), TIMEOUT / 2);
    check_eq_u64(beside_after((struct becalm_request){.retry_from_above = true}), BECALM_NEVER);
    check_eq_u64(beside_after((struct becalm_request){.alone = true}), BECALM_NEVER);
    check_eq_u64(beside_after((struct becalm_request){.once = true}), BECALM_NEVER);
    check_eq_u64(beside_after((struct becalm_request){.not_replayable = true}), BECALM_NEVER);
}

enum off { NOTHING, KEY, RETRIES, SHADOW, BUDGET, DEADLINE, LIMIT, ALL_OFF };

/* The key and the retries are off before the target is made: then it has no state for this. */
static void switch_off(struct lab *lab, enum off off)
{
    lab->policy.retry_overdue = off != KEY;
    lab->policy.max_retries = off == RETRIES ? 0 : lab->policy.max_retries;
    lab_reopen(lab);
    assert_int_equal(lab->target.due != NULL, off != KEY && off != RETRIES);
    answers(lab, 20 * BECALM_MS, 400);
    lab->policy.shadow = off == SHADOW;
    lab->policy.deadline = off == DEADLINE ? TIMEOUT / 2 + 10 * BECALM_MS : lab->policy.deadline;
    for (bool left = off == BUDGET; left;) {
        struct becalm_spend spend = {.held = false};
        left = becalm_budget_take(lab->target.budget, &lab->policy.budget, &(struct becalm_moment){.now = lab->now},
                                  BECALM_OUTCOME_TIMED_OUT, &spend);
    }
}

static void test_beside__what_forbids_a_retry_forbids_it(void **state)
{
    (void)state;
    for (enum off off = NOTHING; off < ALL_OFF; off++) {
        struct lab lab;
        lab_written(&lab);
        switch_off(&lab, off);
        struct becalm_call *call = overtaken(&lab, &(struct becalm_request){.idempotent = true});
        lab.policy.limit.max = off == LIMIT ? 1 : lab.policy.limit.max;
        bool told = off != KEY && off != RETRIES && off != SHADOW;
        check_eq_u64(becalm_target_overdue(&lab.target, &lab.policy), told ? TIMEOUT / 2 : BECALM_NEVER);
        check_eq_u64(sends_beside_after(&lab, call), off == NOTHING ? TIMEOUT / 2 : BECALM_NEVER);
        free(lab.memory);
    }
}

static void test_beside__the_probe_of_a_breaker_gets_none(void **state)
{
    (void)state;
    struct lab lab;
    lab_written(&lab);
    lab.policy.limit.kind = BECALM_LIMIT_NONE; /* which does not ask for a later answer, and there is none */
    lab_reopen(&lab);
    answers(&lab, 20 * BECALM_MS, 400);
    becalm_breaker_force(lab.target.breaker, &lab.policy.breaker, &(struct becalm_moment){.now = lab.now},
                         BECALM_BREAKER_HALF_OPEN);
    struct becalm_call *call = &lab.call[0];
    begin(&lab, call, true);
    assert_true(call->permit.probe);
    check_eq_u64(sends_beside_after(&lab, call), BECALM_NEVER);
    free(lab.memory);
}

static void test_beside__the_wait_for_a_connection_does_not_count(void **state)
{
    (void)state;
    struct lab lab;
    lab_written(&lab);
    struct becalm_call *call = overtaken(&lab, &(struct becalm_request){.idempotent = true});
    becalm_call_unsent(call, 0, call->record.began_at + 2 * TIMEOUT);
    lab.now = call->record.began_at + TIMEOUT / 2;
    timer(&lab, call);
    assert_int_equal(lab.action.flags, 0);
    lab.now += TIMEOUT / 4;
    (void)becalm_call_goes(call, 0, lab.now);
    becalm_ns sent_at = lab.now;
    begin(&lab, &lab.call[1], true);
    lab.now += 20 * BECALM_MS;
    done(&lab, &lab.call[1], 0, BECALM_OUTCOME_OK);
    timer(&lab, call);
    check_eq_u64(lab.action.wake_at, sent_at + TIMEOUT / 2);
    check_eq_u64(sends_beside_after(&lab, call), TIMEOUT + TIMEOUT / 4);
    free(lab.memory);
}

static void test_beside__a_request_that_streams_begins_when_it_is_sent(void **state)
{
    (void)state;
    struct lab lab;
    lab_written(&lab);
    struct becalm_call *call = overtaken(&lab, &(struct becalm_request){.idempotent = true, .streams = true});
    check_eq_u64(lab.action.wake_at, BECALM_NEVER);
    lab.now += 3 * TIMEOUT;
    step(&lab, call, (struct becalm_event){.kind = BECALM_EVENT_SENT, .slot = 0});
    check_eq_u64(lab.action.wake_at, lab.now + TIMEOUT / 2);
    free(lab.memory);
}

static void test_beside__a_call_that_is_found_to_stream_gets_none(void **state)
{
    (void)state;
    struct lab lab;
    lab_written(&lab);
    struct becalm_call *call = overtaken(&lab, &(struct becalm_request){.idempotent = true});
    becalm_call_streams(call, 0);
    lab.now = lab.action.wake_at;
    timer(&lab, call);
    assert_int_equal(lab.action.flags, 0);
    check_eq_u64(call->record.attempts, 1);
    free(lab.memory);
}

static void test_beside__a_reload_keeps_the_usual_time_if_the_timeout_is_the_same(void **state)
{
    (void)state;
    for (int changed = 0; changed < 2; changed++) {
        struct lab lab;
        lab_written(&lab);
        struct lab next = lab;
        next.memory = NULL;
        next.policy.attempt_timeout = changed == 1 ? 2 * TIMEOUT : TIMEOUT;
        lab_reopen(&next);
        becalm_target_carry(&next.target, &next.policy, &lab.target, &lab.policy, lab.now);
        assert_int_equal(becalm_due_known(next.target.due), changed == 0);
        free(lab.memory);
        free(next.memory);
    }
}

/* The second attempt is sent. How long that took is TIMEOUT / 2. */
static struct becalm_call *doubled(struct lab *lab)
{
    struct becalm_call *call = overtaken(lab, &(struct becalm_request){.idempotent = true});
    check_eq_u64(sends_beside_after(lab, call), TIMEOUT / 2);
    return call;
}

static void lab_with_budget(struct lab *lab, enum becalm_budget_kind kind)
{
    lab_written(lab);
    becalm_budget_defaults(&lab->policy.budget, kind);
    lab->policy.lease.enabled = true;
    lab->policy.lease.share_ppm = 1000000;
    lab_reopen(lab);
    answers(lab, 20 * BECALM_MS, 400);
    becalm_lease_tend(lab->target.lease, &lab->policy.lease, &(struct becalm_moment){.now = lab->now});
    check_between_u64(becalm_lease_left(lab->target.lease), 1, UINT64_MAX);
}

/* The retries in the budget's window, and those that the shared budget has left, after a second attempt that was sent
 * or not, and beaten. */
static void test_beside__a_second_that_was_sent_and_beaten_stays_counted(void **state)
{
    (void)state;
    static const enum becalm_budget_kind kinds[] = {BECALM_BUDGET_RATIO, BECALM_BUDGET_ADAPTIVE, BECALM_BUDGET_TOKENS};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (uint32_t unsent = 0; unsent < 2; unsent++) {
            struct lab lab;
            lab_with_budget(&lab, kinds[i]);
            uint64_t shared = becalm_lease_left(lab.target.lease);
            struct becalm_call *call = doubled(&lab);
            if (unsent == 1) {
                becalm_call_unsent(call, 1, BECALM_NEVER);
            }
            lab.now += TIMEOUT / 4;
            done(&lab, call, 0, BECALM_OUTCOME_OK);
            struct becalm_window_sums sums;
            becalm_budget_read(lab.target.budget, lab.now, &sums);
            check_eq_u64(sums.lane[1], 1 - unsent);
            check_eq_u64(becalm_lease_left(lab.target.lease), shared - 1 + unsent);
            free(lab.memory);
        }
    }
}

static void test_beside__a_second_that_gets_no_connection_costs_nothing(void **state)
{
    (void)state;
    struct lab lab;
    lab_written(&lab);
    uint64_t before = becalm_budget_left(lab.target.budget, &lab.policy.budget, lab.now);
    struct becalm_call *call = doubled(&lab);
    becalm_call_unsent(call, 1, lab.now + TIMEOUT / 4);
    lab.now += TIMEOUT / 4;
    timer(&lab, call);
    assert_int_equal(lab.action.cancel, 2);
    assert_false(becalm_call_ended(call));
    check_eq_u64(becalm_budget_left(lab.target.budget, &lab.policy.budget, lab.now), before);
    free(lab.memory);
}

static void test_beside__a_call_whose_first_timed_out_ends_by_its_deadline(void **state)
{
    (void)state;
    struct lab lab;
    lab_written(&lab);
    lab.policy.deadline = TIMEOUT;
    struct becalm_call *call = doubled(&lab);
    becalm_call_unsent(call, 1, BECALM_NEVER);
    lab.now = call->record.began_at + TIMEOUT;
    timer(&lab, call);
    assert_true(becalm_call_ended(call));
    assert_int_equal(call->record.attempt[0].outcome, BECALM_OUTCOME_TIMED_OUT);
    assert_int_equal(call->record.reason, BECALM_WHY_DEADLINE);
    free(lab.memory);
}

/* A failed answer whose head the driver holds back says by itself whether a retry may follow, and when. */
static void test_beside__not_while_a_failed_answer_is_held(void **state)
{
    (void)state;
    struct lab lab;
    lab_written(&lab);
    struct becalm_call *call = overtaken(&lab, &(struct becalm_request){.idempotent = true});
    const struct becalm_outcome failed = {.kind = BECALM_OUTCOME_REJECTED, .status = 503, .stop = true};
    step(&lab, call, (struct becalm_event){.kind = BECALM_EVENT_HELD, .slot = 0, .outcome = failed});
    check_eq_u64(lab.action.wake_at, call->record.began_at + TIMEOUT);
    lab.now = call->record.began_at + TIMEOUT / 2;
    timer(&lab, call);
    assert_int_equal(lab.action.flags, 0);
    step(&lab, call, (struct becalm_event){.kind = BECALM_EVENT_HEAD, .slot = 0, .outcome = failed});
    assert_int_equal(lab.action.why, BECALM_WHY_STOPPED);
    check_eq_u64(call->record.attempts, 1);
    free(lab.memory);
}

static void test_beside__the_second_waited_for_nothing(void **state)
{
    (void)state;
    struct lab lab;
    lab_written(&lab);
    struct becalm_call *call = doubled(&lab);
    check_eq_u64(call->record.attempt[1].waited, 0);
    check_eq_u64(call->record.attempt[1].sent_at, call->record.began_at + TIMEOUT / 2);
    free(lab.memory);
}

static void test_beside__a_second_that_is_refused_leaves_no_retry_after(void **state)
{
    (void)state;
    struct lab lab;
    lab_written(&lab);
    struct becalm_call *call = overtaken(&lab, &(struct becalm_request){.idempotent = true});
    becalm_ns wake_at = lab.action.wake_at;
    becalm_breaker_force(lab.target.breaker, &lab.policy.breaker, &(struct becalm_moment){.now = lab.now},
                         BECALM_BREAKER_OPEN);
    lab.now = wake_at;
    timer(&lab, call);
    assert_int_equal(lab.action.flags, 0);
    done(&lab, call, 0, BECALM_OUTCOME_FAILED);
    assert_int_equal(lab.action.why, BECALM_WHY_NOT_LISTED);
    check_eq_u64(lab.action.retry_after, BECALM_NEVER);
    free(lab.memory);
}

static becalm_ns told_with(bool hedges, bool shadow)
{
    struct lab lab;
    lab_written(&lab);
    lab.policy.hedge.enabled = hedges;
    lab_reopen(&lab);
    answers(&lab, 20 * BECALM_MS, 400);
    lab.policy.shadow = shadow;
    becalm_ns told = becalm_target_overdue(&lab.target, &lab.policy);
    free(lab.memory);
    return told;
}

static void test_beside__no_time_is_told_where_none_is_sent(void **state)
{
    (void)state;
    check_eq_u64(told_with(false, false), TIMEOUT / 2);
    check_eq_u64(told_with(true, false), BECALM_NEVER);
    check_eq_u64(told_with(false, true), BECALM_NEVER);
}

/* Eight quick answers, not enough to know what is usual: an attempt is overdue after 30 s, or half of a long timeout.
 */
static void test_beside__a_long_timeout_is_told_before_anything_is_known(void **state)
{
    (void)state;
    static const becalm_ns timeouts[] = {40 * BECALM_S, 90 * BECALM_S};
    for (size_t i = 0; i < sizeof timeouts / sizeof timeouts[0]; i++) {
        struct lab lab;
        lab_written(&lab);
        lab.policy.attempt_timeout = timeouts[i];
        lab.policy.deadline = 4 * timeouts[i];
        lab_reopen(&lab);
        answers(&lab, 20 * BECALM_MS, 8);
        assert_false(becalm_due_known(lab.target.due));
        becalm_ns told = becalm_target_overdue(&lab.target, &lab.policy);
        check_eq_u64(told, becalm_ns_max(BECALM_DUE_START, timeouts[i] / 2));
        check_eq_u64(sends_beside_after(&lab, overtaken(&lab, &(struct becalm_request){.idempotent = true})), told);
        free(lab.memory);
    }
}

BECALM_TESTS(cmocka_unit_test(test_beside__after_half_of_a_written_timeout_a_second_attempt_goes_to_another_host),
             cmocka_unit_test(test_beside__the_first_may_still_answer_and_its_second_costs_nothing),
             cmocka_unit_test(test_beside__the_first_times_out_and_the_second_goes_on),
             cmocka_unit_test(test_beside__where_both_fail_the_retries_that_are_left_follow),
             cmocka_unit_test(test_beside__not_where_no_later_attempt_was_answered),
             cmocka_unit_test(test_beside__not_before_twice_the_usual_time),
             cmocka_unit_test(test_beside__not_before_anything_is_known),
             cmocka_unit_test(test_beside__eight_of_many_that_are_overdue_at_once_get_one),
             cmocka_unit_test(test_beside__limit_and_breaker_hear_of_the_timeout_only),
             cmocka_unit_test(test_beside__attempts_that_get_none_are_not_watched),
             cmocka_unit_test(test_beside__retries_are_not_watched), cmocka_unit_test(test_beside__what_forbids_it),
             cmocka_unit_test(test_beside__what_forbids_a_retry_forbids_it),
             cmocka_unit_test(test_beside__the_probe_of_a_breaker_gets_none),
             cmocka_unit_test(test_beside__the_wait_for_a_connection_does_not_count),
             cmocka_unit_test(test_beside__a_request_that_streams_begins_when_it_is_sent),
             cmocka_unit_test(test_beside__a_call_that_is_found_to_stream_gets_none),
             cmocka_unit_test(test_beside__a_reload_keeps_the_usual_time_if_the_timeout_is_the_same),
             cmocka_unit_test(test_beside__a_second_that_was_sent_and_beaten_stays_counted),
             cmocka_unit_test(test_beside__a_second_that_gets_no_connection_costs_nothing),
             cmocka_unit_test(test_beside__a_call_whose_first_timed_out_ends_by_its_deadline),
             cmocka_unit_test(test_beside__not_while_a_failed_answer_is_held),
             cmocka_unit_test(test_beside__the_second_waited_for_nothing),
             cmocka_unit_test(test_beside__a_second_that_is_refused_leaves_no_retry_after),
             cmocka_unit_test(test_beside__no_time_is_told_where_none_is_sent),
             cmocka_unit_test(test_beside__a_long_timeout_is_told_before_anything_is_known))
