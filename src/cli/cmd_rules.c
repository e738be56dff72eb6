/* SPDX-License-Identifier: MIT */
/* becalm rules: alerts and dashboards for a gateway, in the languages of Prometheus and Grafana; the files of deploy/
 * as they are. */
#include "cli.h"
#include "embedded.h"

#include <becalm/base.h>

#include <string.h>

extern const struct embedded embedded_rules[]; /* each under its command's name */

#define ALERT       "      - alert: "
#define ANNOTATIONS "        annotations:"
#define NAME_BYTES  64

static const struct embedded *file_named(const char *name)
{
    const struct embedded *file = embedded_rules;
    while (file->name != NULL && strcmp(file->name, name) != 0) {
        file++;
    }
    BECALM_ASSERT(file->name != NULL); /* CMakeLists.txt has them by these names */
    return file;
}

static bool begins(const char *line, size_t length, const char *with)
{
    return length >= strlen(with) && memcmp(line, with, strlen(with)) == 0;
}

/* A heading of docs/alerts.md is found by its name in small letters. */
static void runbook_print(const char *base, const char *alert, const char *indent)
{
    printf("%s          runbook_url: \"%s#", indent, base);
    for (const char *c = alert; *c != '\0'; c++) {
        putchar(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
    }
    printf("\"\n");
}

/* Prints the rule file with this indentation; with a base, each alert has a link to its remedy. */
static void rules_print(const char *indent, const char *base)
{
    const struct embedded *file = file_named("prometheus");
    char alert[NAME_BYTES] = "";
    for (size_t at = 0; at < file->length;) {
        const char *line = (const char *)file->text + at;
        const char *end = memchr(line, '\n', file->length - at);
        size_t length = end == NULL ? file->length - at : (size_t)(end - line);
        printf("%s%.*s\n", length == 0 ? "" : indent, (int)length, line);
        if (begins(line, length, ALERT)) {
            (void)snprintf(alert, sizeof alert, "%.*s", (int)(length - strlen(ALERT)), line + strlen(ALERT));
        } else if (base != NULL && begins(line, length, ANNOTATIONS)) {
            runbook_print(base, alert, indent);
        }
        at += length + 1;
    }
}

/* The address is written in quotes, so characters that would end them are refused. False: the address can't be used. */
static bool base_is_fine(const char *base)
{
    for (const char *c = base; base != NULL && *c != '\0'; c++) {
        if (*c <= ' ' || *c == '"' || *c == '\\' || *c == 0x7f) {
            return false;
        }
    }
    return true;
}

static int prometheus_run(const struct cli_command *self, const struct cli_args *args)
{
    const char *base = cli_value(self, args, "runbooks");
    if (!base_is_fine(base)) {
        return cli_usage(self, "--runbooks: '%s' is no address", base);
    }
    rules_print("", base);
    return 0;
}

/* The rule file as a resource of the Prometheus operator: the same lines, two columns further in. */
static int kubernetes_run(const struct cli_command *self, const struct cli_args *args)
{
    const char *base = cli_value(self, args, "runbooks");
    if (!base_is_fine(base)) {
        return cli_usage(self, "--runbooks: '%s' is no address", base);
    }
    fputs("apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: becalm\nspec:\n", stdout);
    rules_print("  ", base);
    return 0;
}

static int grafana_run(const struct cli_command *self, const struct cli_args *args)
{
    (void)args;
    const struct embedded *file = file_named(self->name);
    fwrite(file->text, 1, file->length, stdout); /* cli_main sees to it that all has been written */
    return 0;
}

static const struct cli_option runbook_options[] = {
    {.name = "runbooks",
     .argument = "URL",
     .help = "where docs/alerts.md is: each alert gets a runbook_url to its part of it"},
    {.name = NULL},
};

static const struct cli_command rules_commands[] = {
    {
        .name = "prometheus",
        .summary = "print the alerts and recording rules",
        .usage = "rules prometheus [--runbooks URL]",
        .purpose = "Prints a rule file for Prometheus: alerts on retry storms, open breakers,\n"
                   "amplification, exhausted budgets, shedding, failed reloads, objectives that are\n"
                   "missed and gateways that are gone, two diagnoses, and the signs of a storm as\n"
                   "recording rules.",
        .examples = "  becalm rules prometheus >/etc/prometheus/becalm.rules.yaml\n"
                    "  becalm rules prometheus --runbooks https://wiki.example/becalm/alerts.md\n",
        .options = runbook_options,
        .run = prometheus_run,
    },
    {
        .name = "kubernetes",
        .summary = "print the alerts for the Prometheus operator",
        .usage = "rules kubernetes [--runbooks URL]",
        .purpose = "Prints the same rules as a PrometheusRule, which the Prometheus operator loads.\n"
                   "A PodMonitor that leaves the metrics' labels alone is in deploy/kubernetes.",
        .examples = "  becalm rules kubernetes | kubectl apply -n monitoring -f -\n",
        .options = runbook_options,
        .run = kubernetes_run,
    },
    {
        .name = "grafana",
        .summary = "print the dashboard",
        .usage = "rules grafana",
        .purpose = "Prints a Grafana dashboard as JSON, to be imported or provisioned. It asks for\n"
                   "the Prometheus that scrapes the gateways, and needs no recording rules.",
        .examples = "  becalm rules grafana >/var/lib/grafana/dashboards/becalm.json\n",
        .run = grafana_run,
    },
    {.name = NULL},
};

const struct cli_command cmd_rules = {
    .name = "rules",
    .summary = "print alerts for Prometheus, or a dashboard for Grafana",
    .usage = "rules COMMAND",
    .purpose = "Prints alert rules for the Prometheus that scrapes a gateway's /metrics, or a\n"
               "dashboard for Grafana. Both fit the metrics of this version.",
    .examples = "  becalm rules prometheus >/etc/prometheus/becalm.rules.yaml\n"
                "  becalm rules grafana >/var/lib/grafana/dashboards/becalm.json\n",
    .subcommands = rules_commands,
};
