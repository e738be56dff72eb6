/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_BUFFERED_H
#define BECALM_PROXY_BUFFERED_H

/* One bound for all buffers in user space: answers for clients that read slowly, pipelined requests, parts of heads,
 * requests that a host does not take yet, answers that will be stored under their key. All workers count into one
 * number, and only when a buffer grows or is freed. Above half of maxBuffered, answers and bodies are read in pieces of
 * BUFFERED_PIECE, so that one more slow reader costs no more than that. Above maxBuffered, shrink.h cuts connections.
 * Bodies that are kept for retries have a bound of their own, replay.total. */

#include "wire/wire.h"

#define BUFFERED_PIECE (16u * 1024)

struct worker;

/* As bytes_add() and bytes_free(), and counted. */
bool buffered_add(struct worker *, struct bytes *, const char *, size_t);
void buffered__free(struct worker *, struct bytes *);
static inline void buffered_free(struct worker *worker, struct bytes *bytes)
{
    if (bytes->size > 0) { /* most have nothing */
        buffered__free(worker, bytes);
    }
}
/* As wire_write(), and counted. */
void buffered__resized(struct worker *, size_t before, const struct bytes *);
static inline ssize_t buffered_write(struct worker *worker, struct wire *wire, struct iovec *part, int count)
{
    size_t before = wire->out.size;
    ssize_t sent = wire_write(wire, part, count);
    if (wire->out.size != before) { /* seldom: most sockets take all of it */
        buffered__resized(worker, before, &wire->out);
    }
    return sent;
}
/* A buffer that was filled elsewhere has another size now. */
void buffered__changed(struct worker *, size_t before, size_t after);
static inline void buffered_changed(struct worker *worker, size_t before, size_t after)
{
    if (before != after) {
        buffered__changed(worker, before, after);
    }
}

/* The bytes that wait now, and maxBuffered. */
uint64_t buffered_now(const struct worker *);
uint64_t buffered_max(const struct worker *);
/* Is there more than maxBuffered? */
bool buffered_over(const struct worker *);

/* How much may be read at once. */
size_t buffered_piece(const struct worker *);

#endif
