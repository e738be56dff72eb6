/* SPDX-License-Identifier: MIT */
#include <becalm/call.h>

#include "chaos.h"
#include "check.h"
#include "engine/outlier_internal.h"

#if defined(BECALM_FEW_RUNS)
#define RUNS 250u /* a sanitizer is slow, and the fuzzer goes on where this stops */
#else
#define RUNS 1000u
#endif
#define RUN_BYTES 16384u

static void test_call__whatever_happens_everything_is_given_back_and_nothing_is_sent_after_the_end(void **state)
{
    (void)state;
    static uint8_t bytes[RUN_BYTES];
    struct chaos_counts counts = {0};
    for (uint64_t run = 1; run <= RUNS; run++) {
        uint64_t seed = run;
        for (size_t i = 0; i < RUN_BYTES; i++) {
            bytes[i] = (uint8_t)(becalm_rand_next(&seed) >> 56);
        }
        chaos_run(bytes, RUN_BYTES, &counts);
    }
    print_message("seeds 1 to %u: %zu events, %zu sends, %zu retries, of them %zu hedges, %zu waits in the gate, "
                  "%zu for a host, %zu probes\n",
                  RUNS, counts.events, counts.sends, counts.retries, counts.hedges, counts.gated, counts.parked,
                  counts.probes);
    /* A random test that never gets anywhere proves nothing. */
    check_true(counts.events > RUNS * 2000);
    check_true(counts.retries > RUNS * 5);
    check_true(counts.hedges > RUNS / 2);
    check_true(counts.gated > RUNS);
    check_true(counts.parked > RUNS);
    check_true(counts.probes > RUNS / 10);
    for (unsigned why = BECALM_WHY_ATTEMPTS_SPENT; why < BECALM_REASON_COUNT; why++) {
        if (counts.ended[why] == 0) {
            print_error("no call ended with %s\n", becalm_reason_word((enum becalm_reason)why));
            fail();
        }
    }
}

static void test_call__the_same_events_give_the_same_actions(void **state)
{
    (void)state;
    struct becalm_policy policy;
    becalm_policy_defaults(&policy);
    size_t bytes = becalm_target_bytes(&policy, 3, 1);
    struct becalm_action first[64];
    for (int run = 0; run < 2; run++) {
        struct becalm_target target;
        void *memory = aligned_alloc(64, bytes);
        memset(memory, run == 0 ? 0x00 : 0xff, bytes); /* the earlier content of the memory does not matter */
        check_eq_u64((uint64_t)becalm_target_init(&target, memory, &policy, 3, 1), 0);
        struct becalm_call call;
        struct becalm_request request = {.idempotent = true};
        becalm_call_init(&call, &policy, &target, &request);
        uint64_t seed = 99;
        for (int i = 0; i < 64; i++) {
            struct becalm_event event = {
                .kind = i == 0 ? BECALM_EVENT_BEGIN : (i % 2 == 0 ? BECALM_EVENT_TIMER : BECALM_EVENT_DONE),
                .at = {.now = (becalm_ns)i * 70 * BECALM_MS, .random = becalm_rand_next(&seed)},
                .outcome = {.kind = BECALM_OUTCOME_REJECTED, .status = 503},
            };
            struct becalm_action action;
            memset(&action, 0, sizeof action);
            becalm_call_step(&call, &event, &action);
            if (run == 0) {
                memset(&first[i], 0, sizeof first[i]);
                first[i] = action;
            } else {
                check_eq_u64(action.flags, first[i].flags);
                check_eq_u64(action.wake_at, first[i].wake_at);
                check_eq_u64(action.host, first[i].host);
                check_eq_u64(action.why, first[i].why);
            }
        }
        free(memory);
    }
}

static void test_call__a_500_is_retried_once_and_only_when_listed(void **state)
{
    (void)state;
    struct becalm_policy policy;
    becalm_policy_defaults(&policy);
    policy.max_retries = 5;
    becalm_budget_defaults(&policy.budget, BECALM_BUDGET_NONE);
    for (int listed = 0; listed < 2; listed++) {
        struct becalm_target target;
        void *memory = aligned_alloc(64, becalm_target_bytes(&policy, 0, 1));
        check_eq_u64((uint64_t)becalm_target_init(&target, memory, &policy, 0, 1), 0);
        struct becalm_call call;
        struct becalm_request request = {.idempotent = true};
        struct becalm_event event = {.kind = BECALM_EVENT_BEGIN};
        struct becalm_action action;
        becalm_call_init(&call, &policy, &target, &request);
        becalm_call_step(&call, &event, &action);
        while (!becalm_call_ended(&call)) {
            bool sent = (action.flags & BECALM_DO_SEND) != 0;
            event.kind = sent ? BECALM_EVENT_DONE : BECALM_EVENT_TIMER;
            event.at.now = sent ? event.at.now + BECALM_MS : action.wake_at;
            event.outcome = (struct becalm_outcome){.kind = BECALM_OUTCOME_FAILED, .status = 500};
            becalm_call_step(&call, &event, &action);
        }
        check_eq_u64(call.record.attempts, listed == 0 ? 1 : 2);
        check_eq_u64(call.record.reason, listed == 0 ? BECALM_WHY_NOT_LISTED : BECALM_WHY_ATTEMPTS_SPENT);
        policy.retry_on |= BECALM_OUTCOME_BIT(BECALM_OUTCOME_FAILED);
        free(memory);
    }
}

