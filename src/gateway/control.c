/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "control.h"

#include "changes.h"
#include "cpu.h"
#include "passing_names.h"
#include "resolve.h"

#include "admin/history.h"
#include "container.h"

#include <becalm/run.h>

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SECOND BECALM_S
#define LEAVE  (2 * BECALM_S) /* time for websocket peers to exchange close frames */

/* One name that a snapshot asked for. */
struct name {
    struct name *next;
    struct control *control;
    struct resolve *resolve;
    char *text;
    uint16_t port;
    uint32_t count;
    union address_socket *addresses;
    bool used;         /* by the snapshot that is being made */
    bool answered;     /* in any way */
    uint64_t failures; /* in a row: the first is logged, and the first success after them */
};

struct control {
    struct loop loop; /* first */
    struct reload_place place;
    struct log_source *log;
    pthread_t thread;
    bool running;
    BECALM_ATOMIC(uint32_t) orders;
    struct resolver *resolver;
    struct source resolver_source;
    struct timer resolver_timer;
    struct name *names;
    struct passing_names *passing;
    bool readdress; /* some name has new addresses */
    struct timer second;
    struct cpu cpu;
    struct history *history;
    struct changes *changes;
    struct timer drain_timer;
    becalm_ns drain_end;
    becalm_ns leave_at;      /* when websocket peers get a close frame */
    bool closed;             /* the workers have been ordered to accept no more connections */
    int end_fd;              /* becomes readable at the end */
    struct timer in_force;   /* runs while a reload is not over yet */
    uint64_t reload_ordered; /* the orders that it answers */
    int reload_fd;           /* becomes readable when it is over */
};

/* Names. */

static void note(struct control *control, enum becalm_log_level level, const char *message, const char *key,
                 const char *value)
{
    struct log_pair pair = {.key = key, .type = LOG_TEXT, .text = {value, value == NULL ? 0 : strlen(value)}};
    log_line(control->log, level, control->loop.wall, message, &pair, key == NULL ? 0 : 1);
}

static void resolved(const struct resolve_result *result, void *data)
{
    struct name *name = data;
    struct control *control = name->control;
    name->answered = true;
    if (result->why != NULL && name->failures++ == 0) {
        const struct log_pair pairs[] = {
            {"name", LOG_TEXT, {name->text, strlen(name->text)}, 0},
            {"why", LOG_TEXT, {result->why, strlen(result->why)}, 0},
        };
        log_line(control->log, BECALM_LOG_WARN, control->loop.wall, "name not resolved", pairs, 2);
    } else if (result->why == NULL && name->failures > 0) {
        const struct log_pair pairs[] = {
            {"name", LOG_TEXT, {name->text, strlen(name->text)}, 0},
            {"failures", LOG_NUMBER, {0}, name->failures},
        };
        log_line(control->log, BECALM_LOG_INFO, control->loop.wall, "name resolved again", pairs, 2);
        name->failures = 0;
    }
    if (!result->changed) {
        return;
    }
    union address_socket *copy = malloc((result->count + 1) * sizeof *copy);
    if (copy == NULL) {
        return;
    }
    memcpy(copy, result->addresses, result->count * sizeof *copy);
    free(name->addresses);
    name->addresses = copy;
    name->count = result->count;
    control->readdress = true;
}

static void resolver_go_on(struct control *control)
{
    resolver_run(control->resolver, control->loop.now);
    wheel_arm(&control->loop.wheel, &control->resolver_timer, resolver_wake_at(control->resolver));
    if (control->readdress) {
        control->readdress = false;
        reload_readdress(&control->place, control->loop.now);
    }
}

static void resolver_ready(struct source *source, uint32_t events)
{
    (void)events;
    resolver_go_on(CONTAINER_OF(source, struct control, resolver_source));
}

static void resolver_timer_fires(struct timer *timer)
{
    resolver_go_on(CONTAINER_OF(timer, struct control, resolver_timer));
}

static struct name *name_start(struct control *control, const char *text, uint16_t port)
{
    struct name *name = calloc(1, sizeof *name);
    if (name == NULL) {
        return NULL;
    }
    struct resolve_request request = {.name = text, .port = port, .each = resolved, .data = name};
    name->control = control;
    name->text = strdup(text);
    name->port = port;
    name->resolve = name->text == NULL ? NULL : resolve_start(control->resolver, &request, control->loop.now);
    if (name->resolve == NULL) {
        free(name->text);
        free(name);
        return NULL;
    }
    name->next = control->names;
    control->names = name;
    wheel_arm(&control->loop.wheel, &control->resolver_timer, control->loop.now);
    return name;
}

