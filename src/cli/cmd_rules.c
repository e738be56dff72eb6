/* SPDX-License-Identifier: MIT */
/* becalm rules: what watches a gateway, in the languages of Prometheus and Grafana; the files of deploy/ as they are.
 */
#include "cli.h"
#include "embedded.h"

#include <becalm/base.h>

#include <string.h>

extern const struct embedded embedded_rules[]; /* each under its command's name */

static int rules_run(const struct cli_command *self, const struct cli_args *args)
{
    (void)args;
    const struct embedded *file = embedded_rules;
    while (file->name != NULL && strcmp(file->name, self->name) != 0) {
        file++;
    }
    BECALM_ASSERT(file->name != NULL);           /* CMakeLists.txt has them by these names */
    fwrite(file->text, 1, file->length, stdout); /* cli_main sees to it that all has been written */
    return 0;
}

/* The rule file as a resource of the Prometheus operator: the same lines, two columns further in. */
static int kubernetes_run(const struct cli_command *self, const struct cli_args *args)
{
    (void)self;
    (void)args;
    const struct embedded *file = embedded_rules;
    BECALM_ASSERT(strcmp(file->name, "prometheus") == 0);
    fputs("apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: becalm\nspec:\n", stdout);
    for (size_t at = 0; at < file->length;) {
        const char *line = (const char *)file->text + at;
        const char *end = memchr(line, '\n', file->length - at);
        size_t length = end == NULL ? file->length - at : (size_t)(end - line);
        printf("%s%.*s\n", length == 0 ? "" : "  ", (int)length, line);
        at += length + 1;
    }
    return 0;
}

static const struct cli_command rules_commands[] = {
    {
        .name = "prometheus",
        .summary = "print the alerts and recording rules",
        .usage = "rules prometheus",
        .purpose = "Prints a rule file for Prometheus: alerts on retry storms, open breakers,\n"
                   "amplification, exhausted budgets, shedding and failed reloads, two diagnoses,\n"
                   "and the signs of a storm as recording rules.",
        .examples = "  becalm rules prometheus >/etc/prometheus/becalm.rules.yaml\n"
                    "  becalm rules prometheus >r.yaml && promtool check rules r.yaml\n",
        .run = rules_run,
    },
    {
        .name = "kubernetes",
        .summary = "print the alerts for the Prometheus operator",
        .usage = "rules kubernetes",
        .purpose = "Prints the same rules as a PrometheusRule, which the Prometheus operator loads.\n"
                   "A PodMonitor that leaves the metrics' labels alone is in deploy/kubernetes.",
        .examples = "  becalm rules kubernetes | kubectl apply -n monitoring -f -\n",
        .run = kubernetes_run,
    },
    {
        .name = "grafana",
        .summary = "print the dashboard",
        .usage = "rules grafana",
        .purpose = "Prints a Grafana dashboard as JSON, to be imported or provisioned. It asks for\n"
                   "the Prometheus that scrapes the gateways, and needs no recording rules.",
        .examples = "  becalm rules grafana >/var/lib/grafana/dashboards/becalm.json\n",
        .run = rules_run,
    },
    {.name = NULL},
};

const struct cli_command cmd_rules = {
    .name = "rules",
    .summary = "print alerts for Prometheus, or a dashboard for Grafana",
    .usage = "rules COMMAND",
    .purpose = "Prints what watches a gateway: alert rules for the Prometheus that scrapes its\n"
               "/metrics, or a dashboard for Grafana. Both fit the metrics of this version.",
    .examples = "  becalm rules prometheus >/etc/prometheus/becalm.rules.yaml\n"
                "  becalm rules grafana >/var/lib/grafana/dashboards/becalm.json\n",
    .subcommands = rules_commands,
};
