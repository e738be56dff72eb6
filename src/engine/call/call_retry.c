/* SPDX-License-Identifier: MIT */
#include <becalm/deadline.h>

#include "call_internal.h"

/* May this kind of failure be retried at all? OK: yes. Looks at the outcome and the request, at nothing shared. */
static enum becalm_reason outcome_allows(const struct becalm_call *call, const struct becalm_outcome *outcome)
{
    const struct becalm_outcome_traits *traits = becalm_outcome_traits(outcome->kind);
    if (outcome->delivered) {
        return BECALM_WHY_ANSWER_DELIVERED;
    }
    if (traits->retry == BECALM_RETRY_NEVER) {
        return BECALM_WHY_PERMANENT;
    }
    if (outcome->stop) {
        return BECALM_WHY_STOPPED;
    }
    return becalm__call_lists(call, outcome) ? BECALM_WHY_OK : BECALM_WHY_NOT_LISTED;
}

/* Is doing it again safe, and possible? */
static enum becalm_reason request_allows(const struct becalm_call *call, const struct becalm_outcome *outcome)
{
    enum becalm_retry_rule rule = becalm_outcome_traits(outcome->kind)->retry;
    if (rule == BECALM_RETRY_ANY) {
        return BECALM_WHY_OK; /* never sent: nothing was executed and no byte of the body is gone */
    }
    bool named = rule == BECALM_RETRY_WITH_KEY ? call->request.keyed : becalm__call_repeatable(call);
    if (call->request.once || (!outcome->safe && !named)) {
        return BECALM_WHY_NOT_IDEMPOTENT;
    }
    if (call->request.not_replayable) {
        return BECALM_WHY_NOT_REPLAYABLE;
    }
    if (rule == BECALM_RETRY_ONCE && call->retried_once && !outcome->safe) {
        return BECALM_WHY_ATTEMPTS_SPENT;
    }
    return BECALM_WHY_OK;
}

static bool policy_per_attempt(const struct becalm_call *call)
{
    return call->policy->breaker.per_attempt;
}

/* A retry needs a breaker that is closed: when the open time is over it is first attempts that probe, so many and no
 * more. Where each attempt has a permit of its own, it may itself be a probe. */
static bool breaker_allows_retry(struct step *s)
{
    struct becalm_call *call = s->call;
    const struct becalm_breaker *breaker = call->target->breaker;
    if (breaker == NULL || becalm_breaker_closed(breaker) ||
        (policy_per_attempt(call) && becalm_breaker_peek(breaker, s->now))) {
        return true;
    }
    call->retry_after = becalm_ns_left(s->now, becalm_breaker_retest_at(breaker));
    becalm__call_explain(s, 0, call->retry_after);
    return false;
}

/* The checks of the target and the call's state. */
static enum becalm_reason state_allows(struct step *s, uint32_t slot, const struct becalm_outcome *outcome)
{
    struct becalm_call *call = s->call;
    becalm_ns took = becalm_ns_since(s->now, call->slot[slot].sent_at);
    const struct becalm_target *target = call->target;
    if (call->left) {
        return BECALM_WHY_CANCELLED;
    }
    if (target->mark != NULL && becalm_mark_honour(target->mark, outcome->mark)) {
        return BECALM_WHY_STOPPED;
    }
    if (call->policy->max_retries == 0) {
        return BECALM_WHY_RETRIES_OFF;
    }
    if (call->retries >= call->policy->max_retries) {
        becalm__call_explain(s, call->record.attempts, call->policy->max_retries + 1);
        return BECALM_WHY_ATTEMPTS_SPENT;
    }
    const struct becalm_permit *permit = policy_per_attempt(call) ? &call->slot[slot].permit : &call->permit;
    if (permit->held && permit->probe) {
        return BECALM_WHY_PROBE_FAILED;
    }
    if (!breaker_allows_retry(s)) {
        return BECALM_WHY_BREAKER_OPEN;
    }
    becalm_ns left = becalm_ns_left(s->now, call->deadline_at);
    if (becalm_outcome_traits(outcome->kind)->retry == BECALM_RETRY_IF_TIME && left < took) {
        becalm__call_explain(s, left, took);
        return BECALM_WHY_DEADLINE;
    }
    return BECALM_WHY_OK;
}

