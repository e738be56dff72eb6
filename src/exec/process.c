/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "process.h"

#include "codes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void process_adopt(void)
{
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* refused: orphans go to init, and their end is not awaited */
}

static void environment_change(const struct process_variable *change)
{
    for (; change->name != NULL; change++) {
        if (change->value[0] == '\0') {
            (void)unsetenv(change->name);
        } else {
            (void)setenv(change->name, change->value, 1);
        }
    }
}

/* In the child. Comes back only if the command can't be run, with errno. */
static void become(const struct process_plan *plan)
{
    int keep[3];
    (void)setpgid(0, 0);
    /* Copies first: the new standard input may be the present standard output. */
    for (int i = 0; i < 3; i++) {
        keep[i] = fcntl(plan->fd[i], F_DUPFD_CLOEXEC, 3);
        if (keep[i] < 0) {
            return;
        }
    }
    for (int i = 0; i < 3; i++) {
        if (dup2(keep[i], i) < 0) {
            return;
        }
    }
    environment_change(plan->change);
    (void)sigprocmask(SIG_SETMASK, plan->mask, NULL);
    (void)execvp(plan->argv[0], plan->argv);
}

/* The errno of the child's exec; 0 when the pipe was closed by its success. */
static int exec_error(int fd)
{
    int error = 0;
    ssize_t length;
    do {
        length = read(fd, &error, sizeof error);
    } while (length < 0 && errno == EINTR);
    return length == (ssize_t)sizeof error ? error : 0;
}

int process_start(struct process *process, const struct process_plan *plan, bool *forked)
{
    int tell[2];
    memset(process, 0, sizeof *process);
    *forked = false;
    if (pipe2(tell, O_CLOEXEC) != 0) {
        return errno;
    }
    pid_t pid = fork();
    if (pid == 0) {
        become(plan);
        int error = errno;
        (void)!write(tell[1], &error, sizeof error);
        _exit(CODE_NOT_RUN);
    }
    int error = errno;
    close(tell[1]);
    if (pid > 0) {
        *forked = true;
        (void)setpgid(pid, pid); /* here too: parent and child race, and either may be first */
        error = exec_error(tell[0]);
        process->pid = pid;
    }
    close(tell[0]);
    if (pid > 0 && error != 0) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        }
        process->pid = 0;
    }
    return error;
}

static void note_end(struct process *process, const siginfo_t *info)
{
    if (info->si_code == CLD_STOPPED) {
        process->stopped = info->si_status;
        return;
    }
    process->ended = true;
    process->stopped = 0;
    process->signal = info->si_code == CLD_EXITED ? 0 : info->si_status;
    process->code = info->si_code == CLD_EXITED ? info->si_status : CODE_SIGNAL + info->si_status;
}

void process_reap(struct process *process)
{
    for (;;) {
        siginfo_t info = {.si_pid = 0};
        if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG) != 0 || info.si_pid == 0) {
            return;
        }
        if (info.si_pid == process->pid && !process->ended) {
            note_end(process, &info);
        }
    }
}

/* While one of our children, born or adopted, is in the group, its number can't have been given to another process. */
static bool group_has_children(const struct process *process)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PGID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool process_group_gone(const struct process *process)
{
    return process->pid == 0 || (process->ended && !group_has_children(process));
}

void process_signal(const struct process *process, int signal)
{
    if (!process_group_gone(process)) {
        (void)kill(-process->pid, signal);
    }
}
