/* SPDX-License-Identifier: MIT */
/* Golden stories of calls that wait for news before they are refused: at a breaker for the answer to its probe, or for
 * a moment; at the pace of a limit for a call that it let through. */

#include "story.h"

/* A page's calls come together: the first one probes, and the others wait for its answer. They look again after as long
 * as they have waited. */
static void test_story__a_callers_other_calls_wait_for_the_answer_to_the_probe(void **state)
{
    (void)state;
    struct world w;
    open_breaker(&w, 1);
    becalm_gate_for_caller(&w.policy.gate);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(5 * MS)}});
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
    world_run(&w, 1100 * MS);
    world_expect(&w, "[1030ms] call 2 begins -> send 0, breaker OPEN to HALF_OPEN\n"
                     "[1030ms] call 3 begins -> queued\n"
                     "[1031ms] call 3 wakes -> queued\n"
                     "[1032ms] call 3 wakes -> queued\n"
                     "[1034ms] call 3 wakes -> queued\n"
                     "[1035ms] call 2 got ok 200 on 0 -> answer, finish (ok), breaker HALF_OPEN to CLOSED\n"
                     "[1038ms] call 3 wakes -> send 0\n"
                     "[1048ms] call 3 got ok 200 on 0 -> answer, finish (ok)\n");
    check_eq_u64(w.target.gate->awaiting, 0);
    world_close(&w);
}

/* The moment for which a call waits at an open breaker is over by then. */
static void test_story__who_waited_for_a_probe_that_failed_is_refused(void **state)
{
    (void)state;
    struct world w;
    open_breaker(&w, 1);
    becalm_gate_for_caller(&w.policy.gate);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_status(110 * MS, 503)}});
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
    world_run(&w, 1093 * MS);
    world_forget(&w);
    world_run(&w, 1200 * MS);
    world_expect(&w, "[1094ms] call 3 wakes -> queued\n"
                     "[1140ms] call 2 got rejected 503 on 0 -> answer, finish (probe_failed) marked spent, "
                     "breaker HALF_OPEN to OPEN\n"
                     "[1158ms] call 3 wakes -> finish (breaker_open) marked spent, unasked\n");
    check_eq_u64(w.target.gate->awaiting, 0);
    world_close(&w);
}

/* A probe that hangs: no call waits for longer than a quarter of its timeout, here 40 ms. */
static void test_story__nobody_waits_for_a_probe_for_longer_than_a_quarter_of_its_timeout(void **state)
{
    (void)state;
    struct world w;
    open_breaker(&w, 1);
    becalm_gate_for_caller(&w.policy.gate);
    w.policy.attempt_timeout = 160 * MS;
    world_call(&w, &(struct plan){.request = post, .reply = {{.hangs = true}}});
    unsigned second = world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
    world_run(&w, 1069 * MS);
    assert_false(becalm_call_ended(&w.call[second - 1]->call));
    world_run(&w, 1071 * MS);
    assert_true(becalm_call_ended(&w.call[second - 1]->call));
    assert_int_equal(w.call[second - 1]->call.record.reason, BECALM_WHY_BREAKER_OPEN);
    assert_int_equal(w.call[second - 1]->call.record.ended_at, 1070 * MS);
    check_eq_u64(w.target.gate->awaiting, 0);
    world_close(&w);
}

/* Where answers usually take 50 ms, the probe is not answered within that quarter: calls wait for 100 ms. */
static void test_story__calls_wait_for_a_probe_for_twice_the_usual_time_of_an_answer(void **state)
{
    (void)state;
    struct world w;
    open_breaker(&w, 1);
    becalm_gate_for_caller(&w.policy.gate);
    w.policy.attempt_timeout = 160 * MS;
    w.target.limit->usual = UINT64_C(50000) << 28 | 64;
    world_call(&w, &(struct plan){.request = post, .reply = {{.hangs = true}}});
    unsigned second = world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
    world_run(&w, 1125 * MS); /* there is time for an answer of 62.5 ms of its own after 97.5 ms */
    assert_false(becalm_call_ended(&w.call[second - 1]->call));
    world_run(&w, 1130 * MS);
    assert_true(becalm_call_ended(&w.call[second - 1]->call));
    assert_int_equal(w.call[second - 1]->call.record.ended_at, 1127500 * BECALM_US);
    world_close(&w);
}

