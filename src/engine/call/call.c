/* SPDX-License-Identifier: MIT */
#include <becalm/call.h>

#include <becalm/deadline.h>

#include "call_internal.h"
#include "engine/limit_internal.h"

void becalm_call_init(struct becalm_call *call, const struct becalm_policy *policy, const struct becalm_target *target,
                      const struct becalm_request *request)
{
    /* Field by field, in order: most of a call is the slots and the record of attempts that it may never make. */
    call->policy = policy;
    call->target = target;
    call->request = *request;
    call->phase = BECALM_PHASE_NEW;
    call->live = 0;
    call->retries = 0;
    call->awaits = BECALM_AWAITS_NOTHING;
    call->verdict = BECALM_WHY_NONE;
    call->unasked = false;
    call->begun = false;
    call->answered = false;
    call->accepted = false;
    call->undecided = false;
    call->rate_held = false;
    call->retried_once = false;
    call->leased = false;
    call->probing = false;
    call->parks = false;
    call->left = false;
    call->late = false;
    call->last = BECALM_OUTCOME_CANCELLED;
    call->answer = BECALM_SLOTS;
    call->next_host = BECALM_NO_HOST;
    call->flying_since = 0;
    call->flown = 0;
    call->last_wait = 0;
    call->failed_at = 0;
    call->deadline_at = BECALM_NEVER;
    call->next_at = BECALM_NEVER;
    call->slow_at = BECALM_NEVER;
    call->retry_after = BECALM_NEVER;
    call->refuse_at = BECALM_NEVER;
    call->permit.held = false;
    call->permit.overdue = false;
    call->spend.held = false;
    call->service_spend.held = false;
    call->ticket.queue = NULL;
    call->ticket.slot.held = false;
    call->berth.parking = NULL;
    call->berth.entered_at = 0;
    call->berth.leave_at = 0;
    call->berth.parked_at = 0;
    call->record.began_at = 0;
    call->record.ended_at = 0;
    call->record.gated = 0;
    call->record.parked = 0;
    call->record.attempts = 0;
    call->record.hedges = 0;
    call->record.reason = BECALM_WHY_NONE;
    call->record.would = BECALM_WHY_NONE;
    call->record.have = 0;
    call->record.need = 0;
}

void becalm_call_not_replayable(struct becalm_call *call)
{
    call->request.not_replayable = true;
}

void becalm_call_streams(struct becalm_call *call, uint32_t slot)
{
    if (slot < BECALM_SLOTS && (call->live & 1u << slot) != 0) {
        becalm__attempt_streams(call, slot);
    }
}

void becalm_call_streamed(struct becalm_call *call, becalm_ns now)
{
    if (call->request.streams) {
        call->request.streams = false;
        call->deadline_at = becalm_deadline_at(now, call->policy->deadline, call->deadline_at);
    }
}

bool becalm_call_accepted(struct becalm_call *call, uint32_t slot, becalm_ns now)
{
    struct becalm_restart *restart = call->target->restart;
    return restart != NULL && slot < BECALM_SLOTS && (call->live & 1u << slot) != 0 &&
           becalm__call_host_back(call, slot, now);
}

void becalm_call_sent_to(struct becalm_call *call, uint32_t slot, uint32_t host, becalm_ns now)
{
    if (call->target->hosts != NULL && slot < BECALM_SLOTS && (call->live & 1u << slot) != 0 &&
        call->slot[slot].host != host) {
        becalm__attempt_moved(call, slot, host, now);
    }
}

void becalm_call_unsent(struct becalm_call *call, uint32_t slot, becalm_ns leave_at)
{
    if (slot < BECALM_SLOTS && (call->live & 1u << slot) != 0) {
        becalm__attempt_waits(call, slot, leave_at);
    }
}

becalm_ns becalm_call_goes(struct becalm_call *call, uint32_t slot, becalm_ns now)
{
    if (slot >= BECALM_SLOTS || (call->live & 1u << slot) == 0) {
        return BECALM_NEVER;
    }
    if (call->slot[slot].unsent) {
        becalm__attempt_goes(call, slot, now);
    }
    return becalm__attempt_ends_at(call, &call->slot[slot]);
}

bool becalm_call_ended(const struct becalm_call *call)
{
    return call->phase == BECALM_PHASE_ENDED;
}

bool becalm_call_in_line(const struct becalm_call *call)
{
    return call->phase == BECALM_PHASE_GATED || call->phase == BECALM_PHASE_PARKED;
}

