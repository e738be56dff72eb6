/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* cores: see measure.h */

#include <becalm/becalm.h>

#include "lib/measure.h"

#include <unistd.h>

/* The cost of the engine: ns per operation, beside the floor of the same machine in the same minute. The program
 * asserts nothing about time. docs/benchmarks.md says how to read it. */

#define STEP      (50 * BECALM_US) /* of virtual time from one operation to the next: 20,000 a second and thread */
#define TOOK      (2 * BECALM_MS)  /* the time of a call */
#define FAIL_EACH 20u              /* 5 % */
#define HOSTS     10u

/* Zeroed, on a line of its own, and never freed: every object is measured until the end. */
static void *make_memory(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (memory == NULL) {
        perror("bench");
        exit(1);
    }
    memset(memory, 0, bytes);
    return memory;
}

/* A worker's counters while it runs a batch: in registers, because its address goes nowhere but into inlined functions.
 * In memory they would cost as much as the operations themselves. */
struct lap {
    uint64_t now;
    uint64_t random;
    uint64_t turn;
    uint64_t sink; /* results go here, so that no work can be left out */
    uint32_t cell;
};

static inline struct lap lap_begin(const struct worker *w)
{
    return (struct lap){.now = w->now, .random = w->random, .turn = w->turn, .cell = w->cell};
}

static inline void lap_end(struct worker *w, const struct lap *l)
{
    w->now = l->now;
    w->random = l->random;
    w->turn = l->turn;
    w->sink += l->sink;
}

/* The next operation's moment. The bits need not be good ones: a draw takes a lane of them first. */
static inline struct becalm_moment tick(struct lap *l)
{
    l->now += STEP;
    l->random += UINT64_C(0x9e3779b97f4a7c15);
    l->turn++;
    return (struct becalm_moment){.now = l->now, .random = l->random, .cell = l->cell};
}

/* The end of the call that began at the latest moment. */
static inline struct becalm_moment later(const struct lap *l)
{
    return (struct becalm_moment){.now = l->now + TOOK, .random = ~l->random, .cell = l->cell};
}

/* The compiler must assume that other code reads or writes the object now. */
static inline void keep(const void *object)
{
    __asm__ volatile("" ::"r"(object) : "memory");
}

static inline bool fails_now(const struct lap *l)
{
    return l->turn % FAIL_EACH == 0;
}

static const struct becalm_outcome ok = {.kind = BECALM_OUTCOME_OK, .status = 200};

/* ---- the floor ---- */

static void *make_word(void)
{
    return make_memory(64);
}

static void run_loop(void *objects, struct worker *w, uint64_t times)
{
    (void)objects;
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        const struct becalm_moment at = tick(&l);
        keep(&at);
    }
    lap_end(w, &l);
}

static void run_add(void *objects, struct worker *w, uint64_t times)
{
    _Atomic(uint64_t) *word = objects;
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        l.sink += atomic_fetch_add_explicit(word, 1, memory_order_relaxed);
    }
    lap_end(w, &l);
}

/* The extra cost of passing a moment to a function of another file, since an atomic addition waits for all stores. */
__attribute__((noinline)) static uint64_t add_apart(_Atomic(uint64_t) *word, const struct becalm_moment *at)
{
    return atomic_fetch_add_explicit(word + (at->cell & 0), 1, memory_order_relaxed);
}

static void run_add_apart(void *objects, struct worker *w, uint64_t times)
{
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        const struct becalm_moment at = tick(&l);
        keep(&at);
        l.sink += add_apart(objects, &at);
    }
    lap_end(w, &l);
}

static void run_clock(void *objects, struct worker *w, uint64_t times)
{
    (void)objects;
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        l.sink += clock_now();
    }
    lap_end(w, &l);
}

/* ---- a target with some of its parts, and its policy ---- */

struct scene {
    struct becalm_policy policy;
    struct becalm_target target;
};

enum { BREAKER = 1, BUDGET = 2, LIMIT = 4, ALL = 8 };

