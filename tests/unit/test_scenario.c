/* SPDX-License-Identifier: MIT */
#define _XOPEN_SOURCE 700 /* mkdtemp */

#include "scenario/scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

#define SMALL                                     \
    "length: 10s\n"                               \
    "services: {api: {time: {constant: 10ms}}}\n" \
    "clients: {users: {to: api, rate: 100/s}}\n"

#define WORDS                                                                                                      \
    "capacity, errors, dead, latency, hangs, badHosts, cutCallers, refuse, killHosts, rolling, partition, surge, " \
    "store, swallow, loseConnections, killStore, hangStore or emptyStore"

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

static void file_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    check_true(file != NULL && fputs(text, file) >= 0);
    check_true(fclose(file) == 0);
}

static void check_refused(const char *text, const char *expected)
{
    check_true(parse_with(text, NULL) == NULL);
    check_eq_str(said(), expected);
}

static void test_scenario__a_loop_that_takes_no_time_is_refused(void **state)
{
    (void)state;
#define STILL(client)                           \
    "length: 10s\nlink: {latency: 0s}\n"        \
    "services: {api: {time: {constant: 0s}}}\n" \
    "clients: {users: {to: api, callers: 2, " client "}}\n"
    check_refused(STILL("loop: {think: 0s}"),
                  "test.yaml:4:54: error: users would call for ever in one instant: think, the link and the time of "
                  "api are 0; make one of them longer, or write calls [conflict]\n");
    scenario_free(parse(STILL("loop: {think: 0s}, calls: 3")));
    scenario_free(parse(STILL("loop: {think: 1us}")));
    scenario_free(parse(STILL("loop: {think: 0s}") "links: {a: {from: users, to: api, latency: 1ms}}\n"));
#undef STILL
}

static void test_scenario__links_and_partitions_are_where_calls_are(void **state)
{
    (void)state;
#define THREE                                                                                          \
    "length: 10s\n"                                                                                    \
    "services: {api: {time: {constant: 1ms}, calls: [db], gate: true}, db: {time: {constant: 1ms}}}\n" \
    "clients: {users: {to: api, rate: 1/s}}\n"
    check_refused(THREE "links: {a: {from: users, to: db}, b: {from: db, to: api}, c: {from: db, to: db}}\n",
                  "test.yaml:4:19: error: \"users\" never calls \"db\": nothing is sent there [conflict]\n"
                  "test.yaml:4:45: error: \"db\" never calls \"api\": nothing is sent there [conflict]\n"
                  "test.yaml:4:69: error: \"db\" never calls \"db\": nothing is sent there [conflict]\n");
    check_refused(THREE "faults: {f: {at: 1s, for: 1s, service: db, from: users, partition: true}}\n",
                  "test.yaml:4:50: error: \"users\" never calls \"db\": nothing is sent there [conflict]\n");
    scenario_free(parse(THREE "links: {a: {from: users, to: api}, b: {from: api, to: db}, c: {from: api, to: api}}\n"
                              "faults: {f: {at: 1s, for: 1s, service: db, from: api, partition: true}}\n"));
#undef THREE
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

static void test_scenario__a_time_is_one_distribution(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        struct dist dist;
    } cases[] = {
        {"{constant: 5ms}", {.kind = DIST_CONSTANT, .mean = 5 * BECALM_MS, .shape = 0}},
        {"{exponential: 5ms}", {.kind = DIST_EXPONENTIAL, .mean = 5 * BECALM_MS, .shape = 0}},
        {"{lognormal: {median: 5ms, sigma: 0.75}}", {.kind = DIST_LOGNORMAL, .mean = 5 * BECALM_MS, .shape = 750}},
        {"{pareto: {least: 5ms, alpha: 2.5}}", {.kind = DIST_PARETO, .mean = 5 * BECALM_MS, .shape = 2500}},
        {"{normal: {mean: 5ms, deviation: 1ms}}", {.kind = DIST_NORMAL, .mean = 5 * BECALM_MS, .shape = 200000}},
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
        "test.yaml:9:27: error: exponential: \"10\" is not a duration; write a number with its unit, like "
        "100ms, 1.5s or 2m [wrong-type]\n");
}

static void test_scenario__each_fault_does_one_thing(void **state)
{
    (void)state;
    struct scenario_file *file = parse("length: 100s\n"
                                       "services: {api: {workers: 10, hosts: 4, time: {constant: 1ms}}}\n"
                                       "clients: {users: {to: api, rate: 1/s, callers: 5}}\n"
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
        "test.yaml:5:3: error: none does nothing; write " WORDS ", one of them [missing]\n"
        "test.yaml:6:3: error: two does several things; write " WORDS ", one of them [conflict]\n"
        "test.yaml:7:48: error: dead: false is no fault; write dead: true [conflict]\n"
        "test.yaml:13:3: error: bare has no at; write at: 60s [missing]\n"
        "test.yaml:13:3: error: bare has no for; write for: 30s [missing]\n"
        "test.yaml:13:3: error: bare does nothing; write " WORDS ", one of them [missing]\n"
        "test.yaml:8:3: error: endless cuts the capacity of api, which has any number of workers; give it workers "
        "[conflict]\n"
        "test.yaml:9:3: error: badHosts is 3, but db has 2 hosts [conflict]\n"
        "test.yaml:10:14: error: at: late begins when the run has ended; see length [conflict]\n"
        "test.yaml:12:3: error: once and twice do the same to db at the same time [conflict]\n");
}

