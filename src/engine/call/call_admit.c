/* SPDX-License-Identifier: MIT */
#include <becalm/deadline.h>

#include "call_internal.h"
#include "engine/breaker_internal.h"
#include "engine/limit_internal.h"

/* A refusal before anything was sent: ends the call, unless the policy only watches. True: the call goes on. */
BECALM__COLD static bool refuse(struct step *s, enum becalm_reason why)
{
    if (becalm__call_shadowed(s, why)) {
        return true;
    }
    becalm__call_finish(s, why);
    return false;
}

BECALM__OUTLINE static bool throttle_passes(struct step *s, struct becalm_throttle *throttle)
{
    struct becalm_call *call = s->call;
    if (becalm_throttle_admit(throttle, &call->policy->throttle, s->at)) {
        call->undecided = true;
        becalm_throttle_wait(throttle);
        return true;
    }
    becalm__call_explain(s, becalm_throttle_chance(throttle, &call->policy->throttle, s->now), 0);
    return refuse(s, BECALM_WHY_THROTTLED);
}

/* Counts towards the mark "overloaded"; a policy that only watches sheds nothing. */
static void gate_note(struct step *s, bool shed)
{
    struct becalm_gate *gate = s->call->target->gate;
    if (gate != NULL && !s->call->policy->shadow) {
        becalm_gate_note(gate, shed);
    }
}

/* The same of the queue: a wait in a caller's own line says nothing about the callee. */
static void queue_note(struct step *s, bool shed)
{
    if (!s->call->policy->gate.caller) {
        gate_note(s, shed);
    }
}

BECALM__OUTLINE static bool cpu_passes(struct step *s, struct becalm_gate *gate)
{
    struct becalm_call *call = s->call;
    if (becalm_gate_admit(gate, &call->policy->gate, s->at, call->request.retry_from_above)) {
        return true;
    }
    gate_note(s, true);
    call->retry_after = call->policy->gate.retry_after;
    return refuse(s, BECALM_WHY_SHED);
}

/* An open breaker needs no place in the queue; but only the admission just before the send may take a probe. */
BECALM__COLD static bool breaker_refuse(struct step *s)
{
    becalm_ns wait = becalm_ns_left(s->now, becalm_breaker_retest_at(s->call->target->breaker));
    becalm__call_explain(s, 0, wait);
    s->call->retry_after = wait;
    return refuse(s, BECALM_WHY_BREAKER_OPEN);
}

/* Where answers usually take longer than a caller's call waits to be sent, no answer that it waits for comes by then.
 * So it waits for at least twice the usual time, as long as it has time for an answer of its own after that. 0: the
 * usual time is not known. */
static becalm_ns usual_wait(const struct becalm_call *call, becalm_ns timeout)
{
    const struct becalm_limit *limit = call->target->limit;
    if (limit == NULL || call->policy->limit.kind != BECALM_LIMIT_AIMD) {
        return 0;
    }
    becalm_ns usual = becalm__usual(limit).latency * BECALM_US;
    return becalm_ns_min(2 * usual, becalm_ns_since(timeout, usual + usual / 4));
}

/* Waiting for news. While an attempt of another call tests whether the service is well (a probe of the breaker, or an
 * attempt that the limit's pace let through), a call that would be refused may wait for the result. A page makes its
 * calls all at once: if the one that tests succeeds, the rest need not fail. Only a caller's calls wait for news, for
 * a quarter of their timeout or twice the usual time of an answer, and no more calls than may wait in line. No event
 * wakes them: each call looks again by itself after as long as it has waited already. So it sees the result after at
 * most twice the time, with a dozen looks. */

#define FIRST_LOOK BECALM_MS

/* Until when a call may wait for news; 0: it may not. */
static becalm_ns news_until(const struct step *s)
{
    const struct becalm_call *call = s->call;
    if (!call->policy->gate.caller || call->request.retry_from_above || call->policy->shadow) {
        return 0;
    }
    becalm_ns began_at = call->record.began_at;
    becalm_ns timeout = becalm_deadline_clip(began_at, call->deadline_at, call->policy->attempt_timeout);
    becalm_ns own = becalm_deadline_clip(began_at, call->deadline_at, becalm__call_timeout(call));
    return becalm_ns_after(began_at, becalm_ns_max(timeout / 4, usual_wait(call, own)));
}

