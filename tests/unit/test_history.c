/* SPDX-License-Identifier: MIT */
#include "check.h"

#include "admin/history.h"

/* Second number n of a target that gets n requests in it. */
static struct history_sample second(uint32_t n)
{
    return (struct history_sample){.wall_ms = 1000u * n, .span_ms = 1000, .arrivals = n};
}

static void test_history__begins_empty(void **state)
{
    (void)state;
    struct history_target *target = history_target_new();
    for (int range = 0; range < HISTORY_RANGES; range++) {
        check_eq_u64(history_target_count(target, (enum history_range)range), 0);
    }
    check_eq_u64(history_target_moves(target), 0);
    history_target_free(target);
    history_target_free(NULL);
}

/* One more second, at whose end the breaker is so. */
static void breaker_second(struct history_target *target, uint32_t n, enum becalm_breaker_state state, uint32_t opened,
                           uint32_t failed)
{
    struct history_sample sample = second(n);
    sample.breaker = (uint32_t)state;
    history_target_stay(target, &sample, opened, failed);
}

static void check_stay(const struct history_target *target, uint32_t index, enum becalm_breaker_state state,
                       uint64_t since, uint64_t until, uint32_t failed)
{
    const struct history_stay *stay = history_target_stay_at(target, index);
    check_eq_u64(stay->state, state);
    check_eq_u64(stay->since_ms, since);
    check_eq_u64(stay->until_ms, until);
    check_eq_u64(stay->probes_failed, failed);
}

static void test_history__an_outage_of_hours_is_one_stay_whose_beginning_is_known(void **state)
{
    (void)state;
    struct history_target *target = history_target_new();
    breaker_second(target, 1, BECALM_BREAKER_CLOSED, 0, 0);
    breaker_second(target, 2, BECALM_BREAKER_OPEN, 1, 0);
    for (uint32_t n = 3; n < 7200; n++) { /* each second it tries, and the probe fails */
        breaker_second(target, n, n % 2 == 0 ? BECALM_BREAKER_OPEN : BECALM_BREAKER_HALF_OPEN, 1, 1);
    }
    check_eq_u64(history_target_stays(target), 2);
    check_stay(target, 0, BECALM_BREAKER_CLOSED, 1000, 2000, 0);
    check_stay(target, 1, BECALM_BREAKER_OPEN, 2000, 0, 7197);
    breaker_second(target, 7200, BECALM_BREAKER_CLOSED, 0, 0);
    check_stay(target, 1, BECALM_BREAKER_OPEN, 2000, 7200000, 7197);
    check_stay(target, 2, BECALM_BREAKER_CLOSED, 7200000, 0, 0);
    breaker_second(target, 7201, BECALM_BREAKER_CLOSED, 1, 0); /* it opened and closed within a second */
    check_stay(target, 3, BECALM_BREAKER_OPEN, 7201000, 7201000, 0);
    check_stay(target, 4, BECALM_BREAKER_CLOSED, 7201000, 0, 0);
    breaker_second(target, 7202, BECALM_BREAKER_FORCED_OPEN, 0, 0);
    check_stay(target, 5, BECALM_BREAKER_FORCED_OPEN, 7202000, 0, 0);
    history_target_free(target);
}

static void test_history__keeps_the_latest_stays(void **state)
{
    (void)state;
    struct history_target *target = history_target_new();
    for (uint32_t n = 1; n <= 100; n++) {
        breaker_second(target, n, n % 2 == 0 ? BECALM_BREAKER_OPEN : BECALM_BREAKER_CLOSED, n % 2 == 0, 0);
    }
    check_eq_u64(history_target_stays(target), HISTORY_STAYS);
    check_stay(target, 0, BECALM_BREAKER_CLOSED, 69000, 70000, 0);
    check_stay(target, HISTORY_STAYS - 1, BECALM_BREAKER_OPEN, 100000, 0, 0);
    history_target_free(target);
}

static void test_history__knows_when_a_call_succeeded_for_the_last_time(void **state)
{
    (void)state;
    struct history_target *target = history_target_new();
    check_eq_u64(history_target_success_at(target), 0);
    for (uint32_t n = 1; n <= 1000; n++) { /* longer than seconds are kept */
        struct history_sample sample = second(n);
        sample.failed = n;
        sample.after_retry = n == 7;
        history_target_note(target, &sample);
    }
    check_eq_u64(history_target_success_at(target), 7000);
    history_target_free(target);
}

