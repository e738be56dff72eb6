/* SPDX-License-Identifier: MIT */
#include <becalm/call.h>

#include "unit/breaker_lab.h"

/* A decision from two reads of shared memory may be wrong about both: another thread may act in between. Here it does,
 * in every place: a scene is played once for each step of the first thread (between.h), and the other thread acts right
 * before that step. The rules must hold afterwards, for every place. */

#define NOW     (100 * BECALM_S)
#define WORKERS 3

static struct {
    void (*acts)(void *scene);
    void *scene;
    unsigned steps; /* until it does */
} other;

void between_point(void)
{
    if (other.acts != NULL && other.steps-- == 0) {
        void (*acts)(void *) = other.acts;
        other.acts = NULL; /* it is not interrupted itself */
        acts(other.scene);
    }
}

struct play {
    void *scene;
    void (*ready)(void *scene);
    void (*first)(void *scene);
    void (*second)(void *scene);
    void (*check)(void *scene);
};

/* The last time, the other thread acts after the first. */
static void play_everywhere(const struct play *play)
{
    bool within = true;
    unsigned steps = 0;
    for (; within; steps++) {
        play->ready(play->scene);
        other.scene = play->scene;
        other.steps = steps;
        other.acts = play->second;
        play->first(play->scene);
        within = other.acts == NULL;
        other.acts = NULL;
        if (!within) {
            play->second(play->scene);
        }
        play->check(play->scene);
    }
    check_true(steps > 1);
}

/* ---- calls of a gateway with three workers ---- */

struct member {
    struct becalm_call call;
    struct becalm_action action;
    struct becalm_queue queue;
    struct becalm_parking parking;
};

struct gateway {
    struct becalm_policy policy;
    struct becalm_target target;
    struct member member[WORKERS];
    uint64_t woken; /* workers that have to look, as bits */
    uint32_t max_queue;
    bool down;
};

enum { HOLDER, FIRST, SECOND };

static _Alignas(64) unsigned char memory[1 << 20];

static struct becalm_moment moment(uint32_t cell)
{
    return (struct becalm_moment){.now = NOW, .random = 1, .cell = cell};
}

static void step(struct gateway *g, uint32_t number, const struct becalm_event *event);

/* As src/proxy/worker.c does it. */
static void serve(struct gateway *g, uint32_t number)
{
    struct becalm_queue *queue = &g->member[number].queue;
    struct becalm_moment at = moment(number);
    struct becalm_ticket *ticket;
    while ((ticket = becalm_queue_next(queue, &g->policy.gate, &g->policy.limit, &at)) != NULL) {
        step(g, number, &(struct becalm_event){.kind = BECALM_EVENT_SERVE, .at = at});
    }
    g->woken |= becalm_queue_others(queue);
}

static void step(struct gateway *g, uint32_t number, const struct becalm_event *event)
{
    struct member *m = &g->member[number];
    struct becalm_event now = *event;
    now.at = moment(number);
    becalm_call_step(&m->call, &now, &m->action);
    if ((m->action.flags & BECALM_DO_SERVE) != 0) {
        serve(g, number);
    }
}

static void begin(struct gateway *g, uint32_t number)
{
    struct member *m = &g->member[number];
    const struct becalm_request request = {.idempotent = true, .queue = &m->queue, .parking = &m->parking, .owner = m};
    becalm_call_init(&m->call, &g->policy, &g->target, &request);
    step(g, number, &(struct becalm_event){.kind = BECALM_EVENT_BEGIN});
}

static bool flies(const struct gateway *g, uint32_t number)
{
    return g->member[number].call.phase == BECALM_PHASE_FLYING;
}

/* Workers that were woken look at their queue, until no worker wakes another one any more. */
static void settle(struct gateway *g)
{
    for (int i = 0; i < 100 && g->woken != 0; i++) {
        uint32_t number = (uint32_t)__builtin_ctzll(g->woken);
        g->woken &= g->woken - 1;
        becalm_queue_call(&g->member[number].queue);
        serve(g, number);
    }
    check_eq_u64(g->woken, 0);
}

