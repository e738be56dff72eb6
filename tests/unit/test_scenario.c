/* SPDX-License-Identifier: MIT */
#include "sim/scenario.h"

#include <stdio.h>

#include "check.h"

#define SMALL                                     \
    "length: 10s\n"                               \
    "services: {api: {time: {constant: 10ms}}}\n" \
    "clients: {users: {to: api, rate: 100/s}}\n"

static struct becalm_diags diags;

static struct scenario_file *parse_with(const char *text, const struct becalm_load_options *options)
{
    struct scenario_file *file = NULL;
    memset(&diags, 0, sizeof diags);
    int rc = scenario_parse(&file, "test.yaml", text, strlen(text), options, &diags);
    check_true((rc == 0) == (file != NULL));
    check_true((rc == 0) == (diags.errors == 0));
    return file;
}

/* The diagnostics, one per line. */
static const char *said(void)
{
    static char all[8192];
    size_t used = 0;
    all[0] = '\0';
    for (uint32_t i = 0; i < diags.count && used + 2 < sizeof all; i++) {
        used += becalm_diag_write(&diags.diag[i], all + used, sizeof all - used - 2);
        all[used++] = '\n';
        all[used] = '\0';
    }
    return all;
}

static struct scenario_file *parse(const char *text)
{
    struct scenario_file *file = parse_with(text, NULL);
    if (file == NULL) {
        print_error("%s", said());
        fail();
    }
    return file;
}

static void check_refused(const char *text, const char *expected)
{
    check_true(parse_with(text, NULL) == NULL);
    check_eq_str(said(), expected);
}

static void test_scenario__the_smallest_has_the_documented_defaults(void **state)
{
    (void)state;
    struct scenario_file *file = parse(SMALL);
    const struct scenario *plan = scenario_of(file);
    check_eq_str(plan->name, "test");
    check_eq_str(plan->about, "");
    check_eq_u64(plan->length, 10 * BECALM_S);
    check_eq_u64(plan->attempts, 4);
    check_eq_u64(plan->timeout, BECALM_S);
    check_eq_u64(plan->link, BECALM_MS / 2);
    check_eq_u64(plan->service_count, 1);
    check_eq_u64(plan->client_count, 1);
    check_eq_u64(plan->fault_count, 0);
    const struct scenario_service *service = &plan->services[0];
    check_eq_str(service->name, "api");
    check_eq_u64(service->workers, 0);
    check_eq_u64(service->hosts, 1);
    check_eq_u64(service->queue_max, UINT32_MAX);
    check_true(!service->expiry && !service->gate && !service->hang_first && service->calls == NULL);
    check_eq_u64(service->instances, 1);
    check_eq_u64(service->fan_out, 1);
    check_eq_u64(service->error_ppm + service->hang_ppm, 0);
    check_eq_u64(service->hang, 10 * BECALM_S);
    check_eq_u64(plan->clients[0].callers, 1);
    check_true(plan->clients[0].retries);
    scenario_free(file);
    scenario_free(NULL);
}

