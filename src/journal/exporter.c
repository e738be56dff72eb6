/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* clocks, signals */
#include "exporter.h"

#include "export.h"
#include "otlp.h"
#include "ring.h"
#include "thread.h"

#include "meter/buffer.h"
#include "run/entropy.h"

#include <becalm/rand.h>

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LOOK_EVERY  (200 * BECALM_MS)   /* how often rings are emptied, unless one of them is half full */
#define BATCH_AFTER BECALM_S            /* a span waits no longer for others to be exported with */
#define BATCH_SPANS 512u                /* so many are exported at once */
#define QUEUE_BYTES (4u * 1024 * 1024)  /* notes that wait */
#define BODY_MAX    (16u * 1024 * 1024) /* the most bytes of one batch as text */
#define TRIES       5u                  /* of one batch */
#define WAIT_FIRST  BECALM_S        /* before its second try, doubled for each further one, of which half is random */
#define WAIT_MAX    (30 * BECALM_S) /* however long the collector asks for */
#define FLUSH_MAX   BECALM_S        /* how long exporter_free() may take */

struct span_source {
    struct exporter *exporter;
    BECALM_ATOMIC(uint64_t) dropped; /* spans; only its worker writes it */
    struct ring ring;
};

/* The settings of a policy, in the form that the thread needs. */
struct orders {
    struct export_place place; /* without a URL: nothing is exported */
    char *service;
};

/* The thread's own. */
struct batch {
    struct buffer body; /* empty: there is none */
    uint32_t spans;
    uint32_t tries;
    bool going;
    becalm_ns retry_at;
};

struct exporter {
    BECALM_ATOMIC(bool) asleep; /* the thread wants to be woken by a ring that fills */
    BECALM_ATOMIC(bool) stopping;
    BECALM_ATOMIC(uint64_t) exported;
    BECALM_ATOMIC(uint64_t) no_room; /* in the queue */
    BECALM_ATOMIC(uint64_t) failed;
    BECALM_ATOMIC(uint64_t) refused;
    const char *instance;
    struct log_source *log;
    int wake_fd;
    bool running;
    pthread_t thread;
    pthread_mutex_t lock; /* `next` */
    struct orders *next;  /* NULL: nothing new */

    /* The thread's. */
    struct orders orders;
    struct export *export;
    struct batch batch;
    struct buffer queue; /* notes, one after the other */
    size_t taken;        /* bytes of it that are exported */
    becalm_ns oldest_at; /* when the first of them came */
    uint64_t random;
    bool failing; /* since the latest export that was taken */

    uint32_t source_count;
    struct span_source source[];
};

static void add(BECALM_ATOMIC(uint64_t) * count, uint64_t n)
{
    atomic_fetch_add_explicit(count, n, memory_order_relaxed);
}

/* ---- the workers' side ---- */

static void wake(struct exporter *exporter)
{
    uint64_t one = 1;
    ssize_t written = write(exporter->wake_fd, &one, sizeof one);
    BECALM_ASSERT(written == (ssize_t)sizeof one);
}

/* Only a ring that is half full makes a system call, and only the first time: few spans wait for the thread's next
 * look. */
void span_put(struct span_source *source, const struct span_note *note)
{
    struct exporter *exporter = source->exporter;
    if (!ring_put(&source->ring, note, note->bytes)) {
        uint64_t dropped = atomic_load_explicit(&source->dropped, memory_order_relaxed);
        atomic_store_explicit(&source->dropped, dropped + note->spans, memory_order_relaxed);
    }
    if (ring_waiting(&source->ring) > RING_BYTES / 2 && atomic_load_explicit(&exporter->asleep, memory_order_relaxed) &&
        atomic_exchange_explicit(&exporter->asleep, false, memory_order_relaxed)) {
        wake(exporter);
    }
}

struct span_source *exporter_source(struct exporter *exporter, uint32_t index)
{
    BECALM_ASSERT(index < exporter->source_count);
    return &exporter->source[index];
}

void exporter_count(struct exporter *exporter, struct metrics_spans *counts)
{
    *counts = (struct metrics_spans){
        .exported = atomic_load_explicit(&exporter->exported, memory_order_relaxed),
        .no_room = atomic_load_explicit(&exporter->no_room, memory_order_relaxed),
        .failed = atomic_load_explicit(&exporter->failed, memory_order_relaxed),
        .refused = atomic_load_explicit(&exporter->refused, memory_order_relaxed),
    };
    for (uint32_t i = 0; i < exporter->source_count; i++) {
        counts->no_room += atomic_load_explicit(&exporter->source[i].dropped, memory_order_relaxed);
    }
}

