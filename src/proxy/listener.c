/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "listener.h"

#include "client.h"
#include "gateway_shared.h"
#include "greeting.h"
#include "worker.h"

#include "container.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKLOG 4096
#define TURN    64                /* connections taken in before others have their turn */
#define PAUSE   (100 * BECALM_MS) /* out of descriptors */

/* A Unix socket that a process left behind when it was killed: nobody answers there. */
static void remove_dead_socket(const union address_socket *address)
{
    struct stat about;
    if (lstat(address->local.sun_path, &about) != 0 || !S_ISSOCK(about.st_mode)) {
        return;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        if (connect(fd, &address->any, address_length(address)) != 0 && errno == ECONNREFUSED) {
            unlink(address->local.sun_path);
        }
        close(fd);
    }
}

int listen_on(const union address_socket *address, bool reuse_port)
{
    int on = 1;
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    if (address->any.sa_family == AF_UNIX) {
        remove_dead_socket(address);
    } else {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (reuse_port) {
            setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
        }
    }
    if (bind(fd, &address->any, address_length(address)) != 0 || listen(fd, BACKLOG) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

static struct listening *find(struct gateway *gateway, const char *text)
{
    struct listening *listening = gateway->listening;
    while (listening != NULL && strcmp(listening->text, text) != 0) {
        listening = listening->next;
    }
    return listening;
}

static void listening_close(struct gateway *gateway, struct listening *listening)
{
    for (uint32_t i = 0; listening->fd != NULL && i < gateway->worker_count; i++) {
        if (listening->fd[i] >= 0) {
            close(listening->fd[i]);
        }
    }
    free(listening->fd);
    free(listening->text);
    free(listening);
}

/* Two sockets with SO_REUSEPORT would share an address that another gateway of the same user listens on: the first of
 * ours is bound without it, to find that out. */
static bool in_use(const union address_socket *address)
{
    int fd = listen_on(address, false);
    if (fd < 0) {
        return errno == EADDRINUSE;
    }
    close(fd);
    return false;
}

static int handed_over(const struct handed *handed, const union address_socket *address)
{
    for (uint32_t i = 0; i < handed->count; i++) {
        union address_socket bound = {0};
        socklen_t length = sizeof bound;
        if (getsockname(handed->fd[i], &bound.any, &length) == 0 && address_equal(&bound, address)) {
            return handed->fd[i];
        }
    }
    return -1;
}

int listen_handed(const struct handed *handed, const union address_socket *address)
{
    int given = handed_over(handed, address);
    int fd = given < 0 ? -1 : fcntl(given, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0) {
        fcntl(fd, F_SETFL, O_NONBLOCK);
    }
    return fd;
}

static bool open_sockets(struct gateway *gateway, struct listening *listening)
{
    bool local = listening->address.any.sa_family == AF_UNIX;
    bool given = handed_over(&gateway->handed, &listening->address) >= 0;
    listening->handed_over = given;
    int shared = given   ? listen_handed(&gateway->handed, &listening->address)
                 : local ? listen_on(&listening->address, false)
                         : -1;
    if ((given || local) && shared < 0) {
        return false;
    }
    if (!given && !local && in_use(&listening->address)) {
        errno = EADDRINUSE;
        return false;
    }
    for (uint32_t i = 0; i < gateway->worker_count; i++) {
        listening->fd[i] = shared < 0 ? listen_on(&listening->address, true)
                           : i == 0   ? shared
                                      : fcntl(shared, F_DUPFD_CLOEXEC, 0);
        if (listening->fd[i] < 0) {
            return false;
        }
    }
    return true;
}

static struct listening *listening_make(struct gateway *gateway, const char *text)
{
    struct listening *listening = calloc(1, sizeof *listening);
    struct address address;
    if (listening == NULL) {
        return NULL;
    }
    listening->text = strdup(text);
    listening->fd = malloc(gateway->worker_count * sizeof *listening->fd);
    if (listening->text == NULL || listening->fd == NULL) {
        listening_close(gateway, listening);
        return NULL;
    }
    for (uint32_t i = 0; i < gateway->worker_count; i++) {
        listening->fd[i] = -1;
    }
    bool parsed = address_parse(text, &address) && address.kind != ADDRESS_NAME;
    BECALM_ASSERT(parsed); /* the loader checked it */
    listening->address = address.socket;
    if (!open_sockets(gateway, listening)) {
        int error = errno;
        listening_close(gateway, listening);
        errno = error;
        return NULL;
    }
    return listening;
}

int listening_open(struct gateway *gateway, const char *const *addresses, uint32_t *which, char *why, size_t size)
{
    for (uint32_t i = 0; addresses[i] != NULL; i++) {
        if (find(gateway, addresses[i]) != NULL) {
            continue;
        }
        struct listening *listening = listening_make(gateway, addresses[i]);
        if (listening == NULL) {
            const char *usual = strcmp(addresses[i], BECALM_LISTEN_DEFAULT) == 0 ? " (the default of listen)" : "";
            snprintf(why, size, "can't listen on %s%s: %s", addresses[i], usual, strerror(errno));
            *which = i;
            return BECALM_EIO;
        }
        pthread_mutex_lock(&gateway->lock);
        listening->next = gateway->listening;
        gateway->listening = listening;
        pthread_mutex_unlock(&gateway->lock);
    }
    return 0;
}

static bool names(const char *const *addresses, const char *text)
{
    for (uint32_t i = 0; addresses[i] != NULL; i++) {
        if (strcmp(addresses[i], text) == 0) {
            return true;
        }
    }
    return false;
}

void listening_forget(struct gateway *gateway, const char *const *addresses)
{
    pthread_mutex_lock(&gateway->lock);
    for (struct listening **link = &gateway->listening; *link != NULL;) {
        struct listening *listening = *link;
        if (names(addresses, listening->text)) {
            link = &listening->next;
        } else {
            *link = listening->next;
            if (listening->address.any.sa_family == AF_UNIX && !listening->handed_over) {
                unlink(listening->address.local.sun_path);
            }
            listening_close(gateway, listening);
        }
    }
    pthread_mutex_unlock(&gateway->lock);
}

void listening_free(struct gateway *gateway)
{
    static const char *const none[] = {NULL};
    listening_forget(gateway, none);
}

/* One worker's. */

/* What is spoken at its address. */
static void listener_learn(struct listener *listener, const struct becalm_settings *settings)
{
    listener->h2 = false;
    listener->proxy_header = false;
    for (uint32_t i = 0; i < settings->listener_count; i++) {
        const struct becalm_listener *written = &settings->listeners[i];
        bool it = strcmp(written->address, listener->text) == 0;
        listener->h2 = listener->h2 || (it && written->h2);
        listener->proxy_header = listener->proxy_header || (it && written->proxy_protocol);
    }
}

/* -1 with errno: nobody is there, or no descriptor. */
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

static void take_in(struct listener *listener, int most)
{
    struct worker *worker = listener->worker;
    for (int i = 0; i < most; i++) {
        union address_socket peer = {0};
        int fd = accept_next(listener, &peer);
        if (fd >= 0) {
            (listener->proxy_header ? greeting_begin : client_accept)(worker, fd, &peer, listener);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* The level would wake us at once, again and again. */
            loop_forget(&worker->loop, &listener->source);
            wheel_arm(&worker->loop.wheel, &listener->pause, becalm_ns_after(worker->loop.now, PAUSE));
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

static void listener_close(struct listener *listener)
{
    take_in(listener, BACKLOG);
    timer_disarm(&listener->pause);
    free(listener->text);
    loop_bury(&listener->worker->loop, &listener->source);
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
        if (names(addresses, listener->text)) {
            link = &listener->next;
        } else {
            *link = listener->next;
            listener_close(listener);
        }
    }
    pthread_mutex_lock(&gateway->lock);
    for (uint32_t i = 0; addresses[i] != NULL; i++) {
        struct listening *listening = find(gateway, addresses[i]);
        if (listening != NULL && listening->fd[worker->number] >= 0) {
            listener_make(worker, listening->text, listening->fd[worker->number]);
            listening->fd[worker->number] = -1;
        }
    }
    pthread_mutex_unlock(&gateway->lock);
    const struct snapshot *snapshot = worker->view->snapshot;
    for (struct listener *listener = worker->listeners; listener != NULL; listener = listener->next) {
        listener->tls =
            snapshot->tls == NULL ? NULL : tls_set_of_address(snapshot->tls, snapshot->settings, listener->text);
        listener_learn(listener, snapshot->settings);
        listener->door = snapshot_door_of(snapshot, listener->text);
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
