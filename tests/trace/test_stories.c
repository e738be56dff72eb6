/* SPDX-License-Identifier: MIT */
/* Golden stories: how the concepts play together, one call at a time, to be read as much as to be run. */

#include "story.h"

static void test_story__success_after_one_retry(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    world_open(&w, 0);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_status(40 * MS, 503), reply_ok(30 * MS)}});
    world_run(&w, BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[ 40ms] call 1 got rejected 503 on 0 -> wait 100ms (backoff)\n"
                     "[140ms] call 1 wakes -> send 1\n"
                     "[170ms] call 1 got ok 200 on 1 -> answer, finish (ok)\n");
    /* The token came back with the success, so the next call can retry as well. */
    assert_int_equal(becalm_budget_left(w.target.budget, &w.policy.budget, w.now), BECALM_TOKEN);
    world_close(&w);
}

static void test_story__the_budget_is_empty(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    world_open(&w, 0);
    struct plan dead = {.request = get,
                        .reply = {reply_status(10 * MS, 503), reply_status(10 * MS, 503), reply_status(10 * MS, 503)}};
    world_call(&w, &dead);
    world_run(&w, 500 * MS);
    world_call(&w, &dead);
    world_run(&w, BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[ 10ms] call 1 got rejected 503 on 0 -> wait 100ms (backoff)\n"
                     "[110ms] call 1 wakes -> send 1\n"
                     "[120ms] call 1 got rejected 503 on 1 -> answer, finish (budget_empty) marked spent\n"
                     "[500ms] call 2 begins -> send 0\n"
                     "[510ms] call 2 got rejected 503 on 0 -> answer, finish (budget_empty) marked spent\n");
    assert_int_equal(w.call[1]->call.record.have, 0);
    assert_int_equal(w.call[1]->call.record.need, BECALM_TOKEN);
    world_close(&w);
}

static void test_story__both_levels_pay_or_none(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    world_open(&w, 0);
    struct becalm_budget_policy empty;
    becalm_budget_defaults(&empty, BECALM_BUDGET_EARNED);
    empty.start = 0;
    w.policy.service_budget = empty;
    void *memory = aligned_alloc(64, becalm_budget_bytes(&empty, 1));
    w.target.service_budget = becalm_budget_init(memory, &empty, 1);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_status(10 * MS, 503)}});
    world_run(&w, BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[ 10ms] call 1 got rejected 503 on 0 -> answer, finish (budget_empty) marked spent\n");
    assert_int_equal(becalm_budget_left(w.target.budget, &w.policy.budget, w.now), BECALM_TOKEN);
    world_close(&w);
    free(memory);
}

static void test_story__the_breaker_opens_in_mid_call_and_stops_retries(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.breaker.mode = BECALM_BREAKER_CONSECUTIVE;
    w.policy.breaker.failure_threshold = 2;
    w.policy.budget.kind = BECALM_BUDGET_NONE;
    world_open(&w, 0);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_status(10 * MS, 503), reply_ok(10 * MS)}});
    world_call(&w, &(struct plan){.request = post, .reply = {reply_status(20 * MS, 503)}});
    world_call(&w, &(struct plan){.request = post, .reply = {reply_status(30 * MS, 503)}});
    world_run(&w, 200 * MS);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[  0ms] call 2 begins -> send 0\n"
                     "[  0ms] call 3 begins -> send 0\n"
                     "[ 10ms] call 1 got rejected 503 on 0 -> wait 100ms (backoff)\n"
                     "[ 20ms] call 2 got rejected 503 on 0 -> answer, finish (not_idempotent)\n"
                     "[ 30ms] call 3 got rejected 503 on 0 -> answer, finish (not_idempotent), breaker CLOSED to OPEN\n"
                     "[110ms] call 1 wakes -> finish (breaker_open) with the last answer marked spent\n"
                     "[200ms] call 4 begins -> finish (breaker_open) marked spent, unasked\n");
    world_close(&w);
}

static void test_story__half_open_probes_close_the_breaker(void **state)
{
    (void)state;
    struct world w;
    open_breaker(&w, 2);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(20 * MS)}});
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
    world_run(&w, 1100 * MS);
    world_expect(&w, "[1030ms] call 2 begins -> send 0, breaker OPEN to HALF_OPEN\n"
                     "[1030ms] call 3 begins -> send 0\n"
                     "[1030ms] call 4 begins -> finish (breaker_open) marked spent, unasked\n"
                     "[1040ms] call 2 got ok 200 on 0 -> answer, finish (ok)\n"
                     "[1050ms] call 3 got ok 200 on 0 -> answer, finish (ok), breaker HALF_OPEN to CLOSED\n");
    world_close(&w);
}

static void test_story__a_probe_that_fails_is_not_retried(void **state)
{
    (void)state;
    struct world w;
    open_breaker(&w, 1);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_status(10 * MS, 503), reply_ok(10 * MS)}});
    world_run(&w, 1100 * MS);
    world_expect(&w, "[1030ms] call 2 begins -> send 0, breaker OPEN to HALF_OPEN\n"
                     "[1040ms] call 2 got rejected 503 on 0 -> answer, finish (probe_failed) marked spent, "
                     "breaker HALF_OPEN to OPEN\n");
    world_close(&w);
}

/* Probes come so far apart that no failure is fresh any more; still each goes where fewer have failed in a row. */
static void test_story__a_probe_goes_to_the_host_with_fewer_failures_in_a_row(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.breaker.min_calls = 1;
    w.policy.breaker.open_for = 4 * BECALM_S;
    w.policy.max_retries = 0;
    w.policy.outlier.min_calls = 1000;
    world_open(&w, 2);
    uint32_t before = BECALM_NO_HOST;
    for (unsigned i = 0; i < 20; i++) {
        unsigned call = world_call(&w, &(struct plan){.request = get, .reply = {reply_status(10 * MS, 503)}});
        world_run(&w, (i + 1) * 5 * BECALM_S);
        uint32_t host = w.call[call - 1]->call.record.attempt[0].host;
        assert_true(i % 2 == 0 || host != before); /* after an even number both have failed as often */
        before = host;
    }
    world_close(&w);
}

/* Further down, a gate, a limit or a breaker said no: the service was not asked, so its state is still unknown. */
static void test_story__a_probe_that_is_turned_away_below_gives_its_place_back(void **state)
{
    static const enum becalm_mark_kind marks[] = {BECALM_MARK_UNASKED, BECALM_MARK_OVERLOADED};
    (void)state;
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        struct world w;
        open_breaker(&w, 1);
        world_call(&w, &(struct plan){.request = post, .reply = {reply_mark(10 * MS, 503, marks[i])}});
        world_run(&w, 1050 * MS);
        world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
        world_run(&w, 1100 * MS);
        world_expect(&w, "[1030ms] call 2 begins -> send 0, breaker OPEN to HALF_OPEN\n"
                         "[1040ms] call 2 got rejected 503 on 0 -> answer, finish (not_idempotent) marked spent, "
                         "unasked\n"
                         "[1050ms] call 3 begins -> send 0\n"
                         "[1060ms] call 3 got ok 200 on 0 -> answer, finish (ok), breaker HALF_OPEN to CLOSED\n");
        world_close(&w);
    }
}

/* Nor does it open one that is closed. */
static void test_story__calls_that_are_turned_away_below_do_not_open_the_breaker(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.breaker.mode = BECALM_BREAKER_RATE;
    w.policy.breaker.min_calls = 1;
    w.policy.max_retries = 0;
    world_open(&w, 0);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_mark(10 * MS, 503, BECALM_MARK_UNASKED)}});
    world_run(&w, 20 * MS);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_mark(10 * MS, 503, BECALM_MARK_SPENT)}});
    world_run(&w, 40 * MS);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[ 10ms] call 1 got rejected 503 on 0 -> answer, finish (retries_off) marked spent, unasked\n"
                     "[ 20ms] call 2 begins -> send 0\n"
                     "[ 30ms] call 2 got rejected 503 on 0 -> answer, finish (retries_off), breaker CLOSED to OPEN\n");
    world_close(&w);
}