static void test_scenario__every_key_finds_its_field(void **state)
{
    (void)state;
    struct scenario_file *file = parse("name: all\nabout: every key\nlength: 1h\nattempts: 3\ntimeout: none\n"
                                       "link: {latency: 2ms}\n"
                                       "services:\n"
                                       "  api:\n"
                                       "    workers: 8\n"
                                       "    hosts: 3\n"
                                       "    queue: {max: 1000, expiry: true}\n"
                                       "    gate: true\n"
                                       "    instances: 5\n"
                                       "    errors: 0.5%\n"
                                       "    hangs: {percent: 2%, time: 3s, only: first}\n"
                                       "    time: {exponential: 20ms}\n"
                                       "    calls: [db, cache]\n"
                                       "    fanOut: 4\n"
                                       "  db: {workers: any, queue: {max: none}, time: {constant: 0s}}\n"
                                       "  cache: {time: {constant: 1ms}}\n"
                                       "clients:\n"
                                       "  users: {to: api, rate: 90/m, callers: 1000000, retries: false}\n"
                                       "  batch: {to: db, rate: 0.5/s}\n");
    const struct scenario *plan = scenario_of(file);
    check_eq_str(plan->name, "all");
    check_eq_str(plan->about, "every key");
    check_eq_u64(plan->length, 3600 * BECALM_S);
    check_eq_u64(plan->attempts, 3);
    check_eq_u64(plan->timeout, BECALM_NEVER);
    check_eq_u64(plan->link, 2 * BECALM_MS);
    const struct scenario_service *service = &plan->services[0];
    check_eq_u64(service->workers, 8);
    check_eq_u64(service->hosts, 3);
    check_eq_u64(service->queue_max, 1000);
    check_true(service->expiry && service->gate && service->hang_first);
    check_eq_u64(service->instances, 5);
    check_eq_u64(service->error_ppm, 5000);
    check_eq_u64(service->hang_ppm, 20000);
    check_eq_u64(service->hang, 3 * BECALM_S);
    check_eq_u64(service->fan_out, 4);
    check_eq_str(service->calls[0], "db");
    check_eq_str(service->calls[1], "cache");
    check_true(service->calls[2] == NULL);
    check_eq_u64(plan->services[1].workers, 0);
    check_eq_u64(plan->services[1].queue_max, UINT32_MAX);
    check_eq_str(plan->clients[0].name, "users");
    check_eq_str(plan->clients[0].to, "api");
    check_eq_u64(plan->clients[0].rate_milli, 1500);
    check_eq_u64(plan->clients[0].callers, 1000000);
    check_true(!plan->clients[0].retries);
    check_eq_u64(plan->clients[1].rate_milli, 500);
    scenario_free(file);
}

static void test_scenario__a_time_is_one_of_five_distributions(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        struct dist dist;
    } cases[] = {
        {"{constant: 5ms}", {DIST_CONSTANT, 5 * BECALM_MS, 0}},
        {"{exponential: 5ms}", {DIST_EXPONENTIAL, 5 * BECALM_MS, 0}},
        {"{lognormal: {median: 5ms, sigma: 0.75}}", {DIST_LOGNORMAL, 5 * BECALM_MS, 750}},
        {"{pareto: {least: 5ms, alpha: 2.5}}", {DIST_PARETO, 5 * BECALM_MS, 2500}},
        {"{normal: {mean: 5ms, deviation: 1ms}}", {DIST_NORMAL, 5 * BECALM_MS, 200000}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        (void)snprintf(text, sizeof text,
                       "length: 10s\nservices: {api: {time: %s}}\nclients: {users: {to: api, rate: 1/s}}\n",
                       cases[i].text);
        struct scenario_file *file = parse(text);
        const struct dist *dist = &scenario_of(file)->services[0].time;
        check_eq_u64(dist->kind, cases[i].dist.kind);
        check_eq_u64(dist->mean, cases[i].dist.mean);
        check_eq_u64(dist->shape, cases[i].dist.shape);
        scenario_free(file);
    }
}

static void test_scenario__a_time_that_is_half_or_two_is_refused(void **state)
{
    (void)state;
    check_refused(
        "length: 10s\n"
        "services:\n"
        "  a: {time: {}}\n"
        "  b: {time: {constant: 1ms, exponential: 2ms}}\n"
        "  c: {time: {lognormal: {median: 1ms}}}\n"
        "  d: {time: {normal: {mean: 1ms, deviation: 2ms}}}\n"
        "  e: {}\n"
        "  f: {time: 10ms}\n"
        "  g: {time: {exponential: 10}}\n"
        "clients: {users: {to: a, rate: 1/s}}\n",
        "test.yaml:3:13: error: time is one distribution; write for example time: {exponential: 10ms} [conflict]\n"
        "test.yaml:4:13: error: time is one distribution; write for example time: {exponential: 10ms} [conflict]\n"
        "test.yaml:5:25: error: lognormal has median and sigma; write time: {lognormal: {median: 10ms, sigma: "
        "0.5}} [missing]\n"
        "test.yaml:6:22: error: deviation must not be above mean [conflict]\n"
        "test.yaml:7:3: error: e has no time; write time: {exponential: 10ms} [missing]\n"
        "test.yaml:8:13: error: time is a mapping; write {key: value} [wrong-type]\n"
        "test.yaml:9:27: error: time.exponential: \"10\" is not a duration; write a number with its unit, like "
        "100ms, 1.5s or 2m [wrong-type]\n");
}

