/* SPDX-License-Identifier: MIT */
/* becalm demo: a storm and the calm, side by side, with real traffic. */
#define _GNU_SOURCE
#include "cli.h"
#include "json.h"

#include "demo/demo.h"
#include "policy/value.h"
#include "top/console.h"

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

#define NAME_WIDTH  14
#define LANE_WIDTH  24 /* "back after users stopped" */
#define DRAWN_WIDTH (2 + NAME_WIDTH + 2 * (1 + LANE_WIDTH))
#define LINES_MAX   24u
#define LINE_MAX    256u

struct show {
    struct cli_style style;
    bool in_place; /* on a terminal: draws over its earlier lines */
    bool silent;   /* --json */
    bool utf8;
    bool explained; /* the meaning of the lines was printed */
    bool warned;    /* that the machine is too busy */
    uint32_t drawn; /* lines */
};

/* ---- figures of a lane ---- */

struct figures_now {
    uint32_t factor_milli; /* LANE_UNKNOWN, here and below: not known */
    uint32_t success_ppm;
    uint32_t calls; /* per second */
    uint32_t reach; /* the last service, per second */
    const struct lane_service_sample *last;
};

static struct figures_now figures_of(const struct lane *lane)
{
    uint32_t to = lane->ticks;
    uint32_t from = to > STORM_STEADY ? to - STORM_STEADY : 0;
    uint64_t calls = 0;
    for (uint32_t tick = from; tick < to; tick++) {
        calls += lane_at(lane, tick)->begun;
    }
    return (struct figures_now){
        .factor_milli = lane_factor_milli(lane),
        .success_ppm = lane_success_now(lane),
        .calls = (uint32_t)(calls * BECALM_S / ((to - from) * LANE_TICK)),
        .reach = lane_reach(lane, from, to),
        .last = &lane_at(lane, to - 1)->service[LANE_LAST],
    };
}

static const char *lane_title(uint32_t kind)
{
    return kind == LANE_NAIVE ? "naive retries" : "becalm";
}

struct word {
    char text[64];
};

static struct word word_of(const char *text)
{
    struct word word;
    snprintf(word.text, sizeof word.text, "%s", text);
    return word;
}

static struct word factor_word(uint32_t milli)
{
    struct word word = word_of("-");
    if (milli != LANE_UNKNOWN) {
        snprintf(word.text, sizeof word.text, "%" PRIu32 ".%" PRIu32 " x", milli / 1000, milli % 1000 / 100);
    }
    return word;
}

static struct word per_second(uint32_t count)
{
    struct word word;
    snprintf(word.text, sizeof word.text, "%" PRIu32 "/s", count);
    return word;
}

/* No client got an answer for a while: clients wait, or there are none. */
static struct word success_word(const struct lane *lane, uint32_t ppm)
{
    struct word word = word_of(lane->load.waiting > 0 ? "waiting" : "no calls");
    if (ppm != LANE_UNKNOWN) {
        snprintf(word.text, sizeof word.text, "%" PRIu32 " %%", ppm / 10000);
    }
    return word;
}

static struct word budget_word(const struct lane_service_sample *last)
{
    struct word word = word_of("none");
    if (last->budget_left != UINT32_MAX) {
        snprintf(word.text, sizeof word.text, "%" PRIu32 ".%" PRIu32 " retries left", last->budget_left / 1000,
                 last->budget_left % 1000 / 100);
    }
    return word;
}

static struct word limit_word(const struct lane_service_sample *last)
{
    struct word word;
    if (last->limit == UINT32_MAX) {
        snprintf(word.text, sizeof word.text, "%" PRIu32 ", no limit", last->in_flight);
    } else {
        snprintf(word.text, sizeof word.text, "%" PRIu32 " of %" PRIu32, last->in_flight, last->limit);
    }
    return word;
}

static struct word breaker_word(const struct lane_service_sample *last)
{
    return word_of(last->has_breaker ? becalm_breaker_word(last->breaker) : "none");
}

static uint64_t seconds_of(uint32_t ticks)
{
    return ticks * LANE_TICK / BECALM_S;
}

/* ---- sentences ---- */

/* "back is dead", and the next step if the script is being played. */
static void tell_fault(const struct demo *demo, char *text, size_t size)
{
    const char *name = lane_services[LANE_LAST].name;
    int length = snprintf(text, size, "%s is %s", name, service_fault_sentence(demo->fault));
    enum service_fault next = SERVICE_HEALTHY;
    becalm_ns wait;
    if (demo->paused) {
        snprintf(text + length, size - (size_t)length, "; users have stopped, %" PRIu32 " still on their way",
                 demo_holds(demo));
    } else if (demo_next(demo, &next, &wait)) {
        uint64_t left = (wait + BECALM_S - 1) / BECALM_S;
        const char *what = next == SERVICE_HEALTHY ? "healed" : service_fault_sentence(next);
        snprintf(text + length, size - (size_t)length, "; in %" PRIu64 " s it will be %s", left, what);
    }
}