static struct scene *scene_make(const struct becalm_policy *policy, unsigned parts, uint32_t hosts)
{
    struct scene *s = make_memory(sizeof *s);
    struct becalm_target whole;
    s->policy = *policy;
    void *memory = make_memory(becalm_target_bytes(policy, hosts, THREADS));
    if (becalm_target_init(&whole, memory, policy, hosts, THREADS) != 0) {
        fprintf(stderr, "bench: the policy is not valid\n");
        exit(1);
    }
    if (parts == ALL) {
        s->target = whole;
        return s;
    }
    s->target.breaker = (parts & BREAKER) != 0 ? whole.breaker : NULL;
    s->target.budget = (parts & BUDGET) != 0 ? whole.budget : NULL;
    s->target.limit = (parts & LIMIT) != 0 ? whole.limit : NULL;
    return s;
}

static void *scene_count(unsigned parts)
{
    struct becalm_policy policy;
    becalm_policy_defaults(&policy);
    becalm_breaker_resilience4j(&policy.breaker);
    return scene_make(&policy, parts, 0);
}

static void *scene_default(unsigned parts, uint32_t hosts)
{
    struct becalm_policy policy;
    becalm_policy_defaults(&policy);
    return scene_make(&policy, parts, hosts);
}

static void *make_breaker_budget(void)
{
    return scene_count(BREAKER | BUDGET);
}

static void *make_budget_limit(void)
{
    return scene_default(BUDGET | LIMIT, 0);
}

static void *make_default(void)
{
    return scene_default(ALL, 0);
}

static void *make_default_hosts(void)
{
    return scene_default(ALL, HOSTS);
}

/* ---- a healthy call, by parts ---- */

static void run_parts_breaker_budget(void *objects, struct worker *w, uint64_t times)
{
    struct scene *s = objects;
    struct becalm_permit permit;
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        const struct becalm_moment begin = tick(&l);
        l.sink += becalm_breaker_admit(s->target.breaker, &s->policy.breaker, &begin, &permit);
        becalm_budget_begin(s->target.budget, &s->policy.budget, &begin);
        const struct becalm_moment end = later(&l);
        becalm_budget_note(s->target.budget, &s->policy.budget, &end, &ok, false);
        becalm_breaker_note(s->target.breaker, &s->policy.breaker, &end, &permit, BECALM_VERDICT_OK, TOOK);
        becalm_budget_end(s->target.budget, &s->policy.budget);
    }
    lap_end(w, &l);
}

static void run_parts_budget_limit(void *objects, struct worker *w, uint64_t times)
{
    struct scene *s = objects;
    struct becalm_slot slot = {.held = false};
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        const struct becalm_moment begin = tick(&l);
        l.sink += becalm_limit_admit(s->target.limit, &s->policy.limit, &begin, s->policy.attempt_timeout, &slot);
        becalm_budget_begin(s->target.budget, &s->policy.budget, &begin);
        const struct becalm_moment end = later(&l);
        becalm_limit_note(s->target.limit, &s->policy.limit, &end, &slot, BECALM_EVIDENCE_SUCCESS);
        becalm_budget_note(s->target.budget, &s->policy.budget, &end, &ok, false);
        becalm_limit_give(s->target.limit, &slot);
        becalm_budget_end(s->target.budget, &s->policy.budget);
    }
    lap_end(w, &l);
}

/* ---- a call, by its steps ---- */

static const struct becalm_request request = {.idempotent = true};

static void run_call_init(void *objects, struct worker *w, uint64_t times)
{
    struct scene *s = objects;
    struct becalm_call call;
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        becalm_call_init(&call, &s->policy, &s->target, &request);
        keep(&call);
    }
    lap_end(w, &l);
}

static void run_call(void *objects, struct worker *w, uint64_t times)
{
    struct scene *s = objects;
    struct becalm_call call;
    struct becalm_action action;
    struct becalm_event begin = {.kind = BECALM_EVENT_BEGIN};
    struct becalm_event done = {.kind = BECALM_EVENT_DONE, .outcome = ok};
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        begin.at = tick(&l);
        done.at = later(&l);
        becalm_call_init(&call, &s->policy, &s->target, &request);
        becalm_call_step(&call, &begin, &action);
        done.slot = action.slot;
        becalm_call_step(&call, &done, &action);
        l.sink += action.flags;
    }
    lap_end(w, &l);
}

/* ---- breaker ---- */

static void *make_breaker_count(void)
{
    return scene_count(BREAKER);
}

static void *make_breaker_time(void)
{
    return scene_default(BREAKER, 0);
}