static void test_story__a_lost_probe_does_not_wedge_and_its_late_success_closes(void **state)
{
    (void)state;
    struct world w;
    open_breaker(&w, 1);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_status(600 * MS, 503)}});
    world_run(&w, 2700 * MS);
    world_forget(&w);
    /* The probe is answered after 3 s; the episode's lease is 1 s, and failures took longer than half of that. */
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(3 * BECALM_S)}});
    world_run(&w, 4705 * MS);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
    world_run(&w, 5720 * MS);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
    world_run(&w, 5800 * MS);
    world_expect(&w,
                 "[2700ms] call 3 begins -> send 0, breaker OPEN to HALF_OPEN\n"
                 "[4705ms] call 4 begins -> finish (breaker_open) marked spent, unasked, breaker HALF_OPEN to OPEN\n"
                 "[5700ms] call 3 got ok 200 on 0 -> answer, finish (ok), breaker OPEN to CLOSED\n"
                 "[5720ms] call 5 begins -> send 0\n"
                 "[5730ms] call 5 got ok 200 on 0 -> answer, finish (ok)\n");
    world_close(&w);
}

/* The service rejected calls at once. It takes 3 s for the probe, so it is back; others need not wait for its answer.
 */
static void test_story__a_probe_that_is_silent_where_calls_failed_at_once_closes(void **state)
{
    (void)state;
    struct world w;
    open_breaker(&w, 1);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(3 * BECALM_S)}});
    world_run(&w, 2025 * MS);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(3 * BECALM_S)}});
    world_run(&w, 2035 * MS);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(3 * BECALM_S)}});
    world_run(&w, 5100 * MS);
    world_expect(&w, "[1030ms] call 2 begins -> send 0, breaker OPEN to HALF_OPEN\n"
                     "[2025ms] call 3 begins -> finish (breaker_open) marked spent, unasked\n"
                     "[2035ms] call 4 begins -> send 0, breaker HALF_OPEN to CLOSED\n"
                     "[4030ms] call 2 got ok 200 on 0 -> answer, finish (ok)\n"
                     "[5035ms] call 4 got ok 200 on 0 -> answer, finish (ok)\n");
    world_close(&w);
}

static void test_story__the_deadline_leaves_no_time_to_wait(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    world_open(&w, 0);
    struct becalm_request hurried = {.idempotent = true, .deadline_at = 85 * MS};
    world_call(&w, &(struct plan){.request = hurried, .reply = {reply_status(40 * MS, 503), reply_ok(10 * MS)}});
    world_run(&w, BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[ 40ms] call 1 got rejected 503 on 0 -> answer, finish (deadline) marked spent\n");
    assert_int_equal(w.call[0]->call.record.have, 45 * MS); /* less than an answer and a quarter more */
    assert_true(w.call[0]->call.record.need > 100 * MS);
    world_close(&w);
}

/* Backoff is 100 ms here. With 110 ms left it leaves no time for an answer that takes 20; 25 of them are kept for it,
 * and the wait becomes the remainder of 100 ms by 85 ms. */
static void test_story__a_backoff_that_does_not_fit_is_drawn_from_what_does(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    world_open(&w, 0);
    struct becalm_request hurried = {.idempotent = true, .deadline_at = 130 * MS};
    world_call(&w, &(struct plan){.request = hurried, .reply = {reply_status(20 * MS, 503), reply_ok(20 * MS)}});
    world_run(&w, BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[ 20ms] call 1 got rejected 503 on 0 -> wait 15ms (backoff)\n"
                     "[ 35ms] call 1 wakes -> send 1\n"
                     "[ 55ms] call 1 got ok 200 on 1 -> answer, finish (ok)\n");
    world_close(&w);
}

static void test_story__what_a_server_asked_for_is_not_shortened(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    world_open(&w, 0);
    struct becalm_request hurried = {.idempotent = true, .deadline_at = 2 * BECALM_S};
    world_call(&w, &(struct plan){.request = hurried, .reply = {reply_hint(20 * MS, 503, 5 * BECALM_S)}});
    world_run(&w, 3 * BECALM_S);
    assert_int_equal(w.call[0]->call.record.reason, BECALM_WHY_DEADLINE);
    assert_int_equal(w.call[0]->call.record.attempts, 1);
    world_close(&w);
}

static void test_story__a_call_that_arrives_too_late_is_not_sent(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    world_open(&w, 0);
    world_run(&w, 50 * MS);
    struct becalm_request late = {.idempotent = true, .deadline_at = 50 * MS};
    world_call(&w, &(struct plan){.request = late, .reply = {reply_ok(MS)}});
    world_expect(&w, "[ 50ms] call 1 begins -> finish (deadline) marked spent, unasked\n");
    world_close(&w);
}

static void test_story__one_caller_with_a_deadline_of_1_ms_harms_nobody_else(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.breaker.min_calls = 5;
    world_open(&w, 2);
    w.quiet = true;
    for (unsigned i = 0; i < 50; i++) {
        struct becalm_request hasty = {.idempotent = true, .deadline_at = w.now + MS};
        world_call(&w, &(struct plan){.request = hasty, .reply = {reply_ok(20 * MS)}});
        world_run(&w, w.now + 10 * MS);
    }
    w.quiet = false;
    assert_int_equal(w.call[49]->call.record.reason, BECALM_WHY_DEADLINE);
    assert_int_equal(w.call[49]->call.record.attempt[0].outcome, BECALM_OUTCOME_CANCELLED);
    assert_int_equal(becalm_breaker_state(w.target.breaker), BECALM_BREAKER_CLOSED);
    assert_int_equal(becalm_limit_now(w.target.limit, &w.policy.limit), 1000);
    assert_false(becalm_host_ejected(w.target.hosts, 0, w.now) || becalm_host_ejected(w.target.hosts, 1, w.now));
    assert_false(becalm_mark_failing(w.target.mark));
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(20 * MS)}});
    world_run(&w, w.now + 100 * MS);
    assert_int_equal(w.call[50]->call.record.reason, BECALM_WHY_OK);
    world_close(&w);
}

static void test_story__a_hedge_wins_and_the_loser_is_cancelled(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.hedge.enabled = true;
    w.policy.hedge.delay = 50 * MS;
    world_open(&w, 2);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(400 * MS), reply_ok(20 * MS)}});
    world_run(&w, BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0 to host 1\n"
                     "[ 50ms] call 1 wakes -> send 1 to host 0 (hedge)\n"
                     "[ 70ms] call 1 got ok 200 on 1 -> cancel slot 0, answer, finish (ok)\n");
    assert_int_equal(w.target.hedge->won, 1);
    assert_int_equal(becalm_limit_in_flight(w.target.limit), 0);
    /* The loser is neutral: its host is as healthy as before. */
    assert_int_equal(w.call[0]->call.record.attempt[0].outcome, BECALM_OUTCOME_CANCELLED);
    world_close(&w);
}

