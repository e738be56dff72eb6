/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_MAX 4096u /* PIPE_BUF: so much fits without blocking when poll says that anything does */

/* As after 2>&1, or on a terminal. */
static bool is_one_place(void)
{
    struct stat out;
    struct stat err;
    return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 && out.st_dev == err.st_dev &&
           out.st_ino == err.st_ino;
}

void output_open(struct output *output, enum output_show show, const struct patterns *patterns, size_t max,
                 int interrupt)
{
    memset(output, 0, sizeof *output);
    output->show = show;
    output->patterns = patterns;
    output->max = max;
    output->joined = show != OUTPUT_ONCE && is_one_place();
    output->interrupt = interrupt;
    output->stream[0].pipe = output->stream[1].pipe = -1;
}

static void stream_close(struct output_stream *stream)
{
    if (stream->pipe >= 0) {
        close(stream->pipe);
        stream->pipe = -1;
    }
}

void output_close(struct output *output)
{
    stream_close(&output->stream[0]);
    stream_close(&output->stream[1]);
    free(output->kept);
    output->kept = NULL;
}

/* Is this stream shown as it comes, or kept back? */
static bool shown_at_once(const struct output *output, int index)
{
    return output->show == OUTPUT_ALL || (output->show == OUTPUT_ONCE && index == 1);
}

static bool needs_pipe(const struct output *output, int index)
{
    return !shown_at_once(output, index) || patterns_any(output->patterns);
}

static void kept_forget(struct output *output)
{
    output->length = output->next = output->left = 0;
}

