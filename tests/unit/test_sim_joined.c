/* SPDX-License-Identifier: MIT */
/* Applications that pass on nothing but a trace id, beside sidecars that join by it: by the gateway's own table. */
#include "sim_lab.h"

#define GREEDY \
    "maxRetries: 2, budget: {kind: none}, breaker: {enabled: false}, throttle: {enabled: false}, limit: {kind: none}"

/* Four services in a row, and a leaf that is dead, or hangs, from 10 s on. `passes` says which headers the applications
 * pass on; `more` is appended. */
static struct lab chain_of(const char *passes, const char *more, const char *fault, const char *policy)
{
    struct lab lab;
    char text[2048];
    (void)snprintf(text, sizeof text,
                   "length: 30s\ntimeout: 1s\nlink: {latency: 0.5ms}\n"
                   "policies: {joined: {" GREEDY "}, alone: {" GREEDY ", joins: false}}\n"
                   "services:\n"
                   "  s1: {time: {constant: 1ms}, passes: %s, calls: [s2]%s}\n"
                   "  s2: {time: {constant: 1ms}, passes: %s, calls: [s3], role: sidecar}\n"
                   "  s3: {time: {constant: 1ms}, passes: %s, calls: [leaf], role: sidecar}\n"
                   "  leaf: {time: {constant: 1ms}}\n"
                   "clients: {users: {to: s1, rate: 20/s, role: gateway, retries: false, timeout: 3s}}\n"
                   "faults: {leaf: {at: 10s, for: 20s, service: leaf, %s}}\n",
                   passes, more, passes, passes, fault);
    lab_open(&lab, text, policy);
    lab_run(&lab);
    return lab;
}

static uint64_t leaf_load_of(const char *passes, const char *more, const char *fault, const char *policy)
{
    struct lab lab = chain_of(passes, more, fault, policy);
    uint64_t load = lab.measure.service[3].mean_ppm;
    lab_close(&lab);
    return load;
}

#define SIDECAR ", role: sidecar"
#define DEAD    "dead: true"

/* Three attempts next to the failure, and none above; without joining three of three of three. */
static void test_sim_joined__marks_pass_applications_that_know_nothing_of_them(void **state)
{
    (void)state;
    check_eq_u64(leaf_load_of("trace", SIDECAR, DEAD, "joined"), 3000000);
    check_eq_u64(leaf_load_of("trace", SIDECAR, DEAD, "alone"), 27000000);
    check_eq_u64(leaf_load_of("nothing", SIDECAR, DEAD, "joined"), 27000000);
    check_eq_u64(leaf_load_of("all", SIDECAR, DEAD, "joined"), 3000000);
}

/* A library is in the application, and sees no incoming requests: s1 repeats the attempts of s2. */
static void test_sim_joined__only_sidecars_join(void **state)
{
    (void)state;
    static const char *const role[] = {"library", "gateway", "sidecar"};
    static const uint64_t load[] = {9000000, 9000000, 3000000};
    for (unsigned i = 0; i < 3; i++) {
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "length: 30s\ntimeout: 1s\npolicies: {joined: {" GREEDY "}}\n"
                       "services:\n"
                       "  s1: {time: {constant: 1ms}, passes: trace, calls: [s2], role: sidecar}\n"
                       "  s2: {time: {constant: 1ms}, passes: trace, calls: [leaf], role: %s}\n"
                       "  leaf: {time: {constant: 1ms}}\n"
                       "clients: {users: {to: s1, rate: 20/s, role: gateway, retries: false}}\n"
                       "faults: {leaf: {at: 10s, for: 20s, service: leaf, dead: true}}\n",
                       role[i]);
        struct lab lab = lab_of(text, "joined");
        check_eq_u64(lab.measure.service[2].mean_ppm, load[i]);
        lab_close(&lab);
    }
}

/* Two requests of one trace at s2 at once: it is unknown which of them the failed call belongs to, so that no mark goes
 * up from there. */
static void test_sim_joined__of_several_requests_none_gets_the_mark(void **state)
{
    (void)state;
    check_between_u64(leaf_load_of("trace", SIDECAR ", fanOut: 2", DEAD, "joined"), 20000000, 27000000);
    check_eq_u64(leaf_load_of("all", SIDECAR ", fanOut: 2", DEAD, "joined"), 3000000);
}

/* Clients wait for 3 s, a sidecar for a second. A leaf that hangs is tried three times by the sidecar next to it, as
 * long as the client waits; the calls above end with that. Alone, each hop retries, and the leaf's answers reach no
 * client. */
static void test_sim_joined__deadlines_pass_them_too(void **state)
{
    (void)state;
    static const char hangs[] = "hangs: 100%";
    struct lab joined = chain_of("trace", SIDECAR, hangs, "joined");
    struct lab alone = chain_of("trace", SIDECAR, hangs, "alone");
    struct lab all = chain_of("all", SIDECAR, hangs, "joined");
    uint64_t load = joined.measure.service[3].mean_ppm;
    check_between_u64(load, 1000000, 3000000);
    check_true(alone.measure.service[3].mean_ppm > 2 * load);
    check_between_u64(load, all.measure.service[3].mean_ppm * 9 / 10, all.measure.service[3].mean_ppm * 11 / 10);
    /* A call of s1 to s2 after a second has the rest of the client's time, and no more. */
    check_true(joined.result.service[2].ended[BECALM_WHY_DEADLINE] > 0);
    check_eq_u64(alone.result.service[2].ended[BECALM_WHY_DEADLINE], 0);
    lab_close(&joined);
    lab_close(&alone);
    lab_close(&all);
}

/* `join: []` of a policy file has the same meaning as in the gateway. */
static void test_sim_joined__a_policy_file_may_switch_it_off(void **state)
{
    (void)state;
    static const char world[] = "length: 30s\nlink: {latency: 0.5ms}\n"
                                "services:\n"
                                "  s1: {time: {constant: 1ms}, passes: trace, calls: [s2], role: sidecar}\n"
                                "  s2: {time: {constant: 1ms}, passes: trace, calls: [leaf], role: sidecar}\n"
                                "  leaf: {time: {constant: 1ms}}\n"
                                "clients: {users: {to: s1, rate: 20/s, role: gateway, retries: false}}\n"
                                "faults: {leaf: {at: 10s, for: 20s, service: leaf, dead: true}}\n";
    static const char *const join[] = {"", "join: []\n"};
    static const uint64_t load[] = {3000000, 9000000};
    for (unsigned i = 0; i < 2; i++) {
        struct lab lab;
        char file[512];
        (void)snprintf(file, sizeof file, "%srole: sidecar\ndefaults: {" GREEDY "}\nservices: {s2: {}, leaf: {}}\n",
                       join[i]);
        lab_open_own(&lab, world, file);
        lab_run(&lab);
        check_eq_u64(lab.measure.service[2].mean_ppm, load[i]);
        lab_close(&lab);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sim_joined__marks_pass_applications_that_know_nothing_of_them),
        cmocka_unit_test(test_sim_joined__only_sidecars_join),
        cmocka_unit_test(test_sim_joined__of_several_requests_none_gets_the_mark),
        cmocka_unit_test(test_sim_joined__deadlines_pass_them_too),
        cmocka_unit_test(test_sim_joined__a_policy_file_may_switch_it_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
