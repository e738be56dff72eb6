/* SPDX-License-Identifier: MIT */
#include <becalm/call.h>
#include <becalm/lease.h>

#include "lib/check.h"

#define START (1000 * BECALM_S)
#define MANY  8u

/* A store and instances, driven by hand. */
struct lab {
    struct becalm_lease_policy policy;
    struct becalm_lease_store *store;
    struct becalm_lease *lease[MANY];
    uint64_t random;
    becalm_ns now;
};

static void *memory_of(size_t bytes)
{
    void *memory = aligned_alloc(64, bytes);
    check_true(memory != NULL);
    memset(memory, 0xa5, bytes); /* the earlier content of the memory must not matter */
    return memory;
}

static struct lab lab_open(uint32_t places)
{
    struct lab lab = {.now = START, .random = 1};
    becalm_lease_defaults(&lab.policy);
    lab.policy.enabled = true;
    lab.policy.floor = 0;
    lab.store = becalm_lease_store_init(memory_of(becalm_lease_store_bytes(places)), places);
    for (uint32_t i = 0; i < MANY; i++) {
        lab.lease[i] = becalm_lease_init(memory_of(becalm_lease_bytes(1)), 1);
    }
    return lab;
}

static void lab_close(struct lab *lab)
{
    for (uint32_t i = 0; i < MANY; i++) {
        free(lab->lease[i]);
    }
    free(lab->store);
}

static struct becalm_moment at(struct lab *lab)
{
    return (struct becalm_moment){.now = lab->now, .random = becalm_rand_next(&lab->random)};
}

static void begin(struct lab *lab, uint32_t i, uint32_t calls)
{
    struct becalm_moment now = at(lab);
    for (uint32_t n = 0; n < calls; n++) {
        becalm_lease_begin(lab->lease[i], &now);
    }
}

/* As many of `wanted` retries as there are. */
static uint32_t spend(struct lab *lab, uint32_t i, uint32_t wanted)
{
    struct becalm_moment now = at(lab);
    uint32_t got = 0;
    for (uint32_t n = 0; n < wanted; n++) {
        got += becalm_lease_take(lab->lease[i], &now);
    }
    return got;
}

static struct becalm_lease_request ask(struct lab *lab, uint32_t i)
{
    struct becalm_lease_request request;
    struct becalm_moment now = at(lab);
    check_true(becalm_lease_ask(lab->lease[i], &lab->policy, &now, &request));
    return request;
}

static struct becalm_lease_answer exchange(struct lab *lab, const struct becalm_lease_request *request)
{
    struct becalm_lease_answer answer;
    check_true(becalm_lease_store_exchange(lab->store, &lab->policy, lab->now, request, &answer));
    return answer;
}

/* Asks, and is answered at once. */
static void renew(struct lab *lab, uint32_t i)
{
    struct becalm_lease_request request = ask(lab, i);
    struct becalm_lease_answer answer = exchange(lab, &request);
    check_true(becalm_lease_answer(lab->lease[i], lab->now, &answer));
}

/* Ten seconds in which all instances make `calls` first attempts a second, and nothing fails. */
static void quiet(struct lab *lab, uint32_t instances, uint32_t calls)
{
    for (uint32_t tenth = 0; tenth < 100; tenth++) {
        for (uint32_t i = 0; i < instances; i++) {
            begin(lab, i, calls / 10);
            if (tenth % 5 == 4) {
                renew(lab, i);
            }
        }
        lab->now += 100 * BECALM_MS;
    }
}

static uint64_t pot_of(const struct lab *lab)
{
    return lab->store->pot.stock / 1000000;
}

static void test_lease__a_fresh_one_has_nothing_and_asks_at_once(void **state)
{
    (void)state;
    struct lab lab = lab_open(MANY);
    check_true(becalm_lease_degraded(lab.lease[0]));
    check_eq_u64(becalm_lease_left(lab.lease[0]), 0);
    check_eq_u64(becalm_lease_live(lab.lease[0]), 0);
    check_eq_u64(becalm_lease_ask_at(lab.lease[0]), 0);
    check_eq_u64(spend(&lab, 0, 1), 0);
    struct becalm_lease_request request = ask(&lab, 0);
    check_true(request.instance != 0);
    check_eq_u64(request.number, 1);
    check_eq_u64(request.granted + request.spent + request.returned, 0);
    check_between_u64(becalm_lease_ask_at(lab.lease[0]), lab.now + BECALM_LEASE_NEXT * 2 / 3,
                      lab.now + BECALM_LEASE_NEXT * 4 / 3);
    lab_close(&lab);
}

