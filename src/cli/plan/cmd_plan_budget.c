/* SPDX-License-Identifier: MIT */
#include "cmd_plan.h"

#include "plan/budget.h"
#include "policy/value.h"

#include <inttypes.h>

#define RATE_MAX 1e9

struct answer {
    struct plan_traffic traffic;
    struct plan_budget budget;
    struct prometheus server; /* its url is NULL when the figures were typed */
    struct plan_notes notes;
    struct plan_text yaml;
};

static void read_options(struct plan_reader *reader, struct answer *answer)
{
    struct plan_traffic *traffic = &answer->traffic;
    plan_read_prometheus(reader, &answer->server);
    answer->server.rate = plan_read_duration(reader, "rate", BECALM_S, 3600 * BECALM_S, 60 * BECALM_S);
    traffic->requests = plan_read_decimal(reader, "requests-per-second", 1e-6, RATE_MAX, 0);
    traffic->retries = plan_read_decimal(reader, "retries-per-second", 0, RATE_MAX, 0);
    traffic->latency = plan_read_duration(reader, "latency", 1, 3600 * BECALM_S, 0);
    traffic->instances = (uint32_t)plan_read_integer(reader, "instances", 1, 1000000, 1);
    if (reader->rc != 0) {
        return;
    }
    uint32_t rates = plan_has(reader, "requests-per-second") + plan_has(reader, "retries-per-second");
    if (answer->server.url != NULL && rates > 0) {
        reader->rc = cli_usage(reader->command, "give rates or --prometheus, not both");
    } else if (answer->server.url == NULL && rates < 2) {
        reader->rc =
            cli_usage(reader->command, "give --requests-per-second and --retries-per-second, or --prometheus URL");
    } else if (traffic->retries > traffic->requests) {
        reader->rc = cli_usage(reader->command, "--requests-per-second counts retries too: "
                                                "it can't be below --retries-per-second");
    }
}

static void note_share(struct answer *answer)
{
    const struct plan_budget *budget = &answer->budget;
    if (budget->storm) {
        plan_note(
            &answer->notes,
            "More than %u %% retries are a storm or a failing service, not a measure for healthy traffic. Measure "
            "again when the service is healthy; %u %% is the most that makes sense.",
            PLAN_BUDGET_STORM_PERCENT, PLAN_BUDGET_STORM_PERCENT);
    } else if (answer->traffic.retries <= 0) {
        plan_note(&answer->notes, "There were no retries. 1 %% is the least that makes sense; measure at a peak.");
    }
}

/* The minimum for an instance with few requests in flight, and its effect on the sum of all instances. */
static void note_concurrency(struct answer *answer)
{
    const struct plan_budget *budget = &answer->budget;
    uint32_t instances = answer->traffic.instances;
    char each[FIGURE_MAX];
    char allowed[FIGURE_MAX];
    char share[FIGURE_MAX];
    figure_write_fine(budget->active_each, each, sizeof(each));
    figure_write_fine(budget->allowed, allowed, sizeof(allowed));
    figure_write((double)budget->minimum_total / budget->active * 100, 0, share, sizeof(share));
    if (instances == 1) {
        plan_note(&answer->notes,
                  "There are %s requests in flight, and %u %% of them are less than one retry. A budget on requests in "
                  "flight (kind: concurrency, Envoy's) needs minConcurrency: %u here.",
                  each, budget->percent, budget->minimum);
    } else {
        plan_note(&answer->notes,
                  "An instance has %s requests in flight, and %u %% of them are less than one retry. A budget on "
                  "requests in flight (kind: concurrency, Envoy's) needs minConcurrency: %u here, and %u instances x "
                  "%u = %" PRIu64 " retries in flight, %s %% of the requests.",
                  each, budget->percent, budget->minimum, instances, budget->minimum, budget->minimum_total, share);
        plan_note(&answer->notes, "In one gateway that all instances call through, %u %% are %s retries in flight%s.",
                  budget->percent, allowed,
                  budget->allowed < 1 ? ": it needs the minimum too, but once per replica instead of once per instance"
                                      : " and need no minimum");
    }
}

/* A ratio counts over a window instead of at one instant, so that few requests in flight do not matter to it. */
static void note_window(struct answer *answer)
{
    const struct plan_budget *budget = &answer->budget;
    char window[FIGURE_MAX];
    figure_write_fine(budget->window_each, window, sizeof(window));
    if (budget->sparse) {
        plan_note(&answer->notes,
                  "Counted over 2m an instance may send %s retries: there is too little traffic for a ratio. The kind "
                  "earned starts with a whole token.",
                  window);
    } else {
        plan_note(&answer->notes,
                  "Counted over 2m instead of in flight, an instance may send %s retries: a ratio needs "
                  "no minimum.",
                  window);
    }
}

static void write_yaml(struct answer *answer)
{
    const struct plan_budget *budget = &answer->budget;
    struct plan_text *yaml = &answer->yaml;
    int indent = plan_text_target(yaml, answer->server.service);
    if (budget->sparse) {
        plan_text_add(yaml, "%*sbudget: {kind: earned, percent: %u}\n", indent, "", budget->percent);
    } else {
        plan_text_add(yaml, "%*sbudget: {kind: ratio, percent: %u, of: attempts, window: 2m}\n", indent, "",
                      budget->percent);
    }
    if (budget->low) {
        plan_text_add(yaml, "%*s# or Envoy's kind; %u x %u = %" PRIu64 " in flight over all instances:\n", indent, "",
                      answer->traffic.instances, budget->minimum, budget->minimum_total);
        plan_text_add(yaml, "%*s# budget: {kind: concurrency, percent: %u, minConcurrency: %u}\n", indent, "",
                      budget->percent, budget->minimum);
    }
}