static unsigned wait_for_probe(struct world *w, const struct becalm_request *request)
{
    return world_call(w, &(struct plan){.request = *request, .reply = {reply_ok(10 * MS)}});
}

static void test_story__not_everybody_waits_for_a_probe(void **state)
{
    (void)state;
    struct world w;
    open_breaker(&w, 1);
    world_call(&w, &(struct plan){.request = get, .reply = {{.hangs = true}}});
    unsigned at_a_gate = wait_for_probe(&w, &get);
    assert_true(becalm_call_ended(&w.call[at_a_gate - 1]->call)); /* it has a crowd of callers */
    w.policy.gate.max_queue = 2;
    becalm_gate_for_caller(&w.policy.gate);
    unsigned retry = wait_for_probe(&w, &(struct becalm_request){.idempotent = true, .retry_from_above = true});
    assert_true(becalm_call_ended(&w.call[retry - 1]->call));
    unsigned first = wait_for_probe(&w, &get);
    unsigned second = wait_for_probe(&w, &get);
    unsigned third = wait_for_probe(&w, &get);
    assert_false(becalm_call_ended(&w.call[first - 1]->call));
    assert_false(becalm_call_ended(&w.call[second - 1]->call));
    assert_true(becalm_call_ended(&w.call[third - 1]->call)); /* no more than may wait in line */
    check_eq_u64(w.target.gate->awaiting, 2);
    world_cancel(&w, first);
    world_cancel(&w, second);
    check_eq_u64(w.target.gate->awaiting, 0);
    world_close(&w);
}

