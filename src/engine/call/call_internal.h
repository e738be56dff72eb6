/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CALL_INTERNAL_H
#define BECALM_CALL_INTERNAL_H

/* call.c is the state machine; its parts have files of their own:
 *   call_admit.c    may the first attempt be sent?
 *   call_attempt.c one attempt: sending it, and reporting its end to budget, breaker, limit and the other parts
 *   call_retry.c an attempt failed: is there a retry, when, and if not, why not
 *   call_restart.c  no host accepts connections: the call waits for one that does */

#include <becalm/call.h>

#include "engine/apart_internal.h"
#include "engine/due_internal.h"
#include "engine/gate_internal.h"
#include "engine/restart_internal.h"

/* The context of one step. */
struct step {
    struct becalm_call *call;
    const struct becalm_moment *at;
    becalm_ns now; /* at->now: nearly every question asks for it */
    struct becalm_action *action;
    bool cut;    /* the attempt of this step was cut by the call's deadline */
    bool locked; /* the driver holds the lock of the queues that threads share */
};

/* call.c */

/* The service has answered this call: the throttle may count it. */
static inline void becalm__call_decided(struct becalm_call *call)
{
    if (call->undecided) {
        call->undecided = false;
        becalm_throttle_decided(call->target->throttle);
    }
}

/* Ends the call: finish() of call.c, out of line for every end but success. */
void becalm__call_finish(struct step *s, enum becalm_reason why);

/* The numbers behind the reason that comes next. */
static inline void becalm__call_explain(struct step *s, uint64_t have, uint64_t need)
{
    s->call->record.have = have;
    s->call->record.need = need;
}

/* Shadow: notes the decision that the policy would have made; true if the refusal must be ignored. */
bool becalm__call_shadowed(struct step *s, enum becalm_reason why);

/* Copies the state change that the breaker reported on this permit, if there was one, to the action. */
static inline void becalm__call_report(struct step *s, const struct becalm_permit *permit)
{
    if (permit->from != permit->to) {
        s->action->breaker_from = permit->from;
        s->action->breaker_to = permit->to;
    }
}

/* The verdict that the breaker gets at a permit's end. A probe that a layer below refused has no result: it gives its
 * place back, and the next call probes. Otherwise the breaker of each layer of a chain would stay open for another
 * second whenever the layer below refuses, and the lowest layer, which alone can find out, would see a call a second at
 * best. */
static inline enum becalm_verdict becalm__permit_verdict(enum becalm_outcome_kind kind, bool unasked)
{
    return unasked ? BECALM_VERDICT_NEUTRAL : becalm_outcome_traits(kind)->verdict;
}

/* Where no timeout is written, a gate's limit judges answers by so many times the time after which they are overdue:
 * a quarter of that is slow, so an answer is slow when it is overdue. */
#define BECALM__SLOTS_DUE 4

/* If a call waits in the gate, the driver must serve it: there may be a slot for that call. */
static inline void becalm__call_line_serve(struct step *s)
{
    const struct becalm_target *target = s->call->target;
    if (target->gate != NULL && becalm__gate_waits(target->gate)) {
        s->action->flags |= BECALM_DO_SERVE;
    }
}

/* Frees a slot of the limit; if a call waits in the gate for it, the driver must serve the gate. A slot that is not
 * held is left alone. */
static inline void becalm__call_place_free(struct step *s, struct becalm_slot *slot)
{
    if (!slot->held) {
        return;
    }
    becalm_limit_give(s->call->target->limit, slot);
    becalm__call_line_serve(s);
}

/* The head of the answer has come: the slot in flight is free, and the answer in progress has a place of its own. */
static inline void becalm__call_place_answer(struct step *s, struct becalm_slot *slot)
{
    if (!slot->held) {
        return;
    }
    becalm_limit_answer(s->call->target->limit, slot);
    becalm__call_line_serve(s);
}

/* Leaves the gate's queue without having been served. The driver must serve the queue: it may have been this call's
 * turn, and other workers may have left a slot to it. */
static inline void becalm__call_queue_leave(struct step *s)
{
    becalm_queue_leave(&s->call->ticket);
    s->action->flags |= BECALM_DO_SERVE;
}

/* The call does not wait for news any more, if it did. */
static inline void becalm__call_await_end(struct becalm_call *call)
{
    if (call->awaits != BECALM_AWAITS_NOTHING) {
        call->awaits = BECALM_AWAITS_NOTHING;
        becalm__gate_await_end(call->target->gate);
    }
}

/* The call must wait in a queue. True: threads share the queue, and the driver will step the call again with its lock.
 */