static void test_scenario__a_mixture_has_parts_with_weights(void **state)
{
    (void)state;
    struct scenario_file *file = parse("length: 10s\n"
                                       "services:\n"
                                       "  api:\n"
                                       "    time:\n"
                                       "      mixture:\n"
                                       "        usual: {weight: 95, exponential: 10ms}\n"
                                       "        slow: {weight: 5, constant: 1s}\n"
                                       "clients: {users: {to: api, rate: 1/s}}\n");
    const struct dist *dist = &scenario_of(file)->services[0].time;
    check_eq_u64(dist->kind, DIST_MIXTURE);
    check_eq_u64(dist->count, 2);
    check_eq_u64(dist->parts[0].below, 95);
    check_eq_u64(dist->parts[0].dist.kind, DIST_EXPONENTIAL);
    check_eq_u64(dist->parts[1].below, 100);
    check_eq_u64(dist->parts[1].dist.mean, BECALM_S);
    scenario_free(file);
    check_refused("length: 10s\n"
                  "services:\n"
                  "  a: {time: {mixture: {}}}\n"
                  "  b: {time: {mixture: {x: {exponential: 1ms}, y: {weight: 1}, z: {weight: 1, mixture: {}}}}}\n"
                  "  c: {time: {mixture: [1ms]}}\n"
                  "  d: {time: {samples: times.txt}}\n"
                  "clients: {users: {to: a, rate: 1/s}}\n",
                  "test.yaml:3:13: error: a mixture has parts; write mixture: {usual: {weight: 99, exponential: 10ms}, "
                  "...} [missing]\n"
                  "test.yaml:4:24: error: x has no weight; write weight: 10 [missing]\n"
                  "test.yaml:4:50: error: y is one distribution; write for example y: {exponential: 10ms} [conflict]\n"
                  "test.yaml:4:78: error: a part of a mixture has no key \"mixture\"; write constant, exponential, "
                  "lognormal, pareto, normal, weight or samples [unknown-key]\n"
                  "test.yaml:5:23: error: mixture is a mapping of names; write name: {...} [wrong-type]\n"
                  "test.yaml:6:23: error: samples needs a scenario that is a file itself [conflict]\n");
}

static void test_scenario__samples_come_from_a_file_beside_it(void **state)
{
    (void)state;
    static const char scenario[] = "length: 10s\nservices: {api: {time: {samples: times.txt}}}\n"
                                   "clients: {users: {to: api, rate: 1/s}}\n";
    char folder[] = "/tmp/becalm-samples-XXXXXX";
    char path[64];
    char times[64];
    check_true(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof path, "%s/s.yaml", folder);
    (void)snprintf(times, sizeof times, "%s/times.txt", folder);
    file_write(path, scenario);
    struct scenario_file *file = NULL;
    memset(&diags, 0, sizeof diags);
    check_true(scenario_load(&file, path, NULL, &diags) == BECALM_EPARSE); /* there is no such file */
    check_true(strstr(said(), "s.yaml:2:34: error: samples: ") != NULL && strstr(said(), "No such file") != NULL);

    file_write(times, "# measured\n12ms\n\n1.5s\n");
    memset(&diags, 0, sizeof diags);
    check_true(scenario_load(&file, path, NULL, &diags) == 0);
    const struct dist *dist = &scenario_of(file)->services[0].time;
    check_eq_u64(dist->count, 2);
    check_eq_u64(dist->samples[0], 12 * BECALM_MS);
    check_eq_u64(dist->samples[1], 1500 * BECALM_MS);
    scenario_free(file);

    file_write(times, "12ms\nsoon\n");
    memset(&diags, 0, sizeof diags);
    check_true(scenario_load(&file, path, NULL, &diags) == BECALM_EPARSE);
    check_true(strstr(said(), "times.txt:2:1: error: \"soon\" is not a duration up to 1h") != NULL);
    file_write(times, "# none\n");
    memset(&diags, 0, sizeof diags);
    check_true(scenario_load(&file, path, NULL, &diags) == BECALM_EPARSE);
    check_true(strstr(said(), "times.txt:1:1: error: there is no sample") != NULL);
    check_true(unlink(times) == 0 && unlink(path) == 0 && rmdir(folder) == 0);
}

