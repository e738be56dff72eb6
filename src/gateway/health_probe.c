/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "health_probe.h"

#include "container.h"

#include "h1/h1.h"
#include "origin/proxy_header.h"

#include <becalm/version.h>

#include <errno.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES  4096u
#define HEAD_BYTES  16384u /* of an answer by HTTP/1, with all before it */
#define GRPC_PREFIX 5u     /* of a message: compressed or not, and its length */
#define GRPC_BYTES  64u    /* of an answer's message: two are expected */
#define SERVING     1u

struct health_probe {
    struct wire wire; /* first */
    struct health_probe_plan plan;
    bool connected; /* and TLS is done */
    struct bytes head;
    nghttp2_session *h2; /* NULL: HTTP/1, or not yet */
    uint32_t status;
    bool grpc_told; /* grpc-status has come, with this number */
    uint32_t grpc_status;
    uint8_t message[GRPC_BYTES];
    size_t message_length;
    size_t sent; /* bytes of the question's body */
    bool over;   /* the verdict is this */
    struct health_verdict verdict;
};

static void probe_free(struct health_probe *probe)
{
    nghttp2_session_del(probe->h2);
    bytes_free(&probe->head);
    wire_free(&probe->wire);
    bytes_free(&probe->wire.out);
    loop_bury(probe->plan.loop, &probe->wire.source);
}

void health_probe_drop(struct health_probe *probe)
{
    if (probe != NULL) {
        probe_free(probe);
    }
}

static void verdict_set(struct health_probe *probe, const char *why, uint32_t status)
{
    if (!probe->over) {
        probe->over = true;
        probe->verdict = (struct health_verdict){why, status};
    }
}

static bool status_is_right(const struct health_probe *probe, uint32_t status)
{
    const uint64_t *set = probe->plan.check->status;
    return status < 640 && (set[status / 64] >> status % 64 & 1) != 0;
}

static void status_judge(struct health_probe *probe, uint32_t status)
{
    verdict_set(probe, status_is_right(probe, status) ? NULL : "its status is not one of healthCheck.statuses", status);
}

/* ---- HTTP/1 ---- */

static bool h1_ask(struct health_probe *probe)
{
    char text[2048];
    int length = snprintf(text, sizeof text,
                          "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: becalm/%s (health check)\r\nAccept: */*\r\n"
                          "Connection: close\r\n\r\n",
                          probe->plan.check->path, probe->plan.authority, becalm_version());
    struct iovec part = {.iov_base = text, .iov_len = (size_t)length};
    return length > 0 && (size_t)length < sizeof text && wire_write(&probe->wire, &part, 1) >= 0;
}

/* Its head is judged as that of any answer; interim ones are passed over. */
static void h1_hear(struct health_probe *probe, const char *bytes, size_t length)
{
    const struct h1_limits limits = {.head_bytes = HEAD_BYTES};
    struct head head;
    if (!bytes_add(&probe->head, bytes, length)) {
        verdict_set(probe, "no memory", 0);
        return;
    }
    while (!probe->over) {
        const char *at = bytes_at(&probe->head);
        size_t end = h1_head_end(at, bytes_left(&probe->head), 0);
        if (end == 0) {
            if (probe->head.length >= HEAD_BYTES) {
                verdict_set(probe, "its answer's head has no end", 0);
            }
            return;
        }
        if (h1_parse_answer(at, end, &limits, false, false, &head).kind != H1_OK) {
            verdict_set(probe, "its answer is not HTTP/1", 0);
        } else if (head.status < 200) {
            probe->head.from += (uint32_t)end;
        } else {
            status_judge(probe, head.status);
        }
    }
}

/* ---- HTTP/2 and gRPC ---- */

static bool is_grpc(const struct health_probe *probe)
{
    return probe->plan.check->kind == BECALM_HEALTH_CHECK_GRPC;
}

static bool is_name(const uint8_t *name, size_t length, const char *text)
{
    return length == strlen(text) && memcmp(name, text, length) == 0;
}

static uint32_t number_of(const uint8_t *value, size_t length)
{
    uint32_t number = 0;
    for (size_t i = 0; i < length && i < 4; i++) {
        number = value[i] >= '0' && value[i] <= '9' ? number * 10 + (value[i] - '0') : UINT32_MAX / 16;
    }
    return number;
}

static int on_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
                     const uint8_t *value, size_t length, uint8_t flags, void *self)
{
    struct health_probe *probe = self;
    (void)h2;
    (void)frame;
    (void)flags;
    if (is_name(name, name_length, ":status")) {
        probe->status = number_of(value, length);
    } else if (is_name(name, name_length, "grpc-status")) {
        probe->grpc_told = true;
        probe->grpc_status = number_of(value, length);
    }
    return 0;
}