static void test_story__a_failure_that_is_not_fatal_hedges_at_once(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.hedge.enabled = true;
    w.policy.hedge.delay = 50 * MS;
    w.policy.hedge.max = 2;
    world_open(&w, 0);
    world_call(&w,
               &(struct plan){.request = get,
                              .reply = {reply_status(10 * MS, 503), reply_status(70 * MS, 503), reply_ok(100 * MS)}});
    world_call(&w, &(struct plan){.request = get, .reply = {reply_status(10 * MS, 500)}});
    world_run(&w, BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[  0ms] call 2 begins -> send 0\n"
                     "[ 10ms] call 1 got rejected 503 on 0 -> send 1 (hedge)\n"
                     "[ 10ms] call 2 got failed 500 on 0 -> answer, finish (not_listed)\n"
                     "[ 60ms] call 1 wakes -> send 2 (hedge)\n"
                     "[ 80ms] call 1 got rejected 503 on 1 -> goes on\n"
                     "[160ms] call 1 got ok 200 on 2 -> answer, finish (ok)\n");
    assert_int_equal(w.target.hedge->saved, 1);
    world_close(&w);
}

static void test_story__a_refused_attempt_goes_to_an_untried_host_at_once(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.max_retries = 3;
    becalm_budget_defaults(&w.policy.budget, BECALM_BUDGET_NONE);
    world_open(&w, 2);
    struct reply refused = reply_kind(MS, BECALM_OUTCOME_REFUSED);
    world_call(&w, &(struct plan){.request = post, .reply = {refused, refused, refused, reply_ok(10 * MS)}});
    world_call(&w, &(struct plan){.request = get, .reply = {reply_status(2 * MS, 503), reply_ok(10 * MS)}});
    world_run(&w, BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0 to host 1\n"
                     "[  0ms] call 2 begins -> send 0 to host 0\n"
                     "[  1ms] call 1 got refused on 0 -> send 1 to host 0, wait 0ms (backoff)\n"
                     "[  2ms] call 1 got refused on 1 -> wait 200ms (backoff)\n"
                     "[  2ms] call 2 got rejected 503 on 0 -> wait 100ms (backoff)\n"
                     "[102ms] call 2 wakes -> send 1 to host 1\n"
                     "[112ms] call 2 got ok 200 on 1 -> answer, finish (ok)\n"
                     "[202ms] call 1 wakes -> send 2 to host 1\n"
                     "[203ms] call 1 got refused on 2 -> wait 400ms (backoff)\n"
                     "[603ms] call 1 wakes -> send 3 to host 1\n"
                     "[613ms] call 1 got ok 200 on 3 -> answer, finish (ok)\n");
    world_close(&w);
}

static void test_story__a_retry_after_is_honoured_with_jitter_on_top(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    world_open(&w, 0);
    world_call(&w,
               &(struct plan){.request = get, .reply = {reply_hint(10 * MS, 429, 2 * BECALM_S), reply_ok(10 * MS)}});
    world_call(&w,
               &(struct plan){.request = get, .reply = {reply_hint(10 * MS, 503, 60 * BECALM_S), reply_ok(10 * MS)}});
    world_run(&w, 5 * BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[  0ms] call 2 begins -> send 0\n"
                     "[ 10ms] call 1 got rate_limited 429 on 0 -> wait 2704ms (hint)\n"
                     "[ 10ms] call 2 got rejected 503 on 0 -> answer, finish (deadline) marked spent\n"
                     "[2714ms] call 1 wakes -> send 1\n"
                     "[2724ms] call 1 got ok 200 on 1 -> answer, finish (ok)\n");
    world_close(&w);
}

static void test_story__a_marked_answer_is_not_retried(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.budget.kind = BECALM_BUDGET_NONE;
    world_open(&w, 0);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_mark(10 * MS, 503, BECALM_MARK_OVERLOADED)}});
    world_run(&w, 100 * MS);
    /* "spent" counts only while the callee as a whole is failing: one bad answer among good ones is retried. */
    world_call(
        &w, &(struct plan){.request = get, .reply = {reply_mark(10 * MS, 503, BECALM_MARK_SPENT), reply_ok(10 * MS)}});
    world_run(&w, 300 * MS);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[ 10ms] call 1 got rejected 503 on 0 -> answer, finish (stopped) marked spent, unasked\n"
                     "[100ms] call 2 begins -> send 0\n"
                     "[110ms] call 2 got rejected 503 on 0 -> wait 100ms (backoff)\n"
                     "[210ms] call 2 wakes -> send 1\n"
                     "[220ms] call 2 got ok 200 on 1 -> answer, finish (ok)\n");
    w.quiet = true;
    for (unsigned i = 0; i < 10; i++) {
        world_call(&w, &(struct plan){.request = post, .reply = {reply_status(MS, 502)}});
        world_run(&w, w.now + 10 * MS);
    }
    w.quiet = false;
    world_forget(&w);
    world_call(
        &w, &(struct plan){.request = get, .reply = {reply_mark(10 * MS, 503, BECALM_MARK_SPENT), reply_ok(10 * MS)}});
    world_run(&w, BECALM_S);
    world_expect(&w, "[400ms] call 13 begins -> send 0\n"
                     "[410ms] call 13 got rejected 503 on 0 -> answer, finish (stopped) marked spent\n");
    world_close(&w);
}

static void test_story__a_post_is_retried_only_if_it_was_never_sent(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.budget.kind = BECALM_BUDGET_NONE;
    world_open(&w, 0);
    struct becalm_request keyed = {.keyed = true};
    world_call(&w,
               &(struct plan){.request = post, .reply = {reply_kind(MS, BECALM_OUTCOME_REFUSED), reply_ok(10 * MS)}});
    world_call(
        &w, &(struct plan){.request = post, .reply = {reply_kind(2 * MS, BECALM_OUTCOME_BROKEN), reply_ok(10 * MS)}});
    world_call(
        &w, &(struct plan){.request = keyed, .reply = {reply_kind(3 * MS, BECALM_OUTCOME_BROKEN), reply_ok(10 * MS)}});
    world_call(&w,
               &(struct plan){.request = keyed, .reply = {reply_kind(4 * MS, BECALM_OUTCOME_TLS), reply_ok(10 * MS)}});
    world_run(&w, BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[  0ms] call 2 begins -> send 0\n"
                     "[  0ms] call 3 begins -> send 0\n"
                     "[  0ms] call 4 begins -> send 0\n"
                     "[  1ms] call 1 got refused on 0 -> wait 100ms (backoff)\n"
                     "[  2ms] call 2 got broken on 0 -> finish (not_idempotent)\n"
                     "[  3ms] call 3 got broken on 0 -> wait 100ms (backoff)\n"
                     "[  4ms] call 4 got tls on 0 -> finish (permanent)\n"
                     "[101ms] call 1 wakes -> send 1\n"
                     "[103ms] call 3 wakes -> send 1\n"
                     "[111ms] call 1 got ok 200 on 1 -> answer, finish (ok)\n"
                     "[113ms] call 3 got ok 200 on 1 -> answer, finish (ok)\n");
    world_close(&w);
}

static void test_story__cancelled_in_mid_sleep_gives_the_token_back(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    world_open(&w, 0);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_status(10 * MS, 503), reply_ok(10 * MS)}});
    world_run(&w, 60 * MS);
    assert_int_equal(becalm_budget_left(w.target.budget, &w.policy.budget, w.now), 0);
    world_cancel(&w, 1);
    world_run(&w, BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[ 10ms] call 1 got rejected 503 on 0 -> wait 100ms (backoff)\n"
                     "[ 60ms] call 1 is cancelled -> finish (cancelled)\n");
    assert_int_equal(becalm_budget_left(w.target.budget, &w.policy.budget, w.now), BECALM_TOKEN);
    world_close(&w);
}

