/* SPDX-License-Identifier: MIT */
#include "world.h"

#include <stdio.h>

#include "check.h"

static void say(struct world *w, const char *format, ...)
{
    if (w->quiet) {
        return;
    }
    va_list args;
    va_start(args, format);
    int n = vsnprintf(w->trace + w->traced, sizeof w->trace - w->traced, format, args);
    va_end(args);
    BECALM_ASSERT(n >= 0 && (size_t)n < sizeof w->trace - w->traced);
    w->traced += (size_t)n;
}

static unsigned long long ms(becalm_ns ns)
{
    return (unsigned long long)((ns + BECALM_MS / 2) / BECALM_MS);
}

void world_begin(struct world *w)
{
    memset(w, 0, sizeof *w);
    w->seed = 1;
    becalm_policy_defaults(&w->policy);
    w->policy.backoff.jitter = BECALM_JITTER_NONE;
}

void world_open(struct world *w, uint32_t hosts)
{
    struct becalm_complaint complaint;
    int rc = becalm_policy_check(&w->policy, &complaint);
    if (rc != 0) {
        fprintf(stderr, "world: %s.%s\n", complaint.part, complaint.sentence);
    }
    BECALM_ASSERT(rc == 0);
    w->memory = aligned_alloc(64, becalm_target_bytes(&w->policy, hosts, 1));
    BECALM_ASSERT(w->memory != NULL);
    rc = becalm_target_init(&w->target, w->memory, &w->policy, hosts, 1);
    BECALM_ASSERT(rc == 0);
    becalm_queue_init(&w->queue, w->target.gate, w->target.limit);
}

void world_close(struct world *w)
{
    for (unsigned i = 0; i < w->count; i++) {
        free(w->call[i]);
    }
    free(w->memory);
}

void world_forget(struct world *w)
{
    w->traced = 0;
    w->trace[0] = '\0';
}

static struct becalm_moment moment(struct world *w)
{
    return (struct becalm_moment){.now = w->now, .random = becalm_rand_next(&w->seed), .cell = 0};
}

/* The action as the right half of a line. */
static void say_action(struct world *w, const struct becalm_action *action)
{
    const char *arrow = " -> ";
    if ((action->flags & BECALM_DO_CANCEL) != 0) {
        say(w, "%scancel", arrow);
        for (uint32_t slot = 0; slot < BECALM_SLOTS; slot++) {
            if ((action->cancel & 1u << slot) != 0) {
                say(w, " slot %u", slot);
            }
        }
        arrow = ", ";
    }
    if ((action->flags & BECALM_DO_SEND) != 0) {
        say(w, "%ssend %u", arrow, action->attempt);
        if (action->host != BECALM_NO_HOST) {
            say(w, " to host %u", action->host);
        }
        if (action->why == BECALM_WHY_HEDGE) {
            say(w, " (hedge)");
        }
        arrow = ", ";
    }
    if ((action->flags & BECALM_DO_ANSWER) != 0) {
        say(w, "%sanswer", arrow);
        arrow = ", ";
    }
    if ((action->flags & BECALM_DO_FINISH) != 0) {
        say(w, "%sfinish (%s)", arrow, becalm_reason_word(action->why));
        say(w, "%s", action->last_answer ? " with the last answer" : "");
        if (action->mark != BECALM_MARK_NONE) {
            say(w, " marked %s", action->mark == BECALM_MARK_SPENT ? "spent" : "overloaded");
        }
    } else if (action->why == BECALM_WHY_BACKOFF || action->why == BECALM_WHY_HINT) {
        say(w, "%swait %llums (%s)", arrow, ms(action->wait.wait), becalm_reason_word(action->why));
    } else if (action->why == BECALM_WHY_QUEUED || action->why == BECALM_WHY_RATE) {
        say(w, "%s%s", arrow, becalm_reason_word(action->why));
    } else if (action->flags == 0) {
        say(w, "%sgoes on", arrow);
    }
    if (action->breaker_from != action->breaker_to) {
        say(w, ", breaker %s to %s", becalm_breaker_word(action->breaker_from),
            becalm_breaker_word(action->breaker_to));
    }
}

static void do_send(struct world *w, struct world_call *c, const struct becalm_action *action)
{
    struct flight *flight = &c->flight[action->slot];
    const struct reply *reply = action->attempt < WORLD_REPLIES_MAX ? &c->plan.reply[action->attempt] : NULL;
    bool hangs = reply == NULL || reply->hangs || (reply->after == 0 && reply->outcome.status == 0);
    BECALM_ASSERT(!flight->busy);
    BECALM_ASSERT(c->finishes == 0);
    *flight = (struct flight){
        .busy = true,
        .at = hangs ? BECALM_NEVER : becalm_ns_after(w->now, reply->after),
        .attempt = action->attempt,
    };
    c->sends++;
}

static void serve_queue(struct world *w);

static void step(struct world *w, unsigned index, struct becalm_event *event, const char *what)
{
    struct world_call *c = w->call[index];
    struct becalm_action action;
    event->at = moment(w);
    becalm_call_step(&c->call, event, &action);
    say(w, "[%3llums] call %u %s", ms(w->now), index + 1, what);
    say_action(w, &action);
    say(w, "\n");
    for (uint32_t slot = 0; slot < BECALM_SLOTS; slot++) {
        if ((action.cancel & 1u << slot) != 0) {
            c->flight[slot].busy = false;
        }
    }
    if ((action.flags & BECALM_DO_SEND) != 0) {
        do_send(w, c, &action);
    }
    c->finishes += (action.flags & BECALM_DO_FINISH) != 0;
    c->wake_at = action.wake_at;
    if ((action.flags & BECALM_DO_SERVE) != 0) {
        serve_queue(w);
    }
}

