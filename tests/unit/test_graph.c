/* SPDX-License-Identifier: MIT */
#include "policy/graph.h"

#include <stdio.h>

#include "check.h"

#define FILES_MAX 4

static struct becalm_diags diags;

/* Some files and their graph. */
struct lab {
    struct becalm_config *configs[FILES_MAX];
    uint32_t count;
    struct graph *graph;
};

static void lab_add(struct lab *lab, const char *text)
{
    char name[32];
    (void)snprintf(name, sizeof name, "file%u.yaml", lab->count);
    memset(&diags, 0, sizeof diags);
    if (becalm_config_parse(&lab->configs[lab->count], name, text, strlen(text),
                            &(struct becalm_load_options){.shared_budgets = true}, &diags) != 0) {
        char line[1024];
        (void)becalm_diag_write(&diags.diag[0], line, sizeof line);
        print_error("%s\n", line);
        fail();
    }
    lab->count++;
}

static void lab_build(struct lab *lab)
{
    const struct becalm_config *const *configs = (const struct becalm_config *const *)lab->configs;
    check_eq_u64((uint64_t)graph_build(&lab->graph, configs, lab->count), 0);
}

static struct lab lab_of(const char *text)
{
    struct lab lab = {.count = 0};
    lab_add(&lab, text);
    lab_build(&lab);
    return lab;
}

static void lab_end(struct lab *lab)
{
    graph_free(lab->graph);
    for (uint32_t i = 0; i < lab->count; i++) {
        becalm_config_free(lab->configs[i]);
    }
}

static const struct graph_node *node_of(const struct lab *lab, const char *name)
{
    uint32_t node = graph_find(lab->graph, name);
    check_true(node != GRAPH_NONE);
    return &lab->graph->nodes[node];
}

/* "a > b > c" */
static const char *path_of(const struct lab *lab, const char *name)
{
    static char text[1024];
    uint32_t path[GRAPH_PATH_MAX];
    uint32_t count = graph_path(lab->graph, graph_find(lab->graph, name), GRAPH_BY_BUDGETED, path);
    text[0] = '\0';
    for (uint32_t i = 0; i < count; i++) {
        size_t used = strlen(text);
        (void)snprintf(text + used, sizeof text - used, "%s%s", i == 0 ? "" : " > ",
                       path[i] == GRAPH_NONE ? "..." : lab->graph->nodes[path[i]].name);
    }
    return text;
}

/* Parts per million of: no budgets, budgets, dead, marks. */
static void check_figures(const struct lab *lab, const char *name, const uint64_t expected[4])
{
    const struct graph_node *node = node_of(lab, name);
    check_eq_u64(node->unbudgeted, expected[0]);
    check_eq_u64(node->budgeted, expected[1]);
    check_eq_u64(node->dead, expected[2]);
    check_eq_u64(node->marked, expected[3]);
}

static void test_graph__a_file_without_services_is_empty(void **state)
{
    (void)state;
    struct lab lab = lab_of("defaults:\n");
    check_eq_u64(lab.graph->node_count, 0);
    check_eq_u64(graph_find(lab.graph, "a"), GRAPH_NONE);
    lab_end(&lab);
}

static void test_graph__a_service_alone_gets_its_attempts(void **state)
{
    (void)state;
    struct lab lab = lab_of("services: {a: {attemptTimeout: 5s}}\n");
    struct lab learned = lab_of("services: {a: {}, b: {deadline: 20s}}\n");
    check_eq_u64(node_of(&learned, "a")->time.most, 60 * BECALM_S); /* as long as its call */
    check_eq_u64(node_of(&learned, "b")->time.most, 20 * BECALM_S);
    lab_end(&learned);
    check_figures(&lab, "a", (uint64_t[]){3000000, 2500000, 1000000, 2500000});
    check_eq_u64(node_of(&lab, "a")->time.most, 15300 * BECALM_MS);
    check_eq_str(path_of(&lab, "a"), "a");
    lab_end(&lab);
}

