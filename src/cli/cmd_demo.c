/* SPDX-License-Identifier: MIT */
/* becalm demo: a storm and the calm, side by side, with real traffic. */
#define _GNU_SOURCE
#include "cli.h"
#include "json.h"

#include "demo/demo.h"
#include "policy/value.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define FAULTS_MAX 16u
#define TREND      40u /* ticks in the row of success */

struct show {
    struct cli_style style;
    bool in_place; /* on a terminal: draws over what it drew */
    bool silent;   /* --json */
    bool utf8;
    int drawn; /* lines */
};

/* ---- figures of a lane ---- */

struct figures_now {
    uint64_t factor_milli;
    uint32_t success_ppm;
    uint32_t calls; /* per second */
    uint32_t reach; /* the last service, per second */
    const struct lane_service_sample *last;
};

static struct figures_now figures_of(const struct lane *lane)
{
    uint32_t to = lane->ticks;
    uint32_t from = to > DEMO_STEADY ? to - DEMO_STEADY : 0;
    uint64_t span_ms = (to - from) * (LANE_TICK / BECALM_MS);
    uint64_t calls = 0;
    uint64_t reach = 0;
    for (uint32_t tick = from; tick < to; tick++) {
        calls += lane_at(lane, tick)->begun;
        reach += lane_at(lane, tick)->service[LANE_LAST].arrivals;
    }
    return (struct figures_now){
        .factor_milli = lane_factor_milli(lane, from, to),
        .success_ppm = lane_success_ppm(lane, from, to),
        .calls = (uint32_t)(calls * 1000 / span_ms),
        .reach = (uint32_t)(reach * 1000 / span_ms),
        .last = &lane_at(lane, to - 1)->service[LANE_LAST],
    };
}

static const char *lane_title(uint32_t kind)
{
    return kind == LANE_NAIVE ? "naive retries" : "becalm";
}

static const char *breaker_text(const struct figures_now *now)
{
    return now->last->has_breaker ? becalm_breaker_word(now->last->breaker) : "none";
}

static const char *budget_text(const struct figures_now *now, char text[32])
{
    if (now->last->budget_left == UINT32_MAX) {
        return "none";
    }
    snprintf(text, 32, "%" PRIu32 ".%" PRIu32 " left", now->last->budget_left / 1000,
             now->last->budget_left % 1000 / 100);
    return text;
}

static const char *factor_text(uint64_t milli, char text[32])
{
    snprintf(text, 32, "%" PRIu64 ".%" PRIu64 " x", milli / 1000, milli % 1000 / 100);
    return text;
}

static uint64_t seconds_of(uint32_t ticks)
{
    return ticks * LANE_TICK / BECALM_S;
}

/* ---- sentences ---- */

/* "back is dead", and what comes next if the script is being played. */
static void tell_fault(const struct demo *demo, char *text, size_t size)
{
    const char *name = lane_services[LANE_LAST].name;
    int length = snprintf(text, size, "%s is %s", name, service_fault_sentence(demo->fault));
    enum service_fault next = SERVICE_HEALTHY;
    becalm_ns wait;
    if (demo_next(demo, &next, &wait)) {
        uint64_t left = (wait + BECALM_S - 1) / BECALM_S;
        const char *what = next == SERVICE_HEALTHY ? "healed" : service_fault_sentence(next);
        snprintf(text + length, size - (size_t)length, "; in %" PRIu64 " s it will be %s", left, what);
    }
}

/* How the lanes came through the latest fault. */
static void tell_storm(const struct demo *demo, uint32_t kind, char *text, size_t size)
{
    const struct demo_storm *storm = &demo->storm;
    if (storm->healed == UINT32_MAX) {
        snprintf(text, size, "%s", storm->hurt == UINT32_MAX ? "" : "not yet");
    } else if (storm->recovered[kind] == UINT32_MAX) {
        snprintf(text, size, "still down after %" PRIu64 " s", seconds_of(demo->ticks - storm->healed));
    } else {
        uint32_t ticks = storm->recovered[kind] - storm->healed;
        snprintf(text, size, "back after %" PRIu64 ".%" PRIu64 " s", ticks * LANE_TICK / BECALM_S,
                 ticks * LANE_TICK / (100 * BECALM_MS) % 10);
    }
}

/* ---- in place, on a terminal ---- */

