/* SPDX-License-Identifier: MIT */
#ifndef BECALM_BENCH_LOOP_H
#define BECALM_BENCH_LOOP_H

/* Sockets and timers of one thread. Timers are to the nanosecond, and the delay of each is kept: a comparison of real
 * seconds with simulated ones must know how late the machine was. */

#include <becalm/ns.h>

#include "../gateway/sockets.h"

/* The first member of a struct that waits for a socket. */
struct source {
    int fd; /* -1: closed */
    void (*ready)(struct source *);
    struct source *next_dead;
};

/* Part of a struct that waits for an instant. All 0 is a timer that is not armed. */
struct timer {
    becalm_ns at;
    void (*fire)(struct timer *);
    size_t place; /* in the heap, from 1; 0: not armed */
};

struct loop {
    int poll;
    becalm_ns began_at; /* by the system's clock; all other instants are from here */
    becalm_ns now;
    struct timer **heap; /* from 1 */
    size_t armed, heap_size;
    struct source *dead;
    uint32_t *late_us; /* how late each timer was */
    size_t late_count, late_size;
    uint64_t random;
};

void loop_make(struct loop *, uint64_t seed);
/* Time begins now. */
void loop_begin(struct loop *);
void loop_watch(struct loop *, struct source *);
void loop_unwatch(struct loop *, const struct source *);
/* Closes it; its memory is freed when no event can name it any more. */
void loop_bury(struct loop *, struct source *);
/* Also of a timer that is armed already. */
void loop_arm(struct loop *, struct timer *, becalm_ns at);
void loop_disarm(struct loop *, struct timer *);
/* Waits for sockets and timers, for a tenth of a second at most, and serves them. */
void loop_turn(struct loop *);
/* The delay of timers, in microseconds, that this number of millionths of them did not exceed. */
uint32_t loop_late_us(struct loop *, uint32_t ppm);

#endif
