/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L /* clock_gettime, sem_timedwait */
#include <becalm/gate.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <time.h>

#include "lib/check.h"

#define MANY 200

/* One gate with one worker's queue, over a fixed limit of one slot unless a test says otherwise. */
struct scene {
    struct becalm_gate gate;
    struct becalm_gate_policy policy;
    struct becalm_limit limit;
    struct becalm_limit_policy limit_policy;
    struct becalm_queue queue;
    struct becalm_moment at;
    struct becalm_slot busy; /* the call that occupies the only slot */
    struct becalm_ticket ticket[MANY];
};

static void scene_init(struct scene *scene)
{
    memset(scene, 0, sizeof *scene);
    becalm_gate_defaults(&scene->policy);
    scene->policy.max_interval = scene->policy.interval; /* 100 ms, with any timeouts */
    becalm_gate_init(&scene->gate);
    scene->limit_policy = (struct becalm_limit_policy){BECALM_LIMIT_FIXED, 1, 1, 0};
    becalm_limit_init(&scene->limit, &scene->limit_policy);
    becalm_queue_init(&scene->queue, &scene->gate, &scene->limit);
    scene->at.now = 100 * BECALM_S;
}

static void scene_occupy(struct scene *scene)
{
    check_true(becalm_limit_admit(&scene->limit, &scene->limit_policy, &scene->at, BECALM_S, &scene->busy));
}

static void scene_free(struct scene *scene)
{
    becalm_limit_give(&scene->limit, &scene->busy);
}

static bool scene_enter(struct scene *scene, unsigned number)
{
    struct becalm_ticket *ticket = &scene->ticket[number];
    ticket->owner = scene;
    ticket->expires_at = scene->at.now + 16 * BECALM_S;
    ticket->patience = 1250 * BECALM_MS;
    ticket->timeout = 5 * BECALM_S;
    return becalm_queue_enter(&scene->queue, &scene->policy, scene->at.now, ticket);
}

static void scene_enter_all(struct scene *scene, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        check_true(scene_enter(scene, i));
    }
}

static struct becalm_ticket *scene_next(struct scene *scene)
{
    return becalm_queue_next(&scene->queue, &scene->policy, &scene->limit_policy, &scene->at);
}

/* The ticket that waits first in the first line. */
static struct becalm_ticket *first_of(const struct becalm_queue *queue)
{
    return queue->busy == 0 ? NULL : queue->line[__builtin_ctzll(queue->busy)].first;
}

/* The next ticket is this one, with this verdict; its slot is given back. */
static void check_next(struct scene *scene, unsigned number, enum becalm_reason verdict)
{
    struct becalm_ticket *ticket = scene_next(scene);
    check_true(ticket != NULL);
    check_eq_u64((uint64_t)(ticket - scene->ticket), number);
    check_eq_str(becalm_reason_word(ticket->verdict), becalm_reason_word(verdict));
    check_true(ticket->queue == NULL);
    check_true(ticket->slot.held == (verdict == BECALM_WHY_OK));
    becalm_limit_give(&scene->limit, &ticket->slot);
    check_eq_u64(becalm_limit_in_flight(&scene->limit), 0);
}

static void test_gate__an_empty_queue_serves_nobody(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    check_true(scene_next(&scene) == NULL);
    check_true(!becalm_queue_busy(&scene.queue));
    check_eq_u64(becalm_gate_waiting(&scene.gate), 0);
    check_eq_u64(becalm_limit_in_flight(&scene.limit), 0);
    check_true(!becalm_gate_overloaded(&scene.gate));
}

static void check_refused(const struct becalm_gate_policy *policy, const char *expected)
{
    const char *why = NULL;
    check_true(becalm_gate_check(policy, &why) == BECALM_EINVAL);
    check_eq_str(why, expected);
    check_true(becalm_gate_check(policy, NULL) == BECALM_EINVAL);
}

#define CHECK_FIELD(field, value, expected) \
    do {                                    \
        struct becalm_gate_policy policy;   \
        becalm_gate_defaults(&policy);      \
        policy.field = (value);             \
        check_refused(&policy, (expected)); \
    } while (0)

static void test_gate__names_the_field_that_is_wrong(void **state)
{
    (void)state;
    CHECK_FIELD(target_wait, 0, "target_wait must be 1 us to 1 h");
    CHECK_FIELD(target_wait, BECALM_NEVER, "target_wait must be 1 us to 1 h");
    CHECK_FIELD(interval, 999, "interval must be 1 us to 1 h");
    CHECK_FIELD(interval, 3601 * BECALM_S, "interval must be 1 us to 1 h");
    CHECK_FIELD(max_interval, 99 * BECALM_MS, "max_interval must be interval to 1 h");
    CHECK_FIELD(max_interval, 3601 * BECALM_S, "max_interval must be interval to 1 h");
    CHECK_FIELD(max_wait, 0, "max_wait must be 1 us to 1 h");
    CHECK_FIELD(max_wait, BECALM_NEVER, "max_wait must be 1 us to 1 h");
    CHECK_FIELD(min_queue, 1000001, "min_queue must be at most 1000000");
    CHECK_FIELD(max_queue, UINT32_MAX, "max_queue must be at most 1000000");
    CHECK_FIELD(cpu_threshold_ppm, 1000001, "cpu_threshold_ppm must be at most 1000000");
    CHECK_FIELD(retry_after, BECALM_NEVER, "retry_after must be at most 1 h");
}

static void test_gate__zero_means_zero_where_it_makes_sense(void **state)
{
    (void)state;
    struct becalm_gate_policy policy;
    becalm_gate_defaults(&policy);
    check_true(becalm_gate_check(&policy, NULL) == 0);
    policy.min_queue = 0;
    policy.max_queue = 0;
    policy.cpu_threshold_ppm = 0;
    policy.retry_after = 0;
    check_true(becalm_gate_check(&policy, NULL) == 0);
}

static void test_gate__serves_in_the_order_of_arrival(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene_enter_all(&scene, 5);
    check_true(becalm_queue_busy(&scene.queue));
    check_eq_u64(becalm_gate_waiting(&scene.gate), 5);
    for (unsigned i = 0; i < 5; i++) {
        check_next(&scene, i, BECALM_WHY_OK);
    }
    check_true(scene_next(&scene) == NULL);
    check_eq_u64(becalm_gate_waiting(&scene.gate), 0);
}

static void test_gate__one_freed_slot_serves_one(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene_occupy(&scene);
    scene_enter_all(&scene, 2);
    check_true(scene_next(&scene) == NULL);
    check_eq_u64(becalm_limit_in_flight(&scene.limit), 1);
    scene_free(&scene);
    check_true(scene_next(&scene) == &scene.ticket[0]);
    check_true(scene_next(&scene) == NULL);
    check_eq_u64(becalm_gate_waiting(&scene.gate), 1);
    becalm_limit_give(&scene.limit, &scene.ticket[0].slot);
    check_next(&scene, 1, BECALM_WHY_OK);
}

static void test_gate__the_slot_knows_when_it_was_served_and_its_timeout(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    check_true(scene_enter(&scene, 0));
    scene.at.now += 50 * BECALM_MS;
    struct becalm_ticket *ticket = scene_next(&scene);
    check_true(ticket == &scene.ticket[0]);
    check_eq_u64(ticket->slot.sent_at, scene.at.now);
    check_eq_u64(ticket->slot.timeout, 5 * BECALM_S);
    check_true(ticket->owner == &scene);
}

static void test_gate__drops_expired_work_and_serves_the_next_with_its_slot(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene_enter_all(&scene, 3);
    scene.ticket[0].expires_at = scene.at.now + 10 * BECALM_MS;
    scene.ticket[1].expires_at = scene.at.now + 10 * BECALM_MS + 1;
    scene.at.now += 10 * BECALM_MS;
    check_next(&scene, 0, BECALM_WHY_DEADLINE);
    check_next(&scene, 1, BECALM_WHY_OK);
    check_next(&scene, 2, BECALM_WHY_OK);
}

static void test_gate__refuses_what_waited_beyond_its_patience(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene_enter_all(&scene, 2);
    scene.ticket[0].patience = 10 * BECALM_MS - 1;
    scene.ticket[1].patience = 10 * BECALM_MS;
    scene.at.now += 10 * BECALM_MS;
    check_next(&scene, 0, BECALM_WHY_SHED);
    check_next(&scene, 1, BECALM_WHY_OK);
}

static void test_gate__refuses_what_waited_beyond_max_wait(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene.policy.max_wait = 900 * BECALM_MS;
    check_true(scene_enter(&scene, 0));
    scene.at.now += 1;
    check_true(scene_enter(&scene, 1));
    scene.at.now += 900 * BECALM_MS;
    check_next(&scene, 0, BECALM_WHY_SHED);
    check_next(&scene, 1, BECALM_WHY_OK);
}

/* A call with a timeout of 5 s may wait longer than the default of max_wait; an infinite timeout is no reason to wait
 * for longer. */