static void test_scenario__each_fault_does_one_thing(void **state)
{
    (void)state;
    struct scenario_file *file = parse("length: 100s\n"
                                       "services: {api: {workers: 10, hosts: 4, time: {constant: 1ms}}}\n"
                                       "clients: {users: {to: api, rate: 1/s}}\n"
                                       "faults:\n"
                                       "  a: {at: 1s, for: 2s, service: api, capacity: 0.3}\n"
                                       "  b: {at: 0s, for: 2s, service: api, errors: 10%}\n"
                                       "  c: {at: 1s, for: 2s, service: api, dead: true}\n"
                                       "  d: {at: 1s, for: 2s, service: api, latency: 50ms}\n"
                                       "  e: {at: 1s, for: 2s, service: api, hangs: 30%}\n"
                                       "  f: {at: 1s, for: 2s, service: api, badHosts: 3}\n"
                                       "  g: {at: 1s, for: 2s, service: api, cutCallers: 20%}\n"
                                       "  again: {at: 3s, for: 2s, service: api, capacity: 0}\n");
    const struct scenario *plan = scenario_of(file);
    const struct scenario_fault *fault = plan->faults;
    check_eq_u64(plan->fault_count, 8);
    for (uint32_t i = 0; i < 7; i++) {
        check_eq_u64(fault[i].kind, i); /* they stand in the order of the enum */
        check_eq_str(fault[i].service, "api");
        check_eq_u64(fault[i].at, i == 1 ? 0 : BECALM_S);
        check_eq_u64(fault[i].length, 2 * BECALM_S);
    }
    check_eq_u64(fault[FAULT_CAPACITY].ppm, 300000);
    check_eq_u64(fault[FAULT_ERRORS].ppm, 100000);
    check_eq_u64(fault[FAULT_LATENCY].latency, 50 * BECALM_MS);
    check_eq_u64(fault[FAULT_HANG].ppm, 300000);
    check_eq_u64(fault[FAULT_BAD_HOSTS].count, 3);
    check_eq_u64(fault[FAULT_CUT_CALLERS].ppm, 200000);
    check_eq_str(fault[7].name, "again");
    check_eq_u64(fault[7].ppm, 0);
    scenario_free(file);
}

static void test_scenario__faults_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    check_refused(
        "length: 100s\n"
        "services: {api: {time: {constant: 1ms}}, db: {workers: 1, hosts: 2, time: {constant: 1ms}}}\n"
        "clients: {users: {to: api, rate: 1/s}}\n"
        "faults:\n"
        "  none: {at: 1s, for: 2s, service: api}\n"
        "  two: {at: 1s, for: 2s, service: api, errors: 10%, dead: true}\n"
        "  alive: {at: 1s, for: 2s, service: api, dead: false}\n"
        "  endless: {at: 1s, for: 2s, service: api, capacity: 0.5}\n"
        "  more: {at: 1s, for: 2s, service: db, badHosts: 3}\n"
        "  late: {at: 100s, for: 2s, service: db, dead: true}\n"
        "  once: {at: 1s, for: 2s, service: db, latency: 1ms}\n"
        "  twice: {at: 2s, for: 2s, service: db, latency: 2ms}\n"
        "  bare: {}\n",
        "test.yaml:5:3: error: none does nothing; write capacity, errors, dead, latency, hangs, badHosts or "
        "cutCallers, one of them [missing]\n"
        "test.yaml:6:3: error: two does several things; write capacity, errors, dead, latency, hangs, badHosts or "
        "cutCallers, one of them [conflict]\n"
        "test.yaml:7:48: error: dead: false is no fault; write dead: true [conflict]\n"
        "test.yaml:13:3: error: bare has no at; write at: 60s [missing]\n"
        "test.yaml:13:3: error: bare has no for; write for: 30s [missing]\n"
        "test.yaml:13:3: error: bare has no service; write service: and the name of a service [missing]\n"
        "test.yaml:13:3: error: bare does nothing; write capacity, errors, dead, latency, hangs, badHosts or "
        "cutCallers, one of them [missing]\n"
        "test.yaml:8:3: error: endless cuts the capacity of api, which has any number of workers; give it workers "
        "[conflict]\n"
        "test.yaml:9:3: error: badHosts is 3, but db has 2 hosts [conflict]\n"
        "test.yaml:10:14: error: at: late begins when the run has ended; see length [conflict]\n"
        "test.yaml:12:3: error: once and twice do the same to db at the same time [conflict]\n");
}

