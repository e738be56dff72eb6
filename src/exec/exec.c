/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "exec.h"

#include "input.h"
#include "process.h"
#include "terminal.h"

#include "http/key.h"
#include "run/entropy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define LINGER       (200 * BECALM_MS) /* for the output of background processes of the command, such as >(tee log) */
#define LONGEST_POLL 1000000           /* ms; a wake-up too many now and then does no harm */

enum { VARIABLE_ATTEMPT, VARIABLE_DEADLINE, VARIABLE_KEY, VARIABLES }; /* the key last: it may be left as it is */

#define KEY_NAME "BECALM_IDEMPOTENCY_KEY"

/* The stage of the attempt in flight. */
enum stage {
    STAGE_NONE,
    STAGE_RUNNING,
    STAGE_KILLING, /* its time is over: TERM was sent, or KILL */
    STAGE_LEAVING  /* becalm itself got a signal and has passed it on; KILL follows only if --kill-after was given */
};

struct driver {
    const struct exec_options *options;
    struct exec_report *report;
    struct becalm_policy policy; /* a copy: losing a shared file ends retries */
    struct becalm_call call;
    struct becalm_action action;
    uint64_t seed;

    sigset_t before; /* the mask that we were started with, and the command too */
    int ends;        /* signals that end us */
    int others;      /* SIGCHLD and those that don't */
    int null;        /* /dev/null, if the command gets it */
    struct terminal terminal;
    struct input input;
    struct output output;
    struct process_variable change[VARIABLES + 1];

    enum stage stage;
    struct process process;
    becalm_ns timeout_at; /* of this attempt */
    becalm_ns kill_at;    /* KILLING, LEAVING: when the first signal was not enough; NEVER before, and after KILL */
    becalm_ns linger_at; /* the process has ended: until when we read the output of processes that it left behind; NEVER
                            before */
};

becalm_ns exec_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* can't fail for this clock */
    return (becalm_ns)now.tv_sec * BECALM_S + (becalm_ns)now.tv_nsec;
}

/* ---- the engine ---- */

/* The numbers in force are those of the process that last came with different ones. */
static void policy_follow(struct driver *driver, const struct shared *shared)
{
    if (shared->want.breaker != NULL) {
        driver->policy.breaker = shared->breaker;
    } else if (shared->want.lease != NULL) {
        driver->policy.lease = shared->lease;
    } else if (shared_budget(shared) == driver->options->target.budget) {
        driver->policy.budget = shared->budget;
    } else {
        driver->policy.service_budget = shared->budget;
    }
}

/* Holds the shared files until shared_release(). If a file is damaged during the call, there are no more retries.
 * Returns the damaged ones, as bits. */
static uint32_t shared_begin(struct driver *driver, becalm_ns now)
{
    const struct exec_options *options = driver->options;
    uint32_t lost = shared_hold(options->shared, options->shared_count, now);
    for (uint32_t i = 0; i < options->shared_count; i++) {
        policy_follow(driver, &options->shared[i]);
        if ((lost >> i & 1) != 0) {
            driver->policy.max_retries = 0;
        }
    }
    return lost;
}

/* Before a line on standard error: waits until there is room for it, and not longer than until a signal ends us. */
static bool may_speak(const struct driver *driver)
{
    struct pollfd fds[2] = {{.fd = STDERR_FILENO, .events = POLLOUT}, {.fd = driver->ends, .events = POLLIN}};
    while (poll(fds, 2, -1) < 0 && errno == EINTR) {
    }
    return fds[0].revents != 0;
}

static void tell_lost(const struct driver *driver, uint32_t lost)
{
    const struct exec_options *options = driver->options;
    for (uint32_t i = 0; i < options->shared_count; i++) {
        if ((lost >> i & 1) != 0 && may_speak(driver)) {
            options->on_lost(&options->shared[i], options->data);
        }
    }
}

