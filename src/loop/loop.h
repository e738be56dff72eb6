/* SPDX-License-Identifier: MIT */
#ifndef BECALM_LOOP_LOOP_H
#define BECALM_LOOP_LOOP_H

/* One thread's event loop: edge-triggered epoll, a timing wheel, one reading of the clock per wake-up. Sockets are
 * registered once, for reading and writing, and never again: a source remembers itself whether it may read or write. */

#include "blocks.h"
#include "wheel.h"

#include <becalm/base.h>

#include <sys/epoll.h>

/* Something with a file descriptor. Embedded at the beginning of its owner. */
struct source {
    void (*ready)(struct source *, uint32_t events); /* EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLHUP, EPOLLERR */
    int fd;
    bool shared;   /* other descriptors may stand for the same socket, here or in another process: see loop_bury() */
    bool readable; /* of a wire: there may be more to read */
    bool ended;    /* of a wire: the peer will send no more */
    bool due;      /* an event has come, and those before it in its batch are handled first */
};

/* Work that is done after the events of this wake-up, when no other function is on the stack. */
struct task {
    struct task *next;
    struct task **link; /* NULL: not queued */
    void (*run)(struct task *);
};

/* Memory of the loop's blocks that is given back when the events of a wake-up are done. */
struct loop_given {
    struct loop_given *next;
    void *memory;
    size_t size;
};

struct loop {
    int epoll_fd;
    struct source wake;
    struct wheel wheel;
    becalm_ns now;   /* monotonic */
    uint64_t wall;   /* nanoseconds since 1970 */
    uint64_t random; /* the state of becalm_rand_next() */
    uint64_t wall_offset;
    becalm_ns wall_read_at;
    struct task *first_task;
    struct task **last_task;
    struct task turn;             /* marks the end of the tasks of this wake-up; the next wake-up runs those after it */
    uint64_t turns;               /* wake-ups so far: a check that was made in this one need not be made again */
    struct blocks blocks;         /* memory that every request takes and gives back */
    void *dead;                   /* memory that events of this wake-up may still point to */
    struct loop_given *given;     /* the same of the blocks */
    void (*woken)(struct loop *); /* another thread called loop_wake() */
    BECALM_ATOMIC(uint32_t) wakes; /* calls of loop_wake() that the thread has handled */
    uint32_t wakes_seen;           /* of these, seen by loop_moves() */
    bool stop;
    bool stands; /* the clock stands still: a test sets `now` and `wall` */
};

/* 0, or BECALM_EIO with errno. */
int loop_init(struct loop *, void (*woken)(struct loop *));
void loop_close(struct loop *);

/* Runs until loop->stop. */
void loop_run(struct loop *);
/* One wake-up: handles the sockets, timers and tasks that are ready. If none is, it sleeps, or returns at once, which
 * is for tests in virtual time. */
void loop_turn(struct loop *, bool sleeps);

/* The clock as it is, not as it was at the wake-up. For times that are granted to a peer: the wake-up's work may have
 * taken long before the peer could answer. */
becalm_ns loop_clock(const struct loop *);

/* From any thread. Never blocks; many wakes may become one. */
void loop_wake(struct loop *);

/* Has the loop's thread handled a wake since the last call of this function? If so it is woken again, so that the next
 * answer is about the time from now on. The first answer is yes. Call it from one thread, not the loop's own. */
bool loop_moves(struct loop *);

/* Edge-triggered, for reading and writing. 0, or BECALM_EIO with errno. */
int loop_watch(struct loop *, struct source *);
/* Level-triggered, for reading; `exclusive` wakes one of the threads that share the socket. Use it for sockets that may
 * have several descriptors. */
int loop_watch_level(struct loop *, struct source *, bool exclusive);
void loop_forget(struct loop *, struct source *);

/* Frees memory from malloc() when the events of this wake-up are done. At least as large as a pointer, because its
 * first word is overwritten. Use loop_bury() for memory that begins with a source. */
void loop_free_later(struct loop *, void *memory);
/* The same for memory of this size of the loop's blocks, which stays as it was until then. `given` is part of it. */
void loop_give_later(struct loop *, struct loop_given *given, void *memory, size_t size);
/* The same for memory that begins with a source: closes it, and events that still come for it are ignored. epoll drops
 * a socket by itself only with the last of its descriptors, so one that may have others is taken out first. */
void loop_bury(struct loop *, struct source *);

/* Queues a task. A task that is queued while tasks run, for instance by itself, is run in the next wake-up, after
 * sockets, timers and the clock: so a task with much to do can let others have their turn. */
void loop_later(struct loop *, struct task *);
void loop_not_later(struct loop *, struct task *);

#endif