static void test_graph__three_layers_of_three_attempts_are_27(void **state)
{
    (void)state;
    struct lab lab = lab_of("services: {front: {calls: [orders]}, orders: {calls: [ledger]}, ledger: {}}\n");
    check_figures(&lab, "front", (uint64_t[]){3000000, 2500000, 1000000, 2500000});
    check_figures(&lab, "orders", (uint64_t[]){9000000, 6250000, 1000000, 2500000});
    check_figures(&lab, "ledger", (uint64_t[]){27000000, 15625000, 1000000, 2500000});
    check_eq_str(path_of(&lab, "ledger"), "front > orders > ledger");
    lab_end(&lab);
}

/* The arithmetic of `becalm plan amplification --services 10`: the client's own hop does not retry. */
static void test_graph__ten_services_with_one_retry_and_five_percent(void **state)
{
    (void)state;
    char text[2048] = "gatewayRetries: false\n"
                      "defaults: {maxRetries: 1, budget: {kind: ratio, percent: 5}}\n"
                      "services:\n";
    for (int i = 0; i < 10; i++) {
        size_t used = strlen(text);
        (void)snprintf(text + used, sizeof text - used, i == 9 ? "  s%d: {}\n" : "  s%d: {calls: s%d}\n", i, i + 1);
    }
    struct lab lab = lab_of(text);
    check_eq_u64(node_of(&lab, "s0")->unbudgeted, 1000000);
    check_eq_u64(node_of(&lab, "s9")->unbudgeted, 512000000);
    check_between_u64(node_of(&lab, "s9")->budgeted, 1551324, 1551332); /* 1.05^9 = 1.551328, rounded at each hop */
    lab_end(&lab);
}

static void test_graph__the_hop_into_a_root_counts_if_our_gateway_makes_it(void **state)
{
    (void)state;
    struct lab gateway = lab_of("services: {a: {calls: [b]}, b: {}}\n");
    struct lab quiet = lab_of("gatewayRetries: false\ndefaults: {attemptTimeout: 5s}\n"
                              "services: {a: {calls: [b]}, b: {}, alone: {}}\n");
    struct lab sidecar = lab_of("role: sidecar\nservices: {a: {calls: [b]}, b: {}}\n");
    check_eq_u64(node_of(&gateway, "b")->unbudgeted, 9000000);
    check_eq_u64(node_of(&quiet, "b")->unbudgeted, 3000000);
    check_eq_u64(node_of(&quiet, "alone")->unbudgeted, 3000000); /* a caller must use these rules */
    check_eq_u64(node_of(&quiet, "a")->time.most, 5 * BECALM_S); /* it still has the root's timeout */
    struct lab learned = lab_of("gatewayRetries: false\nservices: {a: {calls: [b]}, b: {}}\n");
    check_eq_u64(node_of(&learned, "a")->time.most, 60 * BECALM_S); /* one attempt, as long as its call */
    lab_end(&learned);
    check_eq_u64(node_of(&sidecar, "b")->unbudgeted, 3000000);
    check_eq_u64(node_of(&sidecar, "a")->unbudgeted, 1000000);
    check_eq_u64(node_of(&sidecar, "a")->time.most, BECALM_NEVER);
    lab_end(&gateway);
    lab_end(&quiet);
    lab_end(&sidecar);
}

static void test_graph__each_kind_of_budget_has_its_bound(void **state)
{
    (void)state;
    static const struct {
        const char *budget;
        uint64_t budgeted;
        uint64_t dead;
    } rows[] = {
        {"{kind: earned, percent: 10}", 2500000, 1000000},
        {"{kind: earned, percent: 100}", 3000000, 1000000},
        {"{kind: ratio, percent: 10}", 1100000, 1100000},
        {"{kind: ratio, percent: 20, of: attempts}", 1250000, 1250000},
        {"{kind: ratio, percent: 10, minPerSecond: 5}", 1300000, 1300000}, /* 4 instances, 100/s */
        {"{kind: ratio, percent: 20, of: attempts, minPerSecond: 5}", 1500000, 1500000},
        {"{kind: tokens, refillPerSecond: 20}", 1800000, 1800000},
        {"{kind: tokens, refillPerSecond: 1000}", 3000000, 3000000},
        {"{kind: concurrency, percent: 20}", 3000000,
         3000000}, /* its minimum of 3 pays for all, when calls fail fast */
        {"{kind: concurrency, percent: 20, minConcurrency: 0}", 1200000, 1200000},
        {"{kind: adaptive}", 1300000, 1100000},
        {"{kind: grpc}", 3000000, 1000000},
        {"{kind: aws}", 3000000, 1000000},
        {"{kind: none}", 3000000, 3000000},
        {"{kind: none, shared: {redis: 'redis://s', percent: 20}}", 1200000, 1200000},
        {"{kind: ratio, percent: 10, shared: {redis: 'redis://s', percent: 20}}", 1100000, 1100000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256];
        (void)snprintf(text, sizeof text, "services: {a: {traffic: 100/s, instances: 4, budget: %s}}\n",
                       rows[i].budget);
        struct lab lab = lab_of(text);
        print_message("%s\n", rows[i].budget);
        check_eq_u64(node_of(&lab, "a")->unbudgeted, 3000000);
        check_eq_u64(node_of(&lab, "a")->budgeted, rows[i].budgeted);
        check_eq_u64(node_of(&lab, "a")->dead, rows[i].dead);
        lab_end(&lab);
    }
}

