/* SPDX-License-Identifier: MIT */
#ifndef BECALM_EXEC_OUTPUT_H
#define BECALM_EXEC_OUTPUT_H

/* The output of attempts. By default the command has our own standard output and error, with nothing in between; pipes
 * are needed only to hold output back or to search it for a pattern. The amount that is held back is bounded: if an
 * attempt prints more, its output is shown from then on, and the attempt is not retried. */

#include "pattern.h"

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>

enum output_show {
    OUTPUT_ALL,  /* of every attempt, as it comes */
    OUTPUT_ONCE, /* only the last attempt writes to standard output; earlier attempts go to standard error, as with
                    retry(1) */
    OUTPUT_LAST  /* only the output of the last attempt */
};

/* One of the command's two streams. */
struct output_stream {
    int pipe;     /* where we read; -1: closed, or none */
    bool through; /* shown as it comes */
    char piece[4096];
    size_t length; /* bytes in `piece` that were read */
    size_t sent;
    size_t owed; /* once the command has ended: its bytes that are still in the pipe */
    struct matcher matcher;
};

struct output {
    enum output_show show;
    const struct patterns *patterns;
    size_t max;                     /* keep back no more than this */
    bool joined;                    /* both streams go to one place and are treated alike: the first carries both */
    int interrupt;                  /* when this descriptor is readable, writing the kept bytes stops */
    struct output_stream stream[2]; /* standard output, standard error */
    char *kept;                     /* pieces in the order in which they came: {length:31, stream:1}, bytes */
    size_t length;
    size_t room;
    size_t next;    /* offset in `kept` of the bytes to be written next */
    size_t left;    /* bytes left of the piece that begins there; 0: none is being written */
    int to;         /* where it goes */
    int error;      /* the errno of a failed write; 0: none failed, or the reader had gone, which is no failure */
    bool delivered; /* the output exceeded the cap: it is shown, and the attempt can't be retried */
    bool found[PATTERN_USES];
};

void output_open(struct output *, enum output_show, const struct patterns *, size_t max, int interrupt);
void output_close(struct output *);

/* An attempt begins: fd[0] and fd[1] are its standard output and error, to be closed by output_started() after the
 * fork. False, with errno. */
bool output_begin(struct output *, int fd[2]);
void output_started(struct output *, const int fd[2]);

/* The descriptors to poll, in two places. */
void output_poll(const struct output *, struct pollfd fds[2]);
void output_move(struct output *, const struct pollfd fds[2]);

/* The command has ended: its output is in the pipes by now. Output of background processes that still have the pipes
 * open may follow. */
void output_ended(struct output *);

/* Has all output of the command itself been read, and, while there is `patience`, that of its background processes,
 * too? */
bool output_done(const struct output *, bool patience);

/* The attempt is over: listens no longer. */
void output_end(struct output *);

/* Writes or drops the bytes that were held back, now that it is known whether this was the last attempt. False:
 * interrupted, or the reader took nothing for `patience` milliseconds; -1: wait for ever. */
bool output_settle(struct output *, bool last, int patience);

#endif
