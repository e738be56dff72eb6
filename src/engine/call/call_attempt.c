/* SPDX-License-Identifier: MIT */
#include <becalm/deadline.h>
#include <becalm/pick.h>

#include "call_internal.h"
#include "engine/breaker_internal.h"
#include "engine/limit_internal.h"
#include "engine/mark_internal.h"
#include "engine/outlier_internal.h"

/* Without hedging the sketch is only used for the typical latency, so a sample of the attempts is enough. */
#define SAMPLE_ALL_BELOW 64u
#define SAMPLE_PPM       62500u

static struct becalm_record_attempt *record_of(struct becalm_call *call, uint32_t number)
{
    return &call->record.attempt[becalm_record_place(number)];
}

/* The hosts that this call has tried, as far as the record remembers. */
static uint32_t hosts_tried(struct becalm_call *call, uint32_t host[static BECALM_RECORD_MAX])
{
    uint32_t known = becalm_record_kept(&call->record);
    for (uint32_t i = 0; i < known; i++) {
        host[i] = call->record.attempt[i].host;
    }
    return known;
}

bool becalm__attempt_tried(struct becalm_call *call, uint32_t host)
{
    uint32_t tried[BECALM_RECORD_MAX];
    uint32_t known = hosts_tried(call, tried);
    for (uint32_t i = 0; i < known; i++) {
        if (tried[i] == host) {
            return true;
        }
    }
    return false;
}

uint32_t becalm__attempt_pick(struct step *s)
{
    struct becalm_call *call = s->call;
    if (call->target->hosts == NULL) {
        return BECALM_NO_HOST;
    }
    uint32_t host[BECALM_RECORD_MAX];
    struct becalm_tried tried = {.host = host, .count = hosts_tried(call, host)};
    return becalm_pick(call->target->hosts, &call->policy->outlier, s->at, &tried);
}

/* The budgets count the call as in progress from its first send to its end. */
static void budgets_begin(struct step *s)
{
    struct becalm_call *call = s->call;
    const struct becalm_target *target = call->target;
    call->begun = true;
    if (target->budget != NULL) {
        becalm_budget_begin(target->budget, &call->policy->budget, s->at);
    }
    if (target->service_budget != NULL) {
        becalm_budget_begin(target->service_budget, &call->policy->service_budget, s->at);
    }
    if (target->lease != NULL) {
        becalm_lease_begin(target->lease, s->at);
    }
}

/* When the call as a whole, or with per_attempt this attempt, will have been slow. */
static becalm_ns slow_at(const struct becalm_call *call, becalm_ns now)
{
    const struct becalm_breaker_policy *breaker = &call->policy->breaker;
    if (call->target->breaker == NULL || breaker->slow_share_ppm == BECALM_BREAKER_SLOW_OFF) {
        return BECALM_NEVER;
    }
    return becalm_ns_after(now, becalm_ns_since(breaker->slow_after, breaker->per_attempt ? 0 : call->flown));
}

static inline void record_open(struct step *s, uint32_t number, const struct becalm_live *live)
{
    struct becalm_call *call = s->call;
    *record_of(call, number) = (struct becalm_record_attempt){
        .number = number,
        .host = live->host,
        .open = true,
        .hedge = live->hedge,
        /* beside another attempt that has not ended: nothing was waited for */
        .waited = number == 0 || live->hedge || call->live != 0 ? 0 : becalm_ns_since(s->now, call->failed_at),
        .sent_at = s->now,
    };
    call->record.attempts = number + 1;
    if (live->hedge) {
        call->record.hedges++;
    }
}

/* May a retry be sent beside this attempt before its written timeout? */
static inline bool is_watched(const struct becalm_call *call, const struct becalm_live *live)
{
    return live->number == 0 && call->policy->timeout_kind == BECALM_TIMEOUT_EXACT && call->target->due != NULL &&
           !call->request.alone && call->policy->retry_overdue && !call->request.retry_from_above && !live->streams &&
           !becalm__call_hedges(call);
}

