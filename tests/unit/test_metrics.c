/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* popen */
#include "check.h"

#include "meter/metrics.h"

#include <becalm/version.h>

#include <stdio.h>

#define NOW (100 * BECALM_S)

/* Two services, one with an endpoint that shares its service's limit and gate; two workers. */
struct lab {
    struct becalm_policy policy;
    struct becalm_target target[3];
    void *memory[3];
    struct meter meter[3][2];
    const struct meter *meters[3][2];
    struct metrics_target row[3];
    struct metrics_gateway gateway;
    struct store_counts store;
    struct metrics metrics;
    struct buffer page;
};

static struct lab *lab_make(void)
{
    static const char *const hosts[] = {"10.0.0.1:80", "10.0.0.2:80"};
    static const char *const name[3][2] = {{"payment", NULL}, {"payment", "charge"}, {"led\"ger\\\n", NULL}};
    struct lab *lab = calloc(1, sizeof *lab);
    check_true(lab != NULL);
    becalm_policy_defaults(&lab->policy);
    lab->policy.limit = (struct becalm_limit_policy){.kind = BECALM_LIMIT_FIXED, .min = 1, .max = 77};
    for (uint32_t i = 0; i < 3; i++) {
        size_t bytes = becalm_target_bytes(&lab->policy, 2, 2);
        lab->memory[i] = aligned_alloc(64, bytes);
        check_true(lab->memory[i] != NULL);
        check_true(becalm_target_init(&lab->target[i], lab->memory[i], &lab->policy, 2, 2) == 0);
        lab->meters[i][0] = &lab->meter[i][0];
        lab->meters[i][1] = &lab->meter[i][1];
        lab->row[i] = (struct metrics_target){.service = name[i][0],
                                              .endpoint = name[i][1],
                                              .policy = &lab->policy,
                                              .target = &lab->target[i],
                                              .meters = lab->meters[i],
                                              .meter_count = 2,
                                              .hosts = hosts,
                                              .host_count = 2};
    }
    lab->target[1].limit = lab->target[0].limit;
    lab->target[1].gate = lab->target[0].gate;
    lab->target[1].hosts = lab->target[0].hosts;
    lab->target[1].service_budget = lab->target[0].budget;
    lab->store = (struct store_counts){.entries = 1, .bytes = 2, .begun = 3, .answered = 4, .expired = 5};
    lab->gateway = (struct metrics_gateway){
        .workers = 2, .reload_ok = true, .reload_at = 1767323045, .accepted = 7, .store = &lab->store};
    lab->metrics = (struct metrics){.gateway = &lab->gateway, .target = lab->row, .target_count = 3, .now = NOW};
    lab->page.bytes_max = 1 << 20;
    return lab;
}

static void lab_free(struct lab *lab)
{
    for (uint32_t i = 0; i < 3; i++) {
        free(lab->memory[i]);
    }
    buffer_free(&lab->page);
    free(lab);
}

/* The page, zero-terminated. */
static const char *page_of(struct lab *lab)
{
    lab->page.length = 0;
    metrics_write(&lab->page, &lab->metrics);
    buffer_bytes(&lab->page, "", 1);
    check_true(!lab->page.full);
    lab->page.length--;
    return lab->page.at;
}

/* Is this a whole line of the page, exactly once? */
static void check_line_at(const char *page, const char *line, unsigned times, int at)
{
    char whole[512];
    unsigned found = 0;
    (void)snprintf(whole, sizeof whole, "\n%s\n", line);
    for (const char *next = page; (next = strstr(next, whole)) != NULL; next++) {
        found++;
    }
    if (found != times) {
        print_error("%u times instead of %u: %s\n", found, times, line);
        _fail(__FILE__, at);
    }
}
#define check_line(page, line)    check_line_at((page), (line), 1, __LINE__)
#define check_no_line(page, line) check_line_at((page), (line), 0, __LINE__)