/* After a success five calls that hang open the breaker at 180 ms, for `open_for` or up to a fifth less. */
static void open_by_timeouts(struct world *w, becalm_ns open_for)
{
    world_begin(w);
    becalm_gate_for_caller(&w->policy.gate);
    w->policy.limit = (struct becalm_limit_policy){.kind = BECALM_LIMIT_AIMD, .min = 1, .max = 100};
    w->policy.attempt_timeout = 160 * MS;
    w->policy.breaker.mode = BECALM_BREAKER_RATE;
    w->policy.breaker.min_calls = 5;
    w->policy.breaker.probes = 1;
    w->policy.breaker.open_for = open_for;
    w->policy.breaker.window_kind = BECALM_WINDOW_COUNT;
    w->policy.breaker.window_size = 5;
    world_open(w, 0);
    world_run(w, 5 * MS); /* the attempt of 0 was never sent */
    world_call(w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
    world_run(w, 20 * MS);
    for (int i = 0; i < 5; i++) {
        world_call(w, &(struct plan){.request = post, .reply = {{.hangs = true}}});
    }
    world_run(w, 181 * MS);
    assert_int_equal(becalm_breaker_state(w->target.breaker), BECALM_BREAKER_OPEN);
}

/* A callee that hangs makes every call wait for a whole timeout: a quarter of it is not long, and the next probe may be
 * answered within that. */
static void test_story__callers_wait_for_the_next_probe_of_a_breaker_that_timeouts_opened(void **state)
{
    (void)state;
    struct world w;
    open_by_timeouts(&w, 30 * MS);
    w.target.limit->pace = 1000000;
    unsigned waits = world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
    assert_int_equal(w.call[waits - 1]->sends, 0);
    world_run(&w, 225 * MS);
    assert_int_equal(w.call[waits - 1]->sends, 1);
    world_run(&w, 300 * MS);
    assert_int_equal(w.call[waits - 1]->call.record.reason, BECALM_WHY_OK);
    assert_int_equal(becalm_breaker_state(w.target.breaker), BECALM_BREAKER_CLOSED);
    check_eq_u64(w.target.gate->awaiting, 0);
    world_close(&w);
}

static void test_story__nobody_waits_for_the_next_probe_for_longer_than_a_quarter_of_its_timeout(void **state)
{
    (void)state;
    struct world w;
    open_by_timeouts(&w, BECALM_S);
    unsigned waits = world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
    world_run(&w, 220 * MS);
    assert_false(becalm_call_ended(&w.call[waits - 1]->call));
    world_run(&w, 222 * MS);
    assert_int_equal(w.call[waits - 1]->call.record.reason, BECALM_WHY_BREAKER_OPEN);
    assert_int_equal(w.call[waits - 1]->call.record.ended_at, 221 * MS);
    assert_int_equal(w.call[waits - 1]->sends, 0);
    check_eq_u64(w.target.gate->awaiting, 0);
    world_close(&w);
}

/* Fewer than five timeouts since the last success are no hang: calls do not wait for a callee that answers with errors,
 * nor for one that got slower and slower first, nor for a breaker that an operator has opened. */
static void test_story__nobody_waits_for_the_next_probe_unless_the_callee_went_away(void **state)
{
    (void)state;
    struct world w;
    open_by_timeouts(&w, 30 * MS);
    w.policy.backoff.base = 0;                    /* so that no call waits for the moment before a refusal, either */
    w.target.limit->evidence = UINT64_C(4) << 16; /* one of the five was an error */
    unsigned refused = world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
    assert_int_equal(w.call[refused - 1]->call.record.reason, BECALM_WHY_BREAKER_OPEN);
    w.target.limit->evidence = UINT64_C(5) << 16;
    w.target.limit->latency = 81 * MS; /* more than half of the timeout */
    unsigned overloaded = world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
    assert_int_equal(w.call[overloaded - 1]->call.record.reason, BECALM_WHY_BREAKER_OPEN);
    w.target.limit->latency = 10 * MS;
    (void)becalm_breaker_force(w.target.breaker, &w.policy.breaker, &(struct becalm_moment){.now = w.now},
                               BECALM_BREAKER_FORCED_OPEN);
    unsigned by_hand = world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
    assert_int_equal(w.call[by_hand - 1]->call.record.reason, BECALM_WHY_BREAKER_OPEN);
    world_close(&w);
}

/* The service answers with errors, and the breaker of a caller is open from 10 ms on. It is 100 ms now. */
static void open_by_errors(struct world *w, becalm_ns open_for)
{
    world_begin(w);
    becalm_gate_for_caller(&w->policy.gate);
    w->policy.breaker.mode = BECALM_BREAKER_RATE;
    w->policy.breaker.min_calls = 1;
    w->policy.breaker.open_for = open_for;
    world_open(w, 0);
    world_call(w, &(struct plan){.request = post, .reply = {reply_status(10 * MS, 503)}});
    world_run(w, 100 * MS);
    assert_int_equal(becalm_breaker_state(w->target.breaker), BECALM_BREAKER_OPEN);
    world_forget(w);
}

static const struct becalm_call *call_made(struct world *w, const struct becalm_request *request)
{
    unsigned number = world_call(w, &(struct plan){.request = *request, .reply = {reply_ok(10 * MS)}});
    return &w->call[number - 1]->call;
}

/* A client in a loop would make a refusal of every call that it has, if refusals took no time. Each call waits for
 * another time below the backoff's base, here 100 ms. */
static void test_story__an_open_breaker_refuses_a_callers_call_after_a_moment(void **state)
{
    (void)state;
    struct world w;
    open_by_errors(&w, BECALM_S * 60);
    const struct becalm_call *call[32];
    for (unsigned i = 0; i < 32; i++) {
        call[i] = call_made(&w, &get);
        assert_false(becalm_call_ended(call[i]));
        assert_false(call[i]->slot[0].slot.held);
    }
    check_eq_u64(w.target.gate->awaiting, 32);
    check_eq_u64(becalm_limit_in_flight(w.target.limit), 0);
    world_run(&w, 10 * BECALM_S);
    unsigned late = 0;
    for (unsigned i = 0; i < 32; i++) {
        const struct becalm_record *record = &call[i]->record;
        assert_int_equal(record->reason, BECALM_WHY_BREAKER_OPEN);
        check_eq_u64(record->attempts, 0);
        check_between_u64(record->ended_at, 100 * MS + 1, 200 * MS - 1);
        check_eq_u64(record->need, becalm_breaker_retest_at(w.target.breaker) - record->ended_at);
        check_eq_u64(call[i]->retry_after, record->need);
        late += record->ended_at > 150 * MS;
    }
    check_between_u64(late, 8, 24);
    check_eq_u64(w.target.gate->awaiting, 0);
    world_close(&w);
}

/* The time is drawn once: the looks after 1, 2, 4 ms and so on do not change it. */
static void test_story__the_moment_before_a_refusal_is_drawn_once(void **state)
{
    (void)state;
    struct world w;
    open_by_errors(&w, BECALM_S * 60);
    const struct becalm_call *call[32];
    becalm_ns refuse_at[32];
    for (unsigned i = 0; i < 32; i++) {
        call[i] = call_made(&w, &get);
        refuse_at[i] = call[i]->refuse_at;
    }
    world_run(&w, 10 * BECALM_S);
    for (unsigned i = 0; i < 32; i++) {
        check_eq_u64(call[i]->record.ended_at, refuse_at[i]);
    }
    world_close(&w);
}

static void test_story__without_a_backoff_an_open_breaker_refuses_at_once(void **state)
{
    (void)state;
    struct world w;
    open_by_errors(&w, BECALM_S * 60);
    w.policy.backoff.base = 0;
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
    world_expect(&w, "[100ms] call 2 begins -> finish (breaker_open) marked spent, unasked\n");
    check_eq_u64(w.target.gate->awaiting, 0);
    world_close(&w);
}

/* A gateway has a crowd of clients; the layer above a retry has waited itself; a policy that watches delays no call;
 * and an operator who opens the breaker wants no call to wait. Nor do more calls wait than may wait in line. */
static void test_story__not_everybody_waits_at_an_open_breaker(void **state)
{
    (void)state;
    struct world w;
    open_by_errors(&w, BECALM_S * 60);
    const struct becalm_call *call =
        call_made(&w, &(struct becalm_request){.idempotent = true, .retry_from_above = true});
    assert_int_equal(call->record.reason, BECALM_WHY_BREAKER_OPEN);
    w.policy.gate.caller = false;
    assert_int_equal(call_made(&w, &get)->record.reason, BECALM_WHY_BREAKER_OPEN);
    w.policy.gate.caller = true;
    w.policy.shadow = true;
    call = call_made(&w, &get);
    assert_int_equal(call->record.would, BECALM_WHY_BREAKER_OPEN);
    check_eq_u64(call->record.attempts, 1);
    w.policy.shadow = false;
    w.policy.gate.max_queue = 1;
    call = call_made(&w, &get);
    assert_false(becalm_call_ended(call));
    assert_int_equal(call_made(&w, &get)->record.reason, BECALM_WHY_BREAKER_OPEN);
    world_cancel(&w, w.count - 1);
    assert_int_equal(call->record.reason, BECALM_WHY_CANCELLED);
    check_eq_u64(w.target.gate->awaiting, 0);
    (void)becalm_breaker_force(w.target.breaker, &w.policy.breaker, &(struct becalm_moment){.now = w.now},
                               BECALM_BREAKER_FORCED_OPEN);
    assert_int_equal(call_made(&w, &get)->record.reason, BECALM_WHY_BREAKER_OPEN);
    world_close(&w);
}

/* The backoff begins with 10 s: that is too long for calls with a timeout of 160 ms. */
static void test_story__nobody_waits_at_an_open_breaker_for_longer_than_a_quarter_of_its_timeout(void **state)
{
    (void)state;
    struct world w;
    open_by_errors(&w, BECALM_S * 60);
    w.policy.backoff.base = 10 * BECALM_S;
    w.policy.attempt_timeout = 160 * MS;
    const struct becalm_call *call = call_made(&w, &get);
    assert_false(becalm_call_ended(call));
    world_run(&w, 20 * BECALM_S);
    assert_int_equal(call->record.reason, BECALM_WHY_BREAKER_OPEN);
    check_eq_u64(call->record.ended_at, 140 * MS);
    world_close(&w);
}

static void test_story__who_waits_at_an_open_breaker_is_sent_when_it_closes(void **state)
{
    (void)state;
    struct world w;
    open_by_errors(&w, BECALM_S * 60);
    w.policy.backoff.base = 10 * BECALM_S;
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
    world_run(&w, 103 * MS);
    (void)becalm_breaker_force(w.target.breaker, &w.policy.breaker, &(struct becalm_moment){.now = w.now},
                               BECALM_BREAKER_CLOSED);
    world_run(&w, 200 * MS);
    world_expect(&w, "[100ms] call 2 begins -> queued\n"
                     "[101ms] call 2 wakes -> queued\n"
                     "[102ms] call 2 wakes -> queued\n"
                     "[104ms] call 2 wakes -> send 0\n"
                     "[114ms] call 2 got ok 200 on 0 -> answer, finish (ok)\n");
    check_eq_u64(w.target.gate->awaiting, 0);
    world_close(&w);
}

/* The open time of 115 ms, or up to a fifth less, ends meanwhile: the first call that looks becomes the probe, and the
 * other one waits for its answer. */
static void test_story__who_waits_at_an_open_breaker_becomes_its_probe(void **state)
{
    (void)state;
    struct world w;
    open_by_errors(&w, 115 * MS);
    w.policy.backoff.base = 10 * BECALM_S;
    check_between_u64(becalm_breaker_retest_at(w.target.breaker), 102 * MS, 125 * MS);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
    world_run(&w, 107 * MS);
    world_forget(&w);
    world_run(&w, 200 * MS);
    world_expect(&w, "[108ms] call 2 wakes -> queued\n"
                     "[108ms] call 3 wakes -> queued\n"
                     "[116ms] call 2 wakes -> send 0, breaker OPEN to HALF_OPEN\n"
                     "[116ms] call 3 wakes -> queued\n"
                     "[126ms] call 2 got ok 200 on 0 -> answer, finish (ok), breaker HALF_OPEN to CLOSED\n"
                     "[132ms] call 3 wakes -> send 0\n"
                     "[142ms] call 3 got ok 200 on 0 -> answer, finish (ok)\n");
    check_eq_u64(w.target.gate->awaiting, 0);
    world_close(&w);
}

/* The only slot is taken by a call that hangs. A call that the breaker will refuse takes no place in the line before
 * the slot, where it would wait for longer, and no token of the rate. */
static void test_story__who_waits_at_an_open_breaker_takes_nothing_from_others(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    becalm_gate_for_caller(&w.policy.gate);
    w.policy.limit = (struct becalm_limit_policy){.kind = BECALM_LIMIT_FIXED, .min = 1, .max = 1};
    w.policy.breaker.open_for = 60 * BECALM_S;
    w.policy.rate.enabled = true;
    world_open(&w, 0);
    world_run(&w, 100 * MS);
    world_call(&w, &(struct plan){.request = post, .reply = {{.hangs = true}}});
    (void)becalm_breaker_force(w.target.breaker, &w.policy.breaker, &(struct becalm_moment){.now = w.now},
                               BECALM_BREAKER_OPEN);
    world_run(&w, 2 * BECALM_S);
    check_eq_u64(becalm_limit_in_flight(w.target.limit), 1);
    unsigned waits = world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}, .can_wait = true});
    const struct becalm_call *call = &w.call[waits - 1]->call;
    assert_false(becalm_call_ended(call));
    assert_true(call->ticket.queue == NULL);
    assert_false(call->rate_held);
    world_run(&w, 2100 * MS);
    assert_int_equal(call->record.reason, BECALM_WHY_BREAKER_OPEN);
    check_eq_u64(w.target.gate->awaiting, 0);
    world_close(&w);
}