/* How long an attempt usually takes; 0 if that is unknown. */
static becalm_ns typical_attempt(struct step *s)
{
    struct becalm_sketch *sketch = s->call->target->sketch;
    return sketch == NULL ? 0 : becalm_sketch_typical(sketch, s->now);
}

/* The deadline that a wait has to fit into. The policy's deadline of a request that still streams has not begun: a wait
 * fits if it would do so in case the request ended now. Otherwise a server's hint of a year would hold such a call. */
static becalm_ns wait_deadline(const struct step *s)
{
    return becalm_deadline_at(s->now, s->call->policy->deadline, s->call->deadline_at);
}

/* Is there time for a wait, and for a typical attempt after it? An attempt whose request still streams may take longer
 * than the policy's deadline, so only the wait has to fit into that. */
static bool wait_fits(const struct step *s, becalm_ns wait, becalm_ns typical)
{
    return becalm_deadline_fits(s->now, s->call->deadline_at, wait, typical) &&
           becalm_deadline_fits(s->now, wait_deadline(s), wait, 0);
}

static void wait_explain(struct step *s, becalm_ns wait, becalm_ns typical)
{
    becalm_ns deadline_at = s->call->deadline_at;
    if (becalm_deadline_fits(s->now, deadline_at, wait, typical)) {
        deadline_at = wait_deadline(s);
        typical = 0;
    }
    becalm__call_explain(s, becalm_ns_left(s->now, deadline_at), becalm_ns_after(wait, typical));
}

/* The wait that the next host asked of all callers, spread as a hint to this call is. At most half of the time that is
 * left: it was said to another call, and must not end this one. */
static void wait_for_host(struct step *s, struct becalm_wait *wait)
{
    const struct becalm_call *call = s->call;
    becalm_ns asked = becalm_hosts_hint(call->target->hosts, call->next_host, s->now);
    becalm_ns left = becalm_ns_left(s->now, wait_deadline(s));
    uint64_t random = becalm_rand_lane(s->at->random, BECALM_LANE_HINT);
    becalm_ns spread = becalm_ns_after(asked, becalm_rand_below(random, asked / 2));
    spread = left == BECALM_NEVER ? spread : becalm_ns_min(spread, left / 2);
    if (spread > wait->wait) {
        wait->wait = spread;
        wait->hinted = true;
    }
}

/* Nothing was sent, and there is a host that this call has not tried, that is not ejected and has sent no Retry-After:
 * backoff would protect no host. An ejected host does not count, not even while ejections are ignored. */
static bool leaves_at_once(struct step *s, const struct becalm_outcome *outcome)
{
    struct becalm_call *call = s->call;
    const struct becalm_hosts *hosts = call->target->hosts;
    return outcome->kind == BECALM_OUTCOME_REFUSED && !outcome->has_hint && hosts != NULL &&
           call->next_host != BECALM_NO_HOST && !becalm__attempt_tried(call, call->next_host) &&
           !becalm_host_ejected(hosts, call->next_host, s->now) && !becalm_host_fails_checks(hosts, call->next_host) &&
           becalm_hosts_hint(hosts, call->next_host, s->now) == 0;
}

/* The longest of backoff, the server's hint to this call, and the wait that its host asked of all callers. */
static void wait_back_off(struct step *s, const struct becalm_outcome *outcome, struct becalm_wait *wait)
{
    const struct becalm_call *call = s->call;
    becalm_backoff_wait(&call->policy->backoff,
                        &(struct becalm_backoff_draw){
                            .n = call->retries + 1,
                            .previous = call->last_wait,
                            .hint = outcome->has_hint ? outcome->hint : BECALM_NEVER,
                            .random = s->at->random,
                        },
                        wait);
    if (call->target->hosts != NULL) {
        wait_for_host(s, wait);
    }
}