static void test_gate__the_default_of_max_wait_gives_way_to_half_of_a_timeout(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    check_true(scene_enter(&scene, 0));
    scene.at.now += 1250 * BECALM_MS;
    check_next(&scene, 0, BECALM_WHY_OK);
    struct becalm_ticket *ticket = &scene.ticket[1];
    *ticket = (struct becalm_ticket){.patience = BECALM_NEVER / 2, .timeout = BECALM_NEVER, .expires_at = BECALM_NEVER};
    check_true(becalm_queue_enter(&scene.queue, &scene.policy, scene.at.now, ticket));
    scene.at.now += BECALM_S + 1;
    check_next(&scene, 1, BECALM_WHY_SHED);
}

static void test_gate__a_burst_may_wait_twice_as_long_as_who_comes_to_a_queue_that_stands(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    becalm_ns start = scene.at.now;
    check_true(scene_enter(&scene, 0));
    scene.at.now = start + 1250 * BECALM_MS; /* as long as its patience: still a burst */
    check_true(scene_enter(&scene, 1));
    check_eq_u64(scene.ticket[1].leave_at, scene.at.now + 1250 * BECALM_MS);
    scene.at.now += 1;
    check_true(scene_enter(&scene, 2));
    check_eq_u64(scene.ticket[2].leave_at, scene.at.now + 625 * BECALM_MS);
    scene.ticket[3].patient = true; /* it waited for a host that restarts */
    check_true(scene_enter(&scene, 3));
    check_eq_u64(scene.ticket[3].leave_at, scene.at.now + 1250 * BECALM_MS);
    for (unsigned i = 0; i < 4; i++) {
        becalm_queue_leave(&scene.ticket[i]);
    }
    check_true(scene_enter(&scene, 4)); /* no call waits: the next burst */
    check_eq_u64(scene.ticket[4].leave_at, scene.at.now + 1250 * BECALM_MS);
    becalm_gate_for_caller(&scene.policy); /* a single caller's line has rules of its own */
    scene.at.now += 2 * BECALM_S;
    check_true(scene_enter(&scene, 5));
    check_eq_u64(scene.ticket[5].leave_at, scene.at.now + BECALM_S);
}

static void test_gate__codel_waits_for_three_quarters_of_a_timeout_within_bounds(void **state)
{
    (void)state;
    static const struct {
        becalm_ns timeout;
        becalm_ns interval;
    } rows[] = {{100 * BECALM_MS, 100 * BECALM_MS},
                {400 * BECALM_MS, 300 * BECALM_MS},
                {BECALM_S, 750 * BECALM_MS},
                {30 * BECALM_S, 750 * BECALM_MS},
                {BECALM_NEVER, 750 * BECALM_MS}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct scene scene;
        scene_init(&scene);
        becalm_gate_defaults(&scene.policy);
        scene_enter_all(&scene, 40);
        for (unsigned j = 0; j < 40; j++) {
            scene.ticket[j].timeout = rows[i].timeout;
        }
        scene.at.now += rows[i].interval;
        check_next(&scene, 0, BECALM_WHY_OK);
        scene.at.now += 1;
        check_next(&scene, 1, BECALM_WHY_SHED);
    }
}

static void test_gate__codel_drops_until_fewer_than_min_queue_wait(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene_enter_all(&scene, 35);
    scene.at.now += 100 * BECALM_MS + 1;
    for (unsigned i = 0; i < 6; i++) { /* 35, 34, ... 30 wait */
        check_next(&scene, i, BECALM_WHY_SHED);
    }
    for (unsigned i = 6; i < 35; i++) {
        check_next(&scene, i, BECALM_WHY_OK);
    }
}

static void test_gate__codel_leaves_a_burst_alone(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene_enter_all(&scene, 40);
    scene.at.now += 100 * BECALM_MS; /* waited long, but the queue is not older than the interval */
    check_next(&scene, 0, BECALM_WHY_OK);
    for (unsigned i = 1; i < 40; i++) {
        becalm_queue_leave(&scene.ticket[i]);
    }
    scene_enter_all(&scene, 40); /* a new queue: its age starts again */
    scene.at.now += 100 * BECALM_MS;
    check_next(&scene, 0, BECALM_WHY_OK);
}

static void test_gate__codel_leaves_alone_who_waited_no_longer_than_the_target(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    check_true(scene_enter(&scene, 100));
    scene.at.now += 200 * BECALM_MS;
    scene_enter_all(&scene, 40); /* the queue has been busy for long, but these have just come */
    becalm_queue_leave(&scene.ticket[100]);
    scene.at.now += 20 * BECALM_MS;
    check_next(&scene, 0, BECALM_WHY_OK);
    scene.at.now += 1;
    check_next(&scene, 1, BECALM_WHY_SHED);
}

static void test_gate__codel_counts_those_who_wait_at_other_workers(void **state)
{
    (void)state;
    struct scene scene;
    struct becalm_queue other;
    scene_init(&scene);
    becalm_queue_init(&other, &scene.gate, &scene.limit);
    scene_enter_all(&scene, 1);
    for (unsigned i = 1; i < 30; i++) {
        check_true(becalm_queue_enter(&other, &scene.policy, scene.at.now, &scene.ticket[i]));
    }
    scene.at.now += 101 * BECALM_MS;
    check_next(&scene, 0, BECALM_WHY_SHED);
}

static void test_gate__a_full_queue_refuses_over_all_workers(void **state)
{
    (void)state;
    struct scene scene;
    struct becalm_queue other;
    scene_init(&scene);
    becalm_queue_init(&other, &scene.gate, &scene.limit);
    scene.policy.max_queue = 3;
    scene_enter_all(&scene, 2);
    check_true(becalm_queue_enter(&other, &scene.policy, scene.at.now, &scene.ticket[2]));
    check_true(!becalm_queue_enter(&other, &scene.policy, scene.at.now, &scene.ticket[3]));
    check_true(!scene_enter(&scene, 4));
    check_eq_u64(becalm_gate_waiting(&scene.gate), 3);
    becalm_queue_leave(&scene.ticket[2]);
    check_true(scene_enter(&scene, 4));
    scene.policy.max_queue = 0; /* nothing waits */
    check_true(!scene_enter(&scene, 5));
}

static void test_gate__a_cancelled_call_leaves_from_any_place(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene_enter_all(&scene, 6);
    becalm_queue_leave(&scene.ticket[3]);
    becalm_queue_leave(&scene.ticket[0]);
    becalm_queue_leave(&scene.ticket[5]);
    becalm_queue_leave(&scene.ticket[3]); /* once more does nothing */
    check_eq_u64(becalm_gate_waiting(&scene.gate), 3);
    check_next(&scene, 1, BECALM_WHY_OK);
    becalm_queue_leave(&scene.ticket[1]); /* nor after it was served */
    check_next(&scene, 2, BECALM_WHY_OK);
    check_next(&scene, 4, BECALM_WHY_OK);
    check_true(!becalm_queue_busy(&scene.queue));
    check_eq_u64(becalm_gate_waiting(&scene.gate), 0);
    check_true(scene_enter(&scene, 3)); /* a ticket can be used again */
    check_next(&scene, 3, BECALM_WHY_OK);
}

static void test_gate__a_ticket_leaves_at_the_first_of_its_bounds(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    static const struct {
        becalm_ns expires_in;
        becalm_ns patience;
        becalm_ns leaves_in;
    } rows[] = {
        {16 * BECALM_S, 1250 * BECALM_MS, BECALM_S},
        {16 * BECALM_S, 300 * BECALM_MS, 300 * BECALM_MS},
        {200 * BECALM_MS, 300 * BECALM_MS, 200 * BECALM_MS},
        {BECALM_NEVER, BECALM_NEVER, BECALM_S},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct becalm_ticket *ticket = &scene.ticket[i];
        ticket->expires_at = becalm_ns_after(scene.at.now, rows[i].expires_in);
        ticket->patience = rows[i].patience;
        check_true(becalm_queue_enter(&scene.queue, &scene.policy, scene.at.now, ticket));
        check_eq_u64(becalm_ticket_leave_at(ticket), scene.at.now + rows[i].leaves_in);
        check_true(!becalm_ticket_stays(ticket, &scene.policy, becalm_ticket_leave_at(ticket)));
    }
}

/* A limit of one slot that was cut just now. */
static void scene_cut(struct scene *scene)
{
    becalm_limit_defaults(&scene->limit_policy, BECALM_LIMIT_AIMD);
    scene->limit_policy.max = 1;
    becalm_limit_init(&scene->limit, &scene->limit_policy);
    scene->limit.usual = 64; /* samples: it knows that calls do not time out */
    for (int i = 0; i < 5; i++) {
        struct becalm_slot slot = {.held = false};
        check_true(becalm_limit_probe(&scene->limit, &scene->limit_policy, &scene->at, BECALM_S, &slot));
        becalm_limit_note(&scene->limit, &scene->limit_policy, &scene->at, &slot, BECALM_EVIDENCE_TIMEOUT);
        becalm_limit_give(&scene->limit, &slot);
    }
    becalm_limit_turned_away(&scene->limit); /* ends the pacing, which is another matter */
}

