/* SPDX-License-Identifier: MIT */
#include "cmd_plan.h"

#include "plan/tune.h"
#include "policy/value.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define LATENCY_LEAST BECALM_US
#define ANSWERS_LEAST 200u /* of fewer, one in 200 is the slowest */
#define HEDGE_SHARE   0.95
#define WAITS_SHOWN   6u

struct answer {
    struct plan_tune_input input;
    struct plan_tuning tuning;
    becalm_ns p95;               /* 0: not known */
    becalm_ns hedged;            /* p99.5 with a hedge; 0: not known */
    struct plan_latency latency; /* without points: quantiles were typed */
    struct prometheus server;    /* its url is NULL when it is not asked */
    const char *metric;
    struct plan_notes notes;
    struct plan_text yaml;
};

/* ---- the input ---- */

static void read_options(struct plan_reader *reader, struct answer *answer)
{
    struct plan_tune_input *input = &answer->input;
    plan_read_prometheus(reader, &answer->server);
    input->deadline = plan_read_duration(reader, "deadline", BECALM_MS, 24 * 3600 * BECALM_S, 0);
    input->p50 = plan_read_duration(reader, "latency-p50", LATENCY_LEAST, PLAN_LATENCY_MAX, 0);
    answer->p95 = plan_read_duration(reader, "latency-p95", LATENCY_LEAST, PLAN_LATENCY_MAX, 0);
    input->p99_5 = plan_read_duration(reader, "latency-p99-5", LATENCY_LEAST, PLAN_LATENCY_MAX, 0);
    input->judge = plan_has(reader, "retries");
    input->retries = (uint32_t)plan_read_integer(reader, "retries", 0, PLAN_RETRIES_MAX, 0);
    input->initial_delay = plan_read_duration(reader, "initial-delay", BECALM_MS, 3600 * BECALM_S, 0);
    input->max_delay = plan_read_duration(reader, "max-delay", BECALM_MS, 24 * 3600 * BECALM_S, 0);
    answer->metric = cli_value(reader->command, reader->args, "metric");
}

/* One source, and enough of it. */
static void check_options(struct plan_reader *reader, const struct answer *answer)
{
    const struct plan_tune_input *input = &answer->input;
    uint32_t typed = input->p50 > 0 || answer->p95 > 0 || input->p99_5 > 0;
    uint32_t files = reader->args->word_count;
    if (input->deadline == 0) {
        reader->rc = cli_usage(reader->command, "--deadline is missing: --deadline 2s");
    } else if (files > 1) {
        reader->rc = cli_usage(reader->command, "one FILE at most");
    } else if (typed + files + (answer->server.url != NULL) > 1) {
        reader->rc = cli_usage(reader->command, "give quantiles, a FILE or --prometheus, not two of them");
    } else if (typed + files + (answer->server.url != NULL) == 0) {
        reader->rc = cli_usage(reader->command, "give --latency-p50 and --latency-p99-5, a FILE or --prometheus URL");
    } else if (typed > 0 && input->p50 == 0) {
        reader->rc = cli_usage(reader->command, "--latency-p50 is missing");
    } else if (typed > 0 && input->p99_5 == 0 && !input->judge) {
        reader->rc = cli_usage(reader->command, "--latency-p99-5 is missing; without it only --retries can be judged");
    } else if ((input->p99_5 > 0 && input->p99_5 < input->p50) || (answer->p95 > 0 && answer->p95 < input->p50) ||
               (input->p99_5 > 0 && answer->p95 > input->p99_5)) {
        reader->rc = cli_usage(reader->command, "quantiles must ascend: p50, p95, p99.5");
    } else if (input->max_delay > 0 && input->initial_delay > input->max_delay) {
        reader->rc = cli_usage(reader->command, "--max-delay can't be below --initial-delay");
    } else if (answer->metric != NULL && answer->server.url == NULL) {
        reader->rc = cli_usage(reader->command, "--metric goes with --prometheus");
    } else if (answer->metric != NULL && !prometheus_metric_name(answer->metric)) {
        reader->rc = cli_usage(reader->command, "--metric %s: not the name of a metric", answer->metric);
    }
}

