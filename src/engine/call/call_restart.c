/* SPDX-License-Identifier: MIT */
#include <becalm/deadline.h>

#include "call_internal.h"

static enum becalm_restart_state state_of(const struct step *s)
{
    return becalm_restart_peek(s->call->target->restart, s->call->policy->attempt_timeout, s->now);
}

/* How many calls may be parked: max_queue without the calls that wait in the gate. */
static uint64_t room_of(const struct becalm_call *call)
{
    const struct becalm_gate *gate = call->target->gate;
    uint64_t queued = gate == NULL ? 0 : becalm_gate_waiting(gate);
    return call->policy->gate.max_queue > queued ? call->policy->gate.max_queue - queued : 0;
}

/* Into the line, in the order in which calls began. False: it may not wait, or not any longer. Retries of the layer
 * above are refused, as the gate refuses them. */
static bool line_up(struct step *s)
{
    struct becalm_call *call = s->call;
    struct becalm_berth *berth = &call->berth;
    if (call->request.retry_from_above) {
        return false;
    }
    if (berth->entered_at == 0) {
        becalm_ns timeout = becalm_deadline_clip(s->now, call->deadline_at, call->policy->attempt_timeout);
        becalm_ns until = becalm_ns_after(s->now, timeout - timeout / 4);
        berth->owner = call->request.owner;
        berth->entered_at = becalm_ns_max(1, call->record.began_at);
        berth->leave_at = becalm_ns_min(until, call->deadline_at);
    }
    return s->now < berth->leave_at && becalm_parking_enter(call->request.parking, room_of(call), s->now, berth);
}

static void end(struct step *s)
{
    const struct becalm_call *call = s->call;
    const struct becalm_berth *berth = &call->berth;
    bool waited = call->record.parked > 0;
    becalm__call_explain(s, call->record.parked, waited ? becalm_ns_since(berth->leave_at, berth->entered_at) : 0);
    becalm__call_finish(s,
                        becalm_deadline_passed(s->now, call->deadline_at) ? BECALM_WHY_DEADLINE : BECALM_WHY_NO_HOST);
}

/* The call holds no slot, permit or attempt any more. */
static void park(struct step *s)
{
    struct becalm_call *call = s->call;
    call->probing = false;
    call->next_host = BECALM_NO_HOST;
    call->next_at = BECALM_NEVER;
    if (becalm__call_outside(s, true)) {
        return;
    }
    if (!line_up(s)) {
        end(s);
        return;
    }
    call->phase = BECALM_PHASE_PARKED;
    s->action->why = BECALM_WHY_NO_HOST;
    s->action->flags |= BECALM_DO_PARK;
}

void becalm__call_park_locked(struct step *s)
{
    if (s->call->left && s->call->record.attempts > 0) {
        becalm__call_finish(s, BECALM_WHY_CANCELLED); /* as one that is parked: nothing is begun for it any more */
        return;
    }
    park(s);
}

/* Does this policy park calls, and is now a time for it? */
static bool parks(const struct step *s)
{
    const struct becalm_call *call = s->call;
    return call->policy->restart.enabled && !call->policy->shadow && call->request.parking != NULL &&
           state_of(s) == BECALM_RESTART_DOWN;
}

BECALM__COLD bool becalm__call_down(const struct step *s)
{
    return !becalm__call_has_host(s->call->target) && parks(s);
}

BECALM__COLD bool becalm__call_park(struct step *s)
{
    if (s->call->probing || !parks(s)) {
        return false;
    }
    park(s);
    return true;
}

/* A hedge that no host took beside attempts that fly: there was none. */
static void hedge_undo(struct step *s)
{
    struct becalm_call *call = s->call;
    call->probing = false;
    call->retries--;
    becalm_hedge_give(call->target->hedge, &call->policy->hedge);
    s->action->why = BECALM_WHY_NO_HOST;
}

BECALM__COLD bool becalm__call_refused(struct step *s, uint32_t slot, const struct becalm_outcome *outcome)
{
    struct becalm_call *call = s->call;
    struct becalm_restart *restart = call->target->restart;
    if (restart == NULL) {
        return false;
    }
    if (outcome->no_listener) {
        becalm_restart_refused(restart, call->target->hosts, &call->policy->outlier, call->slot[slot].host, s->now);
    }
    /* The connection of a probe may also have been swallowed: that does not say that a host is back. */
    bool nobody = outcome->no_listener || call->probing;
    const struct becalm_live *live = &call->slot[slot];
    bool latest = call->record.attempts == live->number + 1; /* so that its number can be used again */
    bool alone = call->live == 1u << slot;
    bool retry_left = call->left && live->number > 0;
    if (!nobody || !latest || retry_left || !parks(s) || !(alone || live->hedge)) {
        return false;
    }
    becalm__attempt_unsend(s, slot);
    if (alone) {
        call->last = outcome->kind;
        park(s);
    } else {
        hedge_undo(s);
    }
    return true;
}

/* Sends a parked call: a first attempt passes limit and gate once more, a retry or hedge is already paid. */
static void go(struct step *s)
{
    struct becalm_call *call = s->call;
    if (call->record.attempts == 0) {
        becalm__call_enter(s);
    } else {
        becalm__call_resend(s);
    }
    becalm__call_say_probe(s);
}

static void leave(struct step *s)
{
    struct becalm_call *call = s->call;
    call->record.parked = becalm_ns_after(call->record.parked, becalm_ns_since(s->now, call->berth.parked_at));
}

void becalm__call_unpark(struct step *s)
{
    struct becalm_call *call = s->call;
    const struct becalm_target *target = call->target;
    if (call->berth.parking != NULL) {
        return; /* still waiting: no line has called it */
    }
    leave(s);
    switch (call->berth.verdict) {
    case BECALM_BERTH_WAITS:
    case BECALM_BERTH_END:
        end(s);
        return;
    case BECALM_BERTH_PROBE:
        call->probing = true;
        call->next_host = becalm_restart_turn(target->restart, target->hosts, &call->policy->outlier, s->now);
        go(s);
        return;
    case BECALM_BERTH_GO:
        go(s);
        return;
    }
    BECALM_UNREACHABLE();
}

void becalm__call_park_expire(struct step *s)
{
    struct becalm_call *call = s->call;
    if (call->berth.parking == NULL || s->now < call->berth.leave_at) {
        return;
    }
    becalm_parking_leave(&call->berth);
    leave(s);
    end(s);
}

bool becalm__call_host_back(struct becalm_call *call, uint32_t slot, becalm_ns now)
{
    const struct becalm_target *target = call->target;
    uint32_t host = call->slot[slot].host;
    call->probing = false;
    if (!becalm_restart_accepted(target->restart, host)) {
        return false;
    }
    if (target->hosts != NULL) {
        becalm_hosts_back(target->hosts, host, now);
    }
    return becalm_restart_parked(target->restart) > 0;
}
