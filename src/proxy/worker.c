/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "worker.h"

#include "buffered.h"
#include "client.h"
#include "exchange.h"
#include "gateway_shared.h"
#include "greeting.h"
#include "host/upstream.h"
#include "key_store.h"
#include "listener.h"
#include "tunnel.h"

#include "container.h"
#include "message/date.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Views. */

static void view_free(struct view *view)
{
    if (view == NULL) {
        return;
    }
    const struct snapshot *snapshot = view->snapshot;
    for (uint32_t i = 0; view->host != NULL && view->first_host != NULL && i < snapshot->service_count; i++) {
        for (uint32_t h = 0; h < snapshot->service[i].host_count; h++) {
            upstream_host_drop(view->host[view->first_host[i] + h]);
        }
    }
    snapshot_drop(view->snapshot);
    free(view->host);
    free(view->first_host);
    free(view->parking);
    free(view);
}

/* The pool's bound is the gateway's; each worker has its share. */
static uint32_t share(uint32_t whole, uint32_t workers)
{
    return (whole + workers - 1) / workers;
}

static struct upstream_pool pool_of(const struct worker *worker, const struct becalm_settings *settings)
{
    uint32_t workers = worker->gateway->worker_count;
    uint32_t max = settings->pool_max_per_host;
    return (struct upstream_pool){
        .max = max == 0 ? UINT32_MAX : share(max, workers),
        .max_idle = share(max == 0 ? UPSTREAM_USUAL : max, workers),
        .idle = settings->pool_idle,
    };
}

/* The name that the certificate of a host must have: what `serverName` says, else the host's own, without its port; a
 * Unix socket has none, and goes by the service's. */
static const char *server_name(const struct becalm_service *service, const char *host, char name[256])
{
    const char *end = strrchr(host, ':');
    bool bracket = host[0] == '[';
    if (service->tls.server_name != NULL || end == NULL || strncmp(host, "unix:/", 6) == 0) {
        return service->tls.server_name != NULL ? service->tls.server_name : service->name;
    }
    snprintf(name, 256, "%.*s", (int)(end - host) - 2 * bracket, host + bracket);
    return name;
}

static enum upstream_protocol protocol_of(const struct becalm_service *service)
{
    switch (service->protocol) {
    case BECALM_PROTOCOL_AUTO:
        return UPSTREAM_AUTO;
    case BECALM_PROTOCOL_H1:
        return UPSTREAM_H1;
    case BECALM_PROTOCOL_H2:
        return UPSTREAM_H2;
    }
    return UPSTREAM_AUTO;
}

static struct upstream_host *host_use(struct worker *worker, const struct snapshot *snapshot, uint32_t service,
                                      uint32_t host, const struct upstream_pool *pool)
{
    char name[256];
    const struct snapshot_host *at = &snapshot->service[service].host[host];
    struct upstream_place place = {
        .address = &at->address,
        .tls = snapshot->tls == NULL ? NULL : snapshot->tls->service[service],
        .name = server_name(snapshot->service[service].service, at->name, name),
        .protocol = protocol_of(snapshot->service[service].service),
    };
    return upstream_host_use(worker, &place, pool);
}