static bool read_file(const char *path, struct plan_latency *latency, char why[PLAN_WHY_MAX])
{
    if (strcmp(path, "-") == 0) {
        return plan_latency_read(latency, stdin, "standard input", why);
    }
    FILE *in = fopen(path, "r");
    if (in == NULL) {
        snprintf(why, PLAN_WHY_MAX, "%.150s: %s", path, strerror(errno));
        return false;
    }
    bool read = plan_latency_read(latency, in, path, why);
    (void)fclose(in); /* nothing was written to it */
    return read;
}

/* The quantiles of the measured latencies. */
static bool measure(struct answer *answer, char why[PLAN_WHY_MAX])
{
    const struct plan_latency *latency = &answer->latency;
    if (!plan_latency_quantile(latency, 0.5, &answer->input.p50) ||
        !plan_latency_quantile(latency, HEDGE_SHARE, &answer->p95)) {
        snprintf(why, PLAN_WHY_MAX, "more than one answer in 20 is beyond the histogram's last bucket");
        return false;
    }
    if (!plan_latency_quantile(latency, 0.995, &answer->input.p99_5)) {
        char last[FIGURE_MAX];
        figure_write_duration(answer->input.p99_5, last, sizeof(last));
        plan_note(&answer->notes,
                  "p99.5 lies beyond the histogram's last bucket; it was taken as that bucket's bound, %s.", last);
    }
    (void)plan_latency_hedged(latency, answer->p95, 0.995, &answer->hedged);
    if (latency->answers < ANSWERS_LEAST) {
        plan_note(&answer->notes, "%" PRIu64 " answers are few: p99.5 needs at least %u, better ten times that.",
                  latency->answers, ANSWERS_LEAST);
    }
    /* A clock that is too coarse reads 0. */
    answer->input.p50 = answer->input.p50 > LATENCY_LEAST ? answer->input.p50 : LATENCY_LEAST;
    answer->input.p99_5 = answer->input.p99_5 > LATENCY_LEAST ? answer->input.p99_5 : LATENCY_LEAST;
    return true;
}

/* Fills the quantiles from the source that was named. */
static bool gather(struct answer *answer, const struct cli_args *args, char why[PLAN_WHY_MAX])
{
    if (args->word_count > 0) {
        return read_file(args->words[0], &answer->latency, why) && measure(answer, why);
    }
    if (answer->server.url != NULL) {
        const char *metric = answer->metric != NULL ? answer->metric : PROMETHEUS_LATENCY;
        return prometheus_latency(&answer->server, metric, &answer->latency, why) && measure(answer, why);
    }
    return true;
}

/* ---- sentences ---- */

struct duration_text {
    char text[FIGURE_MAX];
};

/* Short names, because messages want many of them. */
static struct duration_text exact(becalm_ns duration)
{
    struct duration_text out;
    value_write_duration(duration, out.text, sizeof(out.text));
    return out;
}

static struct duration_text rounded(becalm_ns duration)
{
    struct duration_text out;
    figure_write_duration(duration, out.text, sizeof(out.text));
    return out;
}