static uint32_t name_find(void *self, const char *text, uint16_t port, const union address_socket **list)
{
    struct control *control = self;
    struct name *name = control->names;
    while (name != NULL && (name->port != port || strcmp(name->text, text) != 0)) {
        name = name->next;
    }
    if (name == NULL) {
        name = name_start(control, text, port);
    }
    if (name == NULL) {
        return 0;
    }
    name->used = true;
    *list = name->addresses;
    return name->count;
}

static bool names_pend(const struct control *control)
{
    const struct name *name = control->names;
    while (name != NULL && (!name->used || name->answered)) {
        name = name->next;
    }
    return name != NULL;
}

#define NAMES_WITHIN (2 * BECALM_S) /* longer than name servers take that are well, and shorter than a start may */

/* Waits for names of which nothing was ever heard. Nothing else is done meanwhile: clients are served as before, or
 * wait to be accepted. */
static bool names_await(void *self, const struct becalm_settings *settings)
{
    struct control *control = self;
    for (uint32_t i = 0; i < settings->listener_count; i++) {
        if (settings->listeners[i].passes_unlisted) {
            resolver_prepare(control->resolver); /* clients bring names, when descriptors may be short */
        }
    }
    becalm_ns now = becalm_run_now();
    const becalm_ns until = becalm_ns_after(now, NAMES_WITHIN);
    while (names_pend(control) && now < until) {
        becalm_ns wait = becalm_ns_left(now, becalm_ns_min(until, resolver_wake_at(control->resolver)));
        struct pollfd ready = {.fd = resolver_fd(control->resolver), .events = POLLIN};
        (void)poll(&ready, 1, (int)(wait / BECALM_MS) + 1);
        now = becalm_run_now();
        resolver_run(control->resolver, now);
    }
    bool changed = control->readdress;
    control->readdress = false;
    wheel_arm(&control->loop.wheel, &control->resolver_timer, resolver_wake_at(control->resolver));
    return changed;
}

static void name_free(struct control *control, struct name *name)
{
    resolve_stop(control->resolver, name->resolve);
    free(name->addresses);
    free(name->text);
    free(name);
}

/* Stops resolving names that no snapshot uses any more. */
static void names_forget_unused(struct control *control)
{
    for (struct name **link = &control->names; *link != NULL;) {
        struct name *name = *link;
        if (name->used) {
            link = &name->next;
        } else {
            *link = name->next;
            name_free(control, name);
        }
    }
}

/* Reload. */

/* A reload is over when no worker begins calls with the policy before. That takes until each worker's next wake-up. */
static void reload_look(struct timer *timer)
{
    struct control *control = CONTAINER_OF(timer, struct control, in_force);
    uint64_t one = 1;
    if (!reload_in_force(control->place.gateway)) {
        wheel_arm(&control->loop.wheel, timer, becalm_ns_after(control->loop.now, BECALM_MS));
        return;
    }
    reload_over(control->place.gateway, control->reload_ordered);
    ssize_t written = write(control->reload_fd, &one, sizeof one);
    (void)written; /* full: it is readable */
}

int control_reload(struct control *control, struct becalm_diags *diags)
{
    control->reload_ordered = atomic_load_explicit(&control->place.gateway->reload_orders, memory_order_relaxed);
    for (struct name *name = control->names; name != NULL; name = name->next) {
        name->used = false;
    }
    int rc = reload_now(&control->place, diags, control->loop.now, control->loop.wall);
    char line[1024];
    for (uint32_t i = 0; i < diags->count; i++) {
        becalm_diag_write(&diags->diag[i], line, sizeof line);
        note(control, diags->diag[i].severity == BECALM_ERROR ? BECALM_LOG_ERROR : BECALM_LOG_WARN, "policy", "at",
             line);
    }
    if (rc == 0) {
        names_forget_unused(control);
        note(control, BECALM_LOG_INFO, "policy reloaded", "file", control->place.gateway->path);
    } else {
        note(control, BECALM_LOG_ERROR, "policy not reloaded: the one before stays", "file",
             control->place.gateway->path);
    }
    reload_look(&control->in_force);
    return rc;
}

static void reload(struct control *control)
{
    struct becalm_diags *diags = calloc(1, sizeof *diags);
    if (diags != NULL) {
        control_reload(control, diags);
    }
    free(diags);
}

