/* SPDX-License-Identifier: MIT */
#include <becalm/gate.h>

#include "flow_internal.h"
#include "gate_internal.h"

#include <string.h>

/* One worker's half of a gate: which of the waiting calls is next.
 *
 * Turns are start-time fair queueing (Goyal, Vin, Cheng 1996) with calls that all weigh the same. The gate has a turn,
 * and each flow the turn in which it is next; a flow that is served in turn t is next in t + 1, no matter which worker
 * served it, and a flow that comes after a pause is next in the present turn. A flow's turn and the number of its
 * waiting calls are one word. */

enum { PUSHED = BECALM_FLOWS }; /* the line of calls that were dropped to make room: they count nowhere any more */

#define FEW_WAIT   16u              /* so many calls of a caller may be unhurried at once */
#define TURN_AHEAD 64u              /* a turn further ahead than this is left over from long ago */
#define STUCK      (10 * BECALM_MS) /* a flow that takes no slot for so long, although one is left to it, is passed over */

static uint64_t word_of(const struct becalm_gate *gate, uint32_t flow)
{
    return atomic_load_explicit(&gate->flow[flow].word, memory_order_relaxed);
}

static uint32_t waiting_in(uint64_t word)
{
    return (uint32_t)word;
}

static bool is_idle(uint64_t word, becalm_ns now)
{
    (void)now;
    return waiting_in(word) == 0;
}

static uint32_t turn_now(const struct becalm_gate *gate)
{
    return (uint32_t)atomic_load_explicit(&gate->turn, memory_order_relaxed);
}

/* The turn in which a flow is next. Turns wrap at 32 bits. */
static uint32_t turn_of(uint64_t word, uint32_t now)
{
    uint32_t turn = (uint32_t)(word >> 32);
    return turn - now <= TURN_AHEAD ? turn : now;
}

/* A call of this flow is served. */
static void turn_pass(struct becalm_queue *queue, uint32_t flow)
{
    struct becalm_gate *gate = queue->gate;
    uint64_t now = atomic_load_explicit(&gate->turn, memory_order_relaxed);
    uint64_t word = word_of(gate, flow);
    uint32_t turn;
    do {
        turn = turn_of(word, (uint32_t)now);
    } while (!atomic_compare_exchange_weak_explicit(&gate->flow[flow].word, &word,
                                                    (uint64_t)(turn + 1) << 32 | waiting_in(word), memory_order_relaxed,
                                                    memory_order_relaxed));
    if (turn != (uint32_t)now) { /* if another has moved it meanwhile, that will do */
        (void)atomic_compare_exchange_strong_explicit(&gate->turn, &now, turn, memory_order_relaxed,
                                                      memory_order_relaxed);
    }
    queue->served++;
    atomic_fetch_add_explicit(&gate->served, 1, memory_order_relaxed);
}

void becalm_queue_init(struct becalm_queue *queue, struct becalm_gate *gate, struct becalm_limit *limit)
{
    memset(queue, 0, sizeof *queue);
    queue->gate = gate;
    queue->limit = limit;
}

void becalm_queue_share(struct becalm_queue *queue, uint32_t worker)
{
    BECALM_ASSERT(worker < BECALM_FLOWS && queue->length == 0);
    queue->worker = UINT64_C(1) << worker;
}

/* Lines. */

static void line_add(struct becalm_queue *queue, uint32_t number, struct becalm_ticket *ticket)
{
    struct becalm_line *line = &queue->line[number];
    ticket->queue = queue;
    ticket->line = number;
    ticket->next = NULL;
    ticket->previous = line->last;
    if (line->last != NULL) {
        line->last->next = ticket;
    } else {
        line->first = ticket;
        line->first_at = ticket->queued_at;
    }
    line->last = ticket;
    line->length += 1;
}

static void line_remove(struct becalm_ticket *ticket)
{
    struct becalm_line *line = &ticket->queue->line[ticket->line];
    if (ticket->previous != NULL) {
        ticket->previous->next = ticket->next;
    } else {
        line->first = ticket->next;
        line->first_at = ticket->next == NULL ? 0 : ticket->next->queued_at;
    }
    if (ticket->next != NULL) {
        ticket->next->previous = ticket->previous;
    } else {
        line->last = ticket->previous;
    }
    ticket->queue = NULL;
    ticket->next = NULL;
    ticket->previous = NULL;
    line->length -= 1;
}

