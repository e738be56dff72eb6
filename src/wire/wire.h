/* SPDX-License-Identifier: MIT */
#ifndef BECALM_WIRE_WIRE_H
#define BECALM_WIRE_WIRE_H

/* Bytes over one connected socket, plain or with TLS (wire_tls.h). A wire alone knows about interrupted system calls,
 * about sockets that take or give nothing now, about short reads and writes, and how many reads one connection may make
 * before the others have their turn. Whoever owns one says what the bytes mean. */

#include "loop/bytes.h"
#include "loop/loop.h"

#include <sys/socket.h>
#include <sys/uio.h>

#define WIRE_TURN 2 /* reads of one direction; then the other connections of the loop have their turn */

struct wire {
    struct source source; /* first */
    struct bytes out;     /* what the socket did not take yet */
    struct wire_tls *tls; /* NULL: plain */
};

/* From the source's `ready`: notes what the events say, so that wire_readable() and wire_ended() know it. */
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

/* Has the peer said that it will send no more? What it sent before may still be there to be read. */
static inline bool wire_ended(const struct wire *wire)
{
    return wire->source.ended;
}

/* Its peer has ended, and all that it sent was read. */
static inline bool wire_over(const struct wire *wire)
{
    return wire->source.ended && !wire->source.readable;
}

/* Something is to be learned by reading, though no event says so. */
static inline void wire_again(struct wire *wire)
{
    wire->source.readable = true;
}

/* The other way round: nothing is read before the next event. */
static inline void wire_wait(struct wire *wire)
{
    wire->source.readable = false;
}

/* Reads once, up to `size` bytes. Returns how many, or one of these. WIRE_ALIEN: a client that should speak TLS does
 * not, but seems to speak HTTP: what it said is gone, and the wire is a plain one from now on. */
enum { WIRE_END = 0, WIRE_LATER = -1, WIRE_BROKEN = -2, WIRE_FULL = -3, WIRE_ALIEN = -4 };
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

/* Sends once what the socket takes, past what waits in `out`. Returns how many bytes, which may be none; WIRE_BROKEN:
 * the connection is broken. With TLS what was taken may wait in `out` all the same. */
ssize_t wire_send(struct wire *, struct iovec *, int count);

/* Sends; what the socket does not take waits in `out`, behind what waits there already. Returns how many bytes the
 * socket took of what waited and of these. WIRE_BROKEN: the connection is broken. WIRE_FULL: there is no memory for the
 * rest, but some may have been sent. Without parts it sends what waits. */
ssize_t wire_write(struct wire *, struct iovec *, int count);

/* Does something wait for the socket to take it? */
static inline bool wire_blocked(const struct wire *wire)
{
    return bytes_left(&wire->out) > 0;
}

/* What a look at the socket shows, without reading. */
enum wire_sight {
    WIRE_QUIET, /* open, and nothing to read */
    WIRE_SPEAKS,
    WIRE_GONE /* ended or broken */
};
enum wire_sight wire_peek(struct wire *);

/* Tells the peer that nothing more will come. */
void wire_shut(struct wire *);
/* When it is closed, the peer gets a reset: so it does not take what it has for all. */
void wire_reset(struct wire *);

/* Before it is closed: frees what TLS has, with a goodbye to the peer. */
void wire__tls_free(struct wire *);
static inline void wire_free(struct wire *wire)
{
    if (wire->tls != NULL) {
        wire__tls_free(wire);
    }
}

/* Is it still at TLS's handshake? */
bool wire__tls_shakes(const struct wire *);
static inline bool wire_shakes(const struct wire *wire)
{
    return wire->tls != NULL && wire__tls_shakes(wire);
}

/* Has its handshake failed? Then what it still says is thrown away, so that the peer can read why. */
bool wire__tls_over(const struct wire *);
static inline bool wire_failed(const struct wire *wire)
{
    return wire->tls != NULL && wire__tls_over(wire);
}

/* Has TLS been ended by the socket's end alone? An attacker on the way may have cut it off. */
bool wire__tls_cut(const struct wire *);
static inline bool wire_cut(const struct wire *wire)
{
    return wire->tls != NULL && wire__tls_cut(wire);
}

/* Does it have bytes that were read from the socket, and not by its owner? */
bool wire__tls_left(const struct wire *);
static inline bool wire_left(const struct wire *wire)
{
    return wire->tls != NULL && wire__tls_left(wire);
}

/* Something has come that nobody asked for. Is it TLS that speaks with itself, and nothing else? */
static inline bool wire_small_talk(struct wire *wire)
{
    return wire->tls != NULL && wire_peek(wire) == WIRE_QUIET;
}

/* For wire_tls.c: the socket itself, and what else differs with TLS. */
ssize_t wire_send_plain(struct wire *, struct iovec *, int count);
ssize_t wire_flush_plain(struct wire *);
enum wire_sight wire_peek_plain(const struct wire *);
ssize_t wire__tls_write(struct wire *, const struct iovec *, int count);
ssize_t wire__tls_send(struct wire *, const struct iovec *, int count);
enum wire_sight wire__tls_peek(struct wire *);
void wire__tls_shut(struct wire *);
void wire__tls_reset(struct wire *);

#endif
