/* SPDX-License-Identifier: MIT */
#include "overdue_lab.h"

/* Where no timeout is written: what a late answer tells the limits of callers and gates, how long calls wait in their
 * lines, and by which time a gate judges answers. */

/* The answers before, the time after which calls are overdue, and the end of the first of them. */
struct late {
    int quick;     /* answers of 20 ms, before */
    becalm_ns due; /* 0: as the policy has it now */
    enum becalm_limit_kind kind;
    enum becalm_outcome_kind end;
    becalm_ns since; /* the duration of answers that come while it is overdue; 0: there are none */
    becalm_ns more;  /* how long after that it ends */
    becalm_ns usual; /* what is known of answers instead, before; 0: that of the quick ones */
    bool narrowed;   /* rejections had cut the limit, too, to twenty slots */
    bool cuts_off;   /* an attempt with a written timeout timed out meanwhile */
    bool waits;      /* another call waits in line */
    bool forever;    /* the policy has no deadline */
};

/* Four hundred answers of this length are known, from one moment to the next. */
static void learn(struct lab *lab, becalm_ns took)
{
    struct becalm_due due;
    becalm_due_init(&due);
    for (int i = 0; i < 400; i++) {
        struct becalm_moment at = {.now = lab->now + (becalm_ns)i * took};
        becalm_due_note(&due, &at, lab->policy.attempt_timeout, took);
    }
    becalm_due_carry(lab->target.due, &due);
}

#define NARROWED 20

/* What the end of the call may change: the limit, and whether the line is to be served. */
static void late_end(struct lab *lab, const struct late *late)
{
    struct becalm_queue queue;
    struct becalm_ticket ticket = {.expires_at = BECALM_NEVER, .patience = BECALM_S};
    if (late->narrowed) {
        lab->target.limit->narrowed = 2048 << 8;
        lab->target.limit->narrowed_to = NARROWED * 20;
    }
    if (late->cuts_off) {
        lab->target.limit->cut_off_at = lab->now - 59 * BECALM_S;
    }
    if (late->waits) {
        becalm_queue_init(&queue, lab->target.gate, lab->target.limit);
        assert_true(becalm_queue_enter(&queue, &lab->policy.gate, lab->now, &ticket));
    }
    done(lab, &lab->call[0], 0, late->end);
    if (late->waits) {
        assert_true((lab->action.flags & BECALM_DO_SERVE) != 0);
        becalm_queue_leave(&ticket);
    }
}

/* Calls are overdue, all at once, and then one of them ends: does that undo the cut of the limit? If not, the limit may
 * not have changed. */
static bool is_undone(const struct late *late)
{
    struct lab lab;
    lab_open(&lab);
    lab.policy.breaker.enabled = false;
    lab.policy.limit.kind = late->kind;
    lab.policy.deadline = late->forever ? BECALM_NEVER : lab.policy.deadline;
    answers(&lab, 20 * BECALM_MS, late->quick);
    if (late->usual != 0) {
        learn(&lab, late->usual);
    }
    becalm_ns due = late->due != 0 ? late->due : becalm_target_timeout(&lab.target, &lab.policy);
    lab.now += 30 * BECALM_S; /* in which nothing succeeds */
    for (int i = 0; i < CALLS; i++) {
        begin(&lab, &lab.call[i], false);
        check_eq_u64(lab.action.wake_at, lab.now + due);
    }
    lab.now += due;
    for (int i = 0; i < CALLS; i++, lab.now += 100 * BECALM_MS) {
        timer(&lab, &lab.call[i]);
    }
    assert_true(becalm_limit_now(lab.target.limit, &lab.policy.limit) < NARROWED);
    if (late->since != 0) {
        learn(&lab, late->since);
    }
    lab.now += late->more;
    struct becalm_limit before;
    memcpy(&before, lab.target.limit, sizeof before);
    late_end(&lab, late);
    uint32_t limit = becalm_limit_now(lab.target.limit, &lab.policy.limit);
    bool undone = limit >= NARROWED;
    if (undone && late->kind == BECALM_LIMIT_SLOTS) { /* the service works on one fewer of the others */
        check_eq_u64(lab.target.limit->ghosts, before.ghosts - 1);
    }
    if (undone) { /* the whole limit, though far fewer slots were in use */
        check_eq_u64(limit, late->narrowed ? NARROWED : late->kind == BECALM_LIMIT_SLOTS ? 10000 : 1000);
        check_eq_u64(lab.target.limit->narrowed, late->narrowed ? UINT64_C(2048) << 8 : 0);
    } else if (!late->cuts_off) {
        assert_memory_equal(&before, lab.target.limit, sizeof before);
    }
    free(lab.memory);
    return undone;
}

