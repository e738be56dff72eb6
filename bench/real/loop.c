/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE

#include "loop.h"

#include <sys/prctl.h>
#include <time.h>

#define TURN_MAX (100 * BECALM_MS)

static becalm_ns clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (becalm_ns)t.tv_sec * BECALM_S + (becalm_ns)t.tv_nsec;
}

void loop_make(struct loop *loop, uint64_t seed)
{
    *loop = (struct loop){.poll = epoll_create1(EPOLL_CLOEXEC), .random = seed};
    must(loop->poll >= 0, "epoll_create1");
    must(prctl(PR_SET_TIMERSLACK, 1ul) == 0, "PR_SET_TIMERSLACK"); /* or the kernel adds 50 us to each of our waits */
    loop_begin(loop);
}

void loop_begin(struct loop *loop)
{
    loop->began_at = clock_now();
    loop->now = 0;
}

void loop_watch(struct loop *loop, struct source *source)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = source}};
    must(epoll_ctl(loop->poll, EPOLL_CTL_ADD, source->fd, &event) == 0, "epoll_ctl");
}

void loop_unwatch(struct loop *loop, const struct source *source)
{
    must(epoll_ctl(loop->poll, EPOLL_CTL_DEL, source->fd, NULL) == 0, "epoll_ctl");
}

void loop_bury(struct loop *loop, struct source *source)
{
    close(source->fd);
    source->fd = -1;
    source->next_dead = loop->dead;
    loop->dead = source;
}

/* ---- timers: a heap, the earliest first ---- */

static void heap_put(struct loop *loop, size_t place, struct timer *timer)
{
    loop->heap[place] = timer;
    timer->place = place;
}

static void heap_rise(struct loop *loop, size_t place, struct timer *timer)
{
    while (place > 1 && loop->heap[place / 2]->at > timer->at) {
        heap_put(loop, place, loop->heap[place / 2]);
        place /= 2;
    }
    heap_put(loop, place, timer);
}

static void heap_sink(struct loop *loop, size_t place, struct timer *timer)
{
    for (size_t below = 2 * place; below <= loop->armed; below = 2 * place) {
        below += below < loop->armed && loop->heap[below + 1]->at < loop->heap[below]->at;
        if (loop->heap[below]->at >= timer->at) {
            break;
        }
        heap_put(loop, place, loop->heap[below]);
        place = below;
    }
    heap_put(loop, place, timer);
}

void loop_disarm(struct loop *loop, struct timer *timer)
{
    size_t place = timer->place;
    if (place == 0) {
        return;
    }
    timer->place = 0;
    struct timer *last = loop->heap[loop->armed--];
    if (last == timer) {
        return;
    }
    if (place > 1 && loop->heap[place / 2]->at > last->at) {
        heap_rise(loop, place, last);
    } else {
        heap_sink(loop, place, last);
    }
}

void loop_arm(struct loop *loop, struct timer *timer, becalm_ns at)
{
    loop_disarm(loop, timer);
    if (loop->armed + 1 >= loop->heap_size) {
        loop->heap_size = loop->heap_size == 0 ? 1024 : loop->heap_size * 2;
        loop->heap = realloc(loop->heap, loop->heap_size * sizeof(struct timer *));
        must(loop->heap != NULL, "realloc");
    }
    timer->at = at;
    heap_rise(loop, ++loop->armed, timer);
}

static void late_note(struct loop *loop, becalm_ns late)
{
    if (loop->late_count == loop->late_size) {
        loop->late_size = loop->late_size == 0 ? 4096 : loop->late_size * 2;
        loop->late_us = realloc(loop->late_us, loop->late_size * sizeof *loop->late_us);
        must(loop->late_us != NULL, "realloc");
    }
    loop->late_us[loop->late_count++] = (uint32_t)(becalm_ns_min(late, BECALM_S) / BECALM_US);
}

static int late_order(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

uint32_t loop_late_us(struct loop *loop, uint32_t ppm)
{
    if (loop->late_count == 0) {
        return 0;
    }
    qsort(loop->late_us, loop->late_count, sizeof *loop->late_us, late_order);
    return loop->late_us[(uint64_t)(loop->late_count - 1) * ppm / 1000000];
}

/* ---- turns ---- */

static void timers_fire(struct loop *loop)
{
    while (loop->armed > 0 && loop->heap[1]->at <= loop->now) {
        struct timer *timer = loop->heap[1];
        late_note(loop, loop->now - timer->at);
        loop_disarm(loop, timer);
        timer->fire(timer);
    }
}

void loop_turn(struct loop *loop)
{
    struct epoll_event events[EVENTS_MAX];
    becalm_ns now = clock_now() - loop->began_at;
    becalm_ns next = loop->armed == 0 ? BECALM_NEVER : loop->heap[1]->at;
    becalm_ns wait = next <= now ? 0 : becalm_ns_min(next - now, TURN_MAX);
    struct timespec pause = {.tv_sec = 0, .tv_nsec = (long)wait};
    int count = epoll_pwait2(loop->poll, events, EVENTS_MAX, &pause, NULL);
    must(count >= 0 || errno == EINTR, "epoll_pwait2");
    loop->now = clock_now() - loop->began_at;
    timers_fire(loop);
    for (int i = 0; i < count; i++) {
        struct source *source = events[i].data.ptr;
        if (source->fd >= 0) {
            source->ready(source);
        }
    }
    while (loop->dead != NULL) {
        struct source *source = loop->dead;
        loop->dead = source->next_dead;
        free(source);
    }
}