/* Draining. */

static uint32_t in_progress(const struct gateway *gateway)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < gateway->worker_count; i++) {
        count += atomic_load_explicit(&gateway->worker[i].exchange_count, memory_order_relaxed);
    }
    return count;
}

static void stop(struct control *control)
{
    uint64_t one = 1;
    gateway_order_all(control->place.gateway, WORKER_STOP);
    control->loop.stop = true;
    ssize_t written = write(control->end_fd, &one, sizeof one);
    (void)written;
}

static void drain_go_on(struct timer *timer)
{
    struct control *control = CONTAINER_OF(timer, struct control, drain_timer);
    struct gateway *gateway = control->place.gateway;
    if (!control->closed) {
        control->closed = true;
        gateway_order_all(gateway, WORKER_CLOSE);
    } else if (control->loop.now >= control->drain_end ||
               (in_progress(gateway) == 0 && atomic_load_explicit(&gateway->connections, memory_order_relaxed) == 0)) {
        note(control, BECALM_LOG_INFO, "stopped", NULL, NULL);
        stop(control);
        return;
    }
    if (control->loop.now >= control->leave_at) {
        control->leave_at = BECALM_NEVER;
        gateway_order_all(gateway, WORKER_LEAVE);
    }
    wheel_arm(&control->loop.wheel, timer, becalm_ns_after(control->loop.now, 20 * BECALM_MS));
}

static void drain(struct control *control)
{
    struct gateway *gateway = control->place.gateway;
    const struct becalm_settings *settings = gateway->snapshot->settings;
    if (atomic_exchange_explicit(&gateway->draining, true, memory_order_relaxed)) {
        stop(control); /* the second order to stop: stop at once */
        return;
    }
    note(control, BECALM_LOG_INFO, "draining", NULL, NULL);
    gateway_order_all(gateway, WORKER_DRAIN);
    control->drain_end =
        becalm_ns_after(control->loop.now, becalm_ns_after(settings->drain_delay, settings->drain_limit));
    becalm_ns before = settings->drain_limit - becalm_ns_min(LEAVE, settings->drain_limit / 4);
    control->leave_at = becalm_ns_after(control->loop.now, becalm_ns_after(settings->drain_delay, before));
    wheel_arm(&control->loop.wheel, &control->drain_timer, becalm_ns_after(control->loop.now, settings->drain_delay));
}

/* Once a second. */
static void every_second(struct timer *timer)
{
    struct control *control = CONTAINER_OF(timer, struct control, second);
    struct snapshot *snapshot = control->place.gateway->snapshot;
    uint32_t share;
    if (cpu_share(&control->cpu, control->loop.now, &share)) {
        for (uint32_t i = 0; i < snapshot->target_count; i++) {
            becalm_gate_note_cpu(snapshot->target[i].state->target.gate, share);
        }
    }
    history_note(control->history, snapshot, control->loop.now, control->loop.wall);
    changes_note(control->changes, snapshot, control->log, control->loop.now, control->loop.wall);
    admin_faults_expire(control->place.admin);
    passing_names_sweep(control->passing, control->loop.now);
    admin_tell(control->place.admin);
    wheel_arm(&control->loop.wheel, timer, becalm_ns_after(control->loop.now, SECOND));
}

static void woken(struct loop *loop)
{
    struct control *control = CONTAINER_OF(loop, struct control, loop);
    uint32_t orders = atomic_exchange_explicit(&control->orders, 0, memory_order_acquire);
    if ((orders & CONTROL_NAMES) != 0) {
        passing_names_ask(control->passing, control->loop.now);
        wheel_arm(&control->loop.wheel, &control->resolver_timer, control->loop.now);
    }
    if ((orders & CONTROL_RELOAD) != 0) {
        reload(control);
    }
    if ((orders & CONTROL_DRAIN) != 0) {
        drain(control);
    }
    if ((orders & CONTROL_STOP) != 0) {
        stop(control);
    }
}

void control_order(struct control *control, unsigned orders)
{
    atomic_fetch_or_explicit(&control->orders, orders, memory_order_release);
    loop_wake(&control->loop);
}

/* Beginning and end. */

static void names_wanted(void *control)
{
    control_order(control, CONTROL_NAMES);
}

static void control_fleet(struct control *control, struct buffer *page)
{
    fleet_tell(control->place.fleet, page);
}

