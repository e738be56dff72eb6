/* SPDX-License-Identifier: MIT */
/* becalm doctor: checks the machine, the policy and the running gateway, and gives remedies. */
#include "doctor.h"

#include "cli/check/cmd_check_store.h"
#include "cli/json.h"
#include "policy/lint/lint.h"
#include "policy/text/escape.h"
#include "policy/value.h"
#include "tls/tls_set.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define DO          "; do: "
#define TIMEOUT     (2 * BECALM_S)
#define TIMEOUT_MIN (10 * BECALM_MS)
#define TIMEOUT_MAX (60 * BECALM_S)

/* ---- lines ---- */

static struct doctor_line *line_add(struct doctor *d)
{
    if (d->count == d->room) {
        uint32_t room = d->room == 0 ? 32 : 2 * d->room;
        struct doctor_line *more = realloc(d->line, room * sizeof *more);
        if (more == NULL) {
            d->no_memory = true;
            return NULL;
        }
        d->line = more;
        d->room = room;
    }
    return &d->line[d->count++];
}

void doctor_say(struct doctor *d, enum doctor_grade grade, const char *topic, const char *format, ...)
{
    char whole[1152];
    va_list list;
    struct doctor_line *line = line_add(d);
    if (line == NULL) {
        return;
    }
    va_start(list, format);
    (void)vsnprintf(whole, sizeof whole, format, list);
    va_end(list);
    escape_text(whole, sizeof whole);
    char *remedy = strstr(whole, DO);
    line->grade = grade;
    line->topic = topic;
    (void)snprintf(line->remedy, sizeof line->remedy, "%s", remedy == NULL ? "" : remedy + strlen(DO));
    if (remedy != NULL) {
        *remedy = '\0';
    }
    (void)snprintf(line->text, sizeof line->text, "%.*s", (int)sizeof line->text - 1, whole);
}

static const char *grade_word(enum doctor_grade grade)
{
    switch (grade) {
    case DOCTOR_OK:
        return "ok";
    case DOCTOR_WARNING:
        return "warning";
    case DOCTOR_FAULT:
        return "fault";
    }
    return "fault";
}

static const char *grade_mark(enum doctor_grade grade, const struct cli_style *style)
{
    switch (grade) {
    case DOCTOR_OK:
        return style->green;
    case DOCTOR_WARNING:
        return style->yellow;
    case DOCTOR_FAULT:
        return style->red;
    }
    return style->red;
}

static uint32_t graded(const struct doctor *d, enum doctor_grade grade)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < d->count; i++) {
        count += d->line[i].grade == grade;
    }
    return count;
}

static void print_all(const struct doctor *d)
{
    struct cli_style style = cli_style(stdout);
    uint32_t warnings = graded(d, DOCTOR_WARNING);
    uint32_t faults = graded(d, DOCTOR_FAULT);
    for (uint32_t i = 0; i < d->count; i++) {
        const struct doctor_line *line = &d->line[i];
        printf("%s%-8s%s %-12s %s\n", grade_mark(line->grade, &style), grade_word(line->grade), style.reset,
               line->topic, line->text);
        if (line->remedy[0] != '\0') {
            printf("%-21s > %s\n", "", line->remedy);
        }
    }
    printf("%u fault%s, %u warning%s\n", faults, faults == 1 ? "" : "s", warnings, warnings == 1 ? "" : "s");
}