/* Takes over one use of the snapshot. NULL: no memory. */
static struct view *view_make(struct worker *worker, struct snapshot *snapshot)
{
    const struct upstream_pool pool = pool_of(worker, snapshot->settings);
    struct view *view = calloc(1, sizeof *view);
    if (view == NULL) {
        snapshot_drop(snapshot);
        return NULL;
    }
    uint32_t hosts = 0;
    for (uint32_t i = 0; i < snapshot->service_count; i++) {
        hosts += snapshot->service[i].host_count;
    }
    view->snapshot = snapshot;
    view->host = calloc(hosts + 1, sizeof(struct upstream_host *));
    view->first_host = calloc(snapshot->service_count + 1, sizeof *view->first_host);
    view->parking = calloc(snapshot->target_count + 1, sizeof *view->parking);
    if (view->host == NULL || view->first_host == NULL || view->parking == NULL) {
        view_free(view);
        return NULL;
    }
    hosts = 0;
    for (uint32_t i = 0; i < snapshot->service_count; i++) {
        const struct snapshot_service *service = &snapshot->service[i];
        view->first_host[i] = hosts;
        for (uint32_t h = 0; h < service->host_count; h++, hosts++) {
            if (service->host[h].known) {
                view->host[hosts] = host_use(worker, snapshot, i, h, &pool);
            }
        }
    }
    for (uint32_t i = 0; i < snapshot->target_count; i++) {
        becalm_parking_init(&view->parking[i], snapshot->target[i].state->target.restart);
    }
    return view;
}

void view_enter(struct view *view)
{
    view->calls++;
}

void view_leave(struct worker *worker, struct view *view)
{
    view->calls--;
    if (view->calls > 0 || view == worker->view) {
        return;
    }
    struct view **link = &worker->view;
    while (*link != view) {
        link = &(*link)->next;
    }
    *link = view->next;
    view_free(view);
}

/* Takes over one use of the snapshot. Without memory the old one goes on. */
static void view_change(struct worker *worker, struct snapshot *snapshot)
{
    if (worker->view != NULL && snapshot == worker->view->snapshot) {
        snapshot_drop(snapshot);
        return;
    }
    struct view *view = view_make(worker, snapshot);
    struct view *old = worker->view;
    if (view == NULL) {
        return;
    }
    view->next = old;
    worker->view = view;
    worker->head_room = (uint32_t)snapshot->settings->max_header_bytes;
    if (old != NULL && old->calls == 0) {
        view->next = old->next;
        view_free(old);
    }
}

/* Between two wake-ups: nobody is in the middle of anything. */
static void take_snapshot(struct worker *worker)
{
    struct snapshot *snapshot = gateway_snapshot(worker->gateway);
    uint64_t number = snapshot->number;
    view_change(worker, snapshot);
    if (worker->view != NULL) {
        key_store_follow(worker);
    }
    atomic_store_explicit(&worker->snapshot_number, number, memory_order_relaxed); /* guards no memory */
}

/* Gates. */

static void waiting_list(struct worker *worker, struct waiting *waiting)
{
    bool listed = waiting->link != NULL;
    bool busy = becalm_queue_busy(&waiting->queue);
    if (busy && !listed) {
        waiting->next = worker->waiting;
        waiting->link = &worker->waiting;
        if (waiting->next != NULL) {
            waiting->next->link = &waiting->next;
        }
        worker->waiting = waiting;
    } else if (!busy && listed) {
        *waiting->link = waiting->next;
        if (waiting->next != NULL) {
            waiting->next->link = waiting->link;
        }
        waiting->link = NULL;
    }
}

static void waiting_serve(struct worker *worker, struct waiting *waiting)
{
    struct becalm_moment at = worker_moment(worker);
    const struct becalm_policy *policy = &waiting->state->policy;
    const struct waiting *before = worker->serving;
    struct becalm_ticket *ticket;
    worker->serving = waiting; /* those that are served may free slots in turn: they are seen to here */
    while ((ticket = becalm_queue_next(&waiting->queue, &policy->gate, &policy->limit, &at)) != NULL) {
        exchange_serve(ticket->owner);
    }
    worker->serving = before;
    waiting_list(worker, waiting);
    gateway_wake(worker->gateway, becalm_queue_others(&waiting->queue));
}
void worker_serve(struct worker *worker, struct state *state)
{
    struct waiting *waiting = &state->waiting[worker->number];
    if (worker->serving != waiting) {
        waiting_serve(worker, waiting);
    }
}

