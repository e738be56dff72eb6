/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE

#include "service.h"

#include <becalm/rand.h>

enum { HEAD_MAX = 4096, ALL = 1000000 };

#define AS_PLANNED UINT32_MAX

struct host_conn {
    struct source source; /* first: the loop frees it */
    struct host *host;
    struct host_conn *next, **link;
    struct job *job; /* NULL: no request is in progress */
    char in[HEAD_MAX + 1];
    size_t in_length;
};

/* One request. */
struct job {
    struct timer timer; /* first */
    struct host *host;
    struct host_conn *conn; /* NULL: its caller has gone */
    struct job *next, **link;
    struct job *next_waiting;
    becalm_ns deadline_at;
    uint32_t pending; /* calls of its own */
    bool first;       /* attempt */
    bool failed;
    bool forgotten; /* its host was killed while it called others */
    char mark[MARK_MAX];
};

/* A call that a job makes. */
struct job_ask {
    struct ask ask; /* first */
    struct job *job;
};

static struct loop *loop_of(const struct host *host)
{
    return stage_loop(host->service->stage);
}

static bool chance(struct loop *loop, uint32_t ppm)
{
    return ppm > 0 && becalm_rand_chance(becalm_rand_next(&loop->random), ppm);
}

/* ---- answers ---- */

static void conn_close(struct host_conn *conn)
{
    if (conn->job != NULL) {
        conn->job->conn = NULL; /* the worker does not notice */
    }
    *conn->link = conn->next;
    if (conn->next != NULL) {
        conn->next->link = conn->link;
    }
    loop_bury(loop_of(conn->host), &conn->source);
}

static void job_free(struct job *job)
{
    loop_disarm(loop_of(job->host), &job->timer);
    if (job->conn != NULL) {
        job->conn->job = NULL;
    }
    *job->link = job->next;
    if (job->next != NULL) {
        job->next->link = job->link;
    }
    free(job);
}

/* The request is done: a caller that still waits gets the rest of its answer. */
static void job_end(struct job *job, const char *text, int length)
{
    const struct service *service = job->host->service;
    struct host_conn *conn = job->conn;
    job_free(job);
    if (conn == NULL || service->cut) {
        return;
    }
    if (socket_send(conn->source.fd, text, (size_t)length) != length || service->refuses) {
        conn_close(conn);
    }
}

static void body_ends(struct timer *timer)
{
    job_end((struct job *)timer, "\n", 1);
}

/* The head goes now, and the last byte when the body is over. */
static void job_stream(struct job *job, const char *text, int length, becalm_ns body)
{
    if (job->conn == NULL || job->host->service->cut) {
        job_free(job);
        return;
    }
    if (socket_send(job->conn->source.fd, text, (size_t)length - 1) != length - 1) {
        conn_close(job->conn);
        job_free(job);
        return;
    }
    job->timer.fire = body_ends;
    loop_arm(loop_of(job->host), &job->timer, becalm_ns_after(loop_of(job->host)->now, body));
}

static void job_answer(struct job *job, unsigned status)
{
    struct service *service = job->host->service;
    struct loop *loop = loop_of(job->host);
    uint32_t second = stage_second(service->stage);
    bool marked = job->mark[0] != '\0';
    char text[512];
    int length = snprintf(
        text, sizeof text, "HTTP/1.1 %u %s\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n%s%s%s\r\ndone\n",
        status, status == 200 ? "OK" : "Failed", marked ? "becalm-retry: " : "", job->mark, marked ? "\r\n" : "");
    if (second != UINT32_MAX) {
        (status == 200 ? service->good : service->failed)[second]++;
    }
    becalm_ns body = status == 200 ? dist_draw(stage_tables(service->stage), &service->plan->body, &loop->random) : 0;
    if (body > 0) {
        job_stream(job, text, length, body);
    } else {
        job_end(job, text, length);
    }
}

/* ---- work ---- */

static uint32_t host_workers(const struct host *host)
{
    const struct service *service = host->service;
    uint64_t left = (uint64_t)service->plan->workers * service->capacity_ppm;
    return service->plan->workers == 0 ? UINT32_MAX : (uint32_t)((left + ALL - 1) / ALL);
}

