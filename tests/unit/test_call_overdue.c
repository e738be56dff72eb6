/* SPDX-License-Identifier: MIT */
#include "overdue_lab.h"

/* Without a timeout in the policy, an attempt that takes long is overdue: limit and breaker count it, another attempt
 * is sent beside it, and the first answer of the two counts. */

/* A service that is known to be quick; the window of the breaker has forgotten its answers. */
static void lab_quick(struct lab *lab)
{
    lab_open(lab);
    answers(lab, 20 * BECALM_MS, 400);
    lab->now += 30 * BECALM_S;
}

static void test_overdue__before_anything_is_known_an_attempt_has_its_time(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab);
    begin(&lab, &lab.call[0], true);
    check_eq_u64(lab.action.wake_at, lab.now + BECALM_DUE_START);
    check_eq_u64(lab.action.timeout_at, lab.now + lab.policy.deadline); /* the deadline that the callee gets */
    lab.now += 7 * BECALM_S;
    done(&lab, &lab.call[0], 0, BECALM_OUTCOME_OK);
    assert_int_equal(lab.call[0].record.reason, BECALM_WHY_OK);
    free(lab.memory);
}

static void test_overdue__a_slow_answer_of_a_quick_service_arrives(void **state)
{
    (void)state;
    static const becalm_ns reports[] = {7 * BECALM_S, 20 * BECALM_S, 59 * BECALM_S};
    for (size_t i = 0; i < 3; i++) {
        for (int idempotent = 0; idempotent < 2; idempotent++) {
            struct lab lab;
            lab_open(&lab);
            answers(&lab, 20 * BECALM_MS, 400);
            struct becalm_call *call = &lab.call[0];
            becalm_ns end = lab.now + reports[i];
            uint64_t full = becalm_budget_left(lab.target.budget, &lab.policy.budget, lab.now);
            begin(&lab, call, idempotent == 1);
            check_eq_u64(lab.action.wake_at, lab.now + lab.policy.attempt_timeout);
            for (lab.now = lab.action.wake_at; lab.now < end; lab.now = lab.action.wake_at) {
                timer(&lab, call);
                assert_false(becalm_call_ended(call));
                assert_int_equal(lab.action.cancel, 0);
            }
            check_eq_u64(call->record.attempts,
                         (uint64_t)idempotent + 1); /* another one was sent beside it, if it may */
            lab.now = end;
            done(&lab, call, 0, BECALM_OUTCOME_OK);
            assert_int_equal(lab.action.flags & BECALM_DO_FINISH, BECALM_DO_FINISH);
            assert_int_equal(lab.action.cancel, idempotent == 1 ? 2 : 0);
            assert_int_equal(call->record.reason, BECALM_WHY_OK);
            uint64_t cap =
                becalm_budget_cap(lab.target.budget, &lab.policy.budget, lab.now); /* of quiet callers small */
            check_between_u64(becalm_budget_left(lab.target.budget, &lab.policy.budget, lab.now),
                              full < cap ? full : cap, UINT64_MAX);
            check_eq_u64(becalm_limit_in_flight(lab.target.limit), 0);
            free(lab.memory);
        }
    }
}

static void test_overdue__the_one_beside_it_may_answer_first(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab);
    answers(&lab, 20 * BECALM_MS, 400);
    struct becalm_call *call = &lab.call[0];
    begin(&lab, call, true);
    uint32_t host = lab.action.host;
    lab.now = lab.action.wake_at;
    timer(&lab, call);
    assert_true((lab.action.flags & BECALM_DO_SEND) != 0 && lab.action.slot == 1 && lab.action.attempt == 1);
    assert_int_equal(lab.action.why, BECALM_WHY_HEDGE);
    assert_true(lab.action.host != host);
    lab.now += 20 * BECALM_MS;
    done(&lab, call, 1, BECALM_OUTCOME_OK);
    assert_int_equal(call->record.reason, BECALM_WHY_OK);
    assert_int_equal(lab.action.cancel, 1);
    free(lab.memory);
}

