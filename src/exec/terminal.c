/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "terminal.h"

#include "codes.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

void terminal_open(struct terminal *terminal)
{
    terminal->fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    terminal->lent = 0;
    terminal->modes_known = false;
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
    if (!terminal->modes_known) {
        terminal->modes_known = tcgetattr(terminal->fd, &terminal->modes) == 0;
    }
    terminal->lent = tcsetpgrp(terminal->fd, process->pid) == 0 ? process->pid : 0;
}

/* A shell may have taken it meanwhile, to go on with it while we run in the background: then it is not ours to take. */
static bool take_back(struct terminal *terminal)
{
    pid_t group = terminal->lent == 0 ? 0 : tcgetpgrp(terminal->fd);
    bool ours = group > 0 && (group == terminal->lent || (kill(-group, 0) != 0 && errno == ESRCH));
    terminal->lent = 0;
    return ours && tcsetpgrp(terminal->fd, getpgrp()) == 0; /* SIGTTOU, which this would bring us, is blocked */
}

void terminal_return(struct terminal *terminal, const struct process *process)
{
    if (take_back(terminal) && process->signal != 0 && terminal->modes_known) {
        (void)tcsetattr(terminal->fd, TCSANOW, &terminal->modes);
    }
}

/* Stops us by the same signal, so that a shell, or a becalm exec around this one, acts as if the command were its own
 * child. False: we were not stopped. For this signal the kernel does not stop a process group that no shell could
 * continue, as in a container or under `ssh -t`; SIGSTOP would stop it for ever. */
static bool stop_by(int number)
{
    const struct timespec at_once = {.tv_sec = 0};
    sigset_t stop;
    sigset_t go_on;
    sigset_t before;
    sigemptyset(&stop);
    sigemptyset(&go_on);
    sigaddset(&stop, number);
    sigaddset(&go_on, SIGCONT);
    (void)sigprocmask(SIG_BLOCK, &go_on, &before); /* SIGCONT stays pending and visible; it continues us all the same */
    (void)raise(number);
    (void)sigprocmask(SIG_UNBLOCK, &stop, NULL); /* here we stand still */
    bool stopped = sigtimedwait(&go_on, NULL, &at_once) == SIGCONT;
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return stopped;
}

void terminal_stop(struct terminal *terminal, const struct process *process)
{
    bool lent = terminal->lent != 0;
    process_signal(process, SIGTSTP);
    (void)take_back(terminal);
    (void)stop_by(SIGTSTP);
    if (lent && is_ours(terminal)) {
        lend(terminal, process);
    }
    process_signal(process, SIGCONT);
}

/* While we are in the background the command can't have the terminal. A user who puts us into the foreground wants the
 * command there. */
static void ask(struct terminal *terminal, const struct process *process, int by)
{
    if (!is_ours(terminal) && !stop_by(by)) {
        return; /* the command would only ask again; it stays stopped, and its timeout and our signals still reach it */
    }
    if (is_ours(terminal)) {
        lend(terminal, process);
    }
    process_signal(process, SIGCONT);
}

void terminal_stopped(struct terminal *terminal, struct process *process)
{
    int by = process->stopped;
    process->stopped = 0;
    if (terminal->fd >= 0 && (by == SIGTTIN || by == SIGTTOU)) {
        ask(terminal, process, by);
    } else if (terminal->lent != 0) { /* by SIGSTOP too: top(1) answers Ctrl-Z with that */
        (void)kill(0, SIGTSTP); /* other processes of our job did not get the key's signal; for us it is blocked */
        terminal_stop(terminal, process);
    } else if (terminal->fd >= 0 && by == SIGTSTP) {
        terminal_stop(terminal, process);
    } /* else a user stopped it by hand, and will continue it the same way */
}

int terminal_key(const struct terminal *terminal, const struct process *process)
{
    bool by_key = process->signal == SIGINT || process->signal == SIGQUIT || process->signal == SIGHUP;
    if (terminal->lent == 0) {
        return 0;
    }
    return process->code == CODE_SIGNAL + SIGINT ? SIGINT : by_key ? process->signal : 0;
}
