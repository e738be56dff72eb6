/* SPDX-License-Identifier: MIT */
/* A service with a quota for each client, which answers the rest with 429 and Retry-After. */
#include "sim_lab.h"

/* The bucket gives fifty a second and ten at once, to each client by itself. */
static void test_sim_tenants__a_client_over_its_quota_gets_429_and_no_other(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 60s\nservices: {api: {time: {constant: 1ms}, quota: {rate: 50/s}}}\n"
                            "clients: {a: {to: api, rate: 100/s, callers: 7}, b: {to: api, rate: 20/s}}\n",
                            "none");
    check_between_u64(good_ppm(&lab, 0, 1, 60), 490000, 510000);
    check_between_u64(good_ppm(&lab, 1, 0, 60), 999000, 1000000);
    uint64_t calls = lab.result.client[0].calls + lab.result.client[1].calls;
    uint64_t good = lab.result.client[0].latency.count + lab.result.client[1].latency.count;
    check_eq_u64(lab.result.service[0].limited, calls - good);
    check_between_u64(world_latency_us(&lab.result.latency, 999000), 2000, 2000); /* no caller waits for it */
    lab_close(&lab);
}

/* Whose call it is stays known through the services on the way. */
static void test_sim_tenants__a_quota_is_the_clients_also_behind_other_services(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 60s\n"
                            "services: {web: {time: {constant: 1ms}, calls: [api]}, "
                            "api: {time: {constant: 1ms}, gate: true, quota: {rate: 50/s}}}\n"
                            "clients: {a: {to: web, rate: 100/s}, b: {to: web, rate: 20/s}}\n",
                            "none");
    check_between_u64(good_ppm(&lab, 0, 1, 60), 490000, 510000);
    check_between_u64(good_ppm(&lab, 1, 0, 60), 999000, 1000000);
    lab_close(&lab);
}

#define PATIENT                                                                          \
    "version: 1\ndefaults: {maxRetries: 1, initialDelay: 10ms, jitter: none, deadline: " \
    "none, budget: {kind: none}, breaker: {enabled: false}, limit: {kind: none}}\n"

/* A loop of one call after the other, a quota of one in two seconds: the second call of each pair waits for its
 * Retry-After, and succeeds then. Also through a gate, which passes the header on. */
static void test_sim_tenants__retry_after_is_waited_for(void **state)
{
    (void)state;
    static const char *const gate[] = {"false", "true"};
    for (unsigned i = 0; i < 2; i++) {
        struct lab lab;
        char text[512];
        (void)snprintf(text, sizeof text,
                       "length: 120s\nlink: {latency: 0s}\n"
                       "services: {api: {time: {constant: 1ms}, gate: %s, gateRetries: false, quota: {rate: 30/m, "
                       "burst: 1, retryAfter: "
                       "1.5s}}}\n"
                       "clients: {a: {to: api, loop: {think: 1ms}}}\n",
                       gate[i]);
        lab_open_own(&lab, text, PATIENT);
        lab_run(&lab);
        check_eq_u64(lab.measure.success_ppm, 1000000);
        /* 2 s, as the header has whole seconds, and up to half as much more. */
        check_between_u64(world_latency_us(&lab.result.latency, 500000), 2000000, 3060000);
        check_between_u64(lab.result.service[0].retries, 38, 60);
        lab_close(&lab);
    }
}

/* World 6 of the tenants: the Retry-After of one client does not make the other wait. */
static void test_sim_tenants__the_hint_of_one_does_not_slow_the_other(void **state)
{
    (void)state;
    struct lab lab = lab_of("length: 100s\ntimeout: 1s\n"
                            "services: {api: {time: {constant: 20ms}, hosts: 2, errors: 10%, gate: true, "
                            "quota: {rate: 15/s, burst: 20, retryAfter: 60s}}}\n"
                            "clients: {a: {to: api, rate: 18/s, retries: false}, "
                            "b: {to: api, rate: 10/s, retries: false}}\n",
                            "becalm");
    check_between_u64(lab.result.service[0].limited, 100, 1000);
    check_between_u64(good_ppm(&lab, 1, 0, 100), 990000, 1000000);
    check_between_u64(world_latency_us(&lab.result.client[1].latency, 990000), 22000, 250000);
    lab_close(&lab);
}

BECALM_TESTS(cmocka_unit_test(test_sim_tenants__a_client_over_its_quota_gets_429_and_no_other),
             cmocka_unit_test(test_sim_tenants__a_quota_is_the_clients_also_behind_other_services),
             cmocka_unit_test(test_sim_tenants__retry_after_is_waited_for),
             cmocka_unit_test(test_sim_tenants__the_hint_of_one_does_not_slow_the_other))
