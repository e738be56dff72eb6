/* SPDX-License-Identifier: MIT */
#include "exchange_script.h"

#include "exchange_lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void (*exchange_script_fail)(uint32_t after);

#define POLICY(more, key)                                                                                          \
    "connect: on\nidleTimeout: 2s\nreplay: {perRequest: 8192B, total: 64KiB}\nmaxBuffered: 1MiB\nmaxConnections: " \
    "8\n" more "services:\n"                                                                                       \
    "  x:\n"                                                                                                       \
    "    hosts: ['%s', '%s']\n"                                                                                    \
    "    match: {prefix: /}\n"                                                                                     \
    "    limit: {kind: fixed, max: 2}\n"                                                                           \
    "    gate: {targetQueueTime: 1s, maxQueueTime: 5s}\n"                                                          \
    "    endpoints:\n"                                                                                             \
    "      charge: {match: {path: /charge}, idempotencyKey: " key "}\n"                                            \
    "      stream: {match: {path: /stream}, replay: false}\n"                                                      \
    "      hedge: {match: {path: /hedge}, hedge: {enabled: true, delay: 20ms, percent: 100, cap: 100}}\n"

static const char *const policies[] = {
    POLICY("", "required"),
    POLICY("explain: true\n", "enforced"),
};

#define UPGRADE                                                                                          \
    " HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n" \
    "Sec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\n\r\n"

static const char *const requests[] = {
    "GET /a HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /a HTTP/1.0\r\n\r\n",
    "HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /hedge HTTP/1.1\r\nHost: x\r\n\r\n",
    "POST /charge HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 2\r\n\r\n5e",
    "POST /charge HTTP/1.1\r\nHost: x\r\nIdempotency-Key: l\r\nContent-Length: 2\r\n\r\n7",
    "POST /stream HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    "POST /stream HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
    "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhell",
    "GET /ws" UPGRADE,
    "CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n",
    "5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
};

