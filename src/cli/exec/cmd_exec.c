/* SPDX-License-Identifier: MIT */
/* becalm exec: runs a command until it succeeds or should not be run again. */
#define _GNU_SOURCE
#include "cmd_exec.h"

#include "cli/replace.h"
#include "exec/directory.h"
#include "policy/value.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KILL_AFTER (5 * BECALM_S)
#define KEEP_MAX   (1u << 20) /* of input and of output, in bytes */
#define KEEP_MOST  (1u << 30)

/* ---- state that processes share ---- */

struct sharing {
    struct shared shared[EXEC_SHARED_MAX];
    uint32_t count;
    struct directory directory;
    const char *named; /* the directory that was asked for; NULL: the default one */
};

/* The option, else the variable, which is how a whole crontab or unit says it once. */
static const char *directory_asked_for(const struct cli_command *command, const struct cli_args *args)
{
    const char *named = cli_value(command, args, "shared-dir");
    if (named == NULL) {
        named = getenv("BECALM_SHARED_DIR");
    }
    return named == NULL || named[0] == '\0' ? NULL : named;
}

/* Without the shared file the budget can't be respected: the command runs, but only once. */
static void not_shared(struct exec_options *options, const char *what, const char *name, const char *file,
                       const char *why)
{
    options->policy.max_retries = 0;
    (void)cli_fail(&cmd_exec, "%s '%s' can't be used: %s%s%s; the command runs once, without retries", what, name,
                   file == NULL ? "" : file, file == NULL ? "" : ": ", why);
}

static void say_news(enum shared_news news, const char *what, const char *name)
{
    switch (news) {
    case SHARED_FOUND:
    case SHARED_MADE:
        break;
    case SHARED_RENEWED:
        (void)cli_fail(&cmd_exec, "%s '%s' was of an older version of becalm; it begins anew", what, name);
        break;
    case SHARED_CHANGED:
        (void)cli_fail(&cmd_exec, "%s '%s' had other settings until now; its present state is kept", what, name);
        break;
    }
}

/* Opens one. NULL: it can't be used. */
static struct shared *share(struct sharing *sharing, struct exec_options *options, const struct shared_want *want,
                            bool quiet)
{
    const char *what = want->breaker != NULL ? "breaker" : "budget";
    struct shared *shared = &sharing->shared[sharing->count];
    char why[256];
    if (sharing->directory.fd < 0 && !directory_open(&sharing->directory, sharing->named, why, sizeof why)) {
        not_shared(options, what, want->name, NULL, why);
        return NULL;
    }
    if (shared_open(shared, want, &sharing->directory, exec_now(), why, sizeof why) != 0) {
        not_shared(options, what, want->name, shared->path, why);
        return NULL;
    }
    if (!quiet) {
        say_news(shared->news, what, want->name);
    }
    sharing->count++;
    return shared;
}

static void share_all(struct sharing *sharing, struct exec_options *options, const struct exec_rules *rules, bool quiet)
{
    struct shared *shared;
    struct shared_want budget = {.name = rules->budget, .budget = &rules->policy.budget};
    struct shared_want service = {.name = rules->service_budget, .budget = &rules->policy.service_budget};
    struct shared_want breaker = {.name = rules->breaker, .breaker = &rules->policy.breaker};
    struct shared_want lease = {.name = rules->lease, .lease = &rules->policy.lease};
    if (rules->budget[0] != '\0' && (shared = share(sharing, options, &budget, quiet)) != NULL) {
        options->target.budget = shared_budget(shared);
    }
    if (rules->service_budget[0] != '\0' && (shared = share(sharing, options, &service, quiet)) != NULL) {
        options->target.service_budget = shared_budget(shared);
    }
    if (rules->breaker[0] != '\0' && (shared = share(sharing, options, &breaker, quiet)) != NULL) {
        options->target.breaker = shared_breaker(shared);
    }
    options->shared = sharing->shared;
    if (rules->lease[0] != '\0' && (shared = share(sharing, options, &lease, true)) != NULL) {
        options->target.lease = shared_lease(shared);
        options->store = exec_store_open(&(struct exec_store_options){.site = &rules->site,
                                                                      .fleet = rules->fleet,
                                                                      .service = rules->lease_service,
                                                                      .endpoint = rules->lease_endpoint,
                                                                      .shared = shared});
    }
    options->shared_count = sharing->count;
}

static void sharing_close(struct sharing *sharing)
{
    for (uint32_t i = 0; i < sharing->count; i++) {
        shared_close(&sharing->shared[i]);
    }
    directory_close(&sharing->directory);
}

/* ---- options ---- */

