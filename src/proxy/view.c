/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "view.h"

#include "gateway_shared.h"
#include "host/upstream.h"

#include <stdlib.h>

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

struct upstream_pool view_pool(const struct worker *worker, const struct becalm_settings *settings)
{
    uint32_t workers = worker->gateway->worker_count;
    uint32_t max = settings->pool_max_per_host;
    return (struct upstream_pool){
        .max = max == 0 ? UINT32_MAX : share(max, workers),
        .max_idle = share(max == 0 ? UPSTREAM_USUAL : max, workers),
        .idle = settings->pool_idle,
        .streams = settings->pool_streams,
        .window = (uint32_t)settings->http2_window,
    };
}

static enum upstream_protocol protocol_of(const struct becalm_service *service)
{
    if (service->introduction != BECALM_INTRODUCTION_NONE) {
        return UPSTREAM_H1; /* a connection is one client's */
    }
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
        .name = snapshot_server_name(snapshot->service[service].service, at->name, name),
        .protocol = protocol_of(snapshot->service[service].service),
        .introduces = (uint32_t)snapshot->service[service].service->introduction, /* the words are in order */
    };
    return upstream_host_use(worker, &place, pool);
}

/* Takes over one use of the snapshot. NULL: no memory. */
static struct view *view_make(struct worker *worker, struct snapshot *snapshot)
{
    const struct upstream_pool pool = view_pool(worker, snapshot->settings);
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

void view_change(struct worker *worker, struct snapshot *snapshot)
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

void views_free(struct worker *worker)
{
    while (worker->view != NULL) {
        struct view *next = worker->view->next;
        view_free(worker->view);
        worker->view = next;
    }
}