static void test_lease__the_defaults_are_a_fifth_and_off(void **state)
{
    (void)state;
    struct becalm_lease_policy policy;
    const char *why = "";
    becalm_lease_defaults(&policy);
    check_true(!policy.enabled);
    check_eq_u64(policy.share_ppm, 200000);
    check_eq_u64(policy.floor, 100000);
    check_eq_u64((uint64_t)becalm_lease_check(&policy, &why), 0);
    check_true(why == NULL);
    policy.share_ppm = 1000001;
    check_true(becalm_lease_check(&policy, &why) == BECALM_EINVAL);
    check_eq_str(why, "share_ppm must be at most 1,000,000 (1)");
    becalm_lease_defaults(&policy);
    policy.floor = 100000001;
    check_true(becalm_lease_check(&policy, &why) == BECALM_EINVAL);
    check_eq_str(why, "floor must be at most 100,000,000 (100 retries a second)");
}

/* A thousand calls a second at 20 %: 200 retries a second in all. */
static void test_lease__what_one_instance_used_the_others_have_not(void **state)
{
    (void)state;
    struct lab lab = lab_open(MANY);
    quiet(&lab, MANY, 125); /* a thousand of all: the rest is saved, up to half a second's worth */
    uint32_t held = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        held += (uint32_t)becalm_lease_left(lab.lease[i]);
    }
    (void)spend(&lab, 0,
                25 + (uint32_t)becalm_lease_left(lab.lease[0])); /* wants 25 more; the next level is twice that */
    uint64_t before = pot_of(&lab);
    check_between_u64(before, 90, 100);
    renew(&lab, 0);
    check_eq_u64(becalm_lease_left(lab.lease[0]), 50 + 2 * (held / MANY));
    uint32_t others = 0;
    for (uint32_t i = 1; i < MANY; i++) {
        (void)spend(&lab, i, 1000);
        renew(&lab, i);
        others += (uint32_t)becalm_lease_left(lab.lease[i]);
    }
    check_eq_u64(becalm_lease_left(lab.lease[0]) + others, before);
    check_eq_u64(pot_of(&lab), 0);
    lab_close(&lab);
}

static void test_lease__those_who_want_more_than_there_is_get_even_parts(void **state)
{
    (void)state;
    struct lab lab = lab_open(MANY);
    quiet(&lab, 4, 250);
    for (uint32_t round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < 4; i++) {
            begin(&lab, i, 125);
            (void)spend(&lab, i, 500);
            lab.now += 125 * BECALM_MS;
            renew(&lab, i);
        }
    }
    for (uint32_t i = 0; i < 4; i++) { /* each told of 125 calls, a fifth of which is 25 */
        check_between_u64(becalm_lease_left(lab.lease[i]), 20, 30);
    }
    lab_close(&lab);
}

static void test_lease__who_asks_first_leaves_the_others_their_part(void **state)
{
    (void)state;
    struct lab lab = lab_open(MANY);
    for (uint32_t i = 0; i < 5; i++) {
        (void)spend(&lab, i, 1000);
        renew(&lab, i); /* all want, and there is nothing */
    }
    begin(&lab, 4, 1000);
    renew(&lab, 4); /* brings two hundred, of which half is kept: all five want them */
    check_eq_u64(becalm_lease_left(lab.lease[4]), 20);
    static const uint32_t parts[] = {16, 13, 11, 8}; /* a fifth of the pot, rounded up: no instance has had enough */
    for (uint32_t i = 0; i < 4; i++) {
        (void)spend(&lab, i, 1000);
        renew(&lab, i);
        check_eq_u64(becalm_lease_left(lab.lease[i]), parts[i]);
    }
    lab_close(&lab);
}

static void test_lease__a_lost_answer_is_made_up_for_by_the_next(void **state)
{
    (void)state;
    struct lab lab = lab_open(MANY);
    quiet(&lab, 1, 1000);
    (void)spend(&lab, 0, 1000);
    struct becalm_lease_request request = ask(&lab, 0);
    struct becalm_lease_answer lost = exchange(&lab, &request);
    check_true(lost.granted > request.granted);
    check_eq_u64(becalm_lease_left(lab.lease[0]), 0);
    lab.now += BECALM_LEASE_TIMEOUT;
    request = ask(&lab, 0); /* no retry was wanted since: it asks for the earlier number */
    check_eq_u64(request.level, 1000);
    struct becalm_lease_answer answer = exchange(&lab, &request);
    check_eq_u64(answer.granted, lost.granted);
    check_true(becalm_lease_answer(lab.lease[0], lab.now, &answer));
    check_eq_u64(becalm_lease_left(lab.lease[0]), lost.granted - request.granted);
    lab_close(&lab);
}

static void test_lease__a_doubled_or_overtaken_request_has_no_effect(void **state)
{
    (void)state;
    struct lab lab = lab_open(MANY);
    quiet(&lab, 1, 1000);
    begin(&lab, 0, 100);
    (void)spend(&lab, 0, 1000);
    struct becalm_lease_request request = ask(&lab, 0);
    struct becalm_lease_answer first = exchange(&lab, &request); /* it wants more than there is */
    renew(&lab, 1);
    begin(&lab, 1, 500);
    renew(&lab, 1); /* and now there is more */
    uint64_t stock = lab.store->pot.stock;
    for (int i = 0; i < 3; i++) {
        struct becalm_lease_answer again = exchange(&lab, &request);
        check_eq_u64(again.granted, first.granted);
        check_eq_u64(lab.store->pot.stock, stock);
    }
    check_true(becalm_lease_answer(lab.lease[0], lab.now, &first));
    check_true(!becalm_lease_answer(lab.lease[0], lab.now, &first));
    struct becalm_lease_request next = ask(&lab, 0);
    (void)exchange(&lab, &next);
    stock = lab.store->pot.stock;
    request.level = 100000;
    request.returned = 0;
    (void)exchange(&lab, &request);
    check_eq_u64(lab.store->pot.stock, stock);
    lab_close(&lab);
}