static void test_metrics__an_idle_gateway_has_what_alerts_look_at(void **state)
{
    (void)state;
    struct lab *lab = lab_make();
    const char *page = page_of(lab);
    check_line(page, "http_client_retry_attempts_total{service=\"payment\",endpoint=\"default\",attempt=\"1\"} 0");
    check_line(page, "http_client_requests_total{service=\"payment\",endpoint=\"charge\",status=\"success\"} 0");
    check_line(page, "http_client_concurrent_requests{service=\"payment\"} 0");
    check_line(page, "circuit_breaker_state{service=\"payment\",endpoint=\"charge\"} 0");
    check_line(page, "becalm_breaker_state{service=\"payment\",endpoint=\"charge\",state=\"CLOSED\"} 1");
    check_line(page, "becalm_breaker_state{service=\"payment\",endpoint=\"charge\",state=\"FORCED_OPEN\"} 0");
    check_line(page, "becalm_budget_left{service=\"payment\",endpoint=\"charge\"} 1.000000");
    check_line(page, "becalm_service_budget_left{service=\"payment\"} 1.000000");
    check_line(page, "becalm_build_info{version=\"" BECALM_VERSION "\"} 1");
    check_line(page, "becalm_config_last_reload_successful 1");
    check_line(page, "becalm_config_last_reload_success_timestamp_seconds 1767323045");
    check_line(page, "becalm_connections_accepted_total 7");
    check_line(page, "becalm_store_requests_total{result=\"answered\"} 4");
    check_line(page, "# TYPE process_cpu_seconds_total counter");
    check_true(strstr(page, "process_resident_memory_bytes ") != NULL);
    check_true(strstr(page, "# EOF") == NULL);
    lab_free(lab);
}

static void test_metrics__workers_are_added_up(void **state)
{
    (void)state;
    struct lab *lab = lab_make();
    struct meter *one = &lab->meter[0][0];
    struct meter *two = &lab->meter[0][1];
    meter_add(&one->arrivals[METER_H1], 5);
    meter_add(&two->arrivals[METER_H2], 4);
    meter_add(&two->arrivals[METER_GRPC], 2);
    meter_add(&one->sent[METER_H2], 3);
    meter_code(one, 200);
    meter_code(one, 503);
    meter_code(two, 503); /* in another place there */
    meter_code(two, 204);
    meter_retry(one, 1, 60 * BECALM_MS);
    meter_retry(two, 1, 20 * BECALM_S);
    meter_add(&one->calls[METER_FAILED][BECALM_WHY_BUDGET_EMPTY], 2);
    meter_add(&two->overflow[BECALM_WHY_BUDGET_EMPTY], 2);
    meter_breaker(two, BECALM_BREAKER_OPEN, BECALM_BREAKER_HALF_OPEN);
    meter_add(&one->in_flight, 3);
    meter_add(&two->in_flight, (uint64_t)-1); /* gauges are differences, and only their sum counts */
    meter_add(&lab->meter[1][0].in_flight, 4);
    const char *page = page_of(lab);
    check_line(page, "becalm_arrivals_total{service=\"payment\",endpoint=\"default\"} 11");
    for (uint32_t i = 0; i < METER_PROTOCOL_COUNT; i++) {
        char line[160];
        (void)snprintf(line, sizeof line,
                       "becalm_protocol_requests_total{service=\"payment\",endpoint=\"default\",side=\"clients\","
                       "protocol=\"%s\"} %u",
                       meter_protocol_word((enum meter_protocol)i), (unsigned[]){5, 4, 2}[i]);
        check_line(page, line);
    }
    check_line(page, "becalm_protocol_requests_total{service=\"payment\",endpoint=\"default\",side=\"hosts\","
                     "protocol=\"h1\"} 0"); /* for rate() */
    check_line(page, "becalm_protocol_requests_total{service=\"payment\",endpoint=\"default\",side=\"hosts\","
                     "protocol=\"h2\"} 3");
    check_line(page, "http_server_requests_total{service=\"payment\",endpoint=\"default\",code=\"200\"} 1");
    check_line(page, "http_server_requests_total{service=\"payment\",endpoint=\"default\",code=\"503\"} 2");
    check_line(page, "http_server_requests_total{service=\"payment\",endpoint=\"default\",code=\"204\"} 1");
    check_line(page, "http_client_retry_attempts_total{service=\"payment\",endpoint=\"default\",attempt=\"1\"} 2");
    check_line(page, "becalm_calls_total{service=\"payment\",endpoint=\"default\",result=\"failed\","
                     "reason=\"budget_empty\"} 2");
    check_line(page, "becalm_retry_overflow_total{service=\"payment\",endpoint=\"default\",reason=\"budget_empty\"} 2");
    check_line(page, "circuit_breaker_transitions_total{service=\"payment\",endpoint=\"default\",from=\"OPEN\","
                     "to=\"HALF_OPEN\"} 1");
    check_line(page, "http_client_concurrent_requests{service=\"payment\"} 6");
    check_line(page, "becalm_retry_delay_seconds_bucket{service=\"payment\",endpoint=\"default\",le=\"0.05\"} 0");
    check_line(page, "becalm_retry_delay_seconds_bucket{service=\"payment\",endpoint=\"default\",le=\"0.075\"} 1");
    check_line(page, "becalm_retry_delay_seconds_bucket{service=\"payment\",endpoint=\"default\",le=\"10.0\"} 1");
    check_line(page, "becalm_retry_delay_seconds_bucket{service=\"payment\",endpoint=\"default\",le=\"+Inf\"} 2");
    check_line(page, "becalm_retry_delay_seconds_sum{service=\"payment\",endpoint=\"default\"} 20.060000");
    check_line(page, "becalm_retry_delay_seconds_count{service=\"payment\",endpoint=\"default\"} 2");
    lab_free(lab);
}

