/* SPDX-License-Identifier: MIT */
#include "policy/lint/lint.h"

#include <stdio.h>

#include "check.h"

#define FILES_MAX 4

static struct becalm_diags diags;

struct lab {
    struct becalm_config *configs[FILES_MAX];
    uint32_t count;
    struct graph *graph;
    struct lint_report report;
};

static void lab_add(struct lab *lab, const char *text, const struct becalm_load_options *options)
{
    char name[32];
    (void)snprintf(name, sizeof name, "f%u.yaml", lab->count);
    memset(&diags, 0, sizeof diags);
    if (becalm_config_parse(&lab->configs[lab->count], name, text, strlen(text), options, &diags) != 0) {
        char line[1024];
        (void)becalm_diag_write(&diags.diag[0], line, sizeof line);
        print_error("%s\n", line);
        fail();
    }
    lab->count++;
}

static void lab_run(struct lab *lab)
{
    const struct becalm_config *const *configs = (const struct becalm_config *const *)lab->configs;
    check_eq_u64((uint64_t)graph_build(&lab->graph, configs, lab->count), 0);
    check_eq_u64((uint64_t)lint_run(&lab->report, configs, lab->count, lab->graph), 0);
}

static void lab_end(struct lab *lab)
{
    lint_free(&lab->report);
    graph_free(lab->graph);
    for (uint32_t i = 0; i < lab->count; i++) {
        becalm_config_free(lab->configs[i]);
    }
}

/* "f0.yaml:1:2 code" and "(silenced)", one per line. */
static const char *told(const struct lab *lab)
{
    static char text[8192];
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < lab->report.count && used < sizeof text; i++) {
        const struct lint_finding *f = &lab->report.findings[i];
        check_true(f->message[0] != '\0');
        check_true(f->remedy[0] != '\0');
        used += (size_t)snprintf(text + used, sizeof text - used, "%s:%u:%u %s%s\n", f->file, f->line, f->column,
                                 f->code, f->silenced ? " (silenced)" : "");
    }
    return text;
}

static void check_lint(const char *text, const char *expected)
{
    struct lab lab = {.count = 0};
    lab_add(&lab, text, NULL);
    lab_run(&lab);
    check_eq_str(told(&lab), expected);
    lab_end(&lab);
}

static void test_lint__the_default_policy_is_fine(void **state)
{
    (void)state;
    check_lint("defaults:\n", "");
    check_lint("defaults: {}\nservices: {a: {}, b: {hosts: \"127.0.0.1:1\"}}\n", "");
}

static void test_lint__what_is_inherited_is_found_once_where_it_is_written(void **state)
{
    (void)state;
    check_lint("defaults:\n"
               "  jitter: none\n"
               "services: {a: {}, b: {endpoints: {x: {}, y: {}}}, c: {}}\n",
               "f0.yaml:2:11 no-jitter\n");
}

static void test_lint__what_every_service_overrides_harms_nobody(void **state)
{
    (void)state;
    check_lint("defaults: {jitter: none}\n"
               "services: {a: {jitter: full}, b: {jitter: equal}}\n",
               "");
}

static void test_lint__defaults_are_judged_when_there_are_no_services(void **state)
{
    (void)state;
    check_lint("defaults: {jitter: none}\n", "f0.yaml:1:20 no-jitter\n");
}

static void test_lint__findings_stand_in_the_order_of_the_file(void **state)
{
    (void)state;
    check_lint("services:\n"
               "  b: {initialDelay: 0s, budget: {kind: none}}\n"
               "  a: {maxRetries: 7, deadline: 2m, jitter: none}\n",
               "f0.yaml:2:21 tiny-delay\n"
               "f0.yaml:2:40 no-budget\n"
               "f0.yaml:3:19 many-attempts\n"
               "f0.yaml:3:44 no-jitter\n");
}

static void test_lint__the_most_specific_key_is_where_it_stands(void **state)
{
    (void)state;
    check_lint("defaults: {attemptTimeout: 8s}\n"
               "services:\n"
               "  a:\n"
               "    endpoints:\n"
               "      x: {maxRetries: 3}\n",
               "f0.yaml:1:28 timeouts-exceed-deadline\n"
               "f0.yaml:5:23 timeouts-exceed-deadline\n");
}