static void test_overdue__a_failure_of_either_leaves_the_other(void **state)
{
    (void)state;
    for (uint32_t fails = 0; fails < 2; fails++) {
        struct lab lab;
        lab_open(&lab);
        answers(&lab, 20 * BECALM_MS, 400);
        struct becalm_call *call = &lab.call[0];
        begin(&lab, call, true);
        lab.now = lab.action.wake_at;
        timer(&lab, call);
        lab.now += 20 * BECALM_MS;
        done(&lab, call, fails, BECALM_OUTCOME_REJECTED);
        for (becalm_ns end = lab.now + 2 * BECALM_S; lab.now < end; lab.now = lab.action.wake_at) {
            assert_false(becalm_call_ended(call));
            timer(&lab, call);
            check_eq_u64(call->record.attempts, 2);
        }
        done(&lab, call, 1 - fails, BECALM_OUTCOME_OK);
        assert_int_equal(call->record.reason, BECALM_WHY_OK);
        free(lab.memory);
    }
}

static void test_overdue__the_deadline_ends_it_as_a_timeout(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab);
    answers(&lab, 20 * BECALM_MS, 400);
    struct becalm_call *call = &lab.call[0];
    begin(&lab, call, false);
    becalm_ns end = lab.now + lab.policy.deadline;
    while (!becalm_call_ended(call)) {
        lab.now = lab.action.wake_at;
        assert_true(lab.now <= end);
        timer(&lab, call);
    }
    check_eq_u64(lab.now, end);
    assert_int_equal(call->record.attempt[0].outcome, BECALM_OUTCOME_TIMED_OUT);
    assert_int_equal(lab.action.cancel, 1);
    check_eq_u64(becalm_due_time(lab.target.due, lab.policy.attempt_timeout), lab.policy.attempt_timeout);
    free(lab.memory);
}

static void test_overdue__a_hang_opens_the_breaker_and_ends_the_calls(void **state)
{
    (void)state;
    struct lab lab;
    lab_quick(&lab);
    for (int i = 0; i < CALLS; i++) {
        begin(&lab, &lab.call[i], false);
    }
    uint32_t before = becalm_limit_now(lab.target.limit, &lab.policy.limit);
    becalm_ns began_at = lab.now;
    bool all = false;
    while (!all && lab.now < began_at + lab.policy.deadline) {
        lab.now += BECALM_S / 2;
        all = true;
        for (int i = 0; i < CALLS; i++) {
            timer(&lab, &lab.call[i]);
            all = all && becalm_call_ended(&lab.call[i]);
        }
    }
    assert_true(all);
    check_between_u64(lab.now - began_at, 2 * lab.policy.attempt_timeout, 2 * lab.policy.attempt_timeout + BECALM_S);
    assert_false(becalm_breaker_closed(lab.target.breaker));
    assert_true(becalm_limit_now(lab.target.limit, &lab.policy.limit) < before);
    check_eq_u64(becalm_limit_in_flight(lab.target.limit), 0);
    lab.now += lab.policy.attempt_timeout; /* an epoch has ended, and those that hung were none of its answers */
    becalm_due_note(lab.target.due, &(struct becalm_moment){.now = lab.now}, lab.policy.attempt_timeout, BECALM_MS);
    check_eq_u64(becalm_due_time(lab.target.due, lab.policy.attempt_timeout), lab.policy.attempt_timeout);
    free(lab.memory);
}

/* All calls are overdue, and before the last ones are, the first is answered or not. */
static bool opens_unless(bool answered)
{
    struct lab lab;
    lab_quick(&lab);
    for (int i = 0; i < CALLS; i++) {
        begin(&lab, &lab.call[i], false);
        lab.now += i == 0 ? BECALM_S : 0;
    }
    lab.now += lab.policy.attempt_timeout - BECALM_S / 2;
    timer(&lab, &lab.call[0]); /* it is overdue */
    if (answered) {
        done(&lab, &lab.call[0], 0, BECALM_OUTCOME_OK);
    }
    lab.now += BECALM_S / 2;
    for (int i = 1; i < CALLS; i++) {
        timer(&lab, &lab.call[i]);
    }
    bool opened = !becalm_breaker_closed(lab.target.breaker);
    free(lab.memory);
    return opened;
}