static int on_data(nghttp2_session *h2, uint8_t flags, int32_t stream, const uint8_t *data, size_t length, void *self)
{
    struct health_probe *probe = self;
    size_t room = GRPC_BYTES - probe->message_length;
    size_t taken = length < room ? length : room;
    (void)h2;
    (void)flags;
    (void)stream;
    memcpy(probe->message + probe->message_length, data, taken);
    probe->message_length += taken;
    return 0;
}

/* HealthCheckResponse has one field, status, a varint with number 1. */
static void grpc_judge(struct health_probe *probe)
{
    const uint8_t *m = probe->message;
    bool message = probe->message_length >= GRPC_PREFIX + 2 && m[0] == 0 && m[GRPC_PREFIX] == 8;
    if (probe->status != 200 || !probe->grpc_told) {
        verdict_set(probe, "its answer is not gRPC", probe->status);
    } else if (probe->grpc_status != 0) {
        verdict_set(probe, "grpc-status is not 0", probe->grpc_status);
    } else {
        verdict_set(probe, message && m[GRPC_PREFIX + 1] == SERVING ? NULL : "it does not say SERVING", 0);
    }
}

static int on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *self)
{
    struct health_probe *probe = self;
    (void)h2;
    bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    bool ours = frame->hd.stream_id != 0 && (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA);
    if (ours && is_grpc(probe) && ends) {
        grpc_judge(probe);
    } else if (ours && !is_grpc(probe) && frame->hd.type == NGHTTP2_HEADERS && probe->status >= 200) {
        status_judge(probe, probe->status);
    }
    return 0;
}

static int on_close(nghttp2_session *h2, int32_t stream, uint32_t error, void *self)
{
    (void)h2;
    (void)stream;
    (void)error;
    verdict_set(self, "it ended its answer too early", 0);
    return 0;
}

/* HealthCheckRequest: the service's name, a text with number 1, behind the prefix of every message. */
static ssize_t question_read(nghttp2_session *h2, int32_t stream, uint8_t *buffer, size_t room, uint32_t *flags,
                             nghttp2_data_source *source, void *self)
{
    struct health_probe *probe = self;
    const char *name = probe->plan.check->grpc_service;
    size_t length = name == NULL ? 0 : strnlen(name, 127);
    uint8_t message[GRPC_PREFIX + 2 + 127] = {0};
    size_t total = GRPC_PREFIX + (length == 0 ? 0 : 2 + length);
    (void)h2;
    (void)stream;
    (void)source;
    if (length > 0) {
        message[GRPC_PREFIX - 1] = (uint8_t)(2 + length);
        message[GRPC_PREFIX] = 0x0a;
        message[GRPC_PREFIX + 1] = (uint8_t)length;
        memcpy(message + GRPC_PREFIX + 2, name, length);
    }
    size_t now = total - probe->sent < room ? total - probe->sent : room;
    memcpy(buffer, message + probe->sent, now);
    probe->sent += now;
    *flags |= probe->sent == total ? (uint32_t)NGHTTP2_DATA_FLAG_EOF : 0;
    return (ssize_t)now;
}

static nghttp2_nv field(const char *name, const char *value)
{
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
                        .value = (uint8_t *)(uintptr_t)value,
                        .namelen = strlen(name),
                        .valuelen = strlen(value)};
}

static bool h2_submit(struct health_probe *probe)
{
    char agent[64];
    const char *scheme = probe->plan.tls == NULL ? "http" : "https";
    snprintf(agent, sizeof agent, "becalm/%s (health check)", becalm_version());
    const nghttp2_nv get[] = {
        field(":method", "GET"), field(":scheme", scheme), field(":authority", probe->plan.authority),
        field(":path", probe->plan.check->path == NULL ? "/" : probe->plan.check->path), field("user-agent", agent)};
    const nghttp2_nv ask[] = {field(":method", "POST"),
                              field(":scheme", scheme),
                              field(":authority", probe->plan.authority),
                              field(":path", "/grpc.health.v1.Health/Check"),
                              field("content-type", "application/grpc"),
                              field("te", "trailers"),
                              field("user-agent", agent)};
    const nghttp2_data_provider body = {.read_callback = question_read};
    bool grpc = is_grpc(probe);
    return nghttp2_submit_settings(probe->h2, NGHTTP2_FLAG_NONE, NULL, 0) == 0 &&
           nghttp2_submit_request(probe->h2, NULL, grpc ? ask : get,
                                  grpc ? sizeof ask / sizeof *ask : sizeof get / sizeof *get, grpc ? &body : NULL,
                                  NULL) >= 0;
}

/* All that there is to say now. */
static bool h2_speak(struct health_probe *probe)
{
    const uint8_t *bytes;
    ssize_t length;
    while ((length = nghttp2_session_mem_send(probe->h2, &bytes)) > 0) {
        struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = (size_t)length};
        if (wire_write(&probe->wire, &part, 1) < 0) {
            return false;
        }
    }
    return length == 0;
}