/* By default every failure is retried, except a command that does not exist, or whose reader has closed the pipe. */
static int read_codes(struct exec_options *options, const struct exec_rules *rules, const struct cli_command *command,
                      const struct cli_args *args)
{
    const char *success = cli_value(command, args, "success-on");
    const char *retry = cli_value(command, args, "retry-on");
    codes_add(&options->success, 0, 0);
    if (success != NULL && !codes_parse(&options->success, success)) {
        return cli_usage(command, "--success-on: '%s' is no list of exit codes; write 0,3 or 0-2", success);
    }
    codes_add(&options->retry, 0, 255);
    codes_remove(&options->retry, CODE_NOT_RUN);
    codes_remove(&options->retry, CODE_NOT_FOUND);
    codes_remove(&options->retry, CODE_SIGNAL + SIGPIPE);
    if (!rules->retries_timeouts) {
        codes_remove(&options->retry, CODE_TIMED_OUT);
    }
    options->retry_given = retry != NULL;
    if (retry != NULL && !codes_parse(&options->retry, retry)) {
        return cli_usage(command, "--retry-on: '%s' is no list of exit codes; write 1,75 or 1-99", retry);
    }
    return 0;
}

static int read_patterns(struct patterns *patterns, const struct cli_command *command, const struct cli_args *args)
{
    static const char *const names[PATTERN_USES] = {
        [PATTERN_RETRY_IF] = "retry-if",
        [PATTERN_FAIL_IF] = "fail-if",
        [PATTERN_STOP_IF] = "stop-if",
    };
    for (unsigned use = 0; use < PATTERN_USES; use++) {
        const char *text = cli_value(command, args, names[use]);
        char why[128];
        if (text != NULL && !patterns_set(patterns, (enum pattern_use)use, text, why, sizeof why)) {
            return cli_usage(command, "--%s: '%s': %s", names[use], text, why);
        }
    }
    return 0;
}

static int read_size(size_t *size, const char *name, const struct cli_command *command, const struct cli_args *args)
{
    const char *text = cli_value(command, args, name);
    uint64_t bytes = KEEP_MAX;
    if (text != NULL && (!value_size(text, &bytes) || bytes > KEEP_MOST)) {
        return cli_usage(command, "--%s: '%s' is no size up to 1GiB; write one like 64KiB or 10MiB", name, text);
    }
    *size = (size_t)bytes;
    return 0;
}

static int read_show(enum output_show *show, const struct cli_command *command, const struct cli_args *args)
{
    static const char *const words[] = {[OUTPUT_ALL] = "all", [OUTPUT_ONCE] = "once", [OUTPUT_LAST] = "last"};
    const char *text = cli_value(command, args, "output");
    for (unsigned i = 0; text != NULL && i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i], text) == 0) {
            *show = (enum output_show)i;
            return 0;
        }
    }
    return text == NULL ? 0 : cli_usage(command, "--output: '%s' is none of all, once and last", text);
}

/* A command that gets SIGTERM may have work to finish, and the sender of the signal may be willing to wait for longer
 * than our 5s. So SIGKILL follows only if --kill-after was given. */
static int read_kill_after(struct exec_options *options, const struct cli_command *command, const struct cli_args *args)
{
    const char *text = cli_value(command, args, "kill-after");
    options->kill_after = KILL_AFTER;
    options->leave_after = BECALM_NEVER;
    if (text == NULL) {
        return 0;
    }
    if (!value_duration(text, &options->kill_after)) {
        return cli_usage(command, "--kill-after: '%s' is no duration; write one like 500ms or 10s", text);
    }
    options->leave_after = options->kill_after;
    return 0;
}

/* A becalm exec around this one says how much time it has left for us. */
static becalm_ns deadline_from_above(void)
{
    const char *text = getenv("BECALM_DEADLINE_MS");
    uint64_t left;
    if (text == NULL || !value_integer(text, &left) || left > BECALM_NEVER / BECALM_MS) {
        return BECALM_NEVER;
    }
    return becalm_ns_after(exec_now(), left * BECALM_MS);
}

static int read_options(struct exec_options *options, const struct exec_rules *rules, struct patterns *patterns,
                        const struct cli_command *command, const struct cli_args *args)
{
    int rc = read_codes(options, rules, command, args);
    rc = rc != 0 ? rc : read_patterns(patterns, command, args);
    rc = rc != 0 ? rc : read_size(&options->input_max, "stdin-max", command, args);
    rc = rc != 0 ? rc : read_size(&options->output_max, "output-max", command, args);
    rc = rc != 0 ? rc : read_show(&options->show, command, args);
    rc = rc != 0 ? rc : read_kill_after(options, command, args);
    options->argv = (char *const *)(uintptr_t)args->words; /* ends with NULL; exec takes them without const */
    options->policy = rules->policy;
    options->patterns = patterns;
    options->no_input = cli_has(command, args, "no-stdin");
    options->deadline_at = deadline_from_above();
    options->on_lost = exec_say_lost;
    return rc;
}

