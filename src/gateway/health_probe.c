/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "health_probe.h"

#include "container.h"

#include "h1/h1.h"
#include "h2/h2.h"
#include "origin/proxy_header.h"

#include <becalm/version.h>

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES   4096u
#define HEAD_BYTES   16384u         /* of an answer by HTTP/1, with all before it */
#define ANSWER_BYTES (1024u * 1024) /* of everything that a host says until its verdict */
#define GRPC_PREFIX  5u             /* of a message: compressed or not, and its length */
#define GRPC_BYTES   64u            /* of an answer's message: two are expected */
#define SERVING      1u

/* Room for the codec, and the question's place in it. */
struct h2_talk {
    struct h2_session *session;
    struct h2_stream *stream;
    struct h2_scratch scratch;
    char heads[2 * HEAD_BYTES + 64];
};

struct health_probe {
    struct wire wire; /* first */
    struct health_probe_plan plan;
    struct task task; /* goes on reading when others had their turn */
    bool connected;   /* and TLS is done */
    size_t heard;     /* bytes */
    struct bytes head;
    struct h2_talk *h2; /* NULL: HTTP/1, or not yet */
    uint32_t status;
    uint32_t grpc_status; /* BECALM_GRPC_NONE: none so far */
    uint8_t message[GRPC_BYTES];
    size_t message_length;
    bool over; /* the verdict is this */
    struct health_verdict verdict;
};

static void h2_forget(struct h2_talk *talk)
{
    if (talk != NULL) {
        h2_session_free(talk->session);
        free(talk);
    }
}

