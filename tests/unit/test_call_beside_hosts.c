/* SPDX-License-Identifier: MIT */
#include "overdue_lab.h"

#include <becalm/outlier.h>

/* A host that swallows requests is ejected as fast as without a second attempt beside the overdue one, although that
 * one brings the answers. */

#define CROWD   3000u
#define APART   (10 * BECALM_MS)
#define USUAL   (20 * BECALM_MS)
#define FOREVER 0u

/* Calls to a target of several hosts, one begun every 10 ms. One of `slow_every` attempts at host 0 takes `slow`, or
 * never ends; all others take 20 ms. */
struct crowd {
    uint32_t hosts;
    enum becalm_timeout_kind kind;
    bool retry_overdue;
    uint32_t slow_every;
    becalm_ns slow;
};

struct seen {
    uint32_t to_first; /* attempts at host 0 */
    uint32_t beside;
    bool ejected; /* host 0, at any time */
};

struct room {
    const struct crowd *crowd;
    struct becalm_policy policy;
    struct becalm_target target;
    struct becalm_call *call;
    becalm_ns (*ends_at)[BECALM_SLOTS];
    becalm_ns *wake_at;
    becalm_ns now;
    uint64_t seed;
    void *memory;
    struct seen seen;
};

static void act(struct room *room, uint32_t i, const struct becalm_action *action)
{
    room->wake_at[i] = action->wake_at;
    for (uint32_t slot = 0; slot < BECALM_SLOTS; slot++) {
        if ((action->cancel & 1u << slot) != 0) {
            room->ends_at[i][slot] = BECALM_NEVER;
        }
    }
    if ((action->flags & BECALM_DO_SEND) == 0) {
        return;
    }
    bool first = action->host == 0;
    bool slow = first && room->seen.to_first % room->crowd->slow_every == 0;
    becalm_ns took = !slow ? USUAL : room->crowd->slow;
    room->ends_at[i][action->slot] = took == FOREVER ? BECALM_NEVER : room->now + took;
    room->seen.to_first += first;
    room->seen.beside += action->why == BECALM_WHY_HEDGE;
}

static void feed(struct room *room, uint32_t i, struct becalm_event event)
{
    struct becalm_action action;
    event.at = (struct becalm_moment){.now = room->now, .random = becalm_rand_next(&room->seed)};
    becalm_call_step(&room->call[i], &event, &action);
    act(room, i, &action);
}

/* What is due of one call at this moment. */
static void serve(struct room *room, uint32_t i)
{
    for (uint32_t slot = 0; slot < BECALM_SLOTS; slot++) {
        if (room->ends_at[i][slot] <= room->now) {
            room->ends_at[i][slot] = BECALM_NEVER;
            feed(room, i,
                 (struct becalm_event){
                     .kind = BECALM_EVENT_DONE, .slot = slot, .outcome = {.kind = BECALM_OUTCOME_OK, .status = 200}});
        }
    }
    if (room->wake_at[i] <= room->now) {
        feed(room, i, (struct becalm_event){.kind = BECALM_EVENT_TIMER});
    }
}

static void room_open(struct room *room, const struct crowd *crowd)
{
    *room = (struct room){.crowd = crowd, .now = BECALM_S, .seed = 7};
    becalm_policy_defaults(&room->policy);
    room->policy.timeout_kind = crowd->kind;
    room->policy.attempt_timeout = BECALM_S;
    room->policy.deadline = 4 * BECALM_S;
    room->policy.retry_overdue = crowd->retry_overdue;
    room->memory = aligned_alloc(64, becalm_target_bytes(&room->policy, crowd->hosts, 1));
    check_eq_u64((uint64_t)becalm_target_init(&room->target, room->memory, &room->policy, crowd->hosts, 1), 0);
    room->call = calloc(CROWD, sizeof *room->call);
    room->ends_at = malloc(CROWD * sizeof *room->ends_at);
    room->wake_at = malloc(CROWD * sizeof *room->wake_at);
    for (uint32_t i = 0; i < CROWD; i++) {
        room->wake_at[i] = BECALM_NEVER;
        for (uint32_t slot = 0; slot < BECALM_SLOTS; slot++) {
            room->ends_at[i][slot] = BECALM_NEVER;
        }
    }
}

static void room_close(struct room *room)
{
    free(room->wake_at);
    free(room->ends_at);
    free(room->call);
    free(room->memory);
}

static struct seen watch(struct crowd crowd)
{
    struct room room;
    room_open(&room, &crowd);
    for (uint32_t begun = 0; begun < CROWD; room.now += APART) {
        becalm_call_init(&room.call[begun], &room.policy, &room.target, &(struct becalm_request){.idempotent = true});
        feed(&room, begun++, (struct becalm_event){.kind = BECALM_EVENT_BEGIN});
        for (uint32_t i = 0; i < begun; i++) {
            serve(&room, i);
        }
        room.seen.ejected |= becalm_host_ejected(room.target.hosts, 0, room.now);
    }
    room_close(&room);
    return room.seen;
}