/* A fraction of a worker is a worker that takes longer. */
static becalm_ns job_time(const struct job *job)
{
    const struct service *service = job->host->service;
    struct loop *loop = loop_of(job->host);
    becalm_ns time = dist_draw(stage_tables(service->stage), &service->plan->time, &loop->random);
    uint64_t left = (uint64_t)service->plan->workers * service->capacity_ppm;
    uint64_t slots = left == 0 ? 0 : (uint64_t)host_workers(job->host) * ALL;
    if (slots > left) {
        time = becalm_ns_min(time, 3600 * BECALM_S) / 1000 * (slots * 1000 / left);
    }
    uint32_t hang_ppm = service->hang_ppm == AS_PLANNED ? service->plan->hang_ppm : service->hang_ppm;
    bool may_hang = (job->first || !service->plan->hang_first) &&
                    (service->bad_hosts == 0 || job->host->number < service->bad_hosts);
    return time + service->latency + (may_hang && chance(loop, hang_ppm) ? service->plan->hang : 0);
}

static void job_served(struct timer *);

/* A worker takes it at `at`, which is a moment ago if a timer was late: so a late machine costs no capacity. */
static void job_start(struct job *job, becalm_ns at)
{
    job->host->busy++;
    job->timer.fire = job_served;
    loop_arm(loop_of(job->host), &job->timer, becalm_ns_after(at, job_time(job)));
}

static void host_work(struct host *host, becalm_ns at)
{
    while (host->first != NULL && host->busy < host_workers(host)) {
        struct job *job = host->first;
        host->first = job->next_waiting;
        if (host->first == NULL) {
            host->last = &host->first;
        }
        host->waiting--;
        if (host->service->plan->expiry && job->conn == NULL) {
            job_free(job);
        } else {
            job_start(job, at);
        }
    }
}

static void ask_done(struct ask *ask, unsigned status, const char *mark)
{
    struct job *job = ((struct job_ask *)ask)->job;
    free(ask);
    job->pending--;
    if (status != 200) {
        job->failed = true;
        memcpy(job->mark, mark, strlen(mark) + 1);
    }
    if (job->pending == 0 && job->forgotten) {
        job_free(job);
    } else if (job->pending == 0) {
        job_answer(job, job->failed ? 503 : 200);
    }
}

static void job_calls(struct job *job)
{
    const struct service *service = job->host->service;
    uint32_t calls = service->calls * service->plan->fan_out;
    job->pending = calls + 1; /* one more, so that no answer ends it before all are asked */
    for (uint32_t i = 0; i < calls; i++) {
        struct job_ask *ask = must_calloc(1, sizeof *ask);
        uint32_t callee = i % service->calls;
        ask->ask.done = ask_done;
        ask->job = job;
        caller_ask(stage_caller(service->stage, service, callee), &ask->ask,
                   &(struct question){service->plan->calls[callee], job->deadline_at});
    }
    struct job_ask *last = must_calloc(1, sizeof *last);
    last->job = job;
    ask_done(&last->ask, 200, "");
}

static void job_served(struct timer *timer)
{
    struct job *job = (struct job *)timer;
    struct host *host = job->host;
    const struct service *service = host->service;
    host->busy--;
    host_work(host, timer->at);
    uint32_t hang_ppm = service->hang_ppm == AS_PLANNED ? service->plan->hang_ppm : service->hang_ppm;
    uint32_t error_ppm = service->error_ppm == AS_PLANNED ? service->plan->error_ppm : service->error_ppm;
    bool bad = host->number < service->bad_hosts && hang_ppm == 0;
    if (bad || chance(loop_of(host), error_ppm)) {
        job_answer(job, 502);
    } else if (service->calls > 0) {
        job_calls(job);
    } else {
        job_answer(job, 200);
    }
}

/* ---- requests ---- */

static struct job *job_make(struct host_conn *conn)
{
    struct host *host = conn->host;
    struct job *job = must_calloc(1, sizeof *job);
    size_t length;
    const char *left = header_find(conn->in, "x-request-deadline-ms", &length);
    const char *attempt = header_find(conn->in, "x-envoy-attempt-count", &length);
    job->host = host;
    job->conn = conn;
    job->next = host->jobs;
    job->link = &host->jobs;
    if (job->next != NULL) {
        job->next->link = &job->next;
    }
    host->jobs = job;
    job->first = attempt == NULL || strtoul(attempt, NULL, 10) <= 1;
    job->deadline_at =
        left == NULL ? BECALM_NEVER : becalm_ns_after(loop_of(host)->now, strtoul(left, NULL, 10) * BECALM_MS);
    return job;
}