/* PACED until it looks again, at the latest at this instant. False: it has waited long enough, or may not wait. */
BECALM__COLD static bool await_until(struct step *s, enum becalm_awaits what, becalm_ns until)
{
    struct becalm_call *call = s->call;
    if (s->now >= until || !becalm__gate_await(call->target->gate, &call->policy->gate)) {
        return false;
    }
    becalm_ns waited = becalm_ns_since(s->now, call->record.began_at);
    call->awaits = what;
    call->phase = BECALM_PHASE_PACED;
    call->next_at = becalm_ns_min(until, becalm_ns_after(s->now, becalm_ns_max(waited, FIRST_LOOK)));
    s->action->why = BECALM_WHY_QUEUED;
    return true;
}

BECALM__COLD static bool await(struct step *s, enum becalm_awaits what)
{
    return await_until(s, what, news_until(s));
}

/* Is the breaker open because the service went away, and all attempts to it hang? Without a breaker every call would
 * wait there for its whole timeout, so a call may wait for the next probe, too, not only for one in flight. If the
 * service answers with errors, or is overloaded, no call waits for that long. */
static bool next_probe_may_tell(const struct step *s)
{
    const struct becalm_target *target = s->call->target;
    return becalm_breaker_state(target->breaker) == BECALM_BREAKER_OPEN && target->limit != NULL &&
           s->call->policy->limit.kind == BECALM_LIMIT_AIMD &&
           becalm__aimd_hangs(target->limit, becalm__call_timeout(s->call));
}

/* The breaker has refused. Is its probe in flight, so that this call may wait for the answer, or has another thread
 * changed its state since, so that it would not refuse any more? */
static bool probe_may_tell(const struct step *s)
{
    const struct becalm_breaker *breaker = s->call->target->breaker;
    return becalm_breaker_probes(breaker, s->now) || becalm_breaker_peek(breaker, s->now) || next_probe_may_tell(s);
}

BECALM__COLD static bool may_await_probe(const struct step *s)
{
    return probe_may_tell(s) && s->now < news_until(s);
}

/* A refusal that costs a client no time makes a loop of it: a worker with a queue of jobs fails them all within
 * seconds. So a call waits at an open breaker for a moment before it is refused, for as long as a first retry backs
 * off. The moment is drawn once, and no look makes it longer. A breaker that an operator has opened refuses at once. */
BECALM__COLD static bool await_breaker(struct step *s)
{
    struct becalm_call *call = s->call;
    if (becalm_breaker_state(call->target->breaker) != BECALM_BREAKER_OPEN) {
        return false;
    }
    if (call->refuse_at == BECALM_NEVER) {
        uint64_t random = becalm_rand_lane(s->at->random, BECALM_LANE_REFUSAL);
        becalm_ns moment = becalm_rand_below(random, call->policy->backoff.base);
        call->refuse_at = becalm_ns_after(call->record.began_at, moment);
    }
    return await_until(s, BECALM_AWAITS_BREAKER, becalm_ns_min(call->refuse_at, news_until(s)));
}

/* True: go on. False: PACED at an open breaker, without a place or a token that another call could use; or ended. */
static bool breaker_passes(struct step *s, const struct becalm_breaker *breaker)
{
    return becalm__breaker_plain(breaker) || becalm_breaker_peek(breaker, s->now) || may_await_probe(s) ||
           (!await_breaker(s) && breaker_refuse(s));
}

/* True: go on at once. False: PACED until the client-side rate limit lets the call through, or ended. */
BECALM__OUTLINE static bool rate_passes(struct step *s, struct becalm_rate *rate)
{
    struct becalm_call *call = s->call;
    becalm_ns wait = becalm_rate_take(rate, s->now);
    call->rate_held = true;
    if (wait == 0 || becalm__call_shadowed(s, BECALM_WHY_RATE)) {
        return true;
    }
    if (!becalm_deadline_fits(s->now, call->deadline_at, wait, 0)) {
        becalm__call_explain(s, becalm_ns_left(s->now, call->deadline_at), wait);
        call->retry_after = wait;
        becalm__call_finish(s, BECALM_WHY_RATE);
        return false;
    }
    call->phase = BECALM_PHASE_PACED;
    call->next_at = becalm_ns_after(s->now, wait);
    s->action->why = BECALM_WHY_RATE;
    return false;
}

/* Is this the limit of a gate, which judges answers by how long they take, where no timeout is written? */
static inline bool is_judged_by_due(const struct becalm_call *call)
{
    return call->policy->limit.kind == BECALM_LIMIT_SLOTS && becalm__call_is_unwritten(call);
}