/* Relaxed: the try for a place that follows has release order, so that a thread that gives a slot back after it sees
 * this count, see place_take in limit.c. */
static void ticket_link(struct becalm_queue *queue, uint32_t number, struct becalm_ticket *ticket, becalm_ns now)
{
    struct becalm_gate *gate = queue->gate;
    if (queue->length == 0 && queue->worker != 0) {
        atomic_fetch_or_explicit(&gate->workers, queue->worker, memory_order_relaxed);
    }
    if (queue->length == 0) {
        queue->busy_since = now;
    }
    struct becalm_line *line = &queue->line[number];
    if (line->flow != ticket->flow) { /* another flow had this line before */
        line->flow = ticket->flow;
        line->dropped = 0;
    }
    if (line->length == 0) {
        queue->busy |= UINT64_C(1) << number;
    }
    atomic_fetch_add_explicit(&gate->flow[number].word, 1, memory_order_relaxed);
    line_add(queue, number, ticket);
    queue->length += 1;
}

static void ticket_unlink(struct becalm_ticket *ticket)
{
    struct becalm_queue *queue = ticket->queue;
    struct becalm_gate *gate = queue->gate;
    uint32_t number = ticket->line;
    line_remove(ticket);
    if (number == PUSHED) {
        return;
    }
    if (queue->line[number].length == 0) {
        queue->busy &= ~(UINT64_C(1) << number);
    }
    queue->length -= 1;
    if (queue->length == 0 && queue->worker != 0) {
        atomic_fetch_and_explicit(&gate->workers, ~queue->worker, memory_order_relaxed);
    }
    uint64_t before = atomic_fetch_sub_explicit(&gate->flow[number].word, 1, memory_order_relaxed);
    uint64_t had = atomic_fetch_sub_explicit(&gate->waiting, 1, memory_order_relaxed);
    BECALM_ASSERT(had > 0 && waiting_in(before) > 0);
}

/* Coming in. */

uint32_t becalm_gate_flows(const struct becalm_gate *gate)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < BECALM_FLOWS; i++) {
        count += waiting_in(word_of(gate, i)) > 0;
    }
    return count;
}

/* A caller's line, and no sign that the service has too much to do: its calls wait for the caller's own limit.
 */
static bool is_calm(const struct becalm_queue *queue, const struct becalm_gate_policy *policy, becalm_ns timeout,
                    becalm_ns now)
{
    return policy->caller && becalm_limit_calm(queue->limit, timeout, now);
}

/* How many a flow may have in line, of which so many wait already, if `room` may wait at all. */
static uint32_t share_of(const struct becalm_gate *gate, const struct becalm_gate_policy *policy, uint32_t room,
                         uint32_t held)
{
    uint32_t flows = becalm_gate_flows(gate) + (held == 0);
    uint32_t share = flows > 1 ? room / flows : room;
    return share > policy->min_queue || flows <= 1 ? share : policy->min_queue;
}

uint32_t becalm_queue_held(const struct becalm_queue *queue, const struct becalm_gate_policy *policy, becalm_ns now,
                           uint64_t flow, uint32_t *most)
{
    const struct becalm_gate *gate = queue->gate;
    uint32_t number = becalm__flow_find(gate->flow, flow, now, is_idle);
    uint32_t held = number == BECALM_FLOWS ? 0 : waiting_in(word_of(gate, number));
    if (most != NULL) {
        *most = share_of(gate, policy, policy->max_queue, held);
    }
    return held;
}

/* Of these lines, as bits, the line of the flow with the most waiting calls over all workers, if that is more than the
 * given number; of several lines the one whose first call has waited longest. BECALM_FLOWS: there is none. */
static uint32_t longest_of(const struct becalm_queue *queue, uint64_t lines, uint32_t more_than)
{
    uint32_t longest = BECALM_FLOWS;
    uint32_t most = more_than;
    for (; lines != 0; lines &= lines - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(lines);
        uint32_t length = waiting_in(word_of(queue->gate, i));
        if (length > most ||
            (length == most && longest < BECALM_FLOWS && queue->line[i].first_at < queue->line[longest].first_at)) {
            most = length;
            longest = i;
        }
    }
    return longest;
}

