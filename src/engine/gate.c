/* SPDX-License-Identifier: MIT */
#include <becalm/gate.h>

#include <string.h>

enum {
    FULL_PPM = 1000000,
    SHED_AT_FULL_CPU_PPM = 900000, /* a tenth still passes, so that the gate notices when it gets better */
    SHED_WEIGHT = 100,             /* one decision moves the share by a hundredth of the way */
    OVERLOADED_PPM = 100000
};

#define WAIT_LEAST BECALM_US
#define WAIT_MOST  (3600 * BECALM_S)

void becalm_gate_defaults(struct becalm_gate_policy *policy)
{
    *policy = (struct becalm_gate_policy){
        .target_wait = 20 * BECALM_MS,
        .interval = 100 * BECALM_MS,
        .max_wait = BECALM_S,
        .min_queue = 30,
        .max_queue = 1000,
        .cpu_threshold_ppm = 0,
        .retry_after = 5 * BECALM_S,
    };
}

static bool wait_is_sane(becalm_ns wait)
{
    return wait >= WAIT_LEAST && wait <= WAIT_MOST;
}

int becalm_gate_check(const struct becalm_gate_policy *policy, const char **why)
{
    const char *sentence = NULL;
    if (!wait_is_sane(policy->target_wait)) {
        sentence = "target_wait must be 1 us to 1 h";
    } else if (!wait_is_sane(policy->interval)) {
        sentence = "interval must be 1 us to 1 h";
    } else if (!wait_is_sane(policy->max_wait)) {
        sentence = "max_wait must be 1 us to 1 h";
    } else if (policy->min_queue > BECALM_QUEUE_MAX) {
        sentence = "min_queue must be at most 1000000";
    } else if (policy->max_queue > BECALM_QUEUE_MAX) {
        sentence = "max_queue must be at most 1000000";
    } else if (policy->cpu_threshold_ppm > FULL_PPM) {
        sentence = "cpu_threshold_ppm must be at most 1000000";
    } else if (policy->retry_after > WAIT_MOST) {
        sentence = "retry_after must be at most 1 h";
    }
    if (why != NULL) {
        *why = sentence;
    }
    return sentence == NULL ? 0 : BECALM_EINVAL;
}

void becalm_gate_init(struct becalm_gate *gate)
{
    memset(gate, 0, sizeof *gate);
}

