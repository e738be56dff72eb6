/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "caller.h"

#include "container.h"
#include "h1/h1.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUT_MAX 512u
#define IN_MAX  8192u

struct caller_conn {
    struct source source; /* first */
    struct caller *caller;
    struct caller_conn *next; /* of all */
    struct caller_conn **link;
    struct caller_conn *next_idle;
    struct caller_call *call; /* NULL: idle */
    char out[OUT_MAX];
    size_t out_length;
    size_t sent;
    char in[IN_MAX]; /* the head as far as it has come; then pieces of the body */
    size_t in_length;
    bool has_head;
    bool keep;
    uint32_t status;
    char mark[CALLER_WORD_MAX];
    size_t mark_length;
    struct h1_body body;
};

static void conn_close(struct caller_conn *conn)
{
    struct caller *caller = conn->caller;
    for (struct caller_conn **idle = &caller->idle; *idle != NULL; idle = &(*idle)->next_idle) {
        if (*idle == conn) {
            *idle = conn->next_idle;
            break;
        }
    }
    *conn->link = conn->next;
    if (conn->next != NULL) {
        conn->next->link = conn->link;
    }
    caller->count--;
    loop_bury(caller->loop, &conn->source);
}

/* The call has its answer, or will never have one. */
static void finish(struct caller_conn *conn, bool whole)
{
    struct caller_call *call = conn->call;
    struct caller_answer answer = {.status = whole ? conn->status : 0};
    char mark[CALLER_WORD_MAX];
    if (whole && conn->mark_length > 0) {
        memcpy(mark, conn->mark, conn->mark_length);
        answer.mark = (struct becalm_text){mark, conn->mark_length};
    }
    conn->call = NULL;
    if (whole && conn->keep) {
        conn->next_idle = conn->caller->idle;
        conn->caller->idle = conn;
    } else {
        conn_close(conn);
    }
    call->conn = NULL;
    call->done(call, &answer);
}

/* False: the connection is of no use any more. */
static bool flush(struct caller_conn *conn)
{
    while (conn->sent < conn->out_length) {
        ssize_t sent = send(conn->source.fd, conn->out + conn->sent, conn->out_length - conn->sent, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) {
            return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOTCONN;
        }
        conn->sent += sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

static void take_head(struct caller_conn *conn, const struct head *head)
{
    struct becalm_text mark = head_find(head, FIELD_BECALM_RETRY);
    conn->has_head = true;
    conn->status = head->status;
    conn->keep = head->keep_alive;
    conn->mark_length = mark.at != NULL && mark.length <= sizeof conn->mark ? mark.length : 0;
    if (conn->mark_length > 0) {
        memcpy(conn->mark, mark.at, mark.length);
    }
    h1_body_init(&conn->body, head);
    conn->in_length -= head->length;
    memmove(conn->in, conn->in + head->length, conn->in_length);
}

/* The state of an answer: wait for more bytes, it is whole, or the connection is unusable. */
enum look { LOOK_MORE, LOOK_WHOLE, LOOK_BAD };

static enum look look(struct caller_conn *conn)
{
    if (!conn->has_head) {
        struct head head;
        struct h1_limits limits = {.head_bytes = IN_MAX};
        size_t length = h1_head_end(conn->in, conn->in_length, 0);
        if (length == 0) {
            return conn->in_length < IN_MAX ? LOOK_MORE : LOOK_BAD;
        }
        if (h1_parse_answer(conn->in, length, &limits, false, false, &head).kind != H1_OK) {
            return LOOK_BAD;
        }
        take_head(conn, &head);
    }
    const char *at = conn->in;
    while (!conn->body.ended) {
        struct h1_piece piece = h1_body_next(&conn->body, &at, conn->in + conn->in_length);
        if (piece.kind == H1_PIECE_BAD) {
            return LOOK_BAD;
        }
        if (piece.kind == H1_PIECE_NONE) {
            conn->in_length = 0; /* of a body nothing is kept */
            return LOOK_MORE;
        }
        if (piece.kind == H1_PIECE_END) {
            break;
        }
    }
    return LOOK_WHOLE;
}

static void ready(struct source *source, uint32_t events)
{
    struct caller_conn *conn = CONTAINER_OF(source, struct caller_conn, source);
    if (conn->call == NULL) {
        if ((events & ~(uint32_t)EPOLLOUT) != 0) { /* no request is in progress: the connection ends */
            conn_close(conn);
        }
        return;
    }
    if (!flush(conn)) {
        finish(conn, false);
        return;
    }
    for (;;) {
        ssize_t got = recv(conn->source.fd, conn->in + conn->in_length, IN_MAX - conn->in_length, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOTCONN)) {
            return;
        }
        if (got <= 0) {
            finish(conn, false);
            return;
        }
        conn->in_length += (size_t)got;
        switch (look(conn)) {
        case LOOK_MORE:
            break;
        case LOOK_BAD:
            finish(conn, false);
            return;
        case LOOK_WHOLE:
            conn->keep = conn->keep && (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) == 0;
            finish(conn, true);
            return;
        }
    }
}

static struct caller_conn *conn_open(struct caller *caller)
{
    int on = 1;
    struct caller_conn *conn = caller->count < caller->count_max ? calloc(1, sizeof *conn) : NULL;
    if (conn == NULL) {
        return NULL;
    }
    conn->source.fd = socket(caller->to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    conn->source.ready = ready;
    conn->caller = caller;
    if (conn->source.fd < 0) {
        free(conn);
        return NULL;
    }
    setsockopt(conn->source.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if ((connect(conn->source.fd, &caller->to.any, address_length(&caller->to)) != 0 && errno != EINPROGRESS) ||
        loop_watch(caller->loop, &conn->source) != 0) {
        close(conn->source.fd);
        free(conn);
        return NULL;
    }
    conn->next = caller->conns;
    conn->link = &caller->conns;
    if (conn->next != NULL) {
        conn->next->link = &conn->next;
    }
    caller->conns = conn;
    caller->count++;
    return conn;
}

bool caller_ask(struct caller *caller, struct caller_call *call, const struct caller_request *request)
{
    struct caller_conn *conn = caller->idle;
    bool deadline = request->deadline != NULL && request->deadline[0] != '\0';
    if (conn != NULL) {
        caller->idle = conn->next_idle;
    } else {
        conn = conn_open(caller);
    }
    if (conn == NULL) {
        return false;
    }
    conn->call = call;
    conn->has_head = false;
    conn->in_length = 0;
    conn->sent = 0;
    conn->out_length = (size_t)snprintf(conn->out, sizeof conn->out, "GET / HTTP/1.1\r\nhost: %s\r\n%s%s%s\r\n",
                                        request->service, deadline ? "x-request-deadline-ms: " : "",
                                        deadline ? request->deadline : "", deadline ? "\r\n" : "");
    BECALM_ASSERT(conn->out_length < sizeof conn->out);
    call->conn = conn;
    (void)flush(conn); /* an error will be reported as an event */
    return true;
}

void caller_cancel(struct caller_call *call)
{
    if (call->conn != NULL) {
        call->conn->call = NULL;
        conn_close(call->conn);
        call->conn = NULL;
    }
}

void caller_init(struct caller *caller, struct loop *loop, const union address_socket *to, uint32_t connections_max)
{
    *caller = (struct caller){.loop = loop, .to = *to, .count_max = connections_max};
}

void caller_close(struct caller *caller)
{
    while (caller->conns != NULL) {
        if (caller->conns->call != NULL) {
            caller->conns->call->conn = NULL;
        }
        conn_close(caller->conns);
    }
}
