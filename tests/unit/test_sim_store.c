/* SPDX-License-Identifier: MIT */
/* Faults of the store of a shared budget, and the reaction of its eight instances: all calls fail, so that the whole
 * budget is wanted. bench/fleet/beside.py sets the same beside a real Redis. */
#include "sim_lab.h"

#define AT 20u /* second of the fault */

static const char world[] = "length: 45s\ntimeout: 2s\nattempts: 4\nlink: {latency: 0.1ms}\n"
                            "services: {api: {time: {constant: 1ms}, errors: 100%%}}\n"
                            "clients: {c: {to: api, rate: 400/s, callers: 8, role: gateway}}\n"
                            "faults: {store: {at: 20s, for: %s, service: api, %s}}\n"
                            "policies: {shared: {maxRetries: 3, initialDelay: 1ms, maxDelay: 2ms, breaker: {enabled: "
                            "false}, limit: {kind: none}, "
                            "budget: {kind: none, shared: {percent: 20, redis: \"redis://store\"}}}}\n";

static struct lab lab_seeded(const char *length, const char *fault, uint64_t seed)
{
    struct lab lab;
    char text[1024];
    (void)snprintf(text, sizeof text, world, length, fault);
    lab_open(&lab, text, "shared");
    lab.options.seed = seed;
    lab_run(&lab);
    return lab;
}

static struct lab lab_with(const char *length, const char *fault)
{
    return lab_seeded(length, fault, 1);
}

/* Retries of these seconds in thousandths of the budget. */
static uint64_t used(const struct lab *lab, uint32_t from, uint32_t to)
{
    const struct world_service *api = &lab->result.service[0];
    uint64_t all = 0;
    uint64_t retries = 0;
    for (uint32_t i = from; i < to; i++) {
        all += api->arrivals[i];
        retries += api->retried[i];
    }
    return retries * 5000 / (all - retries);
}

/* For every fault: calm before it, recovery within ten seconds after it, and no second above 1.35 of the budget. */
static void check_calm(const struct lab *lab)
{
    check_between_u64(used(lab, 5, AT), 960, 1030);
    check_between_u64(used(lab, AT + 10, 45), 960, 1030);
    check_eq_u64(lab->result.service[0].degraded[44], 0);
}

static void check_bounds(const struct lab *lab)
{
    for (uint32_t i = 3; i < 45; i++) {
        check_between_u64(used(lab, i, i + 1), 0, 1350);
    }
    check_calm(lab);
}

static void test_sim_store__a_killed_one_leaves_the_own_share_at_once(void **state)
{
    (void)state;
    struct lab lab = lab_with("3s", "killStore: empty");
    check_bounds(&lab);
    check_eq_u64(lab.result.service[0].degraded[AT], 8);
    check_eq_u64(lab.result.service[0].degraded[AT + 2], 8);
    check_between_u64(used(&lab, AT, AT + 3), 800, 1030);
    check_eq_u64(lab.result.service[0].degraded[AT + 6], 0); /* each has waited for at most two seconds */
    lab_close(&lab);
}

static void test_sim_store__a_stopped_one_costs_a_second_and_then_the_own_share_goes_on(void **state)
{
    (void)state;
    struct lab lab = lab_with("8s", "hangStore: true");
    check_bounds(&lab);
    check_between_u64(used(&lab, AT, AT + 1), 0, 400); /* while it waits for an answer, it has no lease */
    check_eq_u64(lab.result.service[0].degraded[AT + 2], 8);
    check_between_u64(used(&lab, AT + 2, AT + 8), 930, 1050);
    check_eq_u64(lab.result.service[0].degraded[AT + 11], 0);
    lab_close(&lab);
}

static void test_sim_store__an_emptied_one_degrades_nobody(void **state)
{
    (void)state;
    struct lab lab = lab_with("1s", "emptyStore: true");
    check_bounds(&lab);
    for (uint32_t i = 5; i < 45; i++) {
        check_eq_u64(lab.result.service[0].degraded[i], 0);
    }
    check_between_u64(used(&lab, AT, AT + 2), 400, 950); /* its pot was emptied */
    lab_close(&lab);
}

static void test_sim_store__an_old_file_leaves_nobody_degraded(void **state)
{
    (void)state;
    struct lab lab = lab_with("3s", "killStore: 10s");
    struct lab whole = lab_with("3s", "killStore: 0s"); /* it has lost nothing: its pot is not emptied */
    check_bounds(&lab);
    check_eq_u64(lab.result.service[0].degraded[AT + 6], 0);
    check_bounds(&whole);
    check_true(used(&whole, AT + 3, AT + 6) > used(&lab, AT + 3, AT + 6) + 20);
    lab_close(&whole);
    lab_close(&lab);
}

static void test_sim_store__late_answers_degrade_nobody(void **state)
{
    (void)state;
    struct lab lab = lab_with("8s", "store: 250ms");
    check_between_u64(used(&lab, AT, AT + 12), 850, 1030);
    check_between_u64(used(&lab, AT, 45), 940, 1030);
    for (uint32_t i = AT; i < 45; i++) { /* granted retries that were delayed are sent little by little */
        check_between_u64(used(&lab, i, i + 1), 0, 1500);
    }
    for (uint32_t i = 5; i < 45; i++) {
        check_eq_u64(lab.result.service[0].degraded[i], 0);
    }
    lab_close(&lab);
}

/* The curve that a real Redis has: bench/fleet/beside.py measured .77 and .78 in these two seconds. An instance that
 * asked once more than it should after it has found the store again would have .83 and .93. */
static void test_sim_store__who_finds_it_again_asks_in_its_own_time(void **state)
{
    (void)state;
    uint64_t sum = 0;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct lab lab = lab_seeded("3s", "killStore: empty", seed);
        sum += used(&lab, AT + 3, AT + 5);
        lab_close(&lab);
    }
    check_between_u64(sum / 8, 740, 830);
}

BECALM_TESTS(cmocka_unit_test(test_sim_store__a_killed_one_leaves_the_own_share_at_once),
             cmocka_unit_test(test_sim_store__a_stopped_one_costs_a_second_and_then_the_own_share_goes_on),
             cmocka_unit_test(test_sim_store__an_emptied_one_degrades_nobody),
             cmocka_unit_test(test_sim_store__an_old_file_leaves_nobody_degraded),
             cmocka_unit_test(test_sim_store__late_answers_degrade_nobody),
             cmocka_unit_test(test_sim_store__who_finds_it_again_asks_in_its_own_time))