/* A gate counts answers beyond a quarter of this time as slow. Where no timeout is written, an answer is slow when its
 * attempt is overdue: nothing cuts it off, so that a queue does less harm than with a timeout from the policy. */
static BECALM__INLINE becalm_ns timeout_judged(const struct becalm_call *call)
{
    becalm_ns timeout = becalm__call_timeout(call);
    return is_judged_by_due(call) ? BECALM__SLOTS_DUE * timeout : timeout;
}

/* By which timeout the limit judges this call's answers: its own, since a caller in a hurry is hurt by a queue before
 * others are; but not less than a tenth of the policy's, so that a caller with a deadline of 1 ms can't make every
 * answer look slow. Where no timeout is written, the deadline is no sign of a hurry: an answer within half of the time
 * left, which is a quarter of twice that time, comes soon enough. */
static BECALM__INLINE becalm_ns timeout_of(const struct step *s)
{
    becalm_ns timeout = timeout_judged(s->call);
    becalm_ns left = becalm_ns_left(s->now, s->call->deadline_at);
    becalm_ns part = is_judged_by_due(s->call) ? 2 : 1;
    return left >= timeout / part ? timeout : becalm_ns_max(timeout / 10, part * left);
}

/* The limit said no. That may have been its pacing, which a probe of the breaker is not subject to. */
BECALM__COLD static bool place_probe(struct step *s, struct becalm_slot *slot)
{
    const struct becalm_target *target = s->call->target;
    return target->breaker != NULL && !becalm_breaker_closed(target->breaker) &&
           becalm_limit_probe(target->limit, &s->call->policy->limit, s->at, timeout_of(s), slot);
}

static BECALM__INLINE bool place_take(struct step *s, struct becalm_slot *slot)
{
    const struct becalm_target *target = s->call->target;
    const struct becalm_limit_policy *policy = &s->call->policy->limit;
    if (target->limit == NULL) {
        return true;
    }
    return becalm_limit_admit(target->limit, policy, s->at, timeout_of(s), slot) || place_probe(s, slot);
}

BECALM__OUTLINE bool becalm__call_place_take(struct step *s, struct becalm_slot *slot)
{
    return place_take(s, slot);
}

/* Is it the answers in progress that leave no place, and not the attempts in flight? */
static bool answers_fill(const struct step *s)
{
    const struct becalm_limit *limit = s->call->target->limit;
    const struct becalm_limit_policy *policy = &s->call->policy->limit;
    return becalm_limit_in_flight(limit) < becalm_limit_now(limit, policy) && becalm_limit_answers_full(limit, policy);
}

BECALM__COLD enum becalm_reason becalm__call_place_why(struct step *s)
{
    const struct becalm_limit *limit = s->call->target->limit;
    const struct becalm_limit_policy *policy = &s->call->policy->limit;
    if (answers_fill(s)) {
        becalm__call_explain(s, becalm_limit_answers(limit), policy->max_answers);
        return BECALM_WHY_ANSWERS;
    }
    becalm__call_explain(s, becalm_limit_in_flight(limit), becalm_limit_now(limit, policy));
    return BECALM_WHY_LIMIT;
}

/* No host accepts connections. True: the call waits for one, or has ended. */
BECALM__COLD static bool park(struct step *s, struct becalm_live *live)
{
    if (!becalm__call_park(s)) {
        return false;
    }
    becalm__call_place_free(s, &live->slot);
    return true;
}

BECALM__COLD static bool await_probe(struct step *s)
{
    return probe_may_tell(s) && await(s, BECALM_AWAITS_PROBE);
}

/* The last question before the first send, with a place in the limit or without one. */
static BECALM__INLINE void first_send(struct step *s)
{
    struct becalm_call *call = s->call;
    const struct becalm_target *target = call->target;
    struct becalm_live *live = &call->slot[BECALM__FIRST_SLOT];
    if (!becalm__call_has_host(target) && park(s, live)) {
        return;
    }
    if (target->breaker != NULL) {
        struct becalm_permit *permit = call->policy->breaker.per_attempt ? &live->permit : &call->permit;
        bool admitted = becalm__breaker_admit(target->breaker, &call->policy->breaker, s->at, permit);
        becalm__call_report(s, permit);
        if (!admitted && (await_probe(s) || await_breaker(s) || !breaker_refuse(s))) {
            becalm__call_place_free(s, &live->slot);
            return;
        }
    }
    becalm__attempt_send_first(s);
}