/* The attempt's time begins now. While its request still streams, only the caller's deadline ends it. */
static inline void attempt_time(struct becalm_call *call, struct becalm_live *live, becalm_ns now)
{
    becalm_ns own = becalm_deadline_clip(now, call->deadline_at, becalm__call_timeout(call));
    live->sent_at = now;
    live->timeout_at = live->streams ? call->deadline_at : becalm_ns_after(now, own);
    if (is_watched(call, live)) {
        call->next_at = becalm_ns_after(now, becalm__due_time(call->target->due, becalm__due_least(call->policy)));
    }
}

/* The first of the attempts that fly now: the call's own time in flight begins. */
static inline void flight_begin(struct becalm_call *call, becalm_ns now)
{
    call->flying_since = now;
    call->slow_at = slow_at(call, now);
}

void becalm__attempt_streams(struct becalm_call *call, uint32_t slot)
{
    struct becalm_live *live = &call->slot[slot];
    if (live->judged) {
        return;
    }
    live->streams = true;
    call->deadline_at = becalm__call_carried(call);
    live->timeout_at = call->deadline_at;
}

void becalm__attempt_sent(struct step *s, uint32_t slot)
{
    struct becalm_call *call = s->call;
    struct becalm_live *live = &call->slot[slot];
    if (!live->streams || live->judged) {
        return;
    }
    live->streams = false;
    call->deadline_at = becalm_deadline_at(s->now, call->policy->deadline, call->deadline_at);
    flight_begin(call, s->now);
    if (live->slot.held) {
        becalm_limit_sent(call->target->limit, &live->slot, s->now);
    }
    attempt_time(call, live, s->now);
}

BECALM__COLD void becalm__attempt_waits(struct becalm_call *call, uint32_t slot, becalm_ns leave_at)
{
    struct becalm_live *live = &call->slot[slot];
    if (live->judged) {
        return;
    }
    live->unsent = true;
    live->timeout_at = becalm_ns_min(leave_at, call->deadline_at);
    if (call->live == 1u << slot) {
        call->slow_at = BECALM_NEVER; /* no attempt that could be slow has it */
    }
}

BECALM__COLD void becalm__attempt_goes(struct becalm_call *call, uint32_t slot, becalm_ns now)
{
    struct becalm_live *live = &call->slot[slot];
    live->unsent = false;
    if (call->live == 1u << slot) {
        flight_begin(call, now);
    }
    if (live->slot.held) {
        becalm_limit_sent(call->target->limit, &live->slot, now);
    }
    attempt_time(call, live, now);
}

/* Does the breaker try the callee with this attempt: under its own permit, or the first one under the call's? */
static bool is_probe(const struct becalm_call *call, const struct becalm_live *live)
{
    bool of_call = live->number == 0 && !call->policy->breaker.per_attempt;
    const struct becalm_permit *permit = of_call ? &call->permit : &live->permit;
    return permit->held && permit->probe;
}

static uint32_t host_next(struct step *s, const struct becalm_live *live)
{
    const struct becalm_call *call = s->call;
    if (call->next_host != BECALM_NO_HOST) {
        return call->next_host;
    }
    if (is_probe(call, live)) {
        return becalm_pick_probe(call->target->hosts, &call->policy->outlier, s->at);
    }
    return becalm__attempt_pick(s);
}

BECALM__OUTLINE static void host_choose(struct step *s, struct becalm_live *live)
{
    live->host = host_next(s, live);
    becalm_hosts_sent(s->call->target->hosts, live->host, s->now);
}

/* Common to every attempt. Inlined with the constants of a first attempt, which is nearly every one. */
static inline void send(struct step *s, uint32_t slot, uint32_t number, bool hedge)
{
    struct becalm_call *call = s->call;
    struct becalm_live *live = &call->slot[slot];
    live->number = number;
    live->host = BECALM_NO_HOST;
    if (call->target->hosts != NULL) {
        host_choose(s, live);
    }
    live->hedge = hedge;
    live->judged = false;
    live->streams = call->request.streams;
    live->unsent = false;
    live->overdue = false;
    live->second = BECALM_SECOND_NONE;
    call->next_at = BECALM_NEVER;
    attempt_time(call, live, s->now);
    record_open(s, number, live);
    call->live |= 1u << slot;
    call->phase = BECALM_PHASE_FLYING;
    call->next_host = BECALM_NO_HOST;
    call->rate_held = false; /* used */
    if (becalm__call_hedges(call) && call->retries < call->policy->hedge.max) {
        call->next_at = becalm_ns_after(s->now, becalm_hedge_delay(&call->policy->hedge, call->target->sketch, s->now));
    }
    s->action->flags |= BECALM_DO_SEND;
    s->action->slot = slot;
    s->action->attempt = number;
    s->action->host = live->host;
    s->action->timeout_at = becalm__attempt_ends_at(call, live);
}

