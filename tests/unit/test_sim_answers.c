/* SPDX-License-Identifier: MIT */
/* Answers that go on after their head: streams, downloads. They are no attempts in flight any more. */
#include "sim_lab.h"

/* A hundred streams a second of ten seconds each: a thousand at once, through a limit of 20. */
static struct lab streams_of(const char *gate, const char *role, const char *policy)
{
    struct lab lab;
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "length: 60s\nlink: {latency: 1ms}\n"
                   "policies: {few: {maxRetries: 0, limit: {kind: fixed, max: 20}, gate: {maxQueue: 0}}, "
                   "bounded: {maxRetries: 0, limit: {kind: fixed, max: 20, maxAnswers: 500}, gate: {maxQueue: 0}}}\n"
                   "services: {feed: {time: {constant: 20ms}, body: {constant: 10s}, gate: %s}}\n"
                   "clients: {browsers: {to: feed, rate: 100/s, role: %s}}\n",
                   gate, role);
    lab_open(&lab, text, policy);
    lab_run(&lab);
    return lab;
}

/* Attempts of 20 ms fit into 20 slots; a thousand streams would not. */
static void test_sim_answers__streams_hold_no_slot_of_the_limit(void **state)
{
    (void)state;
    static const char *const role[] = {"library", "sidecar", "gateway"};
    for (unsigned i = 0; i < 3; i++) {
        struct lab lab = streams_of("false", role[i], "few");
        check_eq_u64(lab.measure.success_ppm, 1000000);
        check_between_u64(lab.result.service[0].answers_most, 950, 1150);
        check_between_u64(lab.result.service[0].answers[30], 900, 1100);
        lab_close(&lab);
    }
}

/* The gate passes a head on as it comes, and knows no more attempts in flight than its callers do. */
static void test_sim_answers__a_gate_passes_streams_on(void **state)
{
    (void)state;
    struct lab lab = streams_of("true", "library", "few");
    check_eq_u64(lab.measure.success_ppm, 1000000);
    check_between_u64(lab.result.service[0].answers_most, 950, 1150); /* each of them once */
    check_between_u64(lab.measure.latency_p999_us, 24000, 24500);     /* until the head */
    lab_close(&lab);
}

/* Answers in progress and attempts in flight together have a bound of their own. */
static void test_sim_answers__answers_in_progress_are_bounded(void **state)
{
    (void)state;
    struct lab lab = streams_of("false", "library", "bounded");
    check_between_u64(lab.result.service[0].answers_most, 490, 500);
    check_between_u64(lab.measure.success_ppm, 450000, 560000); /* fifty a second, and the first 500 */
    check_between_u64(lab.result.service[0].ended[BECALM_WHY_ANSWERS], 1, UINT64_MAX);
    check_eq_u64(lab.result.service[0].ended[BECALM_WHY_LIMIT], 0);
    lab_close(&lab);
}

/* The same requests, once with a long body and once with a long wait for their head, after the limit has adapted to an
 * overload. */
static void test_sim_answers__a_limit_that_was_cut_lets_calls_pass_beside_streams(void **state)
{
    (void)state;
    static const char *const shape[] = {"time: {exponential: 20ms}, body: {exponential: 60s}",
                                        "time: {exponential: 60s}"};
    uint64_t after[2];
    for (unsigned i = 0; i < 2; i++) {
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "length: 150s\ntimeout: 300s\n"
                       "services: {feed: {workers: any, time: {exponential: 20ms}, gate: true, endpoints: {events: "
                       "{share: 20%%, %s}}}}\n"
                       "policies: {slots: {maxRetries: 0, limit: {kind: fixed, max: 1000}}}\n"
                       "clients: {browsers: {to: feed, rate: 300/s, timeout: 1s}}\n",
                       shape[i]);
        struct lab lab = lab_of(text, "slots");
        after[i] = good_ppm(&lab, 0, 100, 150);
        lab_close(&lab);
    }
    check_eq_u64(after[0], 1000000);
    check_between_u64(after[1], 0, 850000);
}

/* A killed host cuts its streams: a caller that had read a head has no success after all. */
static void test_sim_answers__a_killed_host_cuts_its_streams(void **state)
{
    (void)state;
    static const char *const gate[] = {"false", "true"};
    for (unsigned i = 0; i < 2; i++) {
        char text[512];
        (void)snprintf(text, sizeof text,
                       "length: 60s\nservices: {feed: {time: {constant: 1ms}, body: {constant: 10s}, gate: %s}}\n"
                       "clients: {browsers: {to: feed, rate: 100/s, retries: false}}\n"
                       "faults: {kill: {at: 30s, for: 600ms, service: feed, killHosts: 1}}\n",
                       gate[i]);
        struct lab lab = lab_of(text, "becalm");
        check_eq_u64(good_ppm(&lab, 0, 0, 19), 1000000);
        check_eq_u64(good_ppm(&lab, 0, 21, 29), 0);
        check_eq_u64(good_ppm(&lab, 0, 31, 60), 1000000);
        check_between_u64(lab.result.service[0].ended[BECALM_WHY_ANSWER_DELIVERED], 900, 1100);
        check_between_u64(lab.result.service[0].answers[30], 1, 200); /* the new ones */
        lab_close(&lab);
    }
}

/* A caller in a loop reads an answer to its end before it calls again, and so does a service that calls another. */
static void test_sim_answers__whoever_calls_reads_to_the_end(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 20s\nlink: {latency: 0s}\n"
                            "services: {page: {time: {constant: 0s}, calls: [file]}, "
                            "file: {time: {constant: 100ms}, body: {constant: 800ms}}}\n"
                            "clients: {users: {to: page, loop: {think: 100ms}, callers: 10}}\n",
                            "none");
    check_eq_u64(lab.measure.calls, 10 * 20);
    check_eq_u64(lab.measure.latency_p50_us, 900000);
    lab_close(&lab);
}

/* A caller that has given up before the head arrives ends the stream that the gate has begun to pass on. */
static void test_sim_answers__a_gate_stops_a_stream_that_nobody_reads(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(
        &lab,
        "length: 30s\nlink: {latency: 1ms}\n"
        "policies: {short: {maxRetries: 0, attemptTimeout: 12.5ms, limit: {kind: none}, breaker: {enabled: false}, "
        "carries: false}}\n"
        "services: {feed: {time: {constant: 9ms}, body: {constant: 10s}, gate: true}}\n"
        "clients: {browsers: {to: feed, rate: 100/s}}\n",
        "short");
    lab_run(&lab); /* the head comes to the gate after 11 ms, and would come to its caller after 13 */
    check_eq_u64(lab.measure.success_ppm, 0);
    check_between_u64(lab.result.service[0].answers_most, 1, 10); /* and not a thousand */
    lab_close(&lab);
}

BECALM_TESTS(cmocka_unit_test(test_sim_answers__streams_hold_no_slot_of_the_limit),
             cmocka_unit_test(test_sim_answers__a_gate_passes_streams_on),
             cmocka_unit_test(test_sim_answers__answers_in_progress_are_bounded),
             cmocka_unit_test(test_sim_answers__a_limit_that_was_cut_lets_calls_pass_beside_streams),
             cmocka_unit_test(test_sim_answers__a_killed_host_cuts_its_streams),
             cmocka_unit_test(test_sim_answers__whoever_calls_reads_to_the_end),
             cmocka_unit_test(test_sim_answers__a_gate_stops_a_stream_that_nobody_reads))
