/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include <becalm/run.h>

#include "cell.h"
#include "entropy.h"
#include "lines.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct becalm_guard {
    struct becalm_policy policy;
    struct becalm_target target;
    struct becalm_guard_options options;
    struct lines lines;
    bool has_lines;
    struct line_parking parking;
    _Atomic(uint64_t) draws;
    uint64_t seed;
    void *memory;
};

/* By which a thread that waits is woken. */
struct bell {
    pthread_mutex_t mutex;
    pthread_cond_t rings;
};

struct becalm_cancel {
    struct bell bell;
    bool cancelled;
};

/* A call of becalm_run_with(): the thread that may have to wait in a line, for as long as it does. */
struct runner {
    struct line_owner owner;
    struct becalm_guard *guard;
    struct becalm_cancel *cancel; /* NULL: can't be cancelled */
    struct bell own;              /* without a cancel; made when it is first needed */
    bool has_own;
    bool lined_up; /* once */
    bool served;   /* with the bell's mutex */
    struct becalm_call call;
    struct becalm_action action;
};

becalm_ns becalm_run_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* can't fail for this clock */
    return (becalm_ns)now.tv_sec * BECALM_S + (becalm_ns)now.tv_nsec;
}

static struct timespec timespec_of(becalm_ns at)
{
    return (struct timespec){.tv_sec = (time_t)(at / BECALM_S), .tv_nsec = (long)(at % BECALM_S)};
}

struct becalm_guard *becalm_guard_new(const struct becalm_guard_options *options, struct becalm_complaint *complaint)
{
    static const struct becalm_guard_options plain = {.policy = NULL};
    struct becalm_complaint wrong = {NULL, NULL};
    struct becalm_guard *guard = calloc(1, sizeof *guard);
    if (guard == NULL) {
        goto fail;
    }
    guard->options = options == NULL ? plain : *options;
    if (guard->options.policy == NULL) {
        becalm_policy_defaults(&guard->policy);
    } else {
        guard->policy = *guard->options.policy;
    }
    becalm_gate_for_caller(&guard->policy.gate);
    if (becalm_policy_check(&guard->policy, &wrong) != 0) {
        goto fail;
    }
    if (guard->policy.hedge.enabled) {
        wrong = (struct becalm_complaint){"hedge", "enabled must be false: a blocking function can't be hedged"};
        goto fail;
    }
    if (guard->policy.lease.enabled) {
        wrong = (struct becalm_complaint){"lease", "enabled must be false: becalm_run() asks no store"};
        goto fail;
    }
    if (guard->options.hosts > BECALM_HOSTS_MAX) {
        wrong = (struct becalm_complaint){"", "hosts must be at most 4,096"};
        goto fail;
    }
    size_t bytes = becalm_target_bytes(&guard->policy, guard->options.hosts, CELL_COUNT);
    guard->memory = aligned_alloc(64, bytes);
    if (guard->memory == NULL) {
        goto fail;
    }
    int rc = becalm_target_init(&guard->target, guard->memory, &guard->policy, guard->options.hosts, CELL_COUNT);
    BECALM_ASSERT(rc == 0);
    guard->has_lines = lines_init(&guard->lines, &guard->target);
    if (!guard->has_lines) {
        goto fail;
    }
    lines_parking_add(&guard->lines, &guard->parking, guard->target.restart);
    guard->seed = entropy_seed();
    return guard;
fail:
    if (complaint != NULL) {
        *complaint = wrong;
    }
    becalm_guard_free(guard);
    return NULL;
}

void becalm_guard_free(struct becalm_guard *guard)
{
    if (guard != NULL) {
        if (guard->has_lines) {
            lines_free(&guard->lines);
        }
        free(guard->memory);
        free(guard);
    }
}

const struct becalm_target *becalm_guard_target(const struct becalm_guard *guard)
{
    return &guard->target;
}

