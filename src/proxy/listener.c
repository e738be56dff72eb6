/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "listener.h"

#include "greeting.h"
#include "listening.h"
#include "room.h"

#include "container.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TURN  64                /* connections taken in before others have their turn */
#define PAUSE (100 * BECALM_MS) /* out of descriptors */
#define WAIT  (5 * BECALM_MS)   /* the same, and another worker gives some up */

/* The TLS and protocols of its address. */
static void listener_learn(struct listener *listener, const struct becalm_settings *settings)
{
    listener->door.h1 = listener->door.h2 = false;
    listener->proxy_header = false;
    for (uint32_t i = 0; i < settings->listener_count; i++) {
        const struct becalm_listener *written = &settings->listeners[i];
        bool it = strcmp(written->address, listener->text) == 0;
        listener->door.h1 = listener->door.h1 || (it && written->h1);
        listener->door.h2 = listener->door.h2 || (it && written->h2);
        listener->proxy_header = listener->proxy_header || (it && written->proxy_protocol);
    }
}

/* -1 with errno: no connection waits, or no descriptor is left. */
static int accept_next(struct listener *listener, union address_socket *peer)
{
    pthread_mutex_t *accepting = &listener->worker->gateway->accepting;
    socklen_t length = sizeof *peer;
    pthread_mutex_lock(accepting);
    int fd = accept4(listener->source.fd, &peer->any, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    int error = errno;
    pthread_mutex_unlock(accepting);
    errno = error;
    return fd;
}

/* A client's PROXY protocol header has arrived. Its listener may be closed meanwhile: then the connection is closed,
 * too.
 */
static void greeted(struct worker *worker, int fd, const union address_socket *peer, uint16_t door)
{
    const struct listener *listener = worker->listeners;
    while (listener != NULL && listener->door.number != door) {
        listener = listener->next;
    }
    if (listener != NULL) {
        client_accept(worker, fd, peer, &listener->door);
    } else {
        close(fd);
    }
}

/* The level would wake us at once, again and again. */
static void listener_pause(struct listener *listener, becalm_ns time)
{
    struct loop *loop = &listener->worker->loop;
    loop_forget(loop, &listener->source);
    wheel_arm(&loop->wheel, &listener->pause, becalm_ns_after(loop->now, time));
}

/* There are descriptors to be had, or not. */
static void take_in_later(struct listener *listener)
{
    if (listener->worker->closing) {
        return; /* there is no later, so nobody is closed for it */
    }
    switch (room_squeeze(listener->worker)) {
    case SQUEEZE_DONE:
        break; /* the level wakes us again */
    case SQUEEZE_SOON:
        listener_pause(listener, WAIT);
        break;
    case SQUEEZE_NOTHING:
        listener_pause(listener, PAUSE);
        break;
    }
}

static void take_in(struct listener *listener, int most)
{
    struct worker *worker = listener->worker;
    for (int i = 0; i < most; i++) {
        union address_socket peer = {0};
        int fd = accept_next(listener, &peer);
        if (fd >= 0 && listener->proxy_header) {
            greeting_begin(worker, fd, &peer, &(struct greeting_plan){greeted, listener->door.number});
            room_greets(worker);
        } else if (fd >= 0) {
            client_accept(worker, fd, &peer, &listener->door);
        } else if (errno == EMFILE || errno == ENFILE) {
            take_in_later(listener);
            return;
        } else if (errno == ENOBUFS || errno == ENOMEM) {
            listener_pause(listener, PAUSE);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

static void ready(struct source *source, uint32_t events)
{
    (void)events;
    take_in(CONTAINER_OF(source, struct listener, source), TURN);
}

static void pause_over(struct timer *timer)
{
    struct listener *listener = CONTAINER_OF(timer, struct listener, pause);
    struct loop *loop = &listener->worker->loop;
    if (loop_watch_level(loop, &listener->source, true) != 0) { /* for want of memory: again later */
        wheel_arm(&loop->wheel, timer, becalm_ns_after(loop->now, PAUSE));
    }
}

static void listener_free(struct listener *listener)
{
    timer_disarm(&listener->pause);
    free(listener->text);
    loop_bury(&listener->worker->loop, &listener->source);
}

/* Clients that are in its backlog are still served. */
static void listener_close(struct listener *listener)
{
    take_in(listener, LISTEN_BACKLOG);
    listener_free(listener);
}

static void listener_make(struct worker *worker, const char *text, int fd)
{
    struct listener *listener = calloc(1, sizeof *listener);
    if (listener != NULL) {
        *listener = (struct listener){
            .source = {.ready = ready, .fd = fd},
            .worker = worker,
            .pause = {.fire = pause_over},
            .text = strdup(text),
            .next = worker->listeners,
        };
    }
    if (listener == NULL || listener->text == NULL || loop_watch_level(&worker->loop, &listener->source, true) != 0) {
        close(fd);
        free(listener);
        return;
    }
    worker->listeners = listener;
}

void listeners_update(struct worker *worker)
{
    struct gateway *gateway = worker->gateway;
    const char *const *addresses = worker->view->snapshot->settings->listen;
    if (worker->closing) {
        return;
    }
    for (struct listener **link = &worker->listeners; *link != NULL;) {
        struct listener *listener = *link;
        if (listening_names(addresses, listener->text)) {
            link = &listener->next;
        } else {
            *link = listener->next;
            listener_close(listener);
        }
    }
    pthread_mutex_lock(&gateway->lock);
    for (uint32_t i = 0; addresses[i] != NULL; i++) {
        struct listening *listening = listening_find(gateway, addresses[i]);
        if (listening != NULL && listening->fd[worker->number] >= 0) {
            listener_make(worker, listening->text, listening->fd[worker->number]);
            listening->fd[worker->number] = -1;
        }
    }
    pthread_mutex_unlock(&gateway->lock);
    const struct snapshot *snapshot = worker->view->snapshot;
    for (struct listener *listener = worker->listeners; listener != NULL; listener = listener->next) {
        listener->door.tls =
            snapshot->tls == NULL ? NULL : tls_set_of_address(snapshot->tls, snapshot->settings, listener->text);
        listener_learn(listener, snapshot->settings);
        listener->door.number = snapshot_door_of(snapshot, listener->text);
    }
}

void listeners_close(struct worker *worker)
{
    while (worker->listeners != NULL) {
        struct listener *listener = worker->listeners;
        worker->listeners = listener->next;
        listener_close(listener);
    }
}

void listeners_free(struct worker *worker)
{
    while (worker->listeners != NULL) {
        struct listener *listener = worker->listeners;
        worker->listeners = listener->next;
        listener_free(listener);
    }
}