/* ---- the thread's side ---- */

static void say(struct exporter *exporter, enum becalm_log_level level, const char *message, const char *why)
{
    const struct log_pair pairs[] = {
        {"endpoint", LOG_TEXT, text_of(exporter->orders.place.url), 0},
        {"error", LOG_TEXT, text_of(why), 0},
    };
    log_line(exporter->log, level, thread_clock(CLOCK_REALTIME), message, pairs, sizeof pairs / sizeof pairs[0]);
}

/* The change is told, not each export. */
static void note_failing(struct exporter *exporter, bool failing, const char *why)
{
    if (failing && !exporter->failing) {
        say(exporter, BECALM_LOG_WARN, "traces are not exported", why);
    } else if (!failing && exporter->failing) {
        say(exporter, BECALM_LOG_INFO, "traces are exported again", NULL);
    }
    exporter->failing = failing;
}

static void queue_add(struct exporter *exporter, const char *bytes, size_t length, becalm_ns now)
{
    const struct span_note *note = (const void *)bytes;
    if (exporter->orders.place.url == NULL) {
        return; /* of calls that began before the policy that names no collector */
    }
    if (exporter->queue.length - exporter->taken + length > QUEUE_BYTES) {
        add(&exporter->no_room, note->spans);
        return;
    }
    if (exporter->queue.length == exporter->taken) {
        exporter->queue.length = exporter->taken = 0;
        exporter->oldest_at = now;
    } else if (exporter->taken > QUEUE_BYTES / 2) {
        memmove(exporter->queue.at, exporter->queue.at + exporter->taken, exporter->queue.length - exporter->taken);
        exporter->queue.length -= exporter->taken;
        exporter->taken = 0;
    }
    buffer_bytes(&exporter->queue, bytes, length);
    if (exporter->queue.full) {
        exporter->queue.full = false;
        add(&exporter->no_room, note->spans);
    }
}

/* Notes may lie across the end of a ring: they are put together first. */
static void ring_empty(struct exporter *exporter, struct ring *ring, becalm_ns now)
{
    union span_room room;
    struct iovec piece[2];
    size_t length = ring_peek(ring, piece);
    while (length > 0) {
        uint32_t bytes;
        memcpy(&bytes, piece[0].iov_base, sizeof bytes); /* the ring's end is a multiple of a note's alignment */
        size_t first = bytes < piece[0].iov_len ? bytes : piece[0].iov_len;
        memcpy(room.bytes, piece[0].iov_base, first);
        memcpy(room.bytes + first, piece[1].iov_base, bytes - first);
        queue_add(exporter, room.bytes, bytes, now);
        ring_take(ring, bytes);
        length = ring_peek(ring, piece);
    }
}

static size_t queue_bytes(const struct exporter *exporter)
{
    return exporter->queue.length - exporter->taken;
}

static bool batch_is_there(const struct exporter *exporter)
{
    return exporter->batch.body.length > 0;
}

static void batch_end(struct exporter *exporter)
{
    exporter->batch.body.length = 0;
    exporter->batch.body.full = false;
    exporter->batch.going = false;
}

/* Takes notes from the queue until it is large enough. */
static void batch_make(struct exporter *exporter, becalm_ns now)
{
    struct batch *batch = &exporter->batch;
    batch->spans = 0;
    batch->tries = 0;
    batch->retry_at = now;
    otlp_begin(&batch->body, &(struct otlp_resource){exporter->orders.service, exporter->instance});
    while (queue_bytes(exporter) > 0 && batch->spans < BATCH_SPANS) {
        const struct span_note *note = (const void *)(exporter->queue.at + exporter->taken);
        otlp_note(&batch->body, note);
        batch->spans += note->spans;
        exporter->taken += note->bytes;
    }
    otlp_end(&batch->body);
    exporter->oldest_at = now;
    if (batch->body.full) { /* no memory */
        add(&exporter->no_room, batch->spans);
        batch_end(exporter);
    }
}

