/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include "cli/replace.h"
#include "cmd_sim.h"

#include "report/page.h"
#include "report/picture.h"
#include "report/timeline.h"
#include "sim/reference.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

bool sim_has(const struct sim *s, const char *option)
{
    return cli_has(s->command, s->args, option);
}

int sim_no_memory(const struct sim *s)
{
    return cli_fail(s->command, "there is not enough memory");
}

struct report_style sim_style(void)
{
    struct cli_style style = cli_style(stdout);
    return (struct report_style){cli_utf8(), style.bold, style.dim, style.red, style.green, style.reset};
}

/* A run that a page or a picture is made of when all are over. */
struct kept {
    struct world_result result;
    struct measure measure;
};

struct runs {
    struct sim *sim;
    struct figures *figures; /* by policy, then by seed */
    struct kept *kept;       /* by policy: the first seed's; NULL: none is needed */
    struct replace page;
    struct replace picture;
    struct timeline *timeline; /* --trace */
    struct json *json;         /* --json */
    uint64_t events;
};

static bool is_many(const struct sim *s)
{
    return sim_has(s, "compare") || sim_has(s, "seeds");
}

/* ---- a signal to stop: remove the line of progress, and files that are not complete ---- */

static sigset_t stops(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

static bool stop_is_wanted(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 && (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
                                         sigismember(&pending, SIGHUP) == 1);
}

/* ---- progress: on a line of its own that goes away again, and only for people ---- */

struct progress {
    const struct sim *sim;
    const char *policy;
    uint32_t run; /* from 0 */
    bool watched;
    uint64_t percent;
};

static unsigned terminal_columns(void)
{
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return known ? size.ws_col : 80;
}

static void progress_show(struct progress *progress, becalm_ns now)
{
    const struct sim *s = progress->sim;
    uint64_t percent = becalm_ns_min(now, s->plan->length) / BECALM_MS * 100 / (s->plan->length / BECALM_MS);
    if (now > 0 && percent == progress->percent) {
        return;
    }
    progress->percent = percent;
    char line[160];
    (void)snprintf(line, sizeof line,
                   "simulating %.40s, %" PRIu32 " of %" PRIu32 ": %" PRIu64 " of %" PRIu64 " s, %" PRIu64 " %%",
                   progress->policy, progress->run + 1, s->choice_count * s->seeds, now / BECALM_S,
                   s->plan->length / BECALM_S, percent);
    fprintf(stderr, "\r\033[K%.*s", (int)terminal_columns() - 1, line); /* a line that wraps can't be taken back */
    fflush(stderr);
}

/* Once for every virtual second. */
static bool progress_step(void *self, becalm_ns now)
{
    struct progress *progress = self;
    if (progress->watched) {
        progress_show(progress, now);
    }
    return !stop_is_wanted();
}

static void progress_end(void)
{
    fputs("\r\033[K", stderr);
    fflush(stderr);
}

/* ---- one run ---- */

static int run_world(struct runs *runs, uint32_t choice, uint32_t seed, struct world_result *result)
{
    struct sim *s = runs->sim;
    struct choice *with = &s->choices[choice];
    bool watched = isatty(STDERR_FILENO) == 1 && runs->timeline == NULL;
    struct progress progress = {s, with->name, choice * s->seeds + seed, watched, 0};
    with->options.seed = s->seed + seed;
    with->options.progress = progress_step;
    with->options.progress_self = &progress;
    with->options.trace = runs->timeline == NULL ? NULL : timeline_step;
    with->options.trace_self = runs->timeline;
    if (watched) {
        progress_show(&progress, 0);
    }
    int rc = world_run(s->plan, &with->options, result);
    if (watched) {
        progress_end();
    }
    with->options.progress_self = NULL;
    return rc;
}

static void run_show(const struct runs *runs, const struct report_run *run)
{
    const struct sim *s = runs->sim;
    if (runs->json != NULL) {
        sim_json_run(runs->json, s->plan, run, sim_has(s, "series"));
    } else if (!is_many(s) && runs->timeline == NULL) {
        struct report_style style = sim_style();
        report_summary(stdout, &style, s->plan, run);
    }
}

static struct report_run report_of(const struct sim *s, uint32_t choice, const struct kept *run)
{
    const struct choice *with = &s->choices[choice];
    return (struct report_run){with->name, s->set, with->options.seed, &with->options, &run->result, &run->measure};
}

/* Says why a run has no result; returns the exit code. */
static int run_failed(const struct sim *s, int rc, const struct world_result *result)
{
    if (rc == BECALM_EINVAL && result->stuck_at == BECALM_NEVER) {
        return 1; /* the run was interrupted; the signal will end us */
    }
    if (rc != BECALM_EINVAL) {
        return sim_no_memory(s);
    }
    return cli_fail(s->command,
                    "time stands still at %" PRIu64 ".%06" PRIu64 " s: callers or connections try again without any "
                    "wait; make think, a link or the policy's delays longer than 0s",
                    result->stuck_at / BECALM_S, result->stuck_at % BECALM_S / BECALM_US);
}

/* Its figures are kept; the rest is shown and, unless a page needs it, forgotten. */
static int run_one(struct runs *runs, uint32_t choice, uint32_t seed)
{
    struct sim *s = runs->sim;
    struct kept one = {.result = {0}};
    bool keep = runs->kept != NULL && seed == 0;
    int rc = run_world(runs, choice, seed, &one.result);
    if (rc == 0) {
        rc = measure_take(s->plan, &one.result, &one.measure);
    }
    if (rc == 0) {
        struct report_run run = report_of(s, choice, &one);
        runs->events += one.result.events;
        figures_take(s->plan, &one.measure, &runs->figures[(size_t)choice * s->seeds + seed]);
        run_show(runs, &run);
    }
    int code = rc == 0 ? 0 : run_failed(s, rc, &one.result);
    if (keep) {
        runs->kept[choice] = one;
    } else {
        measure_free(&one.measure);
        world_result_free(s->plan, &one.result);
    }
    return code;
}

static int run_all(struct runs *runs)
{
    int rc = 0;
    for (uint32_t choice = 0; rc == 0 && choice < runs->sim->choice_count; choice++) {
        for (uint32_t seed = 0; rc == 0 && seed < runs->sim->seeds; seed++) {
            rc = run_one(runs, choice, seed);
        }
    }
    return rc;
}

/* ---- standard output ---- */

static int run_json(struct runs *runs)
{
    struct json json;
    runs->json = &json;
    json_begin(&json, stdout);
    if (is_many(runs->sim)) {
        json_array(&json, NULL);
    }
    int rc = run_all(runs);
    if (rc == 0 && is_many(runs->sim)) {
        json_array_end(&json);
    }
    if (rc == 0) {
        json_end(&json);
    }
    return rc;
}

/* The texts that a table points at. */
struct columns {
    const char *name[SIM_POLICIES_MAX];
    const struct world_options *options[SIM_POLICIES_MAX];
};

static struct report_table table_of(const struct runs *runs, struct columns *columns)
{
    const struct sim *s = runs->sim;
    for (uint32_t i = 0; i < s->choice_count; i++) {
        columns->name[i] = s->choices[i].name;
        columns->options[i] = &s->choices[i].options;
    }
    return (struct report_table){.policy = columns->name,
                                 .policy_count = s->choice_count,
                                 .figures = runs->figures,
                                 .first_seed = s->seed,
                                 .seeds = s->seeds,
                                 .set = s->set,
                                 .options = columns->options};
}

static int run_text(struct runs *runs)
{
    struct columns columns;
    struct report_style style = sim_style();
    int rc = run_all(runs);
    if (rc == 0 && is_many(runs->sim)) {
        struct report_table table = table_of(runs, &columns);
        report_compare(stdout, &style, runs->sim->plan, &table);
    }
    return rc;
}

static int run_trace(struct runs *runs)
{
    const struct scenario *plan = runs->sim->plan;
    struct fault_span span;
    becalm_ns from = runs->sim->trace_from != BECALM_NEVER ? runs->sim->trace_from
                     : scenario_fault_span(plan, &span)    ? span.at
                                                           : 0;
    struct report_style style = sim_style();
    runs->timeline = timeline_new(stdout, from, runs->sim->trace_calls);
    if (runs->timeline == NULL) {
        return sim_no_memory(runs->sim);
    }
    report_timeline_title(stdout, &style, plan, runs->sim->choices[0].name, from);
    int rc = run_all(runs);
    if (rc == 0 && timeline_empty(runs->timeline)) {
        puts("No call begins from then on.");
    }
    return rc == 0 && !timeline_whole(runs->timeline) ? sim_no_memory(runs->sim) : rc;
}

/* ---- files ---- */

/* Output files are opened before anything is run, so that an error appears at once. */
static int file_open(const struct sim *s, const char *option, struct replace *file)
{
    const char *path = cli_value(s->command, s->args, option);
    if (path == NULL || replace_open(file, path) == 0) {
        return 0;
    }
    return cli_fail(s->command, "--%s %s: %s", option, path, strerror(errno));
}

static int file_commit(const struct sim *s, const char *option, struct replace *file)
{
    if (file->out == NULL || replace_commit(file) == 0) {
        return 0;
    }
    return cli_fail(s->command, "--%s %s: %s", option, cli_value(s->command, s->args, option), strerror(errno));
}

static int files_open(struct runs *runs)
{
    const struct sim *s = runs->sim;
    int rc = file_open(s, "html", &runs->page);
    rc = rc == 0 ? file_open(s, "picture", &runs->picture) : rc;
    if (rc == 0 && (runs->page.out != NULL || runs->picture.out != NULL)) {
        runs->kept = calloc(s->choice_count, sizeof *runs->kept);
        rc = runs->kept == NULL ? sim_no_memory(s) : 0;
    }
    return rc;
}

static int files_write(struct runs *runs)
{
    const struct sim *s = runs->sim;
    struct columns columns;
    struct report_run run[SIM_POLICIES_MAX];
    struct report_table table = table_of(runs, &columns);
    for (uint32_t i = 0; runs->kept != NULL && i < s->choice_count; i++) {
        run[i] = report_of(s, i, &runs->kept[i]);
        run[i].seed = s->seed;
    }
    if (runs->page.out != NULL) {
        const struct page page = {s->plan, &table, run};
        page_write(runs->page.out, &page);
    }
    if (runs->picture.out != NULL) {
        picture_write(runs->picture.out, s->plan, run, s->choice_count);
    }
    int rc = file_commit(s, "html", &runs->page);
    return rc == 0 ? file_commit(s, "picture", &runs->picture) : rc;
}

static void runs_free(struct runs *runs)
{
    const struct sim *s = runs->sim;
    for (uint32_t i = 0; runs->kept != NULL && i < s->choice_count; i++) {
        measure_free(&runs->kept[i].measure);
        world_result_free(s->plan, &runs->kept[i].result);
    }
    replace_close(&runs->page);
    replace_close(&runs->picture);
    timeline_free(runs->timeline);
    free(runs->kept);
    free(runs->figures);
}

int sim_runs(struct sim *s)
{
    struct runs runs = {.sim = s};
    const sigset_t held = stops();
    sigset_t before;
    (void)sigprocmask(SIG_BLOCK, &held, &before);
    runs.figures = calloc((size_t)s->choice_count * s->seeds, sizeof *runs.figures);
    int rc = runs.figures == NULL ? sim_no_memory(s) : files_open(&runs);
    clock_t from = clock();
    if (rc == 0) {
        rc = sim_has(s, "json") ? run_json(&runs) : sim_has(s, "trace") ? run_trace(&runs) : run_text(&runs);
    }
    double spent = (double)(clock() - from) / CLOCKS_PER_SEC;
    rc = rc == 0 ? files_write(&runs) : rc;
    if (rc == 0 && sim_has(s, "timing")) {
        fprintf(stderr, "%" PRIu64 " events in %.3f s of CPU, %.2f million a second\n", runs.events, spent,
                spent > 0 ? (double)runs.events / spent / 1e6 : 0);
    }
    runs_free(&runs);
    (void)sigprocmask(SIG_SETMASK, &before, NULL); /* a signal that came meanwhile comes now */
    return rc;
}