static void test_overdue__a_late_answer_tells_the_breaker_that_the_service_answers(void **state)
{
    (void)state;
    assert_true(opens_unless(false));
    assert_false(opens_unless(true));
}

/* With a threshold below 100 % a late answer may be the call that is missing to the minimum. */
static void test_overdue__a_late_answer_that_opens_the_breaker_says_so(void **state)
{
    (void)state;
    struct lab lab;
    lab_quick(&lab);
    lab.policy.breaker.failure_share_ppm = 500000;
    uint32_t count = lab.policy.breaker.min_calls - 1;
    for (uint32_t i = 0; i < count; i++) {
        begin(&lab, &lab.call[i], false);
    }
    lab.now += lab.policy.attempt_timeout;
    for (uint32_t i = 0; i < count; i++) {
        timer(&lab, &lab.call[i]);
    }
    assert_true(becalm_breaker_closed(lab.target.breaker));
    done(&lab, &lab.call[0], 0, BECALM_OUTCOME_OK);
    assert_false(becalm_breaker_closed(lab.target.breaker));
    assert_int_equal(lab.action.breaker_from, BECALM_BREAKER_CLOSED);
    assert_int_equal(lab.action.breaker_to, BECALM_BREAKER_OPEN);
    free(lab.memory);
}

enum answers_late { FIRST, BESIDE, RETRY, AFTER_FAILURE };

/* One call: its first attempt is overdue, and is answered, or the one beside it, or a retry after it; or its retry is
 * overdue, and is answered. */
static void answer_late(struct lab *lab, enum answers_late which)
{
    struct becalm_call *call = &lab->call[0];
    begin(lab, call, which != FIRST);
    if (which == RETRY) {
        done(lab, call, 0, BECALM_OUTCOME_REJECTED);
        lab->now = lab->action.wake_at;
        timer(lab, call);
        assert_true((lab->action.flags & BECALM_DO_SEND) != 0);
    }
    for (becalm_ns end = lab->now + 6 * BECALM_S; lab->now < end; lab->now = lab->action.wake_at) {
        timer(lab, call);
    }
    if (which == AFTER_FAILURE) {
        done(lab, call, 0, BECALM_OUTCOME_REJECTED);
    }
    done(lab, call, which == BESIDE || which == AFTER_FAILURE ? 1 : 0, BECALM_OUTCOME_OK);
    assert_int_equal(call->record.reason, BECALM_WHY_OK);
}