static void test_story__nothing_is_begun_for_a_caller_that_has_left(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    world_open(&w, 0);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_status(10 * MS, 503), reply_ok(10 * MS)}});
    world_run(&w, 60 * MS);
    world_leave(&w, 1); /* in its wait: it ends at once, and the token comes back */
    assert_int_equal(becalm_budget_left(w.target.budget, &w.policy.budget, w.now), BECALM_TOKEN);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_status(10 * MS, 503), reply_ok(10 * MS)}});
    world_leave(&w, 2); /* in flight: the answer is still passed on */
    world_run(&w, 100 * MS);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
    world_leave(&w, 3);
    world_run(&w, BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[ 10ms] call 1 got rejected 503 on 0 -> wait 100ms (backoff)\n"
                     "[ 60ms] call 1 may have been left -> finish (cancelled) with the last answer\n"
                     "[ 60ms] call 2 begins -> send 0\n"
                     "[ 60ms] call 2 may have been left -> goes on\n"
                     "[ 70ms] call 2 got rejected 503 on 0 -> answer, finish (cancelled)\n"
                     "[100ms] call 3 begins -> send 0\n"
                     "[100ms] call 3 may have been left -> goes on\n"
                     "[110ms] call 3 got ok 200 on 0 -> answer, finish (ok)\n");
    world_close(&w);
}

static void test_story__no_hedge_is_sent_for_a_caller_that_has_left(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.hedge.enabled = true;
    w.policy.hedge.delay = 50 * MS;
    world_open(&w, 2);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(200 * MS), reply_ok(10 * MS)}});
    world_run(&w, 20 * MS);
    world_leave(&w, 1);
    world_run(&w, BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0 to host 1\n"
                     "[ 20ms] call 1 may have been left -> goes on\n"
                     "[200ms] call 1 got ok 200 on 0 -> answer, finish (ok)\n");
    world_close(&w);
}

static void test_story__retries_are_shed_before_first_attempts(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    becalm_limit_defaults(&w.policy.limit, BECALM_LIMIT_FIXED);
    w.policy.limit.max = 1;
    world_open(&w, 0);
    struct becalm_request from_above = {.idempotent = true, .retry_from_above = true};
    world_call(&w,
               &(struct plan){.request = get, .can_wait = true, .reply = {reply_status(10 * MS, 503), reply_ok(MS)}});
    world_call(&w, &(struct plan){.request = get, .can_wait = true, .reply = {reply_ok(200 * MS)}});
    world_call(&w, &(struct plan){.request = from_above, .can_wait = true, .reply = {reply_ok(MS)}});
    world_run(&w, BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[  0ms] call 2 begins -> queued\n"
                     "[  0ms] call 3 begins -> finish (limit) marked spent, unasked\n"
                     "[ 10ms] call 1 got rejected 503 on 0 -> wait 100ms (backoff)\n"
                     "[ 10ms] call 2 is called by the gate -> send 0\n"
                     "[110ms] call 1 wakes -> finish (limit) with the last answer marked spent\n"
                     "[210ms] call 2 got ok 200 on 0 -> answer, finish (ok)\n");
    assert_int_equal(w.call[1]->call.record.gated, 10 * MS);
    world_close(&w);
}

/* Of two calls at a limit of one slot, the second one waits for `first_takes`. Returns the limit in the end. */
static uint32_t limit_after_a_wait(becalm_ns first_takes)
{
    struct world w;
    world_begin(&w);
    becalm_limit_defaults(&w.policy.limit, BECALM_LIMIT_AIMD);
    w.policy.attempt_timeout = 800 * MS;
    world_open(&w, 0);
    w.target.limit->units = 20;
    w.target.limit->well = 20 << 1 | 1;
    w.target.limit->narrowed = 2048 << 8; /* rejections have cut the limit; the next 1024 successes do not widen it */
    w.target.limit->narrowed_to = 20;
    world_call(&w, &(struct plan){.request = get, .can_wait = true, .reply = {reply_ok(first_takes)}});
    world_call(&w, &(struct plan){.request = get, .can_wait = true, .reply = {reply_ok(MS)}});
    world_run(&w, BECALM_S);
    uint32_t limit = becalm_limit_now(w.target.limit, &w.policy.limit);
    world_forget(&w);
    world_close(&w);
    return limit;
}

static void test_story__a_call_that_waited_in_line_widens_a_limit_that_rejections_cut(void **state)
{
    (void)state;
    assert_int_equal(limit_after_a_wait(99 * MS), 1);
    assert_int_equal(limit_after_a_wait(101 * MS), 2); /* more than an eighth of the timeout */
}

static void test_story__who_waits_too_long_in_the_gate_is_shed(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    becalm_limit_defaults(&w.policy.limit, BECALM_LIMIT_FIXED);
    w.policy.limit.max = 1;
    w.policy.attempt_timeout = 400 * MS;
    world_open(&w, 0);
    world_call(&w, &(struct plan){.request = get, .can_wait = true, .reply = {reply_ok(300 * MS)}});
    world_call(&w, &(struct plan){.request = get, .can_wait = true, .reply = {reply_ok(MS)}});
    world_run(&w, BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[  0ms] call 2 begins -> queued\n"
                     "[200ms] call 2 wakes -> finish (shed)\n"
                     "[300ms] call 1 got ok 200 on 0 -> answer, finish (ok)\n");
    world_close(&w);
}

static void test_story__an_attempt_that_hangs_is_cut_at_its_timeout_and_goes_elsewhere(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.attempt_timeout = BECALM_S;
    world_open(&w, 3);
    world_call(&w, &(struct plan){.request = get, .reply = {{.hangs = true}, reply_ok(20 * MS)}});
    world_run(&w, 5 * BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0 to host 1\n"
                     "[1000ms] call 1 timed out -> cancel slot 0, wait 100ms (backoff)\n"
                     "[1100ms] call 1 wakes -> send 1 to host 0\n"
                     "[1120ms] call 1 got ok 200 on 1 -> answer, finish (ok)\n");
    world_close(&w);
}

/* Five requests to host 0, the only one that passes its checks: two are answered `after`, and three time out. */
static void two_answers_and_three_timeouts(struct world *w, becalm_ns after)
{
    world_begin(w);
    w->policy.attempt_timeout = BECALM_S;
    world_open(w, 2);
    becalm_hosts_check(w->target.hosts, 1, false);
    for (unsigned i = 0; i < 5; i++) {
        world_call(w, &(struct plan){.reply = {i < 2 ? reply_ok(after) : (struct reply){.hangs = true}}});
    }
    world_run(w, 2 * BECALM_S);
}

static void test_story__a_host_that_only_queues_stays_in(void **state)
{
    (void)state;
    struct world w;
    two_answers_and_three_timeouts(&w, 700 * MS);
    world_expect(&w, "[  0ms] call 1 begins -> send 0 to host 0\n"
                     "[  0ms] call 2 begins -> send 0 to host 0\n"
                     "[  0ms] call 3 begins -> send 0 to host 0\n"
                     "[  0ms] call 4 begins -> send 0 to host 0\n"
                     "[  0ms] call 5 begins -> send 0 to host 0\n"
                     "[700ms] call 1 got ok 200 on 0 -> answer, finish (ok)\n"
                     "[700ms] call 2 got ok 200 on 0 -> answer, finish (ok)\n"
                     "[1000ms] call 3 timed out -> cancel slot 0, finish (not_idempotent)\n"
                     "[1000ms] call 4 timed out -> cancel slot 0, finish (not_idempotent)\n"
                     "[1000ms] call 5 timed out -> cancel slot 0, finish (not_idempotent)\n");
    assert_false(becalm_host_ejected(w.target.hosts, 0, w.now));
    world_close(&w);
    two_answers_and_three_timeouts(&w, 20 * MS); /* it hangs for a part of its calls */
    assert_true(becalm_host_ejected(w.target.hosts, 0, w.now));
    world_close(&w);
}

