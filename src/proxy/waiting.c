/* SPDX-License-Identifier: MIT */
#include "waiting.h"

#include "gateway_shared.h"
#include "view.h"

#include "container.h"

/* Gates. */

static void waiting_list(struct worker *worker, struct waiting *waiting)
{
    bool listed = waiting->link != NULL;
    bool busy = becalm_queue_busy(&waiting->queue);
    if (busy && !listed) {
        waiting->next = worker->waiting;
        waiting->link = &worker->waiting;
        if (waiting->next != NULL) {
            waiting->next->link = &waiting->next;
        }
        worker->waiting = waiting;
    } else if (!busy && listed) {
        *waiting->link = waiting->next;
        if (waiting->next != NULL) {
            waiting->next->link = waiting->link;
        }
        waiting->link = NULL;
    }
}

static void queue_serve(struct worker *worker, struct waiting *waiting)
{
    struct becalm_moment at = worker_moment(worker);
    const struct becalm_policy *policy = &waiting->state->policy;
    const struct waiting *before = worker->serving;
    struct becalm_ticket *ticket;
    worker->serving = waiting; /* those that are served may free slots in turn: they are seen to here */
    while ((ticket = becalm_queue_next(&waiting->queue, &policy->gate, &policy->limit, &at)) != NULL) {
        worker->serve(ticket->owner);
    }
    worker->serving = before;
    waiting_list(worker, waiting);
    gateway_wake(worker->gateway, becalm_queue_others(&waiting->queue));
}
void waiting_serve(struct worker *worker, struct state *state)
{
    struct waiting *waiting = &state->waiting[worker->number];
    if (worker->serving != waiting) {
        queue_serve(worker, waiting);
    }
}

/* Another worker left a slot that one of ours may wait for. Serving a call may change the list in any way. */
void waiting_serve_all(struct worker *worker)
{
    struct waiting *waiting = worker->waiting;
    worker->looks++;
    while (waiting != NULL) {
        if (waiting->looked == worker->looks) {
            waiting = waiting->next;
            continue;
        }
        struct state *state = waiting->state;
        state_use(state);
        waiting->looked = worker->looks;
        becalm_queue_call(&waiting->queue);
        queue_serve(worker, waiting);
        waiting = waiting->link != NULL ? waiting->next : worker->waiting;
        state_drop(state);
    }
}

/* Lines: calls that wait for a host to accept connections. */

#define LINE_TURN 64u /* calls that are let go, then others have their turn */

void waiting_serve_lines(struct worker *worker)
{
    loop_later(&worker->loop, &worker->lines);
}

/* Returns when to look again. */
static becalm_ns line_serve(struct worker *worker, struct view *view, uint32_t target, uint32_t *turn)
{
    struct becalm_parking *line = &view->parking[target];
    becalm_ns timeout = view->snapshot->target[target].state->policy.attempt_timeout;
    struct becalm_berth *berth;
    while (*turn > 0 && (berth = becalm_parking_next(line, timeout, worker->loop.now)) != NULL) {
        worker->serve(berth->owner);
        *turn -= 1;
    }
    return becalm_parking_wake_at(line, timeout, worker->loop.now);
}

static void serve_lines(struct task *task)
{
    struct worker *worker = CONTAINER_OF(task, struct worker, lines);
    becalm_ns wake_at = BECALM_NEVER;
    uint32_t turn = LINE_TURN;
    for (struct view *view = worker->view, *next; view != NULL; view = next) {
        view_enter(view);
        for (uint32_t i = 0; i < view->snapshot->target_count; i++) {
            wake_at = becalm_ns_min(wake_at, line_serve(worker, view, i, &turn));
        }
        next = view->next;
        view_leave(worker, view);
    }
    if (turn == 0) {
        waiting_serve_lines(worker);
    } else {
        wheel_arm(&worker->loop.wheel, &worker->lines_timer, wake_at);
    }
}

static void lines_due(struct timer *timer)
{
    waiting_serve_lines(CONTAINER_OF(timer, struct worker, lines_timer));
}

void waiting_init(struct worker *worker)
{
    worker->lines.run = serve_lines;
    worker->lines_timer.fire = lines_due;
}
