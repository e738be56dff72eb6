/* SPDX-License-Identifier: MIT */
#ifndef BECALM_EXEC_TERMINAL_H
#define BECALM_EXEC_TERMINAL_H

/* Job control. The command is in a group of its own, which is in the background: the command may print, but is stopped
 * when it reads from the terminal or changes its settings. Only then it gets the terminal, because a pager after us in
 * the pipeline may be reading it. So Ctrl-C goes to us, and we pass it on. Once the command has the terminal, Ctrl-C
 * goes to the command, and if it dies of that, we end, too. */

#include "process.h"

#include <termios.h>

struct terminal {
    int fd;               /* the controlling terminal; -1: none */
    pid_t lent;           /* the group that has it from us; 0: none */
    bool modes_known;     /* then `modes` are those before it was lent for the first time */
    struct termios modes; /* echo, lines, ... */
};

void terminal_open(struct terminal *);
void terminal_close(struct terminal *);

/* The command was stopped: lends it the terminal if it asked for that; else stops us with it, because the user typed
 * Ctrl-Z. On return the command runs again, unless it asks for a terminal that it can't have. */
void terminal_stopped(struct terminal *, struct process *);

/* We were told to stop: the command stops first. Returns when both were told to go on, or at once where no shell could
 * tell us. */
void terminal_stop(struct terminal *, const struct process *);

/* The command has ended: the terminal is ours again, with the modes from before if a signal ended the command, which
 * then could not tidy up after a prompt without echo, say. */
void terminal_return(struct terminal *, const struct process *);

/* The key that ended this command, which was meant for us as well: its signal, if it had the terminal. 0: none. */
int terminal_key(const struct terminal *, const struct process *);

#endif
