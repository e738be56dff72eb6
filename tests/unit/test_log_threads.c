/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* pipe2 */
#include "check.h"

#include "journal/log.h"
#include "journal/ring.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4u
#define LINES   3000u

struct worker {
    struct log_source *source;
    uint32_t number;
};

static void *worker_run(void *data)
{
    const struct worker *worker = data;
    for (uint32_t i = 0; i < LINES; i++) {
        const struct log_pair pairs[] = {{"worker", LOG_NUMBER, {0}, worker->number}, {"line", LOG_NUMBER, {0}, i}};
        log_line(worker->source, BECALM_LOG_INFO, 0, "said", pairs, 2);
        if (i % 64 == 0) {
            sched_yield(); /* lets the writer sleep now and then, so that waking it is tried too */
        }
    }
    return NULL;
}

/* Reads lines as they come; counts them, and sees that each is whole, and in its worker's order. */
struct reader {
    int fd;
    _Atomic(uint64_t) seen;
    int64_t last[THREADS];
    uint64_t told; /* lines that are missing, as the log says */
    bool broken;
};

static void *reader_run(void *data)
{
    struct reader *reader = data;
    FILE *in = fdopen(reader->fd, "r");
    char line[256];
    for (uint32_t i = 0; i < THREADS; i++) {
        reader->last[i] = -1;
    }
    while (in != NULL && fgets(line, sizeof line, in) != NULL) {
        uint32_t worker;
        int64_t number;
        uint64_t dropped;
        if (sscanf(line, "1970-01-01T00:00:00.000Z info  said worker=%" SCNu32 " line=%" SCNd64, &worker, &number) ==
                2 &&
            worker < THREADS && number > reader->last[worker]) {
            reader->last[worker] = number;
            reader->seen++;
        } else if (sscanf(line, "%*s warn  log lines were dropped lines=%" SCNu64, &dropped) == 1) {
            reader->told += dropped;
        } else {
            reader->broken = true;
        }
    }
    if (in != NULL) {
        fclose(in);
    }
    return NULL;
}

static void test_log_threads__every_line_is_written_whole_and_in_order_or_counted(void **state)
{
    (void)state;
    int ends[2];
    pthread_t thread[THREADS];
    pthread_t reading;
    struct worker worker[THREADS];
    check_true(pipe2(ends, O_CLOEXEC) == 0);
    struct reader reader = {.fd = ends[0]};
    struct log_settings settings = {BECALM_LOG_INFO, BECALM_LOG_TEXT, BECALM_ACCESS_OFF, ends[1], -1};
    struct log *log = log_make(&settings, THREADS);
    check_true(log != NULL && pthread_create(&reading, NULL, reader_run, &reader) == 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        worker[i] = (struct worker){log_source_of(log, i), i};
        check_true(pthread_create(&thread[i], NULL, worker_run, &worker[i]) == 0);
    }
    for (uint32_t i = 0; i < 100; i++) { /* a reload beside it, and a look at the metrics */
        log_change(log, &settings);
        (void)log_dropped(log);
        sched_yield();
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        check_true(pthread_join(thread[i], NULL) == 0);
    }
    uint64_t dropped = log_dropped(log); /* all lines: no thread writes any more, and the file takes all of them */
    for (int i = 0; i < 60000 && reader.seen + dropped < THREADS * LINES; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    log_free(log);
    close(ends[1]);
    check_true(pthread_join(reading, NULL) == 0);
    check_true(!reader.broken);
    check_eq_u64(reader.seen + dropped, THREADS * LINES);
    check_eq_u64(reader.told, dropped);
}

static void *ring_putter(void *data)
{
    struct ring *ring = data;
    unsigned char bytes[256];
    size_t next = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        size_t length = 1 + i * 7 % sizeof bytes;
        for (size_t k = 0; k < length; k++) {
            bytes[k] = (unsigned char)((next + k) % 251); /* not a divisor of the ring's size: old bytes are wrong */
        }
        while (!ring_put(ring, bytes, length)) {
            sched_yield();
        }
        next += length;
    }
    return NULL;
}

static void test_ring__bytes_come_out_as_they_went_in(void **state)
{
    (void)state;
    static struct ring ring;
    pthread_t putter;
    uint64_t total = 0;
    uint64_t taken = 0;
    size_t next = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        total += 1 + i * 7 % 256;
    }
    ring_init(&ring);
    check_true(pthread_create(&putter, NULL, ring_putter, &ring) == 0);
    bool right = true;
    while (taken < total) {
        struct iovec piece[2];
        size_t length = ring_peek(&ring, piece);
        for (size_t i = 0; i < length; i++) {
            const unsigned char *at = i < piece[0].iov_len
                                          ? (const unsigned char *)piece[0].iov_base + i
                                          : (const unsigned char *)piece[1].iov_base + i - piece[0].iov_len;
            right = right && *at == next++ % 251;
        }
        ring_take(&ring, length);
        taken += length;
    }
    check_true(pthread_join(putter, NULL) == 0);
    check_true(right);
    check_eq_u64(ring_waiting(&ring), 0);
}

static void test_ring__takes_exactly_what_fits(void **state)
{
    (void)state;
    static struct ring ring;
    static char bytes[RING_BYTES];
    struct iovec piece[2];
    ring_init(&ring);
    check_eq_u64(ring_peek(&ring, piece), 0);
    check_true(ring_put(&ring, bytes, RING_BYTES));
    check_true(!ring_put(&ring, bytes, 1));
    ring_take(&ring, 10);
    check_true(!ring_put(&ring, bytes, 11));
    check_true(ring_put(&ring, bytes, 10));
    check_eq_u64(ring_peek(&ring, piece), RING_BYTES);
    check_eq_u64(piece[1].iov_len, 10);
}

BECALM_TESTS(cmocka_unit_test(test_ring__takes_exactly_what_fits),
             cmocka_unit_test(test_ring__bytes_come_out_as_they_went_in),
             cmocka_unit_test(test_log_threads__every_line_is_written_whole_and_in_order_or_counted))