static void test_story__an_answer_is_passed_on_at_its_head_and_ends_with_its_body(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    world_open(&w, 0);
    struct reply whole = reply_ok(10 * MS);
    struct reply refused = reply_status(10 * MS, 503);
    whole.head_first = refused.head_first = true;
    whole.body = refused.body = 90 * BECALM_S; /* longer than every timeout: after the head no timeout runs */
    world_call(&w, &(struct plan){.request = get, .reply = {refused, whole}});
    world_run(&w, 200 * BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[ 10ms] call 1 got head rejected 503 on 0 -> cancel slot 0, wait 100ms (backoff)\n"
                     "[110ms] call 1 wakes -> send 1\n"
                     "[120ms] call 1 got head ok 200 on 1 -> answer\n"
                     "[90120ms] call 1 got ok 200 on 1 -> finish (ok)\n");
    world_close(&w);
}

static void test_story__a_shadow_policy_says_what_it_would_have_done(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.shadow = true;
    becalm_limit_defaults(&w.policy.limit, BECALM_LIMIT_FIXED);
    w.policy.limit.max = 1;
    world_open(&w, 0);
    world_call(&w,
               &(struct plan){.request = get, .can_wait = true, .reply = {reply_status(10 * MS, 503), reply_ok(MS)}});
    world_call(&w, &(struct plan){.request = get, .can_wait = true, .reply = {reply_ok(20 * MS)}});
    world_run(&w, BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[  0ms] call 2 begins -> send 0\n"
                     "[ 10ms] call 1 got rejected 503 on 0 -> answer, finish (retries_off)\n"
                     "[ 20ms] call 2 got ok 200 on 0 -> answer, finish (ok)\n");
    assert_int_equal(w.call[0]->call.record.would, BECALM_WHY_BACKOFF);
    assert_int_equal(w.call[1]->call.record.would, BECALM_WHY_LIMIT);
    world_close(&w);
}

static void test_story__a_slow_call_opens_the_breaker_while_it_is_still_in_flight(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.breaker.slow_share_ppm = 1000000;
    w.policy.breaker.slow_after = 300 * MS;
    w.policy.breaker.min_calls = 1;
    world_open(&w, 0);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(2 * BECALM_S)}});
    world_run(&w, 400 * MS);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(MS)}});
    world_run(&w, 3 * BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[300ms] call 1 wakes -> goes on, breaker CLOSED to OPEN\n"
                     "[400ms] call 2 begins -> finish (breaker_open) marked spent, unasked\n"
                     "[2000ms] call 1 got ok 200 on 0 -> answer, finish (ok)\n");
    world_close(&w);
}

/* A host that keeps time in whole milliseconds reports the caller's deadline as its own timeout, and half a millisecond
 * early. */
static void test_story__a_deadline_that_the_host_reports_as_a_timeout_harms_nobody_either(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    world_open(&w, 0);
    w.quiet = true;
    for (unsigned i = 0; i < 20; i++) {
        struct becalm_request hasty = {.idempotent = true, .deadline_at = w.now + 50 * MS + MS / 2};
        world_call(&w, &(struct plan){.request = hasty, .reply = {reply_kind(50 * MS, BECALM_OUTCOME_TIMED_OUT)}});
        world_run(&w, w.now + 100 * MS);
    }
    assert_int_equal(w.call[19]->call.record.reason, BECALM_WHY_DEADLINE);
    assert_int_equal(becalm_limit_now(w.target.limit, &w.policy.limit), 1000);
    assert_int_equal(becalm_breaker_state(w.target.breaker), BECALM_BREAKER_CLOSED);
    world_close(&w);
}

static void test_story__answers_whose_bodies_take_minutes_are_successes_at_their_heads(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    world_open(&w, 0);
    w.quiet = true;
    struct reply stream = reply_ok(5 * MS);
    stream.head_first = true;
    stream.body = 600 * BECALM_S;
    for (unsigned i = 0; i < 60; i++) {
        bool fails = i % 2 == 0;
        world_call(&w, &(struct plan){.request = post, .reply = {fails ? reply_status(5 * MS, 502) : stream}});
        world_run(&w, w.now + 20 * MS);
    }
    assert_int_equal(becalm_breaker_state(w.target.breaker), BECALM_BREAKER_CLOSED);
    world_close(&w);
}

static void test_story__retries_that_waited_do_not_rush_a_breaker_that_is_due_for_a_probe(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.breaker.min_calls = 3;
    w.policy.backoff.base = 1500 * MS;
    w.policy.budget.kind = BECALM_BUDGET_NONE;
    world_open(&w, 0);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_status(10 * MS, 503), reply_ok(MS)}});
    world_call(&w, &(struct plan){.request = get, .reply = {reply_status(10 * MS, 503), reply_ok(MS)}});
    for (int i = 0; i < 3; i++) {
        world_call(&w, &(struct plan){.request = post, .reply = {reply_status(20 * MS, 503)}});
    }
    world_run(&w, 1400 * MS); /* open since 20 ms, for a second at most: a probe is due */
    world_forget(&w);
    world_run(&w, 3 * BECALM_S);
    world_expect(&w, "[1510ms] call 1 wakes -> finish (breaker_open) with the last answer marked spent\n"
                     "[1510ms] call 2 wakes -> finish (breaker_open) with the last answer marked spent\n");
    world_close(&w);
}

static void test_story__a_host_that_fails_is_ejected_though_its_answers_end_well(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    world_open(&w, 2);
    w.quiet = true;
    struct reply bad = reply_status(MS, 502);
    bad.head_first = true;
    bad.body = MS;
    for (unsigned i = 0; i < 40; i++) {
        world_call(&w, &(struct plan){.request = post, .reply = {bad}});
        w.call[i]->plan.reply[0] = w.call[i]->call.slot[0].host == 0 ? bad : reply_ok(MS);
        world_run(&w, w.now + 300 * MS); /* after a failure it is avoided for a second, and then tried again */
    }
    assert_true(becalm_host_ejected(w.target.hosts, 0, w.now));
    assert_false(becalm_host_ejected(w.target.hosts, 1, w.now));
    world_close(&w);
}

static void test_story__a_hedged_call_that_is_asked_to_wait_sends_nothing_at_once(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.hedge.enabled = true;
    w.policy.hedge.delay = 50 * MS;
    world_open(&w, 0);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_hint(10 * MS, 503, 30 * BECALM_S), reply_ok(MS)}});
    world_run(&w, BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[ 10ms] call 1 got rejected 503 on 0 -> answer, finish (stopped) marked spent\n");
    world_close(&w);
}

static void test_story__an_attempt_that_the_host_gave_up_ends_the_call_as_cancelled(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    world_open(&w, 0);
    world_call(&w, &(struct plan){.request = get, .reply = {reply_kind(MS, BECALM_OUTCOME_CANCELLED)}});
    world_run(&w, BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[  1ms] call 1 got cancelled on 0 -> finish (cancelled)\n");
    world_close(&w);
}

static void test_story__a_shadow_policy_marks_nothing_and_refuses_nothing(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.shadow = true;
    w.policy.budget.start = 0;
    w.policy.breaker.min_calls = 1;
    world_open(&w, 0);
    for (int i = 0; i < 3; i++) {
        world_call(&w, &(struct plan){.request = get, .reply = {reply_status(10 * MS, 503)}});
        world_run(&w, w.now + 100 * MS);
    }
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[ 10ms] call 1 got rejected 503 on 0 -> answer, finish (retries_off), breaker CLOSED to OPEN\n"
                     "[100ms] call 2 begins -> send 0\n"
                     "[110ms] call 2 got rejected 503 on 0 -> answer, finish (retries_off)\n"
                     "[200ms] call 3 begins -> send 0\n"
                     "[210ms] call 3 got rejected 503 on 0 -> answer, finish (retries_off)\n");
    assert_int_equal(w.call[0]->call.record.would, BECALM_WHY_BUDGET_EMPTY);
    assert_int_equal(w.call[1]->call.record.would, BECALM_WHY_BREAKER_OPEN);
    world_close(&w);
}

