/* SPDX-License-Identifier: MIT */
#include "cmd_plan.h"

#include "policy/value.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH      80
#define WINDOW_MAX (366 * 24 * 3600 * BECALM_S)

/* ---- options as numbers ---- */

/* The text of an option, NULL if it was not given or something is wrong already. */
static const char *text_of(const struct plan_reader *reader, const char *option)
{
    return reader->rc == 0 ? cli_value(reader->command, reader->args, option) : NULL;
}

bool plan_has(const struct plan_reader *reader, const char *option)
{
    return cli_has(reader->command, reader->args, option);
}

uint64_t plan_read_integer(struct plan_reader *reader, const char *option, uint64_t low, uint64_t high,
                           uint64_t otherwise)
{
    const char *text = text_of(reader, option);
    uint64_t value = otherwise;
    if (text != NULL && (!value_integer(text, &value) || value < low || value > high)) {
        reader->rc = cli_usage(reader->command, "--%s %s: must be a whole number from %" PRIu64 " to %" PRIu64, option,
                               text, low, high);
        return otherwise;
    }
    return value;
}

double plan_read_decimal(struct plan_reader *reader, const char *option, double low, double high, double otherwise)
{
    const char *text = text_of(reader, option);
    uint64_t millionths = 0;
    if (text == NULL) {
        return otherwise;
    }
    bool valid = value_decimal(text, 1000000, &millionths);
    double value = (double)millionths / 1e6;
    if (!valid || value < low || value > high) {
        reader->rc = cli_usage(reader->command, "--%s %s: must be a number %s 0, up to %.0f, with at most 6 decimals",
                               option, text, low > 0 ? "above" : "from", high);
        return otherwise;
    }
    return value;
}

becalm_ns plan_read_duration(struct plan_reader *reader, const char *option, becalm_ns low, becalm_ns high,
                             becalm_ns otherwise)
{
    const char *text = text_of(reader, option);
    becalm_ns value = otherwise;
    if (text != NULL && (!value_duration(text, &value) || value < low || value > high)) {
        char least[FIGURE_MAX];
        char most[FIGURE_MAX];
        value_write_duration(low, least, sizeof(least));
        value_write_duration(high, most, sizeof(most));
        reader->rc = cli_usage(reader->command, "--%s %s: must be a duration from %s to %s, such as 250ms or 1.5s",
                               option, text, least, most);
        return otherwise;
    }
    return value;
}

uint32_t plan_read_percent(struct plan_reader *reader, const char *option, uint32_t otherwise)
{
    const char *text = text_of(reader, option);
    uint32_t ppm = otherwise;
    if (text != NULL && (!value_percent(text, &ppm) || ppm == 0)) {
        reader->rc =
            cli_usage(reader->command, "--%s %s: must be a percentage above 0, up to 100, such as 5%%", option, text);
        return otherwise;
    }
    return ppm;
}

void plan_read_prometheus(struct plan_reader *reader, struct prometheus *server)
{
    static const char *const needs_url[] = {"window", "rate", "timeout"};
    server->url = text_of(reader, "prometheus");
    server->service = text_of(reader, "service");
    if (server->url != NULL && strncmp(server->url, "http://", 7) != 0 && strncmp(server->url, "https://", 8) != 0) {
        reader->rc = cli_usage(reader->command, "--prometheus: must be an address such as http://localhost:9090");
    }
    server->window = plan_read_duration(reader, "window", 10 * BECALM_S, WINDOW_MAX, 3600 * BECALM_S);
    server->timeout = plan_read_duration(reader, "timeout", 100 * BECALM_MS, 600 * BECALM_S, 10 * BECALM_S);
    for (size_t i = 0; i < sizeof(needs_url) / sizeof(*needs_url) && server->url == NULL; i++) {
        const struct cli_option *option = reader->command->options;
        while (option->name != NULL && strcmp(option->name, needs_url[i]) != 0) {
            option++;
        }
        if (reader->rc == 0 && option->name != NULL && plan_has(reader, option->name)) {
            reader->rc = cli_usage(reader->command, "--%s goes with --prometheus", option->name);
        }
    }
}

/* ---- texts ---- */

void plan_text_add(struct plan_text *text, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    size_t room = sizeof(text->bytes) - text->length;
    int length = vsnprintf(text->bytes + text->length, room, format, list);
    va_end(list);
    if (length > 0) {
        text->length += (size_t)length < room ? (size_t)length : room - 1;
    }
}

/* A name that YAML takes for nothing else may stand bare. */
static bool bare_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char others[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return name[0] != '\0' && strchr(letters, name[0]) != NULL && strspn(name, others) == strlen(name);
}