static void tell_retry(const struct driver *driver)
{
    const struct exec_options *options = driver->options;
    const struct becalm_action *action = &driver->action;
    if (!becalm_action_delays_retry(action) || options->on_retry == NULL || !may_speak(driver)) {
        return;
    }
    struct exec_retry retry = {
        .retry = driver->call.retries,
        .of = driver->policy.max_retries,
        .wait = action->wait.wait,
        .last = driver->report->last,
    };
    options->on_retry(&retry, options->data);
}

static void step(struct driver *driver, enum becalm_event_kind kind, const struct becalm_outcome *outcome)
{
    struct becalm_event event = {
        .kind = kind,
        .at = {.now = exec_now(), .random = becalm_rand_next(&driver->seed)},
        .slot = 0,
    };
    if (outcome != NULL) {
        event.outcome = *outcome;
    }
    uint32_t lost = shared_begin(driver, event.at.now);
    becalm_call_step(&driver->call, &event, &driver->action);
    shared_release(driver->options->shared, driver->options->shared_count);
    if (becalm_action_moves_breaker(&driver->action)) {
        driver->report->breaker_from = driver->action.breaker_from;
        driver->report->breaker_to = driver->action.breaker_to;
    }
    tell_lost(driver, lost); /* only now: a slow reader of this message must not hold the lock */
    tell_retry(driver);
}

/* ---- how an attempt ended, in the engine's words ---- */

/* Is this failure retried? By its code or by a pattern, as the options say; by either one if both were given. */
static bool is_listed(const struct driver *driver, int code)
{
    const struct exec_options *options = driver->options;
    const bool *found = driver->output.found;
    if (found[PATTERN_RETRY_IF] || (found[PATTERN_FAIL_IF] && codes_has(&options->success, code))) {
        return true;
    }
    bool by_pattern_alone = options->patterns->set[PATTERN_RETRY_IF] && !options->retry_given;
    return !by_pattern_alone && codes_has(&options->retry, code);
}

/* These say nothing about the service behind the command, so its breaker hears nothing: a job with a misspelt program
 * must not shut it for all others. */
static enum becalm_mark_kind mark_of(int code)
{
    bool unasked = code == CODE_NOT_RUN || code == CODE_NOT_FOUND || code == CODE_SIGNAL + SIGPIPE;
    return unasked ? BECALM_MARK_UNASKED : BECALM_MARK_NONE;
}

static struct becalm_outcome outcome_of(const struct driver *driver, int code, bool timed_out)
{
    const bool *found = driver->output.found;
    struct becalm_outcome outcome = {.status = (uint32_t)code, .delivered = driver->output.delivered};
    if (!timed_out && codes_has(&driver->options->success, code) && !found[PATTERN_FAIL_IF]) {
        return outcome;
    }
    /* To the engine a failure is "broken": it may be retried as often as the policy says. */
    outcome.kind = timed_out ? BECALM_OUTCOME_TIMED_OUT : BECALM_OUTCOME_BROKEN;
    outcome.listed = is_listed(driver, code) ? BECALM_LISTED_YES : BECALM_LISTED_NO;
    outcome.stop = found[PATTERN_STOP_IF];
    outcome.mark = mark_of(code);
    return outcome;
}

static int start_code(int error, bool forked)
{
    if (!forked) {
        return CODE_OWN_FAILURE;
    }
    return error == ENOENT ? CODE_NOT_FOUND : CODE_NOT_RUN;
}

/* A command that could not be started was never sent. A lack of processes passes; a missing file does not. */
static void start_failed(struct driver *driver, int error, bool forked)
{
    int code = start_code(error, forked);
    bool listed = !forked || codes_has(&driver->options->retry, code);
    struct becalm_outcome outcome = {
        .kind = BECALM_OUTCOME_REFUSED,
        .listed = listed ? BECALM_LISTED_YES : BECALM_LISTED_NO,
        .status = (uint32_t)code,
        .mark = BECALM_MARK_UNASKED, /* nor does the lack of a process */
    };
    driver->report->last = (struct exec_end){.code = code, .start_error = error};
    step(driver, BECALM_EVENT_DONE, &outcome);
}