static void test_story__the_client_side_rate_holds_calls_back_after_a_429(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.rate.enabled = true;
    w.policy.max_retries = 0;
    world_open(&w, 0);
    w.quiet = true;
    for (int i = 0; i < 20; i++) { /* ten a second, so that there is a rate to be lowered */
        world_call(&w, &(struct plan){.request = get, .reply = {reply_status(10 * MS, i < 19 ? 200 : 429)}});
        world_run(&w, w.now + 100 * MS);
    }
    unsigned paced = 0;
    for (int i = 0; i < 40; i++) {
        unsigned call = world_call(&w, &(struct plan){.request = get, .reply = {reply_ok(10 * MS)}});
        paced += w.call[call - 1]->call.phase == BECALM_PHASE_PACED;
    }
    assert_true(paced > 20);
    world_run(&w, w.now + 60 * BECALM_S);
    for (unsigned i = 20; i < w.count; i++) {
        assert_true(becalm_call_ended(&w.call[i]->call));
    }
    world_close(&w);
}

static void test_story__a_failure_that_the_policy_names_as_safe_is_retried_for_any_method(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    world_open(&w, 0);
    struct reply unavailable = reply_kind(10 * MS, BECALM_OUTCOME_REJECTED);
    unavailable.outcome.safe = true; /* gRPC UNAVAILABLE, listed by name */
    world_call(&w, &(struct plan){.request = post, .reply = {unavailable, reply_ok(10 * MS)}});
    world_run(&w, BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[ 10ms] call 1 got rejected on 0 -> wait 100ms (backoff)\n"
                     "[110ms] call 1 wakes -> send 1\n"
                     "[120ms] call 1 got ok 200 on 1 -> answer, finish (ok)\n");
    world_close(&w);
}

/* A gateway behind callers with the same timeout: on arrival a little less of it is left, which is still enough. */
static void test_story__a_deadline_that_left_nearly_the_whole_timeout_is_a_timeout(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.attempt_timeout = BECALM_S;
    world_open(&w, 0);
    w.quiet = true;
    for (unsigned i = 0; i < 20; i++) {
        struct becalm_request passed_on = {.idempotent = true, .deadline_at = w.now + BECALM_S - MS};
        world_call(&w, &(struct plan){.request = passed_on, .reply = {{.hangs = true}}});
        world_run(&w, w.now + 2 * BECALM_S);
    }
    assert_int_equal(w.call[0]->call.record.attempt[0].outcome, BECALM_OUTCOME_TIMED_OUT);
    assert_int_equal(w.call[0]->call.record.reason, BECALM_WHY_DEADLINE);
    assert_true(becalm_limit_now(w.target.limit, &w.policy.limit) < 1000);
    world_close(&w);
}

/* A host that restarts, see docs/restart.md. */

static const struct plan parks = {
    .request = {.idempotent = true}, .can_park = true, .reply = {{.after = 20 * MS, .outcome = {.status = 200}}}};

static void test_story__calls_that_were_never_sent_wait_for_the_host_to_come_back(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.budget.start = 0;      /* no budget could pay for a retry */
    w.policy.breaker.min_calls = 1; /* one failure would open it */
    world_open(&w, 0);
    w.refusing = 1;
    world_call(&w, &parks);
    world_run(&w, 50 * MS);
    world_call(&w, &(struct plan){.request = post, .can_park = true, .reply = {reply_ok(20 * MS)}});
    world_run(&w, 250 * MS);
    w.refusing = 0;
    world_run(&w, BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[  0ms] call 1 got refused on 0 -> parked\n"
                     "[ 50ms] call 2 begins -> parked\n"
                     "[100ms] call 1 is called by the line -> send 0 (probe)\n"
                     "[100ms] call 1 got refused on 0 -> parked\n"
                     "[200ms] call 1 is called by the line -> send 0 (probe)\n"
                     "[200ms] call 1 got refused on 0 -> parked\n"
                     "[300ms] call 1 is called by the line -> send 0 (probe)\n"
                     "[300ms] call 2 is called by the line -> send 0\n"
                     "[320ms] call 1 got ok 200 on 0 -> answer, finish (ok)\n"
                     "[320ms] call 2 got ok 200 on 0 -> answer, finish (ok)\n");
    const struct becalm_record *record = &w.call[0]->call.record;
    check_eq_u64(record->attempts, 1);
    check_between_u64(record->parked, 299 * MS, 300 * MS);
    check_true(becalm_breaker_closed(w.target.breaker));
    world_close(&w);
}

static void test_story__who_waits_too_long_for_a_host_gets_its_answer(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.attempt_timeout = 2 * BECALM_S;
    world_open(&w, 0);
    w.refusing = 1;
    world_call(&w, &parks);
    world_run(&w, MS);
    world_forget(&w);
    w.quiet = true;
    world_run(&w, 1499 * MS); /* the probes */
    w.quiet = false;
    world_call(&w, &(struct plan){.request = {.idempotent = true, .deadline_at = 1700 * MS}, .can_park = true});
    world_run(&w, 1990 * MS);
    world_call(&w, &parks);
    world_run(&w, 1999 * MS);
    world_call(&w, &(struct plan){.request = {.retry_from_above = true}, .can_park = true});
    world_run(&w, 2100 * MS);
    world_expect(&w, "[1499ms] call 2 begins -> parked\n"
                     "[1500ms] call 1 wakes -> finish (no_host) marked spent, unasked\n"
                     "[1500ms] call 2 is called by the line -> send 0 (probe)\n"
                     "[1500ms] call 2 got refused on 0 -> parked\n"
                     "[1600ms] call 2 is called by the line -> send 0 (probe)\n"
                     "[1600ms] call 2 got refused on 0 -> parked\n"
                     "[1650ms] call 2 wakes -> finish (no_host) marked spent, unasked\n"
                     "[1990ms] call 3 begins -> parked\n"
                     "[1990ms] call 3 is called by the line -> send 0 (probe)\n"
                     "[1990ms] call 3 got refused on 0 -> parked\n"
                     "[1999ms] call 4 begins -> finish (no_host) marked spent, unasked\n"
                     "[2000ms] call 3 is called by the line -> finish (no_host) marked spent, unasked\n");
    world_close(&w);
}

static void test_story__a_service_that_is_gone_is_tried_the_usual_way(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.attempt_timeout = BECALM_S;
    world_open(&w, 0);
    w.refusing = 1;
    w.quiet = true;
    world_call(&w, &parks);
    world_run(&w, 3 * BECALM_S);
    w.quiet = false;
    world_call(&w, &(struct plan){.request = get, .can_park = true, .reply = {reply_ok(MS), reply_ok(20 * MS)}});
    world_run(&w, 3050 * MS);
    w.refusing = 0;
    world_run(&w, 4 * BECALM_S);
    world_expect(&w, "[3000ms] call 2 begins -> send 0\n"
                     "[3000ms] call 2 got refused on 0 -> wait 100ms (backoff)\n"
                     "[3100ms] call 2 wakes -> send 1\n"
                     "[3120ms] call 2 got ok 200 on 1 -> answer, finish (ok)\n");
    assert_int_equal(becalm_restart_peek(w.target.restart, BECALM_S, w.now), BECALM_RESTART_UP);
    world_close(&w);
}