/* A caller whose limit was cut to one slot just now, and that slot is taken. */
static void scene_of_a_cut_caller(struct scene *scene)
{
    scene_init(scene);
    becalm_gate_for_caller(&scene->policy);
    scene_cut(scene);
    scene_occupy(scene);
}

static void test_gate__a_callers_line_waits_until_its_deadline_while_the_limit_is_calm(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    becalm_gate_for_caller(&scene.policy);
    scene.policy.max_queue = 10;
    scene_occupy(&scene);
    scene_enter_all(&scene, MANY); /* twenty times the usual number of waiting calls */
    for (becalm_ns end = scene.at.now + 15 * BECALM_S; scene.at.now < end;) {
        scene.at.now = becalm_ticket_leave_at(&scene.ticket[0]);
        check_true(becalm_ticket_stays(&scene.ticket[0], &scene.policy, scene.at.now));
    }
    scene_free(&scene);
    check_next(&scene, 0, BECALM_WHY_OK);
    check_next(&scene, 1, BECALM_WHY_OK); /* neither max_wait nor CoDel */
    scene.at.now = scene.ticket[2].expires_at;
    check_true(!becalm_ticket_stays(&scene.ticket[2], &scene.policy, scene.at.now));
    check_next(&scene, 2, BECALM_WHY_DEADLINE);
}

static void test_gate__a_cut_ends_the_patience_of_a_callers_line(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    becalm_gate_for_caller(&scene.policy);
    scene.policy.max_queue = 10;
    scene_enter_all(&scene, 20);
    scene.at.now += 3 * BECALM_S;
    check_true(becalm_ticket_stays(&scene.ticket[0], &scene.policy, scene.at.now));
    scene_cut(&scene);
    check_true(!becalm_ticket_stays(&scene.ticket[0], &scene.policy, scene.at.now));
    for (unsigned i = 0; i < 20; i++) { /* a call that waited too long is not sent, all the less in a herd */
        check_next(&scene, i, BECALM_WHY_LIMIT);
    }
    check_true(scene_next(&scene) == NULL);
    scene_occupy(&scene);
    scene_enter_all(&scene, 10);
    check_true(!scene_enter(&scene, 10));
    scene.at.now += BECALM_S + 1;
    check_true(!becalm_ticket_stays(&scene.ticket[0], &scene.policy, scene.at.now));
    scene_free(&scene);
    for (unsigned i = 0; i < 10; i++) {
        check_next(&scene, i, BECALM_WHY_LIMIT);
    }
}

/* A call without a timeout waits for an answer until the deadline, and may wait in the gate for a quarter of that. */
static void test_gate__where_no_timeout_is_written_a_few_calls_of_a_caller_wait_for_longer(void **state)
{
    (void)state;
    struct scene scene;
    scene_of_a_cut_caller(&scene);
    for (unsigned i = 0; i < 17; i++) {
        scene.ticket[i].unhurried = true;
    }
    scene_enter_all(&scene, 17); /* each call has 16 s left */
    for (unsigned i = 0; i < 17; i++) {
        check_eq_u64(becalm_ticket_leave_at(&scene.ticket[i]), scene.at.now + (i < 16 ? 4 : 1) * BECALM_S);
    }
    scene.at.now += 4 * BECALM_S - 1;
    check_true(becalm_ticket_stays(&scene.ticket[0], &scene.policy, scene.at.now));
    becalm_queue_leave(&scene.ticket[16]);
    scene.ticket[16].unhurried = false;
    check_true(scene_enter(&scene, 16)); /* this one is in a hurry, and behind them */
    check_eq_u64(becalm_ticket_leave_at(&scene.ticket[16]), scene.at.now + BECALM_S);
    scene_free(&scene);
    check_next(&scene, 0, BECALM_WHY_OK);
    scene.at.now += 1;
    check_true(!becalm_ticket_stays(&scene.ticket[1], &scene.policy, scene.at.now));
    scene.at.now += 1;
    check_next(&scene, 1, BECALM_WHY_LIMIT);
}

/* The same at a gate, for all of them: its slots send them no faster than the service answers. */
static void test_gate__where_no_timeout_is_written_all_calls_of_a_gate_wait_for_longer(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene.policy.max_wait = BECALM_S;
    scene_occupy(&scene);
    for (unsigned i = 0; i < 25; i++) {
        scene.ticket[i] = (struct becalm_ticket){.patience = BECALM_S, .timeout = BECALM_S, .unhurried = i < 24};
        scene.ticket[i].expires_at = scene.at.now + 16 * BECALM_S;
        check_true(becalm_queue_enter(&scene.queue, &scene.policy, scene.at.now, &scene.ticket[i]));
        check_eq_u64(becalm_ticket_leave_at(&scene.ticket[i]), scene.at.now + (i < 24 ? 4 : 1) * BECALM_S);
    }
    scene.at.now += 4 * BECALM_S;
    scene_free(&scene);
    for (unsigned i = 0; i < 24; i++) {
        check_next(&scene, i, BECALM_WHY_OK);
    }
    check_next(&scene, 24, BECALM_WHY_SHED); /* it was in a hurry */
}

/* A call of this flow: of flow 2 with a written timeout, of others without one, at a service that is known to be quick.
 */
static void enter_unhurried(struct scene *scene, unsigned number, uint64_t flow)
{
    struct becalm_ticket *ticket = &scene->ticket[number];
    *ticket = (struct becalm_ticket){.flow = flow, .patience = 2500 * BECALM_MS, .timeout = 5 * BECALM_S};
    ticket->unhurried = flow != 2;
    ticket->timeout += ticket->unhurried ? ticket->timeout / 2 : 0;
    ticket->expires_at = scene->at.now + 60 * BECALM_S;
    check_true(becalm_queue_enter(&scene->queue, &scene->policy, scene->at.now, ticket));
}

/* CoDel waits for three quarters of the timeout there, however long that is. */
static void test_gate__where_no_timeout_is_written_codel_waits_for_longer(void **state)
{
    (void)state;
    for (int unhurried = 0; unhurried < 2; unhurried++) {
        struct scene scene;
        scene_init(&scene);
        scene.policy.max_wait = BECALM_S;
        scene.policy.min_queue = 0;
        scene_occupy(&scene);
        for (unsigned i = 0; i < 4; i++) {
            scene.ticket[i] = (struct becalm_ticket){.patience = BECALM_S, .timeout = 4 * BECALM_S};
            scene.ticket[i].unhurried = unhurried != 0;
            scene.ticket[i].expires_at = scene.at.now + 60 * BECALM_S;
            check_true(becalm_queue_enter(&scene.queue, &scene.policy, scene.at.now, &scene.ticket[i]));
        }
        scene.at.now += 900 * BECALM_MS;
        scene_free(&scene);
        check_next(&scene, 0, unhurried != 0 ? BECALM_WHY_OK : BECALM_WHY_SHED);
        scene.at.now += 2100 * BECALM_MS + 1;
        check_next(&scene, 1, BECALM_WHY_SHED);
    }
}

/* The default minimum of the queue: 40 calls wait, and no call is dropped before the interval is over. After that CoDel
 * drops until fewer than 30 wait. */
static void test_gate__where_no_timeout_is_written_codel_still_bounds_a_queue_that_stands(void **state)
{
    (void)state;
    for (int over = 0; over < 2; over++) {
        struct scene scene;
        scene_init(&scene);
        becalm_gate_defaults(&scene.policy);
        scene_occupy(&scene);
        for (unsigned i = 0; i < 40; i++) {
            enter_unhurried(&scene, i, 0);
        }
        scene.at.now += 5625 * BECALM_MS + (becalm_ns)over;
        scene_free(&scene);
        for (unsigned i = 0; i < 40; i++) {
            check_next(&scene, i, over == 1 && i < 11 ? BECALM_WHY_SHED : BECALM_WHY_OK);
        }
    }
}

/* A client without a timeout shares the queue with one that has one. Each has CoDel's interval of its own calls,
 * whichever of them is at the head. */
static void test_gate__codel_judges_a_call_by_its_own_interval(void **state)
{
    (void)state;
    enum { UNHURRIED = 1, HURRIED = 2 };
    for (int flood = UNHURRIED; flood <= HURRIED; flood++) {
        struct scene scene;
        scene_init(&scene);
        becalm_gate_defaults(&scene.policy);
        scene_occupy(&scene);
        for (unsigned i = 0; i < 101; i++) { /* one call of the first client, and 100 of the second */
            bool unhurried = (flood == UNHURRIED) == (i > 0);
            enter_unhurried(&scene, i, unhurried ? UNHURRIED : HURRIED);
            scene.at.now += i == 0 ? BECALM_MS : 0; /* its turn comes first */
        }
        scene.at.now += 800 * BECALM_MS;
        scene_free(&scene);
        for (unsigned i = 0; i < 72 && flood == HURRIED; i++) {
            check_next(&scene, i + 1, BECALM_WHY_SHED); /* 101, 100, ... 30 wait */
        }
        check_next(&scene, 0, BECALM_WHY_OK);
        for (unsigned i = flood == HURRIED ? 73 : 1; i < 101; i++) {
            check_next(&scene, i, BECALM_WHY_OK);
        }
    }
}

