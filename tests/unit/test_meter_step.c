/* SPDX-License-Identifier: MIT */
#include "check.h"

#include "meter/step.h"

struct lab {
    struct meter meter;
    struct meter_steps steps;
};

static void begin(struct lab *lab)
{
    memset(lab, 0, sizeof *lab);
    meter_begin(&lab->meter, &lab->steps);
}

static unsigned step(struct lab *lab, const struct becalm_action *action, becalm_ns now)
{
    unsigned means = meter_step_means(&lab->steps, action);
    meter_step(&lab->meter, &lab->steps, means, action, now);
    return means;
}

static unsigned waits(struct lab *lab, enum becalm_reason why, becalm_ns now)
{
    return step(lab, &(struct becalm_action){.why = why, .wait = {.wait = 30 * BECALM_MS}}, now);
}

static unsigned sends(struct lab *lab, uint32_t attempt, enum becalm_reason why, becalm_ns now)
{
    return step(lab, &(struct becalm_action){.flags = BECALM_DO_SEND, .attempt = attempt, .why = why}, now);
}

static void test_meter_step__a_first_attempt_and_its_end_mean_nothing(void **state)
{
    (void)state;
    static struct lab lab;
    begin(&lab);
    check_eq_u64(sends(&lab, 0, BECALM_WHY_NONE, 1), 0);
    check_eq_u64(step(&lab, &(struct becalm_action){.flags = BECALM_DO_FINISH, .why = BECALM_WHY_OK}, 2), 0);
    check_eq_u64(lab.meter.active, 1);
    check_eq_u64(lab.meter.active_retries, 0);
    check_eq_u64(lab.meter.retries[0], 0);
}

static void test_meter_step__a_retry_counts_when_it_is_sent_with_the_time_that_it_waited(void **state)
{
    (void)state;
    static struct lab lab;
    begin(&lab);
    check_eq_u64(waits(&lab, BECALM_WHY_BACKOFF, 100 * BECALM_MS), METER_STEP_WAITS);
    check_eq_u64(lab.meter.active_retries, 1);
    check_eq_u64(lab.meter.retries[0], 0);
    check_eq_u64(sends(&lab, 1, BECALM_WHY_NONE, 140 * BECALM_MS), METER_STEP_SENDS);
    check_eq_u64(lab.meter.retries[0], 1);
    check_eq_u64(lab.meter.delay.sum_us, 40000); /* not the 30 ms that were planned */
    check_eq_u64(lab.steps.waited, 40 * BECALM_MS);
    check_eq_u64(lab.steps.why, BECALM_WHY_BACKOFF);
    check_eq_u64(lab.steps.wait.wait, 30 * BECALM_MS);
}

static void test_meter_step__a_call_with_two_retries_is_one_that_retries(void **state)
{
    (void)state;
    static struct lab lab;
    begin(&lab);
    (void)waits(&lab, BECALM_WHY_BACKOFF, 1);
    (void)sends(&lab, 1, BECALM_WHY_NONE, 2);
    check_eq_u64(waits(&lab, BECALM_WHY_HINT, 3), METER_STEP_WAITS);
    check_eq_u64(sends(&lab, 2, BECALM_WHY_NONE, 4), METER_STEP_SENDS);
    check_eq_u64(lab.meter.active_retries, 1);
    check_eq_u64(lab.meter.retries[0], 1);
    check_eq_u64(lab.meter.retries[1], 1);
    check_eq_u64(lab.steps.why, BECALM_WHY_HINT);
    struct becalm_record record = {.reason = BECALM_WHY_OK, .attempts = 3};
    meter_end(&lab.meter, &lab.steps, &record, 200);
    check_eq_u64(lab.meter.active_retries, 0);
    check_eq_u64(lab.meter.active, 0);
    check_eq_u64(lab.meter.code_number[0], 200);
    check_eq_u64(lab.meter.code[0], 1);
}

