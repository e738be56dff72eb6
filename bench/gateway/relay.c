/* SPDX-License-Identifier: MIT */
/* The least that a program between a client and a service can do: bytes from one socket to the other, both ways, one
 * backend connection per client connection, nothing parsed. One thread. The cost of a gateway above this relay pays for
 * parsing and decisions. */
#define _GNU_SOURCE

#include "sockets.h"

enum { BUFFER_BYTES = 65536 };

/* One end of a pair, at the index of its descriptor. */
struct end {
    int peer;   /* the socket of the other side; 0: not open */
    char *rest; /* BUFFER_BYTES, from the first time on that something did not fit into this end's socket */
    size_t rest_from;
    size_t rest_length; /* above 0: this end waits to be writable, and nothing is read from its peer */
};

struct relay {
    int poll;
    int listener;
    struct sockaddr_in backend;
    struct end *end; /* as many as descriptors_raise() says that there can be */
    char buffer[BUFFER_BYTES];
};

static void pair_close(struct relay *r, int fd)
{
    int peer = r->end[fd].peer;
    r->end[fd].rest_length = r->end[peer].rest_length = 0;
    r->end[fd].peer = r->end[peer].peer = 0; /* the same batch of events may name the peer, too */
    close(fd);                               /* which takes it out of the epoll set */
    close(peer);
}

static void pair_accept(struct relay *r)
{
    int client;
    while ((client = socket_accept(r->listener)) >= 0) {
        int backend = socket_connect(&r->backend);
        if (backend < 0) {
            close(client);
            continue;
        }
        r->end[client].peer = backend;
        r->end[backend].peer = client;
        poll_set(r->poll, EPOLL_CTL_ADD, client, EPOLLIN);
        poll_set(r->poll, EPOLL_CTL_ADD, backend, EPOLLIN);
    }
}

/* Bytes that the socket did not accept wait here, and their source waits, too. */
static void rest_keep(struct relay *r, int fd, const char *bytes, size_t length)
{
    struct end *e = &r->end[fd];
    if (e->rest == NULL) {
        e->rest = must_calloc(1, BUFFER_BYTES);
    }
    memcpy(e->rest, bytes, length);
    e->rest_from = 0;
    e->rest_length = length;
    poll_set(r->poll, EPOLL_CTL_MOD, fd, EPOLLOUT);
    poll_set(r->poll, EPOLL_CTL_MOD, e->peer, 0);
}

/* False: the pair is over. */
static bool rest_send(struct relay *r, int fd)
{
    struct end *e = &r->end[fd];
    ssize_t sent = socket_send(fd, e->rest + e->rest_from, e->rest_length);
    if (sent < 0) {
        return false;
    }
    e->rest_from += (size_t)sent;
    e->rest_length -= (size_t)sent;
    if (e->rest_length == 0) {
        poll_set(r->poll, EPOLL_CTL_MOD, fd, EPOLLIN);
        poll_set(r->poll, EPOLL_CTL_MOD, e->peer, EPOLLIN);
    }
    return true;
}

/* False: the pair is over. */
static bool bytes_pass(struct relay *r, int fd)
{
    struct end *e = &r->end[fd];
    ssize_t got = recv(fd, r->buffer, sizeof r->buffer, MSG_DONTWAIT);
    if (got <= 0) {
        return got < 0 && errno == EAGAIN;
    }
    ssize_t sent = socket_send(e->peer, r->buffer, (size_t)got);
    if (sent >= 0 && sent < got) {
        rest_keep(r, e->peer, r->buffer + sent, (size_t)(got - sent));
    }
    return sent >= 0;
}

/* An end that waits for its peer polls nothing and still hears of a broken connection. */
static bool end_serve(struct relay *r, int fd, uint32_t events)
{
    struct end *e = &r->end[fd];
    if (e->peer == 0) {
        return true;
    }
    if (e->rest_length > 0) {
        return rest_send(r, fd);
    }
    if (r->end[e->peer].rest_length > 0) {
        return (events & (EPOLLERR | EPOLLHUP)) == 0;
    }
    return bytes_pass(r, fd);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: relay ADDRESS BACKEND\n  passes bytes between the two until it is killed\n");
        return 2;
    }
    struct relay *r = must_calloc(1, sizeof *r);
    struct epoll_event events[EVENTS_MAX];
    r->poll = epoll_create1(EPOLL_CLOEXEC);
    must(r->poll >= 0, "epoll_create1");
    r->end = must_calloc(descriptors_raise(), sizeof *r->end);
    r->backend = address_parse(argv[2]);
    r->listener = socket_listen(argv[1]);
    poll_set(r->poll, EPOLL_CTL_ADD, r->listener, EPOLLIN);
    for (;;) {
        int count = poll_wait(r->poll, events, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == r->listener) {
                pair_accept(r);
            } else if (!end_serve(r, fd, events[i].events)) {
                pair_close(r, fd);
            }
        }
    }
}