/* Only there: not beyond times that the policy sets, and not for ever. */
static void test_gate__nobody_else_waits_for_longer(void **state)
{
    (void)state;
    enum { TARGET, WRITTEN, WRITTEN_AT_GATE, FOR_EVER, KINDS };
    for (int kind = 0; kind < KINDS; kind++) {
        struct scene scene;
        scene_init(&scene);
        scene.policy.max_wait = kind == WRITTEN || kind == WRITTEN_AT_GATE ? 900 * BECALM_MS : BECALM_S;
        scene.policy.target_wait = (kind == TARGET ? 30 : 20) * BECALM_MS;
        if (kind == WRITTEN || kind == FOR_EVER) {
            becalm_gate_for_caller(&scene.policy);
        }
        scene_cut(&scene);
        scene_occupy(&scene);
        struct becalm_ticket *ticket = &scene.ticket[0];
        *ticket = (struct becalm_ticket){.patience = 1250 * BECALM_MS, .timeout = BECALM_S, .unhurried = true};
        ticket->expires_at = kind == FOR_EVER ? BECALM_NEVER : scene.at.now + 16 * BECALM_S;
        check_true(becalm_queue_enter(&scene.queue, &scene.policy, scene.at.now, ticket));
        check_eq_u64(becalm_ticket_leave_at(ticket), scene.at.now + scene.policy.max_wait);
    }
}

static void test_gate__a_callers_line_of_pages_is_not_dropped_by_codel(void **state)
{
    (void)state;
    struct scene scene;
    scene_of_a_cut_caller(&scene);
    scene_enter_all(&scene, 50);
    scene.at.now += 900 * BECALM_MS;
    scene_free(&scene);
    for (unsigned i = 0; i < 50; i++) {
        check_next(&scene, i, BECALM_WHY_OK);
    }
}

static void test_gate__a_caller_is_patient_again_a_minute_after_the_last_cut(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene_cut(&scene);
    check_true(!becalm_limit_calm(&scene.limit, 5 * BECALM_S, scene.at.now + 60 * BECALM_S));
    check_true(becalm_limit_calm(&scene.limit, 5 * BECALM_S, scene.at.now + 60 * BECALM_S + 1));
    check_true(!becalm_limit_calm(&scene.limit, 20 * BECALM_S, scene.at.now + 80 * BECALM_S));
    check_true(becalm_limit_calm(&scene.limit, 20 * BECALM_S, scene.at.now + 80 * BECALM_S + 1));
    check_true(!becalm_limit_calm(&scene.limit, BECALM_NEVER, scene.at.now + 80 * BECALM_S));
}

static void test_gate__what_somebody_has_set_holds_for_a_caller_in_calm_too(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene.policy.max_queue = 3;
    scene.policy.max_wait = 2 * BECALM_S;
    becalm_gate_for_caller(&scene.policy);
    struct becalm_gate_policy once = scene.policy;
    becalm_gate_for_caller(&scene.policy);
    check_true(memcmp(&once, &scene.policy, sizeof once) == 0);
    scene_occupy(&scene);
    scene_enter_all(&scene, 3);
    check_true(!scene_enter(&scene, 3));
    check_true(becalm_ticket_stays(&scene.ticket[0], &scene.policy, scene.at.now + 1999 * BECALM_MS));
    check_true(!becalm_ticket_stays(&scene.ticket[0], &scene.policy, scene.at.now + 2 * BECALM_S));
}

static void test_gate__an_older_now_drops_nobody(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene_enter_all(&scene, 40);
    scene.at.now -= 10 * BECALM_S;
    for (unsigned i = 0; i < 40; i++) {
        check_next(&scene, i, BECALM_WHY_OK);
    }
}

static void test_gate__pacing_keeps_the_head_waiting(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene.limit_policy = (struct becalm_limit_policy){BECALM_LIMIT_AIMD, 1, 10, 0};
    becalm_limit_init(&scene.limit, &scene.limit_policy);
    scene.limit.pace = (scene.at.now >> 20) << 20 | 20000;
    scene_enter_all(&scene, 1);
    uint64_t seed = 5;
    int tries = 0;
    do {
        scene.at.random = becalm_rand_next(&seed);
        tries++;
        check_eq_u64(becalm_gate_waiting(&scene.gate), 1);
    } while (scene_next(&scene) == NULL && tries < 1000);
    check_between_u64((uint64_t)tries, 2, 500); /* one in fifty */
    check_true(scene.ticket[0].slot.held);
}

static void test_gate__nothing_is_written_while_nothing_is_shed(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    struct becalm_gate before = scene.gate;
    for (int i = 0; i < 1000; i++) {
        becalm_gate_note(&scene.gate, false);
    }
    check_true(memcmp(&before, &scene.gate, sizeof before) == 0);
}

static void test_gate__is_overloaded_after_eleven_drops_in_a_row_and_gets_over_it(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    for (int i = 0; i < 10; i++) {
        becalm_gate_note(&scene.gate, true);
    }
    check_between_u64(becalm_gate_shed_ppm(&scene.gate), 95500, 95650); /* 1 - .99^10 = .0956 */
    check_true(!becalm_gate_overloaded(&scene.gate));
    becalm_gate_note(&scene.gate, true);
    check_true(becalm_gate_overloaded(&scene.gate));
    for (int i = 0; i < 5; i++) { /* 1 - .99^11 = .1047, times .99^5 = .0995 */
        check_true(becalm_gate_overloaded(&scene.gate));
        becalm_gate_note(&scene.gate, false);
    }
    check_true(!becalm_gate_overloaded(&scene.gate));
    int left = 0;
    for (; becalm_gate_shed_ppm(&scene.gate) > 0; left++) {
        becalm_gate_note(&scene.gate, false);
    }
    check_between_u64((uint64_t)left, 600, 1000); /* it comes to rest at 0 */
}

/* One decision in `period` is to shed: does the gate call itself overloaded in the end, and always? */
static void check_share(int period, bool expected)
{
    struct scene scene;
    scene_init(&scene);
    for (int i = 0; i < 10000; i++) {
        becalm_gate_note(&scene.gate, i % period == 0);
        if (i > 1000) {
            check_true(becalm_gate_overloaded(&scene.gate) == expected);
        }
    }
}

static void test_gate__is_overloaded_above_a_tenth(void **state)
{
    (void)state;
    check_share(12, false);
    check_share(8, true);
    check_share(1, true);
    check_share(1000, false);
}

static uint64_t cpu_passing(struct scene *scene, uint32_t cpu_ppm, bool retry)
{
    uint64_t seed = 11;
    uint64_t passing = 0;
    becalm_gate_note_cpu(&scene->gate, cpu_ppm);
    for (int i = 0; i < 10000; i++) {
        scene->at.random = becalm_rand_next(&seed);
        passing += becalm_gate_admit(&scene->gate, &scene->policy, &scene->at, retry);
    }
    return passing;
}

static void test_gate__sheds_by_cpu_only_above_the_threshold_and_retries_first(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    check_eq_u64(cpu_passing(&scene, 1000000, true), 10000); /* off */
    scene.policy.cpu_threshold_ppm = 800000;
    check_eq_u64(cpu_passing(&scene, 800000, true), 10000);
    check_eq_u64(cpu_passing(&scene, 800000, false), 10000);
    check_eq_u64(cpu_passing(&scene, 800001, true), 0);
    check_eq_u64(cpu_passing(&scene, 800001, false), 10000);
    check_between_u64(cpu_passing(&scene, 900000, false), 5350, 5650); /* half way: 45 % shed */
    check_between_u64(cpu_passing(&scene, 1000000, false), 900, 1100);
    check_between_u64(cpu_passing(&scene, UINT32_MAX, false), 900, 1100);
    check_eq_u64(cpu_passing(&scene, 1000000, true), 0);
    scene.policy.cpu_threshold_ppm = 1000000; /* never above it */
    check_eq_u64(cpu_passing(&scene, UINT32_MAX, true), 10000);
}

/* Clients. */

static bool flow_enter(struct scene *scene, unsigned number, uint64_t flow)
{
    scene->ticket[number].flow = flow;
    scene->at.now++; /* of several whose turn it is, the first to come is first */
    return scene_enter(scene, number);
}

/* Tickets `from` to `to` - 1, all of one flow. */
static void flow_enter_all(struct scene *scene, unsigned from, unsigned to, uint64_t flow)
{
    for (unsigned i = from; i < to; i++) {
        check_true(flow_enter(scene, i, flow));
    }
}

/* The next ticket that is not of this flow. */
static struct becalm_ticket *next_of_another(struct scene *scene, uint64_t flow)
{
    struct becalm_ticket *ticket;
    do {
        ticket = scene_next(scene);
        check_true(ticket != NULL);
        becalm_limit_give(&scene->limit, &ticket->slot);
    } while (ticket->flow == flow);
    return ticket;
}