static void arrive(struct host_conn *conn)
{
    struct host *host = conn->host;
    struct service *service = host->service;
    uint32_t second = stage_second(service->stage);
    if (service->cut) {
        return; /* it never came; the connection is left as it is, and its caller will give it up */
    }
    service->requests++;
    if (second != UINT32_MAX) {
        service->arrivals[second]++;
    }
    struct job *job = conn->job = job_make(conn);
    if (service->dead) {
        job_answer(job, 502);
    } else if (host->busy < host_workers(host)) {
        job_start(job, loop_of(host)->now);
    } else if (host->waiting < service->plan->queue_max) {
        *host->last = job;
        host->last = &job->next_waiting;
        host->waiting++;
    } else {
        job_answer(job, 503);
    }
}

static void conn_ready(struct source *source)
{
    struct host_conn *conn = (struct host_conn *)source;
    ssize_t got = recv(source->fd, conn->in + conn->in_length, HEAD_MAX - conn->in_length, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) {
        return;
    }
    if (got <= 0) {
        conn_close(conn);
        return;
    }
    conn->in_length += (size_t)got;
    conn->in[conn->in_length] = '\0';
    if (strstr(conn->in, "\r\n\r\n") != NULL && conn->job == NULL) {
        conn->in_length = 0; /* GET has no body, and a proxy does not send two at once */
        arrive(conn);
    } else if (conn->in_length == HEAD_MAX) {
        conn_close(conn);
    }
}

/* ---- hosts ---- */

struct listener {
    struct source source; /* first */
    struct host *host;
    int plug; /* while it swallows: the connection that fills its backlog; else -1 */
};

static void listener_ready(struct source *source)
{
    const struct listener *listener = (const struct listener *)source;
    struct host *host = listener->host;
    int fd;
    if (listener->plug >= 0) {
        return; /* it was readable before it began to swallow */
    }
    while ((fd = socket_accept(source->fd)) >= 0) {
        struct host_conn *conn = must_calloc(1, sizeof *conn);
        conn->source = (struct source){.fd = fd, .ready = conn_ready};
        conn->host = host;
        conn->next = host->conns;
        conn->link = &host->conns;
        if (conn->next != NULL) {
            conn->next->link = &conn->next;
        }
        host->conns = conn;
        loop_watch(loop_of(host), &conn->source);
    }
}

/* Connections without a request in progress are closed; the others are closed after their answers. */
static void host_send_away(struct host *host)
{
    for (struct host_conn *conn = host->conns, *next; conn != NULL; conn = next) {
        next = conn->next;
        if (conn->job == NULL) {
            conn_close(conn);
        }
    }
}

/* The kernel takes one connection for a backlog of none, and drops further ones. */
static void listener_plug(struct listener *listener)
{
    struct sockaddr_in address = address_parse(listener->host->address);
    must(listen(listener->source.fd, 0) == 0, "listen");
    listener_ready(&listener->source); /* accepts those that connected before the fault */
    loop_unwatch(loop_of(listener->host), &listener->source);
    listener->plug = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    must(listener->plug >= 0, "socket");
    must(connect(listener->plug, (struct sockaddr *)&address, sizeof address) == 0 || errno == EINPROGRESS, "connect");
}

static void listener_unplug(struct listener *listener)
{
    close(listener->plug);
    listener->plug = -1;
    must(listen(listener->source.fd, BACKLOG) == 0, "listen");
    loop_watch(loop_of(listener->host), &listener->source);
}

static void listener_open(struct host *host)
{
    struct listener *listener = must_calloc(1, sizeof *listener);
    listener->source = (struct source){.fd = socket_listen(host->address), .ready = listener_ready};
    listener->host = host;
    listener->plug = -1;
    host->listener = &listener->source;
    loop_watch(loop_of(host), host->listener);
}

static void listener_close(struct host *host)
{
    struct listener *listener = (struct listener *)host->listener;
    if (listener->plug >= 0) {
        listener_unplug(listener);
    }
    listener_ready(host->listener); /* accepts those that connected before the fault */
    loop_bury(loop_of(host), host->listener);
    host->listener = NULL;
    host_send_away(host);
}