static void test_lease__an_answer_that_can_t_be_right_changes_nothing(void **state)
{
    (void)state;
    struct lab lab = lab_open(MANY);
    quiet(&lab, 1, 1000);
    (void)spend(&lab, 0, 100);
    struct becalm_lease_request request = ask(&lab, 0);
    struct becalm_lease_answer right = exchange(&lab, &request);
    struct becalm_lease_answer wrong[] = {right, right, right, right, right, right, right, right, right, right, right};
    wrong[0].number--;
    wrong[1].number++;
    wrong[2].granted = request.granted - 1;
    wrong[3].granted = request.granted + request.level + 1;
    wrong[4].granted = UINT64_MAX;
    wrong[5].live = 0;
    wrong[6].live = BECALM_LEASE_LIVE_MAX + 1;
    wrong[7].ttl = 0;
    wrong[8].ttl = BECALM_LEASE_TTL_MAX + 1;
    wrong[9].next = BECALM_LEASE_NEXT_MIN - 1;
    wrong[10].next = BECALM_LEASE_NEXT_MAX + 1;
    uint64_t left = becalm_lease_left(lab.lease[0]);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        check_true(!becalm_lease_answer(lab.lease[0], lab.now, &wrong[i]));
        check_eq_u64(becalm_lease_left(lab.lease[0]), left);
        check_eq_u64(becalm_lease_live(lab.lease[0]), 1);
    }
    check_true(!becalm_lease_answer(lab.lease[0], lab.now + BECALM_LEASE_TTL, &right)); /* it is over already */
    check_true(becalm_lease_answer(lab.lease[0], lab.now + BECALM_LEASE_TTL - 1, &right));
    check_true(becalm_lease_left(lab.lease[0]) > left);
    lab_close(&lab);
}

static void test_lease__it_waits_for_one_answer_at_a_time(void **state)
{
    (void)state;
    struct lab lab = lab_open(MANY);
    struct becalm_lease_request request = ask(&lab, 0);
    struct becalm_lease_request other;
    lab.now += BECALM_LEASE_TIMEOUT - 1;
    struct becalm_moment now = at(&lab);
    check_true(!becalm_lease_ask(lab.lease[0], &lab.policy, &now, &other));
    lab.now += 1;
    check_eq_u64(ask(&lab, 0).number, request.number + 1);
    struct becalm_lease_answer late = exchange(&lab, &request);
    check_true(!becalm_lease_answer(lab.lease[0], lab.now, &late));
    lab_close(&lab);
}

/* Asks every half second, and the store does not answer. */
static void alone(struct lab *lab, uint32_t i, uint32_t seconds, uint32_t calls, uint32_t *spent)
{
    for (uint32_t half = 0; half < 2 * seconds; half++) {
        begin(lab, i, calls / 2);
        *spent += spend(lab, i, calls);
        lab->now += 500 * BECALM_MS;
        struct becalm_lease_request request;
        struct becalm_moment now = at(lab);
        (void)becalm_lease_ask(lab->lease[i], &lab->policy, &now, &request);
    }
}

static void test_lease__without_a_store_it_lives_on_the_share_of_its_own_traffic(void **state)
{
    (void)state;
    struct lab lab = lab_open(MANY);
    quiet(&lab, 2, 500);
    uint64_t left = becalm_lease_left(lab.lease[0]);
    uint32_t spent = 0;
    alone(&lab, 0, 2, 0, &spent); /* the lease ends unspent */
    check_true(becalm_lease_degraded(lab.lease[0]));
    check_eq_u64(becalm_lease_left(lab.lease[0]), 0);
    check_eq_u64(lab.lease[0]->last.returned, left);
    check_eq_u64(becalm_lease_live(lab.lease[0]), 2);
    alone(&lab, 0, 30, 100, &spent);
    check_between_u64(spent, 575, 600); /* 20 % of 3000 */
    lab_close(&lab);
}