/* Before anything is known a service of 35 s is overdue after 30: its callers' limit is cut, until the first answer
 * says that it was slow and not lost. */
static void test_late__an_answer_after_what_was_only_a_guess_undoes_the_cuts_of_a_callers_limit(void **state)
{
    (void)state;
    struct late late = {.quick = 1, .due = BECALM_DUE_START, .kind = BECALM_LIMIT_AIMD, .end = BECALM_OUTCOME_OK};
    assert_true(is_undone(&late));
    late.end = BECALM_OUTCOME_BROKEN;
    assert_false(is_undone(&late));
}

/* A caller that writes no timeout would wait for 60 s. So an answer within 30 s comes soon enough, although answers
 * usually take 20 ms: a surge that the service works off does not cut the limit. The forty calls are noted as overdue
 * for four seconds, from the fifth on. */
static void test_late__an_answer_within_half_of_the_time_to_the_deadline_undoes_the_cuts(void **state)
{
    (void)state;
    const enum becalm_limit_kind kinds[] = {BECALM_LIMIT_AIMD, BECALM_LIMIT_SLOTS};
    for (int i = 0; i < 2; i++) {
        struct late late = {.quick = 400, .due = 5 * BECALM_S, .kind = kinds[i], .end = BECALM_OUTCOME_OK};
        assert_true(is_undone(&late));
        late.more = 21 * BECALM_S; /* 30 s in all */
        assert_true(is_undone(&late));
        late.forever = true;
        assert_true(is_undone(&late));
        late.more++;
        assert_false(is_undone(&late));
        late.forever = false;
        assert_false(is_undone(&late));
        late.more = 0;
        late.end = BECALM_OUTCOME_BROKEN;
        assert_false(is_undone(&late));
    }
}

/* A late answer says nothing of rejections. */
static void test_late__an_answer_in_time_undoes_no_cut_by_rejections(void **state)
{
    (void)state;
    const struct late late = {
        .quick = 400, .due = 5 * BECALM_S, .kind = BECALM_LIMIT_AIMD, .end = BECALM_OUTCOME_OK, .narrowed = true};
    assert_true(is_undone(&late)); /* to the twenty slots that the rejections left */
}

/* Calls of an endpoint with a written timeout can't wait for as long. */
static void test_late__an_answer_in_time_undoes_nothing_where_others_are_cut_off(void **state)
{
    (void)state;
    const struct late late = {
        .quick = 400, .due = 5 * BECALM_S, .kind = BECALM_LIMIT_SLOTS, .end = BECALM_OUTCOME_OK, .cuts_off = true};
    assert_false(is_undone(&late));
}

/* The late attempt has no slot whose end would have the line served. */
static void test_late__who_waits_in_line_is_sent_when_a_late_answer_widens_the_limit(void **state)
{
    (void)state;
    const struct late late = {
        .quick = 400, .due = 5 * BECALM_S, .kind = BECALM_LIMIT_SLOTS, .end = BECALM_OUTCOME_OK, .waits = true};
    assert_true(is_undone(&late));
}

/* A later answer of a service that is known to be quick says that its queue is too long, or that this answer hung. So
 * it is with a service that turned out to be quick meanwhile, and with one that has become slow since. */
