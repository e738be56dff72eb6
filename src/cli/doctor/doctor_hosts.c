/* SPDX-License-Identifier: MIT */
/* The hosts of a policy: do their names have addresses, and does a process accept there? Names are resolved as the
 * gateway does it. */
#define _GNU_SOURCE
#include "doctor.h"

#include "exec/exec.h"
#include "gateway/resolve.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRIED_MAX 256u /* addresses of one service that are tried; a sample of the rest says nothing new */

/* One address that is tried. */
struct tried {
    union address_socket to;
    const char *host; /* as it is written */
    int fd;           /* -1: it has ended */
    int error;        /* 0: it answers */
};

/* One service. */
struct ward {
    struct doctor *doctor;
    const struct becalm_service *service;
    struct resolver *resolver;
    const char *host; /* the name that is being resolved */
    bool answered;
    struct tried tried[TRIED_MAX];
    uint32_t count;
    uint32_t unknown; /* names without an address */
};

static void add(struct ward *w, const union address_socket *to)
{
    if (w->count < TRIED_MAX) {
        w->tried[w->count++] = (struct tried){.to = *to, .host = w->host, .fd = -1};
    }
}

/* ---- names ---- */

static void on_result(const struct resolve_result *result, void *data)
{
    struct ward *w = data;
    w->answered = true;
    for (uint32_t i = 0; i < result->count; i++) {
        add(w, &result->addresses[i]);
    }
    if (result->count == 0) {
        w->unknown++;
        doctor_say(w->doctor, DOCTOR_WARNING, "dns",
                   "%s: %s has no address: %s; do: look at /etc/resolv.conf and at how the name is spelled",
                   w->service->name, w->host, result->why == NULL ? "the answer is empty" : result->why);
    }
}

static void resolve_name(struct ward *w, const struct address *address)
{
    struct resolve_request request = {.name = address->name, .port = address->port, .each = on_result, .data = w};
    becalm_ns until = becalm_ns_after(exec_now(), w->doctor->timeout);
    struct resolve *resolve = resolve_start(w->resolver, &request, exec_now());
    w->answered = false;
    while (resolve != NULL && !w->answered && exec_now() < until) {
        struct pollfd poll_fd = {.fd = resolver_fd(w->resolver), .events = POLLIN};
        (void)poll(&poll_fd, 1, 20);
        resolver_run(w->resolver, exec_now());
    }
    if (!w->answered) {
        w->unknown++;
        doctor_say(w->doctor, DOCTOR_WARNING, "dns", "%s: no name server answers for %s; do: look at /etc/resolv.conf",
                   w->service->name, w->host);
    }
    if (resolve != NULL) {
        resolve_stop(w->resolver, resolve);
    }
}

/* ---- connections ---- */

static void begin(struct tried *t)
{
    t->fd = socket(t->to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    t->error = t->fd < 0 ? errno : EINPROGRESS;
    if (t->fd >= 0 && connect(t->fd, &t->to.any, address_length(&t->to)) == 0) {
        t->error = 0;
    } else if (t->fd >= 0) {
        t->error = errno;
    }
}

static void finish(struct tried *t)
{
    socklen_t length = sizeof t->error;
    if (getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &t->error, &length) != 0) {
        t->error = errno;
    }
}

static void try_all(struct ward *w)
{
    becalm_ns until = becalm_ns_after(exec_now(), w->doctor->timeout);
    struct pollfd fds[TRIED_MAX];
    uint32_t open = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        begin(&w->tried[i]);
        open += w->tried[i].error == EINPROGRESS;
    }
    while (open > 0 && exec_now() < until) {
        for (uint32_t i = 0; i < w->count; i++) {
            fds[i] = (struct pollfd){.fd = w->tried[i].error == EINPROGRESS ? w->tried[i].fd : -1, .events = POLLOUT};
        }
        (void)poll(fds, w->count, (int)((until - exec_now()) / BECALM_MS) + 1);
        for (uint32_t i = 0; i < w->count; i++) {
            if (fds[i].fd >= 0 && fds[i].revents != 0) {
                finish(&w->tried[i]);
                open -= w->tried[i].error != EINPROGRESS;
            }
        }
    }
    for (uint32_t i = 0; i < w->count; i++) {
        if (w->tried[i].fd >= 0) {
            close(w->tried[i].fd);
        }
    }
}

static void tell(struct ward *w)
{
    const char *name = w->service->name;
    uint32_t there = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        char address[ADDRESS_TEXT_MAX];
        const struct tried *t = &w->tried[i];
        address_write(&t->to, address, sizeof address);
        there += t->error == 0;
        if (t->error != 0) {
            bool same = strcmp(address, t->host) == 0;
            doctor_say(w->doctor, DOCTOR_WARNING, "host",
                       "%s: %s%s%s%s: %s; do: is it started, and does a firewall let us?", name, t->host,
                       same ? "" : " (", same ? "" : address, same ? "" : ")",
                       t->error == EINPROGRESS ? "no answer in time" : strerror(t->error));
        }
    }
    if (there > 0) {
        doctor_say(w->doctor, DOCTOR_OK, "host", "%s: %u of %u addresses answer", name, there, w->count + w->unknown);
    } else {
        doctor_say(w->doctor, DOCTOR_FAULT, "host",
                   "%s: none of its hosts answers; do: start one; until then calls to it get 503 (no_host)", name);
    }
}

static void visit(struct ward *w)
{
    w->count = 0;
    w->unknown = 0;
    for (uint32_t i = 0; i < w->service->host_count; i++) {
        struct address address;
        w->host = w->service->hosts[i];
        if (!address_parse(w->host, &address)) {
            continue;
        }
        if (address.kind == ADDRESS_NAME) {
            resolve_name(w, &address);
        } else {
            add(w, &address.socket);
        }
    }
    try_all(w);
    tell(w);
}

void doctor_hosts(struct doctor *d)
{
    struct resolver_options options = {.seed = 1};
    struct ward *w = calloc(1, sizeof *w); /* too large for a stack */
    d->no_memory = d->no_memory || w == NULL;
    if (w == NULL) {
        return;
    }
    w->doctor = d;
    w->resolver = resolver_make(&options);
    d->no_memory = d->no_memory || w->resolver == NULL;
    for (uint32_t i = 0; w->resolver != NULL && i < becalm_config_services(d->config); i++) {
        w->service = becalm_config_service(d->config, i);
        visit(w);
    }
    resolver_free(w->resolver);
    free(w);
}