bool becalm__call_lists(const struct becalm_call *call, const struct becalm_outcome *outcome)
{
    return outcome->listed == BECALM_LISTED_BY_KIND ? (call->policy->retry_on & BECALM_OUTCOME_BIT(outcome->kind)) != 0
                                                    : outcome->listed == BECALM_LISTED_YES;
}

bool becalm__call_shadowed(struct step *s, enum becalm_reason why)
{
    if (!s->call->policy->shadow) {
        return false;
    }
    if (s->call->record.would == BECALM_WHY_NONE) {
        s->call->record.would = why;
    }
    s->call->retry_after = BECALM_NEVER; /* nothing was refused, so there is nothing to tell the caller */
    becalm__call_explain(s, 0, 0);
    return true;
}

/* Tells the breaker how the call went, if it is the calls that it counts: with its answer's head, or its end without
 * one. */
BECALM__OUTLINE static void permit_end(struct step *s)
{
    struct becalm_call *call = s->call;
    enum becalm_verdict verdict = becalm__permit_verdict(call->last, call->unasked);
    becalm_breaker_note(call->target->breaker, &call->policy->breaker, s->at, &call->permit, verdict, call->flown);
    becalm__call_report(s, &call->permit);
}

/* The breaker was told that the call timed out. If it has succeeded since, by whichever attempt, the service answers.
 */
BECALM__COLD static void permit_end_late(struct step *s)
{
    struct becalm_call *call = s->call;
    if (becalm__permit_verdict(call->last, call->unasked) == BECALM_VERDICT_OK) {
        becalm__permit_late(s, &call->permit, call->flown);
    }
}

static inline void permit_settle(struct step *s)
{
    if (s->call->permit.held) {
        permit_end(s);
    } else if (s->call->permit.overdue) {
        permit_end_late(s);
    }
}

static inline void budgets_end(const struct becalm_call *call)
{
    if (call->target->budget != NULL) {
        becalm_budget_end(call->target->budget, &call->policy->budget);
    }
    if (call->target->service_budget != NULL) {
        becalm_budget_end(call->target->service_budget, &call->policy->service_budget);
    }
}

/* Gives back the slot and permit of an attempt that is not sent now. */
BECALM__COLD static void unsent_give(struct step *s)
{
    struct becalm_call *call = s->call;
    becalm__attempt_unspend(s);
    becalm__call_await_end(call);
    if (call->rate_held) {
        becalm_rate_give(call->target->rate, s->now);
        call->rate_held = false;
    }
    if (call->ticket.queue != NULL) {
        becalm__call_queue_leave(s);
    }
    becalm_parking_leave(&call->berth);
    becalm__call_place_free(s, &call->ticket.slot);
}

/* The mark and Retry-After of an answer that is not a success. */
BECALM__COLD static void action_advise(struct step *s, enum becalm_reason why)
{
    const struct becalm_call *call = s->call;
    enum becalm_mark_kind mark = becalm_mark_for(why, call->target->gate);
    bool unasked = call->record.attempts == 0 ? mark == BECALM_MARK_SPENT : call->unasked;
    if (unasked && mark != BECALM_MARK_OVERLOADED && why != BECALM_WHY_CANCELLED) {
        mark = BECALM_MARK_UNASKED; /* a mark of a lower layer goes on travelling up, however this call ended */
    }
    s->action->mark = mark;
    s->action->retry_after = call->retry_after;
}

/* Cancels all attempts in flight but those in the slots of `keep`: they have lost. */
static inline void others_abandon(struct step *s, uint32_t keep)
{
    uint32_t others = s->call->live & ~keep;
    if (others != 0) {
        becalm__attempt_abandon(s, others);
    }
}

/* The only way into ENDED. */
static BECALM__INLINE void finish(struct step *s, enum becalm_reason why)
{
    struct becalm_call *call = s->call;
    BECALM_ASSERT(call->phase != BECALM_PHASE_ENDED);
    if (call->phase == BECALM_PHASE_NEW) {
        call->record.began_at = s->now; /* cancelled before it began, or refused at once */
    }
    others_abandon(s, 0);
    if (call->record.attempts == 0 || call->retries > 0) { /* else the one attempt was sent, and nothing since waits */
        unsent_give(s);
    }
    permit_settle(s);
    if (call->begun) {
        budgets_end(call);
    }
    becalm__call_decided(call);
    if (call->phase != BECALM_PHASE_ANSWERED) {
        bool heard = why != BECALM_WHY_CANCELLED || call->left; /* the caller may still read the answer */
        s->action->last_answer = call->answered && heard;
    }
    call->phase = BECALM_PHASE_ENDED;
    call->record.reason = why;
    call->record.ended_at = s->now;
    if (why == BECALM_WHY_OK) {
        becalm__call_explain(s, 0, 0); /* a refused hedge on the way is no reason any more */
    }
    s->action->flags |= BECALM_DO_FINISH;
    s->action->why = why;
    if (why != BECALM_WHY_OK) {
        action_advise(s, why);
    }
}

