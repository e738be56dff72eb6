/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "lines.h"

#include <unistd.h>

bool lines_init(struct lines *lines, const struct becalm_target *target)
{
    lines->parkings = NULL;
    lines->pid = getpid();
    becalm_queue_init(&lines->queue, target->gate, target->limit);
    return pthread_mutex_init(&lines->mutex, NULL) == 0;
}

void lines_free(struct lines *lines)
{
    (void)pthread_mutex_destroy(&lines->mutex);
}

/* In the child of a fork: the waiting threads are the parent's, and one of them may have had the lock. */
static void lines_empty(struct lines *lines)
{
    struct becalm_queue *queue = &lines->queue;
    becalm_gate_init(queue->gate);
    becalm_queue_init(queue, queue->gate, queue->limit);
    for (struct line_parking *line = lines->parkings; line != NULL; line = line->next) {
        struct becalm_restart *restart = line->parking.restart;
        becalm_parking_init(&line->parking, becalm_restart_init(restart, restart->hosts));
    }
    (void)pthread_mutex_init(&lines->mutex, NULL);
    lines->pid = getpid();
}

void lines_lock(struct lines *lines)
{
    if (lines->pid != getpid()) {
        lines_empty(lines);
    }
    (void)pthread_mutex_lock(&lines->mutex);
}

void lines_unlock(struct lines *lines)
{
    (void)pthread_mutex_unlock(&lines->mutex);
}

void lines_parking_add(struct lines *lines, struct line_parking *line, struct becalm_restart *restart)
{
    becalm_parking_init(&line->parking, restart);
    lines_lock(lines);
    line->next = lines->parkings;
    lines->parkings = line;
    lines_unlock(lines);
}

static void wake(struct line_owner *owner, const void *from)
{
    owner->wake(owner, from);
}

static void serve_queue(struct lines *lines, const struct becalm_policy *policy, const struct becalm_moment *at,
                        const void *from)
{
    struct becalm_ticket *ticket;
    while ((ticket = becalm_queue_next(&lines->queue, &policy->gate, &policy->limit, at)) != NULL) {
        wake(ticket->owner, from);
    }
}

/* Endpoints have lines of their own for the hosts that they share. */
static void serve_parkings(struct lines *lines, const struct becalm_call *call, becalm_ns now, const void *from)
{
    for (struct line_parking *line = lines->parkings; line != NULL; line = line->next) {
        struct becalm_berth *berth;
        while (line->parking.restart == call->target->restart &&
               (berth = becalm_parking_next(&line->parking, call->policy->attempt_timeout, now)) != NULL) {
            wake(berth->owner, from);
        }
    }
}

void lines_serve(struct lines *lines, const struct becalm_call *call, unsigned flags, const struct becalm_moment *at,
                 const void *from)
{
    lines_lock(lines);
    if ((flags & BECALM_DO_SERVE) != 0) {
        serve_queue(lines, call->policy, at, from);
    }
    if ((flags & BECALM_DO_PARK) != 0) {
        serve_parkings(lines, call, at->now, from);
    }
    lines_unlock(lines);
}

becalm_ns lines_parking_wake_at(struct lines *lines, const struct becalm_call *call, becalm_ns now)
{
    lines_lock(lines);
    becalm_ns at = becalm_parking_wake_at(call->request.parking, call->policy->attempt_timeout, now);
    lines_unlock(lines);
    return at;
}

void lines_pass(struct lines *lines)
{
    lines_lock(lines);
    lines_unlock(lines);
}