static void test_scenario__nothing_is_not_a_scenario(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "# nothing\n", "42\n", "[a, b]\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        check_true(parse_with(wrong[i], NULL) == NULL);
        check_eq_u64(diags.errors, 1);
    }
    check_refused(
        "{}\n",
        "test.yaml:1:1: error: the scenario has no length; write length: 600s [missing]\n"
        "test.yaml:1:1: error: a scenario has at least one service; write services: {api: {time: {exponential: "
        "10ms}}} [missing]\n"
        "test.yaml:1:1: error: a scenario has at least one client; write clients: {users: {to: api, rate: 100/s}} "
        "[missing]\n");
    check_refused(
        "length: 1s\nservices: {}\nclients: [a]\n",
        "test.yaml:3:10: error: clients is a mapping of names; write name: {...} [wrong-type]\n"
        "test.yaml:1:1: error: a scenario has at least one service; write services: {api: {time: {exponential: "
        "10ms}}} [missing]\n");
}

static void test_scenario__unknown_keys_are_errors_all_in_one_run(void **state)
{
    (void)state;
    check_refused(
        "lenght: 10s\n"
        "length: 10s\n"
        "link: {latencie: 1ms}\n"
        "services:\n"
        "  api: {worker: 10, time: {exponentail: 10ms}, queue: {size: 3}}\n"
        "  api two: {time: {constant: 1ms}}\n"
        "clients: {users: {to: api, rate: 100/s, caller: 5}}\n"
        "faults: {cut: {at: 1s, for: 1s, service: api, capacty: 0.5}}\n",
        "test.yaml:1:1: error: the top of a scenario has no key \"lenght\"; did you mean \"length\"? [unknown-key]\n"
        "test.yaml:3:8: error: link has no key \"latencie\"; did you mean \"latency\"? [unknown-key]\n"
        "test.yaml:5:9: error: a service has no key \"worker\"; did you mean \"workers\"? [unknown-key]\n"
        "test.yaml:5:28: error: time has no key \"exponentail\"; did you mean \"exponential\"? [unknown-key]\n"
        "test.yaml:5:56: error: queue has no key \"size\"; write max or expiry [unknown-key]\n"
        "test.yaml:6:3: error: the name of a service is made of letters, digits, - _ . : and /; \"api two\" is not "
        "[wrong-type]\n"
        "test.yaml:7:41: error: a client has no key \"caller\"; did you mean \"callers\"? [unknown-key]\n"
        "test.yaml:8:47: error: a fault has no key \"capacty\"; did you mean \"capacity\"? [unknown-key]\n");
    struct scenario_file *file = parse_with(SMALL "more: 1\n", &(struct becalm_load_options){.allow_unknown = true});
    check_true(file != NULL);
    check_eq_u64(diags.warnings, 1);
    scenario_free(file);
}

/* One value of the small scenario replaced, and what is said to that. */
static void check_set(const char *assignment, const char *expected)
{
    const char *const set[] = {assignment, NULL};
    struct scenario_file *file = parse_with(SMALL, &(struct becalm_load_options){.set = set});
    check_eq_str(said(), expected);
    scenario_free(file);
}