static void test_scenario__endpoints_have_what_their_service_has(void **state)
{
    (void)state;
    struct scenario_file *file = parse("length: 10s\n"
                                       "services:\n"
                                       "  api:\n"
                                       "    errors: 1%\n"
                                       "    time: {constant: 10ms}\n"
                                       "    endpoints:\n"
                                       "      heavy: {share: 20%, time: {constant: 80ms}, hangs: {percent: 5%}}\n"
                                       "      light: {share: 30%, errors: 2%}\n"
                                       "clients:\n"
                                       "  users: {to: api, rate: 1/s}\n"
                                       "  batch: {to: api, rate: 1/s, endpoints: {heavy: 90%}}\n");
    const struct scenario_service *service = &scenario_of(file)->services[0];
    check_eq_u64(service->endpoint_count, 2);
    check_eq_str(service->endpoints[0].name, "heavy");
    check_eq_u64(service->endpoints[0].share_ppm, 200000);
    check_eq_u64(service->endpoints[0].error_ppm, 10000);
    check_eq_u64(service->endpoints[0].hang_ppm, 50000);
    check_eq_u64(service->endpoints[0].time.mean, 80 * BECALM_MS);
    check_eq_u64(service->endpoints[1].error_ppm, 20000);
    check_eq_u64(service->endpoints[1].time.mean, 10 * BECALM_MS);
    check_true(scenario_of(file)->clients[0].share_ppm == NULL);
    check_eq_u64(scenario_of(file)->clients[1].share_ppm[0], 900000);
    check_eq_u64(scenario_of(file)->clients[1].share_ppm[1], 0);
    scenario_free(file);
    check_refused("length: 10s\n"
                  "services:\n"
                  "  api:\n"
                  "    time: {constant: 10ms}\n"
                  "    endpoints: {a: {share: 60%}, b: {share: 41%, colour: red}}\n"
                  "clients:\n"
                  "  users: {to: api, rate: 1/s, endpoints: {c: 1%, a: 60%, b: 50%}}\n"
                  "  batch: {to: api, rate: 1/s, endpoints: {a: many}}\n",
                  "test.yaml:5:50: error: an endpoint has no key \"colour\"; write share, errors, hangs, time or body "
                  "[unknown-key]\n"
                  "test.yaml:5:16: error: the shares of the endpoints of api are above 100% [conflict]\n"
                  "test.yaml:7:43: error: api has no endpoint \"c\" [unknown-endpoint]\n"
                  "test.yaml:7:42: error: the shares of users are above 100% [conflict]\n"
                  "test.yaml:8:46: error: a: write a share of the calls, like 30% [wrong-type]\n");
}

static void test_scenario__a_quota_has_a_rate(void **state)
{
    (void)state;
    struct scenario_file *file = parse("length: 10s\n"
                                       "services: {api: {time: {constant: 10ms}, quota: {rate: 90/m}}}\n"
                                       "clients: {users: {to: api, rate: 1/s}}\n");
    check_eq_u64(scenario_of(file)->services[0].quota_milli, 1500);
    check_eq_u64(scenario_of(file)->services[0].quota_burst, 10);
    check_eq_u64(scenario_of(file)->services[0].quota_after, 0);
    scenario_free(file);
    check_refused("length: 10s\nservices: {api: {time: {constant: 10ms}, quota: {burst: 3}}}\n"
                  "clients: {users: {to: api, rate: 1/s}}\n",
                  "test.yaml:2:12: error: api has no rate; write quota: {rate: 10/s} [missing]\n");
}

static void test_scenario__a_client_has_a_rate_or_a_loop(void **state)
{
    (void)state;
    struct scenario_file *file = parse("length: 10s\n"
                                       "services: {api: {time: {constant: 10ms}}}\n"
                                       "clients:\n"
                                       "  steady: {to: api, loop: {think: 100ms}, callers: 5, calls: 3}\n"
                                       "  random: {to: api, loop: {think: {exponential: 2s}}}\n");
    const struct scenario_client *client = scenario_of(file)->clients;
    check_eq_u64(client[0].rate_milli, 0);
    check_eq_u64(client[0].calls, 3);
    check_eq_u64(client[0].think.kind, DIST_CONSTANT);
    check_eq_u64(client[0].think.mean, 100 * BECALM_MS);
    check_eq_u64(client[1].calls, 0);
    check_eq_u64(client[1].think.kind, DIST_EXPONENTIAL);
    scenario_free(file);
    check_refused("length: 10s\n"
                  "services: {api: {time: {constant: 10ms}}}\n"
                  "clients:\n"
                  "  a: {to: api}\n"
                  "  b: {to: api, rate: 1/s, loop: {think: 1s}}\n"
                  "  c: {to: api, loop: 100ms}\n"
                  "  d: {to: api, loop: {think: long}}\n"
                  "  e: {to: api, loop: {think: 1s, rest: 2s}}\n",
                  "test.yaml:4:3: error: a has no rate; write rate: 100/s [missing]\n"
                  "test.yaml:5:33: error: b has a rate and a loop; write one of them [conflict]\n"
                  "test.yaml:6:22: error: loop has one key, think; write loop: {think: 100ms}, or {think: "
                  "{exponential: 100ms}} [wrong-type]\n"
                  "test.yaml:7:30: error: think: write a duration up to 1h, like 100ms, or a distribution "
                  "[wrong-type]\n"
                  "test.yaml:8:22: error: loop has one key, think; write loop: {think: 100ms}, or {think: "
                  "{exponential: 100ms}} [wrong-type]\n");
}