/* How long the retry waits, and where it goes. The client-side rate limit is kept in any case. */
static void wait_draw(struct step *s, const struct becalm_outcome *outcome, struct becalm_wait *wait)
{
    struct becalm_call *call = s->call;
    call->next_host = becalm__attempt_pick(s);
    if (leaves_at_once(s, outcome)) {
        *wait = (struct becalm_wait){0, 0, 0, false};
    } else {
        wait_back_off(s, outcome, wait);
    }
    if (call->target->rate != NULL) {
        wait->wait = becalm_ns_max(wait->wait, becalm_rate_peek(call->target->rate, s->now));
    }
}

/* A backoff that does not fit into the time left is shortened, if there is time for 1.25 times a typical answer after
 * it: a call with 100 ms must not lose its retry to a backoff of up to 100 ms. The shortened wait is jittered as the
 * wait was. A wait that a server or the rate asked for is never shortened. Nor is any wait while the typical time is
 * unknown, because then it is unknown which wait fits. */
static void wait_fit(struct step *s, struct becalm_wait *wait, becalm_ns typical)
{
    const struct becalm_call *call = s->call;
    becalm_ns left = becalm_ns_left(s->now, wait_deadline(s));
    becalm_ns need = becalm_ns_after(typical, typical / 4);
    bool asked = wait->hinted || (call->target->rate != NULL && becalm_rate_peek(call->target->rate, s->now) > 0);
    if (typical > 0 && left > need && !asked) {
        wait->wait %= left - need;
    }
}

/* A budget of a call, with its policy, spend and losses. */
struct level {
    struct becalm_budget *budget;
    const struct becalm_budget_policy *policy;
    struct becalm_losses *losses;
    struct becalm_spend *spend;
};

/* One level. The client's share of it is asked first, if the client is known. */
static bool budget_take(struct step *s, const struct level *level, enum becalm_outcome_kind cause)
{
    uint64_t flow = s->call->request.flow;
    struct becalm_losses *losses = flow == 0 ? NULL : level->losses;
    uint64_t left = becalm_budget_left(level->budget, level->policy, s->now);
    uint64_t price = becalm_budget_price(level->policy, cause);
    becalm__call_explain(s, left, price);
    if (losses != NULL && !becalm_losses_admit(losses, flow, s->now, left,
                                               becalm_budget_cap(level->budget, level->policy, s->now), price)) {
        return false;
    }
    if (!becalm_budget_take(level->budget, level->policy, s->at, cause, level->spend)) {
        return false;
    }
    becalm__call_explain(s, 0, 0);
    if (losses != NULL) {
        becalm_losses_take(losses, flow, s->now);
    }
    return true;
}

/* Pays from both levels, and from the shared budget; or from none of them. */
static bool budgets_take(struct step *s, enum becalm_outcome_kind cause)
{
    struct becalm_call *call = s->call;
    const struct becalm_target *target = call->target;
    const struct becalm_policy *policy = call->policy;
    if (target->budget != NULL &&
        !budget_take(s, &(struct level){target->budget, &policy->budget, target->losses, &call->spend}, cause)) {
        return false;
    }
    const struct level service = {target->service_budget, &policy->service_budget, target->service_losses,
                                  &call->service_spend};
    if (target->service_budget != NULL && !budget_take(s, &service, cause)) {
        uint64_t have = call->record.have;
        uint64_t need = call->record.need;
        becalm__attempt_unspend(s);
        becalm__call_explain(s, have, need);
        return false;
    }
    if (target->lease != NULL) {
        call->leased = becalm_lease_take(target->lease, s->at);
        if (!call->leased) {
            becalm__call_explain(s, 0, BECALM_TOKEN);
            becalm__attempt_unspend(s);
            return false;
        }
    }
    return true;
}

/* Everything was allowed and paid: wait. */
static void wait_begin(struct step *s, const struct becalm_outcome *outcome, const struct becalm_wait *wait)
{
    struct becalm_call *call = s->call;
    if (call->target->rate != NULL) {
        (void)becalm_rate_take(call->target->rate, s->now); /* the wait for it is in wait->wait already */
        call->rate_held = true;
    }
    call->retries++;
    call->retried_once |= becalm_outcome_traits(outcome->kind)->retry == BECALM_RETRY_ONCE;
    call->last_wait = wait->jittered;
    call->next_at = becalm_ns_after(s->now, wait->wait);
    call->phase = BECALM_PHASE_WAITING;
    s->action->wait = *wait;
    s->action->why = wait->hinted ? BECALM_WHY_HINT : BECALM_WHY_BACKOFF;
}