static void serve_queue(struct world *w)
{
    struct becalm_moment at = moment(w);
    struct becalm_ticket *ticket;
    while ((ticket = becalm_queue_next(&w->queue, &w->policy.gate, &w->policy.limit, &at)) != NULL) {
        unsigned index = (unsigned)((struct world_call **)ticket->owner - w->call);
        struct becalm_event event = {.kind = BECALM_EVENT_SERVE};
        step(w, index, &event, "is called by the gate");
    }
}

unsigned world_call(struct world *w, const struct plan *plan)
{
    BECALM_ASSERT(w->count < WORLD_CALLS_MAX);
    struct world_call *c = calloc(1, sizeof *c);
    BECALM_ASSERT(c != NULL);
    w->call[w->count] = c;
    c->plan = *plan;
    c->plan.request.owner = &w->call[w->count];
    c->plan.request.queue = plan->can_wait ? &w->queue : NULL;
    becalm_call_init(&c->call, &w->policy, &w->target, &c->plan.request);
    w->count++;
    struct becalm_event event = {.kind = BECALM_EVENT_BEGIN};
    step(w, w->count - 1, &event, "begins");
    return w->count;
}

void world_cancel(struct world *w, unsigned call)
{
    struct becalm_event event = {.kind = BECALM_EVENT_CANCEL};
    step(w, call - 1, &event, "is cancelled");
}

static void flight_lands(struct world *w, unsigned index, uint32_t slot)
{
    struct world_call *c = w->call[index];
    struct flight *flight = &c->flight[slot];
    const struct reply *reply = &c->plan.reply[flight->attempt];
    struct becalm_event event = {.slot = slot, .outcome = reply->outcome};
    bool head = reply->head_first && !flight->headed;
    char what[96];
    char status[16] = "";
    if (reply->outcome.status != 0) {
        (void)snprintf(status, sizeof status, " %u", reply->outcome.status);
    }
    (void)snprintf(what, sizeof what, "%s %s%s on %u", head ? "got head" : "got",
                   becalm_outcome_word(reply->outcome.kind), status, flight->attempt);
    event.kind = head ? BECALM_EVENT_HEAD : BECALM_EVENT_DONE;
    if (head) {
        flight->headed = true;
        flight->at = becalm_ns_after(w->now, reply->body);
    } else {
        flight->busy = false;
    }
    step(w, index, &event, what);
}

/* The earliest thing that is due: a landing or a timer. A landing at the same instant goes first. */
static bool next_thing(const struct world *w, unsigned *index, uint32_t *slot, becalm_ns *at)
{
    *at = BECALM_NEVER;
    for (unsigned i = 0; i < w->count; i++) {
        const struct world_call *c = w->call[i];
        for (uint32_t f = 0; f < BECALM_SLOTS; f++) {
            if (c->flight[f].busy && c->flight[f].at < *at) {
                *at = c->flight[f].at;
                *index = i;
                *slot = f;
            }
        }
    }
    for (unsigned i = 0; i < w->count; i++) {
        if (w->call[i]->wake_at < *at) {
            *at = w->call[i]->wake_at;
            *index = i;
            *slot = BECALM_SLOTS;
        }
    }
    return *at != BECALM_NEVER;
}

void world_run(struct world *w, becalm_ns until)
{
    unsigned index = 0;
    uint32_t slot = 0;
    becalm_ns at = 0;
    while (next_thing(w, &index, &slot, &at) && at <= until) {
        w->now = becalm_ns_max(w->now, at);
        if (slot < BECALM_SLOTS) {
            flight_lands(w, index, slot);
        } else {
            struct becalm_event event = {.kind = BECALM_EVENT_TIMER};
            step(w, index, &event, "wakes");
        }
    }
    w->now = until;
}

void world_expect(struct world *w, const char *story)
{
    if (strcmp(w->trace, story) != 0) {
        print_error("--- the story should be\n%s--- but it is\n%s---\n", story, w->trace);
        fail();
    }
}

struct reply reply_kind(becalm_ns after, enum becalm_outcome_kind kind)
{
    return (struct reply){.after = after, .outcome = {.kind = kind}};
}

struct reply reply_status(becalm_ns after, uint32_t status)
{
    static const struct {
        uint32_t status;
        enum becalm_outcome_kind kind;
    } known[] = {
        {200, BECALM_OUTCOME_OK},           {404, BECALM_OUTCOME_PERMANENT}, {409, BECALM_OUTCOME_CONFLICT},
        {429, BECALM_OUTCOME_RATE_LIMITED}, {500, BECALM_OUTCOME_FAILED},    {502, BECALM_OUTCOME_BROKEN},
        {503, BECALM_OUTCOME_REJECTED},     {504, BECALM_OUTCOME_LATE},
    };
    struct reply reply = {.after = after, .outcome = {.status = status}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].status == status) {
            reply.outcome.kind = known[i].kind;
            return reply;
        }
    }
    BECALM_UNREACHABLE();
}

struct reply reply_ok(becalm_ns after)
{
    return reply_status(after, 200);
}

struct reply reply_hint(becalm_ns after, uint32_t status, becalm_ns hint)
{
    struct reply reply = reply_status(after, status);
    reply.outcome.has_hint = true;
    reply.outcome.hint = hint;
    return reply;
}

struct reply reply_mark(becalm_ns after, uint32_t status, enum becalm_mark_kind mark)
{
    struct reply reply = reply_status(after, status);
    reply.outcome.mark = mark;
    return reply;
}