/* "too busy here: ...", in one short line; empty where the machine kept up. */
static void tell_pace(const struct pace_span *pace, char *text, size_t size)
{
    text[0] = '\0';
    if (pace_is_slow(pace)) {
        snprintf(text, size, "this machine is too busy: up to %" PRIu64 " ms late", pace->worst / BECALM_MS);
    }
}

/* How a lane came through the latest fault. */
static struct word storm_tell(const struct demo *demo, uint32_t kind)
{
    const struct storm *storm = &demo->storm;
    uint64_t since = storm->healed == STORM_NOT_YET ? 0 : seconds_of(demo->ticks - storm->healed);
    struct word word = word_of("");
    switch (storm_state(storm, kind, demo->ticks)) {
    case STORM_CALM:
        break;
    case STORM_HURT:
        return word_of("not yet");
    case STORM_HEALED:
        return word_of("...");
    case STORM_STOPPED:
        return word_of("users have stopped");
    case STORM_DOWN:
        snprintf(word.text, sizeof word.text, "still down after %" PRIu64 " s", since);
        break;
    case STORM_RECOVERING:
        snprintf(word.text, sizeof word.text, "recovering, after %" PRIu64 " s", since);
        break;
    case STORM_UNHARMED:
        return word_of("was not down");
    case STORM_BACK:
        if (storm_was_stopped(storm, kind)) {
            return word_of("back after users stopped");
        }
        uint32_t ticks = storm->lane[kind].recovered - storm->healed;
        snprintf(word.text, sizeof word.text, "back after %" PRIu64 ".%" PRIu64 " s", ticks * LANE_TICK / BECALM_S,
                 ticks * LANE_TICK / (100 * BECALM_MS) % 10);
        break;
    }
    return word;
}

/* The reasons for which the gateway let something not through since the latest fault began, the most frequent first. */
static void tell_refusals(const struct lane *lane, char *text, size_t size)
{
    uint32_t count[BECALM_REASON_COUNT] = {0};
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < LANE_SERVICES * BECALM_REASON_COUNT; i++) {
        count[i / LANE_SERVICES] += lane_refusals(lane, i % LANE_SERVICES, (enum becalm_reason)(i / LANE_SERVICES));
    }
    for (;;) {
        unsigned most = 0;
        for (unsigned i = 1; i < BECALM_REASON_COUNT; i++) {
            most = count[i] > count[most] ? i : most;
        }
        if (count[most] == 0 || length + 40 > size) {
            break;
        }
        length += (size_t)snprintf(text + length, size - length, "%s%" PRIu32 " %s", length == 0 ? "" : ", ",
                                   count[most], becalm_reason_word((enum becalm_reason)most));
        count[most] = 0;
    }
    if (length == 0) {
        snprintf(text, size, "nothing");
    }
}

/* ---- in place, on a terminal ---- */

/* The picture as whole lines, so that their number is known before the first is written. */
struct drawing {
    char line[LINES_MAX][LINE_MAX];
    uint32_t count;
};

static char *line_next(struct drawing *drawing)
{
    BECALM_ASSERT(drawing->count < LINES_MAX);
    return drawing->line[drawing->count++];
}

static void line_pair(struct drawing *drawing, const char *name, struct word left, struct word right)
{
    snprintf(line_next(drawing), LINE_MAX, "  %-*s %*s %*s", NAME_WIDTH, name, LANE_WIDTH, left.text, LANE_WIDTH,
             right.text);
}

/* Success of each tick as a row of blocks, or of digits where there are no blocks; a dot where no client got an answer.
 */
static void trend(const struct show *show, const struct lane *lane, char *text, size_t size)
{
    static const char *const blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588"};
    uint32_t from = lane->ticks > TREND ? lane->ticks - TREND : 0;
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t tick = from; tick < lane->ticks && length + 4 < size; tick++) {
        uint32_t ppm = lane_success_ppm(lane, tick, tick + 1);
        char digit[2] = {(char)('0' + ppm * 9 / 1000000 % 10), '\0'};
        const char *sign = ppm == LANE_UNKNOWN ? "." : show->utf8 ? blocks[ppm * 7 / 1000000] : digit;
        length += (size_t)snprintf(text + length, size - length, "%s", sign);
    }
}