static void note_result(struct answer *answer)
{
    const struct plan_tune_input *input = &answer->input;
    const struct plan_tuning *tuning = &answer->tuning;
    if (!tuning->whole) {
        plan_note(&answer->notes,
                  "The deadline is shorter than p99.5 x 1.1: it cuts healthy answers off, and leaves no time for a "
                  "retry after a timeout.");
    } else if (tuning->cut && !tuning->refused && tuning->retries > 0) {
        plan_note(&answer->notes,
                  "If every attempt runs into its timeout, %s are needed: the last attempt then has less than its "
                  "timeout. It is worth it, because most failures come faster. check will remark on it.",
                  rounded(tuning->worst.all).text);
    }
    if (input->max_delay > input->deadline) {
        plan_note(&answer->notes, "maxDelay %s is longer than the whole deadline of %s: no wait can reach it.",
                  exact(input->max_delay).text, exact(input->deadline).text);
    }
    if (input->initial_delay > 0 && input->initial_delay < input->p50) {
        plan_note(&answer->notes,
                  "initialDelay %s is below a healthy round trip of %s: the retry comes before the service can have "
                  "recovered.",
                  exact(input->initial_delay).text, rounded(input->p50).text);
    }
}

static void write_yaml(struct answer *answer)
{
    const struct plan_tuning *tuning = &answer->tuning;
    struct plan_text *yaml = &answer->yaml;
    int indent = plan_text_target(yaml, answer->server.service);
    plan_text_add(yaml, "%*sdeadline: %s\n", indent, "", exact(answer->input.deadline).text);
    plan_text_add(yaml, "%*sattemptTimeout: %s\n", indent, "", exact(tuning->attempt_timeout).text);
    plan_text_add(yaml, "%*smaxRetries: %u\n", indent, "", tuning->retries);
    plan_text_add(yaml, "%*sinitialDelay: %s\n", indent, "", exact(tuning->base).text);
    plan_text_add(yaml, "%*smaxDelay: %s\n", indent, "", exact(tuning->cap).text);
    plan_text_add(yaml, "%*smultiplier: 2\n", indent, "");
    plan_text_add(yaml, "%*sjitter: full\n", indent, "");
    plan_text_add(yaml, "%*s# for idempotent calls, instead of retries:\n", indent, "");
    plan_text_add(yaml, "%*s# hedge: {enabled: true, delay: p95}\n", indent, "");
}

/* ---- text ---- */

static void print_line(const char *what, const char *value, const char *rest)
{
    printf("%-16s%9s%s%s\n", what, value, *rest == '\0' ? "" : "   ", rest);
}

static void print_measured(const struct answer *answer)
{
    char count[FIGURE_MAX];
    if (answer->latency.count == 0) {
        plan_print_heading("Latencies as given");
    } else {
        figure_write((double)answer->latency.answers, 0, count, sizeof(count));
        plan_print_heading("Latencies of %s answers", count);
    }
    print_line("p50", rounded(answer->input.p50).text, "");
    if (answer->p95 > 0) {
        print_line("p95", rounded(answer->p95).text, "");
    }
    if (answer->input.p99_5 > 0) {
        print_line("p99.5", rounded(answer->input.p99_5).text, "");
    }
    putchar('\n');
}

/* "200ms 400ms 800ms": the first waits of a schedule. */
static void write_waits(const struct plan_schedule *schedule, struct plan_text *text)
{
    for (uint32_t n = 1; n <= schedule->retries && n <= WAITS_SHOWN; n++) {
        plan_text_add(text, "%s%s", n > 1 ? " " : "", exact(plan_wait(schedule->base, schedule->cap, n)).text);
    }
    if (schedule->retries > WAITS_SHOWN) {
        plan_text_add(text, " ...");
    }
}

/* The sum that decides, line by line. */
static void print_sum(const struct answer *answer, const struct plan_schedule *schedule, const char *each)
{
    struct plan_text waits = {.length = 0};
    char what[64];
    snprintf(what, sizeof(what), "%u x %s", schedule->retries + 1, rounded(schedule->each).text);
    printf("%-20s%9s   %s, %s\n", what, rounded(schedule->attempts).text,
           schedule->retries == 0 ? "one attempt" : "attempts", each);
    if (schedule->retries > 0) {
        write_waits(schedule, &waits);
        snprintf(what, sizeof(what), "%u %s", schedule->retries, schedule->retries == 1 ? "wait" : "waits");
        printf("%-20s%9s%s%s\n", what, exact(schedule->waits).text, schedule->retries > 1 ? "   " : "",
               schedule->retries > 1 ? waits.bytes : "");
    }
    printf("%-20s%9s   of %s\n", "together", rounded(schedule->all).text, exact(answer->input.deadline).text);
}

