/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "terminal.h"

#include <fcntl.h>
#include <unistd.h>

void terminal_open(struct terminal *terminal)
{
    terminal->fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    terminal->lent = false;
}

void terminal_close(struct terminal *terminal)
{
    if (terminal->fd >= 0) {
        close(terminal->fd);
        terminal->fd = -1;
    }
}

static bool is_ours(const struct terminal *terminal)
{
    return terminal->fd >= 0 && tcgetpgrp(terminal->fd) == getpgrp();
}

static void lend(struct terminal *terminal, const struct process *process)
{
    terminal->lent = tcsetpgrp(terminal->fd, process->pid) == 0;
}

void terminal_return(struct terminal *terminal)
{
    if (terminal->lent) {
        (void)tcsetpgrp(terminal->fd, getpgrp()); /* SIGTTOU, which this would bring a background process, is blocked */
        terminal->lent = false;
    }
}

void terminal_stop(struct terminal *terminal, const struct process *process)
{
    bool lent = terminal->lent;
    process_signal(process, SIGTSTP);
    terminal_return(terminal);
    (void)raise(SIGSTOP); /* TSTP itself is blocked; the shell sees the same */
    if (lent && is_ours(terminal)) {
        lend(terminal, process);
    }
    process_signal(process, SIGCONT);
}

void terminal_stopped(struct terminal *terminal, struct process *process)
{
    int by = process->stopped;
    process->stopped = 0;
    if (terminal->fd < 0 || (by != SIGTTIN && by != SIGTTOU && by != SIGTSTP)) {
        return; /* somebody stopped it by hand, and will let it go on so */
    }
    if (by != SIGTSTP && is_ours(terminal)) {
        lend(terminal, process);
        process_signal(process, SIGCONT);
        return;
    }
    if (terminal->lent) {
        (void)kill(0,
                   SIGTSTP); /* the others of our job did not see the Ctrl-Z; for us it is blocked, and goes unread */
    }
    terminal_stop(terminal, process);
}
