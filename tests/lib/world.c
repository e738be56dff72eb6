/* SPDX-License-Identifier: MIT */
#include "world.h"

#include <stdio.h>

#include "report/story.h"

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
    becalm_parking_init(&w->line, w->target.restart);
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

static void serve_line(struct world *w);

static void do_send(struct world *w, struct world_call *c, const struct becalm_action *action)
{
    struct flight *flight = &c->flight[action->slot];
    const struct reply *reply = action->attempt < WORLD_REPLIES_MAX ? &c->plan.reply[action->attempt] : NULL;
    bool refused = (w->refusing >> (action->host == BECALM_NO_HOST ? 0 : action->host) & 1) != 0;
    bool hangs = reply == NULL || reply->hangs || (reply->after == 0 && reply->outcome.status == 0);
    BECALM_ASSERT(!flight->busy);
    BECALM_ASSERT(c->finishes == 0);
    *flight = (struct flight){
        .busy = true,
        .refused = refused,
        .at = refused ? w->now
              : hangs ? BECALM_NEVER
                      : becalm_ns_after(w->now, reply->after),
        .attempt = action->attempt,
    };
    c->sends++;
    if (!refused && becalm_call_accepted(&c->call, action->slot, w->now)) {
        serve_line(w);
    }
}

static void serve_queue(struct world *w);

/* `attempt` is the one that a HEAD or DONE is about. */
static void step(struct world *w, unsigned index, struct becalm_event *event, uint32_t attempt)
{
    struct world_call *c = w->call[index];
    struct becalm_action action;
    char text[352];
    event->at = moment(w);
    bool parked = c->call.phase == BECALM_PHASE_PARKED;
    becalm_call_step(&c->call, event, &action);
    story_tell(&(struct story){event, attempt, &action, parked}, text, sizeof text);
    say(w, "[%3llums] call %u %s\n", ms(w->now), index + 1, text);
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
    if ((action.flags & BECALM_DO_PARK) != 0) {
        serve_line(w);
    }
}

static void serve_line(struct world *w)
{
    struct becalm_berth *berth;
    while ((berth = becalm_parking_next(&w->line, w->policy.attempt_timeout, w->now)) != NULL) {
        unsigned index = (unsigned)((struct world_call **)berth->owner - w->call);
        struct becalm_event event = {.kind = BECALM_EVENT_SERVE};
        step(w, index, &event, 0);
    }
}

static void serve_queue(struct world *w)
{
    struct becalm_moment at = moment(w);
    struct becalm_ticket *ticket;
    while ((ticket = becalm_queue_next(&w->queue, &w->policy.gate, &w->policy.limit, &at)) != NULL) {
        unsigned index = (unsigned)((struct world_call **)ticket->owner - w->call);
        struct becalm_event event = {.kind = BECALM_EVENT_SERVE};
        step(w, index, &event, 0);
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
    c->plan.request.parking = plan->can_park ? &w->line : NULL;
    becalm_call_init(&c->call, &w->policy, &w->target, &c->plan.request);
    w->count++;
    struct becalm_event event = {.kind = BECALM_EVENT_BEGIN};
    step(w, w->count - 1, &event, 0);
    return w->count;
}

void world_cancel(struct world *w, unsigned call)
{
    struct becalm_event event = {.kind = BECALM_EVENT_CANCEL};
    step(w, call - 1, &event, 0);
}

void world_leave(struct world *w, unsigned call)
{
    struct becalm_event event = {.kind = BECALM_EVENT_LEFT};
    step(w, call - 1, &event, 0);
}

static void flight_lands(struct world *w, unsigned index, uint32_t slot)
{
    struct world_call *c = w->call[index];
    struct flight *flight = &c->flight[slot];
    const struct reply *reply = &c->plan.reply[flight->attempt];
    struct becalm_event event = {.slot = slot, .outcome = reply->outcome};
    bool head = reply->head_first && !flight->headed && !flight->refused;
    if (flight->refused) {
        event.outcome = (struct becalm_outcome){.kind = BECALM_OUTCOME_REFUSED, .no_listener = true};
    }
    event.kind = head ? BECALM_EVENT_HEAD : BECALM_EVENT_DONE;
    if (head) {
        flight->headed = true;
        flight->at = becalm_ns_after(w->now, reply->body);
    } else {
        flight->busy = false;
    }
    step(w, index, &event, flight->attempt);
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
    for (;;) {
        bool any = next_thing(w, &index, &slot, &at);
        becalm_ns line_at = becalm_parking_wake_at(&w->line, w->policy.attempt_timeout, w->now);
        if (becalm_ns_min(any ? at : BECALM_NEVER, line_at) > until) {
            break;
        }
        w->now = becalm_ns_max(w->now, becalm_ns_min(at, line_at));
        if (line_at < at) {
            serve_line(w);
            continue;
        }
        if (slot < BECALM_SLOTS) {
            flight_lands(w, index, slot);
        } else {
            struct becalm_event event = {.kind = BECALM_EVENT_TIMER};
            step(w, index, &event, 0);
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