static void test_scenario__links_and_partitions_name_both_ends(void **state)
{
    (void)state;
    struct scenario_file *file =
        parse("length: 10s\n"
              "link: {latency: 1ms, loss: 0.1%}\n"
              "services: {api: {time: {constant: 1ms}, calls: [db]}, db: {time: {constant: 1ms}}}\n"
              "clients: {users: {to: api, rate: 1/s}}\n"
              "links:\n"
              "  far: {from: users, to: api, latency: 40ms}\n"
              "  weak: {from: api, to: db, loss: 2%}\n"
              "faults: {split: {at: 1s, for: 1s, service: db, from: api, partition: true}}\n");
    const struct scenario *plan = scenario_of(file);
    check_eq_u64(plan->loss_ppm, 1000);
    check_eq_u64(plan->links[0].latency, 40 * BECALM_MS);
    check_eq_u64(plan->links[0].loss_ppm, 1000);
    check_eq_u64(plan->links[1].latency, BECALM_MS);
    check_eq_u64(plan->links[1].loss_ppm, 20000);
    check_eq_str(plan->faults[0].from, "api");
    scenario_free(file);
    check_refused("length: 10s\n"
                  "services: {api: {time: {constant: 1ms}}}\n"
                  "clients: {users: {to: api, rate: 1/s}}\n"
                  "links: {a: {from: nobody, to: apo}, b: {}}\n"
                  "faults: {split: {at: 1s, for: 1s, service: api, from: user, partition: true}}\n",
                  "test.yaml:4:37: error: b has no from; write from: and the name of a client or service [missing]\n"
                  "test.yaml:4:37: error: b has no to; write to: and the name of a service [missing]\n"
                  "test.yaml:5:55: error: from: there is no service \"user\"; services lists those that there are "
                  "[unknown-service]\n"
                  "test.yaml:4:19: error: from: there is no service \"nobody\"; services lists those that there are "
                  "[unknown-service]\n"
                  "test.yaml:4:31: error: to: there is no service \"apo\"; did you mean \"api\"? "
                  "[unknown-service]\n");
}

static void test_scenario__faults_have_the_keys_of_their_kind(void **state)
{
    (void)state;
    struct scenario_file *file = parse("length: 100s\n"
                                       "services: {api: {hosts: 4, time: {constant: 1ms}}}\n"
                                       "clients: {users: {to: api, rate: 1/s}}\n"
                                       "faults:\n"
                                       "  a: {at: 1s, for: 2s, service: api, refuse: true, flap: {on: 1s, off: 2s}}\n"
                                       "  b: {at: 1s, for: 2s, service: api, killHosts: 3}\n"
                                       "  c: {at: 1s, for: 2s, service: api, rolling: 500ms}\n"
                                       "  d: {at: 1s, for: 2s, service: api, partition: true}\n"
                                       "  e: {at: 1s, for: 2s, client: users, surge: 2.5}\n"
                                       "  f: {at: 1s, for: 2s, service: api, store: away}\n"
                                       "  g: {at: 1s, for: 2s, service: api, swallow: true}\n"
                                       "  h: {at: 1s, for: 2s, service: api, killStore: empty}\n"
                                       "  i: {at: 1s, for: 2s, service: api, hangStore: true}\n"
                                       "  j: {at: 1s, for: 2s, service: api, emptyStore: true}\n"
                                       "  k: {at: 5s, for: 2s, service: api, killStore: 10s}\n");
    const struct scenario_fault *fault = scenario_of(file)->faults;
    for (uint32_t i = 0; i < 7; i++) {
        check_eq_u64(fault[i].kind, FAULT_REFUSE + i);
    }
    for (uint32_t i = 7; i < 10; i++) {
        check_eq_u64(fault[i].kind, FAULT_KILL_STORE + i - 7);
    }
    check_eq_u64(fault[7].age, BECALM_NEVER);
    check_eq_u64(fault[10].age, 10 * BECALM_S);
    check_eq_u64(fault[0].on, BECALM_S);
    check_eq_u64(fault[0].off, 2 * BECALM_S);
    check_eq_u64(fault[1].count, 3);
    check_eq_u64(fault[2].each, 500 * BECALM_MS);
    check_eq_u64(fault[4].factor_milli, 2500);
    check_eq_str(fault[4].service, "api"); /* the callers that are hit */
    check_eq_u64(fault[5].latency, BECALM_NEVER);
    check_eq_str(said(), "");
    scenario_free(file);
    check_refused("length: 100s\n"
                  "services: {api: {hosts: 4, time: {constant: 1ms}}}\n"
                  "clients: {users: {to: api, rate: 1/s}}\n"
                  "faults:\n"
                  "  a: {at: 1s, for: 2s, service: api, refuse: true, flap: {on: 1s}}\n"
                  "  b: {at: 1s, for: 2s, service: api, killHosts: 5}\n"
                  "  c: {at: 1s, for: 2s, service: api, dead: true, from: users}\n"
                  "  d: {at: 1s, for: 2s, service: api, surge: 2}\n"
                  "  e: {at: 1s, for: 2s, client: user, surge: 2}\n"
                  "  f: {at: 1s, for: 2s, service: api, client: users, partition: true}\n"
                  "  g: {at: 1s, for: 2s, service: api, store: there}\n",
                  "test.yaml:5:58: error: flap has on and off; write flap: {on: 1s, off: 2s} [missing]\n"
                  "test.yaml:7:56: error: from belongs to a partition [conflict]\n"
                  "test.yaml:8:3: error: d has no client; write client: and the name of a client [missing]\n"
                  "test.yaml:8:33: error: a surge is of a client; write client [conflict]\n"
                  "test.yaml:10:46: error: client belongs to a surge [conflict]\n"
                  "test.yaml:11:45: error: store: \"there\" is not a duration; write a number with its unit, like "
                  "100ms, 1.5s or 2m, or the word away [wrong-type]\n"
                  "test.yaml:6:3: error: killHosts is 5, but api has 4 hosts [conflict]\n"
                  "test.yaml:9:32: error: client: there is no client \"user\" [unknown-client]\n");
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
        "test.yaml:5:56: error: queue has no key \"size\"; write max, expiry, order or codel [unknown-key]\n"
        "test.yaml:5:28: error: time has no key \"exponentail\"; did you mean \"exponential\"? [unknown-key]\n"
        "test.yaml:6:3: error: the name of a service is made of letters, digits, - _ . : and /; \"api two\" is not "
        "[wrong-type]\n"
        "test.yaml:7:41: error: a client has no key \"caller\"; did you mean \"callers\"? [unknown-key]\n"
        "test.yaml:8:47: error: a fault has no key \"capacty\"; did you mean \"capacity\"? [unknown-key]\n");
    struct scenario_file *file = parse_with(SMALL "more: 1\n", &(struct becalm_load_options){.allow_unknown = true});
    check_true(file != NULL);
    check_eq_u64(diags.warnings, 1);
    scenario_free(file);
}

