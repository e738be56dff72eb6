/* SPDX-License-Identifier: MIT */
#ifndef BECALM_EXEC_PROCESS_H
#define BECALM_EXEC_PROCESS_H

/* One run of a command: a process that leads a group of its own, so that a signal reaches it and all processes that it
 * started. Orphans of the group become our children (process_adopt), so that their end is seen and nothing is left
 * behind unreaped. */

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct process_variable {
    const char *name;
    char value[64]; /* empty: unset */
};

struct process_plan {
    char *const *argv;                     /* ends with NULL */
    int fd[3];                             /* its standard input, output and error */
    const sigset_t *mask;                  /* its signal mask */
    const struct process_variable *change; /* of its environment; ends with a NULL name */
};

/* Zeroed: none. */
struct process {
    pid_t pid; /* and the number of its group; 0: none */
    bool ended;
    int code;    /* once ended, as a shell sees it: the exit code, or 128 plus the signal */
    int signal;  /* once ended: the signal that killed it; 0: none */
    int stopped; /* the signal that stopped it, until terminal.c has dealt with it; 0: it is not stopped */
};

/* Makes this process the parent of every orphan below it. */
void process_adopt(void);

/* Starts it. 0, or the errno of fork() or, if it *forked, of execvp(). */
int process_start(struct process *, const struct process_plan *, bool *forked);

/* Takes note of every child that has ended or stopped, ours and adopted ones. Never blocks. */
void process_reap(struct process *);

/* Sends a signal to the group, if a process is left in it. */
void process_signal(const struct process *, int signal);

/* Has the process ended, and everything in its group with it? */
bool process_group_gone(const struct process *);

#endif