static void test_gate__serves_clients_in_turn(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    flow_enter_all(&scene, 0, 10, 7);
    flow_enter_all(&scene, 10, 12, 8);
    check_true(flow_enter(&scene, 12, 9));
    check_eq_u64(becalm_gate_flows(&scene.gate), 3);
    static const unsigned order[] = {0, 10, 12, 1, 11, 2, 3};
    for (unsigned i = 0; i < sizeof order / sizeof *order; i++) {
        check_next(&scene, order[i], BECALM_WHY_OK);
    }
    check_true(flow_enter(&scene, 12, 9)); /* it comes back in turn 3, in which the first one has been served */
    check_next(&scene, 12, BECALM_WHY_OK);
    check_true(flow_enter(&scene, 12, 9)); /* but it is not served twice in a turn */
    check_next(&scene, 4, BECALM_WHY_OK);
    check_next(&scene, 12, BECALM_WHY_OK);
    check_eq_u64(becalm_gate_flows(&scene.gate), 1);
}

static void test_gate__a_call_that_is_dropped_does_not_cost_its_client_the_turn(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    flow_enter_all(&scene, 0, 3, 7);
    flow_enter_all(&scene, 3, 5, 8);
    scene.ticket[0].expires_at = scene.at.now;
    check_next(&scene, 0, BECALM_WHY_DEADLINE);
    check_next(&scene, 1, BECALM_WHY_OK);
    check_next(&scene, 3, BECALM_WHY_OK);
    check_next(&scene, 2, BECALM_WHY_OK);
}

static void test_gate__clients_of_one_call_each_are_served_as_they_came(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    for (unsigned i = 0; i < 60; i++) {
        scene.at.now += BECALM_US;
        check_true(flow_enter(&scene, i, 1 + i * UINT64_C(0x9e3779b97f4a7c15)));
    }
    check_eq_u64(becalm_gate_flows(&scene.gate), 60);
    for (unsigned i = 0; i < 60; i++) {
        check_next(&scene, i, BECALM_WHY_OK);
    }
}

/* As many clients as there are lines never share a line, with any client numbers. Of more clients some share lines,
 * and all are served. */
static void test_gate__clients_share_a_line_only_if_there_are_more_of_them_than_lines(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct scene scene;
        uint64_t rand = seed;
        scene_init(&scene);
        scene.at.now += becalm_rand_next(&rand) % (1000 * BECALM_S);
        for (unsigned i = 0; i < BECALM_FLOWS; i++) {
            check_true(flow_enter(&scene, i, becalm_rand_next(&rand) % 1000 * 100 + i));
        }
        check_eq_u64(becalm_gate_flows(&scene.gate), BECALM_FLOWS);
        for (unsigned i = BECALM_FLOWS; i < MANY; i++) {
            check_true(flow_enter(&scene, i, becalm_rand_next(&rand)));
        }
        check_eq_u64(becalm_gate_flows(&scene.gate), BECALM_FLOWS);
        for (unsigned i = 0; i < MANY; i++) {
            struct becalm_ticket *ticket = scene_next(&scene);
            check_true(ticket != NULL && ticket->verdict == BECALM_WHY_OK);
            becalm_limit_give(&scene.limit, &ticket->slot);
        }
        check_eq_u64(becalm_gate_flows(&scene.gate), 0);
    }
}

/* A client does not share a line for ever. */
static void test_gate__whom_a_client_shares_a_line_with_changes(void **state)
{
    (void)state;
    struct scene scene;
    unsigned met = 0;
    for (unsigned epoch = 0; epoch < 200; epoch++) {
        scene_init(&scene);
        scene.at.now += epoch * (UINT64_C(1) << 34);
        for (unsigned i = 0; i < BECALM_FLOWS; i++) { /* clients that only take all lines */
            check_true(flow_enter(&scene, i, 1000 + i));
        }
        check_true(flow_enter(&scene, 100, 1) && flow_enter(&scene, 101, 2));
        met += scene.ticket[100].line == scene.ticket[101].line;
    }
    check_between_u64(met, 0, 12); /* one in 64 */
}

static void test_gate__a_client_may_have_its_share_of_the_queue_while_others_wait(void **state)
{
    (void)state;
    struct scene scene;
    uint32_t most;
    scene_init(&scene);
    scene.policy.min_queue = 2;
    scene.policy.max_queue = 12;
    flow_enter_all(&scene, 0, 6, 7);
    check_true(flow_enter(&scene, 50, 8));
    check_eq_u64(becalm_queue_held(&scene.queue, &scene.policy, scene.at.now, 7, &most), 6);
    check_eq_u64(most, 6); /* half of twelve */
    check_true(!flow_enter(&scene, 6, 7));
    flow_enter_all(&scene, 51, 56, 8);
    check_true(!flow_enter(&scene, 56, 8));
    check_eq_u64(becalm_queue_held(&scene.queue, &scene.policy, scene.at.now, 9, &most), 0);
    check_eq_u64(most, 4); /* it would be the third */
    for (unsigned i = 50; i < 56; i++) {
        becalm_queue_leave(&scene.ticket[i]);
    }
    check_true(flow_enter(&scene, 6, 7)); /* alone it may have all */
    check_eq_u64(becalm_queue_held(&scene.queue, &scene.policy, scene.at.now, 7, &most), 7);
    check_eq_u64(most, 12);
}

static void test_gate__in_a_full_queue_the_longest_line_makes_room(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene.policy.min_queue = 2;
    scene.policy.max_queue = 10;
    flow_enter_all(&scene, 0, 10, 7); /* there was no other client */
    check_true(!flow_enter(&scene, 10, 7));
    scene_occupy(&scene);
    check_true(flow_enter(&scene, 20, 8));
    check_eq_u64(becalm_gate_waiting(&scene.gate), 10);
    struct becalm_ticket *told = scene_next(&scene); /* although no slot is free */
    check_true(told == &scene.ticket[9] && told->verdict == BECALM_WHY_SHED && !told->slot.held);
    check_true(scene_next(&scene) == NULL);
    check_true(flow_enter(&scene, 21, 8));
    becalm_queue_leave(&scene.ticket[8]); /* it has to go, and leaves by itself before it is told */
    check_true(scene_next(&scene) == NULL);
    check_eq_u64(becalm_gate_waiting(&scene.gate), 10);
    scene_free(&scene);
    check_next(&scene, 0, BECALM_WHY_OK);
    check_next(&scene, 20, BECALM_WHY_OK);
    check_next(&scene, 1, BECALM_WHY_OK);
    check_next(&scene, 21, BECALM_WHY_OK);
    scene.policy.max_queue = 0; /* no call of any client waits */
    check_true(!flow_enter(&scene, 30, 9));
}

static void test_gate__a_full_queue_of_equals_refuses_who_comes(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    scene.policy.max_queue = 3;
    check_true(flow_enter(&scene, 0, 1) && flow_enter(&scene, 1, 2) && flow_enter(&scene, 2, 3));
    check_true(!flow_enter(&scene, 3, 4));
    check_true(!flow_enter(&scene, 3, 1));
    check_eq_u64(becalm_gate_waiting(&scene.gate), 3);
}

static void test_gate__codel_spares_who_has_fewer_in_line_than_others(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    flow_enter_all(&scene, 0, 35, 7);
    flow_enter_all(&scene, 50, 52, 8);
    scene.at.now += 101 * BECALM_MS;
    check_next(&scene, 0, BECALM_WHY_SHED);
    for (unsigned i = 1; i < 8; i++) {
        check_next(&scene, i, BECALM_WHY_SHED); /* until 29 wait */
    }
    check_next(&scene, 8, BECALM_WHY_OK);
    check_next(&scene, 50, BECALM_WHY_OK); /* as long, but not the cause */
    flow_enter_all(&scene, 60, 100, 7);
    check_next(&scene, 9, BECALM_WHY_SHED);
    check_true(next_of_another(&scene, 7) == &scene.ticket[51] && scene.ticket[51].verdict == BECALM_WHY_OK);
}

/* A client whose queue was just cut to the size of the others' is still the cause: the others are spared for an
 * interval. */
static void test_gate__codel_remembers_whom_it_dropped_from(void **state)
{
    (void)state;
    struct scene scene;
    scene_init(&scene);
    flow_enter_all(&scene, 0, 100, 7);
    for (unsigned i = 0; i < 40; i++) {
        check_true(flow_enter(&scene, 100 + i, 1000 + i));
    }
    scene.at.now += 101 * BECALM_MS;
    unsigned loud = 0;
    for (unsigned i = 0; i < 140; i++) {
        struct becalm_ticket *ticket = scene_next(&scene);
        check_true(ticket != NULL);
        check_true(ticket->flow == 7 || ticket->verdict == BECALM_WHY_OK);
        loud += ticket->flow == 7 && ticket->verdict == BECALM_WHY_OK;
        becalm_limit_give(&scene.limit, &ticket->slot);
    }
    check_eq_u64(loud, 0);
}

/* Workers. */

struct workers {
    struct scene scene;
    struct becalm_queue queue[3];
    uint64_t rand;
};

static void workers_init(struct workers *w, uint32_t count)
{
    scene_init(&w->scene);
    w->rand = 1;
    for (uint32_t i = 0; i < count; i++) {
        becalm_queue_init(&w->queue[i], &w->scene.gate, &w->scene.limit);
        becalm_queue_share(&w->queue[i], i);
    }
}