static enum becalm_reason turned_away(const struct becalm_gate_policy *policy)
{
    return policy->caller ? BECALM_WHY_LIMIT : BECALM_WHY_SHED;
}

/* The queue is full, and this flow has less than its share: the latest call of a line that is longer by more than one
 * is dropped. If the longer line is at another worker, only that worker can shorten it, so this call is admitted all
 * the same. */
static bool room_made(struct becalm_queue *queue, const struct becalm_gate_policy *policy, uint32_t held)
{
    uint32_t longest = longest_of(queue, queue->busy, held + 1);
    if (longest == BECALM_FLOWS) {
        return held == 0 && longest_of(queue, UINT64_MAX, held + 1) < BECALM_FLOWS;
    }
    struct becalm_ticket *ticket = queue->line[longest].last;
    ticket_unlink(ticket);
    ticket->verdict = turned_away(policy);
    line_add(queue, PUSHED, ticket);
    return true;
}

static bool may_enter(struct becalm_queue *queue, const struct becalm_gate_policy *policy, uint32_t number,
                      uint32_t room, uint64_t waiting)
{
    uint32_t held = waiting_in(word_of(queue->gate, number));
    if (waiting < room && held < policy->min_queue) {
        return true;
    }
    if (held >= share_of(queue->gate, policy, room, held)) {
        return false;
    }
    return waiting < room || room_made(queue, policy, held);
}

/* Counts one more call in line. Two threads may each find the last place taken by the other thread; then the one that
 * gives it back later sees it free and tries again, as in place_take() of limit.c. Where no call may wait nothing is
 * counted, not even for an instant: other threads would see a waiting call, and not try for a slot. */
static bool line_admits(struct becalm_queue *queue, const struct becalm_gate_policy *policy, uint32_t number,
                        uint32_t room)
{
    struct becalm_gate *gate = queue->gate;
    while (room > 0) {
        uint64_t before = atomic_fetch_add_explicit(&gate->waiting, 1, memory_order_relaxed);
        if (may_enter(queue, policy, number, room, before)) {
            return true;
        }
        uint64_t had = atomic_fetch_sub_explicit(&gate->waiting, 1, memory_order_relaxed);
        if (before < room || had > room) {
            return false;
        }
    }
    return false;
}

/* A caller that wrote no timeout would wait for an answer until its deadline, so its calls may wait in line for longer
 * than a second, too. In a caller's own line only a few of them may, because all calls that have gathered there are
 * sent at once when the service is back. A gate's slots send them as fast as the service answers. Times that the policy
 * writes always apply. */
static bool may_be_unhurried(const struct becalm_queue *queue, const struct becalm_gate_policy *policy,
                             const struct becalm_ticket *ticket)
{
    bool fits =
        policy->caller ? becalm_gate_waiting(queue->gate) <= FEW_WAIT : policy->target_wait == BECALM__GATE_TARGET_WAIT;
    return ticket->unhurried && fits && policy->max_wait == BECALM__GATE_MAX_WAIT && ticket->expires_at != BECALM_NEVER;
}

becalm_ns becalm__ticket_patience(const struct becalm_ticket *ticket, const struct becalm_gate_policy *policy)
{
    if (ticket->patient) {
        return ticket->patience;
    }
    bool gives_way = !policy->caller && policy->max_wait == BECALM__GATE_MAX_WAIT && ticket->timeout != BECALM_NEVER;
    becalm_ns wait = becalm_ns_min(ticket->patience,
                                   gives_way ? becalm_ns_max(policy->max_wait, ticket->timeout / 2) : policy->max_wait);
    if (policy->caller && policy->max_wait == BECALM__GATE_MAX_WAIT) {
        wait = becalm_ns_max(wait, ticket->usual_wait);
    }
    becalm_ns left = becalm_ns_left(ticket->queued_at, ticket->expires_at);
    return ticket->unhurried ? becalm_ns_max(wait, left / 4) : wait;
}

