/* SPDX-License-Identifier: MIT */
#include "greeting.h"

#include "gateway_shared.h"

#include "container.h"
#include "origin/proxy_header.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST 1024u /* of one worker, at once: they have no place among maxConnections yet */

struct greeting {
    struct source source; /* first */
    struct timer timer;
    struct worker *worker;
    struct greeting *next; /* a newer one */
    struct greeting *previous;
    becalm_ns since;
    union address_socket peer;
    struct greeting_plan plan;
};

/* Its descriptor, if it is still there, is closed. */
static void greeting_end(struct greeting *greeting)
{
    struct worker *worker = greeting->worker;
    timer_disarm(&greeting->timer);
    *(greeting->previous == NULL ? &worker->greetings : &greeting->previous->next) = greeting->next;
    *(greeting->next == NULL ? &worker->latest_greeting : &greeting->next->previous) = greeting->previous;
    worker->greeting_count--;
    loop_bury(&worker->loop, &greeting->source);
}

static void tell_bad(const struct greeting *greeting)
{
    char text[ADDRESS_TEXT_MAX];
    struct becalm_text peer = {text, address_write_ip(&greeting->peer, text, sizeof text)};
    gateway_tell_once(greeting->worker, GATEWAY_NO_PROXY_HEADER,
                      "a client does not begin with the PROXY protocol, and is closed",
                      "remove proxyProtocol from the listener, or let the load balancer send the header", peer);
}

static void become_client(struct greeting *greeting)
{
    struct worker *worker = greeting->worker;
    int fd = greeting->source.fd;
    loop_forget(&worker->loop, &greeting->source);
    greeting->source.fd = -1;
    greeting->plan.done(worker, fd, &greeting->peer, greeting->plan.door);
    greeting_end(greeting);
}

/* The header is peeked at, and read when it is complete: the bytes after it must stay in the socket for the client. */
static void look(struct greeting *greeting)
{
    char bytes[PROXY_HEADER_MAX];
    size_t length = 0;
    union address_socket peer = greeting->peer;
    ssize_t count = recv(greeting->source.fd, bytes, sizeof bytes, MSG_PEEK);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (count <= 0) {
        greeting_end(greeting);
        return;
    }
    switch (proxy_header_read(bytes, (size_t)count, &length, &peer)) {
    case PROXY_HEADER_MORE:
        return;
    case PROXY_HEADER_BAD:
        tell_bad(greeting);
        greeting_end(greeting);
        return;
    case PROXY_HEADER_DONE:
        break;
    }
    if (recv(greeting->source.fd, bytes, length, 0) != (ssize_t)length) {
        greeting_end(greeting);
        return;
    }
    greeting->peer = peer;
    become_client(greeting);
}

/* Its event may be behind that of the listener: then it becomes a client in this wake-up. */
static bool has_greeted(const struct greeting *greeting)
{
    char bytes[PROXY_HEADER_MAX];
    size_t length = 0;
    union address_socket peer = greeting->peer;
    ssize_t count = recv(greeting->source.fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
    return count > 0 && proxy_header_read(bytes, (size_t)count, &length, &peer) == PROXY_HEADER_DONE;
}

static void ready(struct source *source, uint32_t events)
{
    (void)events;
    look(CONTAINER_OF(source, struct greeting, source));
}

static void timer_fires(struct timer *timer)
{
    greeting_end(CONTAINER_OF(timer, struct greeting, timer));
}

void greeting_begin(struct worker *worker, int fd, const union address_socket *peer, const struct greeting_plan *plan)
{
    if (worker->greeting_count == MOST && !greeting_give_up(worker, 0)) {
        greeting_end(worker->greetings);
    }
    struct greeting *greeting = calloc(1, sizeof *greeting);
    if (greeting == NULL) {
        close(fd);
        return;
    }
    *greeting = (struct greeting){
        .source = {.ready = ready, .fd = fd},
        .timer = {.fire = timer_fires},
        .worker = worker,
        .previous = worker->latest_greeting,
        .since = worker->loop.now,
        .peer = *peer,
        .plan = *plan,
    };
    *(greeting->previous == NULL ? &worker->greetings : &greeting->previous->next) = greeting;
    worker->latest_greeting = greeting;
    worker->greeting_count++;
    if (loop_watch(&worker->loop, &greeting->source) != 0) {
        greeting_end(greeting);
        return;
    }
    becalm_ns patience = worker->view->snapshot->settings->header_timeout;
    wheel_arm(&worker->loop.wheel, &greeting->timer, becalm_ns_after(worker->loop.now, patience));
}

/* A load balancer sends its header at once, so the oldest is the least likely to be one's. */
bool greeting_give_up(struct worker *worker, becalm_ns age)
{
    struct greeting *oldest = worker->greetings;
    while (oldest != NULL && has_greeted(oldest)) {
        oldest = oldest->next;
    }
    if (oldest == NULL || becalm_ns_since(worker->loop.now, oldest->since) < age) {
        return false;
    }
    greeting_end(oldest);
    return true;
}

void greetings_close(struct worker *worker)
{
    while (worker->greetings != NULL) {
        greeting_end(worker->greetings);
    }
}