static bool worker_enter(struct workers *w, unsigned worker, unsigned number, uint64_t flow)
{
    struct becalm_ticket *ticket = &w->scene.ticket[number];
    ticket->flow = flow;
    ticket->expires_at = BECALM_NEVER;
    ticket->patience = 100 * BECALM_S;
    ticket->timeout = BECALM_S;
    return becalm_queue_enter(&w->queue[worker], &w->scene.policy, w->scene.at.now, ticket);
}

/* A slot came free at this worker. Returns the ticket that gets it, as a driver does it: the worker of that ticket is
 * called. */
static struct becalm_ticket *worker_serve(struct workers *w, unsigned worker)
{
    w->scene.at.random = becalm_rand_next(&w->rand);
    for (unsigned tries = 0; tries < 10; tries++) {
        struct becalm_ticket *ticket =
            becalm_queue_next(&w->queue[worker], &w->scene.policy, &w->scene.limit_policy, &w->scene.at);
        if (ticket != NULL) {
            return ticket;
        }
        uint64_t others = becalm_queue_others(&w->queue[worker]);
        if (others == 0) {
            return NULL;
        }
        worker = (unsigned)__builtin_ctzll(others);
        becalm_queue_call(&w->queue[worker]);
    }
    fail_msg("nobody takes the slot");
    return NULL;
}

static void test_gate__a_worker_with_a_long_queue_leaves_slots_to_another(void **state)
{
    (void)state;
    struct workers w;
    workers_init(&w, 2);
    w.scene.policy.min_queue = 1000; /* no CoDel */
    for (unsigned i = 0; i < 100; i++) {
        check_true(worker_enter(&w, 0, i, 7));
    }
    for (unsigned i = 100; i < 110; i++) {
        check_true(worker_enter(&w, 1, i, 8));
    }
    unsigned quiet = 0;
    for (unsigned i = 0; i < 20; i++) { /* all slots come free where the loud one waits */
        w.scene.at.now += BECALM_MS;
        struct becalm_ticket *ticket = worker_serve(&w, 0);
        check_true(ticket != NULL);
        quiet += ticket->flow == 8;
        becalm_limit_give(&w.scene.limit, &ticket->slot);
    }
    check_eq_u64(quiet, 10); /* every other one */
}

static void test_gate__a_client_at_two_workers_has_one_turn(void **state)
{
    (void)state;
    struct workers w;
    workers_init(&w, 2);
    w.scene.policy.min_queue = 1000;
    for (unsigned i = 0; i < 100; i++) {
        check_true(worker_enter(&w, i % 2, i, 7));
    }
    for (unsigned i = 100; i < 150; i++) {
        check_true(worker_enter(&w, 0, i, 8));
    }
    unsigned quiet = 0;
    for (unsigned i = 0; i < 100; i++) {
        w.scene.at.now += BECALM_MS;
        struct becalm_ticket *ticket = worker_serve(&w, i % 2);
        check_true(ticket != NULL);
        quiet += ticket->flow == 8;
        becalm_limit_give(&w.scene.limit, &ticket->slot);
    }
    check_between_u64(quiet, 48, 50); /* half, and not a third */
}

/* Of one client the calls of both workers are served by how many they are, wherever slots come free. */
static void test_gate__calls_of_one_client_do_not_wait_for_ever_at_one_worker(void **state)
{
    (void)state;
    struct workers w;
    workers_init(&w, 3);
    w.scene.policy.min_queue = 1000;
    for (unsigned i = 0; i < 150; i++) {
        check_true(worker_enter(&w, i < 100 ? 0 : 1 + i % 2, i, 0));
    }
    unsigned others = 0;
    for (unsigned i = 0; i < 60; i++) {
        w.scene.at.now += BECALM_MS;
        struct becalm_ticket *ticket = worker_serve(&w, 0);
        check_true(ticket != NULL);
        others += ticket >= &w.scene.ticket[100];
        becalm_limit_give(&w.scene.limit, &ticket->slot);
    }
    check_between_u64(others, 10, 32); /* a third of them */
}

static void test_gate__a_worker_that_stands_still_does_not_hold_up_the_others(void **state)
{
    (void)state;
    struct workers w;
    workers_init(&w, 2);
    w.scene.policy.min_queue = 1000;
    for (unsigned i = 0; i < 50; i++) {
        check_true(worker_enter(&w, 0, i, 7));
    }
    check_true(worker_enter(&w, 1, 100, 8));
    unsigned served = 0;
    for (unsigned ms = 0; ms < 40; ms++) { /* no worker looks at the second queue */
        w.scene.at.now += BECALM_MS;
        struct becalm_ticket *ticket =
            becalm_queue_next(&w.queue[0], &w.scene.policy, &w.scene.limit_policy, &w.scene.at);
        if (ticket == NULL) {
            check_true(becalm_queue_others(&w.queue[0]) == 2);
            continue;
        }
        served++;
        becalm_limit_give(&w.scene.limit, &ticket->slot);
    }
    check_between_u64(served, 25, 32); /* all but ten milliseconds of them */
}

static void test_gate__with_room_for_all_nobody_is_left_a_slot(void **state)
{
    (void)state;
    struct workers w;
    workers_init(&w, 2);
    w.scene.limit_policy.max = 10;
    for (unsigned i = 0; i < 8; i++) {
        check_true(worker_enter(&w, i / 4, i, 7 + i / 4));
    }
    for (unsigned i = 0; i < 4; i++) { /* the four calls of the other worker have slots, too */
        check_true(becalm_queue_next(&w.queue[0], &w.scene.policy, &w.scene.limit_policy, &w.scene.at) != NULL);
    }
    check_true(becalm_queue_others(&w.queue[0]) == 2);
}

/* Tickets of three workers enter, leave and are served at random: each that entered leaves exactly once. */
static void test_gate__every_ticket_leaves_exactly_once(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= RUNS_OF(20); seed++) {
        struct scene scene;
        struct becalm_queue queue[3];
        bool waits[MANY] = {false};
        uint64_t rand = seed;
        uint64_t waiting = 0;
        scene_init(&scene);
        scene.policy.max_queue = 50;
        scene.limit_policy.max = 4;
        for (int i = 0; i < 3; i++) {
            becalm_queue_init(&queue[i], &scene.gate, &scene.limit);
            if (seed % 4 == 3) { /* they know of each other */
                becalm_queue_share(&queue[i], (uint32_t)i);
            }
        }
        for (int i = 0; i < 30000; i++) {
            uint64_t draw = becalm_rand_next(&rand);
            struct becalm_ticket *ticket = &scene.ticket[draw % MANY];
            struct becalm_queue *mine = &queue[draw % MANY % 3];
            scene.at.now += (draw >> 40) % (5 * BECALM_MS);
            if (draw >> 62 == 0) {
                becalm_queue_leave(ticket);
                waiting -= waits[draw % MANY];
                waits[draw % MANY] = false;
            } else if (draw >> 62 == 1) {
                becalm_limit_give(&scene.limit, &ticket->slot);
                ticket = becalm_queue_next(mine, &scene.policy, &scene.limit_policy, &scene.at);
                if (ticket != NULL) {
                    check_true(waits[ticket - scene.ticket]);
                    waits[ticket - scene.ticket] = false;
                    waiting--;
                }
            } else if (!waits[draw % MANY] && !ticket->slot.held) {
                ticket->expires_at = scene.at.now + (draw >> 20) % BECALM_S;
                ticket->patience = BECALM_S / 2;
                ticket->flow = seed % 2 == 0 ? 0 : draw >> 10 & 7;
                bool in = becalm_queue_enter(mine, &scene.policy, scene.at.now, ticket);
                bool pushed = mine->line[BECALM_FLOWS].length > 0;
                check_true(in ? waiting < 50 || pushed || seed % 4 == 3 : waiting >= 50 / 8);
                waits[draw % MANY] = in;
                waiting += in;
                if (pushed) {
                    ticket = becalm_queue_next(mine, &scene.policy, &scene.limit_policy, &scene.at);
                    check_true(ticket != NULL && ticket->verdict == BECALM_WHY_SHED && !ticket->slot.held);
                    check_true(waits[ticket - scene.ticket]);
                    waits[ticket - scene.ticket] = false;
                    waiting--;
                }
            }
            if (becalm_gate_waiting(&scene.gate) != waiting) {
                fail_msg("seed %" PRIu64 " step %d: %" PRIu64 " wait", seed, i, becalm_gate_waiting(&scene.gate));
            }
        }
        for (unsigned i = 0; i < MANY; i++) {
            becalm_queue_leave(&scene.ticket[i]);
            becalm_limit_give(&scene.limit, &scene.ticket[i].slot);
        }
        check_eq_u64(becalm_gate_waiting(&scene.gate), 0);
        check_eq_u64(becalm_limit_in_flight(&scene.limit), 0);
        check_eq_u64(becalm_gate_flows(&scene.gate), 0);
        check_eq_u64(scene.gate.workers, 0);
        check_true(queue[0].busy == 0 && queue[1].busy == 0 && queue[2].length == 0);
    }
}