/* Until when the call can wait in line at most. A streamed request has the policy's deadline only from its last byte
 * on; but where no timeout is written, a call waits at a gate for a part of the deadline, and a streamed one as any
 * other. */
static becalm_ns line_until(const struct step *s)
{
    const struct becalm_call *call = s->call;
    const struct becalm_policy *policy = call->policy;
    bool bounded = call->request.streams && becalm__call_is_unwritten(call) && !policy->gate.caller &&
                   policy->gate.max_wait < policy->deadline;
    return bounded ? becalm_deadline_at(s->now, policy->deadline, call->deadline_at) : call->deadline_at;
}

static bool line_up(struct step *s)
{
    struct becalm_call *call = s->call;
    struct becalm_ticket *ticket = &call->ticket;
    becalm_ns timeout = becalm_deadline_clip(s->now, call->deadline_at, becalm__call_timeout(call));
    ticket->owner = call->request.owner;
    ticket->flow = call->request.flow;
    ticket->timeout = timeout_of(s);
    ticket->patient = call->berth.parked_at != 0;
    ticket->unhurried = becalm__call_is_unwritten(call);
    ticket->patience = ticket->patient             ? becalm_ns_left(s->now, call->berth.leave_at)
                       : call->policy->gate.caller ? timeout / 4
                                                   : timeout / 2;
    ticket->usual_wait = call->policy->gate.caller ? usual_wait(call, timeout) : 0;
    ticket->expires_at = line_until(s);
    return becalm_queue_enter(call->request.queue, &call->policy->gate, s->now, ticket);
}

/* The limit is reached. A first attempt waits if it can; a retry of ours or from above is refused: retries go first. */
BECALM__COLD static void limit_reached(struct step *s)
{
    struct becalm_call *call = s->call;
    enum becalm_reason why = becalm__call_place_why(s);
    /* The limit's pacing said no, and a place in the queue would not help. That the limit is not full now is no proof
     * of it: another thread may have given its place back since. */
    bool paced = why == BECALM_WHY_LIMIT && call->record.have < call->record.need &&
                 becalm__pace_refuses(call->target->limit, s->at);
    bool may_wait = call->request.queue != NULL && !call->request.retry_from_above && !call->policy->shadow;
    if (may_wait && (!paced || becalm__gate_waits(call->request.queue->gate))) {
        if (becalm__call_outside(s, false)) {
            becalm__call_explain(s, 0, 0);
            return;
        }
        if (line_up(s)) {
            becalm__call_explain(s, 0, 0);
            call->phase = BECALM_PHASE_GATED;
            s->action->why = BECALM_WHY_QUEUED;
            s->action->flags |= BECALM_DO_SERVE; /* another thread may have freed the last place a moment ago */
            return;
        }
        if (why == BECALM_WHY_LIMIT && !call->policy->gate.caller) {
            uint32_t most;
            uint32_t held =
                becalm_queue_held(call->request.queue, &call->policy->gate, s->now, call->request.flow, &most);
            why = BECALM_WHY_SHED;
            becalm__call_explain(s, held, most);
        }
    }
    if (paced && await(s, BECALM_AWAITS_PACE)) {
        becalm__call_explain(s, 0, 0);
        return;
    }
    call->retry_after = call->policy->gate.retry_after;
    if (call->request.queue != NULL) { /* else no gate refused the call, and the mark is conditional */
        queue_note(s, true);
    }
    if (refuse(s, why)) {
        first_send(s);
    }
}

static BECALM__INLINE void enter(struct step *s)
{
    struct becalm_call *call = s->call;
    const struct becalm_target *target = call->target;
    struct becalm_live *live = becalm__attempt_ready(call, BECALM__FIRST_SLOT);
    if (target->limit != NULL) {
        bool behind = call->request.queue != NULL && becalm__gate_waits(call->request.queue->gate);
        if (behind || !place_take(s, &live->slot)) {
            limit_reached(s);
            return;
        }
        gate_note(s, false);
    }
    first_send(s);
}

/* PACED: the pacing's draw refused this call, and it waits for the success of a call that was admitted. It is sent when
 * the pacing is over, and never by another draw: waiting calls must not add load. True: the call goes on. */
BECALM__COLD static bool pace_is_over(struct step *s)
{
    struct becalm_call *call = s->call;
    if (!becalm__pace_is_low(call->target->limit)) {
        return true;
    }
    if (!await(s, BECALM_AWAITS_PACE)) {
        call->retry_after = call->policy->gate.retry_after;
        becalm__call_finish(s, becalm__call_place_why(s));
    }
    return false;
}