/* ---- the whole ---- */

static int write_report(const struct cli_command *command, const struct cli_args *args, const struct exec_voice *voice,
                        const struct exec_report *report)
{
    const char *path = cli_value(command, args, "report");
    if (cli_has(command, args, "json")) {
        exec_write_json(stderr, voice, report);
    }
    if (path == NULL) {
        return report->code;
    }
    FILE *out = fopen(path, "we");
    bool fine = out != NULL;
    if (fine) {
        exec_write_json(out, voice, report);
        fine = ferror(out) == 0;
        fine = fclose(out) == 0 && fine;
    }
    if (!fine) { /* the command's own result matters more than the report */
        (void)cli_fail(command, "%s: %s", path, strerror(errno));
    }
    return report->code;
}

/* Written to a new file and renamed, because node_exporter may read at any moment. */
static void write_textfile(const struct cli_command *command, const struct cli_args *args,
                           const struct exec_voice *voice, const struct exec_report *report)
{
    const char *path = cli_value(command, args, "textfile");
    struct replace file = {.out = NULL};
    if (path == NULL) {
        return;
    }
    bool fine = replace_open(&file, path) == 0;
    if (fine) {
        exec_write_textfile(file.out, voice, report, (uint64_t)time(NULL));
        fine = replace_commit(&file) == 0;
    }
    if (!fine) {
        (void)cli_fail(command, "%s: %s", path, strerror(errno));
    }
    replace_close(&file);
}

/* A shell that sees us die of Ctrl-C ends its loop; one that sees us exit with 130 goes on to the next round. */
static void die_of(int number)
{
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    (void)signal(number, SIG_DFL);
    (void)raise(number);
    (void)sigprocmask(SIG_UNBLOCK, &only, NULL);
}

static int run_command(const struct cli_command *command, const struct cli_args *args, struct exec_options *options,
                       const struct exec_rules *rules)
{
    struct exec_voice voice = {
        .name = cli_has(command, args, "name") ? cli_value(command, args, "name") : args->words[0],
        .earned = rules->policy.budget.kind == BECALM_BUDGET_EARNED,
        .quiet = cli_has(command, args, "quiet") || cli_has(command, args, "json"),
        .json = cli_has(command, args, "json"),
    };
    struct sharing sharing = {.directory = {.fd = -1}, .named = directory_asked_for(command, args)};
    struct exec_report report;
    int code = CODE_OWN_FAILURE;
    options->on_retry = voice.quiet ? NULL : exec_say_retry;
    options->data = &voice;
    share_all(&sharing, options, rules, voice.quiet);
    if (exec_run(options, &report) != 0) {
        code = cli_fail(command, "can't begin: %s", strerror(errno));
    } else {
        exec_say_end(&voice, &report);
        code = write_report(command, args, &voice, &report);
        write_textfile(command, args, &voice, &report);
        if (report.signal == SIGINT && report.terminal) {
            die_of(SIGINT);
        }
    }
    exec_store_close(options->store);
    sharing_close(&sharing);
    return code;
}

static int run(const struct cli_command *command, const struct cli_args *args)
{
    struct exec_rules rules = {.config = NULL};
    struct exec_options options = {.show = OUTPUT_ALL};
    struct patterns patterns = {.set = {false}};
    if (cli_has(command, args, "list-budgets")) {
        return args->word_count == 0 ? exec_list(directory_asked_for(command, args), cli_has(command, args, "json"))
                                     : cli_usage(command, "--list-budgets runs no command");
    }
    if (args->word_count == 0) {
        return cli_usage(command, "which command?");
    }
    int rc = exec_rules_load(&rules, command, args);
    if (rc == 0) {
        rc = read_options(&options, &rules, &patterns, command, args);
    }
    if (rc == 0) {
        rc = run_command(command, args, &options, &rules);
    }
    patterns_free(&patterns);
    exec_rules_free(&rules);
    return rc;
}

