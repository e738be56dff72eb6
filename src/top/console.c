/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "console.h"

#include <errno.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* The second screen and no cursor; and back. */
static const char enter[] = "\033[?1049h\033[?25l";
static const char leave[] = "\033[0m\033[?25h\033[?1049l";

static const int asking[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};
static const int fatal[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

bool console_write(const char *text, size_t length)
{
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, text, length);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        text += written < 0 ? 0 : written;
        length -= written < 0 ? 0 : (size_t)written;
    }
    return true;
}

/* The message of a bug must not vanish with the alternate screen, nor leave a terminal without echo. The old settings
 * are unknown here, because a handler could only read them from a global: line mode and echo are the usual ones. */
static void on_fatal(int number)
{
    struct termios now;
    console_write(leave, sizeof leave - 1);
    if (tcgetattr(STDIN_FILENO, &now) == 0) {
        now.c_lflag |= ICANON | ECHO;
        tcsetattr(STDIN_FILENO, TCSANOW, &now);
    }
    raise(number); /* SA_RESETHAND: it ends the program now */
}

static void take_over(struct console *t)
{
    struct termios raw = t->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    console_write(enter, sizeof enter - 1);
}

static void give_back(const struct console *t)
{
    console_write(leave, sizeof leave - 1);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &t->before); /* drops unread keys, which are not meant for the shell */
}

bool console_open(struct console *t)
{
    sigset_t mask;
    if (isatty(STDOUT_FILENO) != 1 || tcgetattr(STDIN_FILENO, &t->before) != 0) {
        return false;
    }
    sigemptyset(&mask);
    for (size_t i = 0; i < COUNT(asking); i++) {
        sigaddset(&mask, asking[i]);
    }
    t->keys = STDIN_FILENO;
    t->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (t->signals < 0) {
        return false;
    }
    sigprocmask(SIG_BLOCK, &mask, &t->mask_before);
    signal(SIGPIPE, SIG_IGN);
    struct sigaction action = {.sa_handler = on_fatal, .sa_flags = (int)SA_RESETHAND | SA_NODEFER};
    for (size_t i = 0; i < COUNT(fatal); i++) {
        sigaction(fatal[i], &action, NULL);
    }
    take_over(t);
    return true;
}

void console_close(struct console *t)
{
    give_back(t);
    for (size_t i = 0; i < COUNT(fatal); i++) {
        signal(fatal[i], SIG_DFL);
    }
    close(t->signals);
    sigprocmask(SIG_SETMASK, &t->mask_before, NULL);
}

void console_size(uint32_t *width, uint32_t *height)
{
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    *width = known && size.ws_col > 0 ? size.ws_col : 80;
    *height = known && size.ws_row > 0 ? size.ws_row : 24;
}

int console_signal(struct console *t)
{
    struct signalfd_siginfo info;
    return read(t->signals, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

void console_raise(int number)
{
    sigset_t mask;
    signal(number, SIG_DFL);
    sigemptyset(&mask);
    sigaddset(&mask, number);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &mask, NULL); /* here it comes */
    sigprocmask(SIG_BLOCK, &mask, NULL);
}

void console_stop(struct console *t)
{
    give_back(t);
    console_raise(SIGTSTP);
    take_over(t);
}