static void test_graph__a_fixed_rate_bounds_nothing_when_the_traffic_is_unknown(void **state)
{
    (void)state;
    struct lab tokens = lab_of("services: {a: {budget: {kind: tokens}}}\n");
    struct lab floor = lab_of("services: {a: {budget: {kind: ratio, minPerSecond: 1}}}\n");
    check_eq_u64(node_of(&tokens, "a")->budgeted, 3000000);
    check_eq_u64(node_of(&floor, "a")->budgeted, 3000000);
    lab_end(&tokens);
    lab_end(&floor);
}

static void test_graph__endpoints_have_buckets_of_their_own_unless_the_level_says_otherwise(void **state)
{
    (void)state;
    const char *format =
        "services: {a: {traffic: 100/s, budget: {kind: tokens, level: %s}, endpoints: {x: {}, y: {}}}}\n";
    static const struct {
        const char *level;
        uint64_t budgeted;
    } rows[] = {{"endpoint", 1600000}, {"service", 1200000}, {"both", 1200000}};
    for (size_t i = 0; i < 3; i++) {
        char text[256];
        (void)snprintf(text, sizeof text, format, rows[i].level);
        struct lab lab = lab_of(text);
        check_eq_u64(node_of(&lab, "a")->budgeted, rows[i].budgeted);
        lab_end(&lab);
    }
}

static void test_graph__the_worst_endpoint_counts(void **state)
{
    (void)state;
    struct lab lab = lab_of("services:\n"
                            "  a:\n"
                            "    maxRetries: 0\n"
                            "    endpoints:\n"
                            "      x: {maxRetries: 3, budget: {kind: none}}\n"
                            "      y: {maxRetries: 1}\n");
    check_figures(&lab, "a", (uint64_t[]){4000000, 4000000, 4000000, 4000000});
    lab_end(&lab);
}

static void test_graph__a_hedge_counts_as_an_attempt(void **state)
{
    (void)state;
    struct lab lab = lab_of("services: {a: {maxRetries: 0, attemptTimeout: 5s, "
                            "hedge: {enabled: true, max: 2, delay: 1s}}}\n");
    check_figures(&lab, "a", (uint64_t[]){3000000, 2050000, 1000000, 2050000});
    check_eq_u64(node_of(&lab, "a")->time.most, 7 * BECALM_S); /* the last is sent after 2 s, and may take 5 s */
    lab_end(&lab);
}

static void test_graph__of_two_paths_the_worse_counts_and_not_their_sum(void **state)
{
    (void)state;
    struct lab lab = lab_of("services:\n"
                            "  a: {calls: [b, c], maxRetries: 0}\n"
                            "  b: {calls: [d], maxRetries: 1}\n"
                            "  c: {calls: [d], maxRetries: 4}\n"
                            "  d: {maxRetries: 0}\n");
    check_eq_u64(node_of(&lab, "d")->unbudgeted, 5000000);
    check_eq_str(path_of(&lab, "d"), "a > c > d");
    lab_end(&lab);
}