static const struct cli_option options_table[] = {
    {.name = "retries", .letter = 'r', .argument = "N", .help = "the most retries; 2; or 'unlimited'"},
    {.name = "delay",
     .letter = 'd',
     .argument = "TIME",
     .help = "wait before the first retry; 100ms; or a list: 1s,2s,5s"},
    {.name = "max-delay", .argument = "TIME", .help = "the longest wait; 10s"},
    {.name = "growth",
     .argument = "WORD",
     .help = "exponential, linear or constant",
     .complete = CLI_WORDS,
     .words = "exponential linear constant"},
    {.name = "multiplier", .argument = "X", .help = "the factor of exponential growth; 2"},
    {.name = "jitter",
     .argument = "WORD",
     .help = "full, none, equal, decorrelated or proportional",
     .complete = CLI_WORDS,
     .words = "full none equal decorrelated proportional"},
    {.name = "timeout", .letter = 't', .argument = "TIME", .help = "time limit of one attempt; no limit"},
    {.name = "kill-after",
     .letter = 'k',
     .argument = "TIME",
     .help = "from SIGTERM to SIGKILL; 5s; see becalm-exec(1)"},
    {.name = "deadline", .letter = 'D', .argument = "TIME", .help = "time limit of all attempts and waits; no limit"},
    {.name = "retry-on", .argument = "CODES", .help = "retry only these exit codes: 1,75,128-255"},
    {.name = "success-on", .argument = "CODES", .help = "these exit codes are success; 0"},
    {.name = "retry-if", .argument = "REGEX", .help = "retry a failure if a line of its output matches"},
    {.name = "fail-if", .argument = "REGEX", .help = "output that matches is a failure with any exit code"},
    {.name = "stop-if", .argument = "REGEX", .help = "output that matches is never retried"},
    {.name = "budget",
     .letter = 'b',
     .argument = "NAME",
     .help = "pay retries from this budget, which processes share"},
    {.name = "breaker", .argument = "NAME", .help = "use this circuit breaker, which processes share"},
    {.name = "shared-dir",
     .argument = "DIR",
     .help = "the directory of shared budgets and breakers; mode 0700 or 2770",
     .complete = CLI_FILE},
    {.name = "list-budgets", .help = "print the shared budgets and breakers and their state; with -j as JSON"},
    {.name = "policy",
     .letter = 'p',
     .argument = "FILE",
     .help = "take all rules from a policy file",
     .complete = CLI_FILE},
    {.name = "service", .letter = 's', .argument = "NAME", .help = "the service in that file, or SERVICE/ENDPOINT"},
    {.name = "set", .argument = "KEY=VALUE", .help = "set any key of a policy: budget.capacity=10", .many = true},
    {.name = "no-stdin", .help = "give the command nothing to read"},
    {.name = "stdin-max", .argument = "SIZE", .help = "the most bytes of a pipe that are kept for replay; 1MiB"},
    {.name = "output",
     .letter = 'o',
     .argument = "WORD",
     .help = "attempts whose output is shown: all, once (stdout of the others goes to stderr), last",
     .complete = CLI_WORDS,
     .words = "all once last"},
    {.name = "output-max",
     .argument = "SIZE",
     .help = "the most output that is held back; an attempt with more is not retried; 1MiB"},
    {.name = "name", .letter = 'm', .argument = "TEXT", .help = "the name of the command in messages"},
    {.name = "quiet", .letter = 'q', .help = "print no line about retries or exit codes"},
    {.name = "json", .letter = 'j', .help = "print a report on standard error at the end, instead of lines"},
    {.name = "report", .argument = "FILE", .help = "write the report of --json to a file", .complete = CLI_FILE},
    {.name = "textfile",
     .argument = "FILE",
     .help = "write metrics for node_exporter's textfile collector",
     .complete = CLI_FILE},
    {.name = NULL},
};

const struct cli_command cmd_exec = {
    .name = "exec",
    .summary = "run a command with retries, budget and deadline",
    .usage = "exec [options] [--] COMMAND [ARGUMENT]...",
    .purpose = "Runs the command until it succeeds, or until it should not be run again. Every\n"
               "failure is retried, except if the command was not found or can't be run (126,\n"
               "127), or if the reader of its output has gone (141).\n"
               "\n"
               "Exits with the command's own code; 124 when time is up, 125 when becalm itself\n"
               "failed or the breaker is open, 126 and 127 as env(1), 128+n for signal n.\n"
               "\n"
               "The command sees BECALM_ATTEMPT (0 is the first), BECALM_DEADLINE_MS (time\n"
               "left) and BECALM_IDEMPOTENCY_KEY (the same on every attempt).",
    .options = options_table,
    .examples = "  becalm exec -- curl -fsS https://example.com/health\n"
                "  becalm exec -r 5 -d 1s -D 2m --retry-on 75,255 -- ssh backup ./nightly\n"
                "  becalm exec --budget db --timeout 30s -- psql -f report.sql\n"
                "  becalm exec --policy becalm.yaml --service payment -- ./charge\n"
                "  becalm exec --list-budgets\n",
    .complete = CLI_FILE,
    .passes_on = true,
    .failure = CODE_OWN_FAILURE,
    .run = run,
};