int plan_text_target(struct plan_text *text, const char *service)
{
    if (service == NULL) {
        plan_text_add(text, "defaults:\n");
        return 2;
    }
    plan_text_add(text, "services:\n  ");
    if (bare_name(service)) {
        plan_text_add(text, "%s:\n", service);
        return 4;
    }
    plan_text_add(text, "\"");
    for (; *service != '\0'; service++) {
        unsigned char c = (unsigned char)*service;
        if (c < 0x20 || c == 0x7f) {
            plan_text_add(text, "\\x%02x", (unsigned)c);
        } else {
            plan_text_add(text, "%s%c", c == '"' || c == '\\' ? "\\" : "", c);
        }
    }
    plan_text_add(text, "\":\n");
    return 4;
}

void plan_note(struct plan_notes *notes, const char *format, ...)
{
    va_list list;
    if (notes->count == PLAN_NOTES_MAX) {
        return;
    }
    va_start(list, format);
    vsnprintf(notes->note[notes->count], sizeof(notes->note[0]), format, list);
    va_end(list);
    notes->count++;
}

/* Words up to the right margin. */
static void print_wrapped(const char *text)
{
    size_t column = 0;
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        if (column > 0 && column + 1 + length > WIDTH) {
            putchar('\n');
            column = 0;
        } else if (column > 0) {
            putchar(' ');
            column++;
        }
        printf("%.*s", (int)length, text);
        column += length;
        text += length;
        text += strspn(text, " ");
    }
    putchar('\n');
}

void plan_print_sentence(const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    print_wrapped(text);
}

void plan_print_notes(const struct plan_notes *notes)
{
    for (uint32_t i = 0; i < notes->count; i++) {
        putchar('\n');
        print_wrapped(notes->note[i]);
    }
}

void plan_json_notes(struct json *json, const struct plan_notes *notes)
{
    json_array(json, "notes");
    for (uint32_t i = 0; i < notes->count; i++) {
        json_text(json, NULL, notes->note[i]);
    }
    json_array_end(json);
}

void plan_print_heading(const char *format, ...)
{
    struct cli_style style = cli_style(stdout);
    va_list list;
    va_start(list, format);
    fputs(style.bold, stdout);
    vprintf(format, list);
    printf("%s\n\n", style.reset);
    va_end(list);
}

void plan_print_yaml(const struct plan_text *yaml)
{
    putchar('\n');
    plan_print_heading("To paste into the policy file");
    fputs(yaml->bytes, stdout);
}

/* ---- the tables ---- */

static const struct cli_option amplification_options[] = {
    {.name = "services", .argument = "N", .help = "services in the chain, of which all but the last retry"},
    {.name = "layers", .argument = "N", .help = "instead of --services: layers that retry, above the failing one"},
    {.name = "rps", .argument = "RATE", .help = "requests per second of the clients (default 1)"},
    {.name = "retries", .argument = "N", .help = "retries of each layer (default 2)"},
    {.name = "attempts", .argument = "N", .help = "instead of --retries: attempts, the first one included"},
    {.name = "budget", .argument = "PERCENT", .help = "retry budget of each layer, of its first attempts"},
    {.name = "json", .help = "print JSON"},
    {.name = NULL},
};

static const struct cli_option budget_options[] = {
    {.name = "requests-per-second",
     .argument = "RATE",
     .help = "average on the wire at a peak of healthy traffic, retries included"},
    {.name = "retries-per-second", .argument = "RATE", .help = "the most retries per second at that peak"},
    {.name = "latency", .argument = "TIME", .help = "average time of a request"},
    {.name = "instances", .argument = "N", .help = "how many processes send these requests (default 1)"},
    {.name = "prometheus", .argument = "URL", .help = "ask this Prometheus for both rates instead"},
    {.name = "service", .argument = "NAME", .help = "of one service only; the YAML is for it too"},
    {.name = "window", .argument = "TIME", .help = "how far back to look (default 1h)"},
    {.name = "rate", .argument = "TIME", .help = "range of each rate (default 1m)"},
    {.name = "timeout", .argument = "TIME", .help = "how long to wait for an answer (default 10s)"},
    {.name = "json", .help = "print JSON"},
    {.name = NULL},
};