/* How many attempts a call makes that always fails in one way. */
static uint32_t attempts_of(const struct becalm_policy *policy, const struct becalm_request *request,
                            const struct becalm_outcome *outcome)
{
    struct becalm_target target;
    struct becalm_call call;
    struct becalm_event event = {.kind = BECALM_EVENT_BEGIN};
    struct becalm_action action;
    void *memory = aligned_alloc(64, becalm_target_bytes(policy, 0, 1));
    check_eq_u64((uint64_t)becalm_target_init(&target, memory, policy, 0, 1), 0);
    becalm_call_init(&call, policy, &target, request);
    becalm_call_step(&call, &event, &action);
    while (!becalm_call_ended(&call)) {
        bool sent = (action.flags & BECALM_DO_SEND) != 0;
        event.kind = sent ? BECALM_EVENT_DONE : BECALM_EVENT_TIMER;
        event.at.now = sent ? event.at.now + BECALM_MS : action.wake_at;
        event.outcome = *outcome;
        becalm_call_step(&call, &event, &action);
    }
    free(memory);
    return call.record.attempts;
}

static void test_call__what_the_policy_names_by_itself_is_retried_as_often_as_it_says(void **state)
{
    (void)state;
    struct becalm_policy policy;
    struct becalm_target target = {0};
    struct becalm_call call;
    struct becalm_request request = {0}; /* a POST, as all of gRPC */
    struct becalm_event event = {.kind = BECALM_EVENT_BEGIN};
    struct becalm_action action;
    becalm_policy_defaults(&policy);
    policy.max_retries = 3;
    becalm_call_init(&call, &policy, &target, &request);
    becalm_call_step(&call, &event, &action);
    while (!becalm_call_ended(&call)) {
        bool sent = (action.flags & BECALM_DO_SEND) != 0;
        event.kind = sent ? BECALM_EVENT_DONE : BECALM_EVENT_TIMER;
        event.at.now = sent ? event.at.now + BECALM_MS : action.wake_at;
        event.outcome = (struct becalm_outcome){
            .kind = BECALM_OUTCOME_FAILED, .status = 200, .listed = BECALM_LISTED_YES, .safe = true};
        becalm_call_step(&call, &event, &action);
    }
    check_eq_u64(call.record.attempts, 4);
    check_eq_u64(call.record.reason, BECALM_WHY_ATTEMPTS_SPENT);
}

static void test_call__once_sent_it_is_not_repeated_whatever_allows_it(void **state)
{
    (void)state;
    struct becalm_policy policy;
    becalm_policy_defaults(&policy);
    becalm_budget_defaults(&policy.budget, BECALM_BUDGET_NONE);
    policy.max_retries = 3;
    policy.idempotent = true;
    policy.breaker.enabled = false;
    policy.retry_on |= BECALM_OUTCOME_BIT(BECALM_OUTCOME_FAILED) | BECALM_OUTCOME_BIT(BECALM_OUTCOME_CONFLICT);
    for (unsigned kind = 0; kind < BECALM_OUTCOME_COUNT; kind++) {
        struct becalm_outcome outcome = {.kind = (enum becalm_outcome_kind)kind, .safe = true};
        struct becalm_request request = {.idempotent = true, .keyed = true};
        enum becalm_retry_rule rule = becalm_outcome_traits(outcome.kind)->retry;
        check_true((attempts_of(&policy, &request, &outcome) > 1) == (rule != BECALM_RETRY_NEVER));
        request.once = true;
        check_eq_u64(attempts_of(&policy, &request, &outcome), rule == BECALM_RETRY_ANY ? 4 : 1);
    }
}

/* One call of a target with room for one attempt in flight and two answers. */
struct streamed {
    struct becalm_policy policy;
    struct becalm_target target;
    struct becalm_action action;
    becalm_ns now;
    void *memory;
};

