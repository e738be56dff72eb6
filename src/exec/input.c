/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE 4096 /* read at once, and only when the command has taken everything before */

void input_open(struct input *input, int source, size_t max)
{
    struct stat status;
    *input = (struct input){.way = INPUT_AS_IT_IS, .source = source, .pipe = -1, .max = max};
    if (fstat(source, &status) != 0) {
        return;
    }
    if (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)) {
        input->way = INPUT_KEPT;
    } else if (S_ISREG(status.st_mode)) {
        input->start = lseek(source, 0, SEEK_CUR);
        input->way = input->start >= 0 ? INPUT_REWOUND : INPUT_AS_IT_IS;
    }
}

void input_close(struct input *input)
{
    input_end(input);
    free(input->kept);
    input->kept = NULL;
}

bool input_begin(struct input *input, int *fd)
{
    int ends[2];
    *fd = input->source;
    if (input->way == INPUT_AS_IT_IS) {
        return true;
    }
    if (input->way == INPUT_REWOUND) {
        return lseek(input->source, input->start, SEEK_SET) >= 0;
    }
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    (void)fcntl(ends[1], F_SETFL, O_NONBLOCK); /* our end alone; the command's has a description of its own */
    input->pipe = ends[1];
    input->sent = 0;
    *fd = ends[0];
    return true;
}

void input_started(struct input *input, int fd)
{
    if (input->way == INPUT_KEPT) {
        close(fd);
        if (input->ended && input->length == 0) {
            input_end(input); /* empty, as an earlier attempt found out */
        }
    }
}

void input_end(struct input *input)
{
    if (input->pipe >= 0) {
        close(input->pipe);
        input->pipe = -1;
    }
}

void input_poll(const struct input *input, struct pollfd fds[2])
{
    fds[0] = (struct pollfd){.fd = -1};
    fds[1] = (struct pollfd){.fd = -1};
    if (input->pipe < 0) {
        return;
    }
    /* The pipe always: that its reader has gone is told by an error even while nothing waits to be written. */
    fds[0] = (struct pollfd){.fd = input->pipe, .events = input->sent < input->length ? POLLOUT : 0};
    if (input->sent == input->length && !input->ended) {
        fds[1] = (struct pollfd){.fd = input->source, .events = POLLIN};
    }
}

/* Room for one more piece. Beyond the cap, the kept bytes are dropped: all of them have been sent. */
static bool room_make(struct input *input)
{
    if (input->over) {
        input->length = input->sent = 0;
        return true;
    }
    if (input->room - input->length >= PIECE) {
        return true;
    }
    size_t room = input->room == 0 ? 4 * (size_t)PIECE : 2 * input->room;
    char *kept = realloc(input->kept, room);
    if (kept == NULL) {
        return false;
    }
    input->kept = kept;
    input->room = room;
    return true;
}

static void take(struct input *input)
{
    if (!room_make(input)) {
        input->ended = input->over = true; /* the command sees the end too early, but it is not told twice */
        return;
    }
    ssize_t got = read(input->source, input->kept + input->length, PIECE);
    if (got > 0) {
        input->length += (size_t)got;
        input->over = input->over || input->length > input->max;
    } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
        input->ended = true;
    }
}

static void pass_on(struct input *input)
{
    ssize_t put = write(input->pipe, input->kept + input->sent, input->length - input->sent);
    if (put > 0) {
        input->sent += (size_t)put;
    } else if (put < 0 && errno != EAGAIN && errno != EINTR) {
        input_end(input); /* the command does not want any more */
    }
}

void input_move(struct input *input, const struct pollfd fds[2])
{
    if (input->pipe >= 0 && fds[0].fd >= 0 && (fds[0].revents & (POLLERR | POLLNVAL)) != 0) {
        input_end(input);
    }
    if (input->pipe >= 0 && fds[1].fd >= 0 && fds[1].revents != 0) {
        take(input);
    }
    if (input->pipe >= 0 && input->sent < input->length) {
        pass_on(input);
    }
    if (input->pipe >= 0 && input->ended && input->sent == input->length) {
        input_end(input);
    }
}
