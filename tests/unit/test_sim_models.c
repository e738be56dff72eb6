/* SPDX-License-Identifier: MIT */
/* Built-in scenarios that are models of their own: contention for a row, a herd that reconnects, a charge that must not
 * be made twice. Their known results must come out; docs/simulation.md names the sources of the figures. */
#include "sim/measure.h"
#include "sim/reference.h"

#include <stdio.h>

#include "check.h"

/* Sanitizers look for other faults and need not run every seed: tests/CMakeLists.txt. */
#if defined(BECALM_FEW_SEEDS)
#define SEEDS      5u
#define MORE_SLACK 15u /* percent: of the mean of so few seeds */
#else
#define SEEDS      50u
#define MORE_SLACK 0u
#endif

struct run {
    const char *scenario;
    const char *set[6];
    const char *policy;
};

/* The scenario, loaded; the world has one thread, so ThreadSanitizer runs a short form: it can find nothing. */
static struct scenario_file *load(const struct run *run)
{
    static struct becalm_diags diags;
    char path[512];
    struct scenario_file *file = NULL;
    memset(&diags, 0, sizeof diags);
    (void)snprintf(path, sizeof path, "%s/scenarios/%s.yaml", BECALM_POLICIES, run->scenario);
    int rc = scenario_load(&file, path, &(struct becalm_load_options){.set = run->set}, &diags);
    if (rc != 0) {
        print_error("%s: %s\n", run->scenario, diags.diag[0].message);
        fail();
    }
    return file;
}

/* One run of it. The result is the caller's to free. */
static void run_one(const struct scenario *plan, const char *policy, uint64_t seed, struct world_result *result)
{
    struct becalm_policy hop;
    struct becalm_policy gate;
    struct world_options options = {.seed = seed};
    check_true(reference_options(policy, plan, &hop, &gate, &options));
    check_true(world_run(plan, &options, result) == 0);
}

/* contention */

struct race {
    uint64_t attempts; /* means, in hundredths and in us */
    uint64_t completed_us;
};

static struct race race(const char *policy, const char *callers)
{
    const struct run run = {"contention", .set = {callers}};
    struct scenario_file *file = load(&run);
    const struct scenario *plan = scenario_of(file);
    struct race sum = {0, 0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct world_result result;
        struct measure measure;
        run_one(plan, policy, seed, &result);
        check_true(measure_take(plan, &result, &measure) == 0);
        check_eq_u64(measure.success_ppm, 1000000); /* all callers write in the end */
        sum.attempts += measure.service[0].attempts;
        sum.completed_us += measure.completed_us;
        measure_free(&measure);
        world_result_free(plan, &result);
    }
    scenario_free(file);
    return (struct race){sum.attempts * 100 / SEEDS, sum.completed_us / SEEDS};
}

static void check_near(uint64_t value, uint64_t known, uint64_t percent)
{
    percent += MORE_SLACK;
    check_between_u64(value, known * (100 - percent) / 100, known * (100 + percent) / 100);
}

struct known_race {
    const char *policy;
    uint64_t attempts;
    uint64_t completed_ms; /* 0: not compared */
};

static void check_races(const char *callers, const struct known_race *known, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct race shown = race(known[i].policy, callers);
        check_near(shown.attempts, known[i].attempts * 100, 3);
        if (known[i].completed_ms > 0) {
            check_near(shown.completed_us, known[i].completed_ms * 1000, 5);
        }
    }
}

static void test_sim_contention__fifty_callers_race_as_in_the_article(void **state)
{
    (void)state;
    static const struct known_race known[] = {
        {"none", 687, 1132}, {"exponential", 624, 36237}, {"equal", 347, 4303},
        {"full", 332, 2922}, {"decorrelated", 376, 2164},
    };
    check_races("clients.writers.callers=50", known, sizeof known / sizeof *known);
}

static void test_sim_contention__a_hundred_callers_race_as_in_the_article(void **state)
{
    (void)state;
    static const struct known_race known[] = {
        {"none", 2421, 0}, {"exponential", 1853, 0}, {"equal", 812, 0}, {"full", 797, 0}, {"decorrelated", 1002, 0},
    };
    check_races("clients.writers.callers=100", known, sizeof known / sizeof *known);
}

static void test_sim_contention__more_callers_race_as_in_the_article(void **state)
{
    (void)state;
    static const struct known_race known[] = {
        {"none", 7997, 0}, {"exponential", 5186, 0}, {"equal", 1759, 0}, {"full", 1771, 0}, {"decorrelated", 2441, 0},
    };
    check_races("clients.writers.callers=190", known, sizeof known / sizeof *known);
}

/* herd */

#define HERD     10000u
#define CAPACITY 1000u

/* One run of the herd: its first and only service, and how many are connected at the end. */
struct flock {
    struct world_recovery recovery[4];
    uint32_t recoveries;
    uint64_t connected;
};

static struct flock flock(const char *policy, uint64_t seed)
{
    const struct run run = {.scenario = "herd"};
    struct scenario_file *file = load(&run);
    const struct scenario *plan = scenario_of(file);
    struct world_result result;
    struct flock flock = {.recoveries = 0};
    run_one(plan, policy, seed, &result);
    const struct world_service *service = &result.service[0];
    flock.recoveries = service->recovery_count;
    for (uint32_t i = 0; i < service->recovery_count && i < 4; i++) {
        flock.recovery[i] = service->recovery[i];
    }
    flock.connected = result.client[0].good[result.seconds - 1];
    check_eq_u64(result.client[0].begun[result.seconds - 1], HERD);
    check_eq_u64(result.client[0].good[9], HERD); /* before the fault */
    world_result_free(plan, &result);
    scenario_free(file);
    return flock;
}