static void print_line(const char *what, const char *value, const char *rest)
{
    printf("%-34s%12s%s%s\n", what, value, *rest == '\0' ? "" : "   ", rest);
}

static void print_rates(const struct answer *answer)
{
    char text[FIGURE_MAX];
    char percent[16];
    figure_write(answer->traffic.requests, 3, text, sizeof(text));
    print_line("requests per second, on average", text, "");
    figure_write(answer->traffic.retries, 3, text, sizeof(text));
    print_line("retries per second, at most", text, "");
    figure_write(answer->budget.share * 100, 1, text, sizeof(text) - 2);
    char share[FIGURE_MAX + 2];
    snprintf(share, sizeof(share), "%s %%", text);
    print_line("retries / requests", share, "");
    snprintf(percent, sizeof(percent), "%u %%", answer->budget.percent);
    print_line("recommended budget", percent, answer->budget.storm ? "no more than this" : "the next whole percent");
}

static void print_concurrency(const struct answer *answer)
{
    const struct plan_budget *budget = &answer->budget;
    char text[FIGURE_MAX];
    char rest[FIGURE_MAX + 32];
    char what[64];
    char latency[FIGURE_MAX];
    value_write_duration(answer->traffic.latency, latency, sizeof(latency));
    putchar('\n');
    plan_print_heading("At %s per request and %u %s", latency, answer->traffic.instances,
                       answer->traffic.instances == 1 ? "instance" : "instances");
    figure_write_fine(budget->active_each, text, sizeof(text));
    snprintf(rest, sizeof(rest), "%s per instance", text);
    figure_write_fine(budget->active, text, sizeof(text));
    print_line("requests in flight", text, rest);
    figure_write_fine(budget->allowed_each, text, sizeof(text));
    snprintf(rest, sizeof(rest), "%s per instance%s", text, budget->low ? ": below one" : "");
    snprintf(what, sizeof(what), "%u %% of them, retries", budget->percent);
    figure_write_fine(budget->allowed, text, sizeof(text));
    print_line(what, text, rest);
    if (!budget->low) {
        return;
    }
    snprintf(what, sizeof(what), "with a minimum of %u", budget->minimum);
    snprintf(rest, sizeof(rest), "%u x %u", answer->traffic.instances, budget->minimum);
    figure_write((double)budget->minimum_total, 0, text, sizeof(text));
    print_line(what, text, rest);
}

static void print_text(const struct answer *answer)
{
    if (answer->server.url == NULL) {
        plan_print_heading("Retry budget from the figures given");
    } else {
        char window[FIGURE_MAX];
        value_write_duration(answer->server.window, window, sizeof(window));
        plan_print_heading("Retry budget from Prometheus, last %s%s%s", window,
                           answer->server.service == NULL ? "" : ", service ",
                           answer->server.service == NULL ? "" : answer->server.service);
    }
    print_rates(answer);
    if (answer->traffic.latency > 0) {
        print_concurrency(answer);
    }
    plan_print_notes(&answer->notes);
    plan_print_yaml(&answer->yaml);
}

static void json_concurrency(struct json *json, const struct answer *answer)
{
    const struct plan_budget *budget = &answer->budget;
    if (answer->traffic.latency == 0) {
        json_null(json, "concurrency");
        return;
    }
    json_object(json, "concurrency");
    json_number(json, "latency_ms", (double)answer->traffic.latency / (double)BECALM_MS, 6);
    json_number(json, "active", budget->active, 6);
    json_number(json, "active_per_instance", budget->active_each, 6);
    json_number(json, "allowed", budget->allowed, 6);
    json_number(json, "allowed_per_instance", budget->allowed_each, 6);
    json_boolean(json, "low", budget->low);
    json_integer(json, "minimum", budget->minimum);
    json_integer(json, "minimum_total", budget->minimum_total);
    json_object_end(json);
}

static void print_json(const struct answer *answer)
{
    struct json json;
    json_begin(&json, stdout);
    json_object(&json, NULL);
    json_text(&json, "source", answer->server.url == NULL ? "options" : "prometheus");
    json_text(&json, "service", answer->server.service);
    json_number(&json, "requests_per_second", answer->traffic.requests, 6);
    json_number(&json, "retries_per_second", answer->traffic.retries, 6);
    json_number(&json, "share_percent", answer->budget.share * 100, 4);
    json_integer(&json, "recommended_percent", answer->budget.percent);
    json_boolean(&json, "storm", answer->budget.storm);
    json_integer(&json, "instances", answer->traffic.instances);
    json_concurrency(&json, answer);
    plan_json_notes(&json, &answer->notes);
    json_text(&json, "yaml", answer->yaml.bytes);
    json_object_end(&json);
    json_end(&json);
}

int plan_run_budget(const struct cli_command *command, const struct cli_args *args)
{
    struct plan_reader reader = {.command = command, .args = args};
    struct answer answer = {0};
    char why[PLAN_WHY_MAX];
    read_options(&reader, &answer);
    if (reader.rc != 0) {
        return reader.rc;
    }
    if (answer.server.url != NULL &&
        !prometheus_traffic(&answer.server, &answer.traffic.requests, &answer.traffic.retries, why)) {
        return cli_fail(command, "%s", why);
    }
    plan_budget(&answer.traffic, &answer.budget);
    note_share(&answer);
    if (answer.budget.low) {
        note_concurrency(&answer);
    }
    if (answer.budget.low || answer.budget.sparse) {
        note_window(&answer);
    }
    write_yaml(&answer);
    if (plan_has(&reader, "json")) {
        print_json(&answer);
    } else {
        print_text(&answer);
    }
    return 0;
}