static void draw_figures(struct drawing *drawing, const struct demo *demo)
{
    const struct lane *lane = demo->lane;
    struct figures_now now[LANE_COUNT] = {figures_of(&lane[0]), figures_of(&lane[1])};
    line_pair(drawing, "", word_of(lane_title(0)), word_of(lane_title(1)));
    line_pair(drawing, "user calls", per_second(now[0].calls), per_second(now[1].calls));
    line_pair(drawing, "reach back", per_second(now[0].reach), per_second(now[1].reach));
    line_pair(drawing, "for each call", factor_word(now[0].factor_milli), factor_word(now[1].factor_milli));
    line_pair(drawing, "success", success_word(&lane[0], now[0].success_ppm),
              success_word(&lane[1], now[1].success_ppm));
    line_pair(drawing, "back: budget", budget_word(now[0].last), budget_word(now[1].last));
    line_pair(drawing, "back: in use", limit_word(now[0].last), limit_word(now[1].last));
    line_pair(drawing, "back: breaker", breaker_word(now[0].last), breaker_word(now[1].last));
    line_pair(drawing, "after healing", storm_tell(demo, 0), storm_tell(demo, 1));
}

static void draw_rows(const struct show *show, struct drawing *drawing, const struct demo *demo)
{
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        char text[4 * TREND + 8];
        const struct cli_style *style = &show->style;
        trend(show, &demo->lane[i], text, sizeof text);
        snprintf(line_next(drawing), LINE_MAX, "  %-*s %s%s%s", NAME_WIDTH + 2,
                 i == 0 ? "success, naive" : "success, becalm", i == 0 ? style->red : style->green, text, style->reset);
    }
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        char text[DRAWN_WIDTH - NAME_WIDTH - 5];
        tell_refusals(&demo->lane[i], text, sizeof text);
        snprintf(line_next(drawing), LINE_MAX, "  %-*s %s", NAME_WIDTH + 2,
                 i == 0 ? "refused, naive" : "refused, becalm", text);
    }
}

/* False: the terminal is too small to draw over earlier lines, so nothing is drawn. */
static bool draw(struct show *show, const struct demo *demo)
{
    struct drawing drawing = {.count = 0};
    uint32_t width;
    uint32_t height;
    char fault[DRAWN_WIDTH];
    char pace[DRAWN_WIDTH];
    console_size(&width, &height);
    tell_fault(demo, fault, sizeof fault);
    snprintf(line_next(&drawing), LINE_MAX, "  %s%s%s", show->style.bold, fault, show->style.reset);
    tell_pace(&demo->pace.storm, pace, sizeof pace);
    snprintf(line_next(&drawing), LINE_MAX, "  %s%s%s", show->style.yellow, pace, show->style.reset);
    draw_figures(&drawing, demo);
    draw_rows(show, &drawing, demo);
    if (width <= DRAWN_WIDTH || height <= drawing.count) {
        show->drawn = 0; /* the lines above stay */
        return false;
    }
    if (show->drawn > 0) {
        printf("\033[%" PRIu32 "A", show->drawn);
    }
    for (uint32_t i = 0; i < drawing.count; i++) {
        printf("\033[K%s\n", drawing.line[i]);
    }
    show->drawn = drawing.count;
    return true;
}

/* ---- line by line ---- */

/* Lines that fit a narrow terminal. */
static void print_pace(const struct pace_span *pace)
{
    printf("\n  This machine is too busy for the demo: services\n  ran up to %" PRIu64 " ms late, in %" PRIu32
           " of %" PRIu32 "\n  half seconds. Calls fail because of that in both\n  lanes, whatever their policy.\n\n",
           pace->worst / BECALM_MS, pace->slow, pace->ticks);
}

/* One line, or on a terminal that is narrower than it, one for each lane. */
static void print_line(struct show *show, const struct demo *demo)
{
    uint32_t width = LINE_MAX;
    uint32_t height;
    if (!show->explained) {
        puts("  Of each lane: requests at back for each call,\n  and how many of the calls succeed.\n");
        show->explained = true;
    }
    if (!show->warned && pace_is_slow(&demo->pace.storm)) {
        print_pace(&demo->pace.storm);
        show->warned = true;
    }
    int length = printf("%4" PRIu64 " s  back is %-8s", seconds_of(demo->ticks), service_fault_word(demo->fault));
    if (show->in_place) {
        console_size(&width, &height);
    }
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        const struct lane *lane = &demo->lane[i];
        struct figures_now now = figures_of(lane);
        char text[80];
        int more = snprintf(text, sizeof text, "  %-6s %6s, %8s", lane_name((enum lane_kind)i),
                            factor_word(now.factor_milli).text, success_word(lane, now.success_ppm).text);
        printf("%s%s", width <= 80 && width <= (uint32_t)(length + LANE_COUNT * more) ? "\n      " : "", text);
    }
    putchar('\n');
}