static void test_sim_herd__without_jitter_all_come_at_once_and_it_falls_each_time(void **state)
{
    (void)state;
    struct flock shown = flock("no-jitter", 1);
    check_true(shown.recoveries >= 2);
    check_eq_u64(shown.recovery[0].at, 11 * BECALM_S);
    for (uint32_t i = 0; i < 2; i++) {
        check_between_u64(shown.recovery[i].worst_100ms, HERD / 2, HERD);
        check_true(shown.recovery[i].fell_at != BECALM_NEVER);
    }
    check_eq_u64(shown.connected, 0);
}

static void test_sim_herd__jitter_alone_is_too_dense_after_a_short_outage(void **state)
{
    (void)state;
    struct flock shown = flock("full-jitter", 1);
    check_eq_u64(shown.recoveries, 2);
    check_true(shown.recovery[0].fell_at != BECALM_NEVER);
    check_true(shown.recovery[1].fell_at == BECALM_NEVER); /* by then the waits are long */
    check_eq_u64(shown.connected, HERD);
}

static void test_sim_herd__jitter_and_a_cap_on_connecting_keep_it_up_from_the_first_recovery_on(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct flock shown = flock("capped-jitter", seed);
        check_eq_u64(shown.recoveries, 1);
        check_between_u64(shown.recovery[0].worst_100ms, 1, CAPACITY);
        check_true(shown.recovery[0].fell_at == BECALM_NEVER);
        check_eq_u64(shown.connected, HERD);
    }
}

/* twilio */

enum { CHARGE, KEYED_CHARGE };

/* The executions of both services, and the calls and attempts behind them. */
struct bill {
    struct world_effects effects;
    uint64_t calls;
    uint64_t attempts;
};

static void bills(const char *policy, bool repeats_anything, struct bill bill[2])
{
    const struct run run = {.scenario = "twilio"};
    struct scenario_file *file = load(&run);
    const struct scenario *plan = scenario_of(file);
    struct world_result result;
    struct becalm_policy hop;
    struct becalm_policy gate;
    struct world_options options = {.seed = 1};
    check_true(reference_options(policy, plan, &hop, &gate, &options));
    hop.idempotent = repeats_anything;
    check_true(world_run(plan, &options, &result) == 0);
    for (int i = CHARGE; i <= KEYED_CHARGE; i++) {
        bill[i] = (struct bill){result.service[i].effects, result.client[i].calls,
                                result.service[i].first + result.service[i].retries};
    }
    world_result_free(plan, &result);
    scenario_free(file);
}

static void test_sim_twilio__without_a_key_every_event_charges_again(void **state)
{
    (void)state;
    static const char *const policies[] = {"none", "naive", "becalm"};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        struct bill bill[2];
        bills(policies[i], false, bill);
        check_eq_u64(bill[CHARGE].effects.executed, bill[CHARGE].calls);
        check_eq_u64(bill[CHARGE].attempts, bill[CHARGE].calls);    /* at least no retry makes it worse */
        check_between_u64(bill[CHARGE].effects.repeated, 100, 100); /* every account */
        check_true(bill[CHARGE].effects.most >= 12);                /* the mean number of events of an account */
    }
}

static void test_sim_twilio__with_a_key_there_is_exactly_one_charge(void **state)
{
    (void)state;
    static const char *const policies[] = {"none", "naive", "becalm"};
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        struct bill bill[2];
        bills(policies[i], false, bill);
        check_eq_u64(bill[KEYED_CHARGE].effects.executed, bill[KEYED_CHARGE].effects.operations);
        check_eq_u64(bill[KEYED_CHARGE].effects.repeated, 0);
        check_eq_u64(bill[KEYED_CHARGE].effects.most, 1);
        check_true(bill[KEYED_CHARGE].attempts > bill[KEYED_CHARGE].effects.executed); /* it was asked to, again */
    }
}

static void test_sim_twilio__a_policy_that_repeats_anything_charges_more_than_once_an_event(void **state)
{
    (void)state;
    struct bill bill[2];
    bills("naive", true, bill);
    check_eq_u64(bill[CHARGE].effects.executed, bill[CHARGE].attempts);
    check_true(bill[CHARGE].effects.executed > 2 * bill[CHARGE].calls);
    check_eq_u64(bill[KEYED_CHARGE].effects.most, 1);
}

BECALM_TESTS(cmocka_unit_test(test_sim_contention__fifty_callers_race_as_in_the_article),
             cmocka_unit_test(test_sim_contention__a_hundred_callers_race_as_in_the_article),
             cmocka_unit_test(test_sim_contention__more_callers_race_as_in_the_article),
             cmocka_unit_test(test_sim_herd__without_jitter_all_come_at_once_and_it_falls_each_time),
             cmocka_unit_test(test_sim_herd__jitter_alone_is_too_dense_after_a_short_outage),
             cmocka_unit_test(test_sim_herd__jitter_and_a_cap_on_connecting_keep_it_up_from_the_first_recovery_on),
             cmocka_unit_test(test_sim_twilio__without_a_key_every_event_charges_again),
             cmocka_unit_test(test_sim_twilio__with_a_key_there_is_exactly_one_charge),
             cmocka_unit_test(test_sim_twilio__a_policy_that_repeats_anything_charges_more_than_once_an_event))