static void streamed_init(struct streamed *s)
{
    becalm_policy_defaults(&s->policy);
    becalm_limit_defaults(&s->policy.limit, BECALM_LIMIT_FIXED);
    s->policy.limit.max = 1;
    s->policy.limit.max_answers = 2;
    s->policy.breaker.enabled = false;
    s->now = BECALM_S;
    s->memory = aligned_alloc(64, becalm_target_bytes(&s->policy, 0, 1));
    check_eq_u64((uint64_t)becalm_target_init(&s->target, s->memory, &s->policy, 0, 1), 0);
}

static void streamed_step(struct streamed *s, struct becalm_call *call, enum becalm_event_kind kind,
                          enum becalm_outcome_kind outcome)
{
    struct becalm_event event = {.kind = kind,
                                 .at.now = s->now,
                                 .outcome = {.kind = outcome, .status = outcome == BECALM_OUTCOME_OK ? 200 : 503}};
    becalm_call_step(call, &event, &s->action);
}

static void streamed_begin(struct streamed *s, struct becalm_call *call)
{
    becalm_call_init(call, &s->policy, &s->target, &(struct becalm_request){.idempotent = true});
    streamed_step(s, call, BECALM_EVENT_BEGIN, BECALM_OUTCOME_OK);
}

static void check_places(const struct streamed *s, uint32_t in_flight, uint32_t answers)
{
    check_eq_u64(becalm_limit_in_flight(s->target.limit), in_flight);
    check_eq_u64(becalm_limit_answers(s->target.limit), answers);
}

static void test_call__an_answer_gives_its_slot_back_with_its_head_and_has_a_bound_of_its_own(void **state)
{
    (void)state;
    struct streamed s;
    struct becalm_call one, two, three;
    streamed_init(&s);
    streamed_begin(&s, &one);
    check_places(&s, 1, 0);
    streamed_step(&s, &one, BECALM_EVENT_HEAD, BECALM_OUTCOME_OK);
    check_places(&s, 0, 1);
    streamed_begin(&s, &two);
    check_places(&s, 1, 1);
    streamed_begin(&s, &three);
    check_eq_u64(three.record.reason, BECALM_WHY_LIMIT); /* the limit is full */
    streamed_step(&s, &two, BECALM_EVENT_HEAD, BECALM_OUTCOME_OK);
    streamed_begin(&s, &three);
    check_eq_u64(three.record.reason, BECALM_WHY_ANSWERS);
    check_eq_u64(three.record.have, 2);
    check_eq_u64(three.record.need, 2);
    check_true(s.action.retry_after != BECALM_NEVER);
    streamed_step(&s, &one, BECALM_EVENT_DONE, BECALM_OUTCOME_OK);
    check_eq_u64(one.record.reason, BECALM_WHY_OK);
    check_places(&s, 0, 1);
    streamed_begin(&s, &three);
    streamed_step(&s, &three, BECALM_EVENT_DONE, BECALM_OUTCOME_OK); /* a whole answer */
    streamed_step(&s, &two, BECALM_EVENT_CANCEL, BECALM_OUTCOME_OK);
    check_places(&s, 0, 0);
    free(s.memory);
}

static void test_call__a_failed_answer_that_is_held_back_gives_its_slot_back_and_is_judged_by_its_head(void **state)
{
    (void)state;
    struct streamed s;
    struct becalm_call one;
    streamed_init(&s);
    s.policy.limit.kind = BECALM_LIMIT_SLOTS;
    for (int i = 0; i < 100; i++) { /* heads at once, bodies that hang until the attempt's timeout */
        streamed_begin(&s, &one);
        check_true((s.action.flags & BECALM_DO_SEND) != 0);
        streamed_step(&s, &one, BECALM_EVENT_HELD, BECALM_OUTCOME_REJECTED);
        check_places(&s, 0, 1);
        s.now += s.policy.attempt_timeout;
        streamed_step(&s, &one, BECALM_EVENT_TIMER, BECALM_OUTCOME_OK);
        streamed_step(&s, &one, BECALM_EVENT_CANCEL, BECALM_OUTCOME_OK);
        check_places(&s, 0, 0);
    }
    struct becalm_slot slot = {.held = false};
    struct becalm_moment at = {.now = s.now};
    check_true(becalm_limit_admit(s.target.limit, &s.policy.limit, &at, BECALM_S, &slot)); /* neither cut nor paced */
    streamed_begin(&s, &one);
    free(s.memory);
}