static bool ticked(void *self, const struct demo *demo)
{
    struct show *show = self;
    bool drawn = !show->silent && show->in_place && draw(show, demo);
    if (!show->silent && !drawn && demo->ticks % STORM_STEADY == 0) {
        print_line(show, demo);
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
    printf("%sThe same incident, with naive retries and with Becalm.%s Users call front,\n"
           "which calls middle, which calls back: %u times a second, in two lanes. Every\n"
           "call goes through a gateway that tries up to %u times: naively in one lane,\n"
           "with Becalm's defaults in the other.\n\n",
           style->bold, style->reset, LANE_RATE, LANE_ATTEMPTS);
    printf("  watch and break it   %shttp://%s/%s\n", style->bold, demo->page, style->reset);
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        printf("  gateway, %-11s http://%s/\n", lane_name((enum lane_kind)i), demo->lane[i].admin);
    }
    puts(demo->options.length == BECALM_NEVER && !demo->options.ends_with_script ? "  Ctrl-C ends it\n" : "");
    fflush(stdout);
}

static void summary(const struct demo *demo)
{
    puts("");
    if (pace_is_slow(&demo->pace.all)) {
        print_pace(&demo->pace.all);
    }
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        const struct lane *lane = &demo->lane[i];
        bool is_hurt = storm_state(&demo->storm, i, demo->ticks) == STORM_HURT;
        struct word storm = is_hurt ? word_of("back was not healed") : storm_tell(demo, i);
        printf("  %-14s %" PRIu64 " calls, %" PRIu64 " failed%s%s\n", lane_title(i), lane->load.begun,
               lane->load.failed, storm.text[0] == '\0' ? "" : "; ", storm.text);
        printf("  %-14s %" PRIu64 " requests at back", "", lane->service[LANE_LAST].arrivals);
        if (demo->peak_milli[i] > 0) {
            printf(", %" PRIu32 ".%" PRIu32 " for each call in the storm", demo->peak_milli[i] / 1000,
                   demo->peak_milli[i] % 1000 / 100);
        }
        puts("");
    }
}

static void summary_json(const struct demo *demo)
{
    struct json json;
    json_begin(&json, stdout);
    json_object(&json, NULL);
    json_number(&json, "seconds", (double)(demo->ticks * LANE_TICK / BECALM_MS) / 1000, 1);
    json_number(&json, "slowSeconds", (double)(demo->pace.all.slow * LANE_TICK / BECALM_MS) / 1000, 1);
    json_number(&json, "lateSeconds", (double)(demo->pace.all.worst / BECALM_MS) / 1000, 3);
    json_array(&json, "lanes");
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        const struct lane *lane = &demo->lane[i];
        const struct storm *storm = &demo->storm;
        json_object(&json, NULL);
        json_text(&json, "name", lane_name(lane->kind));
        json_integer(&json, "calls", lane->load.begun);
        json_integer(&json, "good", lane->load.good);
        json_integer(&json, "failed", lane->load.failed);
        json_number(&json, "peakFactor", (double)demo->peak_milli[i] / 1000, 3);
        json_text(&json, "state", storm_word(storm_state(storm, i, demo->ticks)));
        if (storm->lane[i].recovered == STORM_NOT_YET) {
            json_null(&json, "recoveredSeconds");
        } else {
            becalm_ns after = (storm->lane[i].recovered - storm->healed) * LANE_TICK;
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
    return (faults - 1) * DEMO_REST;
}

/* Plays a storm by itself, for users who only watch; the rest of --seconds is divided among its parts. */
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
    {.name = "seconds", .argument = "N", .help = "end after N seconds; without it, Ctrl-C ends the demo"},
    {.name = "headless", .help = "play one storm, print a summary and end: for scripts"},
    {.name = "fault",
     .argument = "FAULT",
     .help = "the first fault: dead, slow, flapping, errors",
     .complete = CLI_WORDS,
     .words = "dead slow flapping errors",
     .many = true},
    {.name = "port", .argument = "N", .help = "the port of the page; default: any free port"},
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
               "and has buttons to break and heal the last service. The first storm comes by\n"
               "itself after ten seconds. The demo writes no files.",
    .options = options,
    .examples = "  becalm demo\n"
                "  becalm demo --headless --fault slow\n"
                "  becalm demo --headless --seconds 20 --json\n",
    .complete = CLI_NOTHING,
    .run = run,
};