/* A burst may wait, a standing queue may not: it only makes every call late. */
static bool stands(const struct becalm_queue *queue, const struct becalm_gate_policy *policy,
                   const struct becalm_ticket *ticket, becalm_ns now)
{
    return !policy->caller && !ticket->patient && queue->length > 0 &&
           becalm_ns_since(now, queue->busy_since) > ticket->patience;
}

bool becalm_queue_enter(struct becalm_queue *queue, const struct becalm_gate_policy *policy, becalm_ns now,
                        struct becalm_ticket *ticket)
{
    BECALM_ASSERT(ticket->queue == NULL);
    struct becalm_gate *gate = queue->gate;
    uint32_t number = becalm__flow_claim(gate->flow, ticket->flow, now, is_idle);
    uint32_t room = is_calm(queue, policy, ticket->timeout, now) ? policy->calm_queue : policy->max_queue;
    if (!line_admits(queue, policy, number, room)) {
        return false;
    }
    ticket->patience /= stands(queue, policy, ticket, now) ? 2 : 1;
    ticket->unhurried = may_be_unhurried(queue, policy, ticket);
    ticket->queued_at = now;
    ticket->leave_at = becalm_ns_after(now, becalm__ticket_patience(ticket, policy));
    ticket->verdict = BECALM_WHY_QUEUED;
    ticket->slot = (struct becalm_slot){.held = false};
    ticket_link(queue, number, ticket, now);
    return true;
}

bool becalm_queue_busy(const struct becalm_queue *queue)
{
    return queue->length > 0;
}

/* The order of turns. */

/* The line whose turn comes first; of several lines the one whose first call has waited longest. */
static uint32_t line_next(const struct becalm_queue *queue)
{
    uint32_t now = turn_now(queue->gate);
    uint32_t best = BECALM_FLOWS;
    uint32_t soonest = UINT32_MAX;
    for (uint64_t left = queue->busy; left != 0; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(left);
        uint32_t ahead = turn_of(word_of(queue->gate, i), now) - now;
        if (ahead < soonest || (ahead == soonest && queue->line[i].first_at < queue->line[best].first_at)) {
            soonest = ahead;
            best = i;
        }
    }
    return best;
}

/* Calls at other workers that come before the first one of this line. Of the same flow one does if the draw says so: by
 * how many of it wait here and there, so that none of its calls waits for ever because of where it came in. A worker
 * that was woken for this has won that draw already. */
static uint32_t others_before(const struct becalm_queue *queue, uint32_t number, const struct becalm_moment *at)
{
    const struct becalm_gate *gate = queue->gate;
    uint32_t now = turn_now(gate);
    uint32_t mine = turn_of(word_of(gate, number), now) - now;
    uint32_t count = 0;
    for (uint32_t i = 0; i < BECALM_FLOWS; i++) {
        uint64_t word = word_of(gate, i);
        uint32_t here = queue->line[i].length;
        if (waiting_in(word) <= here) {
            continue;
        }
        if (i != number) {
            count += turn_of(word, now) - now < mine ? waiting_in(word) - here : 0;
        } else if (!queue->called) {
            uint64_t draw = becalm_rand_lane(at->random, BECALM_LANE_TURN);
            count += becalm_rand_below(draw, waiting_in(word)) >= here;
        }
    }
    return count;
}

/* Do other workers use the slots that this worker leaves to them? A worker that is stuck must not hold up the gate. */
static bool others_move(struct becalm_queue *queue, becalm_ns now)
{
    uint64_t others = atomic_load_explicit(&queue->gate->served, memory_order_relaxed) - queue->served;
    if (queue->since == 0 || others != queue->others) {
        queue->others = others;
        queue->since = now;
    }
    return becalm_ns_since(now, queue->since) <= STUCK;
}

/* A slot is taken for the first call of this line. Are there calls of other workers that come before it, and no other
 * slot for them? */
static bool must_yield(struct becalm_queue *queue, const struct becalm_limit_policy *policy, uint32_t number,
                       const struct becalm_moment *at)
{
    if (queue->worker == 0 || becalm_gate_waiting(queue->gate) <= queue->length) {
        return false;
    }
    uint32_t before = others_before(queue, number, at);
    uint32_t limit = becalm_limit_now(queue->limit, policy);
    uint32_t taken = becalm_limit_in_flight(queue->limit);
    if (before == 0 || (limit > taken && limit - taken >= before)) {
        queue->since = 0;
        return false;
    }
    return others_move(queue, at->now);
}

