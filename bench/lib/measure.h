/* SPDX-License-Identifier: MIT */
#ifndef BECALM_BENCH_MEASURE_H
#define BECALM_BENCH_MEASURE_H

/* Measures small operations on a machine that does other things, too. Many short batches instead of one long one, all
 * cases in turn and in a new random order in each rotation, and the median over the rotations: so a neighbour that
 * takes a core for a second disturbs a few batches of every case instead of one case altogether, and figures that are
 * printed side by side were measured side by side.
 *
 * A batch counts only if no other process took its core. With two threads both work on the same objects, pinned to two
 * cores; the figure is the time of one operation in one thread, and a batch counts only if they really ran at the same
 * time.
 *
 * A program includes this once; it defines _GNU_SOURCE first, for the pinning. */

#include <becalm/ns.h>
#include <becalm/rand.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 2, OVERLAP_PERCENT = 80, WARM_UP = 300000, WARM_CHUNK = 1000, CALIBRATIONS = 7, TRIES = 4 };

#define WARM_UP_MOST (50 * BECALM_MS)

/* Where virtual time begins. */
#define MEASURE_BEGINS_AT (1000 * BECALM_S)

/* One thread at work, in a cache line of its own. */
struct worker {
    _Alignas(64) becalm_ns now; /* virtual */
    uint64_t random;
    uint64_t turn; /* operations so far, for cases that do something every n operations */
    uint64_t sink; /* results, so that no work can be left out */
    uint32_t cell; /* the thread's number */
};

/* One operation, and the most that it should cost: 0 without a goal. */
struct measure_case {
    const char *name;
    void *(*make)(void); /* objects for two threads, or NULL if the operation has none */
    void (*run)(void *objects, struct worker *, uint64_t times);
    double figure_one;
    double figure_two;
};

struct measure_options {
    uint32_t rotations;
    becalm_ns batch;
};

/* One case with one or two threads: its objects and its measurements. */
struct series {
    const struct measure_case *what;
    int threads;
    void *objects;
    struct worker worker[THREADS];
    uint64_t times; /* operations per batch */
    double *ns;     /* one per batch that counts, sorted in the end */
    uint32_t count;
    uint32_t disturbed; /* batches that do not */
};

/* When a batch ran, and how much of that time its thread really had a core. */
struct lap_time {
    becalm_ns began_at;
    becalm_ns ended_at;
    becalm_ns worked;
};

/* The work of the second thread; `job` under the lock, the rest by spinning. */
struct partner {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct series *job;
    bool over;
    _Atomic(int) ready;
    _Atomic(int) done;
    struct lap_time time;
};

static becalm_ns clock_read(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (becalm_ns)t.tv_sec * BECALM_S + (becalm_ns)t.tv_nsec;
}

static becalm_ns clock_now(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

/* ---- cores ---- */

#define NO_CORE SIZE_MAX

/* The n-th core that this process may use, from 0. */
static size_t core_at(unsigned n)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        return NO_CORE;
    }
    for (size_t core = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &set) && n-- == 0) {
            return core;
        }
    }
    return NO_CORE;
}

static void pin(pthread_t thread, size_t core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    (void)pthread_setaffinity_np(thread, sizeof set, &set); /* refused: the scheduler decides */
}

/* ---- one batch ---- */

static struct lap_time run_timed(struct series *s, int thread)
{
    struct lap_time time;
    becalm_ns worked = clock_read(CLOCK_THREAD_CPUTIME_ID);
    time.began_at = clock_now();
    s->what->run(s->objects, &s->worker[thread], s->times);
    time.ended_at = clock_now();
    time.worked = clock_read(CLOCK_THREAD_CPUTIME_ID) - worked;
    return time;
}

static becalm_ns length_of(const struct lap_time *time)
{
    return time->ended_at - time->began_at;
}

/* Another process had the core for a part of the time. */
static bool interrupted(const struct lap_time *time)
{
    return length_of(time) > time->worked;
}

/* Did they run at the same time, but for a small part? */
static bool together(const struct lap_time *a, const struct lap_time *b)
{
    becalm_ns both = becalm_ns_since(becalm_ns_min(a->ended_at, b->ended_at), becalm_ns_max(a->began_at, b->began_at));
    return both * 100 >= becalm_ns_max(length_of(a), length_of(b)) * OVERLAP_PERCENT;
}

/* ---- two threads at once ---- */

/* Both come here, and go on at the same moment. */
static void meet(struct partner *p)
{
    atomic_fetch_add_explicit(&p->ready, 1, memory_order_acq_rel);
    while (atomic_load_explicit(&p->ready, memory_order_acquire) % THREADS != 0) {
    }
}

static void *partner_main(void *argument)
{
    struct partner *p = argument;
    for (;;) {
        pthread_mutex_lock(&p->lock);
        while (p->job == NULL && !p->over) {
            pthread_cond_wait(&p->wake, &p->lock);
        }
        struct series *job = p->job;
        p->job = NULL;
        pthread_mutex_unlock(&p->lock);
        if (job == NULL) {
            return NULL;
        }
        meet(p);
        p->time = run_timed(job, 1);
        atomic_store_explicit(&p->done, 1, memory_order_release); /* with the time */
    }
}

