/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* clocks, signals */
#include "log.h"

#include "ring.h"
#include "thread.h"

#include "meter/buffer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FLUSH_MAX  BECALM_S        /* how long log_free() may take */
#define TELL_EVERY BECALM_S        /* how often dropped lines are told */
#define GATHER     (1 * BECALM_MS) /* the writer rests this long between two batches, so that lines gather */
#define PATIENCE   100             /* ms: how often a writer that can't write tries again by itself */
#define TURN       32              /* writes to a file for one source, until the next one has its turn */
#define NO_SOURCE  UINT32_MAX

enum stream_name { STREAM_LINES, STREAM_ACCESS, STREAM_COUNT };

/* The result of the latest round of writes to a stream's file. */
enum flow {
    FLOW_IDLE,    /* nothing was there to write */
    FLOW_WRITTEN, /* everything that was there */
    FLOW_BLOCKED, /* a pipe is full: some is left */
    FLOW_FAILED   /* lines were dropped */
};

/* One file, the writer's alone but for `fd` and `lost`. */
struct stream {
    BECALM_ATOMIC(int) fd;
    BECALM_ATOMIC(uint64_t) lost; /* lines that the file did not take */
    uint64_t told;                /* of all dropped lines, those that a line has told of */
    becalm_ns told_at;
    uint32_t cut; /* the source of which half a line is written, or NO_SOURCE */
    int error;    /* of the latest write that failed */
    enum flow flow;
    bool failing; /* since the latest write that worked */
};

struct log_source {
    struct log *log;
    BECALM_ATOMIC(uint64_t) dropped[STREAM_COUNT]; /* lines that found no room */
    struct ring ring[STREAM_COUNT];
};

struct log {
    BECALM_ATOMIC(uint32_t) settings; /* level, format, access: a byte each */
    BECALM_ATOMIC(bool) asleep;       /* the writer wants to be woken */
    BECALM_ATOMIC(bool) stopping;
    int wake_fd;
    pthread_t writer;
    struct stream stream[STREAM_COUNT];
    uint32_t source_count;      /* the last one is the writer's own */
    struct log_source source[]; /* aligned as its rings are */
};

/* ---- settings ---- */

static uint32_t settings_word(const struct log_settings *s)
{
    return (uint32_t)s->level | (uint32_t)s->format << 8 | (uint32_t)s->access << 16;
}

static uint32_t settings_now(const struct log *log)
{
    return atomic_load_explicit(&log->settings, memory_order_relaxed); /* one word, which guards nothing else */
}

static enum becalm_log_format format_now(const struct log *log)
{
    return (enum becalm_log_format)(settings_now(log) >> 8 & 0xff);
}

static enum becalm_log_access access_now(const struct log *log)
{
    return (enum becalm_log_access)(settings_now(log) >> 16 & 0xff);
}

void log_change(struct log *log, const struct log_settings *settings)
{
    atomic_store_explicit(&log->settings, settings_word(settings), memory_order_relaxed);
    /* release: the writer uses a file only after it was opened */
    atomic_store_explicit(&log->stream[STREAM_LINES].fd, settings->fd, memory_order_release);
    atomic_store_explicit(&log->stream[STREAM_ACCESS].fd, settings->access_fd, memory_order_release);
}

bool log_wants(const struct log_source *source, enum becalm_log_level level)
{
    return (uint32_t)level <= (settings_now(source->log) & 0xff);
}

bool log_wants_access(const struct log_source *source)
{
    return access_now(source->log) != BECALM_ACCESS_OFF;
}

/* ---- the workers' side ---- */

/* Only the first of a batch finds the writer asleep and makes a system call. Sequentially consistent with the ring's
 * put and the writer's own two steps in writer_sleep(): either this thread sees that the writer sleeps, or the writer
 * sees the new line. */
static void log_wake(struct log *log)
{
    if (atomic_load_explicit(&log->asleep, memory_order_seq_cst) &&
        atomic_exchange_explicit(&log->asleep, false, memory_order_seq_cst)) {
        uint64_t one = 1;
        ssize_t written = write(log->wake_fd, &one, sizeof one);
        BECALM_ASSERT(written == (ssize_t)sizeof one); /* an eventfd of so small a count takes every one */
    }
}