BECALM__COLD void becalm__call_finish(struct step *s, enum becalm_reason why)
{
    finish(s, why);
}

/* The answer in this slot goes to the caller; all other attempts in flight have lost. */
static BECALM__INLINE void answer_begin(struct step *s, uint32_t slot, enum becalm_reason verdict)
{
    struct becalm_call *call = s->call;
    call->flown = becalm_ns_after(call->flown, becalm_ns_since(s->now, call->flying_since));
    call->phase = BECALM_PHASE_ANSWERED;
    call->answer = slot;
    call->verdict = verdict;
    others_abandon(s, 1u << slot);
    s->action->flags |= BECALM_DO_ANSWER;
    s->action->slot = slot;
    s->action->why = verdict;
    if (verdict != BECALM_WHY_OK) {
        action_advise(s, verdict);
    }
}

/* The same of one that is judged. */
static BECALM__INLINE void answer_pass(struct step *s, uint32_t slot, enum becalm_reason verdict)
{
    answer_begin(s, slot, verdict);
    permit_settle(s); /* at the head: a success whose body takes minutes must count now, and must not hold a probe */
}

static enum becalm_reason reason_of_answer(enum becalm_outcome_kind kind)
{
    return kind == BECALM_OUTCOME_OK ? BECALM_WHY_OK : BECALM_WHY_PERMANENT;
}

/* An attempt failed, at its head or without one. True: the call goes on without it. */
BECALM__COLD static bool failed_goes_on(struct step *s, uint32_t slot, const struct becalm_outcome *outcome,
                                        enum becalm_reason *why)
{
    if (outcome->kind == BECALM_OUTCOME_REFUSED && becalm__call_refused(s, slot, outcome)) {
        return true;
    }
    becalm__attempt_judge(s, &s->call->slot[slot], outcome);
    if (!becalm__call_retry(s, slot, outcome, why)) {
        return false;
    }
    becalm__attempt_release(s, slot, outcome);
    return true;
}

static void slot_cancel(struct step *s, uint32_t slot)
{
    s->action->flags |= BECALM_DO_CANCEL;
    s->action->cancel |= 1u << slot;
}

/* The functions below take the outcome's kind beside it, because they are inlined where it is known, too. */

/* FLYING: an answer's head. Passes it on, or tries again. */
static BECALM__INLINE void head(struct step *s, uint32_t slot, const struct becalm_outcome *outcome,
                                enum becalm_outcome_kind kind)
{
    enum becalm_reason why;
    if (becalm_outcome_traits(kind)->earns) {
        becalm__attempt_judge(s, &s->call->slot[slot], outcome);
        answer_pass(s, slot, reason_of_answer(kind));
    } else if (failed_goes_on(s, slot, outcome, &why)) {
        slot_cancel(s, slot);
        return;
    } else {
        answer_pass(s, slot, why);
    }
    becalm__call_place_answer(s, &s->call->slot[slot].slot);
}

#define BEGUN_WELL (10 * BECALM_S) /* at most: a stream of hours must hold neither a probe nor evidence */

/* ANSWERED, by a provisional head: when the next thing is due. */
static becalm_ns late_wake_at(const struct becalm_call *call)
{
    const struct becalm_live *live = &call->slot[call->answer];
    becalm_ns judge = becalm_ns_after(live->headed_at, becalm_ns_min(becalm__call_timeout(call), BEGUN_WELL));
    return becalm_ns_min(live->judged ? BECALM_NEVER : judge, becalm__call_carried(call));
}

/* Keeps the deadline of a call with a provisional head, in a step that is about something else. */
static inline void late_keep(struct step *s)
{
    if (s->call->phase == BECALM_PHASE_ANSWERED && s->call->late) {
        s->action->wake_at = late_wake_at(s->call);
    }
}

/* FLYING: a provisional head: only the end of the answer says whether the attempt succeeded. The head is passed on, and
 * no statistic counts the attempt yet. */
BECALM__COLD static void head_provisional(struct step *s, uint32_t slot, const struct becalm_outcome *outcome)
{
    struct becalm_live *live = &s->call->slot[slot];
    live->headed_at = s->now;
    live->outcome = *outcome;
    live->outcome.provisional = false;
    s->call->late = true;
    answer_begin(s, slot, BECALM_WHY_OK);
    becalm__call_place_answer(s, &live->slot);
    late_keep(s);
}