bool output_begin(struct output *output, int fd[2])
{
    kept_forget(output);
    output->delivered = false;
    memset(output->found, 0, sizeof output->found);
    for (int i = 0; i < 2; i++) {
        struct output_stream *stream = &output->stream[i];
        int ends[2];
        fd[i] = i + 1;
        stream->length = stream->sent = stream->owed = 0;
        matcher_begin(&stream->matcher);
        stream->through = shown_at_once(output, i);
        if (!needs_pipe(output, i)) {
            continue;
        }
        if (i == 1 && output->joined) {
            fd[1] = fd[0]; /* one pipe keeps the order in which they were printed, which two can't */
            continue;
        }
        if (pipe2(ends, O_CLOEXEC) != 0) {
            output_started(output, fd);
            stream_close(&output->stream[0]);
            return false;
        }
        (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
        stream->pipe = ends[0];
        fd[i] = ends[1];
    }
    return true;
}

void output_started(struct output *output, const int fd[2])
{
    for (int i = 0; i < 2; i++) {
        if (output->stream[i].pipe >= 0 && fd[i] != i + 1) {
            close(fd[i]);
        }
    }
}

void output_poll(const struct output *output, struct pollfd fds[2])
{
    if (output->left > 0) {
        fds[0] = (struct pollfd){.fd = output->to, .events = POLLOUT};
        fds[1] = (struct pollfd){.fd = -1};
        return;
    }
    for (int i = 0; i < 2; i++) {
        const struct output_stream *stream = &output->stream[i];
        fds[i] = (struct pollfd){.fd = stream->pipe, .events = POLLIN};
        if (stream->sent < stream->length) { /* bytes that were read are written before more is read */
            fds[i] = (struct pollfd){.fd = i + 1, .events = POLLOUT};
        }
    }
}

/* ---- keeping back ---- */

static bool keep(struct output *output, int index, const char *bytes, size_t length)
{
    uint32_t head = (uint32_t)length << 1 | (uint32_t)index;
    size_t need = output->length + sizeof head + length;
    if (need > output->room) {
        size_t room = need > 2 * output->room ? need + PIECE_MAX : 2 * output->room;
        char *kept = realloc(output->kept, room);
        if (kept == NULL) {
            return false;
        }
        output->kept = kept;
        output->room = room;
    }
    memcpy(output->kept + output->length, &head, sizeof head);
    memcpy(output->kept + output->length + sizeof head, bytes, length);
    output->length = need;
    return true;
}

/* A write failed. It is no failure if the reader has gone. It is one if a disk is full, because output is lost. */
static void note_error(struct output *output, int error)
{
    if (error != EPIPE && output->error == 0) {
        output->error = error;
    }
}

/* Goes on to the next kept piece, if the one before is written. False: there is none. */
static bool kept_turn(struct output *output, bool last)
{
    uint32_t head;
    if (output->left == 0 && output->next < output->length) {
        memcpy(&head, output->kept + output->next, sizeof head);
        output->next += sizeof head;
        output->left = head >> 1;
        output->to = last ? (int)(head & 1) + 1 : STDERR_FILENO;
    }
    return output->left > 0;
}

/* Writes as much of the piece as is possible without waiting. If the write fails, the piece is dropped. */
static void kept_write(struct output *output)
{
    ssize_t put = write(output->to, output->kept + output->next, output->left);
    if (put < 0 && errno != EINTR && errno != EAGAIN) {
        note_error(output, errno);
        put = (ssize_t)output->left;
    }
    output->next += put > 0 ? (size_t)put : 0;
    output->left -= put > 0 ? (size_t)put : 0;
}

bool output_settle(struct output *output, bool last, int patience)
{
    bool wanted = last || output->show == OUTPUT_ONCE;
    bool fine = true;
    while (fine && wanted && kept_turn(output, last)) {
        struct pollfd fds[2] = {{.fd = output->to, .events = POLLOUT}, {.fd = output->interrupt, .events = POLLIN}};
        int ready = poll(fds, 2, patience);
        if (ready < 0 && errno != EINTR) {
            break;
        }
        fine = ready != 0 && (fds[1].revents & POLLIN) == 0;
        if (fine && fds[0].revents != 0) {
            kept_write(output);
        }
    }
    kept_forget(output);
    return fine;
}

/* ---- one attempt ---- */

/* Too much to keep: from here on this attempt is shown. The kept bytes go first, as fast as the reader takes them. */
static void deliver(struct output *output)
{
    output->delivered = true;
    output->stream[0].through = output->stream[1].through = true;
    (void)kept_turn(output, true);
}

static void stream_take(struct output *output, int index)
{
    struct output_stream *stream = &output->stream[index];
    ssize_t got = read(stream->pipe, stream->piece, sizeof stream->piece);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (got <= 0) {
        stream_close(stream);
        return;
    }
    size_t length = (size_t)got;
    stream->owed -= stream->owed < length ? stream->owed : length;
    if (patterns_any(output->patterns)) {
        matcher_feed(&stream->matcher, output->patterns, stream->piece, length, output->found);
    }
    if (!stream->through && (output->length + length > output->max || !keep(output, index, stream->piece, length))) {
        deliver(output);
    }
    if (stream->through) {
        stream->sent = 0;
        stream->length = length;
    }
}

static void stream_pass(struct output *output, int index)
{
    struct output_stream *stream = &output->stream[index];
    int fd = index + 1;
    ssize_t put = write(fd, stream->piece + stream->sent, stream->length - stream->sent);
    if (put > 0) {
        stream->sent += (size_t)put;
    } else if (put < 0 && errno != EAGAIN && errno != EINTR) {
        note_error(output, errno);
        stream->sent = stream->length;
        stream_close(stream); /* our reader has gone, or the like: the command learns of it as it would without us */
    }
}

void output_move(struct output *output, const struct pollfd fds[2])
{
    if (output->left > 0) {
        if (fds[0].revents != 0) {
            kept_write(output);
            (void)kept_turn(output, true);
        }
        return;
    }
    for (int i = 0; i < 2; i++) {
        struct output_stream *stream = &output->stream[i];
        if (fds[i].fd < 0 || fds[i].revents == 0) {
            continue;
        }
        if (stream->sent < stream->length) {
            stream_pass(output, i);
        } else if (stream->pipe >= 0) {
            stream_take(output, i);
        }
    }
}

void output_ended(struct output *output)
{
    for (int i = 0; i < 2; i++) {
        int waiting = 0;
        if (output->stream[i].pipe >= 0 && ioctl(output->stream[i].pipe, FIONREAD, &waiting) == 0 && waiting > 0) {
            output->stream[i].owed = (size_t)waiting;
        }
    }
}

bool output_done(const struct output *output, bool patience)
{
    for (int i = 0; i < 2; i++) {
        const struct output_stream *stream = &output->stream[i];
        if (output->left > 0 || stream->sent < stream->length ||
            (stream->pipe >= 0 && (patience || stream->owed > 0))) {
            return false;
        }
    }
    return true;
}

void output_end(struct output *output)
{
    for (int i = 0; i < 2; i++) {
        struct output_stream *stream = &output->stream[i];
        stream_close(stream);
        matcher_end(&stream->matcher, output->patterns, output->found);
    }
}