/* ---- one attempt ---- */

static void change_set(struct driver *driver)
{
    becalm_ns left = becalm_ns_left(exec_now(), driver->timeout_at);
    char *deadline = driver->change[VARIABLE_DEADLINE].value;
    (void)snprintf(driver->change[VARIABLE_ATTEMPT].value, sizeof driver->change[0].value, "%u",
                   driver->action.attempt);
    deadline[0] = '\0';
    if (left != BECALM_NEVER) {
        (void)snprintf(deadline, sizeof driver->change[0].value, "%llu", (unsigned long long)(left / BECALM_MS));
    }
}

static void attempt_start(struct driver *driver)
{
    struct process_plan plan = {.argv = driver->options->argv, .mask = &driver->before, .change = driver->change};
    bool forked = false;
    int error = 0;
    driver->timeout_at = driver->action.timeout_at;
    driver->kill_at = BECALM_NEVER;
    driver->linger_at = BECALM_NEVER;
    change_set(driver);
    if (!input_begin(&driver->input, &plan.fd[0])) {
        start_failed(driver, errno, false);
        return;
    }
    if (output_begin(&driver->output, &plan.fd[1])) {
        error = process_start(&driver->process, &plan, &forked);
        output_started(&driver->output, &plan.fd[1]);
    } else {
        error = errno;
    }
    input_started(&driver->input, plan.fd[0]);
    if (error != 0) {
        input_end(&driver->input);
        output_end(&driver->output);
        start_failed(driver, error, forked);
        return;
    }
    driver->stage = STAGE_RUNNING;
}

/* With the first signal that is to end it; a later one gives it no more time. */
static void kill_announce(struct driver *driver, becalm_ns now, becalm_ns after)
{
    driver->kill_at = becalm_ns_min(driver->kill_at, becalm_ns_after(now, after));
}

static bool kill_is_due(const struct driver *driver, becalm_ns now)
{
    if (driver->stage == STAGE_KILLING) {
        return now >= driver->kill_at; /* also if only others of its group are left */
    }
    return !driver->process.ended && now >= becalm_ns_min(driver->timeout_at, driver->kill_at);
}

/* Its time is up. The engine hears of it when the group is gone, so that no attempt begins beside an older one. */
static void attempt_kill(struct driver *driver, becalm_ns now)
{
    bool hard = now >= driver->kill_at;
    process_signal(&driver->process, hard ? SIGKILL : SIGTERM);
    process_signal(&driver->process, SIGCONT); /* a stopped process would not hear the latter */
    if (hard) {
        driver->kill_at = BECALM_NEVER;
        driver->timeout_at = BECALM_NEVER; /* of an attempt that has ended already, but for the news of it */
    } else {
        driver->stage = STAGE_KILLING;
        kill_announce(driver, now, driver->options->kill_after);
    }
}

static void attempt_over(struct driver *driver)
{
    struct exec_report *report = driver->report;
    int key = terminal_key(&driver->terminal, &driver->process);
    report->last = (struct exec_end){.code = driver->process.code, .killed_by = driver->process.signal};
    if (driver->stage == STAGE_KILLING) {
        report->last = (struct exec_end){.code = CODE_TIMED_OUT, .timed_out = true};
    }
    terminal_return(&driver->terminal, &driver->process);
    driver->process = (struct process){.pid = 0};
    driver->stage = STAGE_NONE;
    input_end(&driver->input);
    output_end(&driver->output);
    if (driver->input.over) {
        becalm_call_not_replayable(&driver->call);
    }
    if (key != 0 && !report->last.timed_out && report->signal == 0) {
        report->signal = key;
        report->terminal = true;
        step(driver, BECALM_EVENT_CANCEL, NULL);
        return;
    }
    struct becalm_outcome outcome = outcome_of(driver, report->last.code, report->last.timed_out);
    report->last.by_output = !report->last.timed_out && driver->output.found[PATTERN_FAIL_IF] &&
                             codes_has(&driver->options->success, report->last.code);
    step(driver, BECALM_EVENT_DONE, &outcome); /* which has no effect if the call was cancelled before */
}