/* The breaker's counts of a call: the overdue attempt and the success, both as slow. */
static void test_overdue__the_breaker_hears_of_a_late_success_once(void **state)
{
    (void)state;
    static const struct {
        enum answers_late which;
        bool per_attempt;
        uint64_t calls, failed, slow;
    } rows[] = {
        {FIRST, false, 2, 1, 2},         {BESIDE, false, 2, 1, 2},
        {AFTER_FAILURE, false, 2, 1, 2}, {RETRY, false, 1, 0, 1}, /* a call's timeout is told of its first attempt */
        {FIRST, true, 2, 1, 2},          {BESIDE, true, 2, 1, 1}, /* the one beside it was quick */
        {RETRY, true, 3, 2, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct lab lab;
        lab_quick(&lab);
        lab.policy.breaker.per_attempt = rows[i].per_attempt;
        lab.policy.breaker.slow_share_ppm = 1000000;
        lab.policy.breaker.slow_after = 4 * BECALM_S;
        answer_late(&lab, rows[i].which);
        struct becalm_window_sums sums;
        becalm_breaker_read(lab.target.breaker, lab.now, &sums);
        check_eq_u64(sums.lane[0], rows[i].calls);
        check_eq_u64(sums.lane[1], rows[i].failed);
        check_eq_u64(sums.lane[2], rows[i].slow);
        free(lab.memory);
    }
}

/* Where the breaker lets calls be tried, only their results count. */
static void test_overdue__a_late_success_counts_only_in_a_breaker_that_counts_all(void **state)
{
    (void)state;
    static const struct {
        enum becalm_breaker_state state;
        uint64_t counts;
    } rows[] = {
        {BECALM_BREAKER_CLOSED, 1},    {BECALM_BREAKER_METRICS_ONLY, 1}, {BECALM_BREAKER_OPEN, 0},
        {BECALM_BREAKER_HALF_OPEN, 0}, {BECALM_BREAKER_FORCED_OPEN, 0},  {BECALM_BREAKER_DISABLED, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct lab lab;
        struct becalm_window_sums before;
        struct becalm_window_sums after;
        lab_quick(&lab);
        begin(&lab, &lab.call[0], false);
        lab.now += 6 * BECALM_S;
        timer(&lab, &lab.call[0]);
        becalm_breaker_force(lab.target.breaker, &lab.policy.breaker, &(struct becalm_moment){.now = lab.now},
                             rows[i].state);
        becalm_breaker_read(lab.target.breaker, lab.now, &before);
        uint64_t late = becalm_breaker_late(lab.target.breaker);
        done(&lab, &lab.call[0], 0, BECALM_OUTCOME_OK);
        becalm_breaker_read(lab.target.breaker, lab.now, &after);
        check_eq_u64(after.lane[0] - before.lane[0], rows[i].counts);
        check_eq_u64(becalm_breaker_late(lab.target.breaker) - late, 0);
        check_eq_u64(becalm_breaker_state(lab.target.breaker), rows[i].state);
        free(lab.memory);
    }
}

static void test_overdue__a_service_that_has_become_slow_is_learned_although_the_breaker_is_open(void **state)
{
    (void)state;
    struct lab lab;
    lab_quick(&lab);
    for (int i = 0; i < CALLS; i++) {
        begin(&lab, &lab.call[i], false);
    }
    lab.now += lab.policy.attempt_timeout;
    for (int i = 0; i < CALLS; i++) {
        timer(&lab, &lab.call[i]);
        assert_false(becalm_call_ended(&lab.call[i]));
    }
    assert_false(becalm_breaker_closed(lab.target.breaker));
    lab.now += 3 * BECALM_S;
    for (int i = 0; i < CALLS; i++, lab.now += BECALM_S / 20) {
        done(&lab, &lab.call[i], 0, BECALM_OUTCOME_OK);
        assert_int_equal(lab.call[i].record.reason, BECALM_WHY_OK);
    }
    check_between_u64(becalm_due_time(lab.target.due, lab.policy.attempt_timeout), lab.policy.attempt_timeout,
                      32 * BECALM_S);
    free(lab.memory);
}

static void test_overdue__what_probes_for_the_breaker_has_all_the_time_there_is(void **state)
{
    (void)state;
    struct lab lab;
    lab_quick(&lab);
    for (int i = 0; i < CALLS; i++) {
        begin(&lab, &lab.call[i], false);
    }
    lab.now += lab.policy.attempt_timeout;
    for (int i = 0; i < CALLS; i++) {
        timer(&lab, &lab.call[i]);
    }
    lab.now += 2 * BECALM_S; /* its open time is over */
    struct becalm_call probe;
    begin(&lab, &probe, true);
    becalm_ns end = lab.now + 25 * BECALM_S;
    for (lab.now = lab.action.wake_at; lab.now < end; lab.now = lab.action.wake_at) {
        timer(&lab, &probe);
        assert_false(becalm_call_ended(&probe));
    }
    check_eq_u64(probe.record.attempts, 1); /* one is enough to find out */
    assert_false(becalm_breaker_closed(lab.target.breaker));
    done(&lab, &probe, 0, BECALM_OUTCOME_OK);
    assert_int_equal(probe.record.reason, BECALM_WHY_OK);
    assert_true(becalm_breaker_closed(lab.target.breaker)); /* whenever the answer comes */
    free(lab.memory);
}

static void test_overdue__a_slow_service_is_not_overdue(void **state)
{
    (void)state;
    for (int was_quick = 0; was_quick < 2; was_quick++) {
        struct lab lab;
        lab_open(&lab);
        answers(&lab, 20 * BECALM_MS, 400 * was_quick);
        answers(&lab, 8 * BECALM_S, 60);
        begin(&lab, &lab.call[0], true);
        check_between_u64(lab.action.wake_at - lab.now, 16 * BECALM_S, 32 * BECALM_S);
        free(lab.memory);
    }
}

static void test_overdue__a_written_timeout_is_exact(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab);
    lab.policy.timeout_kind = BECALM_TIMEOUT_EXACT;
    lab_reopen(&lab);
    begin(&lab, &lab.call[0], false);
    check_eq_u64(lab.action.timeout_at, lab.now + lab.policy.attempt_timeout);
    lab.now += lab.policy.attempt_timeout;
    timer(&lab, &lab.call[0]);
    assert_true(becalm_call_ended(&lab.call[0]));
    free(lab.memory);
}

static void test_overdue__without_a_timeout_only_the_deadline_ends_it_and_the_breaker_hears_of_it(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab);
    lab.policy.timeout_kind = BECALM_TIMEOUT_NONE;
    answers(&lab, 20 * BECALM_MS, 400);
    lab.now += 30 * BECALM_S;
    for (int i = 0; i < CALLS; i++) {
        begin(&lab, &lab.call[i], true);
    }
    becalm_ns end = lab.now + lab.policy.deadline;
    lab.now += lab.policy.attempt_timeout;
    while (lab.now < end) {
        for (int i = 0; i < CALLS; i++) {
            timer(&lab, &lab.call[i]);
            assert_int_equal(lab.action.flags & (BECALM_DO_SEND | BECALM_DO_CANCEL | BECALM_DO_FINISH), 0);
        }
        assert_false(becalm_breaker_closed(lab.target.breaker));
        lab.now += BECALM_S;
    }
    lab.now = end;
    for (int i = 0; i < CALLS; i++) {
        timer(&lab, &lab.call[i]);
        assert_true(becalm_call_ended(&lab.call[i]));
    }
    free(lab.memory);
}

