/* SPDX-License-Identifier: MIT */
#ifndef BECALM_DEMO_LOAD_H
#define BECALM_DEMO_LOAD_H

/* The users: so many calls a second on average, at random instants, whether or not the earlier ones have been answered.
 * A user waits for so long and then gives up; calls beyond the bound fail at once. */

#include "caller.h"

#include "scenario/dist.h"

struct load_plan {
    const char *service;
    uint32_t rate; /* calls per second */
    becalm_ns patience;
    uint32_t calls_max; /* at the same time */
};

struct load_call;

struct load {
    const struct load_plan *plan;
    struct loop *loop;
    struct caller *caller;
    struct dist_tables tables;
    struct timer timer;
    becalm_ns next_at;
    bool paused;
    struct load_call *calls;
    uint32_t waiting;
    uint64_t begun; /* ever */
    uint64_t good;
    uint64_t failed;
};

void load_open(struct load *, const struct load_plan *, struct loop *, struct caller *);
void load_close(struct load *); /* one that was not opened, but zeroed, is left alone */
void load_pause(struct load *, bool paused);

#endif