static inline bool becalm__call_outside(struct step *s, bool parks)
{
    struct becalm_call *call = s->call;
    if (!call->request.lines_shared || s->locked) {
        return false;
    }
    call->phase = BECALM_PHASE_OUTSIDE;
    call->parks = parks;
    s->action->why = parks ? BECALM_WHY_NO_HOST : BECALM_WHY_QUEUED;
    s->action->flags |= BECALM_DO_LINE_UP;
    return true;
}

/* Does the policy list this outcome as one to retry? */
bool becalm__call_lists(const struct becalm_call *call, const struct becalm_outcome *outcome);

/* May this request be repeated once it was sent? */
static inline bool becalm__call_repeatable(const struct becalm_call *call)
{
    return !call->request.once && (call->request.idempotent || call->request.keyed || call->policy->idempotent);
}

/* Does this call hedge instead of retrying? */
static inline bool becalm__call_hedges(const struct becalm_call *call)
{
    return call->target->hedge != NULL && call->policy->hedge.enabled && !call->policy->shadow &&
           !call->request.alone && !call->request.not_replayable && !call->request.streams &&
           becalm__call_repeatable(call);
}

/* call_admit.c */
void becalm__call_admit(struct step *s);  /* NEW: every rule up to the limit */
void becalm__call_enter(struct step *s);  /* NEW, PACED: the limit and the gate */
void becalm__call_served(struct step *s); /* GATED: the gate has called */
void becalm__call_expire(struct step *s); /* GATED: patience or deadline is over */

/* Takes a place in the limit for an attempt that is sent now or as soon as the gate lets it. True without a limit. */
bool becalm__call_place_take(struct step *s, struct becalm_slot *slot);

/* The reason why there was no slot: the limit, or the bound of answers in progress. Sets have and need. */
enum becalm_reason becalm__call_place_why(struct step *s);

/* The caller's own deadline; NEVER: none. */
static inline becalm_ns becalm__call_carried(const struct becalm_call *call)
{
    return call->request.deadline_at == 0 ? BECALM_NEVER : call->request.deadline_at;
}

/* Is no timeout written? Then attempts are not cut when they are overdue. */
static inline bool becalm__call_is_unwritten(const struct becalm_call *call)
{
    return !becalm_target_timeout_is_written(call->target, call->policy);
}

/* After how long an attempt of this call is cut; or, where no timeout is written, overdue. */
static inline becalm_ns becalm__call_timeout(const struct becalm_call *call)
{
    becalm_ns timeout = call->policy->attempt_timeout;
    return becalm__call_is_unwritten(call) ? becalm__due_time(call->target->due, timeout) : timeout;
}

/* call_attempt.c */

/* An attempt is overdue: tells limit and breaker, and leaves it in flight. */
void becalm__attempt_overdue(struct step *, uint32_t slot);

/* The breaker was told of a timeout under this permit, and now its call or attempt has succeeded. A closed breaker
 * counts one more call, which succeeded. */
void becalm__permit_late(struct step *, struct becalm_permit *ended, becalm_ns took);

/* The driver has found out that a request is streamed. */
void becalm__attempt_streams(struct becalm_call *, uint32_t slot);

/* A streamed request has been sent to its end. */
void becalm__attempt_sent(struct step *, uint32_t slot);

/* An attempt waits in the driver's connection pool; and it has got its connection. */
void becalm__attempt_waits(struct becalm_call *, uint32_t slot, becalm_ns leave_at);
void becalm__attempt_goes(struct becalm_call *, uint32_t slot, becalm_ns now);

/* A failed answer has begun, and the driver holds it back: its slot in flight is free. */
void becalm__attempt_held(struct step *, uint32_t slot, const struct becalm_outcome *);

#define BECALM__FIRST_SLOT 0u /* the first attempt's: nothing else is in flight yet */

/* When this attempt is given up at the latest: an overdue attempt may still be answered. */
static inline becalm_ns becalm__attempt_ends_at(const struct becalm_call *call, const struct becalm_live *live)
{
    return becalm__call_is_unwritten(call) ? call->deadline_at : live->timeout_at;
}

/* A free slot for one more attempt. */
static inline uint32_t becalm__attempt_slot(const struct becalm_call *call)
{
    uint32_t slot = (uint32_t)__builtin_ctz(~call->live);
    BECALM_ASSERT(slot < BECALM_SLOTS);
    return slot;
}

/* Prepares a slot for an attempt that may be sent. The slot holds nothing yet: the attempt's place in the limit and its
 * permit are taken straight into it. */
static inline struct becalm_live *becalm__attempt_ready(struct becalm_call *call, uint32_t slot)
{
    struct becalm_live *live = &call->slot[slot];
    live->slot.held = false;
    live->permit.held = false;
    return live;
}