static void test_late__a_later_answer_leaves_the_cuts(void **state)
{
    (void)state;
    const enum becalm_limit_kind kinds[] = {BECALM_LIMIT_AIMD, BECALM_LIMIT_SLOTS};
    for (int i = 0; i < 2; i++) {
        const struct late all[] = {
            {.quick = 400, .due = 5 * BECALM_S, .more = 26 * BECALM_S},
            {.quick = 400, .due = 5 * BECALM_S, .more = 26 * BECALM_S, .since = 40 * BECALM_S},
            {.quick = 1, .due = BECALM_DUE_START, .since = 20 * BECALM_MS},
            {.usual = 4 * BECALM_S, .more = 24 * BECALM_S, .since = 40 * BECALM_S},
        };
        for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
            struct late late = all[k];
            late.kind = kinds[i];
            late.end = BECALM_OUTCOME_OK;
            assert_false(is_undone(&late));
        }
    }
}

/* A caller among many can't tell by slow answers whether there is a queue, and does not try: it judges only by its own
 * overdue attempts. */
static void test_late__a_callers_limit_judges_by_what_is_overdue(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab);
    begin(&lab, &lab.call[0], false);
    check_eq_u64(lab.call[0].slot[0].slot.timeout, BECALM_DUE_START);
    free(lab.memory);
}

/* How long a call waits in line behind another one that has the only slot. */
static becalm_ns wait_behind_another(struct lab *lab, bool streams)
{
    struct becalm_queue queue;
    becalm_queue_init(&queue, lab->target.gate, lab->target.limit);
    begin(lab, &lab->call[0], true);
    becalm_call_init(&lab->call[1], &lab->policy, &lab->target,
                     &(struct becalm_request){.queue = &queue, .streams = streams});
    step(lab, &lab->call[1], (struct becalm_event){.kind = BECALM_EVENT_BEGIN});
    assert_int_equal(lab->action.why, BECALM_WHY_QUEUED);
    becalm_ns waits = lab->action.wake_at - lab->now;
    becalm_queue_leave(&lab->call[1].ticket);
    return waits;
}

/* The same in the line of a caller, or of a gate. */
static becalm_ns wait_in_line(enum becalm_timeout_kind kind, bool gate, bool streams)
{
    struct lab lab;
    lab_open(&lab);
    lab.policy.timeout_kind = kind;
    if (!gate) {
        becalm_gate_for_caller(&lab.policy.gate);
    }
    learn(&lab, 20 * BECALM_MS);
    lab.policy.limit.max = 1;
    becalm_limit_init(lab.target.limit, &lab.policy.limit);
    becalm_ns waits = wait_behind_another(&lab, streams);
    free(lab.memory);
    return waits;
}

static void test_late__who_writes_no_timeout_waits_in_line_for_a_quarter_of_the_deadline(void **state)
{
    (void)state;
    for (int streams = 0; streams < 2; streams++) {
        check_eq_u64(wait_in_line(BECALM_TIMEOUT_LEARNED, false, streams == 1), (streams == 1 ? 1 : 15) * BECALM_S);
        check_eq_u64(wait_in_line(BECALM_TIMEOUT_NONE, true, streams == 1), 15 * BECALM_S);
        check_eq_u64(wait_in_line(BECALM_TIMEOUT_LEARNED, true, streams == 1), 15 * BECALM_S);
        check_eq_u64(wait_in_line(BECALM_TIMEOUT_EXACT, false, streams == 1), BECALM_S);
        check_eq_u64(wait_in_line(BECALM_TIMEOUT_EXACT, true, streams == 1), 2500 * BECALM_MS);
    }
}

/* How long a caller's call waits in line after a cut of the limit, with a timeout of 1 s, if answers usually take so
 * long. */