/* At one slot the limit lets a part of the calls through by chance: the others wait for the answer to those, and make
 * no draw of their own. */
static void test_story__who_the_pace_turned_away_waits_for_one_that_it_let_through(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    becalm_gate_for_caller(&w.policy.gate);
    w.policy.limit = (struct becalm_limit_policy){.kind = BECALM_LIMIT_AIMD, .min = 1, .max = 100};
    world_open(&w, 0);
    world_run(&w, 1000 * BECALM_S);
    w.target.limit->units = 20;
    w.target.limit->pace = w.now >> 20 << 20 | 20000; /* two in a hundred */
    unsigned paced = world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
    assert_false(becalm_call_ended(&w.call[paced - 1]->call));
    assert_int_equal(w.call[paced - 1]->sends, 0);
    world_run(&w, w.now + 100 * MS);
    assert_int_equal(w.call[paced - 1]->sends, 0); /* however often it looks */
    w.target.limit->pace = 1000000;                /* another one has succeeded */
    world_run(&w, w.now + 300 * MS);
    assert_int_equal(w.call[paced - 1]->sends, 1);
    assert_int_equal(w.call[paced - 1]->call.record.reason, BECALM_WHY_OK);
    w.target.limit->pace = w.now >> 20 << 20 | 20000;
    unsigned in_vain = world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
    becalm_ns until = w.now + w.policy.attempt_timeout / 4;
    world_run(&w, until - MS);
    assert_false(becalm_call_ended(&w.call[in_vain - 1]->call));
    world_run(&w, until);
    assert_int_equal(w.call[in_vain - 1]->call.record.reason, BECALM_WHY_LIMIT);
    check_eq_u64(w.target.gate->awaiting, 0);
    world_close(&w);
}