enum { THREADS = 8, ROUNDS = RUNS_OF(4000) };

struct crowd {
    struct scene scene;
    bool share; /* the workers know of each other */
    sem_t wake[THREADS];
    _Atomic(uint64_t) held;
    _Atomic(uint64_t) too_many;
    _Atomic(uint64_t) served;
    _Atomic(uint64_t) refused;
    _Atomic(uint64_t) forgotten;
};

struct worker {
    struct crowd *crowd;
    unsigned number;
    uint64_t rand;
};

/* An attempt and its end, after which waiting calls are woken, as a driver has to do. */
static void worker_work(struct worker *worker, struct becalm_slot *slot)
{
    struct crowd *crowd = worker->crowd;
    uint64_t held = atomic_fetch_add_explicit(&crowd->held, 1, memory_order_relaxed) + 1;
    if (held > crowd->scene.limit_policy.max) {
        atomic_fetch_add_explicit(&crowd->too_many, 1, memory_order_relaxed);
    }
    sched_yield(); /* so that the others find it taken */
    atomic_fetch_sub_explicit(&crowd->held, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&crowd->served, 1, memory_order_relaxed);
    becalm_limit_give(&crowd->scene.limit, slot);
    for (unsigned i = 0; i < THREADS && becalm_gate_waiting(&crowd->scene.gate) > 0; i++) {
        sem_post(&crowd->wake[i]);
    }
}

/* Serves the worker's one ticket; sleeps between its tries until it is woken. A minute without that is a bug. */
static void worker_wait(struct worker *worker, struct becalm_queue *queue)
{
    const struct scene *scene = &worker->crowd->scene;
    while (becalm_queue_busy(queue)) {
        struct becalm_moment at = {.now = scene->at.now, .random = becalm_rand_next(&worker->rand)};
        struct becalm_ticket *ticket = becalm_queue_next(queue, &scene->policy, &scene->limit_policy, &at);
        if (ticket != NULL) {
            worker_work(worker, &ticket->slot);
            return;
        }
        for (uint64_t others = becalm_queue_others(queue); others != 0; others &= others - 1) {
            sem_post(&worker->crowd->wake[__builtin_ctzll(others)]);
        }
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 60;
        if (sem_timedwait(&worker->crowd->wake[worker->number], &until) != 0 && errno == ETIMEDOUT) {
            atomic_fetch_add_explicit(&worker->crowd->forgotten, 1, memory_order_relaxed);
            becalm_queue_leave(first_of(queue));
        }
        becalm_queue_call(queue);
    }
}

static void *worker_run(void *argument)
{
    struct worker *worker = argument;
    struct crowd *crowd = worker->crowd;
    const struct scene *scene = &crowd->scene;
    struct becalm_queue queue;
    struct becalm_ticket ticket = {.expires_at = BECALM_NEVER, .patience = BECALM_S, .timeout = BECALM_S};
    becalm_queue_init(&queue, &crowd->scene.gate, &crowd->scene.limit);
    if (crowd->share) {
        becalm_queue_share(&queue, worker->number);
        ticket.flow = worker->number % 3; /* some have the same client */
    }
    for (int i = 0; i < ROUNDS; i++) {
        struct becalm_slot slot = {.held = false};
        if (becalm_limit_admit(queue.limit, &scene->limit_policy, &scene->at, BECALM_S, &slot)) {
            becalm_gate_note(queue.gate, false);
            worker_work(worker, &slot);
        } else if (becalm_queue_enter(&queue, &scene->policy, scene->at.now, &ticket)) {
            worker_wait(worker, &queue);
        } else {
            becalm_gate_note(queue.gate, true);
            atomic_fetch_add_explicit(&crowd->refused, 1, memory_order_relaxed);
        }
    }
    return NULL;
}

