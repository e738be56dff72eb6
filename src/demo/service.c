/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "service.h"

#include "container.h"
#include "h1/h1.h"
#include "loop/listen.h"
#include "message/phrase.h"

#include <becalm/rand.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IN_MAX     4096u
#define OUT_MAX    512u
#define STUCK_LOOK (20 * BECALM_MS) /* a worker that is stuck looks whether it still is */

/* One connection of a gateway, with one request at a time. */
struct service_conn {
    struct source source; /* first */
    struct service *service;
    struct service_conn *next;
    struct service_conn **link;
    struct service_work *work; /* the request in progress; NULL: none */
    char in[IN_MAX];
    size_t in_length;
    bool keep;
};

/* One request, from its arrival to its answer. */
struct service_work {
    struct service *service;
    struct service_work *next; /* of all */
    struct service_work **link;
    struct service_work *next_waiting;
    struct service_conn *conn; /* NULL: the caller has hung up */
    struct timer timer;
    struct caller_call call;
    char deadline[16]; /* the deadline that the gateway sent; empty: none */
};

/* ---- words ---- */

static const struct {
    const char *word;
    const char *sentence;
} faults[] = {
#define SERVICE_ROW(id, word, sentence) {word, sentence},
    SERVICE_FAULTS(SERVICE_ROW)
#undef SERVICE_ROW
};

const char *service_fault_word(enum service_fault fault)
{
    return faults[fault].word;
}

const char *service_fault_sentence(enum service_fault fault)
{
    return faults[fault].sentence;
}

bool service_fault_find(struct becalm_text word, enum service_fault *fault)
{
    for (unsigned i = 0; i < SERVICE_FAULT_COUNT; i++) {
        if (strlen(faults[i].word) == word.length && memcmp(faults[i].word, word.at, word.length) == 0) {
            *fault = (enum service_fault)i;
            return true;
        }
    }
    return false;
}

/* ---- how it is just now ---- */

static becalm_ns time_of_one(const struct service *service)
{
    return service->plan->time * (service->fault == SERVICE_SLOW ? SERVICE_SLOW_FACTOR : 1);
}

static bool fails(struct service *service)
{
    return service->fault == SERVICE_ERRORS &&
           becalm_rand_chance(becalm_rand_next(&service->loop->random), SERVICE_ERROR_PPM);
}

/* ---- answers ---- */

static void conn_close(struct service_conn *conn)
{
    if (conn->work != NULL) {
        conn->work->conn = NULL; /* its worker does not notice */
    }
    *conn->link = conn->next;
    if (conn->next != NULL) {
        conn->next->link = conn->link;
    }
    loop_bury(conn->service->loop, &conn->source);
}

/* Answers are so small that an idle socket takes them whole. */
static void conn_answer(struct service_conn *conn, const struct caller_answer *answer)
{
    char text[OUT_MAX];
    bool marked = answer->mark.at != NULL;
    bool good = answer->status == 200;
    const char *body = good ? "done\n" : "failed\n";
    int length = snprintf(text, sizeof text,
                          "HTTP/1.1 %u %s\r\ncontent-type: text/plain\r\ncontent-length: %zu\r\n%s%.*s%s%s\r\n%s",
                          answer->status, status_phrase(answer->status), strlen(body), marked ? "becalm-retry: " : "",
                          marked ? (int)answer->mark.length : 0, marked ? answer->mark.at : "", marked ? "\r\n" : "",
                          conn->keep ? "" : "connection: close\r\n", body);
    conn->work = NULL;
    if (send(conn->source.fd, text, (size_t)length, MSG_NOSIGNAL) != length || !conn->keep) {
        conn_close(conn);
    }
}

static void work_free(struct service_work *work)
{
    timer_disarm(&work->timer);
    caller_cancel(&work->call);
    *work->link = work->next;
    if (work->next != NULL) {
        work->next->link = work->link;
    }
    free(work);
}

/* ---- work ---- */

static void next_work(struct service *service);

static void work_done(struct service_work *work, const struct caller_answer *answer)
{
    struct service *service = work->service;
    service->busy--;
    if (answer->status == 200) {
        service->good++;
        service->useless += work->conn == NULL;
    }
    if (work->conn != NULL) {
        conn_answer(work->conn, answer);
    }
    work_free(work);
    next_work(service);
}

/* The next service has answered, or its gateway for it. */
static void answered(struct caller_call *call, const struct caller_answer *answer)
{
    struct service_work *work = CONTAINER_OF(call, struct service_work, call);
    struct caller_answer own = *answer;
    own.status = answer->status == 0 ? 502 : answer->status;
    work_done(work, &own);
}

static void worked(struct timer *timer)
{
    struct service_work *work = CONTAINER_OF(timer, struct service_work, timer);
    struct service *service = work->service;
    if (service->stuck) {
        wheel_arm(&service->loop->wheel, timer, becalm_ns_after(service->loop->now, STUCK_LOOK));
        return;
    }
    struct caller_request request = {service->plan->next, work->deadline};
    bool failed = fails(service) || (request.service != NULL && !caller_ask(service->caller, &work->call, &request));
    if (failed || request.service == NULL) {
        work_done(work, &(struct caller_answer){.status = failed ? 503 : 200});
    }
}

static void next_work(struct service *service)
{
    while (!service->stuck && service->busy < service->plan->workers && service->first_waiting != NULL) {
        struct service_work *work = service->first_waiting;
        service->first_waiting = work->next_waiting;
        if (service->first_waiting == NULL) {
            service->last_waiting = &service->first_waiting;
        }
        service->waiting--;
        service->busy++;
        wheel_arm(&service->loop->wheel, &work->timer, becalm_ns_after(service->loop->now, time_of_one(service)));
    }
}

