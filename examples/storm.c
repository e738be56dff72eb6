/* SPDX-License-Identifier: MIT */
/* A retry storm, and how it is calmed, in virtual time: about a minute of incident in a second of yours.
 *
 * One service with ten workers answers 1000 requests a second. Ten callers send it 850. From second 10 to 20 it loses
 * most of its capacity, as in a bad deployment. Requests queue up, callers time out after a second and retry, and the
 * service goes on working on requests whose callers have gone. Both lanes run the same engine; only the policy
 * differs: the left lane retries three times without a budget, the right lane has Becalm's default. */
#include <becalm/becalm.h>

#include <stdio.h>
#include <stdlib.h>

#define SECONDS    60u
#define FAULT_FROM 10u
#define FAULT_TO   20u
#define CALLERS    10u
#define WORKERS    10u
#define WORK       (10 * BECALM_MS) /* on average, per request */
#define ARRIVAL    (BECALM_S / 850)
#define CALLS_MAX  (SECONDS * 1000u)
#define QUEUE_MAX  (1u << 20)

enum what { ARRIVES, SERVED, WAKES };

struct event {
    becalm_ns at;
    enum what what;
    uint32_t call;
    uint32_t attempt;
};

struct lane {
    const char *name;
    struct becalm_policy policy;
    struct becalm_target target[CALLERS];
    struct becalm_call *call;
    uint32_t calls;
    struct event *heap; /* the earliest first */
    uint32_t waiting;
    struct event *queue; /* requests at the service, in their order, also of callers that have given up */
    uint32_t first, last, busy;
    becalm_ns now;
    uint64_t seed;
    uint32_t sent[SECONDS], begun[SECONDS], good[SECONDS]; /* by the second: good by the call's beginning */
    uint32_t refused[BECALM_REASON_COUNT];
};

static uint64_t draw(struct lane *lane, uint64_t mean)
{
    return becalm_rand_below(becalm_rand_next(&lane->seed), 2 * mean);
}

static void later(struct lane *lane, struct event event)
{
    uint32_t i = lane->waiting++;
    for (; i > 0 && lane->heap[(i - 1) / 2].at > event.at; i = (i - 1) / 2) {
        lane->heap[i] = lane->heap[(i - 1) / 2];
    }
    lane->heap[i] = event;
}

static struct event soonest(struct lane *lane)
{
    struct event top = lane->heap[0];
    struct event last = lane->heap[--lane->waiting];
    uint32_t i = 0;
    for (uint32_t child; (child = 2 * i + 1) < lane->waiting; i = child) {
        child += child + 1 < lane->waiting && lane->heap[child + 1].at < lane->heap[child].at;
        if (lane->heap[child].at >= last.at) {
            break;
        }
        lane->heap[i] = lane->heap[child];
    }
    lane->heap[i] = last;
    return top;
}

static uint32_t second_of(becalm_ns at)
{
    uint32_t second = (uint32_t)(at / BECALM_S);
    return second < SECONDS ? second : SECONDS - 1;
}

/* Free workers take the next requests. In the fault only three of ten are left. */
static void work(struct lane *lane)
{
    bool fault = lane->now >= FAULT_FROM * BECALM_S && lane->now < FAULT_TO * BECALM_S;
    uint32_t workers = fault ? WORKERS * 3 / 10 : WORKERS;
    while (lane->busy < workers && lane->first != lane->last) {
        struct event request = lane->queue[lane->first++ % QUEUE_MAX];
        request.what = SERVED;
        request.at = lane->now + draw(lane, WORK);
        lane->busy++;
        later(lane, request);
    }
}

/* The driver's part: one step of one call, and its action. */
static void step(struct lane *lane, uint32_t id, struct becalm_event *event)
{
    struct becalm_call *call = &lane->call[id];
    struct becalm_action action;
    event->at = (struct becalm_moment){.now = lane->now, .random = becalm_rand_next(&lane->seed)};
    becalm_call_step(call, event, &action);
    if ((action.flags & BECALM_DO_SEND) != 0) {
        lane->queue[lane->last++ % QUEUE_MAX] = (struct event){.call = id, .attempt = action.attempt};
        lane->sent[second_of(lane->now)]++;
    }
    if ((action.flags & BECALM_DO_FINISH) != 0) {
        uint32_t second = second_of(call->record.began_at);
        lane->begun[second]++;
        lane->good[second] += action.why == BECALM_WHY_OK;
        lane->refused[action.why]++;
    } else if (action.wake_at != BECALM_NEVER) {
        later(lane, (struct event){.at = action.wake_at, .what = WAKES, .call = id});
    }
    work(lane);
}