/* One value of the small scenario is replaced; returns the message. */
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
    check_set("timeout=0", "--set:1:1: error: timeout: 0 is below 1ms, the least allowed; for no limit write timeout: "
                           "none [out-of-range]\n");
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
    check_set(
        "services.api.workers=0",
        "--set:1:1: error: workers: 0 is below 1, the least allowed; for no limit write workers: any [out-of-range]\n");
    check_set("services.api.workers=many",
              "--set:1:1: error: workers: \"many\" is not a whole number; write one like 3, or "
              "the word any [wrong-type]\n");
    check_set("services.api.hosts=5000",
              "--set:1:1: error: hosts: 5000 is above 4096, the most allowed [out-of-range]\n");
    check_set("services.api.errors=101%",
              "--set:1:1: error: errors: \"101%\" is not a percentage; write a number from 0 to 100, like "
              "10 or 0.5 [wrong-type]\n");
    check_set("services.api.fanOut=0", "--set:1:1: error: fanOut: 0 is below 1, the least allowed [out-of-range]\n");
    check_set("services.api.time.pareto.alpha=0.1",
              "--set:1:1: error: pareto.alpha: 0.1 is below 0.5, the least allowed [out-of-range]\n");
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

static void test_scenario__an_override_of_a_key_names_what_is_there(void **state)
{
    (void)state;
    static const char *const set[] = {"services.apii.workers=3", "clients.user.rate=7/s", "clients.robots.rate=7/s",
                                      "policies.capped.maxRetries=1", NULL};
    check_true(parse_with(SMALL, &(struct becalm_load_options){.set = set}) == NULL);
    check_eq_str(said(),
                 "--set:1:1: error: services.apii.workers=3: there is no service \"apii\"; did you mean \"api\"? "
                 "[unknown-name]\n"
                 "--set:1:1: error: clients.user.rate=7/s: there is no client \"user\"; did you mean \"users\"? "
                 "[unknown-name]\n"
                 "--set:1:1: error: clients.robots.rate=7/s: there is no client \"robots\"; there is \"users\" "
                 "[unknown-name]\n"
                 "--set:1:1: error: policies.capped.maxRetries=1: there is no policy \"capped\", nor any other "
                 "[unknown-name]\n");
}

static void test_scenario__one_slip_is_one_error(void **state)
{
    (void)state;
    check_refused("length: 10s\n"
                  "services: {api: {time: {constant: 1ms}, workers: ten}}\n"
                  "clients: {users: {to: api, rate: 1/s}}\n"
                  "faults:\n"
                  "  x: {at: 1s, for: 1s, service: api, capacity: 0.5}\n"
                  "  y: {at: 1s, for: 1s, service: api, badHosts: 3}\n",
                  "test.yaml:2:50: error: workers: \"ten\" is not a whole number; write one like 3, or the word any "
                  "[wrong-type]\n"
                  "test.yaml:6:3: error: badHosts is 3, but api has 1 host [conflict]\n");
}

static void test_scenario__nobody_has_two_roles(void **state)
{
    (void)state;
    check_refused(
        "length: 20s\n"
        "services: {api: {time: {constant: 1ms}}, users: {time: {constant: 1ms}}}\n"
        "clients: {users: {to: api, rate: 10/s}}\n"
        "links: {a: {from: users, to: api}, b: {from: users, to: api, latency: 2ms}}\n",
        "test.yaml:3:11: error: \"users\" is a client and a service; give one of them another name [conflict]\n"
        "test.yaml:4:36: error: a and b are the same link; remove one of them [conflict]\n");
}