/* ANSWERED, by a provisional head: it goes on for so long that it began well, or for longer than its caller waits. */
BECALM__COLD static void timer_answered(struct step *s)
{
    static const struct becalm_outcome cancelled = {.kind = BECALM_OUTCOME_CANCELLED};
    struct becalm_call *call = s->call;
    const uint32_t slot = call->answer;
    if (!call->late || s->now < late_wake_at(call)) {
        return;
    }
    if (s->now >= becalm__call_carried(call)) {
        slot_cancel(s, slot);
        if (!call->slot[slot].judged) {
            becalm__attempt_judge_late(s, slot, &cancelled);
        }
        becalm__attempt_release(s, slot, &cancelled);
        becalm__call_finish(s, BECALM_WHY_DEADLINE);
        return;
    }
    const struct becalm_outcome well = call->slot[slot].outcome;
    becalm__attempt_judge_late(s, slot, &well);
    permit_settle(s);
}

/* FLYING: the end of an attempt whose head the driver did not report: a whole answer, or none. Returns why the call
 * ends; NONE: the call goes on. */
static BECALM__INLINE enum becalm_reason end_unheaded(struct step *s, uint32_t slot,
                                                      const struct becalm_outcome *outcome,
                                                      enum becalm_outcome_kind kind)
{
    enum becalm_reason why;
    if (becalm_outcome_traits(kind)->earns) {
        becalm__attempt_judge(s, &s->call->slot[slot], outcome);
        why = reason_of_answer(kind);
    } else if (failed_goes_on(s, slot, outcome, &why)) {
        return BECALM_WHY_NONE;
    }
    if (kind == BECALM_OUTCOME_OK || outcome->status != 0) {
        answer_pass(s, slot, why);
    }
    return why;
}

/* ANSWERED: the answer is through to its end, or was cut. Returns why the call ends. */
static BECALM__INLINE enum becalm_reason end_answered(struct step *s, uint32_t slot,
                                                      const struct becalm_outcome *outcome,
                                                      enum becalm_outcome_kind kind)
{
    struct becalm_call *call = s->call;
    if (call->late && !call->slot[slot].judged) {
        becalm__attempt_judge_late(s, slot, outcome);
        return becalm_outcome_traits(kind)->earns ? reason_of_answer(kind) : BECALM_WHY_ANSWER_DELIVERED;
    }
    bool cut = !becalm_outcome_traits(kind)->earns && becalm_outcome_traits(call->last)->earns;
    if (cut) {
        call->last = kind;
    }
    return cut ? BECALM_WHY_ANSWER_DELIVERED : call->verdict;
}

/* FLYING, ANSWERED: an attempt is over, and the call with it unless it goes on without. */
static BECALM__INLINE void end(struct step *s, uint32_t slot, const struct becalm_outcome *outcome,
                               enum becalm_outcome_kind kind)
{
    enum becalm_reason why = s->call->phase == BECALM_PHASE_ANSWERED ? end_answered(s, slot, outcome, kind)
                                                                     : end_unheaded(s, slot, outcome, kind);
    if (why != BECALM_WHY_NONE) {
        becalm__attempt_release(s, slot, outcome);
        finish(s, why);
    }
}

BECALM__OUTLINE static void head_any(struct step *s, uint32_t slot, const struct becalm_outcome *outcome)
{
    head(s, slot, outcome, outcome->kind);
}

BECALM__OUTLINE static void end_any(struct step *s, uint32_t slot, const struct becalm_outcome *outcome)
{
    end(s, slot, outcome, outcome->kind);
}

/* Did the call's deadline give this attempt much less time than the policy? Then its timeout is not the callee's fault.
 * With three quarters of its time it is: behind callers with the same timeout every attempt of a gateway is cut by a
 * deadline a little earlier, and a limit that learned nothing from that would never see an overload. */
static bool is_clipped(const struct step *s, const struct becalm_live *live)
{
    becalm_ns timeout = live->overdue ? 0 : becalm__call_timeout(s->call);
    return live->streams || becalm_ns_since(live->timeout_at, live->sent_at) < timeout - timeout / 4;
}

/* FLYING, timed out. A host that keeps an attempt's time itself can't know that it was the call's deadline which cut
 * it. Its timer may be a little early; a timeout long before the end that we gave was the driver's own. */