static bool source_put(struct log_source *source, enum stream_name stream, const char *line, size_t length)
{
    bool put = ring_put(&source->ring[stream], line, length);
    if (!put) { /* only this thread writes the count */
        uint64_t dropped = atomic_load_explicit(&source->dropped[stream], memory_order_relaxed);
        atomic_store_explicit(&source->dropped[stream], dropped + 1, memory_order_relaxed);
    }
    log_wake(source->log);
    return put;
}

void log_line(struct log_source *source, enum becalm_log_level level, uint64_t wall, const char *message,
              const struct log_pair *pairs, size_t count)
{
    char line[LOG_LINE_MAX];
    if (log_wants(source, level)) {
        size_t length = log_text_line(line, format_now(source->log), level, wall, message, pairs, count);
        source_put(source, STREAM_LINES, line, length);
    }
}

void log_access_line(struct log_source *source, const struct log_access *access)
{
    char line[LOG_LINE_MAX];
    enum becalm_log_access form = access_now(source->log);
    if (form != BECALM_ACCESS_OFF) {
        source_put(source, STREAM_ACCESS, line, log_text_access(line, form, access));
    }
}

struct log_source *log_source_of(struct log *log, uint32_t index)
{
    BECALM_ASSERT(index + 1 < log->source_count);
    return &log->source[index];
}

static uint64_t stream_dropped(const struct log *log, enum stream_name name)
{
    uint64_t sum = atomic_load_explicit(&log->stream[name].lost, memory_order_relaxed);
    for (uint32_t i = 0; i < log->source_count; i++) {
        sum += atomic_load_explicit(&log->source[i].dropped[name], memory_order_relaxed);
    }
    return sum;
}

uint64_t log_dropped(const struct log *log)
{
    return stream_dropped(log, STREAM_LINES) + stream_dropped(log, STREAM_ACCESS);
}

/* ---- the writer's side ---- */

static int stream_fd(const struct stream *stream)
{
    return atomic_load_explicit(&stream->fd, memory_order_acquire); /* pairs with log_change() */
}

static char byte_at(const struct iovec piece[2], size_t at)
{
    return at < piece[0].iov_len ? ((const char *)piece[0].iov_base)[at]
                                 : ((const char *)piece[1].iov_base)[at - piece[0].iov_len];
}

/* Shortens the pieces to whole lines of at most `most` bytes in all, and returns how long they are. A line is never
 * longer than that. */
static size_t whole_lines(struct iovec piece[2], size_t length, size_t most)
{
    if (length > most) {
        length = most;
        while (length > 0 && byte_at(piece, length - 1) != '\n') {
            length--;
        }
    }
    piece[0].iov_len = length < piece[0].iov_len ? length : piece[0].iov_len;
    piece[1].iov_len = length - piece[0].iov_len;
    return length;
}

/* May a blocking file be written to now without blocking? A pipe that poll() calls writable takes PIPE_BUF. */
static bool is_ready(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
    return poll(&poll_fd, 1, 0) != 0; /* errors too: writing will say which */
}

static bool is_regular(int fd)
{
    struct stat stat;
    return fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode);
}

/* Drops the lines of a ring, and says how many. */
static uint64_t ring_drop(struct ring *ring)
{
    struct iovec piece[2];
    uint64_t lines = 0;
    size_t length = ring_peek(ring, piece);
    for (size_t i = 0; i < length; i++) {
        lines += byte_at(piece, i) == '\n';
    }
    ring_take(ring, length);
    return lines;
}

/* The file accepted no bytes. If half a line was written, its rest must come first when the file works again. So the
 * source of that line keeps its ring, and its worker drops new lines when the ring is full. */
static enum flow stream_failed(struct log *log, enum stream_name name)
{
    struct stream *stream = &log->stream[name];
    uint64_t lost = atomic_load_explicit(&stream->lost, memory_order_relaxed);
    for (uint32_t i = 0; i < log->source_count; i++) {
        lost += stream->cut == i ? 0 : ring_drop(&log->source[i].ring[name]);
    }
    atomic_store_explicit(&stream->lost, lost, memory_order_relaxed);
    return FLOW_FAILED;
}