static void partner_start(struct partner *p)
{
    size_t first = core_at(0);
    size_t second = core_at(1);
    memset(p, 0, sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    if (pthread_create(&p->thread, NULL, partner_main, p) != 0) {
        perror("bench: no second thread");
        exit(1);
    }
    if (second != NO_CORE) {
        pin(p->thread, second);
        pin(pthread_self(), first);
    }
}

static void partner_stop(struct partner *p)
{
    pthread_mutex_lock(&p->lock);
    p->over = true;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
}

/* ns per operation; negative if the batch was disturbed. */
static double batch_alone(struct series *s)
{
    struct lap_time time = run_timed(s, 0);
    return interrupted(&time) ? -1 : (double)length_of(&time) / (double)s->times;
}

static double batch_together(struct series *s, struct partner *p)
{
    atomic_store_explicit(&p->done, 0, memory_order_relaxed); /* the lock below publishes it */
    pthread_mutex_lock(&p->lock);
    p->job = s;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
    meet(p);
    struct lap_time time = run_timed(s, 0);
    while (atomic_load_explicit(&p->done, memory_order_acquire) == 0) {
    }
    if (interrupted(&time) || interrupted(&p->time) || !together(&time, &p->time)) {
        return -1;
    }
    return (double)(length_of(&time) + length_of(&p->time)) / THREADS / (double)s->times;
}

static double batch(struct series *s, struct partner *p)
{
    return s->threads == 1 ? batch_alone(s) : batch_together(s, p);
}

/* ---- all of them ---- */

/* Brings the objects to where they are in the long run (buckets full, windows turned over), as either thread by turns
 * would; then finds how many operations fill a batch. */
static void series_ready(struct series *s, struct partner *p, becalm_ns length)
{
    becalm_ns enough_at = clock_now() + WARM_UP_MOST;
    for (uint64_t i = 0; i < WARM_UP / WARM_CHUNK && clock_now() < enough_at; i++) {
        for (int t = 0; t < s->threads; t++) {
            s->what->run(s->objects, &s->worker[t], WARM_CHUNK);
        }
    }
    double least = 0;
    s->times = WARM_CHUNK;
    for (int i = 0; i < CALIBRATIONS; i++) {
        double ns = batch(s, p);
        least = ns > 0 && (least == 0 || ns < least) ? ns : least;
    }
    s->times = least > 0 ? (uint64_t)((double)length / least) + 1 : WARM_CHUNK;
}

static void series_init(struct series *s, const struct measure_case *what, int threads, uint32_t rotations)
{
    *s = (struct series){.what = what, .threads = threads};
    s->objects = what->make == NULL ? NULL : what->make();
    s->ns = calloc(rotations, sizeof *s->ns);
    if (s->ns == NULL) {
        perror("bench");
        exit(1);
    }
    for (uint32_t t = 0; t < THREADS; t++) {
        s->worker[t] = (struct worker){.now = MEASURE_BEGINS_AT, .random = t, .cell = t};
    }
}

/* One batch that counts, unless it is disturbed again and again. */
static void series_batch(struct series *s, struct partner *p)
{
    for (int i = 0; i < TRIES; i++) {
        double ns = batch(s, p);
        if (ns >= 0) {
            s->ns[s->count++] = ns;
            return;
        }
        s->disturbed++;
    }
}

static void shuffle(struct series **all, size_t count, uint64_t *random)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = becalm_rand_below(becalm_rand_next(random), i);
        struct series *last = all[i - 1];
        all[i - 1] = all[other];
        all[other] = last;
    }
}

static int compare_ns(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Measures `count` series. Each must have come from series_init(). */
static void measure_all(struct series *all, size_t count, const struct measure_options *options)
{
    struct partner partner;
    uint64_t random = clock_now();
    struct series **order = calloc(count, sizeof(struct series *));
    if (order == NULL) {
        perror("bench");
        exit(1);
    }
    partner_start(&partner);
    for (size_t i = 0; i < count; i++) {
        order[i] = &all[i];
        series_ready(&all[i], &partner, options->batch);
    }
    for (uint32_t rotation = 0; rotation < options->rotations; rotation++) {
        shuffle(order, count, &random);
        for (size_t i = 0; i < count; i++) {
            series_batch(order[i], &partner);
        }
    }
    partner_stop(&partner);
    for (size_t i = 0; i < count; i++) {
        qsort(all[i].ns, all[i].count, sizeof(double), compare_ns);
    }
    free(order);
}

/* The time that `percent` of the counting batches do not exceed; negative if no batch counts. */
static double series_quantile(const struct series *s, unsigned percent)
{
    return s->count == 0 ? -1 : s->ns[(uint64_t)(s->count - 1) * percent / 100];
}

#endif