void becalm_gate_carry(struct becalm_gate *to, const struct becalm_gate *from)
{
    /* Relaxed: figures that stand for themselves. Who waits, waits at the old gate. */
    atomic_store_explicit(&to->shed_ppm, atomic_load_explicit(&from->shed_ppm, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&to->cpu_ppm, atomic_load_explicit(&from->cpu_ppm, memory_order_relaxed),
                          memory_order_relaxed);
}

void becalm_queue_init(struct becalm_queue *queue, struct becalm_gate *gate, struct becalm_limit *limit)
{
    *queue = (struct becalm_queue){.gate = gate, .limit = limit};
}

/* Relaxed, as everything about the CPU and the shed share: single numbers that guard nothing. */
void becalm_gate_note_cpu(struct becalm_gate *gate, uint32_t cpu_ppm)
{
    atomic_store_explicit(&gate->cpu_ppm, cpu_ppm < FULL_PPM ? cpu_ppm : FULL_PPM, memory_order_relaxed);
}

bool becalm_gate_admit(struct becalm_gate *gate, const struct becalm_gate_policy *policy,
                       const struct becalm_moment *at, bool retry)
{
    uint64_t threshold = policy->cpu_threshold_ppm;
    if (threshold == 0) {
        return true;
    }
    uint64_t cpu = atomic_load_explicit(&gate->cpu_ppm, memory_order_relaxed);
    if (cpu <= threshold) {
        return true;
    }
    if (retry) {
        return false;
    }
    /* cpu is at most FULL_PPM and above the threshold, so the divisor is not 0. */
    uint64_t chance = SHED_AT_FULL_CPU_PPM * (cpu - threshold) / (FULL_PPM - threshold);
    return !becalm_rand_chance(becalm_rand_lane(at->random, BECALM_LANE_SHED), (uint32_t)chance);
}

static void ticket_link(struct becalm_queue *queue, struct becalm_ticket *ticket)
{
    ticket->queue = queue;
    ticket->next = NULL;
    ticket->previous = queue->last;
    if (queue->last != NULL) {
        queue->last->next = ticket;
    } else {
        queue->first = ticket;
    }
    queue->last = ticket;
    queue->length += 1;
}

static void ticket_unlink(struct becalm_ticket *ticket)
{
    struct becalm_queue *queue = ticket->queue;
    if (ticket->previous != NULL) {
        ticket->previous->next = ticket->next;
    } else {
        queue->first = ticket->next;
    }
    if (ticket->next != NULL) {
        ticket->next->previous = ticket->previous;
    } else {
        queue->last = ticket->previous;
    }
    ticket->queue = NULL;
    ticket->next = NULL;
    ticket->previous = NULL;
    queue->length -= 1;
    /* Relaxed: only the way in must be seen in order, see becalm_queue_enter. */
    uint64_t had = atomic_fetch_sub_explicit(&queue->gate->waiting, 1, memory_order_relaxed);
    BECALM_ASSERT(had > 0);
}

bool becalm_queue_enter(struct becalm_queue *queue, const struct becalm_gate_policy *policy, becalm_ns now,
                        struct becalm_ticket *ticket)
{
    BECALM_ASSERT(ticket->queue == NULL);
    /* Relaxed: the try for a place that follows has release order, so that whoever gives a place back after it sees
     * this count, see place_take in limit.c. */
    if (atomic_fetch_add_explicit(&queue->gate->waiting, 1, memory_order_relaxed) >= policy->max_queue) {
        atomic_fetch_sub_explicit(&queue->gate->waiting, 1, memory_order_relaxed);
        return false;
    }
    if (queue->length == 0) {
        queue->busy_since = now;
    }
    ticket->queued_at = now;
    ticket->verdict = BECALM_WHY_QUEUED;
    ticket->slot = (struct becalm_slot){.held = false};
    ticket_link(queue, ticket);
    return true;
}

bool becalm_queue_busy(const struct becalm_queue *queue)
{
    return queue->length > 0;
}

/* Short bursts are what a queue is for: CoDel acts only on one that has stood for an interval, and is not short. */
static bool codel_drops(const struct becalm_queue *queue, const struct becalm_gate_policy *policy, becalm_ns now,
                        becalm_ns waited)
{
    return waited > policy->target_wait && becalm_ns_since(now, queue->busy_since) > policy->interval &&
           becalm_gate_waiting(queue->gate) >= policy->min_queue;
}

static enum becalm_reason ticket_judge(const struct becalm_ticket *ticket, const struct becalm_gate_policy *policy,
                                       becalm_ns now)
{
    becalm_ns waited = becalm_ns_since(now, ticket->queued_at);
    if (now >= ticket->expires_at) {
        return BECALM_WHY_DEADLINE;
    }
    if (waited > ticket->patience || waited > policy->max_wait) {
        return BECALM_WHY_SHED;
    }
    return codel_drops(ticket->queue, policy, now, waited) ? BECALM_WHY_SHED : BECALM_WHY_OK;
}

/* The place comes first: without one nobody is judged, and who has to go before then goes by its own timer. */
struct becalm_ticket *becalm_queue_next(struct becalm_queue *queue, const struct becalm_gate_policy *policy,
                                        const struct becalm_limit_policy *limit_policy, const struct becalm_moment *at)
{
    struct becalm_ticket *ticket = queue->first;
    if (ticket == NULL || !becalm_limit_admit(queue->limit, limit_policy, at, ticket->timeout, &ticket->slot)) {
        return NULL;
    }
    ticket->verdict = ticket_judge(ticket, policy, at->now);
    ticket_unlink(ticket);
    if (ticket->verdict != BECALM_WHY_OK) {
        becalm_limit_give(queue->limit, &ticket->slot);
    }
    return ticket;
}

becalm_ns becalm_ticket_leave_at(const struct becalm_ticket *ticket, const struct becalm_gate_policy *policy)
{
    becalm_ns patience = becalm_ns_min(ticket->patience, policy->max_wait);
    return becalm_ns_min(ticket->expires_at, becalm_ns_after(ticket->queued_at, patience));
}

void becalm_queue_leave(struct becalm_ticket *ticket)
{
    if (ticket->queue != NULL) {
        ticket_unlink(ticket);
    }
}

void becalm_gate_note(struct becalm_gate *gate, bool shed)
{
    uint64_t share = atomic_load_explicit(&gate->shed_ppm, memory_order_relaxed);
    uint64_t next;
    do {
        if (share == 0 && !shed) {
            return;
        }
        /* Down is rounded up, so that the share comes to rest at 0 and not at the first value below SHED_WEIGHT. */
        next = shed ? share + (FULL_PPM - share) / SHED_WEIGHT : share - (share + SHED_WEIGHT - 1) / SHED_WEIGHT;
    } while (!atomic_compare_exchange_weak_explicit(&gate->shed_ppm, &share, next, memory_order_relaxed,
                                                    memory_order_relaxed));
}

uint64_t becalm_gate_waiting(const struct becalm_gate *gate)
{
    return atomic_load_explicit(&gate->waiting, memory_order_relaxed);
}

uint32_t becalm_gate_shed_ppm(const struct becalm_gate *gate)
{
    return (uint32_t)atomic_load_explicit(&gate->shed_ppm, memory_order_relaxed);
}

bool becalm_gate_overloaded(const struct becalm_gate *gate)
{
    return becalm_gate_shed_ppm(gate) > OVERLOADED_PPM;
}
