/* SPDX-License-Identifier: MIT */
#include "cmd_plan.h"

#include "plan/amplification.h"

#include <string.h>

#define BAR_WIDE   40
#define BAR_NARROW 20
#define BAR_BYTES  (BAR_WIDE * 3 + 1)

/* "--services k" has k - 1 hops that retry; "--layers k" counts these. */
static void read_chain(struct plan_reader *reader, struct plan_chain *chain)
{
    bool services = plan_has(reader, "services");
    bool layers = plan_has(reader, "layers");
    if (services == layers) {
        reader->rc = cli_usage(reader->command, "give --services or --layers%s", services ? ", not both" : "");
        return;
    }
    if (plan_has(reader, "retries") && plan_has(reader, "attempts")) {
        reader->rc = cli_usage(reader->command, "give --retries or --attempts, not both");
        return;
    }
    chain->services = services ? (uint32_t)plan_read_integer(reader, "services", 1, PLAN_SERVICES_MAX, 0)
                               : (uint32_t)plan_read_integer(reader, "layers", 1, PLAN_SERVICES_MAX - 1, 0) + 1;
    chain->attempts = plan_has(reader, "attempts")
                          ? (uint32_t)plan_read_integer(reader, "attempts", 1, PLAN_ATTEMPTS_MAX, 0)
                          : (uint32_t)plan_read_integer(reader, "retries", 0, PLAN_ATTEMPTS_MAX - 1, 2) + 1;
    chain->rps = plan_read_decimal(reader, "rps", 1e-6, 1e9, 1);
    chain->budgeted = plan_has(reader, "budget");
    chain->budget_ppm = plan_read_percent(reader, "budget", 0);
}

struct load_text {
    char rps[FIGURE_MAX];
    char factor[FIGURE_MAX + 1];
};

static struct load_text write_load(struct plan_load load)
{
    struct load_text text;
    figure_write(load.rps, 1, text.rps, sizeof(text.rps));
    size_t length = figure_write(load.factor, 3, text.factor, FIGURE_MAX);
    memcpy(text.factor + length, "x", 2);
    return text;
}

static void print_row(const struct plan_chain *chain, const char *name, struct plan_load bare, struct plan_load paid,
                      const char *bar)
{
    struct load_text left = write_load(bare);
    struct load_text right = write_load(paid);
    if (chain->budgeted) {
        printf("%7s  %12s  %9s  %12s  %9s%s%s\n", name, left.rps, left.factor, right.rps, right.factor,
               *bar == '\0' ? "" : "  ", bar);
    } else {
        printf("%7s  %13s  %10s%s%s\n", name, left.rps, left.factor, *bar == '\0' ? "" : "  ", bar);
    }
}

static void print_table(const struct plan_chain *chain, const struct plan_amplification *result)
{
    uint32_t last = chain->services - 1;
    uint32_t width = chain->budgeted ? BAR_NARROW : BAR_WIDE;
    const struct plan_load *load = chain->budgeted ? result->paid : result->bare;
    if (chain->budgeted) {
        char percent[FIGURE_MAX];
        figure_write(chain->budget_ppm / 1e4, 3, percent, sizeof(percent));
        printf("%7s  %23s  %20s %s %%\n", "", "without budgets", "with", percent);
        printf("%7s  %12s  %9s  %12s  %9s\n", "service", "rps", "factor", "rps", "factor");
    } else {
        printf("%7s  %13s  %10s\n", "service", "rps", "factor");
    }
    for (uint32_t i = 0; i <= last; i++) {
        char name[16];
        char bar[BAR_BYTES];
        snprintf(name, sizeof(name), "%u", i + 1);
        figure_bar(load[i].factor / load[last].factor, width, cli_utf8(), bar, sizeof(bar));
        print_row(chain, name, result->bare[i], result->paid[i], bar);
    }
    print_row(chain, "all", result->bare_total, result->paid_total, "");
}

static void print_text(const struct plan_chain *chain, const struct plan_amplification *result)
{
    uint32_t last = chain->services - 1;
    struct load_text bare = write_load(result->bare[last]);
    struct load_text paid = write_load(result->paid[last]);
    struct load_text marked = write_load(result->marked);
    struct load_text all = write_load(result->bare_total);
    struct load_text paid_all = write_load(result->paid_total);
    char rps[FIGURE_MAX];
    figure_write(chain->rps, 3, rps, sizeof(rps));
    plan_print_heading("%u %s in a chain, %s rps, up to %u %s per layer", chain->services,
                       chain->services == 1 ? "service" : "services", rps, chain->attempts,
                       chain->attempts == 1 ? "attempt" : "attempts");
    print_table(chain, result);
    putchar('\n');
    plan_print_sentence("When it fails, the last service gets %s rps (%s), all together %s rps.", bare.rps, bare.factor,
                        all.rps);
    if (chain->budgeted) {
        plan_print_sentence("With the budgets it gets %s rps (%s), all together %s rps.", paid.rps, paid.factor,
                            paid_all.rps);
    }
    if (last > 1) {
        plan_print_sentence("With marks%s only the layer above it retries: %s rps (%s).",
                            chain->budgeted ? " as well" : "", marked.rps, marked.factor);
    }
}

static void json_load(struct json *json, const char *key, struct plan_load load)
{
    json_object(json, key);
    json_number(json, "rps", load.rps, 3);
    json_number(json, "factor", load.factor, 6);
    json_object_end(json);
}

static void print_json(const struct plan_chain *chain, const struct plan_amplification *result)
{
    struct json json;
    uint32_t last = chain->services - 1;
    json_begin(&json, stdout);
    json_object(&json, NULL);
    json_integer(&json, "services", chain->services);
    json_integer(&json, "layers", last);
    json_integer(&json, "attempts", chain->attempts);
    json_number(&json, "rps", chain->rps, 6);
    if (chain->budgeted) {
        json_number(&json, "budget_percent", chain->budget_ppm / 1e4, 4);
    } else {
        json_null(&json, "budget_percent");
    }
    json_array(&json, "loads");
    for (uint32_t i = 0; i < chain->services; i++) {
        json_object(&json, NULL);
        json_integer(&json, "service", i + 1);
        json_load(&json, "unbudgeted", result->bare[i]);
        if (chain->budgeted) {
            json_load(&json, "budgeted", result->paid[i]);
        }
        json_object_end(&json);
    }
    json_array_end(&json);
    json_load(&json, "unbudgeted", result->bare[last]);
    json_load(&json, "unbudgeted_total", result->bare_total);
    if (chain->budgeted) {
        json_load(&json, "budgeted", result->paid[last]);
        json_load(&json, "budgeted_total", result->paid_total);
    }
    json_load(&json, "marked", result->marked);
    json_object_end(&json);
    json_end(&json);
}

int plan_run_amplification(const struct cli_command *command, const struct cli_args *args)
{
    struct plan_reader reader = {.command = command, .args = args};
    struct plan_chain chain = {0};
    struct plan_amplification result;
    read_chain(&reader, &chain);
    if (reader.rc != 0) {
        return reader.rc;
    }
    plan_amplify(&chain, &result);
    if (plan_has(&reader, "json")) {
        print_json(&chain, &result);
    } else {
        print_text(&chain, &result);
    }
    return 0;
}