void becalm__attempt_send_first(struct step *s)
{
    if (!s->call->begun) { /* else it was refused, and waited for a host that is back */
        budgets_begin(s);
    }
    flight_begin(s->call, s->now);
    send(s, BECALM__FIRST_SLOT, 0, false);
}

void becalm__attempt_send_next(struct step *s, uint32_t slot, bool hedge)
{
    if (s->call->live == 0) {
        flight_begin(s->call, s->now);
    }
    send(s, slot, s->call->record.attempts, hedge);
}

/* The latency sketch takes first attempts: those that were answered or timed out, and losers of a hedge at their age.
 * Without the losers the quantile would only ever see attempts that were faster than it. */
static inline void sketch_note(struct step *s, const struct becalm_live *live, bool answered)
{
    struct becalm_sketch *sketch = s->call->target->sketch;
    if (sketch == NULL || live->number != 0 || !answered) {
        return;
    }
    if (!s->call->policy->hedge.enabled &&
        !becalm_rand_chance(becalm_rand_lane(s->at->random, BECALM_LANE_SAMPLE), SAMPLE_PPM) &&
        becalm_sketch_count(sketch, s->now) >= SAMPLE_ALL_BELOW) {
        return;
    }
    becalm_sketch_note(sketch, s->now, becalm_ns_since(s->now, live->sent_at));
}

/* Nothing of the client's was lost. */
static void loss_undo(struct step *s, struct becalm_losses *losses, enum becalm_spend_end how)
{
    if (losses != NULL && s->call->request.flow != 0 && how != BECALM_SPEND_LOST) {
        becalm_losses_give(losses, s->call->request.flow, s->now);
    }
}

BECALM__COLD static void spend_end(struct step *s, enum becalm_spend_end how)
{
    struct becalm_call *call = s->call;
    const struct becalm_target *target = call->target;
    if (call->spend.held) {
        loss_undo(s, target->losses, how);
        becalm_budget_give(target->budget, &call->policy->budget, s->at, &call->spend, how);
    }
    if (call->service_spend.held) {
        loss_undo(s, target->service_losses, how);
        becalm_budget_give(target->service_budget, &call->policy->service_budget, s->at, &call->service_spend, how);
    }
    if (call->leased && how == BECALM_SPEND_UNUSED) {
        becalm_lease_give(target->lease); /* one that was sent is a retry of all, whether it won or not */
    }
    call->leased = false;
}

void becalm__attempt_unspend(struct step *s)
{
    spend_end(s, BECALM_SPEND_UNUSED);
}

static inline void budgets_tell(struct step *s, const struct becalm_outcome *outcome, bool retried)
{
    const struct becalm_call *call = s->call;
    const struct becalm_target *target = call->target;
    if (target->budget != NULL) {
        becalm_budget_note(target->budget, &call->policy->budget, s->at, outcome, retried);
    }
    if (target->service_budget != NULL) {
        becalm_budget_note(target->service_budget, &call->policy->service_budget, s->at, outcome, retried);
    }
}

/* A failure, with the policy's word on whether it is one to retry: of other outcomes no budget asks that. */
BECALM__COLD static void budgets_tell_failure(struct step *s, const struct becalm_outcome *outcome, bool retried)
{
    struct becalm_outcome told = *outcome;
    told.listed = becalm__call_lists(s->call, outcome) ? BECALM_LISTED_YES : BECALM_LISTED_NO;
    budgets_tell(s, &told, retried);
}

/* Is this the loser, where several were in flight? */
static inline bool is_lost(const struct becalm_call *call, enum becalm_outcome_kind kind)
{
    return kind == BECALM_OUTCOME_CANCELLED && call->phase == BECALM_PHASE_ANSWERED;
}

/* How the spend of a retry ends that brought no answer. One that was sent is a retry of all, also where it was beaten:
 * budgets that bound retries by what was sent must count it. */