static enum becalm_reason retry_decide(struct step *s, uint32_t slot, const struct becalm_outcome *outcome)
{
    struct becalm_call *call = s->call;
    enum becalm_reason why = outcome_allows(call, outcome);
    if (why == BECALM_WHY_OK) {
        why = request_allows(call, outcome);
    }
    if (why == BECALM_WHY_OK) {
        why = state_allows(s, slot, outcome);
    }
    if (why != BECALM_WHY_OK) {
        return why;
    }
    struct becalm_wait wait;
    wait_draw(s, outcome, &wait);
    becalm_ns typical = typical_attempt(s);
    if (!wait_fits(s, wait.wait, typical)) {
        wait_fit(s, &wait, typical);
    }
    if (!wait_fits(s, wait.wait, typical)) {
        call->retry_after = wait.hinted ? wait.wait : BECALM_NEVER;
        wait_explain(s, wait.wait, typical);
        return BECALM_WHY_DEADLINE;
    }
    if (!budgets_take(s, outcome->kind)) {
        call->retry_after = wait.wait; /* a caller that tries again at once would only bring first attempts instead */
        return BECALM_WHY_BUDGET_EMPTY;
    }
    if (call->policy->shadow) {
        becalm__attempt_unspend(s);
        return BECALM_WHY_BACKOFF;
    }
    wait_begin(s, outcome, &wait);
    return BECALM_WHY_OK;
}

/* May one more hedge be sent, and is it paid? OK: yes, and *slot is held. */
static enum becalm_reason hedge_take(struct step *s, struct becalm_slot *slot)
{
    struct becalm_call *call = s->call;
    const struct becalm_target *target = call->target;
    const struct becalm_policy *policy = call->policy;
    if (call->left) {
        return BECALM_WHY_CANCELLED;
    }
    if (call->retries >= policy->hedge.max) {
        becalm__call_explain(s, call->record.attempts, policy->hedge.max + 1);
        return BECALM_WHY_ATTEMPTS_SPENT;
    }
    if (!becalm_deadline_fits(s->now, call->deadline_at, 0, typical_attempt(s))) {
        return BECALM_WHY_DEADLINE;
    }
    if (target->breaker != NULL && !becalm_breaker_closed(target->breaker)) {
        return BECALM_WHY_BREAKER_OPEN; /* half open too: a hedge is never a probe */
    }
    if (target->rate != NULL && becalm_rate_peek(target->rate, s->now) > 0) {
        return BECALM_WHY_RATE; /* a hedge that has to wait is not worth waiting for */
    }
    bool crowded = target->limit != NULL && (uint64_t)becalm_limit_in_flight(target->limit) * 5 >
                                                (uint64_t)becalm_limit_now(target->limit, &policy->limit) * 4;
    if (!becalm_hedge_take(target->hedge, crowded, false)) {
        return crowded ? BECALM_WHY_LIMIT : BECALM_WHY_BUDGET_EMPTY;
    }
    if (!becalm__call_place_take(s, slot)) {
        becalm_hedge_give(target->hedge, &policy->hedge);
        enum becalm_reason why = becalm__call_place_why(s);
        becalm__call_explain(s, 0, 0); /* a hedge is not worth its numbers: the attempts in flight go on */
        return why;
    }
    if (target->rate != NULL) {
        (void)becalm_rate_take(target->rate, s->now);
    }
    return BECALM_WHY_OK;
}

