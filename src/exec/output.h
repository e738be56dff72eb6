/* SPDX-License-Identifier: MIT */
#ifndef BECALM_EXEC_OUTPUT_H
#define BECALM_EXEC_OUTPUT_H

/* What attempts print. By default the command has our own standard output and error, and nothing is in between; pipes
 * are needed only where something is to be kept back or searched for a pattern. What is kept back is bounded: an
 * attempt that prints more is shown from then on as it prints, and, having been shown, is not retried. */

#include "pattern.h"

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>

enum output_show {
    OUTPUT_ALL,  /* of every attempt, as it comes */
    OUTPUT_ONCE, /* standard output of the last attempt alone; that of the others goes to standard error, as retry(1) */
    OUTPUT_LAST  /* nothing of any attempt but the last */
};

/* One of the command's two streams. */
struct output_stream {
    int pipe;     /* where we read; -1: closed, or none */
    bool through; /* shown as it comes */
    char piece[4096];
    size_t length; /* of `piece`, what was read and is on its way */
    size_t sent;
    size_t owed; /* once the command has ended: what it left in the pipe, and is not read yet */
    struct matcher matcher;
};

struct output {
    enum output_show show;
    const struct patterns *patterns;
    size_t max;                     /* keep back no more than this */
    bool joined;                    /* both streams go to one place and are treated alike: the first carries both */
    int interrupt;                  /* when there is something to read here, writing what was kept stops */
    struct output_stream stream[2]; /* standard output, standard error */
    char *kept;                     /* pieces in the order in which they came: {length:31, stream:1}, bytes */
    size_t length;
    size_t room;
    size_t next;    /* in `kept`, what is to be written next */
    size_t left;    /* of the piece that begins there; 0: none is on its way */
    int to;         /* where it goes */
    int error;      /* why output could not be written; 0: it could, or its reader had gone, which is no failure */
    bool delivered; /* more than the cap: this attempt is shown, and can't be taken back */
    bool found[PATTERN_USES];
};

void output_open(struct output *, enum output_show, const struct patterns *, size_t max, int interrupt);
void output_close(struct output *);

/* An attempt begins: fd[0] and fd[1] are what it gets, to be closed by output_started() after the fork. False, with
 * errno. */
bool output_begin(struct output *, int fd[2]);
void output_started(struct output *, const int fd[2]);

/* What to wait for, in two places. */
void output_poll(const struct output *, struct pollfd fds[2]);
void output_move(struct output *, const struct pollfd fds[2]);

/* The command has ended: all that it printed is in the pipes by now, and behind it may come what others print who have
 * them open still. */
void output_ended(struct output *);

/* Has everything been taken that the command itself printed, and, while there is `patience`, that of the others too? */
bool output_done(const struct output *, bool patience);

/* The attempt is over: listens no longer. */
void output_end(struct output *);

/* What becomes of the bytes that were kept back, now that it is known whether this was the last attempt. False:
 * interrupted, or the reader took nothing for `patience` milliseconds; -1: for ever. */
bool output_settle(struct output *, bool last, int patience);

#endif