static void draw_line(struct show *show, const char *name, const char *left, const char *right)
{
    printf("\033[K  %-16s %18s %18s\n", name, left, right);
    show->drawn++;
}

/* Success of each tick as a row of blocks, or of digits where there are no blocks. */
static void trend(const struct show *show, const struct lane *lane, char *text, size_t size)
{
    static const char *const blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588"};
    uint32_t from = lane->ticks > TREND ? lane->ticks - TREND : 0;
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t tick = from; tick < lane->ticks && length + 4 < size; tick++) {
        uint32_t ppm = lane_success_ppm(lane, tick, tick + 1);
        if (show->utf8) {
            length += (size_t)snprintf(text + length, size - length, "%s", blocks[ppm * 7 / 1000000]);
        } else {
            length += (size_t)snprintf(text + length, size - length, "%" PRIu32, ppm * 9 / 1000000);
        }
    }
}

static void draw_trends(struct show *show, const struct demo *demo)
{
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        char text[4 * TREND + 8];
        const struct cli_style *style = &show->style;
        trend(show, &demo->lane[i], text, sizeof text);
        printf("\033[K  %-16s %s%s%s\n", i == 0 ? "success, naive" : "success, becalm",
               i == 0 ? style->red : style->green, text, style->reset);
        show->drawn++;
    }
}

static void draw(struct show *show, const struct demo *demo)
{
    struct figures_now now[LANE_COUNT] = {figures_of(&demo->lane[0]), figures_of(&demo->lane[1])};
    char text[LANE_COUNT][96];
    char fault[160];
    if (show->drawn > 0) {
        printf("\033[%dA", show->drawn);
    }
    show->drawn = 0;
    tell_fault(demo, fault, sizeof fault);
    printf("\033[K  %s%s%s\n\033[K\n", show->style.bold, fault, show->style.reset);
    show->drawn += 2;
    draw_line(show, "", lane_title(0), lane_title(1));
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        snprintf(text[i], sizeof text[i], "%" PRIu32 "/s", now[i].calls);
    }
    draw_line(show, "users ask", text[0], text[1]);
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        snprintf(text[i], sizeof text[i], "%" PRIu32 "/s", now[i].reach);
    }
    draw_line(show, "reach back", text[0], text[1]);
    draw_line(show, "load at back", factor_text(now[0].factor_milli, text[0]),
              factor_text(now[1].factor_milli, text[1]));
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        snprintf(text[i], sizeof text[i], "%" PRIu32 " %%", now[i].success_ppm / 10000);
    }
    draw_line(show, "success", text[0], text[1]);
    draw_line(show, "retry budget", budget_text(&now[0], text[0]), budget_text(&now[1], text[1]));
    draw_line(show, "breaker", breaker_text(&now[0]), breaker_text(&now[1]));
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        tell_storm(demo, i, text[i], sizeof text[i]);
    }
    draw_line(show, "after healing", text[0], text[1]);
    draw_trends(show, demo);
}

/* ---- line by line ---- */

static void print_line(const struct demo *demo)
{
    printf("%4" PRIu64 " s  back is %-20s", seconds_of(demo->ticks), service_fault_sentence(demo->fault));
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        struct figures_now now = figures_of(&demo->lane[i]);
        char factor[32];
        printf("  %s %7s, %3" PRIu32 " %% ok", i == 0 ? "naive" : "becalm", factor_text(now.factor_milli, factor),
               now.success_ppm / 10000);
    }
    putchar('\n');
}

static bool ticked(void *self, const struct demo *demo)
{
    struct show *show = self;
    if (show->silent) {
        return true;
    }
    if (show->in_place) {
        draw(show, demo);
    } else if (demo->ticks % DEMO_STEADY == 0) {
        print_line(demo);
    }
    return fflush(stdout) == 0 && ferror(stdout) == 0;
}

/* ---- before and after ---- */

static void greet(const struct show *show, const struct demo *demo)
{
    const struct cli_style *style = &show->style;
    if (show->silent) {
        return;
    }
    printf("%sA retry storm, and the same without it.%s Users call front, which calls middle,\n"
           "which calls back: %u times a second, in two lanes. Every call goes through a\n"
           "gateway that tries up to %u times: naively in one lane, by Becalm's defaults in\n"
           "the other.\n\n",
           style->bold, style->reset, LANE_RATE, LANE_ATTEMPTS);
    printf("  watch and hurt it    %shttp://%s/%s\n", style->bold, demo->page, style->reset);
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        printf("  gateway, %-11s http://%s/\n", lane_name((enum lane_kind)i), demo->lane[i].admin);
    }
    puts(demo->options.length == BECALM_NEVER && !demo->options.ends_with_script ? "  Ctrl-C ends it\n" : "");
    fflush(stdout);
}