static void *make_breaker_open(void)
{
    struct becalm_policy policy;
    becalm_policy_defaults(&policy);
    becalm_breaker_resilience4j(&policy.breaker);
    policy.breaker.open_for = policy.breaker.open_cap = 86400 * BECALM_S; /* longer than the bench */
    struct scene *s = scene_make(&policy, BREAKER, 0);
    const struct becalm_moment at = {.now = MEASURE_BEGINS_AT};
    (void)becalm_breaker_force(s->target.breaker, &s->policy.breaker, &at, BECALM_BREAKER_OPEN);
    return s;
}

static void run_breaker(void *objects, struct worker *w, uint64_t times)
{
    struct scene *s = objects;
    struct becalm_permit permit;
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        const struct becalm_moment at = tick(&l);
        l.sink += becalm_breaker_admit(s->target.breaker, &s->policy.breaker, &at, &permit);
        becalm_breaker_note(s->target.breaker, &s->policy.breaker, &at, &permit, BECALM_VERDICT_OK, TOOK);
    }
    lap_end(w, &l);
}

static void run_breaker_failing(void *objects, struct worker *w, uint64_t times)
{
    struct scene *s = objects;
    struct becalm_permit permit;
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        const struct becalm_moment at = tick(&l);
        enum becalm_verdict verdict = fails_now(&l) ? BECALM_VERDICT_FAILED : BECALM_VERDICT_OK;
        l.sink += becalm_breaker_admit(s->target.breaker, &s->policy.breaker, &at, &permit);
        becalm_breaker_note(s->target.breaker, &s->policy.breaker, &at, &permit, verdict, TOOK);
    }
    lap_end(w, &l);
}

static void run_breaker_rejecting(void *objects, struct worker *w, uint64_t times)
{
    struct scene *s = objects;
    struct becalm_permit permit;
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        const struct becalm_moment at = tick(&l);
        l.sink += becalm_breaker_admit(s->target.breaker, &s->policy.breaker, &at, &permit);
    }
    lap_end(w, &l);
}

/* ---- budget ---- */

static struct scene *scene_budget(const struct becalm_budget_policy *budget)
{
    struct becalm_policy policy;
    becalm_policy_defaults(&policy);
    policy.budget = *budget;
    struct scene *s = scene_make(&policy, BUDGET, 0);
    struct becalm_moment at = {.now = MEASURE_BEGINS_AT};
    for (uint32_t i = 0; i < 1000; i++) { /* calls in progress, which the kinds that count them need */
        becalm_budget_begin(s->target.budget, &s->policy.budget, &at);
    }
    return s;
}

static void *make_budget(enum becalm_budget_kind kind)
{
    struct becalm_budget_policy budget;
    becalm_budget_defaults(&budget, kind);
    budget.window = 3600 * BECALM_S; /* so that those calls stay in it */
    return scene_budget(&budget);
}

static void *make_earned(void)
{
    return make_budget(BECALM_BUDGET_EARNED);
}

/* A deposit pays for a whole retry, so that deposits and withdrawals are in balance. */
static void *make_earned_even(void)
{
    struct becalm_budget_policy budget;
    becalm_budget_defaults(&budget, BECALM_BUDGET_EARNED);
    budget.share_ppm = 1000000;
    return scene_budget(&budget);
}

static void *make_ratio(void)
{
    return make_budget(BECALM_BUDGET_RATIO);
}

static void *make_tokens(void)
{
    return make_budget(BECALM_BUDGET_TOKENS);
}

static void *make_concurrency(void)
{
    return make_budget(BECALM_BUDGET_CONCURRENCY);
}

static void *make_adaptive(void)
{
    return make_budget(BECALM_BUDGET_ADAPTIVE);
}

static void *make_grpc(void)
{
    return make_budget(BECALM_BUDGET_GRPC);
}

static void *make_aws(void)
{
    return make_budget(BECALM_BUDGET_AWS);
}

static void *make_none(void)
{
    return make_budget(BECALM_BUDGET_NONE);
}

static void run_deposit(void *objects, struct worker *w, uint64_t times)
{
    struct scene *s = objects;
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        const struct becalm_moment at = tick(&l);
        becalm_budget_note(s->target.budget, &s->policy.budget, &at, &ok, false);
    }
    lap_end(w, &l);
}