/* Another worker left a slot that one of ours may wait for. What is served here may change the list in any way. */
static void serve_all(struct worker *worker)
{
    struct waiting *waiting = worker->waiting;
    worker->looks++;
    while (waiting != NULL) {
        if (waiting->looked == worker->looks) {
            waiting = waiting->next;
            continue;
        }
        struct state *state = waiting->state;
        state_use(state);
        waiting->looked = worker->looks;
        becalm_queue_call(&waiting->queue);
        waiting_serve(worker, waiting);
        waiting = waiting->link != NULL ? waiting->next : worker->waiting;
        state_drop(state);
    }
}

/* Lines: calls that wait for a host to accept connections. */

#define LINE_TURN 64u /* calls that are let go, then others have their turn */

void worker_serve_lines(struct worker *worker)
{
    loop_later(&worker->loop, &worker->lines);
}

/* Returns when to look again. */
static becalm_ns line_serve(struct worker *worker, struct view *view, uint32_t target, uint32_t *turn)
{
    struct becalm_parking *line = &view->parking[target];
    becalm_ns timeout = view->snapshot->target[target].state->policy.attempt_timeout;
    struct becalm_berth *berth;
    while (*turn > 0 && (berth = becalm_parking_next(line, timeout, worker->loop.now)) != NULL) {
        exchange_serve(berth->owner);
        *turn -= 1;
    }
    return becalm_parking_wake_at(line, timeout, worker->loop.now);
}

static void serve_lines(struct task *task)
{
    struct worker *worker = CONTAINER_OF(task, struct worker, lines);
    becalm_ns wake_at = BECALM_NEVER;
    uint32_t turn = LINE_TURN;
    for (struct view *view = worker->view, *next; view != NULL; view = next) {
        view_enter(view);
        for (uint32_t i = 0; i < view->snapshot->target_count; i++) {
            wake_at = becalm_ns_min(wake_at, line_serve(worker, view, i, &turn));
        }
        next = view->next;
        view_leave(worker, view);
    }
    if (turn == 0) {
        worker_serve_lines(worker);
    } else {
        wheel_arm(&worker->loop.wheel, &worker->lines_timer, wake_at);
    }
}

static void lines_due(struct timer *timer)
{
    worker_serve_lines(CONTAINER_OF(timer, struct worker, lines_timer));
}

/* Orders. */

void worker_order(struct worker *worker, unsigned orders)
{
    uint32_t before = atomic_fetch_or_explicit(&worker->orders, orders, memory_order_release);
    if ((before & orders) != orders) {
        loop_wake(&worker->loop);
    }
}

static void close_all(struct worker *worker)
{
    worker->closing = true;
    listeners_close(worker);
    greetings_close(worker);
    for (struct client *client = worker->clients, *next; client != NULL; client = next) {
        next = client->next;
        client_quiet(client);
    }
}

/* HTTP/1 is told with its answers; HTTP/2 by frames of their own. */
static void drain_all(struct worker *worker)
{
    for (struct client *client = worker->clients; client != NULL; client = client->next) {
        if (client->state == CLIENT_H2) {
            client_h2_drain(client);
        }
    }
}

static void leave_all(struct worker *worker)
{
    worker->leaving = true;
    for (struct client *client = worker->clients, *next; client != NULL; client = next) {
        next = client->next;
        if (client->state == CLIENT_TUNNEL) {
            tunnel_leave(client->tunnel);
        }
    }
}