static const char *const answers[] = {
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n",
    "HTTP/1.1 503 Busy\r\nContent-Length: 5\r\n\r\nsorry",
    "HTTP/1.1 503 Busy\r\nContent-Length: 5\r\nRetry-After: 1\r\n\r\nso",
    "HTTP/1.1 204 No Content\r\n\r\n",
    "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\x02hi",
    "HTTP/1.0 200 OK\r\n\r\nuntil I close",
    "0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

struct script {
    const uint8_t *at;
    const uint8_t *end;
};

static uint32_t next(struct script *script)
{
    return script->at < script->end ? *script->at++ : 0;
}

/* Some of the script's own bytes, often twice a socket's buffer. */
static size_t read_bytes(struct script *script, char *text, size_t size)
{
    size_t length = next(script);
    if (length >= 200) {
        memset(text, 'x', size);
        return length >= 250 ? size : length;
    }
    size_t left = (size_t)(script->end - script->at);
    length = length < left ? length : left;
    memcpy(text, script->at, length);
    script->at += length;
    return length;
}

static uint32_t pick(struct script *script, uint32_t count)
{
    return count == 0 ? 0 : 1 + next(script) % count;
}

static void someone_speaks(struct lab *lab, struct script *script, bool is_client)
{
    static char text[300u * 1024];
    uint32_t who = pick(script, is_client ? lab->clients : lab->hosts);
    size_t length = read_bytes(script, text, sizeof text);
    if (is_client) {
        lab_client_says_bytes(lab, who, text, length);
    } else {
        lab_host_says_bytes(lab, who, text, length);
    }
}

static void step(struct lab *lab, struct script *script)
{
    static const becalm_ns times[] = {BECALM_MS, 20 * BECALM_MS, 150 * BECALM_MS,
                                      BECALM_S,  3 * BECALM_S,   20 * BECALM_S};
    uint32_t who;
    switch (next(script) % 18) {
    case 0:
        lab_client(lab);
        break;
    case 1:
    case 2:
    case 3:
        who = pick(script, lab->clients);
        lab_client_says(lab, who, requests[next(script) % COUNT(requests)]);
        break;
    case 4:
    case 5:
    case 6:
        who = pick(script, lab->hosts);
        lab_host_says(lab, who, answers[next(script) % COUNT(answers)]);
        break;
    case 7:
        someone_speaks(lab, script, true);
        break;
    case 8:
        someone_speaks(lab, script, false);
        break;
    case 9:
        lab_client_goes(lab, pick(script, lab->clients));
        break;
    case 10:
        lab_host_goes(lab, pick(script, lab->hosts));
        break;
    case 11:
        lab_client_leaves(lab, pick(script, lab->clients));
        break;
    case 12:
        lab_host_leaves(lab, pick(script, lab->hosts));
        break;
    case 13:
    case 14:
        lab_pass(lab, times[next(script) % COUNT(times)]);
        break;
    case 15:
        who = next(script);
        lab_pause(lab, who % 2 == 0, pick(script, who % 2 == 0 ? lab->clients : lab->hosts));
        break;
    case 16:
        who = next(script);
        if (who < 8) {
            lab_reload(lab, policies[who % COUNT(policies)]);
        } else if (who < 10) {
            gateway_order_all(lab->gateway, WORKER_DRAIN);
        }
        break;
    case 17:
        if (exchange_script_fail != NULL) {
            exchange_script_fail(next(script) % 16);
        }
        break;
    }
}

static void expect_none(const struct lab *lab, const char *what, uint64_t left)
{
    if (left != 0) {
        fprintf(stderr, "exchange_script: %s: %llu left\n%s", what, (unsigned long long)left, lab->trace);
        abort();
    }
}

/* All clients and hosts have gone, and all exchanges have ended. */
static void check_clean(const struct lab *lab)
{
    const struct gateway *gateway = lab->gateway;
    const struct worker *worker = lab->worker;
    expect_none(lab, "clients", worker->clients != NULL);
    expect_none(lab, "exchanges", atomic_load_explicit(&worker->exchange_count, memory_order_relaxed));
    expect_none(lab, "calls without a client", worker->orphans != NULL);
    expect_none(lab, "bytes that wait", atomic_load_explicit(&gateway->buffered, memory_order_relaxed));
    expect_none(lab, "bytes for retries", atomic_load_explicit(&gateway->replay_bytes, memory_order_relaxed));
    expect_none(lab, "tunnels", atomic_load_explicit(&gateway->tunnels, memory_order_relaxed));
    expect_none(lab, "connections", atomic_load_explicit(&gateway->connections, memory_order_relaxed));
    expect_none(lab, "old views", worker->view->next != NULL);
    expect_none(lab, "calls of the view", worker->view->calls);
    for (uint32_t i = 0; i < worker->view->snapshot->target_count; i++) {
        const struct meter *meter = worker->view->snapshot->target[i].meters->meter[0];
        expect_none(lab, "attempts in flight", atomic_load_explicit(&meter->in_flight, memory_order_relaxed));
        expect_none(lab, "calls in progress", atomic_load_explicit(&meter->active, memory_order_relaxed));
        expect_none(lab, "answers in progress", atomic_load_explicit(&meter->answers, memory_order_relaxed));
    }
}

void exchange_script_run(const uint8_t *bytes, size_t length)
{
    static struct lab lab;
    struct script script = {bytes, bytes + length};
    if (!lab_open(&lab, policies[0])) {
        abort();
    }
    while (script.at < script.end) {
        step(&lab, &script);
    }
    if (exchange_script_fail != NULL) {
        exchange_script_fail(UINT32_MAX);
    }
    for (uint32_t i = 1; i <= lab.clients; i++) {
        lab_client_goes(&lab, i);
    }
    lab_pass(&lab, 60 * BECALM_S); /* attempts whose calls hold a key end by their timeouts */
    check_clean(&lab);
    lab_close(&lab);
}