BECALM__COLD static bool cut_by_deadline(const struct step *s, const struct becalm_event *event)
{
    const struct becalm_live *live = &s->call->slot[event->slot];
    if (!is_clipped(s, live)) {
        return false;
    }
    becalm_ns early = becalm_ns_max(2 * BECALM_MS, becalm_ns_since(live->timeout_at, live->sent_at) / 16);
    return becalm_ns_after(s->now, early) >= live->timeout_at;
}

static inline bool is_in_flight(const struct becalm_call *call, uint32_t slot)
{
    return slot < BECALM_SLOTS && (call->live & 1u << slot) != 0; /* else abandoned: it does not matter any more */
}

static inline void done_event(struct step *s, const struct becalm_event *event)
{
    static const struct becalm_outcome cancelled = {.kind = BECALM_OUTCOME_CANCELLED};
    if (!is_in_flight(s->call, event->slot)) {
        late_keep(s);
        return;
    }
    if (event->slot == BECALM__FIRST_SLOT && event->outcome.kind == BECALM_OUTCOME_OK) {
        end(s, BECALM__FIRST_SLOT, &event->outcome, BECALM_OUTCOME_OK); /* nearly every call */
        return;
    }
    s->cut = event->outcome.kind == BECALM_OUTCOME_TIMED_OUT && s->call->phase != BECALM_PHASE_ANSWERED &&
             cut_by_deadline(s, event);
    end_any(s, event->slot, s->cut ? &cancelled : &event->outcome);
}

static inline void head_event(struct step *s, const struct becalm_event *event)
{
    if (!is_in_flight(s->call, event->slot) || s->call->phase == BECALM_PHASE_ANSWERED) {
        late_keep(s);
        return;
    }
    if (event->outcome.provisional && event->outcome.kind == BECALM_OUTCOME_OK) {
        head_provisional(s, event->slot, &event->outcome);
        return;
    }
    if (event->slot == BECALM__FIRST_SLOT && event->outcome.kind == BECALM_OUTCOME_OK) {
        head(s, BECALM__FIRST_SLOT, &event->outcome, BECALM_OUTCOME_OK); /* nearly every call */
        return;
    }
    head_any(s, event->slot, &event->outcome);
}

/* FLYING: this attempt's time is over, and it still waits in the driver's pool for a connection. The attempt does not
 * count, and its price is refunded. */
BECALM__COLD static void unsent_out(struct step *s, uint32_t slot)
{
    struct becalm_call *call = s->call;
    const struct becalm_live *live = &call->slot[slot];
    becalm_ns may_wait = becalm_ns_since(live->timeout_at, live->sent_at);
    bool alone = call->live == 1u << slot;
    if (alone && live->number + 1 == call->record.attempts) {
        slot_cancel(s, slot);
        becalm__attempt_unsend(s, slot);
    } else { /* others were sent beside it, and its number is among theirs */
        becalm__attempt_abandon(s, 1u << slot);
    }
    if (!alone) {
        return;
    }
    if (call->record.attempts > 0 && s->now >= call->deadline_at) {
        becalm__call_explain(s, 0, 0);
        becalm__call_finish(s, BECALM_WHY_DEADLINE); /* an attempt was sent: the call did not fail for a connection */
        return;
    }
    becalm__call_explain(s, becalm_ns_since(s->now, live->sent_at), may_wait);
    call->retry_after = call->policy->gate.retry_after;
    becalm__call_finish(s, BECALM_WHY_NO_CONNECTION);
}

#define OVERDUE_LOOK BECALM_S

static bool is_probing(const struct becalm_call *call, const struct becalm_live *live)
{
    return (call->permit.held && call->permit.probe) || (live->permit.held && live->permit.probe);
}

/* May a second attempt be sent beside this overdue one? Only beside a call's first attempt, because the call holds the
 * price of a retry until that retry is over. And only where few attempts are overdue: more attempts do not help an
 * overloaded service, even if it answers the latest first. Not for a request that is a retry already: each layer of a
 * chain would send second attempts through all layers below. Call it once for each overdue attempt, which is counted
 * in any case. */
static bool may_go_beside(const struct becalm_call *call, const struct becalm_live *live)
{
    bool rare = live->number != 0 || becalm_due_is_rare(call->target->due);
    return rare && call->policy->retry_overdue && call->policy->timeout_kind != BECALM_TIMEOUT_NONE &&
           live->number == 0 && live->second == BECALM_SECOND_NONE && !call->request.retry_from_above &&
           !call->request.alone && !is_probing(call, live);
}

/* Has the service answered an attempt that was sent with this one or later? Then it does not queue, and this attempt
 * hangs, or is lost. A limit that does not adapt keeps no such time. */