/* It was sent once, and cut when the host was killed. Its retry is paid for, and waits. */
static void test_story__a_retry_that_no_host_takes_waits_as_it_was_paid(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    world_open(&w, 0);
    struct plan cut = {
        .request = get, .can_park = true, .reply = {reply_kind(10 * MS, BECALM_OUTCOME_BROKEN), reply_ok(20 * MS)}};
    world_call(&w, &cut);
    world_call(&w, &cut);
    world_run(&w, 10 * MS);
    w.refusing = 1;
    world_run(&w, 150 * MS);
    check_eq_u64(becalm_budget_left(w.target.budget, &w.policy.budget, w.now), 0); /* one token, and it is held */
    w.refusing = 0;
    world_run(&w, BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[  0ms] call 2 begins -> send 0\n"
                     "[ 10ms] call 1 got broken on 0 -> wait 100ms (backoff)\n"
                     "[ 10ms] call 2 got broken on 0 -> finish (budget_empty) marked spent\n"
                     "[110ms] call 1 wakes -> send 1\n"
                     "[110ms] call 1 got refused on 1 -> parked\n"
                     "[210ms] call 1 is called by the line -> send 1 (probe)\n"
                     "[230ms] call 1 got ok 200 on 1 -> answer, finish (ok)\n");
    check_eq_u64(becalm_budget_left(w.target.budget, &w.policy.budget, w.now), BECALM_TOKEN);
    world_close(&w);
}

static void test_story__one_of_two_hosts_that_refuses_is_left_and_two_are_waited_for(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.backoff.base = 10 * MS;
    world_open(&w, 2);
    w.refusing = 2;
    struct plan plan = {.request = post, .can_park = true, .reply = {reply_ok(5 * MS), reply_ok(5 * MS)}};
    w.quiet = true;
    for (int i = 0; i < 8; i++) { /* some go to the host that refuses, and then to the other host */
        world_call(&w, &plan);
        world_run(&w, w.now + 50 * MS);
        check_eq_u64(w.call[i]->call.record.reason, BECALM_WHY_OK);
        check_eq_u64(w.call[i]->call.record.parked, 0);
    }
    w.refusing = 3;
    w.quiet = false;
    world_call(&w, &plan);
    world_run(&w, w.now + 50 * MS);
    check_eq_u64(becalm_restart_parked(w.target.restart), 1);
    world_forget(&w);
    w.refusing = 2;
    world_run(&w, w.now + BECALM_S);
    check_eq_u64(w.call[8]->call.record.reason, BECALM_WHY_OK);
    check_true(strstr(w.trace, "to host 0 (probe)") != NULL);
    world_close(&w);
}

/* The failures before the ejection do not count any more: the host is another process. */
static void test_story__a_host_that_is_back_is_not_ejected(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.breaker.enabled = false;
    w.policy.max_retries = 0;
    world_open(&w, 2);
    w.quiet = true;
    for (int i = 0; i < 10; i++) {
        becalm_hosts_sent(w.target.hosts, 0, w.now);
        becalm_hosts_note(w.target.hosts, &w.policy.outlier, &(struct becalm_moment){.now = w.now}, 0,
                          &(struct becalm_outcome){.kind = BECALM_OUTCOME_REFUSED, .no_listener = true});
    }
    becalm_restart_refused(w.target.restart, w.target.hosts, &w.policy.outlier, 0, w.now);
    check_true(becalm_host_ejected(w.target.hosts, 0, w.now));
    w.refusing = 3;
    world_call(&w, &parks);
    world_run(&w, w.now + 250 * MS);
    check_eq_u64(becalm_restart_parked(w.target.restart), 1);
    w.refusing = 2;
    world_run(&w, w.now + 250 * MS);
    check_eq_u64(w.call[0]->call.record.reason, BECALM_WHY_OK);
    check_true(!becalm_host_ejected(w.target.hosts, 0, w.now));
    world_close(&w);
}

static void test_story__a_parked_call_whose_caller_goes_is_over_and_one_that_was_left_is_still_sent(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    world_open(&w, 0);
    struct plan cut = parks;
    cut.reply[0] = reply_kind(MS, BECALM_OUTCOME_BROKEN);
    world_call(&w, &cut);
    world_run(&w, 2 * MS);
    w.refusing = 1;
    world_call(&w, &parks);
    world_call(&w, &parks);
    world_run(&w, 150 * MS);
    world_forget(&w);
    world_leave(&w, 1); /* a retry is not begun for it */
    world_leave(&w, 2);
    world_cancel(&w, 3);
    w.refusing = 0;
    world_run(&w, BECALM_S);
    world_expect(&w, "[150ms] call 1 may have been left -> finish (cancelled)\n"
                     "[150ms] call 2 may have been left -> goes on\n"
                     "[150ms] call 3 is cancelled -> finish (cancelled)\n"
                     "[202ms] call 2 is called by the line -> send 0 (probe)\n"
                     "[222ms] call 2 got ok 200 on 0 -> answer, finish (ok)\n");
    check_eq_u64(becalm_budget_left(w.target.budget, &w.policy.budget, w.now), BECALM_TOKEN);
    world_close(&w);
}

/* They pass the limit as other calls do, but neither their patience nor CoDel ends them. */
static void test_story__who_was_parked_waits_for_a_slot_longer_than_others(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.attempt_timeout = 2 * BECALM_S;
    w.policy.gate.min_queue = 0;
    becalm_limit_defaults(&w.policy.limit, BECALM_LIMIT_FIXED);
    w.policy.limit.max = 1;
    world_open(&w, 0);
    w.refusing = 1;
    struct plan slow = {.request = get, .can_park = true, .can_wait = true, .reply = {reply_ok(400 * MS)}};
    world_call(&w, &slow);
    world_call(&w, &slow);
    world_call(&w, &slow);
    w.refusing = 0;
    world_run(&w, 2 * BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[  0ms] call 2 begins -> queued\n"
                     "[  0ms] call 3 begins -> queued\n"
                     "[  0ms] call 1 got refused on 0 -> parked\n"
                     "[  0ms] call 2 is called by the gate -> parked\n"
                     "[  0ms] call 3 is called by the gate -> parked\n"
                     "[100ms] call 1 is called by the line -> send 0 (probe)\n"
                     "[100ms] call 2 is called by the line -> queued\n"
                     "[100ms] call 3 is called by the line -> queued\n"
                     "[500ms] call 1 got ok 200 on 0 -> answer, finish (ok)\n"
                     "[500ms] call 2 is called by the gate -> send 0\n"
                     "[900ms] call 2 got ok 200 on 0 -> answer, finish (ok)\n"
                     "[900ms] call 3 is called by the gate -> send 0\n"
                     "[1300ms] call 3 got ok 200 on 0 -> answer, finish (ok)\n");
    world_close(&w);
}

static void test_story__no_more_calls_are_parked_than_the_gate_has_room_for(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.gate.max_queue = 2;
    world_open(&w, 0);
    w.refusing = 1;
    for (int i = 0; i < 4; i++) {
        world_call(&w, &parks);
        world_run(&w, w.now + 10 * MS);
    }
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[  0ms] call 1 got refused on 0 -> parked\n"
                     "[ 10ms] call 2 begins -> parked\n"
                     "[ 20ms] call 3 begins -> finish (no_host) marked spent, unasked\n"
                     "[ 30ms] call 4 begins -> finish (no_host) marked spent, unasked\n");
    world_close(&w);
}