static void test_lease__each_outage_begins_with_nothing(void **state)
{
    (void)state;
    struct lab lab = lab_open(MANY);
    lab.policy.floor = 1000000;
    struct becalm_lease_request request;
    struct becalm_moment now;
    for (int outage = 0; outage < 3; outage++) {
        lab.now += BECALM_LEASE_TIMEOUT;
        renew(&lab, 0);
        (void)spend(&lab, 0, 1000);
        lab.now += 2 * BECALM_LEASE_TTL; /* it had nothing to tell */
        now = at(&lab);
        (void)becalm_lease_ask(lab.lease[0], &lab.policy, &now, &request);
        check_true(becalm_lease_degraded(lab.lease[0]));
        check_eq_u64(becalm_lease_left(lab.lease[0]), 0);
        for (int half = 0; half < 10; half++) { /* more is earned than is drawn */
            begin(&lab, 0, 100);
            lab.now += 500 * BECALM_MS;
            now = at(&lab);
            (void)becalm_lease_ask(lab.lease[0], &lab.policy, &now, &request);
        }
        check_true(lab.lease[0]->own.stock > 10000000);
    }
    lab_close(&lab);
}

static void test_lease__the_floor_is_divided_by_the_instances_that_were_there(void **state)
{
    (void)state;
    struct lab lab = lab_open(MANY);
    lab.policy.floor = 1000000; /* one a second of all */
    for (uint32_t i = 0; i < 4; i++) {
        renew(&lab, i);
    }
    uint32_t spent[2] = {0, 0};
    struct lab before = lab;
    alone(&lab, 3, 40, 2, &spent[0]); /* knows of three others; 80 calls earn it 16 */
    check_between_u64(spent[0], 23, 26);
    lab.now = before.now;
    renew(&lab, 4);
    lab.policy.share_ppm = 0;
    alone(&lab, 5, 40, 2, &spent[1]); /* never heard anything, so it has no part of it */
    check_eq_u64(spent[1], 0);
    lab_close(&lab);
}

static void test_lease__a_store_that_is_back_begins_with_leases_again(void **state)
{
    (void)state;
    struct lab lab = lab_open(MANY);
    quiet(&lab, 1, 1000);
    uint32_t spent = 0;
    alone(&lab, 0, 10, 1000, &spent);
    uint64_t first = lab.lease[0]->last.first;
    check_true(becalm_lease_degraded(lab.lease[0]));
    check_true(becalm_lease_left(lab.lease[0]) > 0);
    lab.now += BECALM_LEASE_TIMEOUT;
    uint64_t stock = pot_of(&lab);
    struct becalm_lease_request request = ask(&lab, 0);
    check_eq_u64(request.first, first); /* its own share is not reported, so it does not earn twice */
    struct becalm_lease_answer answer = exchange(&lab, &request);
    check_true(becalm_lease_answer(lab.lease[0], lab.now, &answer));
    check_true(!becalm_lease_degraded(lab.lease[0]));
    check_eq_u64(becalm_lease_left(lab.lease[0]), answer.granted - request.granted);
    check_true(answer.granted - request.granted <= stock + request.returned);
    lab_close(&lab);
}

static void test_lease__what_is_not_needed_any_more_is_returned(void **state)
{
    (void)state;
    struct lab lab = lab_open(MANY);
    quiet(&lab, 1, 1000);
    (void)spend(&lab, 0, 180);
    renew(&lab, 0);
    uint64_t held = becalm_lease_left(lab.lease[0]);
    uint64_t stock = pot_of(&lab);
    check_true(held > 80);
    lab.now += 3 * BECALM_S; /* the earlier demand is forgotten */
    lab.lease[0]->expires_at = lab.now + BECALM_S;
    begin(&lab, 0, 50);
    renew(&lab, 0); /* 20 % of 50 is 10 */
    check_eq_u64(becalm_lease_left(lab.lease[0]), 10);
    check_eq_u64(pot_of(&lab), stock + held - 10 + 10);
    lab_close(&lab);
}

static void test_lease__totals_go_on_under_another_name(void **state)
{
    struct becalm_lease_request goodbye;
    struct lab lab = lab_open(MANY);
    (void)state;
    quiet(&lab, 1, 1000);
    check_eq_u64(spend(&lab, 0, 30), 30);
    renew(&lab, 0);
    struct becalm_lease_totals before = becalm_lease_totals(lab.lease[0]);
    check_true(before.told > 0 && before.granted >= 30);
    check_eq_u64(before.spent, 30);
    check_eq_u64(before.granted, before.spent + before.returned + becalm_lease_left(lab.lease[0]));
    struct becalm_moment at = {.now = lab.now};
    check_true(becalm_lease_lost(lab.lease[0], &lab.policy, &at, &goodbye));
    struct becalm_lease_totals lost = becalm_lease_totals(lab.lease[0]);
    check_eq_u64(lost.told, before.told);
    check_eq_u64(lost.granted, before.granted);
    check_eq_u64(lost.granted, lost.spent + lost.returned); /* the rest of the lease is its own now */
    lab_close(&lab);
}