/* One write of one source's lines. FLOW_IDLE: there are none (any more). */
static enum flow source_write(struct log *log, enum stream_name name, uint32_t index, bool regular)
{
    struct stream *stream = &log->stream[name];
    struct ring *ring = &log->source[index].ring[name];
    int fd = stream_fd(stream);
    struct iovec piece[2];
    size_t length = ring_peek(ring, piece);
    if (length == 0) {
        return FLOW_IDLE;
    }
    length = whole_lines(piece, length, regular ? RING_BYTES : LOG_LINE_MAX);
    if (!regular && !is_ready(fd)) {
        return FLOW_BLOCKED;
    }
    ssize_t written = writev(fd, piece, piece[1].iov_len > 0 ? 2 : 1);
    if (written < 0) {
        stream->error = errno;
        return errno == EAGAIN || errno == EINTR ? FLOW_BLOCKED : stream_failed(log, name);
    }
    if (written > 0) {
        stream->cut = byte_at(piece, (size_t)written - 1) == '\n' ? NO_SOURCE : index;
        ring_take(ring, (size_t)written);
    }
    return FLOW_WRITTEN;
}

/* Writes the lines that wait in one source, but not all that are put meanwhile, because other sources wait too. */
static enum flow source_drain(struct log *log, enum stream_name name, uint32_t index, bool regular)
{
    enum flow flow = source_write(log, name, index, regular);
    for (unsigned i = 1; flow == FLOW_WRITTEN && i < TURN; i++) {
        enum flow next = source_write(log, name, index, regular);
        if (next == FLOW_IDLE) {
            break;
        }
        flow = next;
    }
    return flow;
}

static enum flow stream_drain(struct log *log, enum stream_name name)
{
    struct stream *stream = &log->stream[name];
    bool regular = is_regular(stream_fd(stream));
    enum flow flow = FLOW_IDLE;
    if (stream->cut != NO_SOURCE) { /* half a line is written: no other may come in between */
        flow = source_drain(log, name, stream->cut, regular);
    }
    for (uint32_t i = 0; i < log->source_count && stream->cut == NO_SOURCE; i++) {
        enum flow next = source_drain(log, name, i, regular);
        flow = next == FLOW_IDLE ? flow : next;
        if (next == FLOW_BLOCKED || next == FLOW_FAILED) {
            break;
        }
    }
    return flow;
}

/* The writer's own lines take the same way as all others. */
static bool writer_says(struct log *log, enum becalm_log_level level, const char *message, const struct log_pair *pair)
{
    char line[LOG_LINE_MAX];
    size_t length = log_text_line(line, format_now(log), level, thread_clock(CLOCK_REALTIME), message, pair, 1);
    return source_put(&log->source[log->source_count - 1], STREAM_LINES, line, length);
}

static void stream_round(struct log *log, enum stream_name name)
{
    struct stream *stream = &log->stream[name];
    stream->flow = stream_drain(log, name);
    if (stream->flow == FLOW_FAILED && !stream->failing && name == STREAM_ACCESS) {
        char text[128] = "";
        (void)strerror_r(stream->error, text, sizeof text);
        struct log_pair error = {"error", LOG_TEXT, text_of(text), 0};
        writer_says(log, BECALM_LOG_ERROR, "the access log can't be written", &error);
    }
    stream->failing = stream->flow == FLOW_FAILED || (stream->failing && stream->flow != FLOW_WRITTEN);
}

static bool is_untold(const struct log *log, enum stream_name name)
{
    return !log->stream[name].failing && stream_dropped(log, name) != log->stream[name].told;
}

/* Says how many lines were dropped, once the file takes lines again. `last`: nothing comes after this. */
static void stream_tell(struct log *log, enum stream_name name, becalm_ns now, bool last)
{
    static const char *const message[STREAM_COUNT] = {"log lines were dropped", "access log lines were dropped"};
    struct stream *stream = &log->stream[name];
    bool soon = stream->told > 0 && becalm_ns_since(now, stream->told_at) < TELL_EVERY;
    if (!is_untold(log, name) || stream->flow == FLOW_BLOCKED || (soon && !last)) {
        return;
    }
    uint64_t dropped = stream_dropped(log, name);
    struct log_pair pair = {"lines", LOG_NUMBER, {0}, dropped - stream->told};
    if (writer_says(log, BECALM_LOG_WARN, message[name], &pair)) {
        stream->told = dropped;
        stream->told_at = now;
    }
}

static bool stream_waiting(const struct log *log, enum stream_name name)
{
    for (uint32_t i = 0; i < log->source_count; i++) {
        if (ring_waiting(&log->source[i].ring[name]) > 0) {
            return true;
        }
    }
    return false;
}

/* Are there lines that can be written now? Lines that a full pipe or a broken file holds up do not count. */
static bool writer_busy(const struct log *log)
{
    bool busy = false;
    for (enum stream_name name = 0; name < STREAM_COUNT; name++) {
        bool stuck = log->stream[name].flow == FLOW_BLOCKED || log->stream[name].flow == FLOW_FAILED;
        busy = busy || (!stuck && stream_waiting(log, name));
    }
    return busy;
}