static bool is_overtaken(const struct becalm_call *call, const struct becalm_live *live)
{
    const struct becalm_limit *limit = call->target->limit;
    return limit == NULL || !becalm__limit_adapts(call->policy->limit.kind) ||
           becalm__is_overtaken(limit, live->sent_at);
}

/* No other attempt to the target waits for an answer. An attempt holds its own slot until it is overdue; others that
 * are overdue already have given theirs back, but are known as timeouts since the last success. */
static bool is_alone(const struct becalm_call *call)
{
    const struct becalm_limit *limit = call->target->limit;
    uint64_t word = atomic_load_explicit(&limit->evidence, memory_order_relaxed);
    return becalm_limit_in_flight(limit) <= 1 && becalm__evidence_run(word) == 0;
}

/* When a second attempt may be sent beside an overdue one. If others wait, too, and none that was sent later has been
 * answered, the service may have a queue, and a second attempt would wait at its end. The layers of a chain notice at
 * the same moment. So each layer but the first waits for a random time, in which another layer may bring the answer. */
static becalm_ns beside_at(const struct step *s, const struct becalm_live *live)
{
    const struct becalm_call *call = s->call;
    if (!may_go_beside(call, live) || !(is_overtaken(call, live) || is_alone(call))) {
        return BECALM_NEVER;
    }
    uint64_t random = becalm_rand_lane(s->at->random, BECALM_LANE_BESIDE);
    return call->request.attempt_from_above
               ? becalm_ns_after(s->now, becalm_rand_below(random, becalm__call_timeout(call)))
               : s->now;
}

/* FLYING: this attempt takes too long. Limit and breaker hear of it. */
BECALM__COLD static void become_overdue(struct step *s, uint32_t slot)
{
    struct becalm_call *call = s->call;
    struct becalm_live *live = &call->slot[slot];
    live->probed = is_probing(call, live);
    live->beside_at = beside_at(s, live);
    becalm__attempt_overdue(s, slot);
}

/* Is an overdue attempt given up? Not while the service answers other calls: then it is only slow. With an open breaker
 * it has the same time once more, in which a service that has become slow shows that it is not gone. An attempt that is
 * the breaker's probe has until the deadline, since one call must find out. */
static bool gives_up(const struct step *s, const struct becalm_live *live)
{
    const struct becalm_call *call = s->call;
    const struct becalm_breaker *breaker = call->target->breaker;
    if (s->now >= call->deadline_at) {
        return true;
    }
    return call->policy->timeout_kind == BECALM_TIMEOUT_LEARNED && breaker != NULL && !becalm_breaker_closed(breaker) &&
           !live->probed && becalm_ns_since(s->now, live->sent_at) / 2 >= becalm__call_timeout(call);
}

/* FLYING: this attempt's time is over. True: no timeout was written, so that it goes on, and is looked at
 * again. */
BECALM__COLD static bool waits_on(struct step *s, uint32_t slot)
{
    struct becalm_call *call = s->call;
    struct becalm_live *live = &call->slot[slot];
    if (!becalm__call_is_unwritten(call) || live->streams || (!live->overdue && s->now >= call->deadline_at)) {
        return false;
    }
    if (!live->overdue) {
        become_overdue(s, slot);
    }
    if (s->now >= live->beside_at) {
        live->beside_at = BECALM_NEVER;
        becalm__call_beside(s);
    }
    live->timeout_at = becalm_ns_min(becalm_ns_after(s->now, OVERDUE_LOOK), call->deadline_at);
    live->timeout_at = becalm_ns_min(live->timeout_at, live->beside_at);
    return !gives_up(s, live);
}

/* FLYING: attempts whose time is over. An attempt that the deadline cuts before its own timeout proves nothing about
 * the service. */
static void time_out(struct step *s)
{
    struct becalm_call *call = s->call;
    for (uint32_t slot = 0; slot < BECALM_SLOTS && call->phase == BECALM_PHASE_FLYING; slot++) {
        const struct becalm_live *live = &call->slot[slot];
        if ((call->live & 1u << slot) == 0 || s->now < live->timeout_at) {
            continue;
        }
        if (live->unsent) {
            unsent_out(s, slot);
            continue;
        }
        if (waits_on(s, slot)) {
            continue;
        }
        s->cut = is_clipped(s, live);
        const struct becalm_outcome outcome = {.kind = s->cut ? BECALM_OUTCOME_CANCELLED : BECALM_OUTCOME_TIMED_OUT};
        slot_cancel(s, slot);
        end_any(s, slot, &outcome);
    }
}