/* Sends one more attempt beside or after the attempts so far. OK: the hedge is sent. */
static enum becalm_reason hedge_send(struct step *s)
{
    struct becalm_call *call = s->call;
    if ((s->action->flags & BECALM_DO_SEND) != 0) {
        return BECALM_WHY_HEDGE; /* two attempts failed in one step, and the first has sent its successor already */
    }
    struct becalm_slot place = {.held = false};
    enum becalm_reason why = hedge_take(s, &place);
    if (why != BECALM_WHY_OK) {
        return why;
    }
    uint32_t slot = becalm__attempt_slot(call); /* there is one: of the allowed attempts this was not the last */
    struct becalm_live *live = becalm__attempt_ready(call, slot);
    live->slot = place;
    if (call->policy->breaker.per_attempt && call->target->breaker != NULL) {
        bool admitted = becalm_breaker_admit(call->target->breaker, &call->policy->breaker, s->at, &live->permit);
        becalm__call_report(s, &live->permit);
        if (!admitted) { /* the breaker was closed a moment ago; another thread has opened it */
            becalm__call_place_free(s, &live->slot);
            becalm_hedge_give(call->target->hedge, &call->policy->hedge);
            return BECALM_WHY_BREAKER_OPEN;
        }
    }
    call->retries++;
    becalm__attempt_send_next(s, slot, true);
    s->action->why = BECALM_WHY_HEDGE;
    return BECALM_WHY_OK;
}

void becalm__call_hedge(struct step *s)
{
    if (!becalm__call_down(s)) {
        (void)hedge_send(s); /* refused: the attempts in flight go on, and nothing is lost */
    }
}

/* A hedged call lost an attempt: a failure that is not fatal sends the next hedge at once, or waits for the attempts in
 * flight. */
static bool hedge_goes_on(struct step *s, uint32_t slot, const struct becalm_outcome *outcome, enum becalm_reason *why)
{
    struct becalm_call *call = s->call;
    bool others = (call->live & ~(1u << slot)) != 0;
    /* Hedges exist for attempts that hang until their timeout: a timeout never ends the other attempts of its call. */
    bool fatal = outcome->kind != BECALM_OUTCOME_TIMED_OUT &&
                 (call->policy->hedge.non_fatal & BECALM_OUTCOME_BIT(outcome->kind)) == 0;
    if (outcome->delivered || fatal) {
        *why = outcome->delivered ? BECALM_WHY_ANSWER_DELIVERED : BECALM_WHY_NOT_LISTED;
        return false;
    }
    if (outcome->stop || (call->target->mark != NULL && becalm_mark_honour(call->target->mark, outcome->mark))) {
        *why = BECALM_WHY_STOPPED;
        call->next_at = BECALM_NEVER;
        return others;
    }
    if (outcome->has_hint) { /* asked to wait: a hedge that waits is none, so the caller is told instead */
        *why = BECALM_WHY_STOPPED;
        call->next_at = BECALM_NEVER;
        call->retry_after = outcome->hint;
        return others;
    }
    if (others && becalm__call_down(s)) {
        return true; /* no host would take a hedge; without others it is sent, refused, and parked */
    }
    *why = hedge_send(s);
    return *why == BECALM_WHY_OK || others;
}

bool becalm__call_retry(struct step *s, uint32_t slot, const struct becalm_outcome *outcome, enum becalm_reason *why)
{
    becalm__call_explain(s, 0, 0); /* an earlier refusal is not the reason now */
    if (outcome->kind == BECALM_OUTCOME_CANCELLED) {
        *why = s->cut ? BECALM_WHY_DEADLINE : BECALM_WHY_CANCELLED; /* no caller waits for a retry any more */
        return false;
    }
    if (becalm__call_hedges(s->call)) {
        return hedge_goes_on(s, slot, outcome, why);
    }
    if ((s->call->live & ~(1u << slot)) != 0) {
        return true; /* another one was sent beside it, and may still answer */
    }
    *why = retry_decide(s, slot, outcome);
    if (*why != BECALM_WHY_OK && becalm__call_shadowed(s, *why)) {
        *why = BECALM_WHY_RETRIES_OFF; /* a policy that only watches never retries, though it would have allowed it */
    }
    return *why == BECALM_WHY_OK;
}