static void summary(const struct demo *demo)
{
    puts("");
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        const struct lane *lane = &demo->lane[i];
        char factor[32];
        char storm[64];
        tell_storm(demo, i, storm, sizeof storm);
        printf("  %-14s %" PRIu64 " calls, %" PRIu64 " failed; %" PRIu64 " requests at back, %s at worst%s%s\n",
               lane_title(i), lane->load.begun, lane->load.failed, lane->service[LANE_LAST].arrivals,
               factor_text(demo->storm.peak_milli[i], factor), storm[0] == '\0' ? "" : "; ", storm);
    }
}

static void summary_json(const struct demo *demo)
{
    struct json json;
    json_begin(&json, stdout);
    json_object(&json, NULL);
    json_number(&json, "seconds", (double)(demo->ticks * LANE_TICK / BECALM_MS) / 1000, 1);
    json_array(&json, "lanes");
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        const struct lane *lane = &demo->lane[i];
        const struct demo_storm *storm = &demo->storm;
        json_object(&json, NULL);
        json_text(&json, "name", lane_name(lane->kind));
        json_integer(&json, "calls", lane->load.begun);
        json_integer(&json, "good", lane->load.good);
        json_integer(&json, "failed", lane->load.failed);
        json_number(&json, "peakFactor", (double)storm->peak_milli[i] / 1000, 3);
        if (storm->recovered[i] == UINT32_MAX) {
            json_null(&json, "recoveredSeconds");
        } else {
            becalm_ns after = (storm->recovered[i] - storm->healed) * LANE_TICK;
            json_number(&json, "recoveredSeconds", (double)(after / BECALM_MS) / 1000, 1);
        }
        json_array(&json, "services");
        for (uint32_t s = 0; s < LANE_SERVICES; s++) {
            json_object(&json, NULL);
            json_text(&json, "name", lane_services[s].name);
            json_integer(&json, "arrivals", lane->service[s].arrivals);
            json_integer(&json, "good", lane->service[s].good);
            json_integer(&json, "useless", lane->service[s].useless);
            json_object_end(&json);
        }
        json_array_end(&json);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
    json_end(&json);
}

/* ---- the command ---- */