/* Twenty of forty calls are given up after half of their timeout; the limit after that. */
static uint32_t limit_after_giving_up(bool uploading, enum becalm_event_kind how)
{
    struct streamed s;
    struct becalm_call call[40];
    streamed_init(&s);
    s.policy.limit = (struct becalm_limit_policy){.kind = BECALM_LIMIT_SLOTS, .min = 1, .max = 100};
    becalm_limit_init(s.target.limit, &s.policy.limit);
    becalm_ns wait = s.policy.attempt_timeout / 2;
    struct becalm_request request = {.deadline_at = how == BECALM_EVENT_TIMER ? s.now + wait : 0, .streams = uploading};
    for (int i = 0; i < 40; i++) {
        becalm_call_init(&call[i], &s.policy, &s.target, &request);
        streamed_step(&s, &call[i], BECALM_EVENT_BEGIN, BECALM_OUTCOME_OK);
    }
    s.now += wait;
    for (int i = 20; i < 40; i++) {
        streamed_step(&s, &call[i], how, BECALM_OUTCOME_OK);
        check_true(becalm_call_ended(&call[i]));
    }
    uint32_t limit = becalm_limit_now(s.target.limit, &s.policy.limit);
    free(s.memory);
    return limit;
}

static void test_call__who_gives_up_says_how_long_it_waited(void **state)
{
    (void)state;
    check_between_u64(limit_after_giving_up(false, BECALM_EVENT_CANCEL), 10, 20);
    check_between_u64(limit_after_giving_up(false, BECALM_EVENT_TIMER), 10, 20);
    check_eq_u64(limit_after_giving_up(true, BECALM_EVENT_CANCEL), 100); /* sending the request took the time */
}

enum turned_away_by { BY_A_LIMIT, BY_A_CALLERS_LINE, BY_A_GATE };

/* The only slot is taken: `calls` calls are refused one after the other. Returns the mark of the last. */
static enum becalm_mark_kind mark_of_the_last_refusal(enum turned_away_by by, int calls)
{
    struct becalm_policy policy;
    struct becalm_target target;
    becalm_policy_defaults(&policy);
    becalm_limit_defaults(&policy.limit, BECALM_LIMIT_FIXED);
    policy.limit.max = 1;
    policy.gate.max_queue = 0;
    if (by == BY_A_CALLERS_LINE) {
        becalm_gate_for_caller(&policy.gate);
    }
    void *memory = aligned_alloc(64, becalm_target_bytes(&policy, 0, 1));
    check_eq_u64((uint64_t)becalm_target_init(&target, memory, &policy, 0, 1), 0);
    struct becalm_queue queue;
    becalm_queue_init(&queue, target.gate, target.limit);
    struct becalm_request request = {.idempotent = true, .queue = by == BY_A_LIMIT ? NULL : &queue};
    struct becalm_event event = {.kind = BECALM_EVENT_BEGIN, .at.now = BECALM_S};
    struct becalm_action action;
    struct becalm_call first;
    becalm_call_init(&first, &policy, &target, &request);
    becalm_call_step(&first, &event, &action);
    assert_true((action.flags & BECALM_DO_SEND) != 0);
    for (int i = 0; i < calls; i++) {
        struct becalm_call call;
        becalm_call_init(&call, &policy, &target, &request);
        becalm_call_step(&call, &event, &action);
        assert_true(becalm_call_ended(&call));
        assert_int_equal(call.record.reason, by == BY_A_GATE ? BECALM_WHY_SHED : BECALM_WHY_LIMIT);
    }
    free(memory);
    return action.mark;
}

static void test_call__only_a_gate_marks_overload(void **state)
{
    (void)state;
    assert_int_equal(mark_of_the_last_refusal(BY_A_LIMIT, 1), BECALM_MARK_UNASKED);
    assert_int_equal(mark_of_the_last_refusal(BY_A_LIMIT, 100), BECALM_MARK_UNASKED);
    assert_int_equal(mark_of_the_last_refusal(BY_A_CALLERS_LINE, 100), BECALM_MARK_UNASKED);
    assert_int_equal(mark_of_the_last_refusal(BY_A_GATE, 100), BECALM_MARK_OVERLOADED);
}