static void probe_free(struct health_probe *probe)
{
    loop_not_later(probe->plan.loop, &probe->task);
    h2_forget(probe->h2);
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

/* Judges the head of the answer; interim answers (1xx) are skipped. */
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

/* HealthCheckResponse has one field, status, a varint with number 1. */
static void grpc_judge(struct health_probe *probe)
{
    const uint8_t *m = probe->message;
    bool message = probe->message_length >= GRPC_PREFIX + 2 && m[0] == 0 && m[GRPC_PREFIX] == 8;
    if (probe->status != 200 || probe->grpc_status == BECALM_GRPC_NONE) {
        verdict_set(probe, "its answer is not gRPC", probe->status);
    } else if (probe->grpc_status != 0) {
        verdict_set(probe, "grpc-status is not 0", probe->grpc_status);
    } else {
        verdict_set(probe, message && m[GRPC_PREFIX + 1] == SERVING ? NULL : "it does not say SERVING", 0);
    }
}

static void on_answer(void *self, const struct head *head, bool end)
{
    struct health_probe *probe = self;
    probe->status = head->status;
    if (!is_grpc(probe) && head->status >= 200) {
        status_judge(probe, head->status);
    } else if (end) {
        probe->grpc_status = head_grpc_status(head);
    }
}

static void on_broken(void *self, const char *rule)
{
    (void)rule;
    verdict_set(self, "its answer breaks a rule", 0);
}

static void on_data(void *self, const char *bytes, size_t length)
{
    struct health_probe *probe = self;
    size_t room = GRPC_BYTES - probe->message_length;
    size_t taken = length < room ? length : room;
    memcpy(probe->message + probe->message_length, bytes, taken);
    probe->message_length += taken;
    h2_took(probe->h2->stream, length);
}

static void on_trailers(void *self, const char *bytes, size_t length)
{
    struct health_probe *probe = self;
    struct head trailers;
    if (length > 0 && h1_parse_metadata(bytes, length, &trailers).kind == H1_OK) {
        probe->grpc_status = head_grpc_status(&trailers);
    }
}

static void on_end(void *self)
{
    grpc_judge(self); /* any other answer was judged by its head */
}

static void on_closed(void *self, uint32_t code)
{
    (void)code;
    verdict_set(self, "it ended its answer too early", 0);
}

static void on_drained(void *self)
{
    (void)self; /* the request was written as a whole */
}

/* HealthCheckRequest: the service's name, a text with number 1, behind the prefix of every message. */
static size_t question_put(const struct health_probe *probe, char message[GRPC_PREFIX + 2 + 127])
{
    const char *name = probe->plan.check->grpc_service;
    size_t length = name == NULL ? 0 : strnlen(name, 127);
    memset(message, 0, GRPC_PREFIX);
    if (length == 0) {
        return GRPC_PREFIX;
    }
    message[GRPC_PREFIX - 1] = (char)(2 + length);
    message[GRPC_PREFIX] = 0x0a;
    message[GRPC_PREFIX + 1] = (char)length;
    memcpy(message + GRPC_PREFIX + 2, name, length);
    return GRPC_PREFIX + 2 + length;
}

static struct becalm_text text_of(const char *text)
{
    return (struct becalm_text){text, strlen(text)};
}

static bool h2_submit(struct health_probe *probe)
{
    char message[GRPC_PREFIX + 2 + 127];
    char agent[64];
    struct draft draft;
    bool grpc = is_grpc(probe);
    const char *path = probe->plan.check->path == NULL ? "/" : probe->plan.check->path;
    snprintf(agent, sizeof agent, "becalm/%s (health check)", becalm_version());
    draft_begin(&draft, NULL, 0);
    draft.method = text_of(grpc ? "POST" : "GET");
    draft.authority = text_of(probe->plan.authority);
    draft.path = text_of(grpc ? "/grpc.health.v1.Health/Check" : path);
    draft.te_trailers = grpc;
    if (grpc) {
        draft_add_chars(&draft, "content-type", "application/grpc");
    }
    draft_add_chars(&draft, "user-agent", agent);
    probe->h2->stream = h2_request(probe->h2->session, &draft, !grpc, probe);
    if (probe->h2->stream == NULL || !grpc) {
        return probe->h2->stream != NULL;
    }
    bool said = h2_data(probe->h2->stream, message, question_put(probe, message));
    h2_end(probe->h2->stream, NULL);
    return said;
}

/* Writes all frames that the session has to send. */
static bool h2_speak(struct health_probe *probe)
{
    char bytes[H2_WRITE_MIN];
    size_t length;
    while ((length = h2_write(probe->h2->session, bytes, sizeof bytes)) > 0) {
        struct iovec part = {.iov_base = bytes, .iov_len = length};
        if (wire_write(&probe->wire, &part, 1) < 0) {
            return false;
        }
    }
    return true;
}

static bool h2_ask(struct health_probe *probe)
{
    static const struct h2_calls calls = {
        .answer = on_answer,
        .broken = on_broken,
        .data = on_data,
        .trailers = on_trailers,
        .end = on_end,
        .drained = on_drained,
        .closed = on_closed,
    };
    const struct h2_limits limits = {
        .streams = 1, .window = 65536, .head_bytes = HEAD_BYTES, .secure = probe->plan.tls != NULL};
    struct h2_talk *talk = malloc(sizeof *talk);
    if (talk == NULL) {
        return false;
    }
    talk->scratch = (struct h2_scratch){.bytes = talk->heads, .size = sizeof talk->heads};
    talk->session = h2_session_new(H2_CLIENT, &limits, &calls, probe, &talk->scratch);
    if (talk->session == NULL) {
        free(talk);
        return false;
    }
    probe->h2 = talk;
    return h2_submit(probe) && h2_speak(probe);
}

static void h2_hear(struct health_probe *probe, const char *bytes, size_t length)
{
    if (!h2_feed(probe->h2->session, bytes, length, probe->plan.loop->now)) {
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

/* The PROXY protocol header says LOCAL: the gateway itself is the client. */
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
    for (int turn = 0; !probe->over && wire_readable(&probe->wire); turn++) {
        if (turn == WIRE_TURN) {
            loop_later(probe->plan.loop, &probe->task);
            return;
        }
        ssize_t got = wire_read(&probe->wire, bytes, sizeof bytes);
        if (got == WIRE_LATER) {
            return;
        }
        probe->heard += got > 0 ? (size_t)got : 0;
        if (probe->heard > ANSWER_BYTES) {
            verdict_set(probe, "its answer is too long", 0);
        } else if (got <= 0) {
            verdict_set(probe, "it closed the connection without an answer", 0);
        } else if (probe->h2 != NULL) {
            h2_hear(probe, bytes, (size_t)got);
        } else {
            h1_hear(probe, bytes, (size_t)got);
        }
    }
}

static void end_if_over(struct health_probe *probe)
{
    if (probe->over) {
        probe->plan.done(probe->plan.self, probe->verdict);
        probe_free(probe);
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
    end_if_over(probe);
}

static void go_on(struct task *task)
{
    struct health_probe *probe = CONTAINER_OF(task, struct health_probe, task);
    hear(probe);
    end_if_over(probe);
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
    probe->grpc_status = BECALM_GRPC_NONE;
    probe->wire.source.ready = probe_ready;
    probe->task.run = go_on;
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