/* FLYING: a call that has become slow counts as slow now. */
static void slow_down(struct step *s)
{
    struct becalm_call *call = s->call;
    const struct becalm_breaker_policy *policy = &call->policy->breaker;
    call->slow_at = BECALM_NEVER;
    if (call->permit.held) {
        becalm_breaker_slow(call->target->breaker, policy, s->at, &call->permit);
        becalm__call_report(s, &call->permit);
    }
    for (uint32_t slot = 0; slot < BECALM_SLOTS; slot++) {
        struct becalm_live *live = &call->slot[slot];
        if ((call->live & 1u << slot) == 0 || !live->permit.held || live->unsent) {
            continue;
        }
        becalm_ns at = becalm_ns_after(live->sent_at, policy->slow_after);
        if (s->now >= at) {
            becalm_breaker_slow(call->target->breaker, policy, s->at, &live->permit);
            becalm__call_report(s, &live->permit);
        } else {
            call->slow_at = becalm_ns_min(call->slow_at, at);
        }
    }
}

/* FLYING: the call's first attempt takes much longer than usual, but less than its written timeout. Where no timeout is
 * written, see waits_on(). Here no layer of a chain waits for another one: the deadline leaves no time for that, and in
 * a service that is overloaded or away no attempt overtakes another. */
BECALM__COLD static void overdue(struct step *s)
{
    const struct becalm_call *call = s->call;
    const struct becalm_live *live = &call->slot[BECALM__FIRST_SLOT];
    if (call->live != 1u << BECALM__FIRST_SLOT || live->unsent || live->streams) {
        return; /* its time begins anew when it is sent */
    }
    if (may_go_beside(call, live) && is_overtaken(call, live)) {
        becalm__call_beside(s);
    }
}

/* FLYING: the time for another attempt has come. */
static void another(struct step *s)
{
    struct becalm_call *call = s->call;
    call->next_at = BECALM_NEVER;
    if (becalm__call_hedges(call)) { /* more may be known of the request than when its attempt was sent */
        becalm__call_hedge(s);
    } else if (call->target->due != NULL) {
        overdue(s);
    }
}

static void timer_flying(struct step *s)
{
    struct becalm_call *call = s->call;
    if (s->now >= call->slow_at) {
        slow_down(s);
    }
    time_out(s);
    bool sent = (s->action->flags & BECALM_DO_SEND) != 0; /* one send per step: the next wake-up is due at once */
    if (call->phase == BECALM_PHASE_FLYING && !sent && s->now >= call->next_at) {
        another(s);
    }
}

BECALM__COLD static void timer(struct step *s)
{
    struct becalm_call *call = s->call;
    switch (call->phase) {
    case BECALM_PHASE_GATED:
        becalm__call_expire(s);
        break;
    case BECALM_PHASE_PACED:
        if (s->now >= call->next_at) {
            becalm__call_enter(s);
        }
        break;
    case BECALM_PHASE_PARKED:
        becalm__call_park_expire(s);
        break;
    case BECALM_PHASE_FLYING:
        timer_flying(s);
        break;
    case BECALM_PHASE_ANSWERED:
        timer_answered(s);
        break;
    case BECALM_PHASE_NEW:
    case BECALM_PHASE_OUTSIDE:
    case BECALM_PHASE_WAITING: /* see retry_or_wait */
    case BECALM_PHASE_ENDED:
        break;
    }
}

/* The caller has closed only its sending side, or is gone: the two look the same. Its call is completed, but not
 * retried. */
BECALM__COLD static void leave(struct step *s)
{
    struct becalm_call *call = s->call;
    call->left = true;
    bool parked_retry = call->phase == BECALM_PHASE_PARKED && call->record.attempts > 0;
    if (call->phase == BECALM_PHASE_WAITING || parked_retry) {
        becalm__call_finish(s, BECALM_WHY_CANCELLED);
    } else if (call->phase == BECALM_PHASE_FLYING) {
        call->next_at = BECALM_NEVER;
    }
}

static becalm_ns flying_wake_at(const struct becalm_call *call)
{
    becalm_ns at = becalm_ns_min(call->next_at, call->slow_at);
    if (call->live == 1u << BECALM__FIRST_SLOT) { /* nearly always */
        return becalm_ns_min(at, call->slot[BECALM__FIRST_SLOT].timeout_at);
    }
    for (uint32_t live = call->live; live != 0; live &= live - 1) {
        at = becalm_ns_min(at, call->slot[__builtin_ctz(live)].timeout_at);
    }
    return at;
}