static void gateway_make(struct gateway *g)
{
    becalm_policy_defaults(&g->policy);
    becalm_limit_defaults(&g->policy.limit, BECALM_LIMIT_FIXED);
    g->policy.limit.max = 1;
    g->policy.gate.max_queue = g->max_queue;
    g->policy.gate.min_queue = 0;
    g->policy.max_retries = 0;
    check_true(becalm_target_bytes(&g->policy, 0, WORKERS) <= sizeof memory);
    check_true(becalm_target_init(&g->target, memory, &g->policy, 0, WORKERS) == 0);
    for (uint32_t i = 0; i < WORKERS; i++) {
        becalm_queue_init(&g->member[i].queue, g->target.gate, g->target.limit);
        becalm_queue_share(&g->member[i].queue, i);
        becalm_parking_init(&g->member[i].parking, g->target.restart);
    }
    g->woken = 0;
}

/* The only slot is taken. */
static void slot_ready(void *scene)
{
    struct gateway *g = scene;
    gateway_make(g);
    begin(g, HOLDER);
    check_true(flies(g, HOLDER));
}

static void first_begins(void *scene)
{
    begin(scene, FIRST);
}

static void slot_comes_free(void *scene)
{
    step(scene, HOLDER, &(struct becalm_event){.kind = BECALM_EVENT_DONE, .outcome = {.kind = BECALM_OUTCOME_OK}});
}

static void slot_comes_free_and_another_asks(void *scene)
{
    slot_comes_free(scene);
    begin(scene, SECOND);
}

/* A call is refused, or waits, only because another call has the slot. */
static void slot_is_used(void *scene)
{
    struct gateway *g = scene;
    settle(g);
    check_eq_u64(becalm_limit_in_flight(g->target.limit), 1);
    check_true(flies(g, FIRST) != flies(g, SECOND));
}

static void slot_is_the_first_ones(void *scene)
{
    struct gateway *g = scene;
    settle(g);
    check_true(flies(g, FIRST));
}

static void test_between__a_call_waits_while_the_slot_comes_free(void **unused)
{
    (void)unused;
    static struct gateway g = {.max_queue = 1000};
    play_everywhere(&(struct play){&g, slot_ready, first_begins, slot_comes_free, slot_is_the_first_ones});
    play_everywhere(&(struct play){&g, slot_ready, slot_comes_free, first_begins, slot_is_the_first_ones});
}

static void test_between__of_two_calls_one_gets_the_slot(void **unused)
{
    (void)unused;
    static struct gateway g;
    static const uint32_t rooms[] = {0, 1, 1000};
    for (unsigned i = 0; i < 3; i++) {
        g.max_queue = rooms[i];
        play_everywhere(&(struct play){&g, slot_ready, first_begins, slot_comes_free_and_another_asks, slot_is_used});
    }
}

/* ---- a line with one place, which is taken ---- */

static void line_ready(void *scene)
{
    struct gateway *g = scene;
    gateway_make(g);
    if (g->down) {
        g->policy.limit.max = 10;
        becalm_restart_refused(g->target.restart, NULL, NULL, BECALM_NO_HOST, NOW);
    } else {
        struct becalm_slot slot;
        struct becalm_moment at = moment(0);
        check_true(becalm_limit_admit(g->target.limit, &g->policy.limit, &at, BECALM_S, &slot));
    }
    begin(g, HOLDER);
    check_true(becalm_call_in_line(&g->member[HOLDER].call));
}

static void one_leaves_and_another_asks(void *scene)
{
    step(scene, HOLDER, &(struct becalm_event){.kind = BECALM_EVENT_CANCEL});
    begin(scene, SECOND);
}

static void one_waits(void *scene)
{
    struct gateway *g = scene;
    settle(g);
    check_true(becalm_call_in_line(&g->member[FIRST].call) != becalm_call_in_line(&g->member[SECOND].call));
    check_eq_u64(g->down ? becalm_restart_parked(g->target.restart) : becalm_gate_waiting(g->target.gate), 1);
}

static void test_between__of_two_calls_one_gets_the_place_in_line(void **unused)
{
    (void)unused;
    static struct gateway gate = {.max_queue = 1};
    static struct gateway parking = {.max_queue = 1, .down = true};
    play_everywhere(&(struct play){&gate, line_ready, first_begins, one_leaves_and_another_asks, one_waits});
    play_everywhere(&(struct play){&parking, line_ready, first_begins, one_leaves_and_another_asks, one_waits});
}