/* A caller whose limit was cut to one slot lately: the verdict of the queue on a call that waits in it. */
static void test_call__after_a_cut_a_callers_line_turns_away_who_waited_a_quarter_of_a_timeout(void **state)
{
    (void)state;
    struct becalm_policy policy;
    struct becalm_target target;
    becalm_policy_defaults(&policy);
    policy.limit.max = 1;
    policy.attempt_timeout = 2 * BECALM_S;
    policy.breaker.enabled = false;
    becalm_gate_for_caller(&policy.gate);
    void *memory = aligned_alloc(64, becalm_target_bytes(&policy, 0, 1));
    check_eq_u64((uint64_t)becalm_target_init(&target, memory, &policy, 0, 1), 0);
    target.limit->usual = 64; /* samples: it knows that calls do not time out */
    struct becalm_queue queue;
    becalm_queue_init(&queue, target.gate, target.limit);
    struct becalm_request request = {.queue = &queue};
    struct becalm_event event = {.kind = BECALM_EVENT_BEGIN, .at.now = BECALM_S};
    struct becalm_call call[7];
    struct becalm_action action;
    for (int i = 0; i < 7; i++) {
        becalm_call_init(&call[i], &policy, &target, &request);
        event.kind = BECALM_EVENT_BEGIN;
        becalm_call_step(&call[i], &event, &action);
        assert_int_equal(becalm_call_in_line(&call[i]), i == 6); /* the sixth holds the place */
        if (i < 5) {
            event.kind = BECALM_EVENT_TIMER;
            event.at.now += policy.attempt_timeout;
            becalm_call_step(&call[i], &event, &action);
            assert_true(becalm_call_ended(&call[i]));
            becalm_limit_turned_away(target.limit); /* ends the pacing, which is another matter */
        }
    }
    check_eq_u64(action.wake_at, event.at.now + policy.attempt_timeout / 4);
    event.kind = BECALM_EVENT_TIMER;
    event.at.now = action.wake_at;
    becalm_call_step(&call[6], &event, &action);
    assert_int_equal(call[6].record.reason, BECALM_WHY_LIMIT);
    assert_int_equal(action.mark, BECALM_MARK_UNASKED);
    free(memory);
}

static void test_call__a_request_that_streams_has_its_time_when_it_is_through(void **state)
{
    (void)state;
    struct becalm_policy policy;
    struct becalm_target target = {0};
    struct becalm_request request = {.not_replayable = true, .streams = true};
    struct becalm_call call;
    struct becalm_action action;
    becalm_policy_defaults(&policy);
    becalm_call_init(&call, &policy, &target, &request);
    struct becalm_event event = {.kind = BECALM_EVENT_BEGIN, .at.now = BECALM_S};
    becalm_call_step(&call, &event, &action);
    assert_true((action.flags & BECALM_DO_SEND) != 0);
    check_eq_u64(action.wake_at, BECALM_NEVER);
    check_eq_u64(action.timeout_at, BECALM_NEVER);
    event = (struct becalm_event){.kind = BECALM_EVENT_TIMER, .at.now = 60 * BECALM_S}; /* a slow caller */
    becalm_call_step(&call, &event, &action);
    assert_false(becalm_call_ended(&call));
    event.kind = BECALM_EVENT_SENT;
    becalm_call_step(&call, &event, &action);
    check_eq_u64(action.wake_at, 60 * BECALM_S + policy.attempt_timeout);
    event.at.now += BECALM_S;
    becalm_call_step(&call, &event, &action); /* said twice, it changes nothing */
    check_eq_u64(action.wake_at, 60 * BECALM_S + policy.attempt_timeout);
    event = (struct becalm_event){.kind = BECALM_EVENT_TIMER, .at.now = 60 * BECALM_S + policy.attempt_timeout};
    becalm_call_step(&call, &event, &action);
    assert_true(becalm_call_ended(&call));
    assert_int_equal(call.record.attempt[0].outcome, BECALM_OUTCOME_TIMED_OUT);
}

/* Its deadline has not begun, but no wait is longer than that. */
static void test_call__a_request_that_streams_does_not_wait_for_longer_than_its_deadline_would_be(void **state)
{
    (void)state;
    struct becalm_policy policy;
    struct becalm_target target = {0};
    struct becalm_request request = {.idempotent = true, .streams = true};
    becalm_policy_defaults(&policy);
    for (int longer = 0; longer < 2; longer++) {
        struct becalm_call call;
        struct becalm_action action;
        becalm_call_init(&call, &policy, &target, &request);
        struct becalm_event event = {.kind = BECALM_EVENT_BEGIN, .at.now = BECALM_S};
        becalm_call_step(&call, &event, &action);
        event = (struct becalm_event){.kind = BECALM_EVENT_DONE, .at.now = 100 * BECALM_S};
        event.outcome = (struct becalm_outcome){.kind = BECALM_OUTCOME_REJECTED, .status = 503, .has_hint = true};
        event.outcome.hint = longer == 0 ? policy.deadline / 2 : policy.deadline;
        becalm_call_step(&call, &event, &action);
        check_eq_u64(becalm_call_ended(&call), (uint64_t)longer);
        if (longer == 0) {
            assert_int_equal(action.why, BECALM_WHY_HINT);
            becalm_call_streamed(&call, 101 * BECALM_S);
            check_true(action.wake_at <= call.deadline_at);
        } else {
            assert_int_equal(call.record.reason, BECALM_WHY_DEADLINE);
            check_true(action.retry_after >= policy.deadline);
        }
    }
}