static void test_beside_hosts__a_host_that_swallows_requests_is_ejected_as_fast_as_without_it(void **state)
{
    (void)state;
    static const enum becalm_timeout_kind kinds[] = {BECALM_TIMEOUT_EXACT, BECALM_TIMEOUT_LEARNED};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (uint32_t hosts = 3; hosts <= 5; hosts += 2) {
            struct crowd crowd = {.hosts = hosts, .kind = kinds[k], .slow_every = 1, .slow = FOREVER};
            struct seen without = watch(crowd);
            crowd.retry_overdue = true;
            struct seen with = watch(crowd);
            assert_true(without.ejected && with.ejected);
            assert_true(with.beside > 0);
            check_between_u64(with.to_first, 1, without.to_first + 2);
        }
    }
}

/* One of a hundred of its requests is slow, and is overtaken by another attempt. */
static void test_beside_hosts__a_host_with_a_few_slow_requests_stays_in(void **state)
{
    (void)state;
    struct seen seen = watch((struct crowd){.hosts = 3,
                                            .kind = BECALM_TIMEOUT_EXACT,
                                            .retry_overdue = true,
                                            .slow_every = 100,
                                            .slow = BECALM_S - BECALM_MS});
    assert_true(seen.beside > 0);
    assert_false(seen.ejected);
}

/* Host 0 is ejected, and its time is over: the next attempt that goes there decides. */
static void eject_first(struct lab *lab)
{
    struct becalm_moment at = {.now = lab->now};
    for (uint32_t i = 0; i < 5; i++) {
        becalm_hosts_sent(lab->target.hosts, 0, lab->now);
        becalm_hosts_note(lab->target.hosts, &lab->policy.outlier, &at, 0,
                          &(struct becalm_outcome){.kind = BECALM_OUTCOME_FAILED});
    }
    assert_true(becalm_host_ejected(lab->target.hosts, 0, lab->now));
    lab->now += lab->policy.outlier.base_ejection;
    assert_false(becalm_host_ejected(lab->target.hosts, 0, lab->now));
}

/* The first call begins, and another one after it, which is answered: so a second attempt goes beside the first one's.
 * Returns the host of that. */
static uint32_t overtake(struct lab *lab)
{
    struct becalm_call *call = &lab->call[0];
    begin(lab, call, true);
    uint32_t host = call->slot[0].host;
    becalm_ns wake_at = lab->action.wake_at;
    begin(lab, &lab->call[1], true);
    lab->now += USUAL;
    done(lab, &lab->call[1], 0, BECALM_OUTCOME_OK);
    lab->now = wake_at;
    timer(lab, call);
    assert_true((lab->action.flags & BECALM_DO_SEND) != 0);
    return host;
}

static void test_beside_hosts__a_readmission_probe_that_is_overtaken_renews_the_ejection(void **state)
{
    (void)state;
    static const enum becalm_timeout_kind kinds[] = {BECALM_TIMEOUT_EXACT, BECALM_TIMEOUT_LEARNED};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        struct lab lab;
        lab_open(&lab);
        lab.policy.timeout_kind = kinds[k];
        lab.policy.attempt_timeout = BECALM_S;
        lab_reopen(&lab);
        answers(&lab, USUAL, 400);
        lab.now += lab.policy.outlier.window;
        eject_first(&lab);
        struct becalm_call *call = &lab.call[0];
        check_eq_u64(overtake(&lab), 0);
        lab.now += USUAL;
        done(&lab, call, 1, BECALM_OUTCOME_OK);
        assert_int_equal(call->record.reason, BECALM_WHY_OK);
        assert_true(becalm_host_ejected(lab.target.hosts, 0, lab.now + lab.policy.outlier.base_ejection));
        free(lab.memory);
    }
}

enum ends { OVERTAKEN, THE_CALLER_LEAVES, IT_WAITS_FOR_A_CONNECTION, ALL_ENDS };

/* The failures that its host is told of. */
static uint64_t failures_after(enum ends ends)
{
    struct lab lab;
    lab_open(&lab);
    lab.policy.timeout_kind = BECALM_TIMEOUT_EXACT;
    lab_reopen(&lab);
    answers(&lab, USUAL, 400);
    lab.now += lab.policy.outlier.window;
    struct becalm_call *call = &lab.call[0];
    uint32_t host = overtake(&lab);
    if (ends == IT_WAITS_FOR_A_CONNECTION) {
        becalm_call_unsent(call, 0, BECALM_NEVER);
    }
    if (ends == THE_CALLER_LEAVES) {
        step(&lab, call, (struct becalm_event){.kind = BECALM_EVENT_CANCEL});
    } else {
        done(&lab, call, 1, BECALM_OUTCOME_OK);
    }
    assert_true(becalm_call_ended(call));
    uint64_t results;
    uint64_t failed;
    assert_true(becalm_host_read(lab.target.hosts, host, lab.now, &results, &failed));
    free(lab.memory);
    return failed;
}

static void test_beside_hosts__only_an_attempt_that_another_one_overtook_is_held_against_its_host(void **state)
{
    (void)state;
    for (enum ends ends = OVERTAKEN; ends < ALL_ENDS; ends++) {
        check_eq_u64(failures_after(ends), ends == OVERTAKEN);
    }
}

BECALM_TESTS(cmocka_unit_test(test_beside_hosts__a_host_that_swallows_requests_is_ejected_as_fast_as_without_it),
             cmocka_unit_test(test_beside_hosts__a_host_with_a_few_slow_requests_stays_in),
             cmocka_unit_test(test_beside_hosts__a_readmission_probe_that_is_overtaken_renews_the_ejection),
             cmocka_unit_test(test_beside_hosts__only_an_attempt_that_another_one_overtook_is_held_against_its_host))