BECALM__COLD static enum becalm_spend_end spend_lost(const struct becalm_call *call, const struct becalm_live *live,
                                                     enum becalm_outcome_kind kind)
{
    if (kind == BECALM_OUTCOME_CANCELLED && live->unsent) {
        return BECALM_SPEND_UNUSED;
    }
    return is_lost(call, kind) ? BECALM_SPEND_BEATEN : BECALM_SPEND_LOST;
}

static BECALM__INLINE void budgets_note(struct step *s, const struct becalm_live *live,
                                        const struct becalm_outcome *outcome, bool earns)
{
    bool retried = live->number > 0;
    if (earns) {
        budgets_tell(s, outcome, retried);
    } else {
        budgets_tell_failure(s, outcome, retried);
    }
    if (retried && !live->hedge) {
        spend_end(s, earns ? BECALM_SPEND_WON : spend_lost(s->call, live, outcome->kind));
    }
}

BECALM__OUTLINE static void hedge_note(struct step *s, const struct becalm_live *live)
{
    struct becalm_call *call = s->call;
    struct becalm_hedge *hedge = call->target->hedge;
    becalm_hedge_earn(hedge, &call->policy->hedge);
    if (live->hedge) {
        bool alone = (call->live & (call->live - 1)) == 0;
        becalm_hedge_won(hedge, &call->policy->hedge, alone);
    }
}

static void record_close(struct step *s, const struct becalm_live *live, const struct becalm_outcome *outcome)
{
    struct becalm_record_attempt *entry = record_of(s->call, live->number);
    entry->open = false;
    entry->outcome = outcome->kind;
    entry->status = outcome->status;
    entry->took = becalm_ns_since(s->now, live->sent_at);
}

/* Breaker per attempt: told at the head, as a whole call is. */
BECALM__OUTLINE static void permit_note(struct step *s, struct becalm_live *live, const struct becalm_outcome *outcome)
{
    bool unasked = becalm_mark_unasked(outcome->mark);
    enum becalm_verdict verdict = becalm__permit_verdict(outcome->kind, unasked);
    becalm_ns took = becalm_ns_since(s->now, live->sent_at);
    becalm_breaker_note(s->call->target->breaker, &s->call->policy->breaker, s->at, &live->permit, verdict, took);
    becalm__call_report(s, &live->permit);
}

#define IN_TIME_MOST (30 * BECALM_S) /* where there is no deadline */

/* Was it wrong to take this overdue attempt, which has succeeded, for a sign of overload? No timeout is written, so its
 * caller would wait until the deadline: an answer in the first half of that time comes soon enough, however quick
 * answers usually are. A queue that keeps growing makes later answers. A later one is in time only if nothing quicker
 * has been learned, before the send or since: then the overdue time was a guess. */
static bool is_in_time(const struct becalm_call *call, const struct becalm_live *live, becalm_ns now)
{
    becalm_ns took = becalm_ns_since(now, live->sent_at);
    bool early = took <= (call->deadline_at == BECALM_NEVER ? IN_TIME_MOST : becalm_ns_left(now, call->deadline_at));
    becalm_ns part = call->policy->limit.kind == BECALM_LIMIT_SLOTS ? BECALM__SLOTS_DUE : 1;
    bool guessed = live->slot.timeout / part >= BECALM_DUE_START && becalm__call_timeout(call) >= BECALM_DUE_START;
    return live->overdue && (early || guessed);
}

BECALM__COLD void becalm__permit_late(struct step *s, struct becalm_permit *ended, becalm_ns took)
{
    struct becalm_breaker *breaker = s->call->target->breaker;
    uint64_t word = becalm__breaker_word(breaker);
    enum becalm_breaker_state state = becalm__breaker_word_state(word);
    ended->overdue = false; /* once */
    if (state != BECALM_BREAKER_CLOSED && state != BECALM_BREAKER_METRICS_ONLY) {
        return;
    }
    /* Given by hand: another thread may open the breaker meanwhile, and this result must not take one of its probes. */
    struct becalm_permit permit = {.from = state, .to = state};
    (void)becalm__permit_give(&permit, word, BECALM_NEVER);
    becalm_breaker_note(breaker, &s->call->policy->breaker, s->at, &permit, BECALM_VERDICT_OK, took);
    becalm__call_report(s, &permit);
}