static void test_lint__a_rule_is_silenced_by_its_code_in_its_own_file(void **state)
{
    (void)state;
    struct lab lab = {.count = 0};
    lab_add(&lab, "lint: {ignore: {no-jitter: we are alone}}\nservices: {a: {jitter: none}}\n", NULL);
    lab_add(&lab, "services: {b: {jitter: none}}\n", NULL);
    lab_run(&lab);
    check_eq_str(told(&lab), "f0.yaml:2:24 no-jitter (silenced)\nf1.yaml:1:24 no-jitter\n");
    lab_end(&lab);
}

static void test_lint__silencing_what_is_no_rule_is_found(void **state)
{
    (void)state;
    struct lab lab = {.count = 0};
    lab_add(&lab, "lint: {ignore: {no-jiter: typo, what-is-this: nothing}}\n", NULL);
    lab_run(&lab);
    check_eq_str(told(&lab), "f0.yaml:1:1 unknown-rule\nf0.yaml:1:1 unknown-rule\n");
    check_eq_str(lab.report.findings[0].message, "lint.ignore names no-jiter, which is no rule");
    check_eq_str(lab.report.findings[0].remedy, "did you mean `no-jitter`?");
    lab_end(&lab);
}

static void test_lint__a_value_from_the_command_line_is_found_there(void **state)
{
    (void)state;
    static const char *const set[] = {"defaults.jitter=none", NULL};
    struct becalm_load_options options = {.set = set};
    struct lab lab = {.count = 0};
    lab_add(&lab, "services: {a: {}, b: {}}\n", &options);
    lab_run(&lab);
    check_eq_str(told(&lab), "--set:1:1 no-jitter\n");
    lab_end(&lab);
}

static void test_lint__layers_are_found_over_files(void **state)
{
    (void)state;
    struct lab lab = {.count = 0};
    lab_add(&lab, "gatewayRetries: false\nservices: {a: {calls: [b]}}\n", NULL);
    lab_add(&lab, "role: sidecar\nservices:\n  b: {calls: [c]}\n  c: {}\n", NULL);
    lab_run(&lab);
    check_eq_str(told(&lab), "f1.yaml:4:3 stacked-retries\n");
    check_eq_str(lab.report.findings[0].remedy,
                 "let only the layer next to the failure retry: keep `c`, write `maxRetries: 0` for `b`");
    lab_end(&lab);
}

static void test_lint__a_chain_is_found_once_at_its_end(void **state)
{
    (void)state;
    check_lint("gatewayRetries: false\n"
               "services:\n"
               "  a: {calls: [b]}\n"
               "  b: {calls: [c]}\n"
               "  c: {calls: [d]}\n"
               "  d: {calls: [e], maxRetries: 0}\n"
               "  e: {calls: [f]}\n"
               "  f: {maxRetries: 0}\n",
               "f0.yaml:7:3 stacked-retries\n");
}

static void test_lint__amplification_above_the_bound_is_an_error_at_the_service(void **state)
{
    (void)state;
    struct lab lab = {.count = 0};
    lab_add(&lab,
            "lint: {ignore: {stacked-retries: x, gateway-on-top: x}}\n"
            "defaults: {maxRetries: 1}\n"
            "services:\n"
            "  a: {calls: [b]}\n"
            "  b: {calls: [db]}\n",
            NULL);
    lab_run(&lab);
    const struct becalm_config *const *configs = (const struct becalm_config *const *)lab.configs;
    uint32_t before = lab.report.count;
    lint_amplification(&lab.report, configs, lab.count, lab.graph, 4 * GRAPH_ONE);
    check_eq_u64(lab.report.count, before);
    lint_amplification(&lab.report, configs, lab.count, lab.graph, 2 * GRAPH_ONE);
    check_eq_str(told(&lab), "f0.yaml:4:3 gateway-on-top (silenced)\n"
                             "f0.yaml:5:3 max-amplification\n"
                             "f0.yaml:5:3 max-amplification\n"); /* b, and db that only b knows */
    check_true(lab.report.findings[1].severity == BECALM_ERROR);
    check_eq_str(lab.report.findings[1].message,
                 "b: one client request can become 4 attempts, budgets included; at most 2 are allowed");
    check_eq_str(lab.report.findings[1].remedy, "write `maxRetries: 0` for `a`: then only calls to `b` are retried");
    lab_end(&lab);
}