static void check_crowd(bool share)
{
    static struct crowd crowd;
    memset(&crowd, 0, sizeof crowd);
    crowd.share = share;
    struct worker worker[THREADS];
    pthread_t thread[THREADS];
    scene_init(&crowd.scene);
    crowd.scene.policy.max_queue = 5;
    for (unsigned i = 0; i < THREADS; i++) {
        check_true(sem_init(&crowd.wake[i], 0, 0) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        worker[i] = (struct worker){&crowd, i, i};
        check_true(pthread_create(&thread[i], NULL, worker_run, &worker[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    check_eq_u64(crowd.too_many, 0);
    check_eq_u64(crowd.forgotten, 0);
    check_eq_u64(crowd.served + crowd.refused, THREADS * ROUNDS);
    check_eq_u64(becalm_gate_waiting(&crowd.scene.gate), 0);
    check_eq_u64(becalm_limit_in_flight(&crowd.scene.limit), 0);
    check_true(becalm_gate_shed_ppm(&crowd.scene.gate) < 1000000);
    check_eq_u64(becalm_gate_flows(&crowd.scene.gate), 0);
    check_eq_u64(crowd.scene.gate.workers, 0);
}

static void test_gate__eight_workers_share_the_slots_and_nobody_is_forgotten(void **state)
{
    (void)state;
    check_crowd(false);
}

/* Time stands still here, so no worker is ever taken for one that is stuck. */
static void test_gate__eight_workers_take_turns_and_nobody_is_forgotten(void **state)
{
    (void)state;
    check_crowd(true);
}

/* A gateway in front of a service: ten workers of 10 ms on average behind a FIFO, 850 calls a second with a timeout of
 * 1 s, stepped by the millisecond. The service also works on abandoned requests, which keeps it from recovering.
 */
enum { SIM_CALLS = 60000, SIM_WORKERS = 10, SIM_TIMEOUT = 1000 };

struct sim_call {
    uint64_t arrived; /* ms */
    bool sent, over, ok;
    struct becalm_ticket ticket;
    struct becalm_slot slot;
};

struct sim {
    struct scene scene;
    struct sim_call call[SIM_CALLS];
    uint32_t calls;
    uint32_t fifo[SIM_CALLS]; /* sent calls, in order */
    uint32_t fifo_in, fifo_out, oldest;
    uint32_t at_worker[SIM_WORKERS]; /* call number + 1 */
    uint64_t done_at[SIM_WORKERS];
    uint64_t ms;
    uint64_t rand;
    bool queueing;
};

static void sim_send(struct sim *sim, struct sim_call *call, const struct becalm_slot *slot)
{
    call->sent = true;
    call->slot = *slot;
    sim->fifo[sim->fifo_in++] = (uint32_t)(call - sim->call);
}

static void sim_serve(struct sim *sim)
{
    struct becalm_ticket *ticket;
    while ((ticket = scene_next(&sim->scene)) != NULL) {
        struct sim_call *call = ticket->owner;
        if (ticket->verdict == BECALM_WHY_OK) {
            sim_send(sim, call, &ticket->slot);
        } else {
            call->over = true;
        }
    }
}

static void sim_end(struct sim *sim, struct sim_call *call, enum becalm_evidence evidence)
{
    struct scene *scene = &sim->scene;
    call->over = true;
    call->ok = evidence == BECALM_EVIDENCE_SUCCESS;
    becalm_limit_note(&scene->limit, &scene->limit_policy, &scene->at, &call->slot, evidence);
    becalm_limit_give(&scene->limit, &call->slot);
    sim_serve(sim);
}

static void sim_arrive(struct sim *sim)
{
    struct scene *scene = &sim->scene;
    struct sim_call *call = &sim->call[sim->calls++];
    struct becalm_slot slot = {.held = false};
    call->arrived = sim->ms;
    if (!becalm_queue_busy(&scene->queue) &&
        becalm_limit_admit(&scene->limit, &scene->limit_policy, &scene->at, SIM_TIMEOUT * BECALM_MS, &slot)) {
        sim_send(sim, call, &slot);
        return;
    }
    call->ticket.owner = call;
    call->ticket.timeout = SIM_TIMEOUT * BECALM_MS;
    call->ticket.patience = call->ticket.timeout / 4;
    call->ticket.expires_at = BECALM_NEVER;
    call->over = !sim->queueing || !becalm_queue_enter(&scene->queue, &scene->policy, scene->at.now, &call->ticket);
    sim_serve(sim);
}

static void sim_step(struct sim *sim, uint64_t slowness)
{
    struct scene *scene = &sim->scene;
    scene->at.now = (100000 + sim->ms) * BECALM_MS;
    scene->at.random = becalm_rand_next(&sim->rand);
    for (int i = 0; i < SIM_WORKERS; i++) {
        if (sim->at_worker[i] != 0 && sim->ms >= sim->done_at[i]) {
            struct sim_call *call = &sim->call[sim->at_worker[i] - 1];
            sim->at_worker[i] = 0;
            if (!call->over) {
                sim_end(sim, call, BECALM_EVIDENCE_SUCCESS);
            }
        }
    }
    for (; sim->oldest < sim->fifo_in; sim->oldest++) {
        struct sim_call *call = &sim->call[sim->fifo[sim->oldest]];
        if (!call->over && scene->at.now < call->slot.sent_at + SIM_TIMEOUT * BECALM_MS) {
            break;
        }
        if (!call->over) {
            sim_end(sim, call, BECALM_EVIDENCE_TIMEOUT);
        }
    }
    while (becalm_queue_busy(&scene->queue) && becalm_ticket_leave_at(first_of(&scene->queue)) <= scene->at.now) {
        ((struct sim_call *)first_of(&scene->queue)->owner)->over = true;
        becalm_queue_leave(first_of(&scene->queue));
    }
    if (becalm_rand_chance(becalm_rand_next(&sim->rand), 850000)) {
        sim_arrive(sim);
    }
    for (int i = 0; i < SIM_WORKERS; i++) {
        if (sim->at_worker[i] == 0 && sim->fifo_out < sim->fifo_in) {
            sim->at_worker[i] = sim->fifo[sim->fifo_out++] + 1;
            sim->done_at[i] = sim->ms + (1 + becalm_rand_next(&sim->rand) % 19) * slowness / 10;
        }
    }
    sim->ms++;
}

/* Successes per thousand of the calls that arrived from second `from` to second `to`. */
static uint64_t sim_success(const struct sim *sim, uint64_t from, uint64_t to)
{
    uint64_t all = 0;
    uint64_t ok = 0;
    for (uint32_t i = 0; i < sim->calls; i++) {
        if (sim->call[i].arrived >= from * 1000 && sim->call[i].arrived < to * 1000) {
            all++;
            ok += sim->call[i].ok;
        }
    }
    return ok * 1000 / all;
}

/* 10 s of health, 30 s at three tenths of the capacity, 20 s of health. */
static struct sim *sim_run(enum becalm_limit_kind kind, bool queueing)
{
    static struct sim sim;
    memset(&sim, 0, sizeof sim);
    scene_init(&sim.scene);
    becalm_limit_defaults(&sim.scene.limit_policy, kind);
    becalm_limit_init(&sim.scene.limit, &sim.scene.limit_policy);
    sim.queueing = queueing;
    sim.rand = 3;
    while (sim.ms < 60000) {
        bool fault = sim.ms >= 10000 && sim.ms < 40000;
        sim_step(&sim, fault ? 33 : 10);
    }
    return &sim;
}

static void test_gate__without_a_limit_a_slowed_service_answers_nobody_in_time(void **state)
{
    (void)state;
    const struct sim *sim = sim_run(BECALM_LIMIT_NONE, false);
    check_true(sim_success(sim, 0, 9) == 1000);
    check_true(sim_success(sim, 15, 40) < 50);
    check_true(sim_success(sim, 50, 58) < 50); /* nor after the fault: its queue is full of calls given up long ago */
}

static void test_gate__slots_keep_a_slowed_service_at_its_capacity(void **state)
{
    (void)state;
    const struct sim *sim = sim_run(BECALM_LIMIT_SLOTS, false);
    check_true(sim_success(sim, 0, 9) == 1000);
    check_true(sim_success(sim, 15, 40) >= 300); /* 303 calls a second of 850: at most 356 of 1000 */
    check_true(sim_success(sim, 42, 58) >= 999);
    check_true(becalm_limit_now(&sim->scene.limit, &sim->scene.limit_policy) < 300);
}

static void test_gate__a_queue_before_the_slots_does_as_well_and_empties(void **state)
{
    (void)state;
    const struct sim *sim = sim_run(BECALM_LIMIT_SLOTS, true);
    check_true(sim_success(sim, 0, 9) == 1000);
    check_true(sim_success(sim, 15, 40) >= 330);
    check_true(sim_success(sim, 42, 58) >= 999);
    check_eq_u64(becalm_gate_waiting(&sim->scene.gate), 0);
}

BECALM_TESTS(cmocka_unit_test(test_gate__an_empty_queue_serves_nobody),
             cmocka_unit_test(test_gate__names_the_field_that_is_wrong),
             cmocka_unit_test(test_gate__zero_means_zero_where_it_makes_sense),
             cmocka_unit_test(test_gate__serves_in_the_order_of_arrival),
             cmocka_unit_test(test_gate__one_freed_slot_serves_one),
             cmocka_unit_test(test_gate__the_slot_knows_when_it_was_served_and_its_timeout),
             cmocka_unit_test(test_gate__drops_expired_work_and_serves_the_next_with_its_slot),
             cmocka_unit_test(test_gate__refuses_what_waited_beyond_its_patience),
             cmocka_unit_test(test_gate__refuses_what_waited_beyond_max_wait),
             cmocka_unit_test(test_gate__the_default_of_max_wait_gives_way_to_half_of_a_timeout),
             cmocka_unit_test(test_gate__a_burst_may_wait_twice_as_long_as_who_comes_to_a_queue_that_stands),
             cmocka_unit_test(test_gate__codel_waits_for_three_quarters_of_a_timeout_within_bounds),
             cmocka_unit_test(test_gate__codel_drops_until_fewer_than_min_queue_wait),
             cmocka_unit_test(test_gate__codel_leaves_a_burst_alone),
             cmocka_unit_test(test_gate__codel_leaves_alone_who_waited_no_longer_than_the_target),
             cmocka_unit_test(test_gate__codel_counts_those_who_wait_at_other_workers),
             cmocka_unit_test(test_gate__a_full_queue_refuses_over_all_workers),
             cmocka_unit_test(test_gate__a_cancelled_call_leaves_from_any_place),
             cmocka_unit_test(test_gate__a_ticket_leaves_at_the_first_of_its_bounds),
             cmocka_unit_test(test_gate__a_callers_line_waits_until_its_deadline_while_the_limit_is_calm),
             cmocka_unit_test(test_gate__a_cut_ends_the_patience_of_a_callers_line),
             cmocka_unit_test(test_gate__where_no_timeout_is_written_a_few_calls_of_a_caller_wait_for_longer),
             cmocka_unit_test(test_gate__where_no_timeout_is_written_all_calls_of_a_gate_wait_for_longer),
             cmocka_unit_test(test_gate__where_no_timeout_is_written_codel_waits_for_longer),
             cmocka_unit_test(test_gate__where_no_timeout_is_written_codel_still_bounds_a_queue_that_stands),
             cmocka_unit_test(test_gate__codel_judges_a_call_by_its_own_interval),
             cmocka_unit_test(test_gate__nobody_else_waits_for_longer),
             cmocka_unit_test(test_gate__a_callers_line_of_pages_is_not_dropped_by_codel),
             cmocka_unit_test(test_gate__a_caller_is_patient_again_a_minute_after_the_last_cut),
             cmocka_unit_test(test_gate__what_somebody_has_set_holds_for_a_caller_in_calm_too),
             cmocka_unit_test(test_gate__an_older_now_drops_nobody),
             cmocka_unit_test(test_gate__pacing_keeps_the_head_waiting),
             cmocka_unit_test(test_gate__nothing_is_written_while_nothing_is_shed),
             cmocka_unit_test(test_gate__is_overloaded_after_eleven_drops_in_a_row_and_gets_over_it),
             cmocka_unit_test(test_gate__is_overloaded_above_a_tenth),
             cmocka_unit_test(test_gate__sheds_by_cpu_only_above_the_threshold_and_retries_first),
             cmocka_unit_test(test_gate__serves_clients_in_turn),
             cmocka_unit_test(test_gate__a_call_that_is_dropped_does_not_cost_its_client_the_turn),
             cmocka_unit_test(test_gate__clients_of_one_call_each_are_served_as_they_came),
             cmocka_unit_test(test_gate__clients_share_a_line_only_if_there_are_more_of_them_than_lines),
             cmocka_unit_test(test_gate__whom_a_client_shares_a_line_with_changes),
             cmocka_unit_test(test_gate__a_client_may_have_its_share_of_the_queue_while_others_wait),
             cmocka_unit_test(test_gate__in_a_full_queue_the_longest_line_makes_room),
             cmocka_unit_test(test_gate__a_full_queue_of_equals_refuses_who_comes),
             cmocka_unit_test(test_gate__codel_spares_who_has_fewer_in_line_than_others),
             cmocka_unit_test(test_gate__codel_remembers_whom_it_dropped_from),
             cmocka_unit_test(test_gate__a_worker_with_a_long_queue_leaves_slots_to_another),
             cmocka_unit_test(test_gate__a_client_at_two_workers_has_one_turn),
             cmocka_unit_test(test_gate__calls_of_one_client_do_not_wait_for_ever_at_one_worker),
             cmocka_unit_test(test_gate__a_worker_that_stands_still_does_not_hold_up_the_others),
             cmocka_unit_test(test_gate__with_room_for_all_nobody_is_left_a_slot),
             cmocka_unit_test(test_gate__every_ticket_leaves_exactly_once),
             cmocka_unit_test(test_gate__eight_workers_share_the_slots_and_nobody_is_forgotten),
             cmocka_unit_test(test_gate__eight_workers_take_turns_and_nobody_is_forgotten),
             cmocka_unit_test(test_gate__without_a_limit_a_slowed_service_answers_nobody_in_time),
             cmocka_unit_test(test_gate__slots_keep_a_slowed_service_at_its_capacity),
             cmocka_unit_test(test_gate__a_queue_before_the_slots_does_as_well_and_empties))