/* NULL: no memory. */
static struct service_work *work_make(struct service *service, struct service_conn *conn)
{
    struct service_work *work = calloc(1, sizeof *work);
    if (work == NULL) {
        return NULL;
    }
    work->service = service;
    work->conn = conn;
    work->timer.fire = worked;
    work->call.done = answered;
    work->next = service->works;
    work->link = &service->works;
    if (work->next != NULL) {
        work->next->link = &work->next;
    }
    service->works = work;
    return work;
}

static void arrive(struct service_conn *conn, const struct head *head)
{
    struct service *service = conn->service;
    struct becalm_text deadline = head_find(head, FIELD_DEADLINE_MS);
    service->arrivals++;
    conn->keep = head->keep_alive;
    bool idle = !service->stuck && service->busy < service->plan->workers;
    bool full = !idle && service->waiting >= service->plan->queue_max;
    struct service_work *work = full ? NULL : work_make(service, conn);
    if (work == NULL) {
        conn_answer(conn, &(struct caller_answer){.status = 503});
        return;
    }
    if (deadline.at != NULL && deadline.length < sizeof work->deadline) {
        memcpy(work->deadline, deadline.at, deadline.length);
    }
    conn->work = work;
    *service->last_waiting = work;
    service->last_waiting = &work->next_waiting;
    service->waiting++;
    next_work(service);
}

/* ---- hurting it ---- */

static void flap(struct timer *timer)
{
    struct service *service = CONTAINER_OF(timer, struct service, flap);
    service->stuck = !service->stuck;
    wheel_arm(&service->loop->wheel, timer, becalm_ns_after(service->loop->now, SERVICE_FLAP));
    next_work(service);
}

void service_hurt(struct service *service, enum service_fault fault)
{
    bool flaps = fault == SERVICE_FLAPPING;
    service->fault = fault;
    service->stuck = flaps || fault == SERVICE_DEAD;
    wheel_arm(&service->loop->wheel, &service->flap,
              flaps ? becalm_ns_after(service->loop->now, SERVICE_FLAP) : BECALM_NEVER);
    next_work(service);
}

uint32_t service_holds(const struct service *service)
{
    return service->waiting + service->busy;
}

/* ---- connections ---- */

/* False: the connection is gone. */
static bool take_request(struct service_conn *conn)
{
    struct head head;
    struct h1_limits limits = {.head_bytes = IN_MAX};
    size_t length = h1_head_end(conn->in, conn->in_length, 0);
    if (length == 0 && conn->in_length < IN_MAX) {
        return true;
    }
    if (length == 0 || conn->work != NULL || h1_parse_request(conn->in, length, &limits, &head).kind != H1_OK ||
        head.framing != BODY_NONE) {
        conn_close(conn); /* not one of our gateways */
        return false;
    }
    conn->in_length = 0;
    arrive(conn, &head);
    return conn->source.fd >= 0;
}

static void conn_ready(struct source *source, uint32_t events)
{
    struct service_conn *conn = CONTAINER_OF(source, struct service_conn, source);
    (void)events;
    for (;;) {
        ssize_t got = recv(conn->source.fd, conn->in + conn->in_length, IN_MAX - conn->in_length, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return;
        }
        if (got <= 0) {
            conn_close(conn);
            return;
        }
        conn->in_length += (size_t)got;
        if (!take_request(conn)) {
            return;
        }
    }
}

static void conn_open(struct service *service, int fd)
{
    int on = 1;
    struct service_conn *conn = calloc(1, sizeof *conn);
    if (conn == NULL) {
        close(fd);
        return;
    }
    conn->source = (struct source){.ready = conn_ready, .fd = fd};
    conn->service = service;
    conn->next = service->conns;
    conn->link = &service->conns;
    if (conn->next != NULL) {
        conn->next->link = &conn->next;
    }
    service->conns = conn;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (loop_watch(service->loop, &conn->source) != 0) {
        conn_close(conn);
    }
}

/* Without a free descriptor a connection waits in the backlog; the level-triggered event wakes us again. */
static void listener_ready(struct source *source, uint32_t events)
{
    struct service *service = CONTAINER_OF(source, struct service, source);
    int fd;
    (void)events;
    while ((fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        conn_open(service, fd);
    }
}

/* ---- beginning and end ---- */

int service_open(struct service *service, const struct service_plan *plan, struct loop *loop, struct caller *caller)
{
    union address_socket any = {.v4 = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}}};
    socklen_t length = sizeof service->address;
    *service = (struct service){.source = {.ready = listener_ready}, .plan = plan, .loop = loop, .caller = caller};
    service->flap.fire = flap;
    service->last_waiting = &service->first_waiting;
    service->source.fd = listen_on(&any, false);
    if (service->source.fd < 0 || getsockname(service->source.fd, &service->address.any, &length) != 0) {
        return BECALM_EIO;
    }
    return loop_watch_level(loop, &service->source, false);
}

void service_close(struct service *service)
{
    if (service->plan == NULL) {
        return;
    }
    timer_disarm(&service->flap);
    while (service->works != NULL) {
        if (service->works->conn != NULL) {
            service->works->conn->work = NULL;
        }
        work_free(service->works);
    }
    while (service->conns != NULL) {
        conn_close(service->conns);
    }
    if (service->source.fd >= 0) {
        close(service->source.fd);
        service->source.fd = -1;
    }
}