static void write_all(const struct doctor *d)
{
    struct json json;
    json_begin(&json, stdout);
    json_object(&json, NULL);
    json_integer(&json, "faults", graded(d, DOCTOR_FAULT));
    json_integer(&json, "warnings", graded(d, DOCTOR_WARNING));
    json_array(&json, "lines");
    for (uint32_t i = 0; i < d->count; i++) {
        json_object(&json, NULL);
        json_text(&json, "grade", grade_word(d->line[i].grade));
        json_text(&json, "topic", d->line[i].topic);
        json_text(&json, "text", d->line[i].text);
        if (d->line[i].remedy[0] != '\0') {
            json_text(&json, "remedy", d->line[i].remedy);
        }
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
    json_end(&json);
}

/* ---- the policy ---- */

/* A diagnostic has the problem, and after a semicolon the correction; if it has none, `otherwise` is the correction. */
static void diags_tell(struct doctor *d, const char *topic, const struct becalm_diags *diags, const char *otherwise)
{
    for (uint32_t i = 0; i < diags->count; i++) {
        const struct becalm_diag *diag = &diags->diag[i];
        enum doctor_grade grade = diag->severity == BECALM_ERROR     ? DOCTOR_FAULT
                                  : diag->severity == BECALM_WARNING ? DOCTOR_WARNING
                                                                     : DOCTOR_OK;
        const char *half = strstr(diag->message, "; ");
        int length = half == NULL ? (int)strlen(diag->message) : (int)(half - diag->message);
        doctor_say(d, grade, topic, "%s:%u:%u: %.*s%s%s", diag->file, diag->line, diag->column, length, diag->message,
                   grade == DOCTOR_OK && half == NULL ? "" : DO,
                   half == NULL ? (grade == DOCTOR_OK ? "" : otherwise) : half + 2);
    }
}

static int policy_lint(struct doctor *d)
{
    const struct becalm_config *configs[] = {d->config};
    struct lint_report report = {0};
    uint32_t errors = 0;
    uint32_t warnings = 0;
    struct graph *graph = NULL;
    int rc = graph_build(&graph, configs, 1);
    rc = rc != 0 ? rc : lint_run(&report, configs, 1, graph);
    for (uint32_t i = 0; i < report.count; i++) {
        errors += !report.findings[i].silenced && report.findings[i].severity == BECALM_ERROR;
        warnings += !report.findings[i].silenced && report.findings[i].severity == BECALM_WARNING;
    }
    if (errors + warnings > 0) {
        doctor_say(d, errors > 0 ? DOCTOR_FAULT : DOCTOR_WARNING, "policy",
                   "%s is valid, with %u error%s and %u warning%s of the linter" DO "`becalm check %s` lists them",
                   becalm_config_name(d->config), errors, errors == 1 ? "" : "s", warnings, warnings == 1 ? "" : "s",
                   becalm_config_name(d->config));
    } else {
        doctor_say(d, DOCTOR_OK, "policy", "%s is valid, without findings", becalm_config_name(d->config));
    }
    graph_free(graph);
    lint_free(&report);
    return rc;
}

/* Loads the policy with its certificates, and checks it. 0, or BECALM_ENOMEM; errors in the file are reported. */
static int policy_load(struct doctor *d, const struct cli_command *command, const struct cli_args *args,
                       struct becalm_config **config, struct becalm_diags *diags)
{
    struct becalm_load_options options = {
        .shared_budgets = true,
        .substitute = true,
        .set = cli_values(command, args, "set"),
        .parts = args->words + 1,
    };
    struct tls_set *set = NULL;
    int rc = becalm_config_load(config, args->words[0], &options, diags);
    if (rc == 0) {
        rc = tls_set_make(&set, &(struct tls_set_plan){.config = *config}, diags);
        tls_set_drop(set);
    }
    diags_tell(d, "policy", diags, "fix the file there");
    d->config = *config;
    return rc == BECALM_ENOMEM ? rc : d->config == NULL ? 0 : policy_lint(d);
}

static bool names_a_store(const struct becalm_config *config)
{
    bool named = becalm_config_settings(config)->store.redis != NULL;
    for (uint32_t i = 0; i < becalm_config_services(config); i++) {
        named = named || becalm_config_service(config, i)->rules.shared_redis != NULL;
    }
    return named;
}

static int store_visit(struct doctor *d, struct becalm_diags *diags)
{
    memset(diags, 0, sizeof *diags);
    int rc = names_a_store(d->config) ? check_store(d->config, diags) : 0;
    diags_tell(d, "store", diags, "is Redis started, and is `store` its address? `redis-cli -u URL ping`");
    return rc;
}

/* ---- the command ---- */

static int look(struct doctor *d, const struct cli_command *command, const struct cli_args *args)
{
    struct becalm_config *config = NULL;
    struct becalm_diags *diags = calloc(1, sizeof *diags); /* too large for a stack */
    int rc = diags == NULL ? BECALM_ENOMEM : 0;
    if (rc == 0 && args->word_count > 0) {
        rc = policy_load(d, command, args, &config, diags);
    }
    if (rc == 0) {
        doctor_machine(d);
        doctor_gateway(d, cli_value(command, args, "admin"), cli_value(command, args, "token-file"));
    }
    if (rc == 0 && d->config != NULL) {
        doctor_ports(d);
        doctor_hosts(d);
        rc = store_visit(d, diags);
    }
    becalm_config_free(config);
    free(diags);
    return d->no_memory ? BECALM_ENOMEM : rc;
}

static int run(const struct cli_command *command, const struct cli_args *args)
{
    const char *root = cli_value(command, args, "root");
    const char *timeout = cli_value(command, args, "timeout");
    struct doctor d = {.root = root == NULL ? "" : root, .timeout = TIMEOUT};
    if (timeout != NULL &&
        (!value_duration(timeout, &d.timeout) || d.timeout < TIMEOUT_MIN || d.timeout > TIMEOUT_MAX)) {
        return cli_usage(command, "--timeout is a duration of 10ms to 1m, not '%s'", timeout);
    }
    int rc = look(&d, command, args);
    if (rc != 0) {
        free(d.line);
        return cli_fail(command, "out of memory");
    }
    if (cli_has(command, args, "json")) {
        write_all(&d);
    } else {
        print_all(&d);
    }
    rc = graded(&d, DOCTOR_FAULT) > 0 || (cli_has(command, args, "strict") && graded(&d, DOCTOR_WARNING) > 0);
    free(d.line);
    return rc;
}

static const struct cli_option options[] = {
    {.name = "admin",
     .argument = "ADDRESS",
     .help = "the running gateway's admin address; the policy's, or 127.0.0.1:9900"},
    {.name = "token-file",
     .argument = "FILE",
     .help = "a file with the token, where the gateway needs one",
     .complete = CLI_FILE},
    {.name = "timeout",
     .argument = "TIME",
     .help = "time limit for a DNS name, and for the hosts of a service: 2s; 10ms to 1m"},
    {.name = "set", .argument = "KEY=VALUE", .help = "override a key of the policy: role=sidecar", .many = true},
    {.name = "root",
     .argument = "DIR",
     .help = "where the machine's /proc and /sys are: /host in a container",
     .complete = CLI_FILE},
    {.name = "strict", .help = "exit with 1 on warnings too"},
    {.name = "json", .help = "print JSON, for scripts"},
    {.name = NULL},
};

const struct cli_command cmd_doctor = {
    .name = "doctor",
    .summary = "check the machine, a policy and the running gateway",
    .usage = "doctor [options] [POLICY [PART...]]",
    .purpose = "Checks everything that a gateway needs, and prints a line for each: ok, warning\n"
               "or fault, and how to fix it. Without a policy it checks descriptors, CPUs and\n"
               "memory by cgroup, clock, kernel, and the gateway that runs here. With a policy\n"
               "also the file, its ports and which process has them, the names and hosts of its\n"
               "services, and its store. It changes nothing.\n"
               "\n"
               "Exits with 0 if there is no fault, 1 if there is one.",
    .options = options,
    .examples = "  becalm doctor\n"
                "  becalm doctor /etc/becalm/becalm.yaml\n"
                "  becalm doctor --strict --json becalm.yaml conf.d/\n",
    .complete = CLI_FILE,
    .run = run,
};