/* Limit and breaker were told that this attempt timed out, and now it has succeeded. The limit hears of it only if
 * the answer came in time. */
BECALM__COLD static void late_tell(struct step *s, struct becalm_live *live)
{
    if (live->overdue && live->permit.overdue) {
        becalm__permit_late(s, &live->permit, becalm_ns_since(s->now, live->sent_at));
    }
    struct becalm_limit *limit = s->call->target->limit;
    if (limit != NULL && is_in_time(s->call, live, s->now)) {
        becalm__limit_late(limit, &s->call->policy->limit, s->now, &live->slot);
        becalm__call_line_serve(s); /* the limit may be wider, and no slot comes free that would tell */
    }
}

/* Once per attempt: of a second note the limit takes no notice. */
static BECALM__INLINE void limit_tell(struct step *s, struct becalm_live *live, const struct becalm_outcome *outcome,
                                      enum becalm_evidence evidence)
{
    struct becalm_limit *limit = s->call->target->limit;
    if (live->slot.held) {
        becalm__limit_note(limit, &s->call->policy->limit, s->at, &live->slot, evidence);
        if (becalm_mark_unasked(outcome->mark)) {
            becalm_limit_turned_away(limit);
        }
    } else if (evidence == BECALM_EVIDENCE_SUCCESS) {
        late_tell(s, live);
    }
}

void becalm__attempt_held(struct step *s, uint32_t slot, const struct becalm_outcome *outcome)
{
    struct becalm_live *live = &s->call->slot[slot];
    limit_tell(s, live, outcome, becalm_outcome_traits(outcome->kind)->evidence);
    becalm__call_place_answer(s, &live->slot);
    if (!becalm__call_hedges(s->call)) { /* whether a retry follows this answer, and when, is decided at its head */
        live->second = BECALM_SECOND_NEVER;
        live->beside_at = BECALM_NEVER;
        s->call->next_at = BECALM_NEVER;
    }
}

BECALM__COLD void becalm__attempt_overdue(struct step *s, uint32_t slot)
{
    static const struct becalm_outcome late = {.kind = BECALM_OUTCOME_TIMED_OUT};
    struct becalm_call *call = s->call;
    struct becalm_live *live = &call->slot[slot];
    live->overdue = true;
    live->permit.overdue = live->permit.held && !live->probed;
    limit_tell(s, live, &late, BECALM_EVIDENCE_OVERDUE);
    becalm__call_place_free(s, &live->slot);
    if (live->probed) {
        return; /* how long a probe may be silent is the breaker's to say, and its answer counts whenever it comes */
    }
    if (live->permit.held) {
        permit_note(s, live, &late);
    }
    if (call->permit.held && live->number == 0) {
        becalm_breaker_note(call->target->breaker, &call->policy->breaker, s->at, &call->permit,
                            becalm_outcome_traits(late.kind)->verdict, becalm_ns_since(s->now, live->sent_at));
        call->permit.overdue = true;
        becalm__call_report(s, &call->permit);
    }
}

/* A caller that gives up after its request was sent is evidence by the time that it waited; the loser of a hedge, an
 * upload that is cut and an attempt that was never sent are none. */
static inline enum becalm_evidence evidence_of(const struct becalm_call *call, const struct becalm_live *live,
                                               enum becalm_outcome_kind kind)
{
    if (kind == BECALM_OUTCOME_CANCELLED && !is_lost(call, kind) && !live->streams && !live->unsent) {
        return BECALM_EVIDENCE_GIVEN_UP;
    }
    return becalm_outcome_traits(kind)->evidence;
}

