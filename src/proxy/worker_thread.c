/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "worker_thread.h"

#include "client/client.h"
#include "exchange/exchange.h"
#include "gateway_shared.h"
#include "greeting.h"
#include "key_store.h"
#include "listener.h"
#include "room.h"
#include "shrink.h"
#include "view.h"
#include "waiting.h"

#include "container.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Between two wake-ups: no other function is on the stack. */
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

/* Orders. */

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
            client->taker->ops->leave(client->taker);
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
        waiting_serve_all(worker);
    }
    if ((orders & WORKER_PARKED) != 0) {
        waiting_serve_lines(worker);
    }
    if ((orders & WORKER_ROOM) != 0) {
        room_asked(worker);
    }
    if ((orders & WORKER_ROOMED) != 0) {
        room_answered(worker);
    }
    if ((orders & WORKER_SQUEEZE) != 0) {
        room_squeeze_here(worker);
    }
    if ((orders & WORKER_SHRINK) != 0) {
        shrink(worker);
    }
    if ((orders & WORKER_FAULTS) != 0) {
        fault_holds_end(worker);
    }
    if ((orders & WORKER_NAMES) != 0) {
        attempts_named(worker);
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

/* Beginning and end. */

int worker_init(struct worker *worker, struct gateway *gateway, uint32_t number, struct log_source *log)
{
    memset(worker, 0, sizeof *worker);
    worker->gateway = gateway;
    worker->faults = &gateway->faults;
    worker->number = number;
    worker->log = log;
    worker->spans = gateway->exporter == NULL ? NULL : exporter_source(gateway->exporter, number);
    worker->serve = exchange_serve;
    waiting_init(worker);
    worker->loop.epoll_fd = worker->loop.wake.fd = -1;
    crowd_init(&worker->crowd, client_price);
    worker->shrink.run = shrink_task;
    worker->sealed.counts = &gateway->tls;
    int rc = loop_init(&worker->loop, woken);
    if (rc != 0) {
        return rc;
    }
    worker->request_ids = becalm_rand_next(&worker->loop.random);
    worker->in = malloc(WORKER_IN);
    worker->out = malloc(WORKER_OUT);
    if (worker->in == NULL || worker->out == NULL || decisions_init(&worker->decisions) != 0 || !room_make(worker)) {
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
    listeners_free(worker);
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
    passing_hosts_drop(worker);
    views_free(worker);
    while (worker->spare != NULL) {
        struct exchange *next = worker->spare->next;
        timer_disarm(&worker->spare->timer);
        free(worker->spare);
        worker->spare = next;
    }
    worker->loop.stop = true;
    loop_run(&worker->loop); /* frees memory from loop_bury() */
    loop_close(&worker->loop);
    decisions_free(&worker->decisions);
    room_free(worker);
    free(worker->in);
    free(worker->out);
    wire_room_free(&worker->sealed);
    free(worker->h2);
}