/* Handles the events of the attempt that are due. */
static void attempt_tend(struct driver *driver)
{
    becalm_ns now = exec_now();
    struct process *process = &driver->process;
    if (process->stopped != 0) {
        terminal_stopped(&driver->terminal, process);
    }
    if (process->ended && driver->linger_at == BECALM_NEVER) {
        driver->linger_at = becalm_ns_after(now, LINGER);
        input_end(&driver->input);
        output_ended(&driver->output);
    }
    if (kill_is_due(driver, now)) {
        attempt_kill(driver, now);
    }
    bool late = driver->report->signal != 0 &&
                now >= driver->linger_at; /* told to end: a reader that sleeps must not stop us */
    bool quiet = process->ended && (late || output_done(&driver->output, now < driver->linger_at));
    if (quiet && (driver->stage != STAGE_KILLING || process_group_gone(process))) {
        attempt_over(driver);
    }
}

/* ---- signals ---- */

/* One that we were started to ignore (nohup, or a shell's background job) stays ignored: blocked, it would reach us. */
static bool is_ignored(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static bool signals_open(struct driver *driver)
{
    static const int end[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    static const int other[] = {SIGCHLD, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH};
    sigset_t ends;
    sigset_t others;
    sigset_t all;
    sigemptyset(&ends);
    sigemptyset(&others);
    sigemptyset(&all);
    for (size_t i = 0; i < sizeof end / sizeof end[0]; i++) {
        if (!is_ignored(end[i])) {
            sigaddset(&ends, end[i]);
            sigaddset(&all, end[i]);
        }
    }
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        if (other[i] == SIGCHLD || !is_ignored(other[i])) {
            sigaddset(&others, other[i]);
            sigaddset(&all, other[i]);
        }
    }
    sigaddset(&all, SIGTTOU); /* we take the terminal back from the background */
    sigaddset(&all, SIGPIPE); /* blocked, not ignored: the command must not inherit that */
    if (sigprocmask(SIG_BLOCK, &all, &driver->before) != 0) {
        return false;
    }
    /* An ignored SIGCHLD would be inherited from a careless parent, and then no child's end could be learnt. */
    (void)signal(SIGCHLD, SIG_DFL);
    driver->ends = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
    driver->others = signalfd(-1, &others, SFD_CLOEXEC | SFD_NONBLOCK);
    return driver->ends >= 0 && driver->others >= 0;
}

/* Told to end: the command hears the same, and the call is over at once; we end when the command has. */
static void end_by(struct driver *driver, const struct signalfd_siginfo *info)
{
    driver->report->signal = (int)info->ssi_signo;
    driver->report->terminal = info->ssi_code == SI_KERNEL;
    driver->report->between = driver->stage == STAGE_NONE;
    if (driver->stage != STAGE_NONE) {
        process_signal(&driver->process, (int)info->ssi_signo);
        process_signal(&driver->process, SIGCONT);
        kill_announce(driver, exec_now(), driver->options->leave_after);
    }
    if (driver->stage == STAGE_RUNNING) {
        driver->stage = STAGE_LEAVING;
    }
    if (!becalm_call_ended(&driver->call)) {
        step(driver, BECALM_EVENT_CANCEL, NULL);
    }
}

static void signals_take(struct driver *driver)
{
    struct signalfd_siginfo info;
    while (read(driver->ends, &info, sizeof info) == (ssize_t)sizeof info) {
        end_by(driver, &info);
    }
    while (read(driver->others, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGTSTP) {
            terminal_stop(&driver->terminal, &driver->process);
        } else if (info.ssi_signo != SIGCHLD) {
            process_signal(&driver->process, (int)info.ssi_signo);
        }
    }
    process_reap(&driver->process);
}

/* ---- the loop ---- */

static becalm_ns next_at(const struct driver *driver, becalm_ns now)
{
    /* Once patience is over, only the command's own bytes are waited for, and those come or go without a timer. */
    becalm_ns linger_at = now < driver->linger_at ? driver->linger_at : BECALM_NEVER;
    switch (driver->stage) {
    case STAGE_NONE:
        return driver->action.wake_at;
    case STAGE_RUNNING:
        return driver->process.ended ? linger_at : driver->action.wake_at;
    case STAGE_KILLING:
        return becalm_ns_min(driver->kill_at, linger_at);
    case STAGE_LEAVING:
        return driver->process.ended ? linger_at : becalm_ns_min(driver->timeout_at, driver->kill_at);
    }
    BECALM_UNREACHABLE();
}

/* Rounded up, so that the time has come when poll says so. */
static int poll_timeout(becalm_ns now, becalm_ns at)
{
    becalm_ns left = becalm_ns_left(now, at);
    if (left == BECALM_NEVER) {
        return -1;
    }
    return left / BECALM_MS >= LONGEST_POLL ? LONGEST_POLL : (int)((left + BECALM_MS - 1) / BECALM_MS);
}

/* The store of the machine's budget, if it has something to do. */
static void store_tend(struct driver *driver, bool ready)
{
    struct exec_store *store = driver->options->store;
    becalm_ns now = exec_now();
    if (store == NULL || (!ready && now < exec_store_due(store))) {
        return;
    }
    uint32_t lost = shared_begin(driver, now);
    exec_store_turn(store, now);
    shared_release(driver->options->shared, driver->options->shared_count);
    tell_lost(driver, lost);
}

/* Sleeps until something happens, and moves bytes. */
static void wait_and_move(struct driver *driver)
{
    struct exec_store *store = driver->options->store;
    struct pollfd fds[7] = {{.fd = driver->ends, .events = POLLIN}, {.fd = driver->others, .events = POLLIN}};
    becalm_ns now = exec_now();
    becalm_ns at = next_at(driver, now);
    input_poll(&driver->input, &fds[2]);
    output_poll(&driver->output, &fds[4]);
    fds[6] = (struct pollfd){.fd = store == NULL ? -1 : exec_store_fd(store), .events = POLLIN};
    if (poll(fds, 7, poll_timeout(now, store == NULL ? at : becalm_ns_min(at, exec_store_due(store)))) < 0) {
        return; /* EINTR after SIGCONT: look around */
    }
    store_tend(driver, fds[6].revents != 0);
    input_move(&driver->input, &fds[2]);
    output_move(&driver->output, &fds[4]);
    signals_take(driver);
}

/* Is it the engine's turn? The end of an attempt's time is ours. */
static bool is_due(const struct driver *driver)
{
    becalm_ns now = exec_now();
    bool flying = driver->stage == STAGE_RUNNING && now < driver->timeout_at;
    return (driver->stage == STAGE_NONE || flying) && !becalm_call_ended(&driver->call) &&
           now >= driver->action.wake_at;
}

static void run(struct driver *driver)
{
    step(driver, BECALM_EVENT_BEGIN, NULL);
    for (;;) {
        if (driver->stage == STAGE_NONE && becalm_call_ended(&driver->call)) {
            return;
        }
        if (driver->stage == STAGE_NONE && (driver->action.flags & BECALM_DO_SEND) != 0) {
            driver->action.flags &= ~(unsigned)BECALM_DO_SEND;
            if (driver->action.attempt > 0 && !output_settle(&driver->output, false, -1)) {
                signals_take(driver);
                continue;
            }
            attempt_start(driver);
            continue;
        }
        wait_and_move(driver);
        if (driver->stage != STAGE_NONE) {
            attempt_tend(driver);
        }
        if (driver->stage == STAGE_NONE) {
            signals_take(driver); /* one that came while a line was written ends the call before its next attempt */
        }
        if (is_due(driver)) {
            step(driver, BECALM_EVENT_TIMER, NULL);
        }
    }
}

/* ---- the whole ---- */

static void key_draw(uint64_t *seed, char text[BECALM__KEY_TEXT])
{
    unsigned char random[BECALM__KEY_RANDOM];
    if (!entropy_fill_now(random, sizeof random)) { /* a machine that is being started: its clock has to do */
        const uint64_t drawn[] = {becalm_rand_next(seed), becalm_rand_next(seed)};
        _Static_assert(sizeof drawn == sizeof random, "two draws are one key");
        memcpy(random, drawn, sizeof random);
    }
    becalm__key_write(random, text);
}

static bool host_open(struct driver *driver)
{
    const struct exec_options *options = driver->options;
    driver->seed = entropy_seed();
    driver->change[VARIABLE_ATTEMPT].name = "BECALM_ATTEMPT";
    driver->change[VARIABLE_DEADLINE].name = "BECALM_DEADLINE_MS";
    /* A key in the environment comes from a becalm exec around this one. It must be the same for all attempts of that
     * call. */
    const char *key = getenv(KEY_NAME);
    if (key == NULL || key[0] == '\0') {
        driver->change[VARIABLE_KEY].name = KEY_NAME;
        key_draw(&driver->seed, driver->change[VARIABLE_KEY].value);
    }
    if (!signals_open(driver)) {
        return false;
    }
    if (options->no_input) {
        driver->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (driver->null < 0) {
            return false;
        }
    }
    process_adopt();
    terminal_open(&driver->terminal);
    input_open(&driver->input, options->no_input ? driver->null : STDIN_FILENO, options->input_max);
    output_open(&driver->output, options->show, options->patterns, options->output_max, driver->ends);
    return true;
}

static void host_close(struct driver *driver)
{
    const int fds[] = {driver->ends, driver->others, driver->null};
    input_close(&driver->input);
    output_close(&driver->output);
    terminal_close(&driver->terminal);
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    sigset_t after = driver->before;
    sigaddset(&after, SIGPIPE); /* a SIGPIPE from a pipe without a reader may be pending, and would kill us now */
    (void)sigprocmask(SIG_SETMASK, &after, NULL);
}

static int exit_code(const struct exec_report *report)
{
    if (report->output_error != 0 && report->signal == 0) {
        return CODE_OWN_FAILURE;
    }
    if (report->record.reason == BECALM_WHY_DEADLINE) {
        return CODE_TIMED_OUT;
    }
    if (report->signal != 0 && report->between) {
        return CODE_SIGNAL + report->signal;
    }
    if (report->last.code < 0) {
        return CODE_OWN_FAILURE;
    }
    return report->last.by_output && report->signal == 0 ? 1 : report->last.code;
}

int exec_run(const struct exec_options *options, struct exec_report *report)
{
    struct driver driver = {
        .options = options,
        .report = report,
        .policy = options->policy,
        .ends = -1,
        .others = -1,
        .null = -1,
        .terminal = {.fd = -1},
        .input = {.pipe = -1},
        .output = {.stream = {{.pipe = -1}, {.pipe = -1}}},
    };
    struct becalm_request request = {.deadline_at = options->deadline_at, .idempotent = true, .alone = true};
    memset(report, 0, sizeof *report);
    report->last.code = -1;
    if (!host_open(&driver)) {
        int error = errno;
        host_close(&driver);
        errno = error;
        return BECALM_EIO;
    }
    becalm_call_init(&driver.call, &driver.policy, &options->target, &request);
    run(&driver);
    (void)output_settle(&driver.output, true, report->signal == 0 ? -1 : (int)(LINGER / BECALM_MS));
    signals_take(&driver); /* one that came while the last bytes were written counts too */
    report->record = driver.call.record;
    report->output_error = driver.output.error;
    report->code = exit_code(report);
    host_close(&driver);
    return 0;
}