static void test_graph__with_marks_only_the_nearest_hop_that_retries_counts(void **state)
{
    (void)state;
    struct lab lab = lab_of("services:\n"
                            "  a: {calls: [b], budget: {kind: none}, maxRetries: 6}\n"
                            "  b: {calls: [c], budget: {kind: ratio, percent: 20}}\n"
                            "  c: {maxRetries: 0}\n");
    check_eq_u64(node_of(&lab, "a")->marked, 7000000);
    check_eq_u64(node_of(&lab, "b")->marked, 1200000);
    check_eq_u64(node_of(&lab, "c")->marked, 1200000); /* a hop without retries spends nothing and marks nothing */
    check_eq_u64(node_of(&lab, "c")->budgeted, 8400000);
    lab_end(&lab);
}

static void test_graph__a_callee_that_nobody_declares_is_one_attempt(void **state)
{
    (void)state;
    struct lab lab = lab_of("services: {a: {attemptTimeout: 5s, calls: [db]}}\n");
    check_eq_u64(node_of(&lab, "db")->unbudgeted, 3000000);
    check_eq_u64(node_of(&lab, "db")->time.most, 15300 * BECALM_MS);
    check_eq_str(path_of(&lab, "db"), "a > db");
    lab_end(&lab);
}

static void test_graph__files_are_one_graph_and_each_calls_by_its_own_rules(void **state)
{
    (void)state;
    struct lab lab = {.count = 0};
    lab_add(&lab, "services: {a: {maxRetries: 1}}\n"); /* the gateway's */
    lab_add(&lab, "role: sidecar\nservices: {a: {calls: [b, c], maxRetries: 9}, b: {maxRetries: 2}}\n"); /* a's */
    lab_add(&lab, "role: sidecar\nservices: {b: {maxRetries: 7}, c: {maxRetries: 3}}\n");
    lab_build(&lab);
    check_eq_u64(lab.graph->node_count, 3);
    check_eq_u64(node_of(&lab, "a")->unbudgeted, 2000000);
    check_eq_u64(node_of(&lab, "b")->unbudgeted, 6000000);
    check_eq_u64(node_of(&lab, "c")->unbudgeted, 8000000); /* a's file does not know it: another's rules */
    lab_end(&lab);
}

static void test_graph__a_client_waits_no_longer_than_each_timeout_on_the_way_allows(void **state)
{
    (void)state;
    struct lab lab = lab_of("defaults: {jitter: none, initialDelay: 100ms}\n"
                            "services:\n"
                            "  a: {calls: [b], maxRetries: 1, attemptTimeout: 4s, deadline: 60s}\n"
                            "  b: {calls: [c], maxRetries: 0, attemptTimeout: 9s, deadline: 3s}\n"
                            "  c: {maxRetries: 2, attemptTimeout: 500ms}\n");
    check_eq_u64(node_of(&lab, "a")->time.most, 8100 * BECALM_MS); /* 4 + 0.1 + 4 */
    check_eq_u64(node_of(&lab, "b")->time.most, 6100 * BECALM_MS); /* b is given up after 3 s: 3 + 0.1 + 3 */
    check_eq_u64(node_of(&lab, "c")->time.most, 3700 * BECALM_MS); /* c takes 3 * 0.5 + 0.1 + 0.2, twice, and 0.1 */
    lab_end(&lab);
}

static void test_graph__waits_are_summed_by_growth_cap_and_jitter(void **state)
{
    (void)state;
    static const struct {
        const char *keys;
        uint64_t ms;
    } rows[] = {
        {"maxRetries: 0", 0},
        {"maxRetries: 4", 100 + 200 + 400 + 800},
        {"maxRetries: 4, maxDelay: 300ms", 100 + 200 + 300 + 300},
        {"maxRetries: 4, growth: linear", 100 + 200 + 300 + 400},
        {"maxRetries: 1000, growth: constant", 100 * 1000},
        {"maxRetries: 1000, multiplier: 1.0", 100 * 1000},
        {"maxRetries: 3, initialDelay: 0s, maxDelay: 0s", 0},
        {"maxRetries: 3, jitter: decorrelated", 300 + 900 + 2700},
        {"maxRetries: 4, jitterFactor: 0.5, maxDelay: 500ms", 150 + 300 + 500 + 500},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256];
        (void)snprintf(text, sizeof text, "services: {a: {%s}}\n", rows[i].keys);
        struct lab lab = lab_of(text);
        print_message("%s\n", rows[i].keys);
        check_eq_u64(graph_waits(&becalm_config_service(lab.configs[0], 0)->rules.policy), rows[i].ms * BECALM_MS);
        lab_end(&lab);
    }
}