/* Attempts whose requests stream may take longer than the policy's deadline, which begins when the request is through.
 */
static void test_call__a_request_that_streams_is_retried_although_attempts_usually_take_longer_than_its_deadline(
    void **state)
{
    (void)state;
    struct becalm_policy policy;
    struct becalm_sketch sketch;
    struct becalm_target target = {.sketch = &sketch};
    struct becalm_call call;
    struct becalm_action action;
    becalm_policy_defaults(&policy);
    becalm_sketch_init(&sketch);
    for (int i = 0; i < 100; i++) {
        becalm_sketch_note(&sketch, BECALM_S, 2 * policy.deadline);
    }
    for (int carries = 0; carries < 2; carries++) {
        becalm_ns now = 2 * BECALM_S;
        struct becalm_request request = {.idempotent = true, .streams = true};
        request.deadline_at = carries == 0 ? 0 : now + policy.deadline; /* that of the caller has begun */
        becalm_call_init(&call, &policy, &target, &request);
        struct becalm_event event = {.kind = BECALM_EVENT_BEGIN, .at.now = now};
        becalm_call_step(&call, &event, &action);
        event = (struct becalm_event){.kind = BECALM_EVENT_DONE, .at.now = now + BECALM_MS};
        event.outcome = (struct becalm_outcome){.kind = BECALM_OUTCOME_REJECTED, .status = 503};
        becalm_call_step(&call, &event, &action);
        check_eq_u64(becalm_call_ended(&call), (uint64_t)carries);
    }
    assert_int_equal(call.record.reason, BECALM_WHY_DEADLINE);
}

static uint64_t in_flight_at(const struct becalm_target *target, uint32_t host)
{
    return atomic_load_explicit(&target->hosts->host[host].in_flight, memory_order_relaxed);
}

static uint64_t streak_at(const struct becalm_target *target, uint32_t host)
{
    return becalm__streak_read(&target->hosts->host[host]).failures;
}

static void test_call__an_attempt_counts_for_the_host_that_it_went_to(void **state)
{
    (void)state;
    struct becalm_policy policy;
    struct becalm_target target;
    struct becalm_request request = {.idempotent = true};
    struct becalm_call call;
    struct becalm_action action;
    becalm_policy_defaults(&policy);
    policy.outlier.consecutive = 5;
    policy.max_retries = 0;
    void *memory = aligned_alloc(64, becalm_target_bytes(&policy, 2, 1));
    assert_non_null(memory);
    assert_int_equal(becalm_target_init(&target, memory, &policy, 2, 1), 0);
    becalm_call_init(&call, &policy, &target, &request);
    becalm_call_sent_to(&call, 0, 1, BECALM_S); /* nothing is in flight */
    struct becalm_event event = {.kind = BECALM_EVENT_BEGIN, .at.now = BECALM_S};
    becalm_call_step(&call, &event, &action);
    uint32_t chosen = action.host;
    assert_true(chosen < 2);
    becalm_call_sent_to(&call, action.slot, chosen, BECALM_S);
    check_eq_u64(in_flight_at(&target, chosen), 1);
    becalm_call_sent_to(&call, action.slot, 1 - chosen, BECALM_S);
    check_eq_u64(in_flight_at(&target, chosen), 0);
    check_eq_u64(in_flight_at(&target, 1 - chosen), 1);
    assert_int_equal(call.record.attempt[0].host, 1 - chosen);
    event = (struct becalm_event){.kind = BECALM_EVENT_DONE, .slot = action.slot, .at.now = 2 * BECALM_S};
    event.outcome.kind = BECALM_OUTCOME_BROKEN;
    becalm_call_step(&call, &event, &action);
    check_eq_u64(in_flight_at(&target, 1 - chosen), 0);
    check_eq_u64(streak_at(&target, 1 - chosen), 1);
    check_eq_u64(streak_at(&target, chosen), 0);
    free(memory);
}