static void test_scenario__callers_that_are_cut_off_are_not_all(void **state)
{
    (void)state;
#define CUT(share)                                                             \
    "length: 20s\n"                                                            \
    "services:\n"                                                              \
    "  mid: {time: {constant: 1ms}, instances: 3, calls: [api]}\n"             \
    "  api: {time: {constant: 1ms}}\n"                                         \
    "clients: {users: {to: api, rate: 10/s}, others: {to: mid, rate: 10/s}}\n" \
    "faults: {x: {at: 1s, for: 1s, service: api, cutCallers: " share ", silent: true}}\n"
    check_refused(CUT("70%"),
                  "test.yaml:6:10: error: x would cut off all users: there is 1; give it more callers, or write 100% "
                  "[conflict]\n"
                  "test.yaml:6:10: error: x would cut off all mid: there are 3; give it more instances, or write 100% "
                  "[conflict]\n");
    struct scenario_file *file = parse(CUT("100%"));
    check_true(scenario_of(file)->faults[0].silent);
    scenario_free(file);
#undef CUT
    check_refused(SMALL "faults: {x: {at: 1s, for: 1s, service: api, dead: true, silent: true}}\n",
                  "test.yaml:4:65: error: silent belongs to cutCallers [conflict]\n");
}

static void test_scenario__a_fault_hits_what_is_called(void **state)
{
    (void)state;
#define LOST                                                                                                        \
    "length: 20s\n"                                                                                                 \
    "services: {api: {time: {constant: 1ms}}, lost: {time: {constant: 1ms}, calls: [low]}, low: {time: {constant: " \
    "1ms}}}\n"                                                                                                      \
    "clients: {users: {to: api, rate: 10/s}}\n"
    struct scenario_file *file = parse(LOST);
    check_eq_str(said(), "test.yaml:2:42: warning: no caller of lost: no client, and no service that is called "
                         "[no-effect]\n"
                         "test.yaml:2:87: warning: no caller of low: no client, and no service that is called "
                         "[no-effect]\n");
    scenario_free(file);
    check_true(parse_with(LOST "faults: {x: {at: 1s, for: 1s, service: low, dead: true}}\n", NULL) == NULL);
    check_true(strstr(said(), "test.yaml:4:10: error: x hits low, which has no caller [conflict]\n") != NULL);
#undef LOST
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
                  "test.yaml:2:12: error: a calls itself; remove it from its calls [cycle]\n");
    check_refused("length: 10s\n"
                  "services:\n"
                  "  a: {time: {constant: 1ms}, calls: [b]}\n"
                  "  b: {time: {constant: 1ms}, calls: [c]}\n"
                  "  c: {time: {constant: 1ms}, calls: [a]}\n"
                  "clients: {users: {to: a, rate: 1/s}}\n",
                  "test.yaml:5:3: error: a calls b calls c calls a: a circle; take one of the calls out [cycle]\n");
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
    check_true(diags.errors >= 1 && diags.errors <= 3); /* reported where it begins, not at every caller above */
}

/* The words of policies are none of a scenario, whose manual page is another. */
static void test_scenario__what_belongs_elsewhere_is_said_to(void **state)
{
    (void)state;
    check_refused("length: 60s\n"
                  "services: {a: {time: {constant: 1ms}, maxRetries: 3, retries: 3}}\n"
                  "clients: {u: {to: a, rate: 1/s}}\n"
                  "faults: {f: {at: 1s, for: 1s, service: a, dead: true, zzzzzzzz: 1}}\n",
                  "test.yaml:2:39: error: a service has no key \"maxRetries\"; it is a rule of a policy: it belongs "
                  "in a policy file, or under policies: [unknown-key]\n"
                  "test.yaml:2:54: error: a service has no key \"retries\"; write workers, hosts, queue, gate, "
                  "gateRetries, instances, role, passes, errors, hangs, quota, row, accept, effect, calls, fanOut, "
                  "time, body or endpoints [unknown-key]\n"
                  "test.yaml:4:55: error: a fault has no key \"zzzzzzzz\"; becalm-sim(1) lists the keys "
                  "[unknown-key]\n");
}