/* Half of it is random, so that gateways do not come back together; never before the collector wants it. */
static becalm_ns wait_before(struct exporter *exporter, becalm_ns asked)
{
    becalm_ns wait = becalm_ns_min(WAIT_FIRST << (exporter->batch.tries - 1), WAIT_MAX);
    wait = wait / 2 + becalm_rand_below(becalm_rand_next(&exporter->random), wait / 2);
    return becalm_ns_max(wait, becalm_ns_min(asked, WAIT_MAX));
}

static void batch_news(struct exporter *exporter, const struct export_news *news, becalm_ns now)
{
    struct batch *batch = &exporter->batch;
    uint64_t rejected = news->rejected < batch->spans ? news->rejected : batch->spans;
    switch (news->end) {
    case EXPORT_NONE:
        return;
    case EXPORT_TAKEN:
        add(&exporter->exported, batch->spans - rejected);
        add(&exporter->refused, rejected);
        note_failing(exporter, false, NULL);
        batch_end(exporter);
        return;
    case EXPORT_AGAIN:
        note_failing(exporter, true, news->why);
        batch->going = false;
        if (batch->tries < TRIES) {
            batch->retry_at = becalm_ns_after(now, wait_before(exporter, news->retry_after));
            return;
        }
        add(&exporter->failed, batch->spans);
        batch_end(exporter);
        return;
    case EXPORT_REFUSED:
        note_failing(exporter, true, news->why);
        add(&exporter->refused, batch->spans);
        batch_end(exporter);
        return;
    }
    BECALM_UNREACHABLE();
}

static void batch_send(struct exporter *exporter)
{
    struct batch *batch = &exporter->batch;
    struct becalm_text body = {batch->body.at, batch->body.length};
    batch->tries++;
    batch->going = export_begin(exporter->export, &exporter->orders.place, body);
    if (!batch->going) {
        add(&exporter->failed, batch->spans);
        batch_end(exporter);
    }
}

static void orders_free(struct orders *orders)
{
    export_place_free(&orders->place);
    free(orders->service);
    *orders = (struct orders){0};
}

/* A batch for another collector goes there, too. */
static void orders_take(struct exporter *exporter)
{
    pthread_mutex_lock(&exporter->lock);
    struct orders *next = exporter->next;
    exporter->next = NULL;
    pthread_mutex_unlock(&exporter->lock);
    if (next == NULL) {
        return;
    }
    if (exporter->batch.going) {
        export_cancel(exporter->export);
        exporter->batch.going = false;
        exporter->batch.tries = 0;
    }
    orders_free(&exporter->orders);
    exporter->orders = *next;
    free(next);
    if (exporter->orders.place.url == NULL) {
        batch_end(exporter);
        exporter->queue.length = exporter->taken = 0;
        exporter->failing = false;
    }
}

/* Loads libcurl when it is first needed. False: there is none, and spans are dropped. */
static bool export_there(struct exporter *exporter)
{
    const char *why;
    if (exporter->export != NULL || exporter->orders.place.url == NULL) {
        return exporter->export != NULL;
    }
    exporter->export = export_make(&why);
    if (exporter->export == NULL) {
        note_failing(exporter, true, why);
    }
    return exporter->export != NULL;
}

/* Until when nothing is to be done by itself. */
static becalm_ns sleep_until(const struct exporter *exporter, becalm_ns now)
{
    if (exporter->orders.place.url == NULL) {
        return BECALM_NEVER;
    }
    becalm_ns at = becalm_ns_after(now, LOOK_EVERY);
    bool waits = batch_is_there(exporter) && !exporter->batch.going;
    return waits ? becalm_ns_min(at, exporter->batch.retry_at) : at;
}

static void thread_sleep(struct exporter *exporter, becalm_ns now)
{
    struct export_news news;
    uint64_t count;
    becalm_ns most = becalm_ns_left(now, sleep_until(exporter, now));
    atomic_store_explicit(&exporter->asleep, true, memory_order_relaxed); /* a wake-up that is missed costs one look */
    export_move(exporter->export, exporter->wake_fd, most, &news);
    atomic_store_explicit(&exporter->asleep, false, memory_order_relaxed);
    ssize_t taken = read(exporter->wake_fd, &count, sizeof count); /* nothing there: fine */
    (void)taken;
    batch_news(exporter, &news, thread_clock(CLOCK_MONOTONIC));
}

