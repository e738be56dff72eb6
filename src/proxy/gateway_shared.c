/* SPDX-License-Identifier: MIT */
#include "gateway_shared.h"

#include "message/answer_head.h"

#include <stdio.h>
#include <string.h>

void gateway_name(struct gateway *gateway, const unsigned char random[GATEWAY_ID_BYTES])
{
    for (size_t i = 0; i < GATEWAY_ID_BYTES; i++) {
        snprintf(gateway->id + 2 * i, 3, "%02x", random[i]);
    }
    int length = snprintf(gateway->via, sizeof gateway->via, "%s (%s)", answer_head_via(HTTP_1_1), gateway->id);
    gateway->via_length = (size_t)length;
}

struct snapshot *gateway_snapshot(struct gateway *gateway)
{
    pthread_mutex_lock(&gateway->lock);
    struct snapshot *snapshot = gateway->snapshot;
    snapshot_use(snapshot);
    pthread_mutex_unlock(&gateway->lock);
    return snapshot;
}

void gateway_wake(struct gateway *gateway, uint64_t workers)
{
    for (; workers != 0; workers &= workers - 1) {
        worker_order(&gateway->worker[__builtin_ctzll(workers)], WORKER_SERVE);
    }
}

void gateway_order_all(struct gateway *gateway, unsigned orders)
{
    for (uint32_t i = 0; i < gateway->worker_count; i++) {
        worker_order(&gateway->worker[i], orders);
    }
}

/* The log line about a host that no service names. */
struct stranger_line {
    enum becalm_log_level level;
    const char *message;
    const char *remedy;
};

static void tell_stranger(struct worker *worker, struct strangers *strangers, const struct stranger_line *line,
                          struct becalm_text host, struct becalm_text peer)
{
    static const char many[] = "/api/state lists this host and those before; no further host is logged";
    enum stranger_news news = strangers_note(strangers, host);
    if (news == STRANGER_KNOWN) {
        return;
    }
    const char *what = news == STRANGER_NEW ? line->remedy : many;
    struct log_pair pairs[] = {
        {.key = "host", .type = LOG_TEXT, .text = host},
        {.key = "client", .type = LOG_TEXT, .text = peer},
        {.key = "remedy", .type = LOG_TEXT, .text = {what, strlen(what)}},
    };
    log_line(worker->log, line->level, worker->loop.wall, line->message, pairs, sizeof pairs / sizeof pairs[0]);
}

void gateway_unrouted(struct worker *worker, struct becalm_text host, struct becalm_text peer)
{
    static const struct stranger_line line = {BECALM_LOG_WARN, "no service matches a request, which gets 404",
                                              "name it in match.host of a service"};
    atomic_fetch_add_explicit(&worker->gateway->unrouted, 1, memory_order_relaxed);
    tell_stranger(worker, &worker->gateway->strangers, &line, host, peer);
}

void gateway_passed(struct worker *worker, struct becalm_text host, struct becalm_text peer)
{
    static const struct stranger_line line = {BECALM_LOG_INFO, "a request is passed on to a host that no service names",
                                              "give it a service of its own, with a budget and a breaker"};
    atomic_fetch_add_explicit(&worker->gateway->passed, 1, memory_order_relaxed);
    tell_stranger(worker, &worker->gateway->passed_hosts, &line, host, peer);
}

void gateway_count_refusal(struct gateway *gateway, uint32_t status)
{
    uint32_t hundreds = status / 100 < 6 ? status / 100 : 5;
    atomic_fetch_add_explicit(&gateway->refused[hundreds], 1, memory_order_relaxed);
}

void gateway_count_h2_end(struct gateway *gateway, enum h2_end end)
{
    atomic_fetch_add_explicit(&gateway->h2_ends[end], 1, memory_order_relaxed);
}

void gateway_count_h2_host_end(struct gateway *gateway, enum h2_end end)
{
    atomic_fetch_add_explicit(&gateway->h2_host_ends[end], 1, memory_order_relaxed);
}

void gateway_count_bound(struct gateway *gateway, enum metrics_bound bound)
{
    atomic_fetch_add_explicit(&gateway->bounds[bound], 1, memory_order_relaxed);
}

void gateway_breaker_moved(struct worker *worker, const struct snapshot_target *target, enum becalm_breaker_state from,
                           enum becalm_breaker_state to)
{
    const char *endpoint = target->endpoint == NULL ? NULL : target->endpoint->name;
    struct log_pair pairs[] = {
        {.key = "service", .type = LOG_TEXT, .text = {target->service->name, strlen(target->service->name)}},
        {.key = "endpoint", .type = LOG_TEXT, .text = {endpoint, endpoint == NULL ? 0 : strlen(endpoint)}},
        {.key = "from", .type = LOG_TEXT, .text = {becalm_breaker_word(from), strlen(becalm_breaker_word(from))}},
        {.key = "to", .type = LOG_TEXT, .text = {becalm_breaker_word(to), strlen(becalm_breaker_word(to))}},
    };
    log_line(worker->log, BECALM_LOG_DEBUG, worker->loop.wall, "breaker moved", pairs, sizeof pairs / sizeof pairs[0]);
}

enum becalm_mark_kind gateway_mark(enum becalm_role role, enum becalm_mark_kind mark)
{
    bool sidecar = role == BECALM_ROLE_SIDECAR;
    return mark == BECALM_MARK_OVERLOADED && sidecar ? BECALM_MARK_OVERLOADED_HOST : mark;
}

void gateway_tell_once(struct worker *worker, enum gateway_once what, const char *message, const char *remedy,
                       struct becalm_text peer)
{
    uint32_t bit = UINT32_C(1) << what;
    if ((atomic_fetch_or_explicit(&worker->gateway->told, bit, memory_order_relaxed) & bit) != 0) {
        return;
    }
    struct log_pair pairs[] = {
        {.key = "client", .type = LOG_TEXT, .text = peer},
        {.key = "remedy", .type = LOG_TEXT, .text = {remedy, strlen(remedy)}},
    };
    log_line(worker->log, BECALM_LOG_WARN, worker->loop.wall, message, pairs, sizeof pairs / sizeof pairs[0]);
}