static uint32_t control_stores(struct control *control, struct metrics_redis *to, uint32_t size)
{
    return fleet_stores(control->place.fleet, to, size);
}

static bool control_health(struct control *control, const char *service, const union address_socket *host,
                           struct admin_health *told)
{
    return health_read(control->place.health, service, host, told);
}

static void close_if_open(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

struct control *control_make(struct gateway *gateway)
{
    struct control *control = calloc(1, sizeof *control);
    if (control == NULL) {
        return NULL;
    }
    control->place.gateway = gateway;
    control->place.names = (struct snapshot_names){.find = name_find, .self = control};
    control->place.names_await = names_await;
    control->log = log_source_of(gateway->log, gateway->worker_count);
    control->loop.epoll_fd = control->loop.wake.fd = -1;
    control->end_fd = eventfd(0, EFD_CLOEXEC);
    control->reload_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (control->end_fd < 0 || control->reload_fd < 0 || loop_init(&control->loop, woken) != 0) {
        close_if_open(control->end_fd);
        close_if_open(control->reload_fd);
        free(control);
        return NULL;
    }
    control->resolver = resolver_make(&(struct resolver_options){.seed = control->loop.random});
    control->history = history_make();
    control->changes = changes_make();
    control->place.admin = admin_make(&(struct admin_place){
        .gateway = gateway,
        .control = control,
        .reload = control_reload,
        .loop = &control->loop,
        .log = control->log,
        .history = control->history,
        .stores = control_stores,
        .fleet = control_fleet,
        .health = control_health,
        .name = gateway->path,
        .handed = &gateway->handed,
    });
    control->place.fleet = fleet_make(&(struct fleet_options){
        .loop = &control->loop, .log = control->log, .names = control->place.names, .id = gateway->id});
    control->place.health = health_make(&control->loop, control->log);
    control->passing = control->resolver == NULL ? NULL : passing_names_make(gateway, control->resolver);
    if (control->place.health == NULL || control->passing == NULL || control->resolver == NULL ||
        control->history == NULL || control->changes == NULL || control->place.admin == NULL ||
        control->place.fleet == NULL) {
        control_free(control);
        return NULL;
    }
    control->resolver_source = (struct source){.ready = resolver_ready, .fd = resolver_fd(control->resolver)};
    control->resolver_timer.fire = resolver_timer_fires;
    control->second.fire = every_second;
    control->drain_timer.fire = drain_go_on;
    control->in_force.fire = reload_look;
    cpu_init(&control->cpu, "");
    if (loop_watch_level(&control->loop, &control->resolver_source, false) != 0) {
        control_free(control);
        return NULL;
    }
    wheel_arm(&control->loop.wheel, &control->second, becalm_ns_after(control->loop.now, SECOND));
    passing_resolve_by(&gateway->passing, names_wanted, control);
    return control;
}

int control_end_fd(const struct control *control)
{
    return control->end_fd;
}

int control_reload_fd(const struct control *control)
{
    return control->reload_fd;
}

bool control_moves(struct control *control)
{
    return loop_moves(&control->loop);
}

const struct reload_place *control_place(const struct control *control)
{
    return &control->place;
}

static void *run(void *data)
{
    struct control *control = data;
    pthread_setname_np(pthread_self(), "becalm-control");
    loop_run(&control->loop);
    return NULL;
}

int control_start(struct control *control)
{
    control->running = pthread_create(&control->thread, NULL, run, control) == 0;
    return control->running ? 0 : BECALM_EIO;
}

void control_wait(struct control *control)
{
    if (control->running) {
        pthread_join(control->thread, NULL);
        control->running = false;
    }
}

void control_free(struct control *control)
{
    if (control == NULL) {
        return;
    }
    if (control->running) {
        control_order(control, CONTROL_STOP);
        control_wait(control);
    }
    passing_resolve_by(&control->place.gateway->passing, NULL, NULL);
    passing_names_free(control->passing);
    health_free(control->place.health);
    fleet_free(control->place.fleet);
    admin_free(control->place.admin);
    history_free(control->history);
    changes_free(control->changes);
    while (control->names != NULL) {
        struct name *name = control->names;
        control->names = name->next;
        name_free(control, name);
    }
    resolver_free(control->resolver);
    control->loop.stop = true;
    loop_run(&control->loop); /* frees the buried sources */
    loop_close(&control->loop);
    close(control->end_fd);
    close(control->reload_fd);
    free(control);
}