/* When another one is sent beside an attempt of this call that is overdue; NEVER: none is. */
static becalm_ns call_beside_after(struct lab *lab, struct becalm_request request)
{
    struct becalm_call *call = &lab->call[0];
    becalm_ns began_at = lab->now;
    request.idempotent = true;
    becalm_call_init(call, &lab->policy, &lab->target, &request);
    step(lab, call, (struct becalm_event){.kind = BECALM_EVENT_BEGIN});
    while (!becalm_call_ended(call)) {
        lab->now = lab->action.wake_at;
        timer(lab, call);
        if ((lab->action.flags & BECALM_DO_SEND) != 0) {
            return lab->now - began_at;
        }
    }
    return BECALM_NEVER;
}

static becalm_ns beside_after(struct becalm_request request)
{
    struct lab lab;
    lab_open(&lab);
    answers(&lab, 20 * BECALM_MS, 400);
    becalm_ns after = call_beside_after(&lab, request);
    free(lab.memory);
    return after;
}

static void test_overdue__in_a_chain_the_first_layer_sends_it_and_the_others_at_times_of_their_own(void **state)
{
    (void)state;
    becalm_ns due = 5 * BECALM_S;
    check_eq_u64(beside_after((struct becalm_request){0}), due);
    check_between_u64(beside_after((struct becalm_request){.attempt_from_above = true}), due + 1, 2 * due);
    check_eq_u64(beside_after((struct becalm_request){.attempt_from_above = true, .retry_from_above = true}),
                 BECALM_NEVER);
}

/* When a second attempt is sent beside an overdue one while another call is in flight that began later, and that is
 * answered after this time; 0: it is not answered. */