static const struct cli_option tune_options[] = {
    {.name = "deadline", .argument = "TIME", .help = "time that a caller waits for the whole call"},
    {.name = "latency-p50", .argument = "TIME", .help = "half of the answers take at most this long"},
    {.name = "latency-p95", .argument = "TIME", .help = "95 of 100 answers"},
    {.name = "latency-p99-5", .argument = "TIME", .help = "199 of 200 answers"},
    {.name = "prometheus", .argument = "URL", .help = "ask this Prometheus for a histogram instead"},
    {.name = "metric", .argument = "NAME", .help = "the name of the histogram (default " PROMETHEUS_LATENCY ")"},
    {.name = "service", .argument = "NAME", .help = "of one service only; the YAML is for it too"},
    {.name = "window", .argument = "TIME", .help = "how far back to look (default 1h)"},
    {.name = "timeout", .argument = "TIME", .help = "how long to wait for an answer (default 10s)"},
    {.name = "retries", .argument = "N", .help = "judge this number of retries"},
    {.name = "initial-delay", .argument = "TIME", .help = "with --retries: the wait before the first retry"},
    {.name = "max-delay", .argument = "TIME", .help = "with --retries: the longest wait"},
    {.name = "json", .help = "print JSON"},
    {.name = NULL},
};

static const struct cli_option contention_options[] = {
    {.name = "clients", .argument = "N", .help = "clients that failed together and retry"},
    {.name = "window", .argument = "SLOTS", .help = "slots that the clients choose from (default 1024)"},
    {.name = "json", .help = "print JSON"},
    {.name = NULL},
};

static const struct cli_command plan_commands[] = {
    {
        .name = "amplification",
        .summary = "the number of attempts that a chain of services makes of one request",
        .usage = "plan amplification [options]",
        .purpose = "Computes the load on every service of a chain whose last service fails every\n"
                   "request: each layer multiplies the retries of the layer above. Shows the effect\n"
                   "of a retry budget in every layer.",
        .options = amplification_options,
        .examples = "  becalm plan amplification --services 10 --rps 100 --retries 1\n"
                    "  becalm plan amplification --services 10 --rps 100 --budget 5%\n"
                    "  becalm plan amplification --layers 3 --attempts 4\n",
        .run = plan_run_amplification,
    },
    {
        .name = "budget",
        .summary = "which retry budget the traffic needs",
        .usage = "plan budget [options]",
        .purpose = "Recommends the percentage of a retry budget: the most retries per second at a\n"
                   "peak of healthy traffic, divided by the average of requests per second. With\n"
                   "--latency it says whether an instance has enough requests in flight for it.",
        .options = budget_options,
        .examples = "  becalm plan budget --requests-per-second 100.77 --retries-per-second 5.77\n"
                    "  becalm plan budget --requests-per-second 100 --retries-per-second 4 \\\n"
                    "      --latency 50ms --instances 40\n"
                    "  becalm plan budget --prometheus http://localhost:9090 --window 24h\n",
        .run = plan_run_budget,
    },
    {
        .name = "tune",
        .summary = "timeouts, delays and retries from measured latencies",
        .usage = "plan tune --deadline TIME [options] [FILE]",
        .purpose = "Recommends attempt timeout, delays, number of retries and hedge delay from the\n"
                   "latencies of a healthy service: given as quantiles, asked from a Prometheus, or\n"
                   "in FILE, one per line (12.5ms, or 12.5 for milliseconds; - is standard input).\n"
                   "With --retries it judges that number of retries, and refuses one that does not\n"
                   "fit into the deadline.",
        .options = tune_options,
        .examples = "  becalm plan tune --latency-p50 40ms --latency-p99-5 900ms --deadline 4s\n"
                    "  becalm plan tune --deadline 2s latencies.txt\n"
                    "  becalm plan tune --deadline 2s --prometheus http://localhost:9090\n"
                    "  becalm plan tune --deadline 2s --latency-p50 200ms --retries 5 \\\n"
                    "      --max-delay 30s\n",
        .complete = CLI_FILE,
        .run = plan_run_tune,
    },
    {
        .name = "contention",
        .summary = "how often clients that retry together collide",
        .usage = "plan contention --clients N [options]",
        .purpose = "Computes how many pairs of N clients that failed together come back in the same\n"
                   "slot of a window, N(N-1)/2W, and the effect of jitter.",
        .options = contention_options,
        .examples = "  becalm plan contention --clients 1000 --window 1024\n",
        .run = plan_run_contention,
    },
    {.name = NULL},
};

const struct cli_command cmd_plan = {
    .name = "plan",
    .summary = "arithmetic before production, from figures or a Prometheus",
    .usage = "plan COMMAND [options] ...",
    .purpose = "Computes the worst case before production, and the numbers to write into the\n"
               "policy file: from figures that you type, or from a Prometheus.",
    .examples = "  becalm plan amplification --services 10 --rps 100 --retries 1\n"
                "  becalm plan budget --requests-per-second 100.77 --retries-per-second 5.77\n"
                "  becalm plan tune --latency-p50 40ms --latency-p99-5 900ms --deadline 4s\n"
                "  becalm plan contention --clients 1000 --window 1024\n",
    .subcommands = plan_commands,
};