static void print_policy(const struct answer *answer)
{
    const struct plan_tuning *tuning = &answer->tuning;
    char retries[16];
    char more[64] = "as many as fit";
    plan_print_heading("Policy for a deadline of %s", exact(answer->input.deadline).text);
    print_line("attemptTimeout", exact(tuning->attempt_timeout).text,
               tuning->whole ? "p99.5 x 1.1, rounded up to two digits" : "the whole deadline");
    print_line("initialDelay", exact(tuning->base).text,
               answer->input.initial_delay > 0 ? "as given"
               : tuning->base == PLAN_BASE_LEAST && answer->input.p50 < PLAN_BASE_LEAST
                   ? "a round trip (p50), but at least 100ms"
                   : "one healthy round trip (p50)");
    if (answer->input.judge) {
        snprintf(more, sizeof(more), "as given; %u would fit", tuning->fits);
    } else if (tuning->fits > tuning->retries) {
        snprintf(more, sizeof(more), "%s%u would fit; three attempts are enough",
                 tuning->fits == PLAN_RETRIES_MAX ? "over " : "", tuning->fits);
    } else if (tuning->fits < tuning->retries) {
        snprintf(more, sizeof(more), "fits after failures faster than the timeout");
    }
    snprintf(retries, sizeof(retries), "%u", tuning->retries);
    print_line("maxRetries", retries, more);
    print_line("maxDelay", exact(tuning->cap).text,
               answer->input.max_delay > 0 ? "as given" : "the longest of these waits");
    putchar('\n');
    print_sum(answer, &tuning->worst, "each to its timeout");
}

static void print_hedge(const struct answer *answer)
{
    putchar('\n');
    plan_print_heading("Hedging, instead of retries of idempotent calls");
    print_line("delay", "p95", answer->p95 > 0 ? "" : "of live latencies");
    if (answer->p95 > 0) {
        print_line("", rounded(answer->p95).text, "at the time of this measurement");
    }
    print_line("cost", "5 %", "more requests: one call in 20 sends a second one");
    if (answer->hedged > 0 && answer->hedged < answer->input.p99_5) {
        char rest[FIGURE_MAX + 48];
        snprintf(rest, sizeof(rest), "instead of %s, if hosts are slow independently",
                 rounded(answer->input.p99_5).text);
        print_line("p99.5", rounded(answer->hedged).text, rest);
    }
}

static void print_verdict(const struct answer *answer)
{
    const struct plan_tuning *tuning = &answer->tuning;
    bool one = tuning->retries == 1;
    plan_print_heading("%u %s %s into a deadline of %s", tuning->retries, one ? "retry" : "retries",
                       tuning->refused ? (one ? "does not fit" : "do not fit") : (one ? "fits" : "fit"),
                       exact(answer->input.deadline).text);
    print_sum(answer, &tuning->common, "each at p50");
    if (tuning->retries > 0) {
        printf("%-20s%9s   with full jitter, whose waits are half of these\n", "on average",
               rounded(tuning->common.attempts + tuning->common.waits / 2).text);
    }
    if (tuning->refused) {
        printf("\nWhat fits: maxRetries %u", tuning->fits);
        if (tuning->fits > 0) {
            printf(", with maxDelay %s", exact(plan_wait(tuning->base, tuning->cap, tuning->fits)).text);
        }
        printf(".\n");
    }
}

static void print_text(const struct answer *answer)
{
    print_measured(answer);
    if (answer->tuning.refused || answer->tuning.attempt_timeout == 0) {
        print_verdict(answer);
        plan_print_notes(&answer->notes);
        return;
    }
    print_policy(answer);
    print_hedge(answer);
    plan_print_notes(&answer->notes);
    plan_print_yaml(&answer->yaml);
}

