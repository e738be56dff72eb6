/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "loop.h"

#include "container.h"
#include "run/entropy.h"
#include "unfilled.h"

#include <becalm/rand.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define BATCH   256
#define BATCHES 16              /* heard before timers have their turn */
#define LATE    (5 * BECALM_MS) /* more than any sleep is rounded by: the machine kept us from our work */

static becalm_ns clock_read(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (becalm_ns)time.tv_sec * BECALM_S + (becalm_ns)time.tv_nsec;
}

/* The wall clock is looked at once a second: it is for dates and logs. */
static void loop_read_clock(struct loop *loop)
{
    if (loop->stands) {
        return;
    }
    loop->now = clock_read(CLOCK_MONOTONIC);
    if (loop->now - loop->wall_read_at >= BECALM_S || loop->wall_read_at == 0) {
        loop->wall_read_at = loop->now;
        loop->wall_offset = clock_read(CLOCK_REALTIME) - loop->now;
    }
    loop->wall = loop->now + loop->wall_offset;
}

becalm_ns loop_clock(const struct loop *loop)
{
    return loop->stands ? loop->now : clock_read(CLOCK_MONOTONIC);
}

static void wake_ready(struct source *source, uint32_t events)
{
    struct loop *loop = CONTAINER_OF(source, struct loop, wake);
    uint64_t count;
    (void)events;
    while (read(source->fd, &count, sizeof count) < 0 && errno == EINTR) {
    }
    loop->woken(loop);
    atomic_fetch_add_explicit(&loop->wakes, 1, memory_order_relaxed); /* guards nothing: it only has to differ */
}

int loop_init(struct loop *loop, void (*woken)(struct loop *))
{
    memset(loop, 0, sizeof *loop);
    loop->woken = woken;
    loop->last_task = &loop->first_task;
    loop->wakes_seen = UINT32_MAX; /* the count has not been read yet */
    loop->wake = (struct source){.ready = wake_ready, .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->wake.fd < 0 || loop->epoll_fd < 0 || loop_watch(loop, &loop->wake) != 0) {
        loop_close(loop);
        return BECALM_EIO;
    }
    loop_read_clock(loop);
    wheel_init(&loop->wheel, loop->now);
    loop->random = entropy_seed();
    return 0;
}

void loop_close(struct loop *loop)
{
    int error = errno;
    if (loop->wake.fd >= 0) {
        close(loop->wake.fd);
    }
    if (loop->epoll_fd >= 0) {
        close(loop->epoll_fd);
    }
    loop->wake.fd = loop->epoll_fd = -1;
    blocks_empty(&loop->blocks);
    errno = error;
}

void loop_wake(struct loop *loop)
{
    uint64_t one = 1;
    ssize_t written = write(loop->wake.fd, &one, sizeof one); /* full means that it is awake already */
    (void)written;
}

bool loop_moves(struct loop *loop)
{
    uint32_t wakes = atomic_load_explicit(&loop->wakes, memory_order_relaxed);
    if (wakes == loop->wakes_seen) {
        return false; /* a wake-up is pending already */
    }
    loop->wakes_seen = wakes;
    loop_wake(loop);
    return true;
}

static int watch(struct loop *loop, struct source *source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};
    return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, source->fd, &event) == 0 ? 0 : BECALM_EIO;
}

int loop_watch(struct loop *loop, struct source *source)
{
    return watch(loop, source, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

int loop_watch_level(struct loop *loop, struct source *source, bool exclusive)
{
    source->shared = true;
    return watch(loop, source, EPOLLIN | (exclusive ? EPOLLEXCLUSIVE : 0));
}

void loop_forget(struct loop *loop, struct source *source)
{
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
}

void loop_free_later(struct loop *loop, void *memory)
{
    *(void **)memory = loop->dead;
    loop->dead = memory;
}

void loop_give_later(struct loop *loop, struct loop_given *given, void *memory, size_t size)
{
    *given = (struct loop_given){loop->given, memory, size};
    loop->given = given;
}

void loop_bury(struct loop *loop, struct source *source)
{
    if (source->fd >= 0 && source->shared) {
        loop_forget(loop, source);
    }
    if (source->fd >= 0) {
        close(source->fd);
    }
    source->fd = -1;
    loop_free_later(loop, source);
}

void loop_later(struct loop *loop, struct task *task)
{
    if (task->link == NULL) {
        task->next = NULL;
        task->link = loop->last_task;
        *loop->last_task = task;
        loop->last_task = &task->next;
    }
}

void loop_not_later(struct loop *loop, struct task *task)
{
    if (task->link == NULL) {
        return;
    }
    *task->link = task->next;
    *(task->next == NULL ? &loop->last_task : &task->next->link) = task->link;
    task->link = NULL;
}

/* Those that waited when it begins, and no others: a task that queues itself again would keep sockets, timers and the
 * clock waiting for ever. */
static void run_tasks(struct loop *loop)
{
    if (loop->first_task == NULL) {
        return;
    }
    loop_later(loop, &loop->turn);
    while (loop->first_task != &loop->turn) {
        struct task *task = loop->first_task;
        loop_not_later(loop, task);
        task->run(task);
    }
    loop_not_later(loop, &loop->turn);
}

static void free_dead(struct loop *loop)
{
    while (loop->dead != NULL) {
        void *memory = loop->dead;
        loop->dead = *(void **)memory;
        free(memory);
    }
    while (loop->given != NULL) {
        struct loop_given *given = loop->given;
        loop->given = given->next;
        blocks_give(&loop->blocks, given->memory, given->size);
    }
}

/* How long epoll may sleep until something is due: rounded up, since timers are never early. */
static int sleep_ms(const struct loop *loop, becalm_ns due)
{
    if (due == BECALM_NEVER) {
        return -1;
    }
    becalm_ns left = becalm_ns_left(loop->now, due);
    return left > 3600 * BECALM_S ? 3600 * 1000 : (int)((left + BECALM_MS - 1) / BECALM_MS);
}

/* Handles one batch of events. True: there may be more. */
static bool hear(struct loop *loop, int sleep)
{
    UNFILLED struct epoll_event event[BATCH]; /* of 3 KiB a few are filled by the system */
    int count = epoll_wait(loop->epoll_fd, event, BATCH, sleep);
    loop_read_clock(loop);
    for (int i = 1; i < count; i++) {
        ((struct source *)event[i].data.ptr)->due = true;
    }
    for (int i = 0; i < count; i++) {
        struct source *source = event[i].data.ptr;
        source->due = false;
        if (source->fd >= 0) { /* else it was buried by an event before it in this batch */
            source->ready(source, event[i].events);
        }
    }
    return count == BATCH || count < 0; /* below 0: a signal came, or the whole process stood still */
}

/* Timers run after the socket events: otherwise a process that was not scheduled for a while would time out peers whose
 * bytes are already in its sockets. But timers do run, however many events there are. */
void loop_turn(struct loop *loop, bool sleeps)
{
    becalm_ns due = loop->first_task != NULL ? loop->now : wheel_next(&loop->wheel);
    loop->turns++;
    bool more = hear(loop, sleeps ? sleep_ms(loop, due) : 0) || becalm_ns_since(loop->now, due) > LATE;
    for (int i = 1; more && !loop->stop && i < BATCHES; i++) {
        more = hear(loop, 0);
    }
    wheel_run(&loop->wheel, loop->now);
    run_tasks(loop);
    free_dead(loop);
}

void loop_run(struct loop *loop)
{
    while (!loop->stop) {
        loop_turn(loop, true);
    }
    free_dead(loop);
}
