/* SPDX-License-Identifier: MIT */
#ifndef BECALM_LOOP_LOOP_H
#define BECALM_LOOP_LOOP_H

/* One thread's event loop: edge-triggered epoll, a timing wheel, one reading of the clock per wake-up. Sockets are
 * registered once, for everything, and never again: a source remembers by itself what it may still read or write. */

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
};

/* Something to be done after the events of this wake-up: when nobody is in the middle of anything. */
struct task {
    struct task *next;
    struct task **link; /* NULL: it does not wait */
    void (*run)(struct task *);
};

/* Memory of the loop's blocks that goes back when the events of a wake-up are done. */
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
    struct task turn;              /* behind those that are run now, and before those that wait for the next time */
    uint64_t turns;                /* that were begun: who has looked at something in this one need not look again */
    struct blocks blocks;          /* memory for what comes and goes with every request */
    void *dead;                    /* memory that events of this wake-up may still point to */
    struct loop_given *given;      /* the same of the blocks */
    void (*woken)(struct loop *);  /* another thread called loop_wake() */
    BECALM_ATOMIC(uint32_t) wakes; /* that were seen to */
    uint32_t wakes_seen;           /* by loop_moves() */
    bool stop;
    bool stands; /* the clock: `now` and `wall` are what a test made them */
};

/* 0, or BECALM_EIO with errno. */
int loop_init(struct loop *, void (*woken)(struct loop *));
void loop_close(struct loop *);

/* Runs until loop->stop. */
void loop_run(struct loop *);
/* One wake-up: what the sockets, timers and tasks have to do now. If there is nothing it sleeps, or returns at once:
 * that is for tests in virtual time. */
void loop_turn(struct loop *, bool sleeps);

/* From any thread. Never blocks; many wakes may become one. */
void loop_wake(struct loop *);

/* Has the thread seen to a wake since this was asked the last time? If so it is woken again, so that the next answer is
 * about the time from now on. The first answer is yes. From one thread, any but the loop's own. */
bool loop_moves(struct loop *);

/* Edge-triggered, for reading and writing. 0, or BECALM_EIO with errno. */
int loop_watch(struct loop *, struct source *);
/* Level-triggered, for reading; `exclusive` wakes one of the threads that share the socket. This is how sockets are
 * watched that may have several descriptors. */
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

/* What a task queues while it runs, itself for instance, is run after the next look at sockets, timers and the clock:
 * a task with much to do lets others have their turn by that. */
void loop_later(struct loop *, struct task *);
void loop_not_later(struct loop *, struct task *);

#endif