/* Sends the attempt in a slot that is prepared and holds its place and permit: the call's first attempt, or one more.
 */
void becalm__attempt_send_first(struct step *s);
void becalm__attempt_send_next(struct step *s, uint32_t slot, bool hedge);

/* The outcome is known (head or end): tells budget, breaker, limit, throttle, rate, mark, sketch. Once per attempt. */
void becalm__attempt_judge(struct step *s, struct becalm_live *live, const struct becalm_outcome *outcome);

/* The same for an answer with a provisional head: its latency is the time until the head. */
void becalm__attempt_judge_late(struct step *s, uint32_t slot, const struct becalm_outcome *outcome);

/* Tells the host's statistics how the attempt ended: by its head, unless its end was worse. */
void becalm__attempt_host_note(struct step *s, const struct becalm_live *live, const struct becalm_outcome *outcome);

/* The attempt is over: frees its slot and its place at the host. */
static inline void becalm__attempt_release(struct step *s, uint32_t slot, const struct becalm_outcome *outcome)
{
    struct becalm_call *call = s->call;
    struct becalm_live *live = &call->slot[slot];
    becalm__call_place_free(s, &live->slot);
    if (call->target->hosts != NULL) {
        becalm__attempt_host_note(s, live, outcome);
    }
    call->live &= ~(1u << slot);
    if (call->live == 0 && call->phase != BECALM_PHASE_ANSWERED) {
        call->flown = becalm_ns_after(call->flown, becalm_ns_since(s->now, call->flying_since));
        call->slow_at = BECALM_NEVER;
    }
}

/* Abandons the attempts in these slots, which are in flight: cancelled, which counts for neither success nor failure
 * anywhere. */
void becalm__attempt_abandon(struct step *s, uint32_t slots);

/* A host that this call has not tried, if there is one; BECALM_NO_HOST if the target has none at all. */
uint32_t becalm__attempt_pick(struct step *s);

/* Has this call tried the host, as far as the record remembers? */
bool becalm__attempt_tried(struct becalm_call *, uint32_t host);

/* The retry that was paid for is not sent: its price is refunded. */
void becalm__attempt_unspend(struct step *s);

/* The attempt in flight goes to another host than the one that was chosen for it: that one has not seen it. */
void becalm__attempt_moved(struct becalm_call *, uint32_t slot, uint32_t host, becalm_ns now);

/* The attempt in flight was never sent, and does not count: gives everything back except its price, which pays for the
 * attempt that takes its place. */
void becalm__attempt_unsend(struct step *s, uint32_t slot);

/* call_restart.c */

/* Does a host accept connections, so that the call need not be parked? One load for nearly every call. */
static inline bool becalm__call_has_host(const struct becalm_target *target)
{
    return target->restart == NULL || becalm__restart_is_up(target->restart);
}

/* Would this call be parked if it were sent now? */
bool becalm__call_down(const struct step *s);

/* The call is about to be sent, but a moment ago no host accepted connections. True: the call is parked or has ended.
 * It holds no place in the limit and no permit. */
bool becalm__call_park(struct step *s);

/* If the attempt is a probe, tells the driver to open a new connection for it. */
static inline void becalm__call_say_probe(struct step *s)
{
    if (s->call->probing && (s->action->flags & BECALM_DO_SEND) != 0) {
        s->action->why = BECALM_WHY_NO_HOST;
    }
}

/* FLYING: a host refused the connection. True: the call is parked or has ended, and the attempt was none. */
bool becalm__call_refused(struct step *s, uint32_t slot, const struct becalm_outcome *outcome);

void becalm__call_park_locked(struct step *s); /* OUTSIDE, and the driver has the lock */
void becalm__call_unpark(struct step *s);      /* PARKED: the line has called */
void becalm__call_park_expire(struct step *s); /* PARKED: it may not wait any longer */

/* See becalm_call_accepted(). */
bool becalm__call_host_back(struct becalm_call *call, uint32_t slot, becalm_ns now);

/* call_retry.c */

/* The attempt in `slot` has just been judged a failure; it still holds its places. True: the call goes on without it
 * (the call waits, or other attempts are in flight). False: the call must end, and *why is the reason why there is no
 * retry. */
bool becalm__call_retry(struct step *s, uint32_t slot, const struct becalm_outcome *outcome, enum becalm_reason *why);

/* FLYING: the one attempt in flight is overdue. Sends another one beside it, if a retry is allowed and paid for. */
void becalm__call_beside(struct step *s);

/* WAITING: the wait is over. */
void becalm__call_resend(struct step *s);

/* FLYING: a hedge is due. */
void becalm__call_hedge(struct step *s);

#endif
