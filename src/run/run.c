/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include <becalm/run.h>

#include "cell.h"
#include "entropy.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct becalm_guard {
    struct becalm_policy policy;
    struct becalm_target target;
    struct becalm_guard_options options;
    _Atomic(uint64_t) draws;
    uint64_t seed;
    void *memory;
};

struct becalm_cancel {
    pthread_mutex_t mutex;
    pthread_cond_t wakes;
    bool cancelled;
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
    if (becalm_policy_check(&guard->policy, &wrong) != 0) {
        goto fail;
    }
    if (guard->policy.hedge.enabled) {
        wrong = (struct becalm_complaint){"hedge", "enabled must be false: a blocking function can't be hedged"};
        goto fail;
    }
    if (guard->policy.lease.enabled) {
        wrong = (struct becalm_complaint){"lease", "enabled must be false: nobody here asks the store"};
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
        free(guard->memory);
        free(guard);
    }
}

const struct becalm_target *becalm_guard_target(const struct becalm_guard *guard)
{
    return &guard->target;
}

struct becalm_cancel *becalm_cancel_new(void)
{
    struct becalm_cancel *cancel = calloc(1, sizeof *cancel);
    pthread_condattr_t monotonic;
    if (cancel == NULL || pthread_condattr_init(&monotonic) != 0) {
        goto fail;
    }
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    int rc = pthread_cond_init(&cancel->wakes, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    if (rc != 0 || pthread_mutex_init(&cancel->mutex, NULL) != 0) {
        goto fail;
    }
    return cancel;
fail:
    free(cancel);
    return NULL;
}

void becalm_cancel(struct becalm_cancel *cancel)
{
    (void)pthread_mutex_lock(&cancel->mutex);
    cancel->cancelled = true;
    (void)pthread_cond_broadcast(&cancel->wakes);
    (void)pthread_mutex_unlock(&cancel->mutex);
}

void becalm_cancel_free(struct becalm_cancel *cancel)
{
    if (cancel != NULL) {
        (void)pthread_cond_destroy(&cancel->wakes);
        (void)pthread_mutex_destroy(&cancel->mutex);
        free(cancel);
    }
}

/* Sleeps until `at`, or until cancelled: then true. Waking up early does no harm, the engine looks at the time itself.
 */
static bool sleep_until(struct becalm_cancel *cancel, becalm_ns at)
{
    struct timespec until = timespec_of(at);
    if (cancel == NULL) {
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
        }
        return false;
    }
    (void)pthread_mutex_lock(&cancel->mutex);
    int rc = 0;
    while (!cancel->cancelled && rc == 0) {
        rc = pthread_cond_timedwait(&cancel->wakes, &cancel->mutex, &until);
    }
    bool cancelled = cancel->cancelled;
    (void)pthread_mutex_unlock(&cancel->mutex);
    return cancelled;
}

static bool is_cancelled(struct becalm_cancel *cancel)
{
    return cancel != NULL && sleep_until(cancel, 0);
}

static struct becalm_moment moment(struct becalm_guard *guard)
{
    uint64_t draw = atomic_fetch_add_explicit(&guard->draws, 1, memory_order_relaxed); /* relaxed: any order will do */
    uint64_t state = guard->seed + draw * UINT64_C(0x9e3779b97f4a7c15);
    state ^= (uint64_t)getpid() << 32; /* the children of a fork must not draw what their parent draws */
    return (struct becalm_moment){
        .now = becalm_run_now(),
        .random = becalm_rand_next(&state),
        .cell = cell_here(),
    };
}

/* One step, and what the callbacks want to know of it. */
static void step(struct becalm_guard *guard, struct becalm_call *call, struct becalm_event *event,
                 struct becalm_action *action)
{
    const struct becalm_guard_options *options = &guard->options;
    event->at = moment(guard);
    becalm_call_step(call, event, action);
    if (options->on_breaker != NULL && action->breaker_from != action->breaker_to) {
        options->on_breaker(action->breaker_from, action->breaker_to, options->data);
    }
    if (options->on_retry != NULL && (action->why == BECALM_WHY_BACKOFF || action->why == BECALM_WHY_HINT)) {
        struct becalm_retry retry = {
            .retry = call->retries,
            .of = guard->policy.max_retries,
            .outcome = event->outcome,
            .wait = action->wait,
        };
        options->on_retry(&retry, options->data);
    }
}

enum becalm_reason becalm_run_with(struct becalm_guard *guard, const struct becalm_run_options *options,
                                   becalm_try_fn *attempt, void *data)
{
    struct becalm_call call;
    struct becalm_request request = options->request;
    struct becalm_event event = {.kind = BECALM_EVENT_BEGIN};
    struct becalm_action action;
    request.queue = NULL; /* a thread that waits in a queue would have to be woken by another: refuse at once instead */
    becalm_call_init(&call, &guard->policy, &guard->target, &request);
    if (is_cancelled(options->cancel)) {
        event.kind = BECALM_EVENT_CANCEL;
    }
    step(guard, &call, &event, &action);
    while (!becalm_call_ended(&call)) {
        event = (struct becalm_event){.kind = BECALM_EVENT_TIMER};
        if (is_cancelled(options->cancel)) {
            event.kind = BECALM_EVENT_CANCEL;
        } else if ((action.flags & BECALM_DO_SEND) != 0) {
            struct becalm_try now = {
                .attempt = action.attempt,
                .host = action.host,
                .timeout = becalm_ns_max(BECALM_MS, becalm_ns_left(becalm_run_now(), action.timeout_at)),
            };
            event.kind = BECALM_EVENT_DONE;
            event.slot = action.slot;
            attempt(&now, &event.outcome, data);
        } else if (sleep_until(options->cancel, action.wake_at)) {
            event.kind = BECALM_EVENT_CANCEL;
        }
        step(guard, &call, &event, &action);
    }
    if (options->record != NULL) {
        *options->record = call.record;
    }
    return call.record.reason;
}

enum becalm_reason becalm_run(struct becalm_guard *guard, becalm_try_fn *attempt, void *data)
{
    static const struct becalm_run_options plain = {.request = {.idempotent = true}};
    return becalm_run_with(guard, &plain, attempt, data);
}
