/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "listen.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* A Unix socket that a process left behind when it was killed: no process accepts connections there. */
static void remove_dead_socket(const union address_socket *address)
{
    struct stat about;
    if (lstat(address->local.sun_path, &about) != 0 || !S_ISSOCK(about.st_mode)) {
        return;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        if (connect(fd, &address->any, address_length(address)) != 0 && errno == ECONNREFUSED) {
            unlink(address->local.sun_path);
        }
        close(fd);
    }
}

int listen_on(const union address_socket *address, bool reuse_port)
{
    int on = 1;
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    if (address->any.sa_family == AF_UNIX) {
        remove_dead_socket(address);
    } else {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (reuse_port) {
            setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
        }
    }
    if (bind(fd, &address->any, address_length(address)) != 0 || listen(fd, LISTEN_BACKLOG) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

int listen_find(const struct handed *handed, const union address_socket *address)
{
    for (uint32_t i = 0; i < handed->count; i++) {
        union address_socket bound = {0};
        socklen_t length = sizeof bound;
        if (getsockname(handed->fd[i], &bound.any, &length) == 0 && address_equal(&bound, address)) {
            return handed->fd[i];
        }
    }
    return -1;
}

int listen_handed(const struct handed *handed, const union address_socket *address)
{
    int given = listen_find(handed, address);
    int fd = given < 0 ? -1 : fcntl(given, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0) {
        fcntl(fd, F_SETFL, O_NONBLOCK);
    }
    return fd;
}
