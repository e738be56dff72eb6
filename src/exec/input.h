/* SPDX-License-Identifier: MIT */
#ifndef BECALM_EXEC_INPUT_H
#define BECALM_EXEC_INPUT_H

/* Gives every attempt the same standard input. A file is rewound; a terminal or /dev/null is passed on as it is. The
 * bytes of a pipe or socket are kept as the command takes them, up to a cap, and replayed; beyond the cap they only
 * pass through, and the call can't be retried any more. */

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum input_way { INPUT_AS_IT_IS, INPUT_REWOUND, INPUT_KEPT };

struct input {
    enum input_way way;
    int source;    /* where it comes from; for INPUT_AS_IT_IS also /dev/null */
    off_t start;   /* INPUT_REWOUND: where the file stood at first */
    int pipe;      /* INPUT_KEPT: the end that we write to, while an attempt runs; else -1 */
    char *kept;    /* the bytes read so far; if `over`, only the bytes that are not sent yet */
    size_t length; /* bytes in it */
    size_t room;   /* bytes that fit */
    size_t sent;   /* of `length`, in this attempt */
    size_t max;    /* keep no more than this */
    bool over;     /* there was more: it can't be replayed */
    bool ended;    /* the source has */
};

/* Says how `source` will be given to attempts. */
void input_open(struct input *, int source, size_t max);
void input_close(struct input *);

/* An attempt begins: *fd is its standard input, to be closed by input_started() after the fork. False, with errno. */
bool input_begin(struct input *, int *fd);
void input_started(struct input *, int fd);

/* The descriptors to poll, in two places; -1 in both if there is nothing to do. */
void input_poll(const struct input *, struct pollfd fds[2]);
void input_move(struct input *, const struct pollfd fds[2]);

/* The attempt is over. */
void input_end(struct input *);

#endif