/* ---- a host comes back ---- */

static void probe_ready(void *scene)
{
    struct gateway *g = scene;
    gateway_make(g);
    g->policy.limit.max = 10;
    begin(g, HOLDER);
    becalm_restart_refused(g->target.restart, NULL, NULL, BECALM_NO_HOST, NOW);
}

static void host_is_back(void *scene)
{
    struct gateway *g = scene;
    if (becalm_call_accepted(&g->member[HOLDER].call, 0, NOW)) {
        g->woken |= 1u << FIRST;
    }
}

/* It is sent, or it was woken, or it looks again at once. */
static void nobody_is_left_behind(void *scene)
{
    struct gateway *g = scene;
    struct member *m = &g->member[FIRST];
    bool looks = g->woken != 0 || becalm_parking_wake_at(&m->parking, g->policy.attempt_timeout, NOW) <= NOW;
    if (looks && becalm_parking_next(&m->parking, g->policy.attempt_timeout, NOW) != NULL) {
        step(g, FIRST, &(struct becalm_event){.kind = BECALM_EVENT_SERVE});
    }
    check_true(flies(g, FIRST));
}

static void test_between__a_call_is_parked_while_its_host_comes_back(void **unused)
{
    (void)unused;
    static struct gateway g = {.max_queue = 1000};
    play_everywhere(&(struct play){&g, probe_ready, first_begins, host_is_back, nobody_is_left_behind});
    play_everywhere(&(struct play){&g, probe_ready, host_is_back, first_begins, nobody_is_left_behind});
}

/* ---- breaker ---- */

struct trial {
    struct lab lab;
    struct becalm_permit first;
    struct becalm_permit second;
    struct becalm_permit good;
    becalm_ns ahead; /* the second one's clock */
};

static bool permit_ask(struct trial *t, struct becalm_permit *permit, becalm_ns ahead)
{
    struct becalm_moment at = t->lab.at;
    at.now += ahead;
    return becalm_breaker_admit(t->lab.b, &t->lab.policy, &at, permit);
}

static void first_asks(void *scene)
{
    struct trial *t = scene;
    (void)permit_ask(t, &t->first, 0);
}

static void second_asks(void *scene)
{
    struct trial *t = scene;
    (void)permit_ask(t, &t->second, t->ahead);
}

static void both_are_admitted(void *scene)
{
    struct trial *t = scene;
    check_true(t->first.held && t->second.held);
}

/* The open time is over, and there are two probes. */
static void door_ready(void *scene)
{
    struct trial *t = scene;
    lab_small(&t->lab);
    force(&t->lab, OPEN);
    wait_for_retest(&t->lab);
}

static void test_between__two_calls_find_the_open_time_over(void **unused)
{
    (void)unused;
    static struct trial t;
    play_everywhere(&(struct play){&t, door_ready, first_asks, second_asks, both_are_admitted});
}

/* The same for calls, which ask once before they wait for a slot. */
static void gateway_door_ready(void *scene)
{
    struct gateway *g = scene;
    struct becalm_moment at = moment(0);
    gateway_make(g);
    g->policy.limit.max = 10;
    g->policy.breaker.probes = 2;
    at.now -= 60 * BECALM_S;
    (void)becalm_breaker_force(g->target.breaker, &g->policy.breaker, &at, OPEN);
    check_true(becalm_breaker_retest_at(g->target.breaker) < NOW);
}

static void second_begins(void *scene)
{
    begin(scene, SECOND);
}

static void both_fly(void *scene)
{
    struct gateway *g = scene;
    check_true(flies(g, FIRST) && flies(g, SECOND));
}

static void test_between__two_calls_probe(void **unused)
{
    (void)unused;
    static struct gateway g = {.max_queue = 1000};
    play_everywhere(&(struct play){&g, gateway_door_ready, first_begins, second_begins, both_fly});
}

/* Half open, one of ten probes went well. The lease is over for the second one's clock, which so closes it. */
static void lease_ready(void *scene)
{
    struct trial *t = scene;
    lab_small(&t->lab);
    t->lab.policy.probes = 10;
    t->lab.policy.failure_share_ppm = 1000000;
    t->ahead = t->lab.policy.half_open_for;
    force(&t->lab, HALF_OPEN);
    check_true(permit_ask(t, &t->good, 0));
    becalm_breaker_note(t->lab.b, &t->lab.policy, &t->lab.at, &t->good, OK, 0);
}