static void run_deposit_take(void *objects, struct worker *w, uint64_t times)
{
    struct scene *s = objects;
    struct becalm_spend spend = {.held = false};
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        const struct becalm_moment at = tick(&l);
        becalm_budget_note(s->target.budget, &s->policy.budget, &at, &ok, false);
        l.sink += becalm_budget_take(s->target.budget, &s->policy.budget, &at, BECALM_OUTCOME_REJECTED, &spend);
        becalm_budget_give(s->target.budget, &s->policy.budget, &at, &spend, BECALM_SPEND_LOST);
    }
    lap_end(w, &l);
}

static void run_deposit_take_give(void *objects, struct worker *w, uint64_t times)
{
    struct scene *s = objects;
    struct becalm_spend spend = {.held = false};
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        const struct becalm_moment at = tick(&l);
        becalm_budget_note(s->target.budget, &s->policy.budget, &at, &ok, false);
        l.sink += becalm_budget_take(s->target.budget, &s->policy.budget, &at, BECALM_OUTCOME_REJECTED, &spend);
        becalm_budget_give(s->target.budget, &s->policy.budget, &at, &spend, BECALM_SPEND_WON);
    }
    lap_end(w, &l);
}

static void run_take_unused(void *objects, struct worker *w, uint64_t times)
{
    struct scene *s = objects;
    struct becalm_spend spend = {.held = false};
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        const struct becalm_moment at = tick(&l);
        l.sink += becalm_budget_take(s->target.budget, &s->policy.budget, &at, BECALM_OUTCOME_REJECTED, &spend);
        becalm_budget_give(s->target.budget, &s->policy.budget, &at, &spend, BECALM_SPEND_UNUSED);
    }
    lap_end(w, &l);
}

/* ---- backoff ---- */

static void *make_backoff(void)
{
    struct becalm_backoff_policy *policy = make_memory(sizeof *policy);
    becalm_backoff_defaults(policy);
    return policy;
}

static void backoff(const struct becalm_backoff_policy *policy, struct worker *w, uint64_t times, uint32_t n)
{
    struct becalm_backoff_draw draw = {.n = n, .hint = BECALM_NEVER};
    struct becalm_wait wait;
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        draw.random = tick(&l).random;
        becalm_backoff_wait(policy, &draw, &wait);
        l.sink += wait.wait;
    }
    lap_end(w, &l);
}

static void run_backoff_first(void *objects, struct worker *w, uint64_t times)
{
    backoff(objects, w, times, 1);
}

static void run_backoff_fifth(void *objects, struct worker *w, uint64_t times)
{
    backoff(objects, w, times, 5);
}

/* ---- window, sketch ---- */

static void *window_make(const struct becalm_window_shape *shape)
{
    return becalm_window_init(make_memory(becalm_window_bytes(shape)), shape);
}

static void *make_window_count(void)
{
    return window_make(&(struct becalm_window_shape){.kind = BECALM_WINDOW_COUNT, .size = 100, .lanes = 3});
}

static void *make_window_time(void)
{
    return window_make(&(struct becalm_window_shape){
        .kind = BECALM_WINDOW_TIME, .span = 10 * BECALM_S, .slices = 10, .lanes = 3, .cells = THREADS});
}

static void run_window(void *objects, struct worker *w, uint64_t times)
{
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        const struct becalm_moment at = tick(&l);
        l.sink += becalm_window_note(objects, &at, 1);
    }
    lap_end(w, &l);
}

static void run_window_failing(void *objects, struct worker *w, uint64_t times)
{
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        const struct becalm_moment at = tick(&l);
        l.sink += becalm_window_note(objects, &at, fails_now(&l) ? 3 : 1);
    }
    lap_end(w, &l);
}

static void run_window_read(void *objects, struct worker *w, uint64_t times)
{
    struct becalm_window_sums sums;
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        becalm_window_read(objects, tick(&l).now, &sums);
        l.sink += sums.lane[0];
    }
    lap_end(w, &l);
}

static void *make_sketch(void)
{
    struct becalm_sketch *sketch = make_memory(sizeof *sketch);
    becalm_sketch_init(sketch);
    return sketch;
}