static becalm_ns wait_where_usual(becalm_ns usual, becalm_ns max_wait)
{
    struct lab lab;
    lab_open(&lab);
    lab.policy.timeout_kind = BECALM_TIMEOUT_EXACT;
    lab.policy.attempt_timeout = BECALM_S;
    becalm_gate_for_caller(&lab.policy.gate);
    lab.policy.gate.max_wait = max_wait != 0 ? max_wait : lab.policy.gate.max_wait;
    answers(&lab, usual, usual != 0 ? 20 : 0);
    atomic_store_explicit(&lab.target.limit->last_cut_at, lab.now, memory_order_relaxed);
    atomic_store_explicit(&lab.target.limit->units, 20, memory_order_relaxed); /* one slot */
    becalm_ns waits = wait_behind_another(&lab, false);
    free(lab.memory);
    return waits;
}

/* A page finds one slot. If an answer takes a third of the timeout, no other call of the page would be sent within a
 * quarter of it. */
static void test_late__a_callers_line_waits_for_twice_the_usual_time_if_there_is_time_for_an_answer_then(void **state)
{
    (void)state;
    check_eq_u64(wait_where_usual(0, 0), 250 * BECALM_MS);
    check_eq_u64(wait_where_usual(100 * BECALM_MS, 0), 250 * BECALM_MS);
    check_eq_u64(wait_where_usual(300 * BECALM_MS, 0), 600 * BECALM_MS);
    check_eq_u64(wait_where_usual(400 * BECALM_MS, 0), 500 * BECALM_MS);
    check_eq_u64(wait_where_usual(700 * BECALM_MS, 0), 250 * BECALM_MS);
    check_eq_u64(wait_where_usual(300 * BECALM_MS, 200 * BECALM_MS), 200 * BECALM_MS); /* written */
}

/* By which timeout a gate's limit judges an answer of a service that usually takes so long, if the call has this time
 * to its deadline. */
static becalm_ns judged_by(enum becalm_timeout_kind kind, enum becalm_limit_kind limit, becalm_ns usual, becalm_ns left)
{
    struct lab lab;
    lab_open(&lab);
    lab.policy.limit.kind = limit;
    becalm_limit_init(lab.target.limit, &lab.policy.limit);
    learn(&lab, usual);
    lab.policy.timeout_kind = kind;
    becalm_call_init(&lab.call[0], &lab.policy, &lab.target, &(struct becalm_request){.deadline_at = lab.now + left});
    step(&lab, &lab.call[0], (struct becalm_event){.kind = BECALM_EVENT_BEGIN});
    becalm_ns timeout = lab.call[0].slot[0].slot.timeout;
    free(lab.memory);
    return timeout;
}

/* The deadline of 60 s is no sign of a hurry: a service of 14 s is not overloaded because some of its answers take
 * longer than a quarter of it. So an answer is slow only after half of the time left, and not earlier. */
static void test_late__a_gate_takes_answers_within_half_of_the_time_left_for_soon_enough(void **state)
{
    (void)state;
    const enum becalm_timeout_kind learned = BECALM_TIMEOUT_LEARNED;
    const becalm_ns all = 60 * BECALM_S;
    becalm_ns due = judged_by(learned, BECALM_LIMIT_AIMD, 14 * BECALM_S, all); /* of a caller: when it is overdue */
    check_between_u64(due, 2 * 14 * BECALM_S, 4 * 14 * BECALM_S);
    check_eq_u64(judged_by(learned, BECALM_LIMIT_SLOTS, 20 * BECALM_MS, all), 4 * 5 * BECALM_S); /* slow when overdue */
    check_eq_u64(judged_by(learned, BECALM_LIMIT_SLOTS, 14 * BECALM_S, all), 2 * all);
    check_eq_u64(judged_by(BECALM_TIMEOUT_NONE, BECALM_LIMIT_SLOTS, 14 * BECALM_S, all), 2 * all);
    check_eq_u64(judged_by(learned, BECALM_LIMIT_SLOTS, 25 * BECALM_S, all), 2 * all);
    check_eq_u64(judged_by(learned, BECALM_LIMIT_AIMD, 25 * BECALM_S, all), all);
    check_eq_u64(judged_by(learned, BECALM_LIMIT_SLOTS, 14 * BECALM_S, 10 * BECALM_S), 20 * BECALM_S);
    check_eq_u64(judged_by(learned, BECALM_LIMIT_SLOTS, 20 * BECALM_MS, 3 * BECALM_S), 6 * BECALM_S);
    check_eq_u64(judged_by(learned, BECALM_LIMIT_SLOTS, 20 * BECALM_MS, 10 * BECALM_MS), 2 * BECALM_S);
    check_eq_u64(judged_by(BECALM_TIMEOUT_EXACT, BECALM_LIMIT_SLOTS, 20 * BECALM_MS, 3 * BECALM_S), 3 * BECALM_S);
}