static bool stands_too_long(becalm_ns queued_at, const struct becalm_gate_policy *policy, becalm_ns now)
{
    return becalm_ns_since(now, queued_at) > policy->target_wait;
}

/* How many calls a client has brought lately: those in the queue, over all workers, and those that CoDel has dropped
 * here, which count half with each interval. Without the dropped calls the loudest client would look like any other as
 * soon as its line is cut. */
static uint32_t brought_by(const struct becalm_queue *queue, uint32_t number, uint64_t interval)
{
    const struct becalm_line *line = &queue->line[number];
    uint64_t since = interval > line->interval ? interval - line->interval : 0;
    return waiting_in(word_of(queue->gate, number)) + (since < 32 ? line->dropped >> since : 0);
}

static void drop_note(struct becalm_line *line, uint64_t interval)
{
    uint64_t since = interval > line->interval ? interval - line->interval : 0;
    line->dropped = (since < 32 ? line->dropped >> since : 0) + 1;
    line->interval = interval > line->interval ? interval : line->interval;
}

/* Has the queue been non-empty for CoDel's interval, as this call has it? */
static bool interval_is_over(const struct becalm_queue *queue, const struct becalm_gate_policy *policy, becalm_ns now,
                             const struct becalm_ticket *ticket)
{
    becalm_ns part = ticket->timeout - ticket->timeout / 4;
    becalm_ns most = ticket->unhurried ? BECALM_NEVER : policy->max_interval;
    return becalm_ns_since(now, queue->busy_since) > becalm_ns_min(most, becalm_ns_max(policy->interval, part));
}

/* Which call CoDel drops: only clients count that have sent at least the average number of calls, and whose first call
 * has waited too long, in a queue that has stood for that call's own interval. The first call of the longest of their
 * lines is dropped; of equal lines the call that has waited longest. NULL: none. */
static struct becalm_ticket *loudest_of(const struct becalm_queue *queue, const struct becalm_gate_policy *policy,
                                        becalm_ns now)
{
    uint32_t brought[BECALM_FLOWS];
    uint64_t sum = 0;
    uint64_t count = 0;
    for (uint32_t i = 0; i < BECALM_FLOWS; i++) {
        brought[i] = brought_by(queue, i, now / policy->interval);
        sum += brought[i];
        count += brought[i] > 0;
    }
    uint64_t lines = 0;
    for (uint64_t left = queue->busy; left != 0; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(left);
        bool loud = brought[i] * count >= sum && stands_too_long(queue->line[i].first_at, policy, now) &&
                    interval_is_over(queue, policy, now, queue->line[i].first);
        lines |= loud ? left & (0 - left) : 0;
    }
    uint32_t longest = longest_of(queue, lines, 0);
    return longest == BECALM_FLOWS ? NULL : queue->line[longest].first;
}

/* A queue exists to absorb short bursts: CoDel acts only on a queue that has been non-empty for an interval, and is not
 * short. The queue is that of all clients, but a client with fewer calls than average is not the cause. The interval is
 * that of the call that would be dropped, not of the one whose turn it is: clients with and without a timeout share a
 * queue. */
static struct becalm_ticket *codel_drops(struct becalm_queue *queue, const struct becalm_gate_policy *policy,
                                         becalm_ns now, const struct becalm_ticket *ticket)
{
    if (!stands_too_long(ticket->queued_at, policy, now) ||
        becalm_ns_since(now, queue->busy_since) <= policy->interval ||
        becalm_gate_waiting(queue->gate) < policy->min_queue) {
        return NULL;
    }
    struct becalm_ticket *dropped = loudest_of(queue, policy, now);
    if (dropped != NULL && dropped->patient) {
        return NULL; /* the call waited for a host that restarts, and so did its line */
    }
    if (dropped != NULL) {
        drop_note(&queue->line[dropped->line], now / policy->interval);
    }
    return dropped;
}

