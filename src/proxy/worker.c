/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "worker.h"

#include "client.h"
#include "exchange.h"
#include "gateway.h"
#include "listener.h"

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
    free(view->queue);
    free(view);
}

/* The pool's bound is the gateway's; each worker has its share. */
static uint32_t share(uint32_t whole, uint32_t workers)
{
    return (whole + workers - 1) / workers;
}

/* Takes over one use of the snapshot. NULL: no memory. */
static struct view *view_make(struct worker *worker, struct snapshot *snapshot)
{
    const struct becalm_settings *settings = snapshot->settings;
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
    view->queue = calloc(snapshot->target_count + 1, sizeof *view->queue);
    if (view->host == NULL || view->first_host == NULL || view->queue == NULL) {
        view_free(view);
        return NULL;
    }
    hosts = 0;
    for (uint32_t i = 0; i < snapshot->service_count; i++) {
        const struct snapshot_service *service = &snapshot->service[i];
        view->first_host[i] = hosts;
        for (uint32_t h = 0; h < service->host_count; h++, hosts++) {
            if (service->host[h].known) {
                view->host[hosts] = upstream_host_use(worker, &service->host[h].address,
                                                      share(settings->pool_max_per_host, worker->gateway->worker_count),
                                                      settings->pool_idle);
            }
        }
    }
    for (uint32_t i = 0; i < snapshot->target_count; i++) {
        const struct becalm_target *target = &snapshot->target[i].state->target;
        becalm_queue_init(&view->queue[i], target->gate, target->limit);
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
    atomic_store_explicit(&worker->snapshot_number, number, memory_order_relaxed); /* guards no memory */
}

/* Gates. */

/* Endpoints share their service's gate, and so do a snapshot and the one before it: whoever of this view waits at it.
 * True: somebody still does. */
static bool view_serve(struct worker *worker, struct view *view, const struct becalm_gate *gate)
{
    struct becalm_moment at = worker_moment(worker);
    bool waits = false;
    for (uint32_t i = 0; i < view->snapshot->target_count; i++) {
        struct becalm_queue *queue = &view->queue[i];
        const struct becalm_policy *policy = &view->snapshot->target[i].state->policy;
        struct becalm_ticket *ticket;
        while (queue->gate == gate && (ticket = becalm_queue_next(queue, &policy->gate, &policy->limit, &at)) != NULL) {
            exchange_serve(ticket->owner);
        }
        waits |= queue->gate == gate && becalm_queue_busy(queue);
    }
    return waits;
}

void worker_serve(struct worker *worker, const struct becalm_gate *gate)
{
    bool waits = false;
    if (gate == NULL || worker->serving == gate || becalm_gate_waiting(gate) == 0) {
        return;
    }
    const struct becalm_gate *before = worker->serving;
    worker->serving = gate; /* those that are served may free slots in turn: they are seen to here */
    for (struct view *view = worker->view, *next; view != NULL; view = next) {
        view_enter(view);
        waits |= view_serve(worker, view, gate);
        next = view->next;
        view_leave(worker, view);
    }
    worker->serving = before;
    if (!waits && becalm_gate_waiting(gate) > 0) {
        gateway_wake_others(worker->gateway, worker->number);
    }
}

/* Another worker freed a slot that one of ours may wait for. */
static void serve_all(struct worker *worker)
{
    for (struct view *view = worker->view, *next; view != NULL; view = next) {
        view_enter(view);
        for (uint32_t i = 0; i < view->snapshot->target_count; i++) {
            if (becalm_queue_busy(&view->queue[i])) {
                view_serve(worker, view, view->queue[i].gate);
            }
        }
        next = view->next;
        view_leave(worker, view);
    }
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
    for (struct client *client = worker->clients, *next; client != NULL; client = next) {
        next = client->next;
        client_quiet(client);
    }
}

static void woken(struct loop *loop)
{
    struct worker *worker = (struct worker *)loop;
    uint32_t orders = atomic_exchange_explicit(&worker->orders, 0, memory_order_acquire);
    if ((orders & WORKER_SNAPSHOT) != 0) {
        take_snapshot(worker);
        listeners_update(worker);
        room_trim(worker);
    }
    if ((orders & WORKER_SERVE) != 0) {
        serve_all(worker);
    }
    if ((orders & WORKER_ROOM) != 0) {
        room_asked(worker);
    }
    if ((orders & WORKER_ROOMED) != 0) {
        room_answered(worker);
    }
    worker->draining |= (orders & (WORKER_DRAIN | WORKER_CLOSE)) != 0;
    if ((orders & WORKER_CLOSE) != 0) {
        close_all(worker);
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
        h1_date(worker->date, second);
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
    worker->loop.epoll_fd = worker->loop.wake.fd = -1;
    crowd_init(&worker->crowd);
    int rc = loop_init(&worker->loop, woken);
    if (rc != 0) {
        return rc;
    }
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
    while (worker->clients != NULL) {
        client_close(worker->clients);
    }
    while (worker->orphans != NULL) {
        exchange_event(worker->orphans, BECALM_EVENT_CANCEL, 0, NULL);
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
}