static void test_metrics__a_part_that_is_shared_is_written_once(void **state)
{
    (void)state;
    struct lab *lab = lab_make();
    const char *page = page_of(lab);
    check_line(page, "becalm_limit{service=\"payment\",endpoint=\"default\"} 77");
    check_no_line(page, "becalm_limit{service=\"payment\",endpoint=\"charge\"} 77");
    check_line(page, "becalm_pending_requests{service=\"payment\",endpoint=\"default\"} 0");
    check_no_line(page, "becalm_pending_requests{service=\"payment\",endpoint=\"charge\"} 0");
    check_line(page, "becalm_host_ejected{service=\"payment\",host=\"10.0.0.2:80\"} 0");
    lab_free(lab);
}

static void test_metrics__labels_are_escaped(void **state)
{
    (void)state;
    struct lab *lab = lab_make();
    check_line(page_of(lab), "http_client_concurrent_requests{service=\"led\\\"ger\\\\\\n\"} 0");
    lab_free(lab);
}

static void test_metrics__open_is_2_also_when_forced(void **state)
{
    (void)state;
    static const uint64_t expected[] = {
        [BECALM_BREAKER_CLOSED] = 0,   [BECALM_BREAKER_OPEN] = 2,        [BECALM_BREAKER_HALF_OPEN] = 1,
        [BECALM_BREAKER_DISABLED] = 0, [BECALM_BREAKER_FORCED_OPEN] = 2, [BECALM_BREAKER_METRICS_ONLY] = 0};
    struct lab *lab = lab_make();
    struct becalm_moment at = {.now = NOW};
    for (uint32_t i = 0; i < METER_STATES; i++) {
        char line[128];
        becalm_breaker_force(lab->target[2].breaker, &lab->policy.breaker, &at, (enum becalm_breaker_state)i);
        lab->row[2].service = "ledger";
        (void)snprintf(line, sizeof line, "circuit_breaker_state{service=\"ledger\",endpoint=\"default\"} %" PRIu64,
                       expected[i]);
        check_line(page_of(lab), line);
        (void)snprintf(line, sizeof line,
                       "becalm_breaker_state{service=\"ledger\",endpoint=\"default\",state=\"%s\"} 1",
                       becalm_breaker_word((enum becalm_breaker_state)i));
        check_line(page_of(lab), line);
    }
    lab->target[2].breaker = NULL; /* off in the policy */
    check_line(page_of(lab), "becalm_breaker_state{service=\"ledger\",endpoint=\"default\",state=\"DISABLED\"} 1");
    lab_free(lab);
}