/* One look at everything. */
static void thread_round(struct exporter *exporter, becalm_ns now, bool stopping)
{
    for (uint32_t i = 0; i < exporter->source_count; i++) {
        ring_empty(exporter, &exporter->source[i].ring, now);
    }
    bool due = queue_bytes(exporter) > QUEUE_BYTES / 64 || stopping ||
               becalm_ns_since(now, exporter->oldest_at) >= BATCH_AFTER;
    if (!batch_is_there(exporter) && queue_bytes(exporter) > 0 && due) {
        batch_make(exporter, now);
    }
    if (batch_is_there(exporter) && !exporter->batch.going && (now >= exporter->batch.retry_at || stopping)) {
        batch_send(exporter);
    }
}

static void *thread_run(void *data)
{
    struct exporter *exporter = data;
    becalm_ns stop_at = BECALM_NEVER;
    for (;;) {
        bool stopping = atomic_load_explicit(&exporter->stopping, memory_order_acquire); /* after all workers' last */
        becalm_ns now = thread_clock(CLOCK_MONOTONIC);
        stop_at = stopping ? becalm_ns_min(stop_at, becalm_ns_after(now, FLUSH_MAX)) : BECALM_NEVER;
        orders_take(exporter);
        if (!export_there(exporter) || (stopping && exporter->failing)) {
            return NULL;
        }
        thread_round(exporter, now, stopping);
        bool left = batch_is_there(exporter) || queue_bytes(exporter) > 0;
        if (stopping && (now >= stop_at || !left)) {
            return NULL;
        }
        thread_sleep(exporter, now);
    }
}

/* ---- its life ---- */

struct exporter *exporter_make(uint32_t sources, const char *instance, struct log_source *log)
{
    size_t bytes = sizeof(struct exporter) + (size_t)sources * sizeof(struct span_source);
    struct exporter *exporter = aligned_alloc(alignof(struct exporter), bytes);
    if (exporter == NULL) {
        return NULL;
    }
    memset(exporter, 0, sizeof *exporter);
    exporter->instance = instance;
    exporter->log = log;
    exporter->queue.bytes_max = 2 * QUEUE_BYTES;
    exporter->batch.body.bytes_max = BODY_MAX;
    exporter->random = entropy_seed();
    exporter->source_count = sources;
    for (uint32_t i = 0; i < sources; i++) { /* the rings' bytes stay untouched, and cost nothing yet */
        exporter->source[i].exporter = exporter;
        atomic_init(&exporter->source[i].dropped, 0);
        ring_init(&exporter->source[i].ring);
    }
    exporter->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (exporter->wake_fd < 0) {
        free(exporter);
        return NULL;
    }
    pthread_mutex_init(&exporter->lock, NULL);
    return exporter;
}

void exporter_free(struct exporter *exporter)
{
    if (exporter == NULL) {
        return;
    }
    atomic_store_explicit(&exporter->stopping, true, memory_order_release);
    if (exporter->running) {
        wake(exporter);
        (void)pthread_join(exporter->thread, NULL);
    }
    if (exporter->next != NULL) {
        orders_free(exporter->next);
        free(exporter->next);
    }
    orders_free(&exporter->orders);
    export_free(exporter->export);
    buffer_free(&exporter->queue);
    buffer_free(&exporter->batch.body);
    pthread_mutex_destroy(&exporter->lock);
    close(exporter->wake_fd);
    free(exporter);
}

static struct orders *orders_make(const struct becalm_tracing *tracing)
{
    struct orders *orders = calloc(1, sizeof *orders);
    if (orders == NULL || tracing->endpoint == NULL) {
        return orders;
    }
    orders->service = strdup(tracing->service);
    if (orders->service == NULL || !export_place_make(&orders->place, tracing)) {
        free(orders->service);
        free(orders);
        return NULL;
    }
    return orders;
}

bool exporter_change(struct exporter *exporter, const struct becalm_tracing *tracing)
{
    if (tracing->endpoint == NULL && !exporter->running) {
        return true;
    }
    struct orders *orders = orders_make(tracing);
    if (orders == NULL) {
        return false;
    }
    pthread_mutex_lock(&exporter->lock);
    struct orders *old = exporter->next;
    exporter->next = orders;
    pthread_mutex_unlock(&exporter->lock);
    if (old != NULL) {
        orders_free(old);
        free(old);
    }
    if (exporter->running) {
        wake(exporter);
    } else {
        exporter->running = thread_start(&exporter->thread, thread_run, exporter) == 0;
    }
    return exporter->running;
}