static void test_call__a_host_is_a_second_choice_for_twice_as_long_as_its_timeout_took(void **state)
{
    (void)state;
    struct becalm_policy policy;
    struct becalm_target target;
    struct becalm_request request = {.idempotent = true};
    struct becalm_call call;
    struct becalm_action action;
    becalm_policy_defaults(&policy);
    policy.max_retries = 0;
    void *memory = aligned_alloc(64, becalm_target_bytes(&policy, 2, 1));
    assert_non_null(memory);
    assert_int_equal(becalm_target_init(&target, memory, &policy, 2, 1), 0);
    becalm_call_init(&call, &policy, &target, &request);
    struct becalm_event event = {.kind = BECALM_EVENT_BEGIN, .at.now = BECALM_S};
    becalm_call_step(&call, &event, &action);
    uint32_t host = action.host;
    event = (struct becalm_event){.kind = BECALM_EVENT_DONE, .slot = action.slot};
    event.at.now = BECALM_S + 50 * BECALM_MS;
    event.outcome.kind = BECALM_OUTCOME_TIMED_OUT;
    becalm_call_step(&call, &event, &action);
    check_eq_u64(streak_at(&target, host), 1);
    check_eq_u64(becalm__streak_read(&target.hosts->host[host]).fresh, 100 * BECALM_MS);
    free(memory);
}

static void test_call__a_request_that_turned_out_to_stream_has_its_time_when_it_is_through(void **state)
{
    (void)state;
    struct becalm_policy policy;
    struct becalm_target target = {0};
    struct becalm_request request = {.idempotent = true};
    struct becalm_call call;
    struct becalm_action action;
    becalm_policy_defaults(&policy);
    becalm_call_init(&call, &policy, &target, &request);
    becalm_call_streams(&call, 0); /* nothing is in flight */
    struct becalm_event event = {.kind = BECALM_EVENT_BEGIN, .at.now = BECALM_S};
    becalm_call_step(&call, &event, &action);
    check_eq_u64(action.wake_at, BECALM_S + policy.attempt_timeout);
    becalm_call_streams(&call, 0);
    becalm_call_streams(&call, BECALM_SLOTS);
    event = (struct becalm_event){.kind = BECALM_EVENT_TIMER, .at.now = 60 * BECALM_S};
    becalm_call_step(&call, &event, &action);
    check_eq_u64(action.wake_at, BECALM_NEVER);
    event.kind = BECALM_EVENT_SENT;
    becalm_call_step(&call, &event, &action);
    check_eq_u64(action.wake_at, 60 * BECALM_S + policy.attempt_timeout);
    becalm_call_streams(&call, 0); /* and again, as long as it moves */
    event.at.now = 70 * BECALM_S;
    becalm_call_step(&call, &event, &action);
    check_eq_u64(action.wake_at, 70 * BECALM_S + policy.attempt_timeout);
    event = (struct becalm_event){.kind = BECALM_EVENT_HEAD, .at.now = 71 * BECALM_S};
    becalm_call_step(&call, &event, &action);
    becalm_call_streams(&call, 0); /* its answer has come */
    event.kind = BECALM_EVENT_DONE;
    becalm_call_step(&call, &event, &action);
    assert_int_equal(call.record.reason, BECALM_WHY_OK);
}

static void test_call__a_deadline_that_cuts_an_upload_is_nobodys_fault(void **state)
{
    (void)state;
    struct becalm_policy policy;
    struct becalm_target target = {0};
    struct becalm_request request = {.not_replayable = true, .streams = true, .deadline_at = 9 * BECALM_S};
    struct becalm_call call;
    struct becalm_action action;
    becalm_policy_defaults(&policy);
    becalm_call_init(&call, &policy, &target, &request);
    struct becalm_event event = {.kind = BECALM_EVENT_BEGIN, .at.now = BECALM_S};
    becalm_call_step(&call, &event, &action);
    check_eq_u64(action.wake_at, 9 * BECALM_S);
    event = (struct becalm_event){.kind = BECALM_EVENT_TIMER, .at.now = 9 * BECALM_S};
    becalm_call_step(&call, &event, &action);
    assert_int_equal(call.record.reason, BECALM_WHY_DEADLINE);
    assert_int_equal(call.record.attempt[0].outcome, BECALM_OUTCOME_CANCELLED);
}

static void test_call__a_body_that_turns_out_too_long_is_not_sent_again(void **state)
{
    (void)state;
    struct becalm_policy policy;
    struct becalm_target target = {.budget = NULL};
    struct becalm_request request = {.idempotent = true};
    struct becalm_call call;
    struct becalm_action action;
    becalm_policy_defaults(&policy);
    becalm_call_init(&call, &policy, &target, &request);
    becalm_call_step(&call, &(struct becalm_event){.kind = BECALM_EVENT_BEGIN}, &action);
    becalm_call_not_replayable(&call);
    struct becalm_event done = {.kind = BECALM_EVENT_DONE, .outcome = {.kind = BECALM_OUTCOME_BROKEN}};
    becalm_call_step(&call, &done, &action);
    check_true(becalm_call_ended(&call));
    check_eq_str(becalm_reason_word(call.record.reason), "not_replayable");
}