static void test_metrics__what_has_no_bound_is_infinite(void **state)
{
    (void)state;
    struct lab *lab = lab_make();
    lab->policy.limit.kind = BECALM_LIMIT_NONE;
    lab->policy.budget.kind = BECALM_BUDGET_NONE;
    const char *page = page_of(lab);
    check_line(page, "becalm_limit{service=\"payment\",endpoint=\"default\"} +Inf");
    check_line(page, "becalm_budget_left{service=\"payment\",endpoint=\"default\"} +Inf");
    lab_free(lab);
}

static void test_metrics__memory_that_ends_is_told(void **state)
{
    (void)state;
    struct lab *lab = lab_make();
    lab->page.bytes_max = 5000;
    metrics_write(&lab->page, &lab->metrics);
    check_true(lab->page.full);
    lab_free(lab);
}

/* Fills every count with something, so that every series there can be is on the page. */
static void fill(struct lab *lab)
{
    for (uint32_t i = 0; i < 3; i++) {
        meter_count *count = (meter_count *)&lab->meter[i][0];
        for (size_t k = 0; k < offsetof(struct meter, code_number) / sizeof *count; k++) {
            meter_add(&count[k], k + 1);
        }
        for (uint32_t code = 100; code < 200; code++) {
            meter_code(&lab->meter[i][1], code);
        }
        for (uint32_t reason = 0; reason < BECALM_REASON_COUNT; reason++) {
            for (uint32_t result = 0; result < METER_RESULT_COUNT; result++) {
                meter_add(&lab->meter[i][0].calls[result][reason], 1);
            }
            meter_add(&lab->meter[i][0].overflow[reason], 1);
            meter_add(&lab->meter[i][0].shed[reason], 1);
            meter_add(&lab->meter[i][0].would[reason], 1);
        }
        for (uint32_t k = 0; k < METER_STATES * METER_STATES; k++) {
            meter_add(&lab->meter[i][0].transitions[k / METER_STATES][k % METER_STATES], 1);
        }
        meter_observe(&lab->meter[i][0].delay, 3 * BECALM_S);
    }
}

/* Feeds the page to a program, which ends with 0 if it likes it. */
static void check_liked_by(struct lab *lab, const char *command)
{
    FILE *program = popen(command, "w");
    check_true(program != NULL);
    check_eq_u64(fwrite(lab->page.at, 1, lab->page.length, program), lab->page.length);
    check_eq_u64((uint64_t)pclose(program), 0);
}

static void test_metrics__promtool_finds_nothing(void **state)
{
    (void)state;
    struct lab *lab = lab_make();
    page_of(lab);
    check_liked_by(lab, "out=$(promtool check metrics 2>&1) && test -z \"$out\" || { echo \"$out\"; exit 1; }");
    fill(lab);
    page_of(lab);
    check_liked_by(lab, "out=$(promtool check metrics 2>&1) && test -z \"$out\" || { echo \"$out\"; exit 1; }");
    lab_free(lab);
}

static void test_metrics__open_metrics_is_read_by_its_own_parser(void **state)
{
    (void)state;
    static const char command[] =
        "/usr/bin/python3 -c '\n"
        "import sys\n"
        "from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse\n"
        "families = {family.name: family for family in parse(sys.stdin.read())}\n"
        "assert families[\"http_client_requests\"].type == \"counter\"\n"
        "assert families[\"becalm_request_duration_seconds\"].type == \"histogram\"\n"
        "assert len(families) > 30, len(families)\n'";
    struct lab *lab = lab_make();
    lab->metrics.open_metrics = true;
    const char *page = page_of(lab);
    check_line(page, "# TYPE http_client_requests counter");
    check_line(page, "http_client_requests_total{service=\"payment\",endpoint=\"charge\",status=\"success\"} 0");
    check_eq_str(page + lab->page.length - 6, "# EOF\n");
    check_liked_by(lab, command);
    fill(lab);
    page_of(lab);
    check_liked_by(lab, command);
    lab_free(lab);
}

