/* SPDX-License-Identifier: MIT */
/* The service behind every gateway of the race: GET /200, /4096 and /65536 are answered with as many bytes, from memory
 * and at once, on connections that stay open. One thread; two system calls per request. */
#define _GNU_SOURCE

#include "sockets.h"

enum { HEAD_BYTES_MAX = 4096, SIZES = 3, ANSWER_HEAD_MAX = 256 };

static const unsigned sizes[SIZES] = {200, 4096, 65536};

struct answer {
    char path[16]; /* with the blank that ends it */
    char *bytes;
    size_t length;
};

/* One connection, at the index of its descriptor. */
struct connection {
    const char *rest; /* of the answer that did not fit into the socket */
    size_t rest_length;
    char *head; /* HEAD_BYTES_MAX, kept for the next connection with this descriptor */
    size_t head_length;
};

struct backend {
    int poll;
    int listener;
    struct connection *connection; /* as many as descriptors_raise() says that there can be */
    struct answer answer[SIZES];
};

static struct answer answer_make(unsigned size)
{
    struct answer answer;
    snprintf(answer.path, sizeof answer.path, "/%u ", size);
    answer.bytes = must_calloc(1, ANSWER_HEAD_MAX + size);
    int head = snprintf(answer.bytes, ANSWER_HEAD_MAX,
                        "HTTP/1.1 200 OK\r\n"
                        "Server: backend\r\n"
                        "Date: Mon, 01 Jan 2024 00:00:00 GMT\r\n"
                        "Content-Type: text/plain\r\n"
                        "Content-Length: %u\r\n\r\n",
                        size);
    for (unsigned i = 0; i < size; i++) {
        answer.bytes[(unsigned)head + i] = (char)('a' + i % 26);
    }
    answer.length = (size_t)head + size;
    return answer;
}

/* The answer for a request head; NULL: there is none for its path. */
static const struct answer *answer_find(const struct backend *b, const char *head, size_t length)
{
    for (size_t i = 0; i < SIZES; i++) {
        size_t path = strlen(b->answer[i].path);
        if (length > 4 + path && memcmp(head, "GET ", 4) == 0 && memcmp(head + 4, b->answer[i].path, path) == 0) {
            return &b->answer[i];
        }
    }
    return NULL;
}

static void connection_close(struct backend *b, int fd)
{
    b->connection[fd].rest_length = 0;
    b->connection[fd].head_length = 0;
    close(fd); /* which takes it out of the epoll set */
}

/* Sends the rest of an answer and waits for the socket if not all bytes fit. False: the connection is broken. */
static bool answer_send(struct backend *b, int fd, const char *bytes, size_t length)
{
    struct connection *c = &b->connection[fd];
    bool waited = c->rest_length > 0;
    ssize_t sent = socket_send(fd, bytes, length);
    if (sent < 0) {
        return false;
    }
    c->rest = bytes + sent;
    c->rest_length = length - (size_t)sent;
    if (waited != (c->rest_length > 0)) {
        poll_set(b->poll, EPOLL_CTL_MOD, fd, c->rest_length > 0 ? EPOLLOUT : EPOLLIN);
    }
    return true;
}

/* Answers every whole head that has arrived, as long as the socket takes the answers. */
static bool heads_answer(struct backend *b, int fd)
{
    struct connection *c = &b->connection[fd];
    while (c->rest_length == 0) {
        const char *end = memmem(c->head, c->head_length, "\r\n\r\n", 4);
        if (end == NULL) {
            return c->head_length < HEAD_BYTES_MAX;
        }
        size_t used = (size_t)(end - c->head) + 4;
        const struct answer *answer = answer_find(b, c->head, used);
        if (answer == NULL || !answer_send(b, fd, answer->bytes, answer->length)) {
            return false;
        }
        c->head_length -= used;
        memmove(c->head, c->head + used, c->head_length);
    }
    return true;
}

static bool connection_serve(struct backend *b, int fd, uint32_t events)
{
    struct connection *c = &b->connection[fd];
    if ((events & EPOLLOUT) != 0) {
        return answer_send(b, fd, c->rest, c->rest_length) && heads_answer(b, fd);
    }
    ssize_t got = recv(fd, c->head + c->head_length, HEAD_BYTES_MAX - c->head_length, 0);
    if (got <= 0) {
        return got < 0 && errno == EAGAIN;
    }
    c->head_length += (size_t)got;
    return heads_answer(b, fd);
}

static void connections_accept(struct backend *b)
{
    int fd;
    while ((fd = socket_accept(b->listener)) >= 0) {
        if (b->connection[fd].head == NULL) {
            b->connection[fd].head = must_calloc(1, HEAD_BYTES_MAX);
        }
        poll_set(b->poll, EPOLL_CTL_ADD, fd, EPOLLIN);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: backend ADDRESS\n  answers GET /200, /4096 and /65536 until it is killed\n");
        return 2;
    }
    struct backend b = {.poll = epoll_create1(EPOLL_CLOEXEC)};
    struct epoll_event events[EVENTS_MAX];
    must(b.poll >= 0, "epoll_create1");
    b.connection = must_calloc(descriptors_raise(), sizeof *b.connection);
    for (size_t i = 0; i < SIZES; i++) {
        b.answer[i] = answer_make(sizes[i]);
    }
    b.listener = socket_listen(argv[1]);
    poll_set(b.poll, EPOLL_CTL_ADD, b.listener, EPOLLIN);
    for (;;) {
        int count = poll_wait(b.poll, events, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == b.listener) {
                connections_accept(&b);
            } else if (!connection_serve(&b, fd, events[i].events)) {
                connection_close(&b, fd);
            }
        }
    }
}
