/* SPDX-License-Identifier: MIT */
/* The measurements of a run, with handwritten runs: 60 s of 100 calls a second to one service, with a
 * fault from 20 s to 30 s. */

#include "check.h"

#include "sim/measure.h"

#define SECONDS 60u

struct lab {
    struct scenario_service service;
    struct scenario_client client;
    struct scenario_fault fault;
    struct scenario plan;
    uint64_t arrivals[SECONDS], refused[SECONDS], retried[SECONDS], queue[SECONDS], begun[SECONDS], good[SECONDS];
    struct world_service of_service;
    struct world_client of_client;
    struct world_result result;
};

static void lab_begin(struct lab *lab)
{
    memset(lab, 0, sizeof *lab);
    lab->service = (struct scenario_service){.name = "api", .fan_out = 1};
    lab->client = (struct scenario_client){.name = "users", .to = "api", .rate_milli = 100000};
    lab->fault = (struct scenario_fault){.name = "f", .service = "api", .at = 20 * BECALM_S, .length = 10 * BECALM_S};
    lab->plan = (struct scenario){
        .name = "lab",
        .length = SECONDS * BECALM_S,
        .services = &lab->service,
        .service_count = 1,
        .clients = &lab->client,
        .client_count = 1,
        .faults = &lab->fault,
        .fault_count = 1,
    };
    for (uint32_t s = 0; s < SECONDS; s++) {
        lab->arrivals[s] = lab->begun[s] = lab->good[s] = 100;
    }
    lab->of_service.arrivals = lab->arrivals;
    lab->of_service.refused = lab->refused;
    lab->of_service.retried = lab->retried;
    lab->of_service.queue = lab->queue;
    lab->of_client.begun = lab->begun;
    lab->of_client.good = lab->good;
    lab->result.seconds = SECONDS;
    lab->result.service = &lab->of_service;
    lab->result.client = &lab->of_client;
}

static uint32_t retries_stop(const struct lab *lab)
{
    struct measure measure;
    assert_int_equal(measure_take(&lab->plan, &lab->result, &measure), 0);
    uint32_t stop = measure.retries_stop_after_s;
    measure_free(&measure);
    return stop;
}

static void test_measure__without_retries_they_stop_at_once(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    for (uint32_t s = 20; s < 30; s++) {
        lab.retried[s] = 300; /* seconds in the fault do not count */
    }
    check_eq_u64(retries_stop(&lab), 0);
}

static void test_measure__retries_stop_behind_the_last_five_seconds_that_have_more(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    lab.retried[37] = 5; /* 1 % of the 500 calls of its five seconds */
    check_eq_u64(retries_stop(&lab), 0);
    lab.retried[37] = 6;
    check_eq_u64(retries_stop(&lab), 10);
    lab.retried[58] = 100;
    check_eq_u64(retries_stop(&lab), MEASURE_NEVER);
}

static void test_measure__a_backlog_that_drains_is_no_retry(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    for (uint32_t s = 30; s < 40; s++) {
        lab.arrivals[s] = 300;
    }
    check_eq_u64(retries_stop(&lab), 0);
}

static void test_measure__what_was_usual_before_is_usual_after(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    for (uint32_t s = 0; s < SECONDS; s++) {
        lab.retried[s] = 5; /* 25 in five seconds, and so 40 are 3 sigma above */
    }
    check_eq_u64(retries_stop(&lab), 0);
    lab.retried[32] = 20;
    check_eq_u64(retries_stop(&lab), 0);
    lab.retried[32] = 21;
    check_eq_u64(retries_stop(&lab), 5);
}

static uint64_t mean_ppm(const struct lab *lab, uint32_t service)
{
    struct measure measure;
    assert_int_equal(measure_take(&lab->plan, &lab->result, &measure), 0);
    uint64_t mean = measure.service[service].mean_ppm;
    measure_free(&measure);
    return mean;
}

/* Of two clients one calls a service that the other client does not call, and that service calls a third one twice. */
static void test_measure__the_mean_is_against_what_is_offered_to_the_service_itself(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    static const char *const calls[] = {"db", NULL};
    const struct scenario_service service[] = {
        lab.service, {.name = "web", .fan_out = 2, .calls = calls}, {.name = "db", .fan_out = 1}};
    const struct scenario_client client[] = {lab.client, {.name = "others", .to = "web", .rate_milli = 100000}};
    struct world_service of_service[] = {lab.of_service, lab.of_service, lab.of_service};
    struct world_client of_client[] = {lab.of_client, lab.of_client};
    lab.plan.services = service;
    lab.plan.service_count = 3;
    lab.plan.clients = client;
    lab.plan.client_count = 2;
    lab.result.service = of_service;
    lab.result.client = of_client;
    of_client[0].calls_fault = 900;
    of_client[1].calls_fault = 100;
    of_service[0].arrivals_fault = 1800;
    of_service[1].arrivals_fault = 150;
    of_service[2].arrivals_fault = 210;
    check_eq_u64(mean_ppm(&lab, 0), 2000000);
    check_eq_u64(mean_ppm(&lab, 1), 1500000);
    check_eq_u64(mean_ppm(&lab, 2), 1050000);
}