static void test_between__a_call_probes_while_another_ends_the_trial(void **unused)
{
    (void)unused;
    static struct trial t;
    play_everywhere(&(struct play){&t, lease_ready, first_asks, second_asks, both_are_admitted});
}

/* ---- budget ---- */

struct purse {
    struct becalm_budget_policy policy;
    struct becalm_budget *b;
    struct becalm_spend held;
    struct becalm_spend first;
    struct becalm_spend second;
};

/* Room for one retry, which is taken. */
static void purse_ready(void *scene)
{
    struct purse *p = scene;
    const enum becalm_budget_kind kind = p->policy.kind;
    becalm_budget_defaults(&p->policy, kind);
    p->policy.share_ppm = kind == BECALM_BUDGET_CONCURRENCY ? 0 : 100000;
    p->policy.start = BECALM_TOKEN;
    p->policy.min_concurrency = 1;
    p->policy.max_share_ppm = 100000;
    p->policy.capacity = 1;
    p->policy.refill_per_second = 0;
    p->policy.retry_cost = 1;
    p->policy.timeout_cost = 1;
    p->policy.window = 10 * BECALM_S;
    p->b = becalm_budget_init(memory, &p->policy, 1);
    struct becalm_moment at = moment(0);
    for (int i = 0; i < 10; i++) {
        becalm_budget_begin(p->b, &p->policy, &at);
    }
    p->first = p->second = (struct becalm_spend){0};
    check_true(becalm_budget_take(p->b, &p->policy, &at, BECALM_OUTCOME_FAILED, &p->held));
}

static void take(struct purse *p, struct becalm_spend *spend)
{
    struct becalm_moment at = moment(0);
    (void)becalm_budget_take(p->b, &p->policy, &at, BECALM_OUTCOME_FAILED, spend);
}

static void first_takes(void *scene)
{
    struct purse *p = scene;
    take(p, &p->first);
}

static void one_is_given_back_and_another_takes(void *scene)
{
    struct purse *p = scene;
    struct becalm_moment at = moment(0);
    becalm_budget_give(p->b, &p->policy, &at, &p->held, BECALM_SPEND_UNUSED);
    take(p, &p->second);
}

static void one_has_it(void *scene)
{
    struct purse *p = scene;
    check_true(p->first.held != p->second.held);
}

static void test_between__of_two_calls_one_gets_the_retry(void **unused)
{
    (void)unused;
    static struct purse p;
    for (unsigned kind = 0; kind < BECALM_BUDGET_NONE; kind++) {
        p.policy.kind = (enum becalm_budget_kind)kind;
        if (p.policy.kind != BECALM_BUDGET_GRPC) { /* which counts failures, not retries */
            play_everywhere(
                &(struct play){&p, purse_ready, first_takes, one_is_given_back_and_another_takes, one_has_it});
        }
    }
}

/* ---- a caller's limit, and a service that rejects the last of each burst ---- */

#define PAGE   71
#define PLACES 58

struct bursts {
    struct becalm_limit limit;
    struct becalm_limit_policy policy;
    struct becalm_moment at;
    struct becalm_slot slot[PAGE];
};

static void burst_note(struct bursts *b, uint32_t number, enum becalm_evidence evidence)
{
    becalm_limit_note(&b->limit, &b->policy, &b->at, &b->slot[number], evidence);
    becalm_limit_give(&b->limit, &b->slot[number]);
}

/* All of a page are sent, and the last of them rejected. */
static void burst_begin(struct bursts *b)
{
    b->at.now += BECALM_S;
    for (uint32_t i = 0; i < PAGE; i++) {
        b->slot[i].held = false;
        check_true(becalm_limit_admit(&b->limit, &b->policy, &b->at, BECALM_S, &b->slot[i]));
    }
    for (uint32_t i = PLACES; i < PAGE; i++) {
        burst_note(b, i, BECALM_EVIDENCE_REJECTED);
    }
    b->at.now += BECALM_MS;
}