static void run_sketch(void *objects, struct worker *w, uint64_t times)
{
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        const struct becalm_moment at = tick(&l);
        becalm_sketch_note(objects, at.now, TOOK + (at.random >> 43));
    }
    lap_end(w, &l);
}

/* With a note now and then, as in a call that does not hedge. */
static void run_sketch_typical(void *objects, struct worker *w, uint64_t times)
{
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        const struct becalm_moment at = tick(&l);
        if (l.turn % 256 == 0) {
            becalm_sketch_note(objects, at.now, TOOK);
        }
        l.sink += becalm_sketch_typical(objects, at.now);
    }
    lap_end(w, &l);
}

/* ---- throttle, rate ---- */

struct throttle_scene {
    struct becalm_throttle_policy policy;
    struct becalm_throttle *throttle;
};

static void *make_throttle(void)
{
    struct throttle_scene *s = make_memory(sizeof *s);
    becalm_throttle_defaults(&s->policy);
    s->throttle = becalm_throttle_init(make_memory(becalm_throttle_bytes(&s->policy, THREADS)), &s->policy, THREADS);
    return s;
}

static void run_throttle(void *objects, struct worker *w, uint64_t times)
{
    struct throttle_scene *s = objects;
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        const struct becalm_moment at = tick(&l);
        l.sink += becalm_throttle_admit(s->throttle, &s->policy, &at);
        becalm_throttle_note(s->throttle, &at, &ok);
    }
    lap_end(w, &l);
}

static void *make_rate(void)
{
    struct becalm_rate *rate = make_memory(sizeof *rate);
    becalm_rate_init(rate);
    return rate;
}

static void *make_rate_on(void)
{
    struct becalm_rate *rate = make_rate();
    const struct becalm_outcome limited = {.kind = BECALM_OUTCOME_RATE_LIMITED};
    becalm_rate_note(rate, MEASURE_BEGINS_AT, &limited);
    return rate;
}

static void run_rate_take(void *objects, struct worker *w, uint64_t times)
{
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        const struct becalm_moment at = tick(&l);
        l.sink += becalm_rate_take(objects, at.now);
        becalm_rate_give(objects, at.now);
    }
    lap_end(w, &l);
}

static void run_rate_note(void *objects, struct worker *w, uint64_t times)
{
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        becalm_rate_note(objects, tick(&l).now, &ok);
    }
    lap_end(w, &l);
}

/* ---- limit, gate, mark ---- */

struct limit_scene {
    struct becalm_limit_policy policy;
    struct becalm_gate_policy gate_policy;
    _Alignas(64) struct becalm_limit limit;
    _Alignas(64) struct becalm_gate gate;
    struct {
        _Alignas(64) struct becalm_queue queue;
        struct becalm_ticket ticket;
    } worker[THREADS];
};

static void *limit_scene_make(enum becalm_limit_kind kind)
{
    struct limit_scene *s = make_memory(sizeof *s);
    becalm_limit_defaults(&s->policy, kind);
    becalm_gate_defaults(&s->gate_policy);
    becalm_limit_init(&s->limit, &s->policy);
    becalm_gate_init(&s->gate);
    for (int t = 0; t < THREADS; t++) {
        becalm_queue_init(&s->worker[t].queue, &s->gate, &s->limit);
    }
    return s;
}

static void *make_aimd(void)
{
    return limit_scene_make(BECALM_LIMIT_AIMD);
}

static void *make_slots(void)
{
    return limit_scene_make(BECALM_LIMIT_SLOTS);
}

static void run_limit(void *objects, struct worker *w, uint64_t times)
{
    struct limit_scene *s = objects;
    struct becalm_slot slot = {.held = false};
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        const struct becalm_moment at = tick(&l);
        l.sink += becalm_limit_admit(&s->limit, &s->policy, &at, 5 * BECALM_S, &slot);
        const struct becalm_moment end = later(&l);
        becalm_limit_note(&s->limit, &s->policy, &end, &slot, BECALM_EVIDENCE_SUCCESS);
        becalm_limit_give(&s->limit, &slot);
    }
    lap_end(w, &l);
}