static int signals_open(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    signal(SIGPIPE, SIG_IGN);
    return pthread_sigmask(SIG_BLOCK, &set, NULL) != 0 ? -1 : signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* A storm has thousands of connections. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int integer_read(const struct cli_command *command, const struct cli_args *args, const char *option,
                        uint64_t least, uint64_t most, uint64_t *value)
{
    const char *text = cli_value(command, args, option);
    if (text != NULL && (!value_integer(text, value) || *value < least || *value > most)) {
        return cli_usage(command, "--%s is an integer from %" PRIu64 " to %" PRIu64 "; '%s' is not", option, least,
                         most, text);
    }
    return 0;
}

/* Between faults users stop, and then come back. */
static becalm_ns pauses_of(uint32_t faults)
{
    return (faults - 1) * 2 * DEMO_PAUSE;
}

/* A storm by itself, so that who only looks sees one; what is left of --seconds is divided among its parts. */
static struct demo_script script_of(const enum service_fault *faults, uint32_t count, bool headless, uint64_t seconds)
{
    becalm_ns unit = seconds == 0 ? BECALM_S : (seconds * BECALM_S - pauses_of(count)) / (5 + 25 * count);
    return (struct demo_script){
        .fault = faults,
        .count = count,
        .healthy_for = (headless ? 5 : 10) * unit,
        .hurt_for = 10 * unit,
        .healed_for = 15 * unit,
    };
}

static int faults_read(const struct cli_command *command, const struct cli_args *args, enum service_fault *faults,
                       uint32_t *count)
{
    const char *const *words = cli_values(command, args, "fault");
    *count = 0;
    for (; words[*count] != NULL; ++*count) {
        struct becalm_text word = {words[*count], strlen(words[*count])};
        if (*count == FAULTS_MAX) {
            return cli_usage(command, "at most %u faults", FAULTS_MAX);
        }
        if (!service_fault_find(word, &faults[*count]) || faults[*count] == SERVICE_HEALTHY) {
            return cli_usage(command, "a fault is dead, slow, flapping or errors; '%s' is not", words[*count]);
        }
    }
    if (*count == 0) {
        faults[(*count)++] = SERVICE_DEAD;
    }
    return 0;
}

static int demo_play(const struct cli_command *command, const struct demo_options *options, struct show *show)
{
    struct demo *demo = NULL;
    struct becalm_diags *diags = calloc(1, sizeof *diags);
    int rc = diags == NULL ? BECALM_ENOMEM : demo_make(&demo, options, diags);
    if (rc != 0) {
        char line[1024] = "";
        if (diags != NULL && diags->count > 0) {
            becalm_diag_write(&diags->diag[0], line, sizeof line);
        }
        free(diags);
        return rc == BECALM_ENOMEM ? cli_fail(command, "out of memory")
                                   : cli_fail(command, "can't start: %s", line[0] == '\0' ? strerror(errno) : line);
    }
    free(diags);
    greet(show, demo);
    demo_run(demo);
    if (show->silent) {
        summary_json(demo);
    } else {
        summary(demo);
    }
    demo_free(demo);
    return 0;
}

static int run(const struct cli_command *command, const struct cli_args *args)
{
    enum service_fault faults[FAULTS_MAX];
    uint32_t count;
    uint64_t seconds = 0;
    uint64_t port = 0;
    bool headless = cli_has(command, args, "headless");
    if (args->word_count > 0) {
        return cli_usage(command, "unexpected argument '%s'", args->words[0]);
    }
    int rc = integer_read(command, args, "seconds", 5, 86400, &seconds);
    rc = rc != 0 ? rc : integer_read(command, args, "port", 1, 65535, &port);
    rc = rc != 0 ? rc : faults_read(command, args, faults, &count);
    if (rc != 0) {
        return rc;
    }
    uint64_t least = 5 * count + pauses_of(count) / BECALM_S;
    if (headless && seconds != 0 && seconds < least) {
        return cli_usage(command, "%u faults need at least --seconds %" PRIu64, count, least);
    }
    struct show show = {
        .style = cli_style(stdout),
        .in_place = isatty(STDOUT_FILENO) == 1 && !headless,
        .silent = cli_has(command, args, "json"),
        .utf8 = cli_utf8(),
    };
    struct demo_options options = {
        .port = (uint16_t)port,
        .script = script_of(faults, count, headless, headless ? seconds : 0),
        .length = seconds == 0 || headless ? BECALM_NEVER : seconds * BECALM_S,
        .ends_with_script = headless,
        .stop_fd = signals_open(),
        .ticked = ticked,
        .self = &show,
    };
    if (options.stop_fd < 0) {
        return cli_fail(command, "can't start: %s", strerror(errno));
    }
    raise_descriptor_limit();
    rc = demo_play(command, &options, &show);
    close(options.stop_fd);
    return rc;
}

static const struct cli_option options[] = {
    {.name = "seconds", .argument = "N", .help = "end by itself after so long; else Ctrl-C does"},
    {.name = "headless", .help = "play one storm, print a summary and end: for scripts"},
    {.name = "fault",
     .argument = "FAULT",
     .help = "what happens first: dead, slow, flapping, errors",
     .complete = CLI_WORDS,
     .words = "dead slow flapping errors",
     .many = true},
    {.name = "port", .argument = "N", .help = "of the page; else any that is free"},
    {.name = "json", .help = "print only the summary, as JSON"},
    {.name = NULL},
};

const struct cli_command cmd_demo = {
    .name = "demo",
    .summary = "show a retry storm and how it is calmed, with real traffic",
    .usage = "demo [options]",
    .purpose = "Starts three small services in a chain, users who call them, and two real\n"
               "gateways, all in this process and on loopback: one retries naively, one has\n"
               "Becalm's default policy. A page in the browser shows both lanes side by side,\n"
               "and has buttons to hurt and heal the last service. The first storm comes by\n"
               "itself after ten seconds. Nothing is written anywhere.",
    .options = options,
    .examples = "  becalm demo\n"
                "  becalm demo --headless --fault slow\n"
                "  becalm demo --headless --seconds 20 --json\n",
    .complete = CLI_NOTHING,
    .run = run,
};