static void test_story__a_policy_may_not_park_and_a_shadow_never_does(void **state)
{
    (void)state;
    for (int shadow = 0; shadow < 2; shadow++) {
        struct world w;
        world_begin(&w);
        w.policy.restart.enabled = shadow != 0;
        w.policy.shadow = shadow != 0;
        w.policy.max_retries = 0;
        world_open(&w, 0);
        w.refusing = 1;
        world_call(&w, &parks);
        world_run(&w, MS);
        world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                         "[  0ms] call 1 got refused on 0 -> finish (retries_off)\n");
        world_close(&w);
    }
}

/* A host that is there and has no time for a connection is not one that restarts. */
static void test_story__a_connection_that_nobody_answers_is_not_waited_for(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.max_retries = 0;
    world_open(&w, 0);
    world_call(
        &w, &(struct plan){.request = get, .can_park = true, .reply = {reply_kind(100 * MS, BECALM_OUTCOME_REFUSED)}});
    world_run(&w, BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[100ms] call 1 got refused on 0 -> finish (retries_off)\n");
    world_close(&w);
}

static void test_story__a_hedged_call_is_parked_when_its_last_attempt_is_refused(void **state)
{
    (void)state;
    struct world w;
    world_begin(&w);
    w.policy.hedge.enabled = true;
    w.policy.hedge.delay = 50 * MS;
    w.policy.hedge.max = 1;
    world_open(&w, 0);
    world_call(&w, &(struct plan){.request = get,
                                  .can_park = true,
                                  .reply = {reply_kind(80 * MS, BECALM_OUTCOME_BROKEN), reply_ok(20 * MS)}});
    world_run(&w, 10 * MS);
    w.refusing = 1;
    world_run(&w, 140 * MS);
    w.refusing = 0;
    world_run(&w, BECALM_S);
    world_expect(&w, "[  0ms] call 1 begins -> send 0\n"
                     "[ 50ms] call 1 wakes -> send 1 (hedge)\n"
                     "[ 50ms] call 1 got refused on 1 -> goes on\n"
                     "[ 80ms] call 1 got broken on 0 -> send 1 (hedge)\n"
                     "[ 80ms] call 1 got refused on 1 -> parked\n"
                     "[150ms] call 1 is called by the line -> send 1 (probe)\n"
                     "[170ms] call 1 got ok 200 on 1 -> answer, finish (ok)\n");
    world_close(&w);
}

BECALM_TESTS(cmocka_unit_test(test_story__success_after_one_retry), cmocka_unit_test(test_story__the_budget_is_empty),
             cmocka_unit_test(test_story__both_levels_pay_or_none),
             cmocka_unit_test(test_story__the_breaker_opens_in_mid_call_and_stops_retries),
             cmocka_unit_test(test_story__half_open_probes_close_the_breaker),
             cmocka_unit_test(test_story__a_probe_that_fails_is_not_retried),
             cmocka_unit_test(test_story__a_probe_goes_to_the_host_with_fewer_failures_in_a_row),
             cmocka_unit_test(test_story__a_probe_that_is_turned_away_below_gives_its_place_back),
             cmocka_unit_test(test_story__calls_that_are_turned_away_below_do_not_open_the_breaker),
             cmocka_unit_test(test_story__a_lost_probe_does_not_wedge_and_its_late_success_closes),
             cmocka_unit_test(test_story__a_probe_that_is_silent_where_calls_failed_at_once_closes),
             cmocka_unit_test(test_story__the_deadline_leaves_no_time_to_wait),
             cmocka_unit_test(test_story__a_backoff_that_does_not_fit_is_drawn_from_what_does),
             cmocka_unit_test(test_story__what_a_server_asked_for_is_not_shortened),
             cmocka_unit_test(test_story__a_call_that_arrives_too_late_is_not_sent),
             cmocka_unit_test(test_story__one_caller_with_a_deadline_of_1_ms_harms_nobody_else),
             cmocka_unit_test(test_story__a_hedge_wins_and_the_loser_is_cancelled),
             cmocka_unit_test(test_story__a_failure_that_is_not_fatal_hedges_at_once),
             cmocka_unit_test(test_story__a_refused_attempt_goes_to_an_untried_host_at_once),
             cmocka_unit_test(test_story__a_retry_after_is_honoured_with_jitter_on_top),
             cmocka_unit_test(test_story__a_marked_answer_is_not_retried),
             cmocka_unit_test(test_story__a_post_is_retried_only_if_it_was_never_sent),
             cmocka_unit_test(test_story__cancelled_in_mid_sleep_gives_the_token_back),
             cmocka_unit_test(test_story__nothing_is_begun_for_a_caller_that_has_left),
             cmocka_unit_test(test_story__no_hedge_is_sent_for_a_caller_that_has_left),
             cmocka_unit_test(test_story__retries_are_shed_before_first_attempts),
             cmocka_unit_test(test_story__a_call_that_waited_in_line_widens_a_limit_that_rejections_cut),
             cmocka_unit_test(test_story__who_waits_too_long_in_the_gate_is_shed),
             cmocka_unit_test(test_story__an_attempt_that_hangs_is_cut_at_its_timeout_and_goes_elsewhere),
             cmocka_unit_test(test_story__a_host_that_only_queues_stays_in),
             cmocka_unit_test(test_story__an_answer_is_passed_on_at_its_head_and_ends_with_its_body),
             cmocka_unit_test(test_story__a_shadow_policy_says_what_it_would_have_done),
             cmocka_unit_test(test_story__a_slow_call_opens_the_breaker_while_it_is_still_in_flight),
             cmocka_unit_test(test_story__a_deadline_that_the_host_reports_as_a_timeout_harms_nobody_either),
             cmocka_unit_test(test_story__answers_whose_bodies_take_minutes_are_successes_at_their_heads),
             cmocka_unit_test(test_story__retries_that_waited_do_not_rush_a_breaker_that_is_due_for_a_probe),
             cmocka_unit_test(test_story__a_host_that_fails_is_ejected_though_its_answers_end_well),
             cmocka_unit_test(test_story__a_hedged_call_that_is_asked_to_wait_sends_nothing_at_once),
             cmocka_unit_test(test_story__an_attempt_that_the_host_gave_up_ends_the_call_as_cancelled),
             cmocka_unit_test(test_story__a_shadow_policy_marks_nothing_and_refuses_nothing),
             cmocka_unit_test(test_story__the_client_side_rate_holds_calls_back_after_a_429),
             cmocka_unit_test(test_story__a_failure_that_the_policy_names_as_safe_is_retried_for_any_method),
             cmocka_unit_test(test_story__a_deadline_that_left_nearly_the_whole_timeout_is_a_timeout),
             cmocka_unit_test(test_story__calls_that_were_never_sent_wait_for_the_host_to_come_back),
             cmocka_unit_test(test_story__who_waits_too_long_for_a_host_gets_its_answer),
             cmocka_unit_test(test_story__a_service_that_is_gone_is_tried_the_usual_way),
             cmocka_unit_test(test_story__a_retry_that_no_host_takes_waits_as_it_was_paid),
             cmocka_unit_test(test_story__one_of_two_hosts_that_refuses_is_left_and_two_are_waited_for),
             cmocka_unit_test(test_story__a_host_that_is_back_is_not_ejected),
             cmocka_unit_test(test_story__a_parked_call_whose_caller_goes_is_over_and_one_that_was_left_is_still_sent),
             cmocka_unit_test(test_story__who_was_parked_waits_for_a_slot_longer_than_others),
             cmocka_unit_test(test_story__no_more_calls_are_parked_than_the_gate_has_room_for),
             cmocka_unit_test(test_story__a_policy_may_not_park_and_a_shadow_never_does),
             cmocka_unit_test(test_story__a_connection_that_nobody_answers_is_not_waited_for),
             cmocka_unit_test(test_story__a_hedged_call_is_parked_when_its_last_attempt_is_refused))