static void run_gate(void *objects, struct worker *w, uint64_t times)
{
    struct limit_scene *s = objects;
    struct becalm_queue *queue = &s->worker[w->cell].queue;
    struct becalm_ticket *ticket = &s->worker[w->cell].ticket;
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        const struct becalm_moment at = tick(&l);
        ticket->expires_at = at.now + 5 * BECALM_S;
        ticket->patience = BECALM_S;
        ticket->timeout = 5 * BECALM_S;
        l.sink += becalm_queue_enter(queue, &s->gate_policy, at.now, ticket);
        l.sink += becalm_queue_next(queue, &s->gate_policy, &s->policy, &at) != NULL;
        becalm_limit_give(&s->limit, &ticket->slot);
    }
    lap_end(w, &l);
}

static void *make_mark(void)
{
    struct becalm_mark *mark = make_memory(sizeof *mark);
    becalm_mark_init(mark);
    return mark;
}

static void run_mark(void *objects, struct worker *w, uint64_t times)
{
    (void)w;
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        becalm_mark_note(objects, &ok);
    }
    lap_end(w, &l);
}

/* ---- hosts ---- */

static void run_pick(void *objects, struct worker *w, uint64_t times)
{
    struct scene *s = objects;
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        const struct becalm_moment at = tick(&l);
        l.sink += becalm_pick(s->target.hosts, &s->policy.outlier, &at, NULL);
    }
    lap_end(w, &l);
}

static void run_host(void *objects, struct worker *w, uint64_t times)
{
    struct scene *s = objects;
    struct lap l = lap_begin(w);
    while (times-- > 0) {
        const struct becalm_moment at = tick(&l);
        uint32_t host = becalm_pick(s->target.hosts, &s->policy.outlier, &at, NULL);
        becalm_hosts_sent(s->target.hosts, host, at.now);
        becalm_hosts_note(s->target.hosts, &s->policy.outlier, &at, host, &ok);
    }
    lap_end(w, &l);
}

/* ---- the table ---- */

static const struct measure_case cases[] = {
    {"floor: empty loop that makes a moment", NULL, run_loop, 0, 0},
    {"floor: atomic add to one word", make_word, run_add, 0, 0},
    {"floor: the same, by a call that takes a moment", make_word, run_add_apart, 0, 0},
    {"floor: clock_gettime", NULL, run_clock, 0, 0},
    {"parts: healthy call, breaker + budget", make_breaker_budget, run_parts_breaker_budget, 8, 10},
    {"parts: healthy call, budget + limit", make_budget_limit, run_parts_budget_limit, 10, 45},
    {"call: init alone", make_default, run_call_init, 0, 0},
    {"call: begin + done, breaker + budget", make_breaker_budget, run_call, 0, 0},
    {"call: begin + done, budget + limit", make_budget_limit, run_call, 0, 0},
    {"call: begin + done, default target", make_default, run_call, 0, 0},
    {"call: begin + done, default target, 10 hosts", make_default_hosts, run_call, 0, 0},
    {"breaker: count 100, healthy", make_breaker_count, run_breaker, 5, 0},
    {"breaker: count 100, 5 % failures", make_breaker_count, run_breaker_failing, 10, 0},
    {"breaker: open, reject", make_breaker_open, run_breaker_rejecting, 3, 0},
    {"breaker: time 10 s (default), healthy", make_breaker_time, run_breaker, 0, 0},
    {"breaker: time 10 s (default), 5 % failures", make_breaker_time, run_breaker_failing, 0, 0},
    {"budget earned: deposit when full", make_earned, run_deposit, 2.5, 0},
    {"budget earned: deposit + take", make_earned_even, run_deposit_take, 7, 0},
    {"budget earned: deposit + take + give back", make_earned, run_deposit_take_give, 7, 0},
    {"budget ratio: take + give back", make_ratio, run_take_unused, 0, 0},
    {"budget tokens: take + give back", make_tokens, run_take_unused, 0, 0},
    {"budget concurrency: take + give back", make_concurrency, run_take_unused, 0, 0},
    {"budget adaptive: take + give back", make_adaptive, run_take_unused, 0, 0},
    {"budget grpc: take + give back", make_grpc, run_take_unused, 0, 0},
    {"budget aws: take + give back", make_aws, run_take_unused, 0, 0},
    {"budget none: take + give back", make_none, run_take_unused, 0, 0},
    {"backoff: full jitter, retry 1", make_backoff, run_backoff_first, 3, 0},
    {"backoff: full jitter, retry 5", make_backoff, run_backoff_fifth, 0, 0},
    {"window: count 100, healthy note", make_window_count, run_window, 0, 0},
    {"window: count 100, note, 5 % failures", make_window_count, run_window_failing, 0, 0},
    {"window: time 10 s, note", make_window_time, run_window, 0, 0},
    {"window: time 10 s, read", make_window_time, run_window_read, 0, 0},
    {"sketch: note", make_sketch, run_sketch, 0, 0},
    {"sketch: typical (cached)", make_sketch, run_sketch_typical, 0, 0},
    {"throttle: admit + note", make_throttle, run_throttle, 0, 0},
    {"rate: take + give back, off", make_rate, run_rate_take, 0, 0},
    {"rate: take + give back, on", make_rate_on, run_rate_take, 0, 0},
    {"rate: note, off", make_rate, run_rate_note, 0, 0},
    {"rate: note, on", make_rate_on, run_rate_note, 0, 0},
    {"limit aimd: admit + note + give", make_aimd, run_limit, 0, 0},
    {"limit slots: admit + note + give", make_slots, run_limit, 0, 0},
    {"gate: enter + next + give", make_slots, run_gate, 0, 0},
    {"mark: note, healthy", make_mark, run_mark, 0, 0},
    {"pick: one of 10 hosts", make_default_hosts, run_pick, 0, 0},
    {"pick + sent + note: one of 10 hosts", make_default_hosts, run_host, 0, 0},
};