/* Until a worker wakes it, a full pipe has room again, or it is time to look. */
static void writer_sleep(struct log *log)
{
    struct pollfd fd[1 + STREAM_COUNT] = {{.fd = log->wake_fd, .events = POLLIN}};
    int timeout = -1;
    for (enum stream_name name = 0; name < STREAM_COUNT; name++) {
        bool blocked = log->stream[name].flow == FLOW_BLOCKED;
        int own = stream_fd(&log->stream[name]);
        fd[1 + name] = (struct pollfd){.fd = blocked ? own : -1, .events = POLLOUT};
        if (blocked || log->stream[name].cut != NO_SOURCE || is_untold(log, name)) {
            timeout = PATIENCE;
        }
    }
    atomic_store_explicit(&log->asleep, true, memory_order_seq_cst); /* and only then look again: see log_wake() */
    if (!writer_busy(log) && !atomic_load_explicit(&log->stopping, memory_order_seq_cst)) {
        (void)poll(fd, 1 + STREAM_COUNT, timeout);
    }
    atomic_store_explicit(&log->asleep, false, memory_order_seq_cst);
    uint64_t count;
    ssize_t taken = read(log->wake_fd, &count, sizeof count); /* so that it does not wake again; nothing there: fine */
    (void)taken;
}

/* Does something wait that may yet be written? */
static bool stream_hopes(const struct log *log, enum stream_name name)
{
    return !log->stream[name].failing && stream_waiting(log, name);
}

static void writer_gather(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = GATHER}, NULL);
}

static void *writer_run(void *data)
{
    struct log *log = data;
    becalm_ns stop_at = BECALM_NEVER;
    for (;;) {
        bool stopping = atomic_load_explicit(&log->stopping, memory_order_acquire); /* after every worker's last line */
        becalm_ns now = thread_clock(CLOCK_MONOTONIC);
        stop_at = stopping ? becalm_ns_min(stop_at, becalm_ns_after(now, FLUSH_MAX)) : BECALM_NEVER;
        stream_round(log, STREAM_LINES);
        stream_round(log, STREAM_ACCESS);
        stream_tell(log, STREAM_LINES, now, stopping);
        stream_tell(log, STREAM_ACCESS, now, stopping);
        if (stopping && (now >= stop_at || !(stream_hopes(log, STREAM_LINES) || stream_hopes(log, STREAM_ACCESS)))) {
            return NULL;
        }
        bool wrote = log->stream[STREAM_LINES].flow == FLOW_WRITTEN || log->stream[STREAM_ACCESS].flow == FLOW_WRITTEN;
        if (wrote || stopping) {
            writer_gather();
        } else {
            writer_sleep(log);
        }
    }
}

/* ---- the life of a log ---- */

struct log *log_make(const struct log_settings *settings, uint32_t sources)
{
    size_t bytes = sizeof(struct log) + ((size_t)sources + 1) * sizeof(struct log_source);
    struct log *log = aligned_alloc(alignof(struct log), bytes);
    if (log == NULL) {
        return NULL;
    }
    memset(log, 0, sizeof *log);
    log->source_count = sources + 1;
    log_change(log, settings);
    for (uint32_t i = 0; i < log->source_count; i++) { /* the rings' bytes stay untouched, and cost nothing yet */
        memset(&log->source[i], 0, offsetof(struct log_source, ring));
        log->source[i].log = log;
        for (enum stream_name name = 0; name < STREAM_COUNT; name++) {
            ring_init(&log->source[i].ring[name]);
        }
    }
    for (enum stream_name name = 0; name < STREAM_COUNT; name++) {
        log->stream[name].cut = NO_SOURCE;
    }
    log->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (log->wake_fd < 0 || thread_start(&log->writer, writer_run, log) != 0) {
        if (log->wake_fd >= 0) {
            close(log->wake_fd);
        }
        free(log);
        return NULL;
    }
    return log;
}

void log_free(struct log *log)
{
    if (log == NULL) {
        return;
    }
    atomic_store_explicit(&log->stopping, true, memory_order_seq_cst); /* seq_cst: as in log_wake() */
    log_wake(log);
    (void)pthread_join(log->writer, NULL);
    close(log->wake_fd);
    free(log);
}
