/* SPDX-License-Identifier: MIT */
#ifndef BECALM_WIRE_WIRE_H
#define BECALM_WIRE_WIRE_H

/* Bytes over one connected socket. A wire alone knows about interrupted system calls, about sockets that take or give
 * nothing now, about short reads and writes, and how many reads one connection may make before the others have their
 * turn. Whoever owns one says what the bytes mean. */

#include "loop/bytes.h"
#include "loop/loop.h"

#include <sys/socket.h>
#include <sys/uio.h>

#define WIRE_TURN 2 /* reads of one direction; then the other connections of the loop have their turn */

struct wire {
    struct source source; /* first */
    struct bytes out;     /* what the socket did not take yet */
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

/* Reads once, up to `size` bytes. Returns how many, or one of these. */
enum { WIRE_END = 0, WIRE_LATER = -1, WIRE_BROKEN = -2, WIRE_FULL = -3 };
ssize_t wire__read_again(struct wire *, char *into, size_t size, ssize_t got);
static inline ssize_t wire_read(struct wire *wire, char *into, size_t size)
{
    ssize_t got = recv(wire->source.fd, into, size, 0); /* here, since every message goes this way */
    if (got <= 0) {
        return wire__read_again(wire, into, size, got);
    }
    /* A short read has emptied the socket. The next bytes are an event of their own; an end that was told already is
     * not told again. */
    wire->source.readable = wire->source.ended || (size_t)got == size;
    return got;
}

/* Sends once what the socket takes, past what waits in `out`. Returns how many bytes, which may be none; WIRE_BROKEN:
 * the connection is broken. */
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
enum wire_sight wire_peek(const struct wire *);

/* Tells the peer that nothing more will come. */
void wire_shut(struct wire *);
/* When it is closed, the peer gets a reset: so it does not take what it has for all. */
void wire_reset(struct wire *);

#endif