static void test_lease__no_more_is_returned_than_was_granted(void **state)
{
    (void)state;
    struct lab lab = lab_open(MANY);
    uint32_t spent = 0;
    alone(&lab, 0, 5, 100, &spent);
    check_eq_u64(spend(&lab, 0, 3), 3); /* of its own share, and held while a lease begins */
    lab.now += BECALM_LEASE_TIMEOUT;
    renew(&lab, 0);
    for (int i = 0; i < 3; i++) {
        becalm_lease_give(lab.lease[0]);
    }
    struct becalm_lease_request request;
    struct becalm_moment now = at(&lab);
    becalm_lease_leave(lab.lease[0], &now, &request);
    check_eq_u64(request.returned, request.granted);
    check_eq_u64(request.spent, 0);
    (void)exchange(&lab, &request);
    lab_close(&lab);
}

static void test_lease__who_leaves_returns_everything_and_is_not_live(void **state)
{
    (void)state;
    struct lab lab = lab_open(MANY);
    quiet(&lab, 2, 500);
    (void)spend(&lab, 1, 1000);
    uint64_t held = becalm_lease_left(lab.lease[0]);
    uint64_t stock = pot_of(&lab);
    struct becalm_lease_request request;
    struct becalm_moment now = at(&lab);
    becalm_lease_leave(lab.lease[0], &now, &request);
    check_eq_u64(becalm_lease_left(lab.lease[0]), 0);
    check_true(request.leaving);
    check_eq_u64(request.granted, request.spent + request.returned);
    (void)exchange(&lab, &request);
    check_eq_u64(pot_of(&lab), stock + held < 100 ? stock + held : 100);
    for (uint32_t i = 0; i < 2; i++) { /* it was counted in the window before */
        lab.now += 2 * BECALM_S;
        renew(&lab, 1);
    }
    check_eq_u64(becalm_lease_live(lab.lease[1]), 1);
    lab_close(&lab);
}

static void test_lease__a_request_that_is_nonsense_gets_no_answer(void **state)
{
    (void)state;
    struct lab lab = lab_open(MANY);
    struct becalm_lease_request right = {
        .instance = 7, .number = 1, .first = 10, .granted = 5, .spent = 3, .returned = 2};
    struct becalm_lease_request wrong[] = {right, right, right, right, right, right};
    wrong[0].instance = 0;
    wrong[1].number = 0;
    wrong[2].spent = 6;
    wrong[3].returned = 3;
    wrong[4].granted = UINT64_MAX;
    wrong[5].first = UINT64_MAX;
    struct becalm_lease_answer answer;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        check_true(!becalm_lease_store_exchange(lab.store, &lab.policy, lab.now, &wrong[i], &answer));
    }
    answer = exchange(&lab, &right);
    check_eq_u64(answer.granted, 5);
    right.number = 2;
    right.spent = 5; /* retries that were returned are not spent afterwards */
    right.returned = 0;
    (void)exchange(&lab, &right);
    check_eq_u64(lab.store->pot.stock, 0);
    right = (struct becalm_lease_request){.instance = 7, .number = 3, .first = 10, .granted = 100, .returned = 100};
    (void)exchange(&lab, &right); /* no instance returns more than it was granted */
    check_eq_u64(lab.store->pot.stock, 0);
    lab_close(&lab);
}

static void test_lease__a_place_of_the_dead_is_used_again(void **state)
{
    (void)state;
    struct lab lab = lab_open(2);
    struct becalm_lease_request third = {.instance = 33, .number = 1};
    struct becalm_lease_answer answer;
    renew(&lab, 0);
    renew(&lab, 1);
    check_true(!becalm_lease_store_exchange(lab.store, &lab.policy, lab.now, &third, &answer));
    lab.now += 11 * BECALM_S; /* longer than any lease */
    renew(&lab, 1);
    answer = exchange(&lab, &third);
    check_eq_u64(answer.live, 2);
    lab_close(&lab);
}

static void test_lease__a_store_whose_clock_is_set_makes_no_retries_of_it(void **state)
{
    (void)state;
    struct lab lab = lab_open(MANY);
    lab.now += 2000000 * BECALM_S; /* so that it can be set back */
    quiet(&lab, 1, 1000);
    renew(&lab, 1); /* after a change of the clock, no instance counts as present */
    uint64_t stock = lab.store->pot.stock;
    struct becalm_lease_request request = ask(&lab, 0);
    request.level = 0;
    static const int64_t steps[] = {3600, -7200, 5, -5, 1000000, -1000000};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        lab.now += (becalm_ns)(steps[i] * (int64_t)BECALM_S);
        request.number++;
        struct becalm_lease_answer answer = exchange(&lab, &request);
        check_eq_u64(answer.live, 1);
        check_eq_u64(lab.store->pot.stock, stock);
    }
    lab_close(&lab);
}