BECALM_TESTS(cmocka_unit_test(test_story__a_callers_other_calls_wait_for_the_answer_to_the_probe),
             cmocka_unit_test(test_story__who_waited_for_a_probe_that_failed_is_refused),
             cmocka_unit_test(test_story__nobody_waits_for_a_probe_for_longer_than_a_quarter_of_its_timeout),
             cmocka_unit_test(test_story__calls_wait_for_a_probe_for_twice_the_usual_time_of_an_answer),
             cmocka_unit_test(test_story__not_everybody_waits_for_a_probe),
             cmocka_unit_test(test_story__callers_wait_for_the_next_probe_of_a_breaker_that_timeouts_opened),
             cmocka_unit_test(test_story__nobody_waits_for_the_next_probe_for_longer_than_a_quarter_of_its_timeout),
             cmocka_unit_test(test_story__nobody_waits_for_the_next_probe_unless_the_callee_went_away),
             cmocka_unit_test(test_story__an_open_breaker_refuses_a_callers_call_after_a_moment),
             cmocka_unit_test(test_story__the_moment_before_a_refusal_is_drawn_once),
             cmocka_unit_test(test_story__without_a_backoff_an_open_breaker_refuses_at_once),
             cmocka_unit_test(test_story__not_everybody_waits_at_an_open_breaker),
             cmocka_unit_test(test_story__nobody_waits_at_an_open_breaker_for_longer_than_a_quarter_of_its_timeout),
             cmocka_unit_test(test_story__who_waits_at_an_open_breaker_is_sent_when_it_closes),
             cmocka_unit_test(test_story__who_waits_at_an_open_breaker_becomes_its_probe),
             cmocka_unit_test(test_story__who_waits_at_an_open_breaker_takes_nothing_from_others),
             cmocka_unit_test(test_story__who_the_pace_turned_away_waits_for_one_that_it_let_through))