/* ---- JSON ---- */

static void json_ms(struct json *json, const char *key, becalm_ns duration)
{
    if (duration == 0) {
        json_null(json, key);
    } else {
        json_number(json, key, (double)duration / (double)BECALM_MS, 3);
    }
}

static void json_schedule(struct json *json, const char *key, const struct plan_schedule *schedule)
{
    json_object(json, key);
    json_integer(json, "attempts", schedule->retries + 1);
    json_ms(json, "attempt_ms", schedule->each);
    json_ms(json, "attempts_ms", schedule->attempts);
    json_number(json, "waits_ms", (double)schedule->waits / (double)BECALM_MS, 3);
    json_ms(json, "together_ms", schedule->all);
    json_object_end(json);
}

static void print_json(const struct answer *answer)
{
    const struct plan_tuning *tuning = &answer->tuning;
    bool complete = !tuning->refused && tuning->attempt_timeout > 0;
    struct json json;
    json_begin(&json, stdout);
    json_object(&json, NULL);
    json_ms(&json, "deadline_ms", answer->input.deadline);
    json_object(&json, "latency");
    json_ms(&json, "p50_ms", answer->input.p50);
    json_ms(&json, "p95_ms", answer->p95);
    json_ms(&json, "p99_5_ms", answer->input.p99_5);
    json_integer(&json, "answers", answer->latency.answers);
    json_object_end(&json);
    json_boolean(&json, "refused", tuning->refused);
    json_integer(&json, "fits", tuning->fits);
    json_integer(&json, "max_retries", tuning->retries);
    json_ms(&json, "attempt_timeout_ms", tuning->attempt_timeout);
    json_ms(&json, "initial_delay_ms", tuning->base);
    json_ms(&json, "max_delay_ms", tuning->cap);
    json_schedule(&json, "at_timeout", &tuning->worst);
    json_schedule(&json, "at_p50", &tuning->common);
    json_object(&json, "hedge");
    json_ms(&json, "delay_ms", answer->p95);
    json_number(&json, "cost_percent", 5, 0);
    json_ms(&json, "p99_5_ms", answer->hedged);
    json_object_end(&json);
    plan_json_notes(&json, &answer->notes);
    json_text(&json, "yaml", complete ? answer->yaml.bytes : NULL);
    json_object_end(&json);
    json_end(&json);
}

static int report(const struct cli_command *command, struct answer *answer, bool as_json)
{
    plan_tune(&answer->input, &answer->tuning);
    note_result(answer);
    write_yaml(answer);
    if (as_json) {
        print_json(answer);
    } else {
        print_text(answer);
    }
    if (answer->input.p50 > answer->input.deadline) {
        return cli_fail(command,
                        "the deadline of %s is below p50, %s: more than half of the healthy answers come too late",
                        exact(answer->input.deadline).text, rounded(answer->input.p50).text);
    }
    if (!answer->tuning.refused) {
        return 0;
    }
    return cli_fail(command, "%u %s %s, the deadline is %s", answer->input.retries,
                    answer->input.retries == 1 ? "retry needs" : "retries need",
                    rounded(answer->tuning.common.all).text, exact(answer->input.deadline).text);
}

int plan_run_tune(const struct cli_command *command, const struct cli_args *args)
{
    struct plan_reader reader = {.command = command, .args = args};
    struct answer answer = {0};
    char why[PLAN_WHY_MAX];
    read_options(&reader, &answer);
    if (reader.rc == 0) {
        check_options(&reader, &answer);
    }
    if (reader.rc != 0) {
        return reader.rc;
    }
    int rc =
        gather(&answer, args, why) ? report(command, &answer, plan_has(&reader, "json")) : cli_fail(command, "%s", why);
    plan_latency_free(&answer.latency);
    return rc;
}