static void test_scenario__every_number_has_a_range(void **state)
{
    (void)state;
    check_set("length=999ms", "--set:1:1: error: length: 999ms is below 1s, the least allowed [out-of-range]\n");
    check_set("length=61m", "--set:1:1: error: length: 61m is above 1h, the most allowed [out-of-range]\n");
    check_set("length=1500ms", "--set:1:1: error: length is in whole seconds; write 10s or 5m [out-of-range]\n");
    check_set("attempts=0", "--set:1:1: error: attempts: 0 is below 1, the least allowed [out-of-range]\n");
    check_set("attempts=101", "--set:1:1: error: attempts: 101 is above 100, the most allowed [out-of-range]\n");
    check_set("timeout=0", "--set:1:1: error: timeout: 0 is below 1ms, the least allowed [out-of-range]\n");
    check_set("timeout=soon",
              "--set:1:1: error: timeout: \"soon\" is not a duration; write a number with its unit, like "
              "100ms, 1.5s or 2m, or the word none [wrong-type]\n");
    check_set("link.latency=11s",
              "--set:1:1: error: link.latency: 11s is above 10s, the most allowed [out-of-range]\n");
    check_set("clients.users.rate=0/s",
              "--set:1:1: error: rate: 0/s is below 0.001, the least allowed [out-of-range]\n");
    check_set("clients.users.rate=1000001/s",
              "--set:1:1: error: rate: 1000001/s is above 1000000, the most allowed [out-of-range]\n");
    check_set("clients.users.callers=0", "--set:1:1: error: callers: 0 is below 1, the least allowed [out-of-range]\n");
    check_set("clients.users.callers=1000001",
              "--set:1:1: error: callers: 1000001 is above 1000000, the most allowed [out-of-range]\n");
    check_set("services.api.workers=0", "--set:1:1: error: workers: 0 is below 1, the least allowed [out-of-range]\n");
    check_set("services.api.workers=many",
              "--set:1:1: error: workers: \"many\" is not a whole number; write one like 3, or "
              "the word any [wrong-type]\n");
    check_set("services.api.hosts=5000",
              "--set:1:1: error: hosts: 5000 is above 4096, the most allowed [out-of-range]\n");
    check_set("services.api.errors=101%",
              "--set:1:1: error: errors: \"101%\" is not a percentage; write a number like 10 or "
              "0.5 [wrong-type]\n");
    check_set("services.api.fanOut=0", "--set:1:1: error: fanOut: 0 is below 1, the least allowed [out-of-range]\n");
    check_set("services.api.time.pareto.alpha=0.1",
              "--set:1:1: error: time.pareto.alpha: 0.1 is below 0.5, the least allowed [out-of-range]\n");
}

static void test_scenario__overrides_reach_services_clients_and_faults(void **state)
{
    (void)state;
    static const char *const set[] = {"services.api.errors=30%", "clients.users.rate=7/s",
                                      "faults.f={at: 1s, for: 1s, service: api, dead: true}", "faults.f.at=2s", NULL};
    struct scenario_file *file = parse_with(SMALL, &(struct becalm_load_options){.set = set});
    check_eq_str(said(), "");
    check_eq_u64(scenario_of(file)->services[0].error_ppm, 300000);
    check_eq_u64(scenario_of(file)->clients[0].rate_milli, 7000);
    check_eq_u64(scenario_of(file)->faults[0].at, 2 * BECALM_S);
    scenario_free(file);
}

static void test_scenario__names_must_exist(void **state)
{
    (void)state;
    check_refused(
        "length: 10s\n"
        "services:\n"
        "  payment: {time: {constant: 1ms}, calls: [legder, ledger, ledger]}\n"
        "  ledger: {time: {constant: 1ms}, calls: nobody}\n"
        "clients: {users: {to: paymnt, rate: 100/s}}\n"
        "faults: {f: {at: 1s, for: 1s, service: ledgers, dead: true}}\n",
        "test.yaml:5:23: error: to: there is no service \"paymnt\"; did you mean \"payment\"? [unknown-service]\n"
        "test.yaml:6:40: error: service: there is no service \"ledgers\"; did you mean \"ledger\"? "
        "[unknown-service]\n"
        "test.yaml:3:44: error: calls: there is no service \"legder\"; did you mean \"ledger\"? [unknown-service]\n"
        "test.yaml:3:60: error: \"ledger\" stands twice in calls; to call it several times, write fanOut [conflict]\n"
        "test.yaml:4:42: error: calls: there is no service \"nobody\"; services lists those that there are "
        "[unknown-service]\n");
}

static void test_scenario__services_that_call_each_other_in_a_circle_are_refused(void **state)
{
    (void)state;
    check_refused("length: 10s\n"
                  "services: {a: {time: {constant: 1ms}, calls: [a]}}\n"
                  "clients: {users: {to: a, rate: 1/s}}\n",
                  "test.yaml:2:12: error: a and a call each other in a circle; take one of the calls out [cycle]\n");
    check_refused("length: 10s\n"
                  "services:\n"
                  "  a: {time: {constant: 1ms}, calls: [b]}\n"
                  "  b: {time: {constant: 1ms}, calls: [c]}\n"
                  "  c: {time: {constant: 1ms}, calls: [a]}\n"
                  "clients: {users: {to: a, rate: 1/s}}\n",
                  "test.yaml:5:3: error: c and a call each other in a circle; take one of the calls out [cycle]\n");
    /* Two ways to one service are no circle. */
    scenario_free(parse("length: 10s\n"
                        "services:\n"
                        "  a: {time: {constant: 1ms}, calls: [b, c]}\n"
                        "  b: {time: {constant: 1ms}, calls: [c]}\n"
                        "  c: {time: {constant: 1ms}}\n"
                        "clients: {users: {to: a, rate: 1/s}}\n"));
}