/* Nothing was granted in between, so only the number of the answer shows that the store has lost writes. */
static void test_lease__a_store_that_has_lost_writes_earns_nothing_twice(void **state)
{
    (void)state;
    struct lab lab = lab_open(MANY);
    renew(&lab, 0);
    struct becalm_lease_store *older = memory_of(becalm_lease_store_bytes(MANY));
    memcpy(older, lab.store, becalm_lease_store_bytes(MANY));
    begin(&lab, 0, 5000);
    struct becalm_lease_request request = ask(&lab, 0);
    request.level = 0;
    struct becalm_lease_answer answer = exchange(&lab, &request);
    check_true(becalm_lease_answer(lab.lease[0], lab.now, &answer));
    check_eq_u64(pot_of(&lab), 500);
    memcpy(lab.store, older, becalm_lease_store_bytes(MANY));
    begin(&lab, 0, 1);
    request = ask(&lab, 0);
    check_eq_u64(request.answered, request.number - 1);
    (void)exchange(&lab, &request);
    check_eq_u64(pot_of(&lab), 0);
    free(older);
    lab_close(&lab);
}

static void test_lease__who_has_lost_the_connection_has_another_name_and_spends_what_is_left(void **state)
{
    (void)state;
    struct lab lab = lab_open(MANY);
    quiet(&lab, 1, 1000);
    uint64_t left = becalm_lease_left(lab.lease[0]);
    uint64_t name = lab.lease[0]->last.instance;
    check_true(left > 0);
    begin(&lab, 0, 200); /* in no request yet */
    struct becalm_lease_request goodbye;
    struct becalm_moment now = at(&lab);
    uint64_t told = lab.lease[0]->last.first;
    check_true(becalm_lease_lost(lab.lease[0], &lab.policy, &now, &goodbye));
    check_true(becalm_lease_degraded(lab.lease[0]));
    check_eq_u64(becalm_lease_left(lab.lease[0]), left); /* no more: it holds the earnings of that time */
    check_eq_u64(goodbye.instance, name);
    check_eq_u64(goodbye.first, told);
    check_eq_u64(goodbye.spent + goodbye.returned, goodbye.granted);
    check_true(goodbye.leaving);
    check_true(!becalm_lease_lost(lab.lease[0], &lab.policy, &now, &goodbye)); /* its new name is unknown yet */
    struct becalm_lease_request request = ask(&lab, 0);
    check_true(request.instance != name);
    check_eq_u64(request.number, 1);
    check_eq_u64(request.first + request.granted + request.answered, 0);
    struct becalm_lease_answer answer = exchange(&lab, &request);
    check_true(becalm_lease_answer(lab.lease[0], lab.now, &answer));
    uint64_t live = answer.live;
    answer = exchange(&lab, &goodbye);
    check_true(answer.live <= live);
    lab_close(&lab);
}

/* Half a second passes before it hears the answer. */
static void renew_late(struct lab *lab, uint32_t i)
{
    struct becalm_lease_request request = ask(lab, i);
    struct becalm_lease_answer answer = exchange(lab, &request);
    lab->now += 500 * BECALM_MS;
    check_true(becalm_lease_answer(lab->lease[i], lab->now, &answer));
}

/* It has been granted many, in an answer that was late, and has let out some. */
static struct lab lab_late(void)
{
    struct lab lab = lab_open(MANY);
    quiet(&lab, 1, 1000);
    (void)spend(&lab, 0, 1000);
    begin(&lab, 0, 500);
    renew_late(&lab, 0);
    check_between_u64(lab.lease[0]->back, 20, 100);
    check_between_u64(becalm_lease_left(lab.lease[0]), 5, 60);
    return lab;
}

static uint64_t granted_now(const struct lab *lab)
{
    const struct becalm_lease_request *last = &lab->lease[0]->last;
    return last->granted - last->returned;
}

static void test_lease__what_was_granted_late_is_let_out_by_and_by(void **state)
{
    (void)state;
    struct lab lab = lab_late();
    uint64_t out = becalm_lease_left(lab.lease[0]);
    for (uint32_t n = 0; n < 20 && lab.lease[0]->back > 0; n++) {
        lab.now += 300 * BECALM_MS;
        uint64_t before = lab.lease[0]->back;
        (void)spend(&lab, 0, 1000);
        renew(&lab, 0);
        out = becalm_lease_left(lab.lease[0]);
        check_true(out > 0 && lab.lease[0]->back < before);
    }
    check_eq_u64(lab.lease[0]->back, 0);
    begin(&lab, 0, 100);
    (void)spend(&lab, 0, 1000);
    lab.now += 300 * BECALM_MS;
    renew(&lab, 0);
    check_eq_u64(lab.lease[0]->back, 0); /* answers are in time */
    check_between_u64(becalm_lease_left(lab.lease[0]), 20, 200);
    lab_close(&lab);
}

static void test_lease__one_retry_that_was_granted_late_is_there_at_once(void **state)
{
    (void)state;
    struct lab lab = lab_open(MANY);
    begin(&lab, 0, 5);
    renew_late(&lab, 0);
    (void)spend(&lab, 0, 1000);
    lab.now += 300 * BECALM_MS;
    begin(&lab, 0, 5);
    renew_late(&lab, 0);
    check_eq_u64(becalm_lease_left(lab.lease[0]), 1);
    lab_close(&lab);
}