static becalm_ns beside_after_where_another(becalm_ns took)
{
    struct lab lab;
    lab_open(&lab);
    answers(&lab, 20 * BECALM_MS, 400);
    struct becalm_call *other = &lab.call[1];
    struct becalm_call *call = &lab.call[0];
    becalm_ns began_at = lab.now;
    begin(&lab, call, true);
    lab.now += BECALM_MS;
    begin(&lab, other, true);
    if (took != 0) {
        lab.now += took;
        done(&lab, other, 0, BECALM_OUTCOME_OK);
    }
    becalm_ns sent_at = BECALM_NEVER;
    for (lab.now = began_at + 5 * BECALM_S; !becalm_call_ended(call); lab.now = lab.action.wake_at) {
        timer(&lab, call);
        sent_at = (lab.action.flags & BECALM_DO_SEND) != 0 && sent_at == BECALM_NEVER ? lab.now - began_at : sent_at;
    }
    free(lab.memory);
    return sent_at;
}

/* A queue answers in the order of arrival. */
static void test_overdue__nothing_is_sent_beside_it_while_others_wait_and_none_overtook_it(void **state)
{
    (void)state;
    check_eq_u64(beside_after_where_another(BECALM_S), 5 * BECALM_S);
    check_eq_u64(beside_after_where_another(0), BECALM_NEVER);
}

/* The last of three calls is not alone because the other two are overdue already. */
static void test_overdue__nothing_is_sent_beside_the_last_of_a_page_that_waits(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab);
    answers(&lab, 20 * BECALM_MS, 400);
    for (int i = 0; i < 3; i++) {
        begin(&lab, &lab.call[i], true);
    }
    lab.now += 5 * BECALM_S;
    for (int i = 0; i < 3; i++) {
        timer(&lab, &lab.call[i]);
        assert_int_equal(lab.action.flags & BECALM_DO_SEND, 0);
    }
    free(lab.memory);
}

static void test_overdue__a_call_whose_driver_has_one_place_for_an_answer_goes_alone(void **state)
{
    (void)state;
    check_eq_u64(beside_after((struct becalm_request){.alone = true}), BECALM_NEVER);
}

/* A service that answers no call any more, or has a queue, gets few additional attempts. */
static void test_overdue__nothing_is_sent_beside_it_where_many_are_overdue(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab);
    lab.policy.breaker.enabled = false;
    lab.policy.limit.kind = BECALM_LIMIT_NONE;
    lab.policy.budget.kind = BECALM_BUDGET_NONE;
    answers(&lab, 20 * BECALM_MS, 400);
    for (int i = 0; i < CALLS; i++) {
        begin(&lab, &lab.call[i], true);
    }
    int sent = 0;
    for (becalm_ns end = lab.now + 30 * BECALM_S; lab.now < end; lab.now += BECALM_S) {
        for (int i = 0; i < CALLS; i++) {
            timer(&lab, &lab.call[i]);
            sent += (lab.action.flags & BECALM_DO_SEND) != 0;
        }
    }
    assert_int_equal(sent, 8);
    free(lab.memory);
}

static void test_overdue__nothing_is_sent_beside_it_before_anything_was_answered(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab);
    check_eq_u64(call_beside_after(&lab, (struct becalm_request){0}), BECALM_NEVER);
    free(lab.memory);
}

enum forbids { NOTHING, EMPTY_BUDGET, SHADOW, DEADLINE, NO_RETRIES, ALL_FORBID };

static becalm_ns beside_after_where(enum forbids forbids)
{
    struct lab lab;
    lab_open(&lab);
    answers(&lab, 20 * BECALM_MS, 400);
    lab.policy.shadow = forbids == SHADOW;
    lab.policy.max_retries = forbids == NO_RETRIES ? 0 : lab.policy.max_retries;
    lab.policy.deadline = forbids == DEADLINE ? lab.policy.attempt_timeout + 10 * BECALM_MS : lab.policy.deadline;
    for (bool left = forbids == EMPTY_BUDGET; left;) {
        struct becalm_spend spend = {.held = false};
        left = becalm_budget_take(lab.target.budget, &lab.policy.budget, &(struct becalm_moment){.now = lab.now},
                                  BECALM_OUTCOME_TIMED_OUT, &spend);
    }
    becalm_ns after = call_beside_after(&lab, (struct becalm_request){0});
    free(lab.memory);
    return after;
}