/* `kind` is the outcome's, beside it because this is inlined where it is known, too. */
static BECALM__INLINE void judge(struct step *s, struct becalm_live *live, const struct becalm_outcome *outcome,
                                 enum becalm_outcome_kind kind)
{
    struct becalm_call *call = s->call;
    const struct becalm_target *target = call->target;
    const struct becalm_outcome_traits *traits = becalm_outcome_traits(kind);
    BECALM_ASSERT(!live->judged);
    live->judged = true;
    limit_tell(s, live, outcome, evidence_of(call, live, kind));
    if (traits->acceptance != BECALM_ACCEPTANCE_NONE) {
        becalm__call_decided(call);
    }
    if (target->throttle != NULL && traits->acceptance == BECALM_ACCEPTANCE_YES && !call->accepted) {
        call->accepted = true;
        becalm_throttle_note(target->throttle, s->at, outcome);
    }
    if (target->rate != NULL) {
        becalm_rate_note(target->rate, s->now, outcome);
    }
    if (target->mark != NULL && !becalm__mark_rests(target->mark, traits->verdict)) {
        becalm_mark_note(target->mark, outcome);
    }
    budgets_note(s, live, outcome, traits->earns);
    bool answered = traits->evidence != BECALM_EVIDENCE_NONE || (is_lost(call, kind) && !live->unsent);
    sketch_note(s, live, answered && (kind == BECALM_OUTCOME_OK || !outcome->impatient));
    if (target->due != NULL && kind == BECALM_OUTCOME_OK && live->number == 0) {
        becalm__due_note(target->due, s->at, becalm__due_least(call->policy), becalm_ns_since(s->now, live->sent_at));
    }
    if (target->hedge != NULL && traits->earns) {
        hedge_note(s, live);
    }
    if (live->permit.held) {
        permit_note(s, live, outcome);
    }
    record_close(s, live, outcome);
    if (target->hosts != NULL) {
        live->outcome = *outcome;
    }
    call->failed_at = s->now;
    if (call->phase != BECALM_PHASE_ANSWERED) {
        call->last = kind; /* the loser of a hedge does not change how the call went */
        call->unasked = !traits->earns && becalm_mark_unasked(outcome->mark);
    }
    call->answered |= outcome->status != 0;
}

BECALM__OUTLINE static void judge_any(struct step *s, struct becalm_live *live, const struct becalm_outcome *outcome)
{
    judge(s, live, outcome, outcome->kind);
}

/* Was its caller less patient than the target's answers usually need? Then it had to end so, and says nothing. */
static bool is_hasty(struct step *s, const struct becalm_live *live)
{
    struct becalm_sketch *sketch = s->call->target->sketch;
    return sketch != NULL && becalm_ns_since(s->now, live->sent_at) < becalm_sketch_typical(sketch, s->now);
}

/* An attempt that its caller cut short counts as one that was given up; the record says how it ended. */
BECALM__COLD static void judge_impatient(struct step *s, struct becalm_live *live, const struct becalm_outcome *outcome)
{
    static const struct becalm_outcome given_up = {.kind = BECALM_OUTCOME_CANCELLED};
    bool hasty = is_hasty(s, live);
    judge_any(s, live, hasty ? &given_up : outcome);
    record_close(s, live, outcome);
}

void becalm__attempt_judge(struct step *s, struct becalm_live *live, const struct becalm_outcome *outcome)
{
    if (outcome->kind == BECALM_OUTCOME_OK) {
        judge(s, live, outcome, BECALM_OUTCOME_OK); /* nearly every attempt */
    } else if (outcome->impatient) {
        judge_impatient(s, live, outcome);
    } else {
        judge_any(s, live, outcome);
    }
}

BECALM__COLD void becalm__attempt_judge_late(struct step *s, uint32_t slot, const struct becalm_outcome *outcome)
{
    struct becalm_call *call = s->call;
    struct becalm_live *live = &call->slot[slot];
    becalm_ns since = becalm_ns_since(s->now, live->headed_at); /* the body's, which may take as long as it likes */
    live->sent_at = becalm_ns_after(live->sent_at, since);
    live->slot.sent_at = becalm_ns_after(live->slot.sent_at, since);
    becalm__attempt_judge(s, live, outcome);
    call->last = outcome->kind;
    call->unasked = !becalm_outcome_traits(outcome->kind)->earns && becalm_mark_unasked(outcome->mark);
}