static void test_history__keeps_minutes_by_the_second_and_forgets_the_oldest(void **state)
{
    (void)state;
    struct history_target *target = history_target_new();
    for (uint32_t n = 1; n <= 400; n++) {
        struct history_sample sample = second(n);
        history_target_note(target, &sample);
    }
    check_eq_u64(history_target_count(target, HISTORY_MINUTES), 360);
    check_eq_u64(history_target_at(target, HISTORY_MINUTES, 0)->arrivals, 41);
    check_eq_u64(history_target_at(target, HISTORY_MINUTES, 359)->arrivals, 400);
    history_target_free(target);
}

static void test_history__a_longer_step_adds_what_happened_and_keeps_how_it_ended(void **state)
{
    (void)state;
    struct history_target *target = history_target_new();
    for (uint32_t n = 1; n <= 19; n++) {
        struct history_sample sample = second(n);
        sample.refused[HISTORY_DEADLINE] = 2;
        sample.in_flight = n == 3 ? 70 : 1;
        sample.breaker = n == 10 ? BECALM_BREAKER_OPEN : BECALM_BREAKER_CLOSED;
        sample.budget_left = n;
        history_target_note(target, &sample);
    }
    check_eq_u64(history_target_count(target, HISTORY_HOUR), 1); /* the second step is not over */
    const struct history_sample *step = history_target_at(target, HISTORY_HOUR, 0);
    check_eq_u64(step->span_ms, 10000);
    check_eq_u64(step->wall_ms, 10000);
    check_eq_u64(step->arrivals, 55);
    check_eq_u64(step->refused[HISTORY_DEADLINE], 20);
    check_eq_u64(step->in_flight, 70);
    check_eq_u64(step->breaker, BECALM_BREAKER_OPEN);
    check_eq_u64(step->budget_left, 10);
    history_target_free(target);
}

static void test_history__the_step_that_is_running_is_told_on_its_own(void **state)
{
    (void)state;
    struct history_target *target = history_target_new();
    struct history_sample running;
    check_true(!history_target_running(target, HISTORY_DAY, &running));
    for (uint32_t n = 1; n <= 193; n++) { /* a step of a day, one of an hour, and three seconds */
        struct history_sample sample = second(n);
        history_target_note(target, &sample);
    }
    check_true(!history_target_running(target, HISTORY_MINUTES, &running));
    check_true(history_target_running(target, HISTORY_HOUR, &running));
    check_eq_u64(running.span_ms, 3000);
    check_eq_u64(running.arrivals, 191 + 192 + 193);
    check_true(history_target_running(target, HISTORY_DAY, &running));
    check_eq_u64(running.span_ms, 13000);
    check_eq_u64(running.wall_ms, 193000);
    check_eq_u64(running.arrivals, 193u * 194 / 2 - 180u * 181 / 2);
    history_target_free(target);
}

static void test_history__loses_no_request_between_its_ranges(void **state)
{
    (void)state;
    struct history_target *target = history_target_new();
    uint64_t sum = 0;
    for (uint32_t n = 1; n <= 3600; n++) {
        struct history_sample sample = second(n);
        history_target_note(target, &sample);
    }
    check_eq_u64(history_target_count(target, HISTORY_HOUR), 360);
    check_eq_u64(history_target_count(target, HISTORY_DAY), 20);
    for (uint32_t i = 0; i < 20; i++) {
        sum += history_target_at(target, HISTORY_DAY, i)->arrivals;
    }
    check_eq_u64(sum, 3600u * 3601 / 2);
    history_target_free(target);
}

static void test_history__a_day_is_bounded(void **state)
{
    (void)state;
    struct history_target *target = history_target_new();
    for (uint32_t n = 0; n < 30 * 3600; n++) {
        struct history_sample sample = second(1);
        history_target_note(target, &sample);
    }
    check_eq_u64(history_target_count(target, HISTORY_DAY), 480);
    check_eq_u64(history_target_at(target, HISTORY_DAY, 479)->arrivals, 180);
    history_target_free(target);
}

static void test_history__the_latest_moves_of_a_breaker_are_kept(void **state)
{
    (void)state;
    struct history_target *target = history_target_new();
    for (uint32_t n = 1; n <= HISTORY_MOVES + 5; n++) {
        history_target_move(target, &(struct history_move){.wall_ms = n, .from = 0, .to = 1, .count = 1});
    }
    check_eq_u64(history_target_moves(target), HISTORY_MOVES);
    check_eq_u64(history_target_move_at(target, 0)->wall_ms, 6);
    check_eq_u64(history_target_move_at(target, HISTORY_MOVES - 1)->wall_ms, HISTORY_MOVES + 5);
    history_target_free(target);
}

