/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "wire.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* recv(), send() and sendmsg() as the kernel has them. In libc they are points where a thread can be cancelled, and
 * every call pays for that; no thread of ours ever is. */

ssize_t wire__recv(int fd, char *into, size_t size)
{
    return syscall(SYS_recvfrom, fd, into, size, 0, NULL, NULL);
}

/* Most sends have one piece, for which the kernel need not read a list. */
static ssize_t send_parts(int fd, struct iovec *part, int count)
{
    if (count == 1) {
        return syscall(SYS_sendto, fd, part->iov_base, part->iov_len, MSG_NOSIGNAL, NULL, 0);
    }
    struct msghdr message = {.msg_iov = part, .msg_iovlen = (size_t)count};
    return syscall(SYS_sendmsg, fd, &message, MSG_NOSIGNAL);
}

static bool later(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK;
}

/* The first try got nothing. */
ssize_t wire__read_again(struct wire *wire, char *into, size_t size, ssize_t got)
{
    if (got < 0 && errno == EINTR) {
        return wire_read_plain(wire, into, size);
    }
    wire->source.readable = false;
    wire->source.ended |= got == 0;
    return got == 0 ? WIRE_END : later() ? WIRE_LATER : WIRE_BROKEN;
}

ssize_t wire_send_plain(struct wire *wire, struct iovec *part, int count)
{
    ssize_t sent;
    do {
        sent = send_parts(wire->source.fd, part, count);
    } while (sent < 0 && errno == EINTR);
    return sent >= 0 ? sent : later() ? 0 : WIRE_BROKEN;
}

ssize_t wire_send(struct wire *wire, struct iovec *part, int count)
{
    return wire->tls == NULL ? wire_send_plain(wire, part, count) : wire__tls_send(wire, part, count);
}

/* Sends the waiting bytes. */
ssize_t wire_flush_plain(struct wire *wire)
{
    struct bytes *out = &wire->out;
    ssize_t sent = wire_send_plain(wire, &(struct iovec){out->at + out->from, bytes_left(out)}, 1);
    if (sent > 0) {
        out->from += (uint32_t)sent;
    }
    if (!wire_blocked(wire)) {
        bytes_free(out);
    }
    return sent;
}

/* Keeps the parts for later, from `skip` bytes of the first one on. False: no memory. */
static bool keep(struct wire *wire, const struct iovec *part, int count, size_t skip)
{
    for (int i = 0; i < count; i++, skip = 0) {
        if (!bytes_add(&wire->out, (const char *)part[i].iov_base + skip, part[i].iov_len - skip)) {
            return false;
        }
    }
    return true;
}

ssize_t wire_write(struct wire *wire, struct iovec *part, int count)
{
    ssize_t flushed = 0;
    ssize_t sent = 0;
    if (wire->tls != NULL) {
        return wire__tls_write(wire, part, count);
    }
    if (wire_blocked(wire)) {
        flushed = wire_flush_plain(wire);
        if (flushed < 0) {
            return flushed;
        }
    }
    if (count > 0 && !wire_blocked(wire)) {
        sent = wire_send_plain(wire, part, count);
        if (sent < 0) {
            return wire__broken(flushed);
        }
    }
    size_t gone = (size_t)sent;
    for (int i = 0; i < count; i++) {
        if (gone < part[i].iov_len) {
            return keep(wire, part + i, count - i, gone) ? flushed + sent : WIRE_FULL;
        }
        gone -= part[i].iov_len;
    }
    return flushed + sent;
}

enum wire_sight wire_peek_plain(const struct wire *wire)
{
    char byte;
    ssize_t got = recv(wire->source.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got > 0 ? WIRE_SPEAKS : got < 0 && later() ? WIRE_QUIET : WIRE_GONE;
}

bool wire_taken(const struct wire *wire, uint32_t *bytes)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    if (getsockopt(wire->source.fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
        length < offsetof(struct tcp_info, tcpi_bytes_acked) + sizeof info.tcpi_bytes_acked) {
        return false;
    }
    *bytes = (uint32_t)info.tcpi_bytes_acked;
    return info.tcpi_bytes_acked != 0; /* kernels that do not count leave it so */
}

enum wire_sight wire_peek(struct wire *wire)
{
    return wire->tls == NULL ? wire_peek_plain(wire) : wire__tls_peek(wire);
}

void wire_shut(struct wire *wire)
{
    if (wire->tls != NULL) {
        wire__tls_shut(wire);
    }
    shutdown(wire->source.fd, SHUT_WR);
}

void wire_reset(struct wire *wire)
{
    if (wire->tls != NULL) {
        wire__tls_reset(wire);
    }
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(wire->source.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}