static void test_lease__what_was_not_let_out_is_returned_when_the_lease_ends(void **state)
{
    (void)state;
    struct becalm_lease_request goodbye;
    struct lab lab = lab_late();
    struct becalm_moment now = at(&lab);
    uint64_t left = becalm_lease_left(lab.lease[0]);
    uint64_t back = lab.lease[0]->back;
    check_eq_u64(granted_now(&lab) - lab.lease[0]->last.spent, left + back);
    check_true(becalm_lease_lost(lab.lease[0], &lab.policy, &now, &goodbye));
    check_eq_u64(goodbye.returned, back);
    check_eq_u64(goodbye.granted - goodbye.spent, back);
    check_eq_u64(lab.lease[0]->back, 0);
    lab_close(&lab);

    lab = lab_late();
    now = at(&lab);
    left = becalm_lease_left(lab.lease[0]);
    back = lab.lease[0]->back;
    becalm_lease_leave(lab.lease[0], &now, &goodbye);
    check_eq_u64(goodbye.returned, left + back);
    check_eq_u64(goodbye.granted - goodbye.spent, left + back);
    lab_close(&lab);

    lab = lab_late();
    left = becalm_lease_left(lab.lease[0]) + lab.lease[0]->back;
    lab.now += 3 * BECALM_S; /* its lease is over */
    struct becalm_lease_request request = ask(&lab, 0);
    check_true(becalm_lease_degraded(lab.lease[0]));
    check_eq_u64(request.returned, left);
    check_eq_u64(lab.lease[0]->back, 0);
    lab_close(&lab);
}

static void test_lease__a_storm_finds_no_more_than_half_a_second_saved_up(void **state)
{
    (void)state;
    struct lab lab = lab_open(MANY);
    for (int i = 0; i < 20; i++) {
        quiet(&lab, 1, 1000);
    }
    check_eq_u64(pot_of(&lab), 100);
    lab.now += 60 * BECALM_S; /* there are no calls any more: the pot stays as it is */
    renew(&lab, 0);
    check_between_u64(pot_of(&lab), 99, 100);
    lab_close(&lab);
}

/* One call that fails: the verdict on its retry. */
struct story {
    struct becalm_policy policy;
    struct becalm_target target;
    void *memory;
    struct becalm_call call;
    struct becalm_action action;
};

static void story_begin(struct story *story)
{
    struct becalm_request request = {.idempotent = true};
    struct becalm_event event = {.kind = BECALM_EVENT_BEGIN, .at = {.now = START, .random = 9}};
    becalm_policy_defaults(&story->policy);
    story->policy.lease.enabled = true;
    story->memory = memory_of(becalm_target_bytes(&story->policy, 0, 1));
    check_eq_u64((uint64_t)becalm_target_init(&story->target, story->memory, &story->policy, 0, 1), 0);
    becalm_call_init(&story->call, &story->policy, &story->target, &request);
    becalm_call_step(&story->call, &event, &story->action);
}

static void story_step(struct story *story, enum becalm_event_kind kind)
{
    struct becalm_event event = {.kind = kind, .at = {.now = START + 20 * BECALM_S, .random = 9}};
    event.at.now = kind == BECALM_EVENT_DONE ? START + BECALM_MS : story->action.wake_at;
    event.outcome.kind = BECALM_OUTCOME_BROKEN;
    becalm_call_step(&story->call, &event, &story->action);
}

static void test_lease__memory_that_was_damaged_is_no_lease(void **state)
{
    (void)state;
    static _Alignas(64) unsigned char memory[1024];
    struct becalm_lease *lease = becalm_lease_init(memory, 1);
    size_t bytes = becalm_lease_bytes(1);
    assert_true(bytes <= sizeof memory);
    assert_true(becalm_lease_sound(memory, 1, BECALM_S));
    assert_false(becalm_lease_sound(memory, 2, BECALM_S));
    becalm_lease_tend(lease, &(struct becalm_lease_policy){.share_ppm = 1},
                      &(struct becalm_moment){.now = 5 * BECALM_S});
    assert_true(becalm_lease_sound(memory, 1, 5 * BECALM_S));
    assert_false(becalm_lease_sound(memory, 1, 0)); /* of another clock */
    uint32_t found = 0;
    for (size_t at = 0; at + 8 <= bytes; at += 8) {
        unsigned char before[8];
        memcpy(before, memory + at, 8);
        memset(memory + at, 0xff, 8);
        found += !becalm_lease_sound(memory, 1, 5 * BECALM_S);
        memcpy(memory + at, before, 8);
    }
    check_eq_u64(found, 38); /* all but the name, fields for display, numbers of seconds, and padding */
}