/* How long a call in line may wait in total, in the present state of the service. */
static becalm_ns longest_wait(const struct becalm_ticket *ticket, const struct becalm_gate_policy *policy,
                              becalm_ns now)
{
    becalm_ns patience = becalm__ticket_patience(ticket, policy);
    bool calm = is_calm(ticket->queue, policy, ticket->timeout, now);
    return calm ? becalm_ns_max(patience, policy->calm_wait) : patience;
}

/* The verdict on the first call of the line whose turn it is; instead of it CoDel may drop a call of another line. */
static struct becalm_ticket *ticket_judge(struct becalm_ticket *ticket, const struct becalm_gate_policy *policy,
                                          becalm_ns now)
{
    becalm_ns waited = becalm_ns_since(now, ticket->queued_at);
    if (now >= ticket->expires_at) {
        ticket->verdict = BECALM_WHY_DEADLINE;
        return ticket;
    }
    if (waited > longest_wait(ticket, policy, now)) {
        ticket->verdict = turned_away(policy);
        return ticket;
    }
    bool spared = ticket->patient || policy->caller;
    struct becalm_ticket *dropped = spared ? NULL : codel_drops(ticket->queue, policy, now, ticket);
    if (dropped != NULL) {
        dropped->verdict = BECALM_WHY_SHED;
        return dropped;
    }
    ticket->verdict = BECALM_WHY_OK;
    return ticket;
}

/* The worker that was woken has looked. */
static struct becalm_ticket *no_ticket(struct becalm_queue *queue)
{
    queue->called = false;
    return NULL;
}

/* The slot comes first: without one no call is judged, and a call whose time is over before then is removed by its
 * own timer. It also comes before the choice of the line: taking a slot and giving it back makes sure that a thread
 * that frees a slot sees the calls that wait here. */
struct becalm_ticket *becalm_queue_next(struct becalm_queue *queue, const struct becalm_gate_policy *policy,
                                        const struct becalm_limit_policy *limit_policy, const struct becalm_moment *at)
{
    struct becalm_ticket *ticket = queue->line[PUSHED].first;
    queue->yields = false;
    if (ticket != NULL) {
        ticket_unlink(ticket);
        return ticket;
    }
    if (queue->length == 0) {
        return no_ticket(queue);
    }
    uint32_t number = line_next(queue);
    ticket = queue->line[number].first;
    if (!becalm_limit_admit(queue->limit, limit_policy, at, ticket->timeout, &ticket->slot)) {
        return no_ticket(queue);
    }
    if (must_yield(queue, limit_policy, number, at)) {
        becalm_limit_give(queue->limit, &ticket->slot);
        queue->yields = true;
        return no_ticket(queue);
    }
    struct becalm_ticket *next = ticket_judge(ticket, policy, at->now);
    ticket_unlink(next);
    if (next->verdict == BECALM_WHY_OK) {
        turn_pass(queue, number);
    } else {
        becalm_limit_give(queue->limit, &ticket->slot); /* and the turn stays with its flow */
    }
    return next;
}

uint64_t becalm_queue_others(const struct becalm_queue *queue)
{
    if (!queue->yields && queue->length > 0) {
        return 0; /* no slot is free, or it is ours to take with the next draw */
    }
    return atomic_load_explicit(&queue->gate->workers, memory_order_relaxed) & ~queue->worker;
}

void becalm_queue_call(struct becalm_queue *queue)
{
    queue->called = true;
}

becalm_ns becalm_ticket_leave_at(const struct becalm_ticket *ticket)
{
    return becalm_ns_min(ticket->expires_at, ticket->leave_at);
}

bool becalm_ticket_stays(struct becalm_ticket *ticket, const struct becalm_gate_policy *policy, becalm_ns now)
{
    becalm_ns until = becalm_ns_after(ticket->queued_at, longest_wait(ticket, policy, now));
    if (now >= ticket->expires_at || now >= until) {
        return false;
    }
    ticket->leave_at = becalm_ns_min(until, becalm_ns_after(now, becalm__ticket_patience(ticket, policy)));
    return true;
}

void becalm_queue_leave(struct becalm_ticket *ticket)
{
    if (ticket->queue != NULL) {
        ticket_unlink(ticket);
    }
}