static void test_graph__cycles_are_cut_where_they_close(void **state)
{
    (void)state;
    struct lab lab = lab_of("gatewayRetries: false\n"
                            "services: {a: {calls: [b]}, b: {calls: [c, b]}, c: {calls: [a]}, d: {calls: [a]}}\n");
    uint32_t back = 0;
    for (uint32_t e = 0; e < lab.graph->edge_count; e++) {
        back += lab.graph->edges[e].back;
    }
    check_eq_u64(back, 2); /* b > b, c > a */
    check_true(node_of(&lab, "d")->root);
    check_true(!node_of(&lab, "a")->root);
    check_eq_u64(node_of(&lab, "c")->unbudgeted, 27000000);
    check_eq_str(path_of(&lab, "c"), "d > a > b > c");
    lab_end(&lab);
}

static void test_graph__of_a_circle_that_nobody_calls_the_first_is_the_root(void **state)
{
    (void)state;
    struct lab lab = lab_of("services: {a: {calls: [b]}, b: {calls: [a]}, x: {calls: [y, a]}, y: {calls: [x]}}\n");
    check_true(!node_of(&lab, "a")->root); /* the second circle calls it */
    check_true(node_of(&lab, "x")->root);
    check_eq_str(path_of(&lab, "b"), "x > a > b");
    lab_end(&lab);
}

static void test_graph__products_beyond_counting_stop_at_the_most(void **state)
{
    (void)state;
    char text[4096] = "defaults: {maxRetries: 1000, budget: {kind: none}}\nservices:\n";
    for (int i = 0; i < 40; i++) {
        size_t used = strlen(text);
        (void)snprintf(text + used, sizeof text - used, "  s%d: {calls: s%d}\n", i, i + 1);
    }
    struct lab lab = lab_of(text);
    check_eq_u64(node_of(&lab, "s40")->unbudgeted, GRAPH_MOST);
    check_eq_u64(node_of(&lab, "s40")->budgeted, GRAPH_MOST);
    lab_end(&lab);
}

static void test_graph__a_long_chain_has_its_ends_on_its_path(void **state)
{
    (void)state;
    const int count = 3000;
    size_t size = 64 * (size_t)count;
    char *text = malloc(size);
    check_true(text != NULL);
    int used = snprintf(text, size, "services:\n");
    for (int i = 0; i < count; i++) {
        used += snprintf(text + used, size - (size_t)used, "  s%d: {calls: s%d}\n", i, i + 1);
    }
    struct lab lab = lab_of(text);
    uint32_t path[GRAPH_PATH_MAX];
    check_eq_u64(graph_path(lab.graph, graph_find(lab.graph, "s3000"), GRAPH_BY_UNBUDGETED, path), GRAPH_PATH_MAX);
    check_eq_u64(path[0], graph_find(lab.graph, "s0"));
    check_eq_u64(path[1], GRAPH_NONE);
    check_eq_u64(path[GRAPH_PATH_MAX - 1], graph_find(lab.graph, "s3000"));
    lab_end(&lab);
    free(text);
}

/* ---- against every path, one by one ---- */

struct walker {
    const struct graph *graph;
    uint32_t path[16];
    uint32_t depth;
    uint64_t unbudgeted[16];
    becalm_ns longest[16];
};

/* The wait of a client along the walker's path, from its end inwards: as docs/check.md says it. */
static becalm_ns path_time(const struct walker *w)
{
    becalm_ns inner = BECALM_NEVER;
    for (uint32_t i = w->depth; i-- > 0;) {
        const struct becalm_policy *p = &w->graph->hops[w->graph->nodes[w->path[i]].hop].service->rules.policy;
        becalm_ns attempt = becalm_ns_min(p->attempt_timeout, inner);
        inner = becalm_ns_min(p->deadline, (p->max_retries + 1) * attempt + graph_waits(p));
    }
    return inner;
}

static void walk(struct walker *w, uint32_t node, uint64_t product)
{
    const struct graph_node *at = &w->graph->nodes[node];
    product *= w->graph->hops[at->hop].attempts;
    w->path[w->depth++] = node;
    becalm_ns time = path_time(w);
    w->unbudgeted[node] = product > w->unbudgeted[node] ? product : w->unbudgeted[node];
    w->longest[node] = becalm_ns_max(w->longest[node], time);
    for (uint32_t e = 0; e < at->edge_count; e++) {
        walk(w, w->graph->edges[at->edges + e].to, product);
    }
    w->depth--;
}