static void test_metrics__a_duration_shows_the_latest_trace_of_its_bucket_in_open_metrics_alone(void **state)
{
    (void)state;
    static const char older[] = "11111111111111111111111111111111";
    static const char trace[] = "0af7651916cd43dd8448eb211c80319c";
    static const char bucket[] =
        "becalm_request_duration_seconds_bucket{service=\"payment\",endpoint=\"charge\",le=\"0.025\"} ";
    static const char command[] =
        "/usr/bin/python3 -c '\n"
        "import sys\n"
        "from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse\n"
        "found = [(s.name, s.labels[\"le\"], s.exemplar) for f in parse(sys.stdin.read()) for s in f.samples if "
        "s.exemplar]\n"
        "((name, le, e),) = found\n"
        "assert (name, le) == (\"becalm_request_duration_seconds_bucket\", \"0.025\"), found\n"
        "assert (e.labels, e.value) == ({\"trace_id\": \"0af7651916cd43dd8448eb211c80319c\"}, 0.02), e\n"
        "assert float(e.timestamp) == 1700000000.125, e\n'";
    struct lab *lab = lab_make();
    fill(lab);
    struct becalm_record record = {.began_at = BECALM_S, .ended_at = BECALM_S + 20 * BECALM_MS};
    meter_exemplar(&lab->meter[1][0], &record, UINT64_C(1700000000125000000), trace);
    meter_exemplar(&lab->meter[1][1], &record, UINT64_C(1600000000125000000), older); /* another worker's */
    const char *page = page_of(lab);
    check_true(strstr(page, trace) == NULL && strstr(page, bucket) != NULL);
    lab->metrics.open_metrics = true;
    page = page_of(lab);
    check_true(strstr(page, " # {trace_id=\"0af7651916cd43dd8448eb211c80319c\"} 0.020000 1700000000.125\n") != NULL);
    check_liked_by(lab, command);
    lab_free(lab);
}

static void test_metrics__the_format_is_chosen_by_accept(void **state)
{
    (void)state;
    check_true(!metrics_accepts_open((struct becalm_text){0}));
    check_true(!metrics_accepts_open(text_of("text/plain;version=0.0.4;q=0.5,*/*;q=0.1")));
    check_true(metrics_accepts_open(text_of("application/openmetrics-text;version=1.0.0,text/plain;q=0.5")));
    check_true(metrics_accepts_open(text_of("text/plain, Application/OpenMetrics-Text")));
    check_true(!metrics_accepts_open(text_of("application/openmetrics-tex")));
    check_true(strstr(metrics_content_type(false), "version=0.0.4") != NULL);
    check_true(strstr(metrics_content_type(true), "version=1.0.0") != NULL);
}

BECALM_TESTS(cmocka_unit_test(test_metrics__an_idle_gateway_has_what_alerts_look_at),
             cmocka_unit_test(test_metrics__workers_are_added_up),
             cmocka_unit_test(test_metrics__a_part_that_is_shared_is_written_once),
             cmocka_unit_test(test_metrics__labels_are_escaped),
             cmocka_unit_test(test_metrics__open_is_2_also_when_forced),
             cmocka_unit_test(test_metrics__what_has_no_bound_is_infinite),
             cmocka_unit_test(test_metrics__memory_that_ends_is_told),
             cmocka_unit_test(test_metrics__promtool_finds_nothing),
             cmocka_unit_test(test_metrics__open_metrics_is_read_by_its_own_parser),
             cmocka_unit_test(test_metrics__a_duration_shows_the_latest_trace_of_its_bucket_in_open_metrics_alone),
             cmocka_unit_test(test_metrics__the_format_is_chosen_by_accept))