static void test_call__what_is_sent_once_is_not_hedged(void **state)
{
    (void)state;
    struct becalm_policy policy;
    struct becalm_hedge hedge;
    struct becalm_target target = {.hedge = &hedge};
    struct becalm_action action;
    becalm_policy_defaults(&policy);
    policy.hedge.enabled = true;
    policy.hedge.delay = 50 * BECALM_MS;
    policy.idempotent = true;
    for (int once = 0; once < 2; once++) {
        struct becalm_call call;
        struct becalm_request request = {.keyed = true, .once = once == 1};
        struct becalm_event timer = {.kind = BECALM_EVENT_TIMER, .at.now = 50 * BECALM_MS};
        becalm_hedge_init(&hedge, &policy.hedge);
        becalm_call_init(&call, &policy, &target, &request);
        becalm_call_step(&call, &(struct becalm_event){.kind = BECALM_EVENT_BEGIN}, &action);
        becalm_call_step(&call, &timer, &action);
        check_eq_u64(call.record.hedges, once == 1 ? 0 : 1);
    }
}

static void test_call__a_body_that_turns_out_too_long_is_not_hedged(void **state)
{
    (void)state;
    struct becalm_policy policy;
    struct becalm_hedge hedge;
    struct becalm_target target = {.hedge = &hedge};
    struct becalm_request request = {.idempotent = true};
    struct becalm_action action;
    becalm_policy_defaults(&policy);
    policy.hedge.enabled = true;
    policy.hedge.delay = 50 * BECALM_MS;
    for (int too_long = 0; too_long < 2; too_long++) {
        struct becalm_call call;
        becalm_hedge_init(&hedge, &policy.hedge);
        becalm_call_init(&call, &policy, &target, &request);
        becalm_call_step(&call, &(struct becalm_event){.kind = BECALM_EVENT_BEGIN}, &action);
        if (too_long) {
            becalm_call_not_replayable(&call);
        }
        struct becalm_event timer = {.kind = BECALM_EVENT_TIMER, .at.now = 50 * BECALM_MS};
        becalm_call_step(&call, &timer, &action);
        check_eq_u64(call.record.hedges, too_long ? 0 : 1);
        check_eq_u64(action.flags & BECALM_DO_SEND, too_long ? 0 : BECALM_DO_SEND);
    }
}

BECALM_TESTS(
    cmocka_unit_test(test_call__only_a_gate_marks_overload),
    cmocka_unit_test(test_call__after_a_cut_a_callers_line_turns_away_who_waited_a_quarter_of_a_timeout),
    cmocka_unit_test(test_call__a_body_that_turns_out_too_long_is_not_sent_again),
    cmocka_unit_test(test_call__a_body_that_turns_out_too_long_is_not_hedged),
    cmocka_unit_test(test_call__whatever_happens_everything_is_given_back_and_nothing_is_sent_after_the_end),
    cmocka_unit_test(test_call__the_same_events_give_the_same_actions),
    cmocka_unit_test(test_call__a_request_that_streams_has_its_time_when_it_is_through),
    cmocka_unit_test(test_call__a_request_that_streams_does_not_wait_for_longer_than_its_deadline_would_be),
    cmocka_unit_test(
        test_call__a_request_that_streams_is_retried_although_attempts_usually_take_longer_than_its_deadline),
    cmocka_unit_test(test_call__an_attempt_counts_for_the_host_that_it_went_to),
    cmocka_unit_test(test_call__a_host_is_a_second_choice_for_twice_as_long_as_its_timeout_took),
    cmocka_unit_test(test_call__a_request_that_turned_out_to_stream_has_its_time_when_it_is_through),
    cmocka_unit_test(test_call__a_deadline_that_cuts_an_upload_is_nobodys_fault),
    cmocka_unit_test(test_call__who_gives_up_says_how_long_it_waited),
    cmocka_unit_test(test_call__once_sent_it_is_not_repeated_whatever_allows_it),
    cmocka_unit_test(test_call__what_is_sent_once_is_not_hedged),
    cmocka_unit_test(test_call__a_500_is_retried_once_and_only_when_listed),
    cmocka_unit_test(test_call__what_the_policy_names_by_itself_is_retried_as_often_as_it_says),
    cmocka_unit_test(test_call__an_answer_gives_its_slot_back_with_its_head_and_has_a_bound_of_its_own),
    cmocka_unit_test(test_call__a_failed_answer_that_is_held_back_gives_its_slot_back_and_is_judged_by_its_head))
