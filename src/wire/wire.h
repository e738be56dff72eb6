/* SPDX-License-Identifier: MIT */
#ifndef BECALM_WIRE_WIRE_H
#define BECALM_WIRE_WIRE_H

/* Bytes over one connected socket, plain or with TLS (wire_tls.h). Only the wire handles interrupted system calls
 * (EINTR), sockets that would block (EAGAIN), short reads and writes, and how many reads one connection may make before
 * others have their turn. The owner of a wire interprets the bytes. */

#include "loop/bytes.h"
#include "loop/loop.h"

#include <sys/socket.h>
#include <sys/uio.h>

#define WIRE_TURN 2 /* reads of one direction; then the other connections of the loop have their turn */

struct wire {
    struct source source; /* first */
    struct bytes out;     /* bytes that the socket did not take yet */
    struct wire_tls *tls; /* NULL: plain */
};

/* Call it from the source's `ready`: notes the events for wire_readable() and wire_ended(). */
static inline void wire_note(struct wire *wire, uint32_t events)
{
    wire->source.readable |= (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    wire->source.ended |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
}

/* May there be something to read? False: wait for the next event. */
static inline bool wire_readable(const struct wire *wire)
{
    return wire->source.readable;
}

/* Has the peer ended its side of the connection? Bytes that it sent before may still have to be read. */
static inline bool wire_ended(const struct wire *wire)
{
    return wire->source.ended;
}

/* The peer has ended its side, and all its bytes were read. */
static inline bool wire_over(const struct wire *wire)
{
    return wire->source.ended && !wire->source.readable;
}

/* Makes the next read try the socket, although no event came. */
static inline void wire_again(struct wire *wire)
{
    wire->source.readable = true;
}

/* Makes reads wait for the next event. */
static inline void wire_wait(struct wire *wire)
{
    wire->source.readable = false;
}

/* Reads once, up to `size` bytes. Returns the number of bytes, or one of these. WIRE_ALIEN: a client that should speak
 * TLS seems to speak plain HTTP: its bytes are dropped, and the wire is a plain one from now on. */
enum { WIRE_END = 0, WIRE_LATER = -1, WIRE_BROKEN = -2, WIRE_FULL = -3, WIRE_ALIEN = -4, WIRE_TORN = -5 };
ssize_t wire__recv(int fd, char *into, size_t size);
ssize_t wire__read_again(struct wire *, char *into, size_t size, ssize_t got);
ssize_t wire__tls_read(struct wire *, char *into, size_t size);
static inline ssize_t wire_read_plain(struct wire *wire, char *into, size_t size)
{
    ssize_t got = wire__recv(wire->source.fd, into, size); /* here, since every message goes this way */
    if (got <= 0) {
        return wire__read_again(wire, into, size, got);
    }
    /* A short read has emptied the socket. The next bytes are an event of their own; an end that was told already is
     * not told again. */
    wire->source.readable = wire->source.ended || (size_t)got == size;
    return got;
}
static inline ssize_t wire_read(struct wire *wire, char *into, size_t size)
{
    return wire->tls == NULL ? wire_read_plain(wire, into, size) : wire__tls_read(wire, into, size);
}

/* Sends once, ignoring bytes that wait in `out`. Returns how many bytes the socket took, which may be none;
 * WIRE_BROKEN: the connection is broken. With TLS, bytes that were taken may still wait in `out`. */
ssize_t wire_send(struct wire *, struct iovec *, int count);

/* Sends the bytes in `out` and then these; bytes that the socket does not take are kept in `out`. Returns how many
 * bytes the socket took in all. WIRE_BROKEN: the connection is broken, and the socket took none of the bytes.
 * WIRE_TORN: it is broken, but the socket had taken some bytes before. WIRE_FULL: there is no memory for the rest, but
 * some bytes may have been sent. With a count of 0 it sends only the bytes in `out`. */
ssize_t wire_write(struct wire *, struct iovec *, int count);

/* Do bytes wait for the socket to take them? */
static inline bool wire_blocked(const struct wire *wire)
{
    return bytes_left(&wire->out) > 0;
}

/* The state of the socket, found without reading. */
enum wire_sight {
    WIRE_QUIET, /* open, and nothing to read */
    WIRE_SPEAKS,
    WIRE_GONE /* ended or broken */
};
enum wire_sight wire_peek(struct wire *);

/* How many bytes the peer's kernel has taken since the beginning, modulo 2^32. False: this is no TCP, or
 * the kernel does not count them. */
bool wire_taken(const struct wire *, uint32_t *bytes);

/* Ends our side of the connection: FIN, with TLS after close_notify. */
void wire_shut(struct wire *);
/* Makes the later close a reset, so that the peer does not take a partial message for a complete one. */
void wire_reset(struct wire *);

/* Call wire_free() before the socket is closed: frees the TLS state, and sends close_notify. */
void wire__tls_free(struct wire *);
static inline void wire_free(struct wire *wire)
{
    if (wire->tls != NULL) {
        wire__tls_free(wire);
    }
}

/* Is the TLS handshake still in progress? */
bool wire__tls_shakes(const struct wire *);
static inline bool wire_shakes(const struct wire *wire)
{
    return wire->tls != NULL && wire__tls_shakes(wire);
}

/* Has the TLS handshake failed? Then the peer's bytes are read and thrown away, so that it can read our alert. */
bool wire__tls_over(const struct wire *);
static inline bool wire_failed(const struct wire *wire)
{
    return wire->tls != NULL && wire__tls_over(wire);
}

/* Has the connection ended without close_notify? An attacker on the path may have cut it. */
bool wire__tls_cut(const struct wire *);
static inline bool wire_cut(const struct wire *wire)
{
    return wire->tls != NULL && wire__tls_cut(wire);
}

/* Has the wire bytes that it has read from the socket, and its owner has not read yet? Or TLS's own end behind them? */
bool wire__tls_left(const struct wire *);
static inline bool wire_left(const struct wire *wire)
{
    return wire->tls != NULL && wire__tls_left(wire);
}

/* Bytes have come on an idle connection. Are they only TLS's own messages (tickets, new keys), and no data? */
static inline bool wire_small_talk(struct wire *wire)
{
    return wire->tls != NULL && wire_peek(wire) == WIRE_QUIET;
}

/* For wire_tls.c: the plain socket, and the functions that differ with TLS. */
ssize_t wire_send_plain(struct wire *, struct iovec *, int count);
ssize_t wire_flush_plain(struct wire *);
/* The result of a write that found the connection broken, after the socket took so many bytes. */
static inline ssize_t wire__broken(ssize_t taken)
{
    return taken > 0 ? WIRE_TORN : WIRE_BROKEN;
}
enum wire_sight wire_peek_plain(const struct wire *);
ssize_t wire__tls_write(struct wire *, const struct iovec *, int count);
ssize_t wire__tls_send(struct wire *, const struct iovec *, int count);
enum wire_sight wire__tls_peek(struct wire *);
void wire__tls_shut(struct wire *);
void wire__tls_reset(struct wire *);

#endif