/* The wait is over, but the state may have changed meanwhile. OK: the attempt holds its slot and permit, send. */
static enum becalm_reason resend_allowed(struct step *s, struct becalm_live *live)
{
    struct becalm_call *call = s->call;
    const struct becalm_target *target = call->target;
    const struct becalm_policy *policy = call->policy;
    if (becalm_deadline_passed(s->now, call->deadline_at)) {
        return BECALM_WHY_DEADLINE;
    }
    if (!breaker_allows_retry(s)) {
        return BECALM_WHY_BREAKER_OPEN;
    }
    if (!becalm__call_place_take(s, &live->slot)) {
        return becalm__call_place_why(s);
    }
    if (target->breaker != NULL && policy->breaker.per_attempt) {
        bool admitted = becalm_breaker_admit(target->breaker, &policy->breaker, s->at, &live->permit);
        becalm__call_report(s, &live->permit);
        if (!admitted) {
            becalm__call_place_free(s, &live->slot);
            return BECALM_WHY_BREAKER_OPEN;
        }
    }
    return BECALM_WHY_OK;
}

/* May a retry after a timeout be sent at once, beside the attempt in this slot? OK: it is paid. */
static enum becalm_reason beside_take(struct step *s, uint32_t slot)
{
    static const struct becalm_outcome late = {.kind = BECALM_OUTCOME_TIMED_OUT};
    struct becalm_call *call = s->call;
    const struct becalm_target *target = call->target;
    enum becalm_reason why = outcome_allows(call, &late);
    if (why == BECALM_WHY_OK) {
        why = request_allows(call, &late);
    }
    if (why == BECALM_WHY_OK) {
        why = state_allows(s, slot, &late);
    }
    if (why != BECALM_WHY_OK) {
        return why;
    }
    if (call->policy->shadow || becalm__call_down(s)) {
        return BECALM_WHY_RETRIES_OFF;
    }
    if (!becalm_deadline_fits(s->now, call->deadline_at, 0, typical_attempt(s))) {
        return BECALM_WHY_DEADLINE;
    }
    if (target->rate != NULL && becalm_rate_peek(target->rate, s->now) > 0) {
        return BECALM_WHY_RATE;
    }
    return budgets_take(s, late.kind) ? BECALM_WHY_OK : BECALM_WHY_BUDGET_EMPTY;
}

/* True: it is paid, and the slot `next` holds its place and permit. */
static bool beside_allowed(struct step *s, uint32_t slot, uint32_t *next)
{
    if (beside_take(s, slot) != BECALM_WHY_OK) {
        return false;
    }
    *next = becalm__attempt_slot(s->call);
    if (resend_allowed(s, becalm__attempt_ready(s->call, *next)) != BECALM_WHY_OK) {
        becalm__attempt_unspend(s);
        return false;
    }
    return true;
}

BECALM__COLD void becalm__call_beside(struct step *s)
{
    struct becalm_call *call = s->call;
    uint32_t slot = (uint32_t)__builtin_ctz(call->live);
    becalm_ns retry_after = call->retry_after;
    uint32_t next;
    if ((s->action->flags & BECALM_DO_SEND) != 0 || becalm__call_hedges(call) || !beside_allowed(s, slot, &next)) {
        /* The call goes on: the refusal is not its reason yet, and nobody has to wait for that. */
        becalm__call_explain(s, 0, 0);
        call->retry_after = retry_after;
        return;
    }
    if (call->target->rate != NULL) {
        (void)becalm_rate_take(call->target->rate, s->now);
    }
    call->retries++;
    call->slot[slot].second = BECALM_SECOND_SENT;
    becalm__attempt_send_next(s, next, false);
    s->action->why = BECALM_WHY_HEDGE;
}

void becalm__call_resend(struct step *s)
{
    struct becalm_call *call = s->call;
    if (!becalm__call_has_host(call->target) && becalm__call_park(s)) {
        return; /* its price stays paid */
    }
    uint32_t slot = becalm__attempt_slot(call);
    enum becalm_reason why = resend_allowed(s, becalm__attempt_ready(call, slot));
    if (why != BECALM_WHY_OK) {
        becalm__call_finish(s, why);
        return;
    }
    if (call->next_host != BECALM_NO_HOST &&
        !becalm_host_usable(call->target->hosts, &call->policy->outlier, call->next_host, s->now)) {
        call->next_host = BECALM_NO_HOST; /* ejected while we waited: choose again */
    }
    becalm__attempt_send_next(s, slot, false);
}