enum { SIX = 6 };

/* Six attempts are always in flight at a gate, and the answers of the service take this time; until the limit is
 * cut. */
static bool six_are_cut_by(struct lab *lab, becalm_ns took)
{
    for (int i = 0; i < SIX; i++, lab->now += took / SIX) {
        begin(lab, &lab->call[i], false);
    }
    bool cut = false;
    for (int i = 0; i < 100 && !cut; i++, lab->now += took / SIX) {
        done(lab, &lab->call[i % SIX], 0, BECALM_OUTCOME_OK);
        cut = becalm_limit_now(lab->target.limit, &lab->policy.limit) < SIX;
        if (!cut) {
            begin(lab, &lab->call[i % SIX], false);
        }
    }
    for (int i = 0; i < SIX && !cut; i++) {
        done(lab, &lab->call[i], 0, BECALM_OUTCOME_OK);
    }
    return cut;
}

/* A service whose answers took `known` until now, and take `took` from now on. */
static bool is_cut_by(becalm_ns known, becalm_ns took)
{
    struct lab lab;
    lab_open(&lab);
    lab.policy.limit.kind = BECALM_LIMIT_SLOTS;
    becalm_limit_init(lab.target.limit, &lab.policy.limit);
    learn(&lab, known);
    assert_false(six_are_cut_by(&lab, known));
    bool cut = six_are_cut_by(&lab, took);
    free(lab.memory);
    return cut;
}

/* An answer is slow when its attempt is overdue. Slower answers make that time grow, so only a service that takes much
 * longer at once has a queue. With so few attempts in flight there is no other sign of one. */
static void test_late__a_gate_takes_usual_answers_for_usual(void **state)
{
    (void)state;
    assert_false(is_cut_by(3400 * BECALM_MS, 3400 * BECALM_MS));
    assert_false(is_cut_by(10 * BECALM_S, 10 * BECALM_S));
    assert_false(is_cut_by(20 * BECALM_MS, 4900 * BECALM_MS));
    assert_true(is_cut_by(20 * BECALM_MS, 12 * BECALM_S));
    assert_false(is_cut_by(3400 * BECALM_MS, 10 * BECALM_S));
    assert_true(is_cut_by(3400 * BECALM_MS, 20 * BECALM_S));
}

BECALM_TESTS(
    cmocka_unit_test(test_late__an_answer_after_what_was_only_a_guess_undoes_the_cuts_of_a_callers_limit),
    cmocka_unit_test(test_late__an_answer_within_half_of_the_time_to_the_deadline_undoes_the_cuts),
    cmocka_unit_test(test_late__an_answer_in_time_undoes_no_cut_by_rejections),
    cmocka_unit_test(test_late__an_answer_in_time_undoes_nothing_where_others_are_cut_off),
    cmocka_unit_test(test_late__who_waits_in_line_is_sent_when_a_late_answer_widens_the_limit),
    cmocka_unit_test(test_late__a_later_answer_leaves_the_cuts),
    cmocka_unit_test(test_late__a_callers_limit_judges_by_what_is_overdue),
    cmocka_unit_test(test_late__who_writes_no_timeout_waits_in_line_for_a_quarter_of_the_deadline),
    cmocka_unit_test(test_late__a_callers_line_waits_for_twice_the_usual_time_if_there_is_time_for_an_answer_then),
    cmocka_unit_test(test_late__a_gate_takes_answers_within_half_of_the_time_left_for_soon_enough),
    cmocka_unit_test(test_late__a_gate_takes_usual_answers_for_usual))
