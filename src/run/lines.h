/* SPDX-License-Identifier: MIT */
#ifndef BECALM_RUN_LINES_H
#define BECALM_RUN_LINES_H

/* The lines in which calls of any thread wait for one target: for a slot of its limit (becalm/gate.h), and for a host
 * that restarts (becalm/restart.h). Each call belongs to its own thread; a thread that frees a slot, or finds a host
 * back, calls the next ones and wakes their threads. One lock guards all of it, and no thread takes it while slots
 * are free. */

#include <becalm/call.h>

#include <pthread.h>
#include <sys/types.h>

/* A waiting call: request.owner of it. */
struct line_owner {
    /* The call may go on: its thread must feed it SERVE. With the lock held, in any thread; `from` is the pointer that
     * the thread gave to lines_serve(). */
    void (*wake)(struct line_owner *, const void *from);
};

/* The line for a host. */
struct line_parking {
    struct becalm_parking parking;
    struct line_parking *next;
};

struct lines {
    pthread_mutex_t mutex;
    struct becalm_queue queue;
    struct line_parking *parkings;
    pid_t pid; /* the process that these threads belong to */
};

/* False: no mutex could be made. The target outlives it. */
bool lines_init(struct lines *, const struct becalm_target *);
void lines_free(struct lines *);

/* One more line for a host, in the caller's memory, which outlives the lines. */
void lines_parking_add(struct lines *, struct line_parking *, struct becalm_restart *);

void lines_lock(struct lines *);
void lines_unlock(struct lines *);

/* Does this step need the lock? Hardly any does. */
static inline bool lines_need_lock(const struct becalm_call *call, const struct becalm_event *event)
{
    bool in_line = call->phase == BECALM_PHASE_GATED || call->phase == BECALM_PHASE_PARKED; /* becalm_call_in_line() */
    return in_line || event->kind == BECALM_EVENT_LINE_UP;
}

/* becalm_call_step(), with the lock if it needs that. */
static inline void lines_step(struct lines *lines, struct becalm_call *call, const struct becalm_event *event,
                              struct becalm_action *action)
{
    bool locked = lines_need_lock(call, event);
    if (locked) {
        lines_lock(lines);
    }
    becalm_call_step(call, event, action);
    if (locked) {
        lines_unlock(lines);
    }
}

/* After a step with DO_SERVE or DO_PARK; after becalm_call_accepted() said so (PARK); and when
 * lines_parking_wake_at() has come (PARK): calls those that need not wait any longer, for a slot, or for the host of
 * `call`. */
void lines_serve(struct lines *, const struct becalm_call *call, unsigned flags, const struct becalm_moment *,
                 const void *from);

/* When to look at the line again in which this call waits for a host. */
becalm_ns lines_parking_wake_at(struct lines *, const struct becalm_call *, becalm_ns now);

/* Waits until no thread is at work in there any more: the thread that called this one may still be on its way out. */
void lines_pass(struct lines *);

#endif