static void happen(struct lane *lane, const struct event *due)
{
    struct becalm_event event = {.kind = BECALM_EVENT_TIMER};
    uint32_t id = due->call;
    switch (due->what) {
    case ARRIVES:
        id = lane->calls++;
        later(lane, (struct event){.at = lane->now + draw(lane, ARRIVAL), .what = ARRIVES});
        becalm_call_init(&lane->call[id], &lane->policy, &lane->target[draw(lane, CALLERS / 2)],
                         &(struct becalm_request){.idempotent = true});
        event.kind = BECALM_EVENT_BEGIN;
        break;
    case SERVED: /* an attempt that was given up is not in flight any more: no caller waits for its answer */
        lane->busy--;
        if (becalm_call_ended(&lane->call[id]) || lane->call[id].record.attempts != due->attempt + 1) {
            work(lane);
            return;
        }
        event.kind = BECALM_EVENT_DONE;
        break;
    case WAKES:
        break;
    }
    step(lane, id, &event);
}

static void run(struct lane *lane)
{
    later(lane, (struct event){.at = 0, .what = ARRIVES});
    while (lane->heap[0].at < SECONDS * BECALM_S && lane->calls < CALLS_MAX) {
        struct event due = soonest(lane);
        lane->now = due.at;
        happen(lane, &due);
    }
}

static void *memory(size_t count, size_t size)
{
    void *all = aligned_alloc(64, (count * size + 63) / 64 * 64);
    if (all == NULL) {
        perror("storm");
        exit(1);
    }
    return all;
}

static struct lane *lane_new(const char *name, const struct becalm_policy *policy)
{
    struct lane *lane = calloc(1, sizeof *lane);
    if (lane == NULL) {
        perror("storm");
        exit(1);
    }
    lane->name = name;
    lane->policy = *policy;
    lane->seed = 2026;
    lane->call = memory(CALLS_MAX, sizeof *lane->call);
    lane->heap = memory(CALLS_MAX * 8, sizeof *lane->heap);
    lane->queue = memory(QUEUE_MAX, sizeof *lane->queue);
    for (uint32_t i = 0; i < CALLERS; i++) {
        if (becalm_target_init(&lane->target[i], memory(1, becalm_target_bytes(policy, 0, 1)), policy, 0, 1) != 0) {
            exit(1);
        }
    }
    return lane;
}

static const char *bar(uint32_t sent)
{
    static const char full[] = "################";
    uint32_t length = sent / 212; /* four for the normal load */
    return full + (sizeof full - 1 - (length < sizeof full - 1 ? length : sizeof full - 1));
}

static void row(const struct lane *naive, const struct lane *calm, uint32_t second)
{
    const struct lane *lane[] = {naive, calm};
    if (second == FAULT_FROM || second == FAULT_TO) {
        printf("------- %s -------\n", second == FAULT_FROM ? "7 of 10 workers are lost" : "all workers are back");
    }
    printf("%4us", second);
    for (int i = 0; i < 2; i++) {
        uint32_t begun = lane[i]->begun[second] == 0 ? 1 : lane[i]->begun[second];
        printf("   %5.2fx %-16s %3u%%", (double)lane[i]->sent[second] / 850.0, bar(lane[i]->sent[second]),
               lane[i]->good[second] * 100 / begun);
    }
    printf("\n");
}

int main(void)
{
    struct becalm_policy calm;
    becalm_policy_defaults(&calm);
    calm.attempt_timeout = BECALM_S;
    struct becalm_policy naive = calm;
    naive.max_retries = 3;
    naive.budget.kind = BECALM_BUDGET_NONE;
    naive.limit.kind = BECALM_LIMIT_NONE;
    naive.breaker.enabled = false;
    struct lane *left = lane_new("3 retries, full jitter", &naive);
    struct lane *right = lane_new("Becalm's default policy", &calm);
    run(left);
    run(right);
    printf("One service with room for 1000 requests a second gets 850. Of a minute, the\n"
           "seconds 6 to 39: load sent to it against normal, and calls that succeeded.\n\n");
    printf("        %-29s  %s\n", left->name, right->name);
    for (uint32_t second = 6; second < 40; second++) {
        row(left, right, second);
    }
    printf("\nWhy calls ended, left and right, over the whole minute:\n\n");
    for (uint32_t why = 0; why < BECALM_REASON_COUNT; why++) {
        if (left->refused[why] + right->refused[why] > 0) {
            printf("  %-15s %6u %6u   %s\n", becalm_reason_word((enum becalm_reason)why), left->refused[why],
                   right->refused[why], becalm_reason_sentence((enum becalm_reason)why));
        }
    }
    return 0;
}
