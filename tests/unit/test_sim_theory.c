/* SPDX-License-Identifier: MIT */
/* Worlds so simple that theory gives the exact result: queues, losses, loops and hedges in closed form. */
#include "sim/measure.h"
#include "sim/reference.h"

#include "check.h"

/* Sanitizers look for other faults and get a short run, and a wide range: tests/CMakeLists.txt. */
#if defined(BECALM_FEW_SEEDS)
#define LENGTH "length: 60s\n"
#define SLACK  10u /* times as wide */
#else
#define LENGTH "length: 1h\n"
#define SLACK  1u
#endif

#define BARE LENGTH "attempts: 1\ntimeout: none\nlink: {latency: 0s}\n"

struct seen {
    struct measure measure;
    uint64_t mean_ppm; /* of the only service's load */
};

static struct seen see(const char *text, const char *policy)
{
    static struct becalm_diags diags;
    struct scenario_file *file = NULL;
    struct becalm_policy hop;
    struct becalm_policy gate;
    struct world_options options = {.seed = 1};
    struct world_result result;
    struct seen seen;
    memset(&diags, 0, sizeof diags);
    if (scenario_parse(&file, "theory.yaml", text, strlen(text), NULL, &diags) != 0) {
        print_error("%s\n", diags.diag[0].message);
        fail();
    }
    const struct scenario *plan = scenario_of(file);
    check_true(reference_options(policy, plan, &hop, &gate, &options));
    check_true(world_run(plan, &options, &result) == 0);
    check_true(measure_take(plan, &result, &seen.measure) == 0);
    seen.mean_ppm = seen.measure.service[0].mean_ppm;
    measure_free(&seen.measure);
    world_result_free(plan, &result);
    scenario_free(file);
    return seen;
}

/* Within this number of thousandths of the expected value. */
static void check_near(uint64_t value, uint64_t expected, uint64_t thousandths)
{
    uint64_t slack = expected * thousandths * SLACK / 1000;
    check_between_u64(value, expected - slack, expected + slack);
}

/* Pollaczek and Khinchine: m + rho m (1 + c^2) / (2 (1 - rho)), with c the deviation over the mean. */
static void test_sim_theory__one_worker_of_constant_time_waits_half_as_long(void **state)
{
    (void)state;
    struct seen seen = see(BARE "services: {q: {workers: 1, time: {constant: 1ms}}}\n"
                                "clients: {u: {to: q, rate: 800/s}}\n",
                           "none");
    check_near(seen.measure.latency_mean_us, 3000, 10);
}

static void test_sim_theory__one_worker_of_lognormal_time_waits_by_its_deviation(void **state)
{
    (void)state;
    /* mean e^0.125 = 1.1331 ms, c^2 = e^0.25 - 1 = 0.2840, rho 0.6799: 1.1331 + 1.5451 ms */
    struct seen seen = see(BARE "services: {q: {workers: 1, time: {lognormal: {median: 1ms, sigma: 0.5}}}}\n"
                                "clients: {u: {to: q, rate: 600/s}}\n",
                           "none");
    check_near(seen.measure.latency_mean_us, 2678, 10);
}

/* Erlang's B(10, 8) = 0.12166: a request that finds all workers busy is lost. */
static void test_sim_theory__without_a_queue_as_many_are_lost_as_erlang_says(void **state)
{
    (void)state;
    struct seen seen = see(BARE "services: {q: {workers: 10, queue: {max: 0}, time: {exponential: 10ms}}}\n"
                                "clients: {u: {to: q, rate: 800/s}}\n",
                           "none");
    check_near(seen.measure.success_ppm, 878339, 2);
}

/* Mean value analysis: R(n) = s (1 + Q(n-1)), Q(n) = n R(n) / (R(n) + think), for 20 callers. */
static void test_sim_theory__a_closed_loop_takes_as_long_as_mean_value_analysis_says(void **state)
{
    (void)state;
    struct seen seen = see(BARE "services: {q: {workers: 1, time: {exponential: 10ms}}}\n"
                                "clients: {u: {to: q, callers: 20, loop: {think: {exponential: 200ms}}}}\n",
                           "none");
    double waiting = 0;
    double takes = 0;
    for (int n = 1; n <= 20; n++) {
        takes = 10 * (1 + waiting);
        waiting = n * takes / (takes + 200);
    }
    check_near(seen.measure.latency_mean_us, (uint64_t)(takes * 1000), 20); /* 37.78 ms */
}

/* A hedge after the mean of an exponential time is sent by e^-1 of the calls; then the sooner of two answers. */
static void test_sim_theory__a_hedge_is_sent_by_those_who_wait_as_long(void **state)
{
    (void)state;
    struct seen seen = see(LENGTH "timeout: 10s\nlink: {latency: 0s}\n"
                                  "services: {q: {hosts: 10, time: {exponential: 100ms}}}\n"
                                  "clients: {u: {to: q, rate: 100/s}}\n"
                                  "policies:\n"
                                  "  h: {maxRetries: 0, limit: {kind: none}, breaker: {enabled: false},\n"
                                  "      hedge: {enabled: true, delay: 100ms, max: 1, percent: 100, cap: 1000}}\n",
                           "h");
    check_near(seen.mean_ppm, 1367879, 5);
    check_near(seen.measure.latency_mean_us, 81606, 5); /* 100 ms (1 - e^-1) + e^-1 50 ms */
}

/* Messages of which a tenth is lost, both ways: an attempt fails with 1 - 0.9^2 = 0.19, three do with 0.19^3. */
static void test_sim_theory__lost_messages_fail_attempts_and_not_calls(void **state)
{
    (void)state;
    struct seen seen = see(LENGTH "attempts: 3\ntimeout: 100ms\nlink: {latency: 1ms, loss: 10%}\n"
                                  "services: {q: {time: {constant: 1ms}}}\n"
                                  "clients: {u: {to: q, rate: 500/s, callers: 10}}\n",
                           "jitter");
    check_near(seen.measure.success_ppm, 993141, 1);
    check_near(seen.mean_ppm, 1103490, 5); /* 0.9 of 1 + 0.19 + 0.19^2 attempts arrive */
}

BECALM_TESTS(cmocka_unit_test(test_sim_theory__one_worker_of_constant_time_waits_half_as_long),
             cmocka_unit_test(test_sim_theory__one_worker_of_lognormal_time_waits_by_its_deviation),
             cmocka_unit_test(test_sim_theory__without_a_queue_as_many_are_lost_as_erlang_says),
             cmocka_unit_test(test_sim_theory__a_closed_loop_takes_as_long_as_mean_value_analysis_says),
             cmocka_unit_test(test_sim_theory__a_hedge_is_sent_by_those_who_wait_as_long),
             cmocka_unit_test(test_sim_theory__lost_messages_fail_attempts_and_not_calls))