static void burst_end(struct bursts *b)
{
    for (uint32_t i = 0; i < PLACES; i++) {
        burst_note(b, i, BECALM_EVIDENCE_SUCCESS);
    }
}

/* One burst was rejected in part and began the notes; the next one goes on. */
static void burst_ready(void *scene)
{
    struct bursts *b = scene;
    memset(b, 0, sizeof *b);
    becalm_limit_defaults(&b->policy, BECALM_LIMIT_AIMD);
    becalm_limit_init(&b->limit, &b->policy);
    b->at.now = NOW;
    burst_begin(b);
    burst_end(b);
    burst_begin(b);
}

/* The next success is the one that shows that the limit is too wide. */
static void cut_ready(void *scene)
{
    struct bursts *b = scene;
    burst_ready(scene);
    burst_end(b);
    burst_begin(b);
    burst_note(b, 0, BECALM_EVIDENCE_SUCCESS);
    burst_note(b, 1, BECALM_EVIDENCE_SUCCESS);
    check_true(becalm_limit_now(&b->limit, &b->policy) >= PAGE);
}

static void one_succeeds(void *scene)
{
    burst_note(scene, 2, BECALM_EVIDENCE_SUCCESS);
}

static void one_is_rejected(void *scene)
{
    burst_note(scene, 3, BECALM_EVIDENCE_REJECTED);
}

static void one_is_rejected_and_another_succeeds(void *scene)
{
    one_is_rejected(scene);
    burst_note(scene, 4, BECALM_EVIDENCE_SUCCESS);
}

static void another_succeeds(void *scene)
{
    burst_note(scene, 3, BECALM_EVIDENCE_SUCCESS);
}

static void timeouts_cut(void *scene)
{
    struct bursts *b = scene;
    b->limit.units = 20;
}

static void it_is_one_burst(void *scene)
{
    const struct bursts *b = scene;
    check_eq_u64(b->limit.bursts / 2, 1);
}

static void limit_is_not_wider_again(void *scene)
{
    const struct bursts *b = scene;
    check_between_u64(becalm_limit_now(&b->limit, &b->policy), 1, 2); /* the success may widen the limit by one */
}

static void limit_is_cut_once(void *scene)
{
    const struct bursts *b = scene;
    check_between_u64(becalm_limit_now(&b->limit, &b->policy), 31, 32);
    check_eq_u64(b->limit.narrowed & 0xff, 0); /* no cut before this one */
}

static void test_between__a_burst_counts_once(void **unused)
{
    (void)unused;
    static struct bursts b;
    play_everywhere(
        &(struct play){&b, burst_ready, one_succeeds, one_is_rejected_and_another_succeeds, it_is_one_burst});
    play_everywhere(&(struct play){&b, burst_ready, one_is_rejected, one_succeeds, it_is_one_burst});
}

static void test_between__rejections_cut_while_timeouts_do(void **unused)
{
    (void)unused;
    static struct bursts b;
    play_everywhere(&(struct play){&b, cut_ready, one_succeeds, timeouts_cut, limit_is_not_wider_again});
}

static void test_between__two_successes_show_that_the_limit_is_too_wide(void **unused)
{
    (void)unused;
    static struct bursts b;
    play_everywhere(&(struct play){&b, cut_ready, one_succeeds, another_succeeds, limit_is_cut_once});
}

BECALM_TESTS(cmocka_unit_test(test_between__a_call_waits_while_the_slot_comes_free),
             cmocka_unit_test(test_between__of_two_calls_one_gets_the_slot),
             cmocka_unit_test(test_between__of_two_calls_one_gets_the_place_in_line),
             cmocka_unit_test(test_between__a_call_is_parked_while_its_host_comes_back),
             cmocka_unit_test(test_between__two_calls_find_the_open_time_over),
             cmocka_unit_test(test_between__two_calls_probe),
             cmocka_unit_test(test_between__a_call_probes_while_another_ends_the_trial),
             cmocka_unit_test(test_between__of_two_calls_one_gets_the_retry),
             cmocka_unit_test(test_between__a_burst_counts_once),
             cmocka_unit_test(test_between__rejections_cut_while_timeouts_do),
             cmocka_unit_test(test_between__two_successes_show_that_the_limit_is_too_wide))