static void test_scenario__a_request_that_becomes_too_many_calls_is_refused(void **state)
{
    (void)state;
    check_refused(
        "length: 10s\n"
        "services:\n"
        "  top: {time: {constant: 1ms}, calls: [a]}\n"
        "  a: {time: {constant: 1ms}, calls: [b], fanOut: 1000}\n"
        "  b: {time: {constant: 1ms}, calls: [c], fanOut: 100}\n"
        "  c: {time: {constant: 1ms}}\n"
        "clients: {users: {to: top, rate: 1/s}}\n",
        "test.yaml:4:3: error: one request to a causes more than 100000 calls; lower fanOut, or shorten calls "
        "[out-of-range]\n");
}

static void test_scenario__a_long_chain_and_a_wide_graph_are_quick_to_check(void **state)
{
    (void)state;
    static char text[200000];
    size_t used = (size_t)snprintf(text, sizeof text, "length: 10s\nclients: {u: {to: s0, rate: 1/s}}\nservices:\n");
    for (int i = 0; i < 1000; i++) { /* each calls the next three: 3^n ways, and far too many calls */
        used += (size_t)snprintf(text + used, sizeof text - used, "  s%d: {time: {constant: 1ms}, calls: [", i);
        for (int k = i + 1; k <= i + 3 && k < 1000; k++) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%ss%d", k == i + 1 ? "" : ", ", k);
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "]}\n");
    }
    check_true(parse_with(text, NULL) == NULL);
    check_true(diags.errors >= 1 && diags.errors <= 3); /* said where it begins, not at everybody above */
}

static void test_scenario__the_built_in_ones_load(void **state)
{
    (void)state;
    static const char *const names[] = {"chain",  "layers", "metastable", "metastable-crowd",
                                        "benign", "queue",  "slowdown",   "cut-off"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        struct scenario_file *file = NULL;
        memset(&diags, 0, sizeof diags);
        (void)snprintf(path, sizeof path, "%s/scenarios/%s.yaml", BECALM_POLICIES, names[i]);
        int rc = scenario_load(&file, path, NULL, &diags);
        check_eq_str(said(), "");
        check_eq_u64((uint64_t)rc, 0);
        check_eq_str(scenario_of(file)->name, names[i]);
        check_true(scenario_of(file)->about[0] != '\0');
        scenario_free(file);
    }
}

static void test_scenario__an_unreadable_file_is_reported(void **state)
{
    (void)state;
    struct scenario_file *file = NULL;
    memset(&diags, 0, sizeof diags);
    check_true(scenario_load(&file, "/nowhere/at-all.yaml", NULL, &diags) == BECALM_EIO);
    check_true(file == NULL);
    check_eq_str(said(), "/nowhere/at-all.yaml:1:1: error: No such file or directory [unreadable]\n");
}

BECALM_TESTS(cmocka_unit_test(test_scenario__the_smallest_has_the_documented_defaults),
             cmocka_unit_test(test_scenario__every_key_finds_its_field),
             cmocka_unit_test(test_scenario__a_time_is_one_of_five_distributions),
             cmocka_unit_test(test_scenario__a_time_that_is_half_or_two_is_refused),
             cmocka_unit_test(test_scenario__each_fault_does_one_thing),
             cmocka_unit_test(test_scenario__faults_that_make_no_sense_are_refused),
             cmocka_unit_test(test_scenario__nothing_is_not_a_scenario),
             cmocka_unit_test(test_scenario__unknown_keys_are_errors_all_in_one_run),
             cmocka_unit_test(test_scenario__every_number_has_a_range),
             cmocka_unit_test(test_scenario__overrides_reach_services_clients_and_faults),
             cmocka_unit_test(test_scenario__names_must_exist),
             cmocka_unit_test(test_scenario__services_that_call_each_other_in_a_circle_are_refused),
             cmocka_unit_test(test_scenario__a_request_that_becomes_too_many_calls_is_refused),
             cmocka_unit_test(test_scenario__a_long_chain_and_a_wide_graph_are_quick_to_check),
             cmocka_unit_test(test_scenario__the_built_in_ones_load),
             cmocka_unit_test(test_scenario__an_unreadable_file_is_reported))