static bool bell_make(struct bell *bell)
{
    pthread_condattr_t monotonic;
    if (pthread_condattr_init(&monotonic) != 0) {
        return false;
    }
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    int rc = pthread_cond_init(&bell->rings, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    if (rc == 0 && pthread_mutex_init(&bell->mutex, NULL) != 0) {
        (void)pthread_cond_destroy(&bell->rings);
        rc = -1;
    }
    return rc == 0;
}

static void bell_break(struct bell *bell)
{
    (void)pthread_cond_destroy(&bell->rings);
    (void)pthread_mutex_destroy(&bell->mutex);
}

static void bell_ring(struct bell *bell, bool *flag)
{
    (void)pthread_mutex_lock(&bell->mutex);
    *flag = true;
    (void)pthread_cond_broadcast(&bell->rings);
    (void)pthread_mutex_unlock(&bell->mutex);
}

struct becalm_cancel *becalm_cancel_new(void)
{
    struct becalm_cancel *cancel = calloc(1, sizeof *cancel);
    if (cancel != NULL && !bell_make(&cancel->bell)) {
        free(cancel);
        return NULL;
    }
    return cancel;
}

void becalm_cancel(struct becalm_cancel *cancel)
{
    bell_ring(&cancel->bell, &cancel->cancelled);
}

void becalm_cancel_free(struct becalm_cancel *cancel)
{
    if (cancel != NULL) {
        bell_break(&cancel->bell);
        free(cancel);
    }
}

static struct becalm_moment moment(struct becalm_guard *guard)
{
    uint64_t draw = atomic_fetch_add_explicit(&guard->draws, 1, memory_order_relaxed); /* relaxed: any order will do */
    uint64_t state = guard->seed + draw * UINT64_C(0x9e3779b97f4a7c15);
    state ^= (uint64_t)getpid() << 32; /* a child after fork() must not draw the same numbers as its parent */
    return (struct becalm_moment){
        .now = becalm_run_now(),
        .random = becalm_rand_next(&state),
        .cell = cell_here(),
    };
}

/* How a wait ends. */
enum woken { WOKEN_BY_TIME, WOKEN_BY_LINE, WOKEN_BY_CANCEL };

/* Waits until `at`, or for the bell that a call or a cancel rings. Waking up early does no harm, the engine looks
 * at the time itself. */
static enum woken bell_wait(struct runner *runner, struct bell *bell, becalm_ns at)
{
    struct timespec until = timespec_of(at);
    enum woken woken = WOKEN_BY_TIME;
    (void)pthread_mutex_lock(&bell->mutex);
    for (int rc = 0; rc == 0 && woken == WOKEN_BY_TIME;) {
        if (runner->cancel != NULL && runner->cancel->cancelled) {
            woken = WOKEN_BY_CANCEL;
        } else if (runner->served) {
            runner->served = false;
            woken = WOKEN_BY_LINE;
        } else {
            rc = pthread_cond_timedwait(&bell->rings, &bell->mutex, &until);
        }
    }
    (void)pthread_mutex_unlock(&bell->mutex);
    return woken;
}

static bool is_cancelled(struct runner *runner)
{
    if (runner->cancel == NULL) {
        return false;
    }
    (void)pthread_mutex_lock(&runner->cancel->bell.mutex);
    bool cancelled = runner->cancel->cancelled;
    (void)pthread_mutex_unlock(&runner->cancel->bell.mutex);
    return cancelled;
}

static struct bell *bell_of(struct runner *runner)
{
    return runner->cancel != NULL ? &runner->cancel->bell : &runner->own;
}

/* Another thread has called this one. */
static void runner_wake(struct line_owner *owner, const void *from)
{
    struct runner *runner = (struct runner *)(void *)owner; /* its first member */
    (void)from;
    bell_ring(bell_of(runner), &runner->served);
}

static enum woken sleep_until(struct runner *runner, becalm_ns at)
{
    struct timespec until = timespec_of(at);
    if (runner->cancel != NULL) {
        return bell_wait(runner, &runner->cancel->bell, at);
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
    return WOKEN_BY_TIME;
}

/* Makes one step, and calls the callbacks for it. */
static void step_once(struct runner *runner, struct becalm_event *event)
{
    struct becalm_guard *guard = runner->guard;
    const struct becalm_guard_options *options = &guard->options;
    const struct becalm_action *action = &runner->action;
    event->at = moment(guard);
    lines_step(&guard->lines, &runner->call, event, &runner->action);
    if (options->on_breaker != NULL && becalm_action_moves_breaker(action)) {
        options->on_breaker(action->breaker_from, action->breaker_to, options->data);
    }
    if (options->on_retry != NULL && becalm_action_delays_retry(action)) {
        struct becalm_retry retry = {
            .retry = runner->call.retries,
            .of = guard->policy.max_retries,
            .outcome = event->outcome,
            .wait = action->wait,
        };
        options->on_retry(&retry, options->data);
    }
    if ((action->flags & (BECALM_DO_SERVE | BECALM_DO_PARK)) != 0) {
        lines_serve(&guard->lines, &runner->call, action->flags, &event->at, NULL);
    }
}

/* Can this thread be woken? */
static bool has_bell(struct runner *runner)
{
    if (runner->cancel == NULL && !runner->has_own) {
        runner->has_own = bell_make(&runner->own);
    }
    return runner->cancel != NULL || runner->has_own;
}

/* The same, and into a line if it must. */
static void step(struct runner *runner, struct becalm_event *event)
{
    step_once(runner, event);
    while ((runner->action.flags & BECALM_DO_LINE_UP) != 0) {
        runner->lined_up = has_bell(runner);
        struct becalm_event next = {.kind = runner->lined_up ? BECALM_EVENT_LINE_UP : BECALM_EVENT_CANCEL};
        step_once(runner, &next);
    }
}

/* The call waits in a line. Returns the event that it gets next. */
static enum becalm_event_kind wait_in_line(struct runner *runner)
{
    struct lines *lines = &runner->guard->lines;
    bool parked = runner->call.phase == BECALM_PHASE_PARKED;
    becalm_ns look_at = parked ? lines_parking_wake_at(lines, &runner->call, becalm_run_now()) : BECALM_NEVER;
    enum woken woken = bell_wait(runner, bell_of(runner), becalm_ns_min(look_at, runner->action.wake_at));
    if (woken == WOKEN_BY_CANCEL) {
        return BECALM_EVENT_CANCEL;
    }
    if (woken == WOKEN_BY_LINE) {
        return BECALM_EVENT_SERVE;
    }
    struct becalm_moment at = moment(runner->guard);
    if (parked && at.now >= look_at) {
        lines_serve(lines, &runner->call, BECALM_DO_PARK, &at, NULL);
    }
    return BECALM_EVENT_TIMER;
}

/* Makes the attempt that the last step has decided on. */
static void try_once(struct runner *runner, struct becalm_event *event, becalm_try_fn *attempt, void *data)
{
    const struct becalm_action *action = &runner->action;
    struct becalm_try now = {
        .attempt = action->attempt,
        .host = action->host,
        .timeout = becalm_ns_max(BECALM_MS, becalm_ns_left(becalm_run_now(), action->timeout_at)),
    };
    event->kind = BECALM_EVENT_DONE;
    event->slot = action->slot;
    attempt(&now, &event->outcome, data);
    bool reached = event->outcome.kind != BECALM_OUTCOME_REFUSED && event->outcome.kind != BECALM_OUTCOME_CANCELLED;
    if (reached && becalm_call_accepted(&runner->call, action->slot, becalm_run_now())) {
        struct becalm_moment at = moment(runner->guard);
        lines_serve(&runner->guard->lines, &runner->call, BECALM_DO_PARK, &at, NULL);
    }
}

enum becalm_reason becalm_run_with(struct becalm_guard *guard, const struct becalm_run_options *options,
                                   becalm_try_fn *attempt, void *data)
{
    struct runner runner = {.owner = {runner_wake}, .guard = guard, .cancel = options->cancel};
    struct becalm_request request = options->request;
    struct becalm_event event = {.kind = BECALM_EVENT_BEGIN};
    request.queue = &guard->lines.queue;
    request.parking = &guard->parking.parking;
    request.lines_shared = true;
    request.alone = true; /* this thread waits for the function */
    request.owner = &runner.owner;
    becalm_call_init(&runner.call, &guard->policy, &guard->target, &request);
    if (is_cancelled(&runner)) {
        event.kind = BECALM_EVENT_CANCEL;
    }
    step(&runner, &event);
    while (!becalm_call_ended(&runner.call)) {
        event = (struct becalm_event){.kind = BECALM_EVENT_TIMER};
        if (is_cancelled(&runner)) {
            event.kind = BECALM_EVENT_CANCEL;
        } else if ((runner.action.flags & BECALM_DO_SEND) != 0) {
            try_once(&runner, &event, attempt, data);
        } else if (becalm_call_in_line(&runner.call)) {
            event.kind = wait_in_line(&runner);
        } else if (sleep_until(&runner, runner.action.wake_at) == WOKEN_BY_CANCEL) {
            event.kind = BECALM_EVENT_CANCEL;
        }
        step(&runner, &event);
    }
    if (runner.lined_up) {
        lines_pass(&guard->lines);
    }
    if (runner.has_own) {
        bell_break(&runner.own);
    }
    if (options->record != NULL) {
        *options->record = runner.call.record;
    }
    return runner.call.record.reason;
}

enum becalm_reason becalm_run(struct becalm_guard *guard, becalm_try_fn *attempt, void *data)
{
    static const struct becalm_run_options plain = {.request = {.idempotent = true}};
    return becalm_run_with(guard, &plain, attempt, data);
}