static void test_lint__findings_have_an_end(void **state)
{
    (void)state;
    size_t size = 64 * (LINT_FINDINGS_MAX + 100);
    char *text = malloc(size);
    check_true(text != NULL);
    int used = snprintf(text, size, "services:\n");
    for (uint32_t i = 0; i < LINT_FINDINGS_MAX + 50; i++) {
        used += snprintf(text + used, size - (size_t)used, "  s%u: {jitter: none}\n", i);
    }
    struct lab lab = {.count = 0};
    lab_add(&lab, text, NULL);
    lab_run(&lab);
    check_eq_u64(lab.report.count, LINT_FINDINGS_MAX);
    check_true(lab.report.cut);
    lab_end(&lab);
    free(text);
}

static void test_lint__names_can_not_drive_a_terminal(void **state)
{
    (void)state;
    struct lab lab = {.count = 0};
    lab_add(&lab, "services: {ledger: {calls: [\"ledge\\e[31m\", \"ledger\\x9b\"]}}\n", NULL);
    lab_run(&lab);
    for (uint32_t i = 0; i < lab.report.count; i++) {
        for (const char *c = lab.report.findings[i].message; *c != '\0'; c++) {
            check_true((unsigned char)*c >= 0x20);
        }
        check_true(strstr(lab.report.findings[i].message, "\xc2\x9b") == NULL);
    }
    check_eq_u64(lab.report.count, 1);
    lab_end(&lab);
}

static void test_lint__endpoints_with_the_same_match_are_found_and_those_without_are_not(void **state)
{
    (void)state;
    check_lint("services: {a: {endpoints: {r: {match: {method: GET}}, s: {match: {method: GET}}}}}\n",
               "f0.yaml:1:55 same-match\n");
    check_lint("services: {a: {endpoints: {r: {match: {method: GET}}, s: {match: {method: PUT}}}}}\n", "");
    check_lint("services: {a: {endpoints: {r: {}, s: {}}}, b: {}}\n", "");
    check_lint("services: {a: {}, b: {match: {host: A}}}\n", "f0.yaml:1:19 same-match\n");
}

static void test_lint__codes_are_short_words_and_each_is_there_once(void **state)
{
    (void)state;
    for (const struct lint_rule *rule = lint_rules; rule->code != NULL; rule++) {
        check_true(rule->target != NULL || rule->graph != NULL);
        check_true(strlen(rule->code) <= 24 &&
                   strspn(rule->code, "abcdefghijklmnopqrstuvwxyz4-") == strlen(rule->code));
        for (const struct lint_rule *other = lint_rules; other < rule; other++) {
            check_true(strcmp(rule->code, other->code) != 0);
        }
    }
}

static void test_lint__amounts_are_written_short(void **state)
{
    (void)state;
    check_eq_str(lint_amount(1000000).text, "1");
    check_eq_str(lint_amount(9261000).text, "9.261");
    check_eq_str(lint_amount(1551328).text, "1.551");
    check_eq_str(lint_amount(2100000).text, "2.1");
    check_eq_str(lint_amount(512000000).text, "512");
    check_eq_str(lint_amount(GRAPH_MOST).text, "1000000000");
    check_eq_str(lint_duration(15300 * BECALM_MS).text, "15.3s");
}

BECALM_TESTS(cmocka_unit_test(test_lint__the_default_policy_is_fine),
             cmocka_unit_test(test_lint__what_is_inherited_is_found_once_where_it_is_written),
             cmocka_unit_test(test_lint__what_every_service_overrides_harms_nobody),
             cmocka_unit_test(test_lint__defaults_are_judged_when_there_are_no_services),
             cmocka_unit_test(test_lint__findings_stand_in_the_order_of_the_file),
             cmocka_unit_test(test_lint__the_most_specific_key_is_where_it_stands),
             cmocka_unit_test(test_lint__a_rule_is_silenced_by_its_code_in_its_own_file),
             cmocka_unit_test(test_lint__silencing_what_is_no_rule_is_found),
             cmocka_unit_test(test_lint__a_value_from_the_command_line_is_found_there),
             cmocka_unit_test(test_lint__layers_are_found_over_files),
             cmocka_unit_test(test_lint__a_chain_is_found_once_at_its_end),
             cmocka_unit_test(test_lint__amplification_above_the_bound_is_an_error_at_the_service),
             cmocka_unit_test(test_lint__findings_have_an_end),
             cmocka_unit_test(test_lint__names_can_not_drive_a_terminal),
             cmocka_unit_test(test_lint__endpoints_with_the_same_match_are_found_and_those_without_are_not),
             cmocka_unit_test(test_lint__codes_are_short_words_and_each_is_there_once),
             cmocka_unit_test(test_lint__amounts_are_written_short))