/* `seconds` equal seconds. */
static void pass(struct history_service *service, uint32_t seconds, const struct history_sample *each)
{
    for (uint32_t i = 0; i < seconds; i++) {
        history_service_note(service, each);
    }
}

static void test_history__an_idle_service_has_no_sign_of_a_storm(void **state)
{
    (void)state;
    struct history_storm storm;
    struct history_service *service = history_service_new();
    history_service_storm(service, &storm);
    check_eq_u64(storm.retry_ppm, 0);
    check_true(!storm.has_growth);
    pass(service, 400, &(struct history_sample){0});
    history_service_storm(service, &storm);
    check_eq_u64(storm.retry_ppm, 0);
    check_true(!storm.has_growth); /* nothing to compare with */
    check_eq_u64(storm.in_flight, 0);
    history_service_free(service);
    history_service_free(NULL);
}

static void test_history__the_share_of_retries_is_of_five_minutes(void **state)
{
    (void)state;
    struct history_storm storm;
    struct history_service *service = history_service_new();
    pass(service, 1, &(struct history_sample){.attempts = 1000, .retries = 1000, .in_flight = 500});
    pass(service, 100, &(struct history_sample){.attempts = 10, .retries = 6, .in_flight = 7});
    history_service_storm(service, &storm);
    check_eq_u64(storm.attempts, 2000);
    check_eq_u64(storm.retry_ppm, 800000);
    check_eq_u64(storm.in_flight, 500);
    pass(service, 200, &(struct history_sample){.attempts = 10, .retries = 6, .in_flight = 7});
    history_service_storm(service, &storm);
    check_eq_u64(storm.retry_ppm, 600000); /* the first second is too old now */
    check_eq_u64(storm.in_flight, 7);
    history_service_free(service);
}

static void test_history__growth_compares_a_minute_with_the_one_five_minutes_ago(void **state)
{
    (void)state;
    struct history_storm storm;
    struct history_service *service = history_service_new();
    pass(service, 60, &(struct history_sample){.arrivals = 10});
    pass(service, 239, &(struct history_sample){.arrivals = 1});
    pass(service, 60, &(struct history_sample){.arrivals = 40});
    history_service_storm(service, &storm);
    check_true(!storm.has_growth); /* one second is missing */
    pass(service, 1, &(struct history_sample){.arrivals = 40});
    history_service_storm(service, &storm);
    check_true(storm.has_growth);
    check_eq_u64(storm.growth_ppm, 4000000);
    history_service_free(service);
}

static void test_history__tells_the_seconds_that_it_knows(void **state)
{
    (void)state;
    uint32_t arrivals;
    uint32_t attempts;
    struct history_service *service = history_service_new();
    check_true(!history_service_second(service, 0, &arrivals, &attempts));
    pass(service, 1, &(struct history_sample){.arrivals = 3, .attempts = 4});
    pass(service, 1, &(struct history_sample){.arrivals = 5, .attempts = 6});
    check_true(history_service_second(service, 1, &arrivals, &attempts));
    check_eq_u64(arrivals, 3);
    check_eq_u64(attempts, 4);
    check_true(!history_service_second(service, 2, &arrivals, &attempts));
    pass(service, 1000, &(struct history_sample){0});
    check_true(!history_service_second(service, 360, &arrivals, &attempts));
    history_service_free(service);
}

BECALM_TESTS(cmocka_unit_test(test_history__begins_empty),
             cmocka_unit_test(test_history__an_outage_of_hours_is_one_stay_whose_beginning_is_known),
             cmocka_unit_test(test_history__keeps_the_latest_stays),
             cmocka_unit_test(test_history__knows_when_a_call_succeeded_for_the_last_time),
             cmocka_unit_test(test_history__keeps_minutes_by_the_second_and_forgets_the_oldest),
             cmocka_unit_test(test_history__a_longer_step_adds_what_happened_and_keeps_how_it_ended),
             cmocka_unit_test(test_history__the_step_that_is_running_is_told_on_its_own),
             cmocka_unit_test(test_history__loses_no_request_between_its_ranges),
             cmocka_unit_test(test_history__a_day_is_bounded),
             cmocka_unit_test(test_history__the_latest_moves_of_a_breaker_are_kept),
             cmocka_unit_test(test_history__an_idle_service_has_no_sign_of_a_storm),
             cmocka_unit_test(test_history__the_share_of_retries_is_of_five_minutes),
             cmocka_unit_test(test_history__growth_compares_a_minute_with_the_one_five_minutes_ago),
             cmocka_unit_test(test_history__tells_the_seconds_that_it_knows))
