/* SPDX-License-Identifier: MIT */
#include "load.h"

#include "container.h"

#include <stdlib.h>

struct load_call {
    struct load *load;
    struct load_call *next;
    struct load_call **link;
    struct timer timer; /* of its patience */
    struct caller_call call;
};

static void call_end(struct load_call *call, bool good)
{
    struct load *load = call->load;
    timer_disarm(&call->timer);
    caller_cancel(&call->call);
    *call->link = call->next;
    if (call->next != NULL) {
        call->next->link = call->link;
    }
    load->waiting--;
    load->good += good;
    load->failed += !good;
    free(call);
}

static void answered(struct caller_call *at, const struct caller_answer *answer)
{
    call_end(CONTAINER_OF(at, struct load_call, call), answer->status == 200);
}

static void patience_over(struct timer *timer)
{
    call_end(CONTAINER_OF(timer, struct load_call, timer), false);
}

static void call_begin(struct load *load)
{
    struct caller_request request = {.service = load->plan->service};
    struct load_call *call = load->waiting < load->plan->calls_max ? calloc(1, sizeof *call) : NULL;
    load->begun++;
    if (call == NULL) {
        load->failed++;
        return;
    }
    call->load = load;
    call->timer.fire = patience_over;
    call->call.done = answered;
    call->next = load->calls;
    call->link = &load->calls;
    if (call->next != NULL) {
        call->next->link = &call->next;
    }
    load->calls = call;
    load->waiting++;
    wheel_arm(&load->loop->wheel, &call->timer, becalm_ns_after(load->loop->now, load->plan->patience));
    if (!caller_ask(load->caller, &call->call, &request)) {
        call_end(call, false);
    }
}

static void schedule(struct load *load)
{
    struct dist gap = {.kind = DIST_EXPONENTIAL, .mean = BECALM_S / load->plan->rate};
    load->next_at = becalm_ns_after(load->next_at, dist_draw(&load->tables, &gap, &load->loop->random));
}

/* Catches up with the time that has passed; after a long sleep of the machine it does not. */
static void due(struct timer *timer)
{
    struct load *load = CONTAINER_OF(timer, struct load, timer);
    if (becalm_ns_since(load->loop->now, load->next_at) > BECALM_S) {
        load->next_at = load->loop->now;
    }
    while (load->next_at <= load->loop->now) {
        call_begin(load);
        schedule(load);
    }
    wheel_arm(&load->loop->wheel, &load->timer, load->next_at);
}

void load_pause(struct load *load, bool paused)
{
    if (paused) {
        timer_disarm(&load->timer);
    } else if (load->paused) {
        load->next_at = load->loop->now;
        schedule(load);
        wheel_arm(&load->loop->wheel, &load->timer, load->next_at);
    }
    load->paused = paused;
}

void load_open(struct load *load, const struct load_plan *plan, struct loop *loop, struct caller *caller)
{
    *load = (struct load){.plan = plan, .loop = loop, .caller = caller, .timer = {.fire = due}, .paused = true};
    dist_init(&load->tables);
    load_pause(load, false);
}

void load_close(struct load *load)
{
    if (load->plan != NULL) {
        timer_disarm(&load->timer);
        while (load->calls != NULL) {
            call_end(load->calls, false);
        }
    }
}