static void test_lease__a_retry_needs_the_shared_budget_as_well(void **state)
{
    (void)state;
    struct story story;
    story_begin(&story);
    uint64_t before = becalm_budget_left(story.target.budget, &story.policy.budget, START);
    check_true(before > 0);
    story_step(&story, BECALM_EVENT_DONE);
    check_true((story.action.flags & BECALM_DO_FINISH) != 0);
    check_eq_u64(story.action.why, BECALM_WHY_BUDGET_EMPTY);
    check_eq_u64(story.call.record.have, 0);
    check_eq_u64(story.call.record.need, BECALM_TOKEN);
    struct becalm_lease_request request;
    struct becalm_moment now = {.now = START, .random = 1};
    check_true(becalm_lease_ask(story.target.lease, &story.policy.lease, &now, &request));
    check_eq_u64(story.target.lease->seen_first, 1);
    check_eq_u64(story.target.lease->seen_refused, 1);
    check_eq_u64(becalm_budget_left(story.target.budget, &story.policy.budget, START), before);
    free(story.memory);
}

static void test_lease__a_retry_that_is_not_sent_costs_nothing(void **state)
{
    (void)state;
    struct story story;
    story_begin(&story);
    becalm_lease_give(story.target.lease); /* one to spend */
    story_step(&story, BECALM_EVENT_DONE);
    check_eq_u64(story.action.why, BECALM_WHY_BACKOFF);
    check_eq_u64(becalm_lease_left(story.target.lease), 0);
    story_step(&story, BECALM_EVENT_CANCEL);
    check_true(becalm_call_ended(&story.call));
    check_eq_u64(becalm_lease_left(story.target.lease), 1);
    free(story.memory);
}

static void test_lease__a_retry_that_was_sent_is_paid_for_even_if_it_wins(void **state)
{
    (void)state;
    struct story story;
    story_begin(&story);
    becalm_lease_give(story.target.lease);
    story_step(&story, BECALM_EVENT_DONE);
    story_step(&story, BECALM_EVENT_TIMER);
    check_true((story.action.flags & BECALM_DO_SEND) != 0);
    struct becalm_event won = {.kind = BECALM_EVENT_DONE,
                               .slot = story.action.slot,
                               .at = {.now = START + BECALM_S, .random = 9},
                               .outcome = {.kind = BECALM_OUTCOME_OK, .status = 200}};
    becalm_call_step(&story.call, &won, &story.action);
    check_true(becalm_call_ended(&story.call));
    check_eq_u64(becalm_lease_left(story.target.lease), 0);
    free(story.memory);
}

BECALM_TESTS(cmocka_unit_test(test_lease__a_fresh_one_has_nothing_and_asks_at_once),
             cmocka_unit_test(test_lease__the_defaults_are_a_fifth_and_off),
             cmocka_unit_test(test_lease__what_one_instance_used_the_others_have_not),
             cmocka_unit_test(test_lease__those_who_want_more_than_there_is_get_even_parts),
             cmocka_unit_test(test_lease__who_asks_first_leaves_the_others_their_part),
             cmocka_unit_test(test_lease__a_lost_answer_is_made_up_for_by_the_next),
             cmocka_unit_test(test_lease__a_doubled_or_overtaken_request_has_no_effect),
             cmocka_unit_test(test_lease__an_answer_that_can_t_be_right_changes_nothing),
             cmocka_unit_test(test_lease__it_waits_for_one_answer_at_a_time),
             cmocka_unit_test(test_lease__without_a_store_it_lives_on_the_share_of_its_own_traffic),
             cmocka_unit_test(test_lease__each_outage_begins_with_nothing),
             cmocka_unit_test(test_lease__the_floor_is_divided_by_the_instances_that_were_there),
             cmocka_unit_test(test_lease__a_store_that_is_back_begins_with_leases_again),
             cmocka_unit_test(test_lease__what_is_not_needed_any_more_is_returned),
             cmocka_unit_test(test_lease__totals_go_on_under_another_name),
             cmocka_unit_test(test_lease__no_more_is_returned_than_was_granted),
             cmocka_unit_test(test_lease__who_leaves_returns_everything_and_is_not_live),
             cmocka_unit_test(test_lease__a_request_that_is_nonsense_gets_no_answer),
             cmocka_unit_test(test_lease__a_place_of_the_dead_is_used_again),
             cmocka_unit_test(test_lease__a_store_whose_clock_is_set_makes_no_retries_of_it),
             cmocka_unit_test(test_lease__a_store_that_has_lost_writes_earns_nothing_twice),
             cmocka_unit_test(test_lease__who_has_lost_the_connection_has_another_name_and_spends_what_is_left),
             cmocka_unit_test(test_lease__a_storm_finds_no_more_than_half_a_second_saved_up),
             cmocka_unit_test(test_lease__what_was_granted_late_is_let_out_by_and_by),
             cmocka_unit_test(test_lease__one_retry_that_was_granted_late_is_there_at_once),
             cmocka_unit_test(test_lease__what_was_not_let_out_is_returned_when_the_lease_ends),
             cmocka_unit_test(test_lease__memory_that_was_damaged_is_no_lease),
             cmocka_unit_test(test_lease__a_retry_needs_the_shared_budget_as_well),
             cmocka_unit_test(test_lease__a_retry_that_is_not_sent_costs_nothing),
             cmocka_unit_test(test_lease__a_retry_that_was_sent_is_paid_for_even_if_it_wins))