static void woken(struct loop *loop)
{
    struct worker *worker = CONTAINER_OF(loop, struct worker, loop);
    uint32_t orders = atomic_exchange_explicit(&worker->orders, 0, memory_order_acquire);
    if ((orders & WORKER_SNAPSHOT) != 0) {
        take_snapshot(worker);
        listeners_update(worker);
        room_trim(worker);
    }
    if ((orders & WORKER_SERVE) != 0) {
        serve_all(worker);
    }
    if ((orders & WORKER_PARKED) != 0) {
        worker_serve_lines(worker);
    }
    if ((orders & WORKER_ROOM) != 0) {
        room_asked(worker);
    }
    if ((orders & WORKER_ROOMED) != 0) {
        room_answered(worker);
    }
    if ((orders & WORKER_SHRINK) != 0) {
        buffered_shrink(worker);
    }
    if ((orders & WORKER_DRAIN) != 0 && !worker->draining) {
        worker->draining = true;
        drain_all(worker);
    }
    worker->draining |= (orders & WORKER_CLOSE) != 0;
    if ((orders & WORKER_CLOSE) != 0) {
        close_all(worker);
    }
    if ((orders & (WORKER_LEAVE | WORKER_STOP)) != 0) {
        leave_all(worker);
    }
    if ((orders & WORKER_STOP) != 0) {
        loop->stop = true;
    }
}

struct becalm_moment worker_moment(struct worker *worker)
{
    return (struct becalm_moment){
        .now = worker->loop.now,
        .random = becalm_rand_next(&worker->loop.random),
        .cell = worker->number,
    };
}

struct becalm_text worker_date(struct worker *worker)
{
    int64_t second = (int64_t)(worker->loop.wall / BECALM_S);
    if (second != worker->date_second) {
        worker->date_second = second;
        date_write(worker->date, second);
    }
    return (struct becalm_text){worker->date, 29};
}

/* Beginning and end. */

int worker_init(struct worker *worker, struct gateway *gateway, uint32_t number, struct log_source *log)
{
    memset(worker, 0, sizeof *worker);
    worker->gateway = gateway;
    worker->number = number;
    worker->log = log;
    worker->lines.run = serve_lines;
    worker->lines_timer.fire = lines_due;
    worker->loop.epoll_fd = worker->loop.wake.fd = -1;
    crowd_init(&worker->crowd);
    worker->shrink.run = buffered_task;
    worker->sealed.counts = &gateway->tls;
    int rc = loop_init(&worker->loop, woken);
    if (rc != 0) {
        return rc;
    }
    worker->request_ids = becalm_rand_next(&worker->loop.random);
    worker->in = malloc(WORKER_IN);
    worker->out = malloc(WORKER_OUT);
    if (worker->in == NULL || worker->out == NULL || decisions_init(&worker->decisions) != 0) {
        return BECALM_ENOMEM;
    }
    take_snapshot(worker);
    return worker->view == NULL ? BECALM_ENOMEM : 0;
}

static void *run(void *data)
{
    struct worker *worker = data;
    char name[16];
    snprintf(name, sizeof name, "becalm-w%u", worker->number);
    pthread_setname_np(pthread_self(), name); /* for top -H and the like */
    loop_run(&worker->loop);
    return NULL;
}

int worker_start(struct worker *worker)
{
    worker->running = pthread_create(&worker->thread, NULL, run, worker) == 0;
    return worker->running ? 0 : BECALM_EIO;
}

void worker_join(struct worker *worker)
{
    if (worker->running) {
        pthread_join(worker->thread, NULL);
        worker->running = false;
    }
}

void worker_free(struct worker *worker)
{
    listeners_close(worker);
    greetings_close(worker);
    while (worker->clients != NULL) {
        client_close(worker->clients);
    }
    while (worker->orphans != NULL) {
        exchange_event(worker->orphans, BECALM_EVENT_CANCEL, 0, NULL);
    }
    if (worker->view != NULL) {
        key_store_free(worker);
    }
    crowd_free(&worker->crowd);
    while (worker->view != NULL) {
        struct view *next = worker->view->next;
        view_free(worker->view);
        worker->view = next;
    }
    while (worker->spare != NULL) {
        struct exchange *next = worker->spare->next;
        free(worker->spare);
        worker->spare = next;
    }
    worker->loop.stop = true;
    loop_run(&worker->loop); /* frees what is buried */
    loop_close(&worker->loop);
    decisions_free(&worker->decisions);
    free(worker->in);
    free(worker->out);
    wire_room_free(&worker->sealed);
    free(worker->h2);
}