/* It listens if no fault forbids that, and accepts connections unless it swallows them. */
static void host_listen(struct host *host)
{
    bool want = !host->killed && !host->service->refuses;
    if (want && host->listener == NULL) {
        listener_open(host);
    } else if (!want && host->listener != NULL) {
        listener_close(host);
    }
    struct listener *listener = (struct listener *)host->listener;
    if (listener == NULL || host->service->swallows == (listener->plug >= 0)) {
        return;
    }
    (host->service->swallows ? listener_plug : listener_unplug)(listener);
}

void host_open(struct host *host, const char *address)
{
    snprintf(host->address, sizeof host->address, "%s", address);
    host_listen(host);
}

/* All its requests and connections are lost, as with a killed process. */
static void host_kill(struct host *host)
{
    struct linger abort = {.l_onoff = 1, .l_linger = 0};
    host->killed = true;
    host_listen(host);
    while (host->conns != NULL) {
        (void)setsockopt(host->conns->source.fd, SOL_SOCKET, SO_LINGER, &abort, sizeof abort);
        conn_close(host->conns);
    }
    for (struct job *job = host->jobs, *next; job != NULL; job = next) {
        next = job->next;
        if (job->pending > 0) {
            job->forgotten = true;
        } else {
            job_free(job);
        }
    }
    host->busy = host->waiting = 0;
    host->first = NULL;
    host->last = &host->first;
}

static void host_revive(struct host *host)
{
    host->killed = false;
    host_listen(host);
}

static void hosts_kill(struct service *service, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < service->plan->hosts; i++) {
        bool down = i >= from && i < to;
        if (down && !service->host[i].killed) {
            host_kill(&service->host[i]);
        } else if (!down && service->host[i].killed) {
            host_revive(&service->host[i]);
        }
    }
}

void service_make(struct service *service, struct stage *stage, const struct scenario_service *plan, uint32_t seconds)
{
    *service = (struct service){.stage = stage,
                                .plan = plan,
                                .capacity_ppm = ALL,
                                .error_ppm = AS_PLANNED,
                                .hang_ppm = AS_PLANNED,
                                .host = must_calloc(plan->hosts, sizeof(struct host)),
                                .arrivals = must_calloc(seconds, sizeof(uint64_t)),
                                .good = must_calloc(seconds, sizeof(uint64_t)),
                                .failed = must_calloc(seconds, sizeof(uint64_t))};
    for (uint32_t i = 0; i < plan->hosts; i++) {
        service->host[i].service = service;
        service->host[i].number = i;
        service->host[i].last = &service->host[i].first;
    }
    while (plan->calls != NULL && plan->calls[service->calls] != NULL) {
        service->calls++;
    }
}

void service_turn(struct service *service, const struct scenario_fault *fault, bool on, becalm_ns since)
{
    switch (fault->kind) {
    case FAULT_CAPACITY:
        service->capacity_ppm = on ? fault->ppm : ALL;
        break;
    case FAULT_ERRORS:
        service->error_ppm = on ? fault->ppm : AS_PLANNED;
        break;
    case FAULT_DEAD:
        service->dead = on;
        break;
    case FAULT_LATENCY:
        service->latency = on ? fault->latency : 0;
        break;
    case FAULT_HANG:
        service->hang_ppm = on ? fault->ppm : AS_PLANNED;
        break;
    case FAULT_BAD_HOSTS:
        service->bad_hosts = on ? fault->count : 0;
        break;
    case FAULT_REFUSE:
        service->refuses = on;
        break;
    case FAULT_KILL_HOSTS:
        hosts_kill(service, 0, on ? fault->count : 0);
        break;
    case FAULT_ROLLING: {
        uint32_t host = on ? (uint32_t)(since / fault->each % service->plan->hosts) : service->plan->hosts;
        hosts_kill(service, host, host + 1);
        break;
    }
    case FAULT_PARTITION:
        service->cut = on;
        break;
    case FAULT_CUT_CALLERS:
    case FAULT_SURGE: /* the calls have it already */
    case FAULT_STORE:
    case FAULT_KILL_STORE:
    case FAULT_HANG_STORE:
    case FAULT_EMPTY_STORE:
    case FAULT_LOSE_CONNECTIONS: /* plan_check() has refused them */
        break;
    case FAULT_SWALLOW:
        service->swallows = on;
        break;
    }
    for (uint32_t i = 0; i < service->plan->hosts; i++) {
        host_listen(&service->host[i]);
        host_work(&service->host[i], stage_loop(service->stage)->now);
    }
}