enum { CASES = sizeof cases / sizeof cases[0] };

/* ---- printing ---- */

struct options {
    struct measure_options measure;
    unsigned quantile;
    bool tsv;
    const char *only;
};

static void print_machine(const struct options *options)
{
    char line[256];
    double load[1] = {0};
    char cpu[256] = "unknown processor\n";
    FILE *info = fopen("/proc/cpuinfo", "r");
    while (info != NULL && fgets(line, sizeof line, info) != NULL) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            snprintf(cpu, sizeof cpu, "%s", colon + 2);
            break;
        }
    }
    if (info != NULL) {
        fclose(info);
    }
    (void)getloadavg(load, 1);
    printf("becalm %s, compiler " __VERSION__ "\n", BECALM_VERSION);
    printf("%ld cores, load %.1f before the run, %s", sysconf(_SC_NPROCESSORS_ONLN), load[0], cpu);
    printf("ns per operation: quantile %u of %u batches of %.1f ms, the cases by turns\n\n", options->quantile,
           options->measure.rotations, (double)options->measure.batch / (double)BECALM_MS);
}

static void print_ns(double ns)
{
    if (ns < 0) {
        printf("%10s", "-");
    } else {
        printf("%10.1f", ns);
    }
}

static void print_figure(double figure)
{
    if (figure > 0) {
        printf("%8g", figure);
    } else {
        printf("%8s", "");
    }
}

/* The first word of a name is its group. */
static bool same_group(const char *a, const char *b)
{
    size_t length = strcspn(a, " :");
    return strncmp(a, b, length) == 0 && strcspn(b, " :") == length;
}

static void print_table(const struct series *one, const struct series *two, size_t count, unsigned quantile)
{
    uint32_t disturbed = 0;
    printf("%-50s%10s%10s%16s\n", "", "1 thread", "2 threads", "figures");
    for (size_t i = 0; i < count; i++) {
        const struct measure_case *what = one[i].what;
        if (i > 0 && !same_group(one[i - 1].what->name, what->name)) {
            printf("\n");
        }
        printf("%-50s", what->name);
        print_ns(series_quantile(&one[i], quantile));
        print_ns(two == NULL ? -1 : series_quantile(&two[i], quantile));
        print_figure(what->figure_one);
        print_figure(what->figure_two);
        printf("\n");
        disturbed += one[i].disturbed + (two == NULL ? 0 : two[i].disturbed);
    }
    printf("\n%u batches were left out, because somebody else had a core meanwhile\n", disturbed);
}

static void print_tsv(const struct series *all, size_t count, unsigned quantile)
{
    for (size_t i = 0; i < count; i++) {
        printf("%s\t%d\t%.2f\n", all[i].what->name, all[i].threads, series_quantile(&all[i], quantile));
    }
}