/* PACED: the breaker was open, and the call has waited for a moment. True: the breaker lets it go on. */
BECALM__COLD static bool breaker_is_over(struct step *s)
{
    const struct becalm_target *target = s->call->target;
    return breaker_passes(s, target->breaker) &&
           (target->rate == NULL || s->call->rate_held || rate_passes(s, target->rate));
}

/* The call is woken, or has a turn. True: it goes on. */
static inline bool awaited(struct step *s, enum becalm_awaits what)
{
    switch (what) {
    case BECALM_AWAITS_NOTHING:
    case BECALM_AWAITS_PROBE:
        return true;
    case BECALM_AWAITS_PACE:
        return pace_is_over(s);
    case BECALM_AWAITS_BREAKER:
        return breaker_is_over(s);
    }
    BECALM_UNREACHABLE();
}

void becalm__call_enter(struct step *s)
{
    enum becalm_awaits what = s->call->awaits;
    becalm__call_await_end(s->call);
    if (becalm_deadline_passed(s->now, s->call->deadline_at)) {
        becalm__call_finish(s, BECALM_WHY_DEADLINE);
        return;
    }
    if (awaited(s, what)) {
        enter(s);
    }
}

void becalm__call_admit(struct step *s)
{
    struct becalm_call *call = s->call;
    becalm_ns carried_at = becalm__call_carried(call);
    call->record.began_at = s->now;
    call->deadline_at = call->request.streams ? carried_at /* the policy's begins when the request is through */
                                              : becalm_deadline_at(s->now, call->policy->deadline, carried_at);
    if (becalm_deadline_passed(s->now, call->deadline_at)) {
        becalm__call_finish(s, BECALM_WHY_DEADLINE); /* before the throttle: it was never a request to the callee */
        return;
    }
    const struct becalm_target *target = call->target;
    bool by_cpu = call->policy->gate.cpu_threshold_ppm != 0 && target->gate != NULL;
    if ((target->throttle == NULL || throttle_passes(s, target->throttle)) &&
        (!by_cpu || cpu_passes(s, target->gate)) && (target->breaker == NULL || breaker_passes(s, target->breaker)) &&
        (target->rate == NULL || rate_passes(s, target->rate))) {
        enter(s);
    }
}

/* Leaves the gate for good, served or not. */
static void ungate(struct step *s, bool shed)
{
    struct becalm_call *call = s->call;
    call->record.gated = becalm_ns_since(s->now, call->ticket.queued_at);
    queue_note(s, shed);
    if (shed) {
        becalm__call_explain(s, call->record.gated, becalm__ticket_patience(&call->ticket, &call->policy->gate));
        call->retry_after = call->policy->gate.retry_after;
    }
}

void becalm__call_served(struct step *s)
{
    struct becalm_call *call = s->call;
    bool ok = call->ticket.verdict == BECALM_WHY_OK;
    if (call->ticket.queue != NULL) {
        return; /* still waiting: the line has not called it */
    }
    ungate(s, !ok);
    if (!ok && !becalm__call_shadowed(s, call->ticket.verdict)) {
        becalm__call_finish(s, call->ticket.verdict);
        return;
    }
    struct becalm_live *live = becalm__attempt_ready(call, BECALM__FIRST_SLOT);
    live->slot = call->ticket.slot;
    call->ticket.slot.held = false; /* the slot belongs to the attempt from here on */
    if (live->slot.held) {
        live->slot.waited = call->record.gated > live->slot.timeout / 8;
        becalm_limit_sent(call->target->limit, &live->slot, s->now);
    }
    first_send(s);
    becalm__call_say_probe(s);
}

void becalm__call_expire(struct step *s)
{
    struct becalm_call *call = s->call;
    struct becalm_ticket *ticket = &call->ticket;
    if (ticket->queue == NULL || s->now < becalm_ticket_leave_at(ticket) ||
        becalm_ticket_stays(ticket, &call->policy->gate, s->now)) {
        return;
    }
    becalm__call_queue_leave(s);
    ungate(s, true);
    if (becalm_deadline_passed(s->now, call->deadline_at)) {
        becalm__call_finish(s, BECALM_WHY_DEADLINE);
        return;
    }
    enum becalm_reason turned_away = call->policy->gate.caller ? BECALM_WHY_LIMIT : BECALM_WHY_SHED;
    becalm__call_finish(s, answers_fill(s) ? becalm__call_place_why(s) : turned_away);
}
