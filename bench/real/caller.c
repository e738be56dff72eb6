/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE

#include "caller.h"

#include <fcntl.h>

enum { ANSWER_MAX = 16384, REQUEST_MAX = 512 };

struct caller_conn {
    struct source source; /* first: the loop frees it */
    struct caller *caller;
    struct caller_conn *next_idle;
    struct ask *ask; /* NULL: idle */
    char in[ANSWER_MAX + 1];
    size_t in_length;
};

const char *header_find(const char *head, const char *name, size_t *length)
{
    char line[64];
    snprintf(line, sizeof line, "\r\n%s:", name);
    const char *found = strcasestr(head, line);
    if (found == NULL) {
        return NULL;
    }
    found += strlen(line);
    found += strspn(found, " ");
    *length = strcspn(found, "\r\n");
    return found;
}

static void idle_leave(struct caller_conn *conn)
{
    struct caller_conn **at = &conn->caller->idle;
    while (*at != NULL && *at != conn) {
        at = &(*at)->next_idle;
    }
    if (*at != NULL) {
        *at = conn->next_idle;
    }
}

/* The connection is gone, and with it an answer that was due. */
static void conn_end(struct caller_conn *conn)
{
    struct ask *ask = conn->ask;
    idle_leave(conn);
    loop_bury(conn->caller->loop, &conn->source);
    if (ask != NULL) {
        ask->done(ask, 0, "");
    }
}

/* An answer is whole: its head ends at `end`. */
static void conn_answered(struct caller_conn *conn)
{
    struct ask *ask = conn->ask;
    unsigned status = (unsigned)strtoul(conn->in + strlen("HTTP/1.1 "), NULL, 10);
    char mark[MARK_MAX] = "";
    size_t length = 0;
    const char *found = header_find(conn->in, "becalm-retry", &length);
    if (found != NULL && length < sizeof mark) {
        memcpy(mark, found, length);
    }
    found = header_find(conn->in, "connection", &length);
    conn->ask = NULL;
    conn->in_length = 0;
    if (found != NULL && strncasecmp(found, "close", length) == 0) {
        loop_bury(conn->caller->loop, &conn->source);
    } else {
        conn->next_idle = conn->caller->idle;
        conn->caller->idle = conn;
    }
    ask->done(ask, status, mark);
}

/* Is there all of an answer? */
static bool answer_is_whole(struct caller_conn *conn)
{
    size_t length;
    conn->in[conn->in_length] = '\0';
    const char *end = strstr(conn->in, "\r\n\r\n");
    if (end == NULL) {
        return false;
    }
    const char *said = header_find(conn->in, "content-length", &length);
    if (said == NULL || said > end) {
        fprintf(stderr, "stage: an answer without a length:\n%s\n", conn->in);
        exit(1);
    }
    return conn->in_length >= (size_t)(end - conn->in) + 4 + strtoul(said, NULL, 10);
}

static void conn_ready(struct source *source)
{
    struct caller_conn *conn = (struct caller_conn *)source;
    ssize_t got = recv(source->fd, conn->in + conn->in_length, ANSWER_MAX - conn->in_length, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) {
        return;
    }
    if (got <= 0 || conn->ask == NULL) {
        conn_end(conn);
        return;
    }
    conn->in_length += (size_t)got;
    if (answer_is_whole(conn)) {
        conn_answered(conn);
    }
}

/* NULL: the proxy does not listen, or no descriptor is left. */
static struct caller_conn *conn_take(struct caller *caller)
{
    struct caller_conn *conn = caller->idle;
    if (conn != NULL) {
        caller->idle = conn->next_idle;
        return conn;
    }
    int fd = socket_connect(&caller->to);
    if (fd < 0) {
        return NULL;
    }
    conn = must_calloc(1, sizeof *conn);
    conn->source = (struct source){.fd = fd, .ready = conn_ready};
    conn->caller = caller;
    loop_watch(caller->loop, &conn->source);
    return conn;
}

void caller_ask(struct caller *caller, struct ask *ask, const struct question *question)
{
    char text[REQUEST_MAX];
    char deadline[64] = "";
    struct caller_conn *conn = conn_take(caller);
    if (conn == NULL) {
        ask->done(ask, 0, "");
        return;
    }
    if (question->deadline_at != BECALM_NEVER) {
        becalm_ns left = question->deadline_at > caller->loop->now ? question->deadline_at - caller->loop->now : 0;
        snprintf(deadline, sizeof deadline, "x-request-deadline-ms: %llu\r\n", (unsigned long long)(left / BECALM_MS));
    }
    int length = snprintf(text, sizeof text, "GET /%s HTTP/1.1\r\nhost: stage\r\nx-client-id: %s\r\n%s\r\n",
                          question->service, caller->name, deadline);
    conn->ask = ask;
    if (socket_send(conn->source.fd, text, (size_t)length) != length) { /* an idle socket takes so little at once */
        conn_end(conn);
    }
}