static void print_bytes(void)
{
    struct becalm_policy policy;
    becalm_policy_defaults(&policy);
    struct becalm_policy count = policy;
    becalm_breaker_resilience4j(&count.breaker);
    const struct {
        const char *name;
        size_t bytes;
    } sizes[] = {
        {"call, with its record of eight attempts", sizeof(struct becalm_call)},
        {"event", sizeof(struct becalm_event)},
        {"action", sizeof(struct becalm_action)},
        {"policy", sizeof policy},
        {"target with the default policy, 1 thread", becalm_target_bytes(&policy, 0, 1)},
        {"target with the default policy, 2 threads", becalm_target_bytes(&policy, 0, 2)},
        {"the same with 10 hosts", becalm_target_bytes(&policy, HOSTS, 2)},
        {"of which the latency sketch", sizeof(struct becalm_sketch)},
        {"breaker, count 100", becalm_breaker_bytes(&count.breaker, 2)},
        {"breaker, time 10 s (default), 2 threads", becalm_breaker_bytes(&policy.breaker, 2)},
        {"budget earned, 2 threads", becalm_budget_bytes(&policy.budget, 2)},
        {"limit", sizeof(struct becalm_limit)},
        {"gate", sizeof(struct becalm_gate)},
        {"queue of one worker", sizeof(struct becalm_queue)},
        {"throttle, 2 threads", becalm_throttle_bytes(&policy.throttle, 2)},
        {"rate", sizeof(struct becalm_rate)},
        {"hedge", sizeof(struct becalm_hedge)},
        {"mark", sizeof(struct becalm_mark)},
    };
    printf("\n%-50s%10s\n", "", "bytes");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        printf("%-50s%10zu\n", sizes[i].name, sizes[i].bytes);
    }
}

/* ---- the command ---- */

static int usage(void)
{
    fprintf(stderr, "usage: bench_engine [--tsv] [--only TEXT] [--rotations N] [--quantile PERCENT]\n"
                    "  --tsv               case, threads and ns per operation, separated by tabs\n"
                    "  --only TEXT         the cases whose name contains TEXT, and the floor\n"
                    "  --rotations N       batches per case, 301\n"
                    "  --quantile PERCENT  which of them to print, 50: the median\n");
    return 2;
}

/* False: the arguments make no sense. */
static bool options_read(struct options *options, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--tsv") == 0) {
            options->tsv = true;
            continue;
        }
        if (strcmp(argv[i], "--only") == 0 && *value != '\0') {
            options->only = value;
        } else if (strcmp(argv[i], "--rotations") == 0 && atoi(value) > 0) {
            options->measure.rotations = (uint32_t)atoi(value);
        } else if (strcmp(argv[i], "--quantile") == 0 && atoi(value) > 0 && atoi(value) <= 100) {
            options->quantile = (unsigned)atoi(value);
        } else {
            return false;
        }
        i++;
    }
    return true;
}

static size_t cases_chosen(const char *only, const struct measure_case *chosen[static CASES])
{
    size_t count = 0;
    for (size_t i = 0; i < CASES; i++) {
        if (only == NULL || strstr(cases[i].name, only) != NULL || same_group(cases[i].name, "floor")) {
            chosen[count++] = &cases[i];
        }
    }
    return count;
}

int main(int argc, char **argv)
{
    struct options options = {.measure = {.rotations = 301, .batch = 200 * BECALM_US}, .quantile = 50};
    if (!options_read(&options, argc, argv)) {
        return usage();
    }
    const struct measure_case *chosen[CASES];
    size_t count = cases_chosen(options.only, chosen);
    bool two = core_at(1) != NO_CORE; /* on one core there is no "at the same time" */
    size_t total = two ? 2 * count : count;
    struct series *all = make_memory(total * sizeof *all);
    for (size_t i = 0; i < total; i++) {
        series_init(&all[i], chosen[i % count], i < count ? 1 : THREADS, options.measure.rotations);
    }
    if (!options.tsv) {
        print_machine(&options);
    }
    measure_all(all, total, &options.measure);
    if (options.tsv) {
        print_tsv(all, total, options.quantile);
    } else {
        print_table(all, two ? all + count : NULL, count, options.quantile);
        print_bytes();
    }
    return 0;
}