static bool h2_ask(struct health_probe *probe)
{
    nghttp2_session_callbacks *callbacks = NULL;
    if (nghttp2_session_callbacks_new(&callbacks) != 0) {
        return false;
    }
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    bool made = nghttp2_session_client_new(&probe->h2, callbacks, probe) == 0;
    nghttp2_session_callbacks_del(callbacks);
    return made && h2_submit(probe) && h2_speak(probe);
}

static void h2_hear(struct health_probe *probe, const char *bytes, size_t length)
{
    ssize_t used = nghttp2_session_mem_recv(probe->h2, (const uint8_t *)bytes, length);
    if (used < 0) {
        verdict_set(probe, "it does not speak HTTP/2", 0);
    } else if (!probe->over && !h2_speak(probe)) {
        verdict_set(probe, "its connection broke", 0);
    }
}

/* ---- the connection ---- */

static bool speaks_h2(const struct health_probe *probe)
{
    return probe->plan.h2 || is_grpc(probe);
}

/* It is nobody's connection but ours. */
static bool introduce(const struct health_probe *probe)
{
    char header[PROXY_HEADER_WRITTEN];
    size_t length = proxy_header_write_local(probe->plan.introduces, header);
    return send(probe->wire.source.fd, header, length, MSG_NOSIGNAL) == (ssize_t)length;
}

/* The socket is connected: TLS comes first, where the host has it. True: it may speak now. */
static bool secure(struct health_probe *probe, uint32_t events)
{
    if (probe->wire.tls == NULL && (events & (EPOLLHUP | EPOLLERR)) != 0) {
        verdict_set(probe, "it does not accept connections", 0);
        return false;
    }
    if (probe->wire.tls == NULL && (events & EPOLLOUT) == 0) {
        return false;
    }
    if (probe->wire.tls == NULL && probe->plan.introduces > 0 && !introduce(probe)) {
        verdict_set(probe, "its connection broke", 0);
        return false;
    }
    if (probe->plan.tls == NULL) {
        return true;
    }
    if (probe->wire.tls == NULL &&
        !wire_tls_connect(&probe->wire, probe->plan.tls, speaks_h2(probe) ? WIRE_OFFERS_H2 : WIRE_OFFERS_H1,
                          probe->plan.room)) {
        verdict_set(probe, "no memory", 0);
        return false;
    }
    switch (wire_shake(&probe->wire)) {
    case WIRE_SHAKEN:
        return true;
    case WIRE_SHAKING:
        if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
            verdict_set(probe, "TLS with it failed", 0);
        }
        return false;
    case WIRE_UNSHAKEN:
    case WIRE_LOST:
        verdict_set(probe, "TLS with it failed", 0);
        return false;
    }
    return false;
}

static void ask(struct health_probe *probe)
{
    probe->connected = true;
    if (probe->plan.check->kind == BECALM_HEALTH_CHECK_TCP) {
        verdict_set(probe, NULL, 0);
    } else if (!(speaks_h2(probe) ? h2_ask(probe) : h1_ask(probe))) {
        verdict_set(probe, "its connection broke", 0);
    }
}

static void hear(struct health_probe *probe)
{
    char bytes[READ_BYTES];
    while (!probe->over && wire_readable(&probe->wire)) {
        ssize_t got = wire_read(&probe->wire, bytes, sizeof bytes);
        if (got == WIRE_LATER) {
            return;
        }
        if (got <= 0) {
            verdict_set(probe, "it closed the connection without an answer", 0);
        } else if (probe->h2 != NULL) {
            h2_hear(probe, bytes, (size_t)got);
        } else {
            h1_hear(probe, bytes, (size_t)got);
        }
    }
}

static void probe_ready(struct source *source, uint32_t events)
{
    struct health_probe *probe = CONTAINER_OF(source, struct health_probe, wire.source);
    wire_note(&probe->wire, events);
    if (!probe->connected && secure(probe, events)) {
        ask(probe);
    }
    if (probe->connected && !probe->over && wire_blocked(&probe->wire) && wire_write(&probe->wire, NULL, 0) < 0) {
        verdict_set(probe, "its connection broke", 0);
    }
    if (probe->connected) {
        hear(probe);
    }
    if (probe->over) {
        probe->plan.done(probe->plan.self, probe->verdict);
        probe_free(probe);
    }
}

struct health_probe *health_probe_begin(const struct health_probe_plan *plan)
{
    struct health_probe *probe = calloc(1, sizeof *probe);
    const union address_socket *to = plan->to;
    int on = 1;
    if (probe == NULL) {
        return NULL;
    }
    probe->plan = *plan;
    probe->wire.source.ready = probe_ready;
    probe->wire.source.fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (probe->wire.source.fd < 0) {
        free(probe);
        return NULL;
    }
    if (to->any.sa_family != AF_UNIX) {
        setsockopt(probe->wire.source.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    if ((connect(probe->wire.source.fd, &to->any, address_length(to)) != 0 && errno != EINPROGRESS) ||
        loop_watch(plan->loop, &probe->wire.source) != 0) {
        int error = errno;
        probe_free(probe);
        errno = error;
        return NULL;
    }
    return probe;
}