static void test_overdue__what_forbids_a_retry_forbids_one_beside_it(void **state)
{
    (void)state;
    for (enum forbids forbids = NOTHING; forbids < ALL_FORBID; forbids++) {
        check_eq_u64(beside_after_where(forbids), forbids == NOTHING ? 5 * BECALM_S : BECALM_NEVER);
    }
}

/* A failed answer whose head the driver holds back: before the attempt is overdue, or while it waits for other layers.
 */
static void test_overdue__nothing_is_sent_beside_a_failed_answer_that_is_held(void **state)
{
    (void)state;
    for (int layers = 0; layers < 2; layers++) {
        struct lab lab;
        lab_open(&lab);
        answers(&lab, 20 * BECALM_MS, 400);
        struct becalm_call *call = &lab.call[0];
        begin_request(&lab, call, &(struct becalm_request){.idempotent = true, .attempt_from_above = layers == 1});
        if (layers == 1) {
            lab.now = lab.action.wake_at;
            step_with(&lab, call, (struct becalm_event){.kind = BECALM_EVENT_TIMER}, UINT64_MAX / 2);
            check_between_u64(call->slot[0].beside_at, lab.now + 1, BECALM_NEVER - 1);
        }
        const struct becalm_outcome failed = {.kind = BECALM_OUTCOME_REJECTED, .status = 503};
        step(&lab, call, (struct becalm_event){.kind = BECALM_EVENT_HELD, .slot = 0, .outcome = failed});
        for (becalm_ns end = lab.now + 20 * BECALM_S; lab.now < end; lab.now = lab.action.wake_at) {
            timer(&lab, call);
            assert_int_equal(lab.action.flags, 0);
        }
        free(lab.memory);
    }
}

BECALM_TESTS(cmocka_unit_test(test_overdue__before_anything_is_known_an_attempt_has_its_time),
             cmocka_unit_test(test_overdue__a_slow_answer_of_a_quick_service_arrives),
             cmocka_unit_test(test_overdue__the_one_beside_it_may_answer_first),
             cmocka_unit_test(test_overdue__a_failure_of_either_leaves_the_other),
             cmocka_unit_test(test_overdue__the_deadline_ends_it_as_a_timeout),
             cmocka_unit_test(test_overdue__a_hang_opens_the_breaker_and_ends_the_calls),
             cmocka_unit_test(test_overdue__a_late_answer_tells_the_breaker_that_the_service_answers),
             cmocka_unit_test(test_overdue__a_late_answer_that_opens_the_breaker_says_so),
             cmocka_unit_test(test_overdue__the_breaker_hears_of_a_late_success_once),
             cmocka_unit_test(test_overdue__a_late_success_counts_only_in_a_breaker_that_counts_all),
             cmocka_unit_test(test_overdue__a_service_that_has_become_slow_is_learned_although_the_breaker_is_open),
             cmocka_unit_test(test_overdue__what_probes_for_the_breaker_has_all_the_time_there_is),
             cmocka_unit_test(test_overdue__a_slow_service_is_not_overdue),
             cmocka_unit_test(test_overdue__without_a_timeout_only_the_deadline_ends_it_and_the_breaker_hears_of_it),
             cmocka_unit_test(test_overdue__in_a_chain_the_first_layer_sends_it_and_the_others_at_times_of_their_own),
             cmocka_unit_test(test_overdue__nothing_is_sent_beside_it_while_others_wait_and_none_overtook_it),
             cmocka_unit_test(test_overdue__nothing_is_sent_beside_the_last_of_a_page_that_waits),
             cmocka_unit_test(test_overdue__a_call_whose_driver_has_one_place_for_an_answer_goes_alone),
             cmocka_unit_test(test_overdue__nothing_is_sent_beside_it_where_many_are_overdue),
             cmocka_unit_test(test_overdue__nothing_is_sent_beside_it_before_anything_was_answered),
             cmocka_unit_test(test_overdue__what_forbids_a_retry_forbids_one_beside_it),
             cmocka_unit_test(test_overdue__a_written_timeout_is_exact),
             cmocka_unit_test(test_overdue__nothing_is_sent_beside_a_failed_answer_that_is_held))
