/* SPDX-License-Identifier: MIT */
/* becalm top: a gateway's services, live in the terminal or once for scripts. */
#define _POSIX_C_SOURCE 200809L
#include "cmd_top.h"

#include "cmd_top_fleet.h"
#include "policy/value.h"
#include "top/console.h"
#include "top/watch.h"
#include "top_list.h"

#include <stdlib.h>
#include <unistd.h>

#define INTERVAL_MIN (100 * BECALM_MS)
#define INTERVAL_MAX (3600 * BECALM_S)

static void take_style(struct screen *look)
{
    struct cli_style style = cli_style(stdout);
    look->utf8 = cli_utf8();
    look->reset = style.reset;
    look->mark[SCREEN_PLAIN] = "";
    look->mark[SCREEN_STRONG] = style.bold;
    look->mark[SCREEN_FAINT] = style.dim;
    look->mark[SCREEN_BAD] = style.red;
    look->mark[SCREEN_WARN] = style.yellow;
    look->mark[SCREEN_GOOD] = style.green;
    look->mark[SCREEN_CHOSEN] = style.bold;
}

/* The width of the terminal, or COLUMNS, or 80. */
static uint32_t width(void)
{
    uint32_t columns;
    uint32_t lines;
    uint64_t told;
    const char *text = getenv("COLUMNS");
    console_size(&columns, &lines);
    if (isatty(STDOUT_FILENO) != 1 && text != NULL && value_integer(text, &told) && told >= 20 && told <= 1000) {
        return (uint32_t)told;
    }
    return columns;
}

static int print_once(const struct cli_command *self, struct watch *watch, bool as_json)
{
    char why[LINK_WHY_MAX];
    int rc = 0;
    struct view *view = calloc(1, sizeof *view); /* too large for a stack */
    if (view == NULL) {
        return cli_fail(self, "out of memory");
    }
    if (!watch_once(watch, view, why)) {
        rc = cli_fail(self, "%s: %s", watch->place->name, why);
    } else if (as_json) {
        top_json(view, stdout);
    } else {
        watch->look.width = width();
        view_draw(view, &watch->look);
        fputs(watch->look.full ? "" : watch->look.text, stdout);
        rc = watch->look.full ? cli_fail(self, "out of memory") : 0;
        free(watch->look.text);
    }
    view_free(view);
    free(view);
    return rc;
}

static int run_live(const struct cli_command *self, const struct watch *watch)
{
    int rc = watch_live(watch);
    if (rc == -1) {
        return cli_usage(self, "this is no terminal; use --once");
    }
    if (rc == -2) {
        return cli_fail(self, "out of memory");
    }
    if (rc > 0) {
        console_raise(rc);
    }
    return 0;
}

static int top_run(const struct cli_command *self, const struct cli_args *args)
{
    char why[LINK_WHY_MAX];
    struct link_place place;
    const char *interval = cli_value(self, args, "interval");
    bool once = cli_has(self, args, "once");
    bool as_json = cli_has(self, args, "json");
    struct watch watch = {
        .place = &place,
        .token_file = cli_value(self, args, "token-file"),
        .interval = BECALM_S,
    };
    bool all = cli_has(self, args, "all");
    bool several = all || args->word_count > 1;
    if (!several && !link_place_parse(args->word_count == 0 ? LINK_DEFAULT : args->words[0], &place, why)) {
        return cli_usage(self, "%s", why);
    }
    if (interval != NULL && (!value_duration(interval, &watch.interval) || watch.interval < INTERVAL_MIN ||
                             watch.interval > INTERVAL_MAX)) {
        return cli_usage(self, "--interval is a duration of 100ms to 1h, not '%s'", interval);
    }
    if (as_json && !once) {
        return cli_usage(self, "--json needs --once");
    }
    if (cli_has(self, args, "fleet")) {
        return several ? cli_usage(self, "--fleet asks one gateway, which knows all gateways")
                       : top_fleet(self, &watch, once, as_json);
    }
    take_style(&watch.look);
    if (several) {
        static const char *const here[] = {LINK_DEFAULT};
        watch.look.width = width();
        return top_list(self, &watch,
                        &(struct top_list_options){.admin = args->word_count == 0 ? here : args->words,
                                                   .count = args->word_count == 0 ? 1 : args->word_count,
                                                   .all = all,
                                                   .once = once,
                                                   .as_json = as_json});
    }
    return once ? print_once(self, &watch, as_json) : run_live(self, &watch);
}

static const struct cli_option top_options[] = {
    {.name = "once", .letter = '1', .help = "print one screen, and end"},
    {.name = "json", .help = "with --once: print JSON, for scripts"},
    {.name = "all", .help = "ask every address of a DNS name: a line for each gateway, worst first"},
    {.name = "fleet", .help = "the processes that share its store, worst first"},
    {.name = "interval", .letter = 'n', .argument = "TIME", .help = "the time between two requests: 1s; 100ms to 1h"},
    {.name = "token-file",
     .argument = "FILE",
     .help = "a file with the token, where the gateway needs one",
     .complete = CLI_FILE},
    {.name = NULL},
};

const struct cli_command cmd_top = {
    .name = "top",
    .summary = "watch a gateway's services in the terminal",
    .usage = "top [options] [ADMIN...]",
    .purpose = "Shows a gateway live: its services, those in trouble first, with requests and\n"
               "retries, success at once and after retries, and amplification. For the selected\n"
               "service it shows breaker, budget, limit, queue, hosts, and why calls are refused\n"
               "or not retried. ADMIN is the gateway's admin address, host:port or unix:/path;\n"
               "the default is 127.0.0.1:9900. Press ? for the keys. Several gateways have a\n"
               "line each, worst first.",
    .options = top_options,
    .examples = "  becalm top\n"
                "  becalm top --token-file token 10.0.0.7:9900\n"
                "  becalm top 10.0.0.7:9900 10.0.0.8:9900 10.0.0.9:9900\n"
                "  becalm top --all gateways.internal:9900\n"
                "  becalm top --fleet\n"
                "  becalm top --once unix:/run/becalm/admin.sock\n"
                "  becalm top --once --json | jq '.services[] | select(.troubles != [])'\n",
    .complete = CLI_FILE,
    .run = top_run,
};