void becalm__attempt_host_note(struct step *s, const struct becalm_live *live, const struct becalm_outcome *outcome)
{
    struct becalm_call *call = s->call;
    const struct becalm_record_attempt *record = record_of(call, live->number); /* of a later attempt beyond its room */
    bool slow = record->number == live->number && becalm__is_slow(record->took, becalm__call_timeout(call));
    /* A good head whose body was cut is a failure of the host. If the caller went away, the attempt is still a success.
     */
    bool cut = becalm_outcome_traits(live->outcome.kind)->earns && outcome->kind != BECALM_OUTCOME_CANCELLED &&
               !becalm_outcome_traits(outcome->kind)->earns;
    struct becalm__result result = {
        .outcome = cut ? outcome : &live->outcome,
        .took = becalm_ns_since(s->now, live->sent_at),
        .slow = slow,
    };
    becalm__hosts_note(call->target->hosts, &call->policy->outlier, s->at, live->host, &result);
}

BECALM__COLD void becalm__attempt_moved(struct becalm_call *call, uint32_t slot, uint32_t host, becalm_ns now)
{
    static const struct becalm_outcome nothing = {.kind = BECALM_OUTCOME_CANCELLED};
    struct becalm_live *live = &call->slot[slot];
    struct becalm_record_attempt *record = record_of(call, live->number);
    becalm_hosts_note(call->target->hosts, &call->policy->outlier, &(struct becalm_moment){.now = now}, live->host,
                      &nothing);
    becalm_hosts_sent(call->target->hosts, host, now);
    live->host = host;
    if (record->number == live->number) {
        record->host = host;
    }
}

BECALM__COLD void becalm__attempt_unsend(struct step *s, uint32_t slot)
{
    static const struct becalm_outcome nothing = {.kind = BECALM_OUTCOME_CANCELLED};
    struct becalm_call *call = s->call;
    const struct becalm_target *target = call->target;
    struct becalm_live *live = &call->slot[slot];
    BECALM_ASSERT(!live->judged);
    live->judged = true;
    live->outcome = nothing;
    if (live->permit.held) {
        becalm_breaker_note(target->breaker, &call->policy->breaker, s->at, &live->permit, BECALM_VERDICT_NEUTRAL, 0);
        becalm__call_report(s, &live->permit);
    }
    if (call->permit.held && live->number == 0) { /* a retry's call has a result already */
        becalm_breaker_note(target->breaker, &call->policy->breaker, s->at, &call->permit, BECALM_VERDICT_NEUTRAL, 0);
        becalm__call_report(s, &call->permit);
    }
    becalm__attempt_release(s, slot, &nothing);
    call->rate_held = target->rate != NULL;
    call->record.attempts = live->number; /* the next attempt has its number */
    call->record.hedges -= live->hedge;
}

/* Took this attempt so long that another one was sent beside it, and did that one bring the answer? Then its host is
 * told of a timeout, as it would have been without the other one. Otherwise a host that swallows its requests would
 * never be ejected, since each of them is cancelled, and a readmission probe would end the ejection of such a host.
 * Limit and breaker learn nothing of it: they judge by the timeout, which this attempt has not reached, or have heard
 * that it was overdue. Unlike a host they see the whole target, where at most one attempt in nine gets a second one
 * (see becalm_due_is_rare()), so that no share of failures that matters to them is hidden. */
static bool is_beaten(const struct becalm_call *call, uint32_t slot)
{
    const struct becalm_live *live = &call->slot[slot];
    return live->second == BECALM_SECOND_SENT && call->phase == BECALM_PHASE_ANSWERED && slot != call->answer &&
           !live->unsent && !live->streams;
}

BECALM__COLD void becalm__attempt_abandon(struct step *s, uint32_t slots)
{
    struct becalm_call *call = s->call;
    static const struct becalm_outcome cancelled = {.kind = BECALM_OUTCOME_CANCELLED};
    static const struct becalm_outcome timed_out = {.kind = BECALM_OUTCOME_TIMED_OUT};
    for (uint32_t slot = 0; slot < BECALM_SLOTS; slot++) {
        uint32_t bit = 1u << slot;
        if ((slots & bit) == 0) {
            continue;
        }
        if (!call->slot[slot].judged && call->late && slot == call->answer) {
            becalm__attempt_judge_late(s, slot, &cancelled);
        } else if (!call->slot[slot].judged) {
            becalm__attempt_judge(s, &call->slot[slot], &cancelled);
        }
        if (is_beaten(call, slot)) {
            call->slot[slot].outcome = timed_out;
        }
        becalm__attempt_release(s, slot, &cancelled);
        s->action->flags |= BECALM_DO_CANCEL;
        s->action->cancel |= bit;
    }
}