static void test_graph__agrees_with_walking_every_path(void **state)
{
    (void)state;
    uint64_t seed = 20240607;
    for (int round = 0; round < 200; round++) {
        uint64_t began = seed;
        char text[4096] = "services:\n";
        uint32_t count = 2 + (uint32_t)(becalm_rand_next(&seed) % 7);
        for (uint32_t i = 0; i < count; i++) {
            size_t used = strlen(text);
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     "  s%u: {maxRetries: %u, attemptTimeout: %ums, deadline: %ums, calls: [", i,
                                     (unsigned)(becalm_rand_next(&seed) % 4),
                                     1 + (unsigned)(becalm_rand_next(&seed) % 2000),
                                     1 + (unsigned)(becalm_rand_next(&seed) % 6000));
            for (uint32_t j = i + 1; j < count; j++) {
                if (becalm_rand_next(&seed) % 2 == 0) {
                    used += (size_t)snprintf(text + used, sizeof text - used, "s%u, ", j);
                }
            }
            (void)snprintf(text + used, sizeof text - used, "]}\n");
        }
        struct lab lab = lab_of(text);
        struct walker w = {.graph = lab.graph};
        for (uint32_t n = 0; n < count; n++) {
            if (lab.graph->nodes[n].root) {
                walk(&w, n, 1);
            }
        }
        for (uint32_t n = 0; n < count; n++) {
            const struct graph_node *node = &lab.graph->nodes[n];
            if (node->unbudgeted != w.unbudgeted[n] * GRAPH_ONE || node->time.most < w.longest[n]) {
                print_error("seed %" PRIu64 ", s%u\n%s", began, n, text);
            }
            check_eq_u64(node->unbudgeted, w.unbudgeted[n] * GRAPH_ONE);
            check_true(node->time.most >= w.longest[n]); /* a bound over all paths */
            if (node->root) {
                check_eq_u64(node->time.most, w.longest[n]);
            }
        }
        lab_end(&lab);
    }
}

BECALM_TESTS(cmocka_unit_test(test_graph__a_file_without_services_is_empty),
             cmocka_unit_test(test_graph__a_service_alone_gets_its_attempts),
             cmocka_unit_test(test_graph__three_layers_of_three_attempts_are_27),
             cmocka_unit_test(test_graph__ten_services_with_one_retry_and_five_percent),
             cmocka_unit_test(test_graph__the_hop_into_a_root_counts_if_our_gateway_makes_it),
             cmocka_unit_test(test_graph__each_kind_of_budget_has_its_bound),
             cmocka_unit_test(test_graph__a_fixed_rate_bounds_nothing_when_the_traffic_is_unknown),
             cmocka_unit_test(test_graph__endpoints_have_buckets_of_their_own_unless_the_level_says_otherwise),
             cmocka_unit_test(test_graph__the_worst_endpoint_counts),
             cmocka_unit_test(test_graph__a_hedge_counts_as_an_attempt),
             cmocka_unit_test(test_graph__of_two_paths_the_worse_counts_and_not_their_sum),
             cmocka_unit_test(test_graph__with_marks_only_the_nearest_hop_that_retries_counts),
             cmocka_unit_test(test_graph__a_callee_that_nobody_declares_is_one_attempt),
             cmocka_unit_test(test_graph__files_are_one_graph_and_each_calls_by_its_own_rules),
             cmocka_unit_test(test_graph__a_client_waits_no_longer_than_each_timeout_on_the_way_allows),
             cmocka_unit_test(test_graph__waits_are_summed_by_growth_cap_and_jitter),
             cmocka_unit_test(test_graph__cycles_are_cut_where_they_close),
             cmocka_unit_test(test_graph__of_a_circle_that_nobody_calls_the_first_is_the_root),
             cmocka_unit_test(test_graph__products_beyond_counting_stop_at_the_most),
             cmocka_unit_test(test_graph__a_long_chain_has_its_ends_on_its_path),
             cmocka_unit_test(test_graph__agrees_with_walking_every_path))
