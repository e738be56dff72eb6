/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "demo/rehearsal.h"

#include "scenario/scenario.h"

#include <stdlib.h>
#include <string.h>

/* The demonstration's story in virtual time: the same on every machine, so its figures may be held. */

static const char naive[] =
    "version: 1\n"
    "defaults: {maxRetries: 2, growth: constant, initialDelay: 0s, jitter: none, attemptTimeout: 1s, deadline: none, "
    "budget: {kind: none}, breaker: {enabled: false}, limit: {kind: none}, outlier: {enabled: false}}\n";
static const char becalm[] = "version: 1\ndefaults: {attemptTimeout: 1s}\n";

static struct rehearsal_plan plan_of(enum service_fault fault)
{
    return (struct rehearsal_plan){
        .seconds = 40,
        .policy = {naive, becalm},
        .fault = {{fault, 10 * BECALM_S, 10 * BECALM_S}},
        .fault_count = 1,
    };
}

static uint64_t sum(const uint32_t *by_second, uint32_t from, uint32_t to)
{
    uint64_t all = 0;
    for (uint32_t i = from; i < to; i++) {
        all += by_second[i];
    }
    return all;
}

static void test_rehearsal__every_fault_is_a_scenario_that_the_simulator_takes(void **state)
{
    (void)state;
    for (unsigned fault = 0; fault < SERVICE_FAULT_COUNT; fault++) {
        struct rehearsal_plan plan = plan_of((enum service_fault)fault);
        struct becalm_diags *diags = calloc(1, sizeof *diags);
        struct scenario_file *file = NULL;
        char text[4096];
        size_t length = rehearsal_write(&plan, text, sizeof text);
        assert_true(length > 0);
        assert_int_equal(scenario_parse(&file, "demo", text, length, NULL, diags), 0);
        check_eq_u64(diags->warnings, 0);
        check_eq_u64(scenario_of(file)->service_count, LANE_SERVICES);
        check_eq_u64(scenario_of(file)->fault_count, fault == SERVICE_HEALTHY ? 0 : 1);
        scenario_free(file);
        free(diags);
    }
}

static void test_rehearsal__a_scenario_that_does_not_fit_is_none(void **state)
{
    (void)state;
    struct rehearsal_plan plan = plan_of(SERVICE_DEAD);
    char text[64];
    check_eq_u64(rehearsal_write(&plan, text, sizeof text), 0);
}

static void test_rehearsal__without_a_fault_every_call_is_one_request(void **state)
{
    (void)state;
    struct rehearsal_plan plan = plan_of(SERVICE_HEALTHY);
    struct rehearsal_result *result = malloc(sizeof *result);
    rehearsal_run(&plan, result);
    assert_int_equal(result->rc, 0);
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        const struct rehearsal_lane *lane = &result->lane[i];
        check_eq_u64(sum(lane->good, 0, 40), sum(lane->begun, 0, 40));
        assert_true(sum(lane->arrivals, 0, 40) <= sum(lane->begun, 0, 40));
    }
    free(result);
}

static void test_rehearsal__naive_retries_stay_down_and_the_others_are_back_within_seconds(void **state)
{
    (void)state;
    struct rehearsal_plan plan = plan_of(SERVICE_DEAD);
    struct rehearsal_result *result = malloc(sizeof *result);
    rehearsal_run(&plan, result);
    assert_int_equal(result->rc, 0);
    check_eq_u64(result->seconds, 40);
    assert_true(result->events > 0);
    const struct rehearsal_lane *storm = &result->lane[LANE_NAIVE];
    const struct rehearsal_lane *calm = &result->lane[LANE_BECALM];
    assert_true(sum(storm->arrivals, 12, 20) > 20 * sum(storm->begun, 12, 20)); /* 3 x 3 x 3, and queued requests */
    assert_true(sum(calm->arrivals, 10, 20) < sum(calm->begun, 10, 20));
    check_eq_u64(sum(storm->good, 30, 40), 0);
    check_eq_u64(sum(calm->good, 30, 40), sum(calm->begun, 30, 40));
    free(result);
}

static void test_rehearsal__users_who_stop_end_the_storm_there_too(void **state)
{
    (void)state;
    struct rehearsal_plan plan = plan_of(SERVICE_DEAD);
    struct rehearsal_result *result = malloc(sizeof *result);
    plan.seconds = 50;
    plan.pause[plan.pause_count++] = (struct rehearsal_pause){25 * BECALM_S, 12 * BECALM_S};
    rehearsal_run(&plan, result);
    assert_int_equal(result->rc, 0);
    const struct rehearsal_lane *storm = &result->lane[LANE_NAIVE];
    check_eq_u64(sum(storm->good, 21, 25), 0);
    assert_true(sum(storm->begun, 25, 37) <= 5);
    assert_true(sum(storm->begun, 38, 50) > 12 * LANE_RATE / 2);
    check_eq_u64(sum(storm->good, 38, 50), sum(storm->begun, 38, 50));
    free(result);
}

static void test_rehearsal__a_policy_that_is_none_fails(void **state)
{
    (void)state;
    struct rehearsal_plan plan = plan_of(SERVICE_DEAD);
    struct rehearsal_result *result = malloc(sizeof *result);
    plan.policy[LANE_NAIVE] = "defaults: {maxRetries: many}\n";
    rehearsal_run(&plan, result);
    assert_int_equal(result->rc, BECALM_EPARSE);
    free(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rehearsal__every_fault_is_a_scenario_that_the_simulator_takes),
        cmocka_unit_test(test_rehearsal__a_scenario_that_does_not_fit_is_none),
        cmocka_unit_test(test_rehearsal__without_a_fault_every_call_is_one_request),
        cmocka_unit_test(test_rehearsal__naive_retries_stay_down_and_the_others_are_back_within_seconds),
        cmocka_unit_test(test_rehearsal__users_who_stop_end_the_storm_there_too),
        cmocka_unit_test(test_rehearsal__a_policy_that_is_none_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