static void test_measure__a_fault_of_a_second_has_no_mean(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    lab.of_client.calls_fault = 1;
    check_eq_u64(mean_ppm(&lab, 0), 0);
    lab.of_client.calls_fault = 0;
    check_eq_u64(mean_ppm(&lab, 0), MEASURE_NO_MEAN);
}

static void test_measure__the_longest_queue_is_that_of_the_worst_second(void **state)
{
    (void)state;
    struct lab lab;
    struct measure measure;
    lab_begin(&lab);
    lab.queue[3] = 7;
    lab.queue[41] = 99;
    assert_int_equal(measure_take(&lab.plan, &lab.result, &measure), 0);
    check_eq_u64(measure.service[0].queue_most, 99);
    measure_free(&measure);
}

static uint32_t recovered(const struct lab *lab)
{
    struct measure measure;
    assert_int_equal(measure_take(&lab->plan, &lab->result, &measure), 0);
    uint32_t after = measure.recovered_after_s;
    measure_free(&measure);
    return after;
}

static void test_measure__recovered_is_the_first_of_ten_good_seconds_in_a_row(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    lab.good[25] = 0; /* seconds in the fault do not count */
    check_eq_u64(recovered(&lab), 0);
    lab.good[39] = 98; /* nine good seconds are not ten */
    check_eq_u64(recovered(&lab), 10);
    lab.good[39] = 99;
    check_eq_u64(recovered(&lab), 0);
    lab.begun[39] = 1000;
    lab.good[39] = 989;
    check_eq_u64(recovered(&lab), 10);
    lab.good[51] = 0;
    lab.good[45] = 0;
    check_eq_u64(recovered(&lab), MEASURE_NEVER); /* the last eight are good, but there was time enough */
}

static void test_measure__seconds_without_calls_are_neither_good_nor_bad(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    for (uint32_t s = 30; s < SECONDS; s++) {
        lab.good[s] = 0;
        lab.begun[s] = s % 3 == 0 ? 100 : 0;
    }
    check_eq_u64(recovered(&lab), MEASURE_NEVER);
    for (uint32_t s = 33; s < SECONDS; s += 3) {
        lab.good[s] = 100;
    }
    check_eq_u64(recovered(&lab), MEASURE_TOO_SHORT); /* nine */
    lab.begun[32] = lab.good[32] = 1;
    check_eq_u64(recovered(&lab), 2);
}

static void test_measure__a_run_that_ends_too_soon_is_not_one_that_never_recovers(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    lab.fault.at = 41 * BECALM_S; /* nine seconds are left */
    check_eq_u64(recovered(&lab), MEASURE_TOO_SHORT);
    lab.good[51] = 0;
    check_eq_u64(recovered(&lab), MEASURE_TOO_SHORT);
    lab.good[SECONDS - 1] = 0;
    check_eq_u64(recovered(&lab), MEASURE_NEVER);
    lab.good[51] = lab.good[SECONDS - 1] = 100;
    lab.fault.at = 40 * BECALM_S;
    check_eq_u64(recovered(&lab), 0);
}

static void test_measure__a_fault_that_ends_within_a_second_is_over_with_the_next(void **state)
{
    (void)state;
    struct lab lab;
    lab_begin(&lab);
    lab.fault.length = 10 * BECALM_S + 1;
    lab.good[30] = 0; /* the fault's */
    check_eq_u64(recovered(&lab), 0);
    lab.good[31] = 0;
    check_eq_u64(recovered(&lab), 1);
}

static void test_measure__a_share_of_no_calls_is_none(void **state)
{
    (void)state;
    struct lab lab;
    struct measure measure;
    lab_begin(&lab);
    lab.of_client.phase[WORLD_BEFORE] = (struct world_tally){10, 10};
    lab.of_client.phase[WORLD_AFTER] = (struct world_tally){30, 0};
    assert_int_equal(measure_take(&lab.plan, &lab.result, &measure), 0);
    check_eq_u64(measure.success_before_ppm, 1000000);
    check_eq_u64(measure.success_in_fault_ppm, MEASURE_NO_SHARE);
    check_eq_u64(measure.success_after_ppm, 0);
    check_eq_u64(measure.success_ppm, 250000);
    measure_free(&measure);
}

BECALM_TESTS(cmocka_unit_test(test_measure__recovered_is_the_first_of_ten_good_seconds_in_a_row),
             cmocka_unit_test(test_measure__seconds_without_calls_are_neither_good_nor_bad),
             cmocka_unit_test(test_measure__a_run_that_ends_too_soon_is_not_one_that_never_recovers),
             cmocka_unit_test(test_measure__a_fault_that_ends_within_a_second_is_over_with_the_next),
             cmocka_unit_test(test_measure__a_share_of_no_calls_is_none),
             cmocka_unit_test(test_measure__without_retries_they_stop_at_once),
             cmocka_unit_test(test_measure__retries_stop_behind_the_last_five_seconds_that_have_more),
             cmocka_unit_test(test_measure__a_backlog_that_drains_is_no_retry),
             cmocka_unit_test(test_measure__what_was_usual_before_is_usual_after),
             cmocka_unit_test(test_measure__the_mean_is_against_what_is_offered_to_the_service_itself),
             cmocka_unit_test(test_measure__a_fault_of_a_second_has_no_mean),
             cmocka_unit_test(test_measure__the_longest_queue_is_that_of_the_worst_second), )
