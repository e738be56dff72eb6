/* SPDX-License-Identifier: MIT */
#ifndef BECALM_BENCH_SOCKETS_H
#define BECALM_BENCH_SOCKETS_H

/* The common part of backend, relay and load: addresses, sockets and epoll, level-triggered. These are small programs
 * that one driver starts: every error ends them with a sentence. */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS_MAX = 512, DESCRIPTORS_MAX = 65536, BACKLOG = 4096 };

/* Ends the program after a failed system call. */
static inline void must(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "%s: %s\n", what, strerror(errno));
        exit(1);
    }
}

static inline void *must_calloc(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);
    must(memory != NULL, "calloc");
    return memory;
}

/* "127.0.0.1:8080" */
static inline struct sockaddr_in address_parse(const char *text)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    char host[INET_ADDRSTRLEN] = "";
    unsigned port = 0;
    if (sscanf(text, "%15[0-9.]:%u", host, &port) != 2 || port == 0 || port > UINT16_MAX ||
        inet_pton(AF_INET, host, &address.sin_addr) != 1) {
        fprintf(stderr, "\"%s\" is not an address; it should be like 127.0.0.1:8080\n", text);
        exit(2);
    }
    address.sin_port = htons((uint16_t)port);
    return address;
}

/* As many descriptors as the system allows, and at most DESCRIPTORS_MAX: how long a table over them must be. */
static inline size_t descriptors_raise(void)
{
    struct rlimit limit;
    must(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
    limit.rlim_cur = limit.rlim_max < DESCRIPTORS_MAX ? limit.rlim_max : DESCRIPTORS_MAX;
    must(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    return (size_t)limit.rlim_cur;
}

static inline void poll_set(int poll, int operation, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data = {.fd = fd}};
    must(epoll_ctl(poll, operation, fd, &event) == 0, "epoll_ctl");
}

/* Waits for events, for ever or `timeout` milliseconds; how many. */
static inline int poll_wait(int poll, struct epoll_event events[static EVENTS_MAX], int timeout)
{
    int count = epoll_wait(poll, events, EVENTS_MAX, timeout);
    must(count >= 0 || errno == EINTR, "epoll_wait");
    return count > 0 ? count : 0;
}

static inline void socket_no_delay(int fd)
{
    int on = 1;
    must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "TCP_NODELAY");
}

static inline int socket_listen(const char *text)
{
    struct sockaddr_in address = address_parse(text);
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    must(fd >= 0, "socket");
    must(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0, "SO_REUSEADDR");
    must(bind(fd, (struct sockaddr *)&address, sizeof address) == 0, text);
    must(listen(fd, BACKLOG) == 0, "listen");
    return fd;
}

/* Blocks until the kernel has the connection, which on one machine does not wait for accept(). Negative: errno. */
static inline int socket_connect(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    if (connect(fd, (const struct sockaddr *)address, sizeof *address) != 0) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    socket_no_delay(fd);
    return fd;
}

/* Negative: no connection waits any more, or no descriptors are left. */
static inline int socket_accept(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        socket_no_delay(fd);
    }
    return fd;
}

/* How many bytes went out; 0: none now. Negative: the connection is broken. */
static inline ssize_t socket_send(int fd, const char *bytes, size_t length)
{
    ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 && errno == EAGAIN ? 0 : sent;
}

#endif