static void test_meter_step__a_hedge_is_sent_without_a_wait(void **state)
{
    (void)state;
    static struct lab lab;
    begin(&lab);
    check_eq_u64(sends(&lab, 1, BECALM_WHY_HEDGE, 7 * BECALM_MS), METER_STEP_SENDS);
    check_eq_u64(lab.steps.why, BECALM_WHY_HEDGE);
    check_eq_u64(lab.steps.waited, 0);
    check_eq_u64(lab.meter.retries[0], 1);
    check_eq_u64(lab.meter.active_retries, 0);
}

static void test_meter_step__a_retry_that_no_host_took_counts_once_however_often_it_is_sent(void **state)
{
    (void)state;
    static struct lab lab;
    begin(&lab);
    (void)waits(&lab, BECALM_WHY_BACKOFF, 1);
    check_eq_u64(sends(&lab, 1, BECALM_WHY_NONE, 2), METER_STEP_SENDS);
    struct becalm_action parked = {.flags = BECALM_DO_PARK, .why = BECALM_WHY_NO_HOST};
    check_eq_u64(step(&lab, &parked, 3), 0);
    meter_attempt_ended(&lab.meter, &parked, 0);
    check_eq_u64(sends(&lab, 1, BECALM_WHY_NONE, 4), 0);
    check_eq_u64(sends(&lab, 1, BECALM_WHY_NONE, 5), 0);
    check_eq_u64(lab.meter.retries[0], 1);
    check_eq_u64(lab.meter.probes, 1);
    check_eq_u64(lab.meter.attempts[METER_ERROR], 0);
}

static void test_meter_step__a_retry_counts_also_under_the_number_of_a_hedge_that_no_host_took(void **state)
{
    (void)state;
    static struct lab lab;
    begin(&lab);
    (void)sends(&lab, 1, BECALM_WHY_HEDGE, 2);
    check_eq_u64(waits(&lab, BECALM_WHY_BACKOFF, 3), METER_STEP_WAITS);
    check_eq_u64(sends(&lab, 1, BECALM_WHY_NONE, 4), METER_STEP_SENDS);
    check_eq_u64(lab.steps.why, BECALM_WHY_BACKOFF);
}

static void test_meter_step__a_breaker_that_opens_is_told_beside_the_wait(void **state)
{
    (void)state;
    static struct lab lab;
    begin(&lab);
    struct becalm_action action = {
        .why = BECALM_WHY_BACKOFF, .breaker_from = BECALM_BREAKER_CLOSED, .breaker_to = BECALM_BREAKER_OPEN};
    check_eq_u64(step(&lab, &action, 1), METER_STEP_BREAKER | METER_STEP_WAITS);
    check_eq_u64(lab.meter.transitions[BECALM_BREAKER_CLOSED][BECALM_BREAKER_OPEN], 1);
}

static void test_meter_step__an_attempt_that_ended_counts_by_its_status(void **state)
{
    (void)state;
    static struct lab lab;
    const struct becalm_action goes_on = {.why = BECALM_WHY_BACKOFF};
    begin(&lab);
    meter_attempt_ended(&lab.meter, &goes_on, 503);
    meter_attempt_ended(&lab.meter, &goes_on, 0);
    check_eq_u64(lab.meter.attempts[METER_SERVER_ERROR], 1);
    check_eq_u64(lab.meter.attempts[METER_ERROR], 1);
    check_eq_u64(lab.meter.probes, 0);
}

BECALM_TESTS(cmocka_unit_test(test_meter_step__a_first_attempt_and_its_end_mean_nothing),
             cmocka_unit_test(test_meter_step__a_retry_counts_when_it_is_sent_with_the_time_that_it_waited),
             cmocka_unit_test(test_meter_step__a_call_with_two_retries_is_one_that_retries),
             cmocka_unit_test(test_meter_step__a_hedge_is_sent_without_a_wait),
             cmocka_unit_test(test_meter_step__a_retry_that_no_host_took_counts_once_however_often_it_is_sent),
             cmocka_unit_test(test_meter_step__a_retry_counts_also_under_the_number_of_a_hedge_that_no_host_took),
             cmocka_unit_test(test_meter_step__a_breaker_that_opens_is_told_beside_the_wait),
             cmocka_unit_test(test_meter_step__an_attempt_that_ended_counts_by_its_status))