static void test_scenario__the_built_in_ones_load(void **state)
{
    (void)state;
    static const char *const names[] = {"chain", "layers",   "metastable", "metastable-crowd", "benign",
                                        "queue", "slowdown", "cut-off",    "shared-budget",    "joined"};
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

static void test_scenario__who_shares_connections_has_some(void **state)
{
    (void)state;
#define REST "services: {api: {time: {constant: 1ms}}}\nclients: {users: {to: api, rate: 1/s}}\n"
    struct scenario_file *file = parse("length: 10s\nprotocol: h2\n" REST);
    check_true(scenario_of(file)->shared);
    check_eq_u64(scenario_of(file)->streams, 100);
    check_eq_u64(scenario_of(file)->pool_max, UINT32_MAX);
    scenario_free(file);
    check_refused("length: 10s\npool: {maxPerHost: 5, streams: 7}\n" REST,
                  "test.yaml:2:32: error: pool.streams are those of HTTP/2; write protocol: h2 [conflict]\n");
    check_refused("length: 10s\n" REST "faults: {lost: {at: 1s, for: 1s, service: api, loseConnections: 1}}\n",
                  "test.yaml:4:10: error: lost loses connections, but there are none in this world; write pool: "
                  "{maxPerHost: any}, or protocol: h2 [conflict]\n");
#undef REST
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

static void test_scenario__rows_connections_and_effects_have_keys(void **state)
{
    (void)state;
    struct scenario_file *file = parse("length: 10s\n"
                                       "link: {latency: 10ms, deviation: 2ms}\n"
                                       "services:\n"
                                       "  row: {time: {constant: 0s}, row: true, effect: true}\n"
                                       "  presence: {time: {constant: 50ms}, accept: {max: 1000, restart: 3s}}\n"
                                       "clients:\n"
                                       "  writers: {to: row, rate: 1/s, key: true, repeats: true}\n"
                                       "  sessions: {to: presence, callers: 20, connections: 500}\n");
    const struct scenario *plan = scenario_of(file);
    check_eq_u64(plan->link_deviation, 2 * BECALM_MS);
    check_true(plan->services[0].row && plan->services[0].effect);
    check_true(!plan->services[1].row && !plan->services[1].effect);
    check_eq_u64(plan->services[0].accept_max, SCENARIO_NONE);
    check_eq_u64(plan->services[0].restart, 5 * BECALM_S);
    check_eq_u64(plan->services[1].accept_max, 1000);
    check_eq_u64(plan->services[1].restart, 3 * BECALM_S);
    check_true(plan->clients[0].key && plan->clients[0].repeats);
    check_true(!plan->clients[1].key && !plan->clients[1].repeats);
    check_eq_u64(plan->clients[0].connections, 0);
    check_eq_u64(plan->clients[1].connections, 500);
    scenario_free(file);
}

static void test_scenario__whoever_keeps_connections_does_not_call(void **state)
{
    (void)state;
    check_refused(
        "length: 10s\n"
        "link: {latency: 1ms, deviation: 2ms}\n"
        "services: {api: {time: {constant: 10ms}}, wide: {time: {constant: 10ms}, hosts: 2}}\n"
        "clients:\n"
        "  a: {to: api, connections: 5, rate: 1/s}\n"
        "  b: {to: api, connections: 5, loop: {think: 1s}}\n"
        "  c: {to: api, connections: 5, calls: 3}\n"
        "  d: {to: api, connections: 1000, callers: 1001}\n"
        "  e: {to: wide, connections: 5}\n",
        "test.yaml:2:7: error: link: deviation must not be above latency [conflict]\n"
        "test.yaml:5:3: error: a keeps connections and makes no calls; take rate out [conflict]\n"
        "test.yaml:6:3: error: b keeps connections and makes no calls; take loop out [conflict]\n"
        "test.yaml:7:3: error: c keeps connections and makes no calls; take calls out [conflict]\n"
        "test.yaml:8:3: error: d keeps more than 1000000 connections; lower callers or connections [out-of-range]\n"
        "test.yaml:9:11: error: connections are to a service of one host without a gate; \"wide\" is not [conflict]\n");
}

static void test_scenario__brings_policies_along(void **state)
{
    (void)state;
    struct scenario_file *file =
        parse(SMALL "policies:\n"
                    "  bare: {}\n"
                    "  own: {maxRetries: 7, jitter: none, attemptTimeout: 3s, deadline: none}\n");
    const struct scenario *plan = scenario_of(file);
    struct becalm_policy ours;
    becalm_policy_defaults(&ours);
    check_eq_u64(plan->policy_count, 2);
    check_eq_str(plan->policies[0].name, "bare");
    check_eq_u64(plan->policies[0].policy.max_retries, ours.max_retries);
    check_eq_u64(plan->policies[0].policy.limit.kind, BECALM_LIMIT_AIMD); /* it is a caller's */
    check_true(!plan->policies[0].has_timeout && !plan->policies[0].has_deadline);
    check_eq_u64(plan->policies[1].policy.max_retries, 7);
    check_eq_u64(plan->policies[1].policy.backoff.jitter, BECALM_JITTER_NONE);
    check_eq_u64(plan->policies[1].policy.attempt_timeout, 3 * BECALM_S);
    check_true(plan->policies[1].has_timeout && plan->policies[1].has_deadline);
    scenario_free(file);
}

static void test_scenario__says_of_its_policies_what_travels(void **state)
{
    (void)state;
    struct scenario_file *file = parse(SMALL "references: true\npolicies:\n"
                                             "  bare: {}\n"
                                             "  alone: {maxRetries: 7, carries: false}\n"
                                             "  obedient: {marks: always}\n");
    const struct scenario *plan = scenario_of(file);
    check_true(plan->references);
    check_true(plan->policies[0].carries && !plan->policies[0].marks_always);
    check_true(!plan->policies[1].carries && plan->policies[1].policy.max_retries == 7);
    check_true(plan->policies[2].carries && plan->policies[2].marks_always);
    scenario_free(file);
    check_refused(SMALL "policies:\n"
                        "  a: {carries: perhaps, marks: often}\n",
                  "test.yaml:5:16: error: carries: \"perhaps\" is not a yes or no; write true or false [wrong-type]\n"
                  "test.yaml:5:32: error: marks: \"often\" is not known here; write conditional or always "
                  "[wrong-type]\n");
}

static void test_scenario__policies_are_checked_as_those_of_a_file(void **state)
{
    (void)state;
    check_refused(SMALL "policies:\n"
                        "  a: {maxRetry: 7}\n"
                        "  b: {initialDelay: 5s, maxDelay: 1s}\n"
                        "  becalm: {}\n"
                        "  x.yaml: {}\n",
                  "test.yaml:5:7: error: a has no key \"maxRetry\"; did you mean \"maxRetries\"? [unknown-key]\n"
                  "test.yaml:6:35: error: b: maxDelay is below initialDelay; the longest wait must be at least the "
                  "first [conflict]\n"
                  "test.yaml:7:3: error: policy \"becalm\": that name is taken; write another [conflict]\n"
                  "test.yaml:8:3: error: policy \"x.yaml\" would be taken for a file; write a name without / and "
                  ".yaml [conflict]\n");
}

static struct fault_span span_of(const char *faults)
{
    char text[512];
    struct fault_span span;
    (void)snprintf(text, sizeof text,
                   "length: 100s\nservices: {api: {time: {constant: 10ms}}}\n"
                   "clients: {users: {to: api, rate: 100/s}}\nfaults: {%s}\n",
                   faults);
    struct scenario_file *file = parse(text);
    check_true(scenario_fault_span(scenario_of(file), &span) == (faults[0] != '\0'));
    scenario_free(file);
    return span;
}

static void test_scenario__the_fault_is_the_earliest_and_all_that_touch_it(void **state)
{
    (void)state;
    check_eq_u64(span_of("").count, 0);
    struct fault_span one = span_of("a: {at: 10s, for: 5s, service: api, dead: true}");
    check_true(one.count == 1 && one.first == 0 && one.at == 10 * BECALM_S && one.over_at == 15 * BECALM_S);
    /* The third reaches the first only by the second. */
    struct fault_span three = span_of("c: {at: 19s, for: 5s, service: api, latency: 1ms}, "
                                      "b: {at: 15s, for: 5s, service: api, refuse: true}, "
                                      "a: {at: 10s, for: 5s, service: api, dead: true}, "
                                      "z: {at: 24.001s, for: 5s, service: api, dead: true}");
    check_true(three.count == 3 && three.first == 2 && three.at == 10 * BECALM_S && three.over_at == 24 * BECALM_S);
}

BECALM_TESTS(cmocka_unit_test(test_scenario__one_slip_is_one_error),
             cmocka_unit_test(test_scenario__nobody_has_two_roles),
             cmocka_unit_test(test_scenario__callers_that_are_cut_off_are_not_all),
             cmocka_unit_test(test_scenario__a_fault_hits_what_is_called),
             cmocka_unit_test(test_scenario__an_override_of_a_key_names_what_is_there),
             cmocka_unit_test(test_scenario__says_of_its_policies_what_travels),
             cmocka_unit_test(test_scenario__the_fault_is_the_earliest_and_all_that_touch_it),
             cmocka_unit_test(test_scenario__a_loop_that_takes_no_time_is_refused),
             cmocka_unit_test(test_scenario__links_and_partitions_are_where_calls_are),
             cmocka_unit_test(test_scenario__the_smallest_has_the_documented_defaults),
             cmocka_unit_test(test_scenario__every_key_finds_its_field),
             cmocka_unit_test(test_scenario__a_time_is_one_distribution),
             cmocka_unit_test(test_scenario__a_time_that_is_half_or_two_is_refused),
             cmocka_unit_test(test_scenario__each_fault_does_one_thing),
             cmocka_unit_test(test_scenario__faults_that_make_no_sense_are_refused),
             cmocka_unit_test(test_scenario__a_mixture_has_parts_with_weights),
             cmocka_unit_test(test_scenario__samples_come_from_a_file_beside_it),
             cmocka_unit_test(test_scenario__endpoints_have_what_their_service_has),
             cmocka_unit_test(test_scenario__a_quota_has_a_rate),
             cmocka_unit_test(test_scenario__a_client_has_a_rate_or_a_loop),
             cmocka_unit_test(test_scenario__rows_connections_and_effects_have_keys),
             cmocka_unit_test(test_scenario__whoever_keeps_connections_does_not_call),
             cmocka_unit_test(test_scenario__brings_policies_along),
             cmocka_unit_test(test_scenario__policies_are_checked_as_those_of_a_file),
             cmocka_unit_test(test_scenario__links_and_partitions_name_both_ends),
             cmocka_unit_test(test_scenario__faults_have_the_keys_of_their_kind),
             cmocka_unit_test(test_scenario__nothing_is_not_a_scenario),
             cmocka_unit_test(test_scenario__unknown_keys_are_errors_all_in_one_run),
             cmocka_unit_test(test_scenario__every_number_has_a_range),
             cmocka_unit_test(test_scenario__overrides_reach_services_clients_and_faults),
             cmocka_unit_test(test_scenario__names_must_exist),
             cmocka_unit_test(test_scenario__services_that_call_each_other_in_a_circle_are_refused),
             cmocka_unit_test(test_scenario__a_request_that_becomes_too_many_calls_is_refused),
             cmocka_unit_test(test_scenario__a_long_chain_and_a_wide_graph_are_quick_to_check),
             cmocka_unit_test(test_scenario__what_belongs_elsewhere_is_said_to),
             cmocka_unit_test(test_scenario__the_built_in_ones_load),
             cmocka_unit_test(test_scenario__who_shares_connections_has_some),
             cmocka_unit_test(test_scenario__an_unreadable_file_is_reported))