static becalm_ns wake_at(const struct becalm_call *call)
{
    switch (call->phase) {
    case BECALM_PHASE_GATED:
        return becalm_ticket_leave_at(&call->ticket);
    case BECALM_PHASE_PACED:
    case BECALM_PHASE_WAITING:
        return call->next_at;
    case BECALM_PHASE_PARKED:
        return call->berth.leave_at;
    case BECALM_PHASE_FLYING:
        return flying_wake_at(call);
    case BECALM_PHASE_NEW:
    case BECALM_PHASE_OUTSIDE:
    case BECALM_PHASE_ANSWERED:
    case BECALM_PHASE_ENDED:
        return BECALM_NEVER;
    }
    BECALM_UNREACHABLE();
}

/* A retry that need not wait is sent in the same step. Returns when the driver must wake the call. */
BECALM__OUTLINE static becalm_ns retry_or_wait(struct step *s)
{
    if (s->call->phase == BECALM_PHASE_WAITING && s->now >= s->call->next_at) {
        becalm__call_resend(s);
    }
    return wake_at(s->call);
}

/* The end of a step that does not end the call. */
static inline becalm_ns go_on(struct step *s)
{
    return s->call->phase == BECALM_PHASE_FLYING ? flying_wake_at(s->call) : retry_or_wait(s);
}

static void action_clear(struct becalm_action *action)
{
    action->flags = 0;
    action->slot = 0;
    action->cancel = 0;
    action->attempt = 0;
    action->why = BECALM_WHY_NONE;
    action->mark = BECALM_MARK_NONE;
    action->breaker_from = BECALM_BREAKER_CLOSED;
    action->breaker_to = BECALM_BREAKER_CLOSED;
    action->wait = (struct becalm_wait){0, 0, 0, false};
    action->last_answer = false;
    action->host = BECALM_NO_HOST;
    action->timeout_at = BECALM_NEVER;
    action->retry_after = BECALM_NEVER;
    action->wake_at = BECALM_NEVER;
}

/* The driver has the lock of the queues. A slot or host may have come free meanwhile: the call tries once more. */
BECALM__COLD static void line_up(struct step *s)
{
    s->locked = true;
    if (s->call->parks) {
        becalm__call_park_locked(s);
    } else {
        becalm__call_enter(s);
        becalm__call_say_probe(s);
    }
}

BECALM__OUTLINE static void other_event(struct step *s, const struct becalm_event *event)
{
    struct becalm_call *call = s->call;
    switch (event->kind) {
    case BECALM_EVENT_BEGIN:
    case BECALM_EVENT_HEAD:
    case BECALM_EVENT_DONE:
        return; /* see becalm_call_step */
    case BECALM_EVENT_SERVE:
        if (call->phase == BECALM_PHASE_GATED) {
            becalm__call_served(s);
        } else if (call->phase == BECALM_PHASE_PARKED) {
            becalm__call_unpark(s);
        }
        return;
    case BECALM_EVENT_TIMER:
        timer(s);
        return;
    case BECALM_EVENT_CANCEL:
        if (call->phase != BECALM_PHASE_ENDED) {
            becalm__call_finish(s, BECALM_WHY_CANCELLED);
        }
        return;
    case BECALM_EVENT_LEFT:
        leave(s);
        return;
    case BECALM_EVENT_SENT:
        if (is_in_flight(call, event->slot)) {
            becalm__attempt_sent(s, event->slot);
        }
        return;
    case BECALM_EVENT_HELD:
        if (is_in_flight(call, event->slot) && call->phase == BECALM_PHASE_FLYING) {
            becalm__attempt_held(s, event->slot, &event->outcome);
        }
        return;
    case BECALM_EVENT_LINE_UP:
        if (call->phase == BECALM_PHASE_OUTSIDE) {
            line_up(s);
        }
        return;
    }
}

void becalm_call_step(struct becalm_call *call, const struct becalm_event *event, struct becalm_action *action)
{
    struct step s = {.call = call, .at = &event->at, .now = event->at.now, .action = action};
    action_clear(action);
    if (event->kind == BECALM_EVENT_DONE) { /* the three that every call has, ahead of the switch */
        done_event(&s, event);
    } else if (event->kind == BECALM_EVENT_BEGIN) {
        if (call->phase == BECALM_PHASE_NEW) {
            becalm__call_admit(&s);
        }
    } else if (event->kind == BECALM_EVENT_HEAD) {
        head_event(&s, event);
    } else {
        other_event(&s, event);
        late_keep(&s);
    }
    if (call->phase < BECALM_PHASE_ANSWERED) {
        action->wake_at = go_on(&s);
    }
}
