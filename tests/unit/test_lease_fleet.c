/* SPDX-License-Identifier: MIT */
#include <becalm/lease.h>
#include <becalm/rand.h>

#include <stdio.h>

#include "lib/check.h"

/* Fleets in virtual time, in which calls fail: how many retries all of them send together, second by second, with a
 * store that is there, killed, hung, emptied, or an older copy of itself. docs/shared-budget.md has these figures. */

#define STEP      (10 * BECALM_MS)
#define FLEET_MAX 1000u
#define SECONDS   200u

enum store_state {
    STORE_UP,
    STORE_KILLED, /* connections are reset, and none can be made */
    STORE_HUNG,   /* requests are taken and not answered; after a second the connection is given up */
    STORE_CUT     /* requests vanish, and the connection is not given up */
};

struct instance {
    struct becalm_lease *lease;
    struct becalm_lease_policy policy;
    uint32_t calls;  /* a second */
    uint32_t fail;   /* millionths of the calls, and of their retries */
    bool connected;  /* or believes so */
    becalm_ns away;  /* until then it does not try to connect again */
    becalm_ns since; /* the request that is not answered was sent */
    bool pending;    /* such a request is in the store's buffer */
    struct becalm_lease_request buffered;
    becalm_ns late; /* the round trip of the request that is on its way; 0: none is */
    bool answered;  /* it has been at the store */
    struct becalm_lease_answer answer;
    bool parting; /* a goodbye is to be sent */
    struct becalm_lease_request goodbye;
    uint64_t first, sent;
};

struct fleet {
    uint64_t random;
    becalm_ns now;
    enum store_state state;
    becalm_ns late; /* a request takes half of it to the store, and its answer the other half */
    struct becalm_lease_store *store[2];
    void *older; /* a copy of the first one */
    uint32_t size;
    struct instance instance[FLEET_MAX];
    uint32_t second;
    uint64_t first[SECONDS], sent[SECONDS];
    uint64_t degraded[SECONDS]; /* instances, at the end of it */
};

static void *memory_of(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    check_true(memory != NULL);
    return memory;
}

static size_t store_size(void)
{
    return becalm_lease_store_bytes(2 * FLEET_MAX);
}

static struct fleet *fleet_open(uint32_t size, uint32_t calls)
{
    struct fleet *f = memory_of(sizeof *f);
    memset(f, 0, sizeof *f);
    f->random = 7;
    f->now = 1000 * BECALM_S;
    f->size = size;
    for (uint32_t i = 0; i < 2; i++) {
        f->store[i] = becalm_lease_store_init(memory_of(store_size()), 2 * FLEET_MAX);
    }
    f->older = memory_of(store_size());
    for (uint32_t i = 0; i < size; i++) {
        struct instance *instance = &f->instance[i];
        instance->lease = becalm_lease_init(memory_of(becalm_lease_bytes(1)), 1);
        becalm_lease_defaults(&instance->policy);
        instance->policy.enabled = true;
        instance->calls = calls;
    }
    return f;
}

static void fleet_close(struct fleet *f)
{
    for (uint32_t i = 0; i < f->size; i++) {
        free(f->instance[i].lease);
    }
    free(f->store[0]);
    free(f->store[1]);
    free(f->older);
    free(f);
}

static struct becalm_moment moment(struct fleet *f)
{
    return (struct becalm_moment){.now = f->now, .random = becalm_rand_next(&f->random)};
}

/* Instances with another policy have another store, as keys in Redis carry the percentage. */
static struct becalm_lease_store *store_of(struct fleet *f, const struct instance *instance)
{
    return f->store[instance->policy.share_ppm != f->instance[0].policy.share_ppm];
}

static void instance_calls(struct fleet *f, struct instance *instance)
{
    struct becalm_moment at = moment(f);
    uint32_t calls = (uint32_t)(instance->calls / 100);
    calls += becalm_rand_chance(becalm_rand_next(&f->random), instance->calls % 100 * 10000);
    for (uint32_t n = 0; n < calls; n++) {
        becalm_lease_begin(instance->lease, &at);
        instance->first++;
        f->first[f->second]++;
        for (uint32_t retry = 0; retry < 2; retry++) {
            if (!becalm_rand_chance(becalm_rand_next(&f->random), instance->fail) ||
                !becalm_lease_take(instance->lease, &at)) {
                break;
            }
            instance->sent++;
            f->sent[f->second]++;
        }
    }
}

static void instance_loses(struct fleet *f, struct instance *instance)
{
    struct becalm_moment at = moment(f);
    struct becalm_lease_request goodbye;
    instance->connected = false;
    if (becalm_lease_lost(instance->lease, &instance->policy, &at, &goodbye)) {
        instance->parting = true;
        instance->goodbye = goodbye;
    }
}

static void instance_exchanges(struct fleet *f, struct instance *instance)
{
    struct becalm_moment at = moment(f);
    struct becalm_lease_request request;
    struct becalm_lease_answer answer;
    if (f->now < instance->away) {
        becalm_lease_tend(instance->lease, &instance->policy, &at);
        return;
    }
    if (f->state == STORE_UP && instance->parting) {
        instance->parting = false;
        (void)becalm_lease_store_exchange(store_of(f, instance), &instance->policy, f->now, &instance->goodbye,
                                          &answer);
    }
    if (f->state == STORE_KILLED || (f->state == STORE_HUNG && !instance->connected)) {
        becalm_lease_tend(instance->lease, &instance->policy, &at); /* the greeting of a new connection is not heard */
        return;
    }
    instance->connected = true;
    if (!becalm_lease_ask(instance->lease, &instance->policy, &at, &request)) {
        return;
    }
    if (f->state == STORE_CUT) {
        return;
    }
    if (f->state == STORE_HUNG) {
        instance->pending = true;
        instance->buffered = request;
        instance->since = f->now;
        return;
    }
    if (f->late > 0) {
        instance->late = f->late;
        instance->answered = false;
        instance->buffered = request;
        instance->since = f->now;
        return;
    }
    check_true(becalm_lease_store_exchange(store_of(f, instance), &instance->policy, f->now, &request, &answer));
    (void)becalm_lease_answer(instance->lease, f->now, &answer);
}

/* Messages between an instance and a store that is far away. */
static void instance_waits(struct fleet *f, struct instance *instance)
{
    if (!instance->answered && f->now - instance->since >= instance->late / 2) {
        instance->answered = becalm_lease_store_exchange(store_of(f, instance), &instance->policy, f->now,
                                                         &instance->buffered, &instance->answer);
        check_true(instance->answered);
    }
    if (f->now - instance->since >= instance->late) {
        instance->late = 0;
        (void)becalm_lease_answer(instance->lease, f->now, &instance->answer);
    }
}

static void fleet_step(struct fleet *f)
{
    f->now += STEP;
    for (uint32_t i = 0; i < f->size; i++) {
        struct instance *instance = &f->instance[i];
        instance_calls(f, instance);
        if (instance->pending && instance->connected && f->now - instance->since >= BECALM_S) {
            instance_loses(f, instance);
        }
        if (instance->late > 0) {
            instance_waits(f, instance);
        }
        if (f->now >= becalm_lease_ask_at(instance->lease)) {
            instance_exchanges(f, instance);
        }
    }
}

static void fleet_pass(struct fleet *f, uint32_t seconds)
{
    for (uint32_t s = 0; s < seconds; s++) {
        for (uint32_t step = 0; step < BECALM_S / STEP; step++) {
            fleet_step(f);
        }
        for (uint32_t i = 0; i < f->size; i++) {
            f->degraded[f->second] += becalm_lease_degraded(f->instance[i].lease);
        }
        f->second++;
        check_true(f->second < SECONDS);
    }
}

static void fleet_fails(struct fleet *f, uint32_t ppm)
{
    for (uint32_t i = 0; i < f->size; i++) {
        f->instance[i].fail = ppm;
    }
}

static void store_kills(struct fleet *f)
{
    f->state = STORE_KILLED;
    for (uint32_t i = 0; i < f->size; i++) {
        instance_loses(f, &f->instance[i]);
    }
}

/* The store goes on where it was, with the bytes in its buffers; no instance gets the answers. */
static void store_wakes(struct fleet *f)
{
    struct becalm_lease_answer answer;
    f->state = STORE_UP;
    for (uint32_t i = 0; i < f->size; i++) {
        struct instance *instance = &f->instance[i];
        if (instance->pending) {
            instance->pending = false;
            (void)becalm_lease_store_exchange(store_of(f, instance), &instance->policy, f->now, &instance->buffered,
                                              &answer);
        }
    }
}

static uint64_t sum(const uint64_t *of, uint32_t from, uint32_t to)
{
    uint64_t all = 0;
    for (uint32_t s = from; s < to; s++) {
        all += of[s];
    }
    return all;
}

static uint64_t most(const uint64_t *of, uint32_t from, uint32_t to)
{
    uint64_t worst = 0;
    for (uint32_t s = from; s < to; s++) {
        worst = of[s] > worst ? of[s] : worst;
    }
    return worst;
}

/* Retries of the first attempts of those seconds, in thousandths. */
static uint64_t ratio(const struct fleet *f, uint32_t from, uint32_t to)
{
    return sum(f->sent, from, to) * 1000 / sum(f->first, from, to);
}

static void told(const struct fleet *f, const char *what, uint32_t from, uint32_t to)
{
    printf("%s:", what);
    for (uint32_t s = from; s < to; s++) {
        printf(" %" PRIu64, f->sent[s]);
    }
    printf(" (%" PRIu64 " per mille)\n", ratio(f, from, to));
}

/* A thousand calls a second, 200 retries: the saved retries in the first seconds of an outage. */
static void outage(uint32_t size, uint64_t second_max, uint64_t ten_max)
{
    struct fleet *f = fleet_open(size, 1000 / size);
    fleet_pass(f, 20);
    fleet_fails(f, 1000000);
    fleet_pass(f, 40);
    told(f, "outage", 20, 32);
    check_between_u64(f->sent[20], 100, second_max);
    check_between_u64(sum(f->sent, 20, 30), 1900, ten_max);
    check_between_u64(ratio(f, 30, 60), 196, 204);
    check_between_u64(most(f->sent, 22, 60), 200, 240);
    fleet_close(f);
}

static void test_lease_fleet__an_outage_finds_half_a_second_in_the_pot_and_the_leases(void **state)
{
    (void)state;
    outage(8, 330, 2200);
    outage(20, 330, 2200);
    outage(100, 400, 2200);
    outage(200, 400, 2200);
}

static void test_lease_fleet__a_thousand_small_instances_hold_no_more_than_a_few_large_ones(void **state)
{
    (void)state;
    outage(1000, 400, 2200);
}

static void test_lease_fleet__one_that_needs_more_has_what_the_others_leave(void **state)
{
    (void)state;
    struct fleet *f = fleet_open(20, 50);
    fleet_pass(f, 20);
    for (uint32_t i = 1; i < 20; i++) {
        f->instance[i].fail = 50000;
    }
    f->instance[0].calls = 50;
    fleet_pass(f, 10);
    f->instance[0].calls = 75;
    f->instance[0].fail = 1000000; /* wants 150 */
    fleet_pass(f, 2);
    uint64_t before = f->instance[0].sent;
    fleet_pass(f, 20);
    uint64_t got = (f->instance[0].sent - before) / 20;
    printf("uneven: %" PRIu64 " of 150\n", got);
    check_between_u64(got, 145, 152);
    fleet_close(f);
}

static void test_lease_fleet__a_killed_store_leaves_everybody_the_own_share_at_once(void **state)
{
    (void)state;
    struct fleet *f = fleet_open(20, 50);
    fleet_fails(f, 1000000);
    fleet_pass(f, 20);
    store_kills(f);
    fleet_pass(f, 8);
    becalm_lease_store_init(f->store[0], 2 * FLEET_MAX); /* back, and empty */
    f->state = STORE_UP;
    fleet_pass(f, 12);
    told(f, "killed", 18, 40);
    check_between_u64(f->sent[20], 150, 240);
    check_between_u64(ratio(f, 21, 28), 180, 204);
    check_between_u64(most(f->sent, 20, 40), 200, 270);
    check_between_u64(ratio(f, 20, 40), 180, 204);
    check_eq_u64(f->degraded[29], 0);
    fleet_close(f);
}

/* Killed, and back empty or as an older copy of itself. Each instance finds it again in its own time, says goodbye for
 * its old name, and so reports the data that the store has lost. */
static void found_again(bool empty)
{
    struct fleet *f = fleet_open(20, 50);
    fleet_fails(f, 1000000);
    fleet_pass(f, 20);
    memcpy(f->older, f->store[0], store_size());
    fleet_pass(f, 10);
    store_kills(f);
    fleet_pass(f, 5);
    memcpy(f->store[0], f->older, store_size());
    if (empty) {
        becalm_lease_store_init(f->store[0], 2 * FLEET_MAX);
    }
    f->state = STORE_UP;
    for (uint32_t i = 0; i < f->size; i++) {
        f->instance[i].away = f->now + becalm_rand_below(becalm_rand_next(&f->random), 5 * BECALM_S);
    }
    fleet_pass(f, 10);
    told(f, empty ? "found again, empty" : "found again, older", 33, 45);
    for (uint32_t s = 35; s < 45; s++) {
        check_between_u64(f->sent[s], 150, 250);
    }
    check_between_u64(ratio(f, 35, 45), 184, 204);
    fleet_close(f);
}

static void test_lease_fleet__who_finds_a_store_again_takes_nothing_from_who_was_faster(void **state)
{
    (void)state;
    found_again(true);
    found_again(false);
}

static void test_lease_fleet__a_hung_store_costs_one_second(void **state)
{
    (void)state;
    struct fleet *f = fleet_open(20, 50);
    fleet_fails(f, 1000000);
    fleet_pass(f, 20);
    f->state = STORE_HUNG;
    fleet_pass(f, 8);
    store_wakes(f);
    fleet_pass(f, 12);
    told(f, "hung", 18, 40);
    check_between_u64(ratio(f, 21, 28), 180, 225); /* the second before is made up for */
    check_between_u64(most(f->sent, 20, 40), 200, 270);
    check_between_u64(ratio(f, 20, 40), 170, 204);
    check_eq_u64(f->degraded[29], 0);
    fleet_close(f);
}

static void test_lease_fleet__what_was_not_told_is_earned_once_and_not_in_one_second(void **state)
{
    (void)state;
    struct fleet *f = fleet_open(20, 50);
    fleet_fails(f, 1000000);
    fleet_pass(f, 20);
    for (uint32_t round = 0; round < 5; round++) {
        f->state = STORE_CUT;
        fleet_pass(f, 3);
        f->state = STORE_UP;
        fleet_pass(f, 3);
    }
    told(f, "cut off", 18, 50);
    check_between_u64(most(f->sent, 20, 50), 200, 270);
    check_between_u64(ratio(f, 20, 50), 160, 202);
    fleet_close(f);
}

static void test_lease_fleet__a_store_that_comes_and_goes_costs_little(void **state)
{
    (void)state;
    struct fleet *f = fleet_open(20, 50);
    fleet_fails(f, 1000000);
    fleet_pass(f, 10);
    for (uint32_t round = 0; round < 10; round++) {
        store_kills(f);
        fleet_pass(f, 1);
        f->state = STORE_UP;
        fleet_pass(f, 3);
    }
    told(f, "away 1 of 4 s", 10, 50);
    check_between_u64(ratio(f, 10, 50), 170, 202);
    check_between_u64(most(f->sent, 10, 50), 200, 270);
    fleet_close(f);
}

/* Of one instance or of all, while calls fail or hardly any do. */
static void restored(uint32_t seconds, uint32_t fail)
{
    struct fleet *f = fleet_open(20, 50);
    fleet_fails(f, fail);
    fleet_pass(f, 15);
    memcpy(f->older, f->store[0], store_size());
    fleet_pass(f, seconds);
    memcpy(f->store[0], f->older, store_size());
    uint32_t from = f->second;
    fleet_pass(f, 15);
    told(f, "restored", from, from + 15);
    check_eq_u64(sum(f->degraded, from, from + 15), 0);
    check_true(most(f->sent, from, from + 15) <= 250);
    check_true(ratio(f, from, from + 15) <= 200 + 1000 * 100 / 15000); /* one pot */
    if (fail == 1000000) {
        check_true(ratio(f, from, from + 15) >= 185);
    }
    fleet_fails(f, 1000000); /* nothing is saved up by it either */
    fleet_pass(f, 2);
    check_true(f->sent[from + 15] <= 350);
    fleet_close(f);
}

static void test_lease_fleet__a_store_that_is_an_older_copy_of_itself_is_believed_at_once(void **state)
{
    (void)state;
    restored(10, 1000000);
    restored(30, 1000000);
    restored(120, 1000000);
    restored(30, 40000);
    restored(120, 10000);
}

static void test_lease_fleet__an_emptied_store_costs_a_second(void **state)
{
    (void)state;
    struct fleet *f = fleet_open(20, 50);
    fleet_fails(f, 1000000);
    fleet_pass(f, 15);
    becalm_lease_store_init(f->store[0], 2 * FLEET_MAX);
    fleet_pass(f, 15);
    told(f, "emptied", 14, 30);
    check_true(f->sent[15] >= 75);
    check_between_u64(ratio(f, 16, 30), 190, 204);
    check_true(most(f->sent, 15, 30) <= 250);
    check_eq_u64(sum(f->degraded, 15, 30), 0);
    fleet_close(f);
}

/* A rolling change: half of them have 20 %, half have 2 %. */
/* A call a second each, of which half fail: an instance that was refused a retry holds one when the next call fails. */
static void test_lease_fleet__what_was_wanted_is_there_for_the_next_call(void **state)
{
    (void)state;
    struct fleet *f = fleet_open(1000, 1);
    fleet_fails(f, 500000);
    fleet_pass(f, 60);
    told(f, "half fail", 30, 60);
    check_between_u64(ratio(f, 30, 60), 155, 201);
    fleet_close(f);
}

static void test_lease_fleet__each_percentage_has_its_own_pot(void **state)
{
    (void)state;
    struct fleet *f = fleet_open(10, 100);
    fleet_fails(f, 1000000);
    for (uint32_t i = 5; i < 10; i++) {
        f->instance[i].policy.share_ppm = 20000;
    }
    fleet_pass(f, 60);
    uint64_t first[2] = {0, 0};
    uint64_t sent[2] = {0, 0};
    for (uint32_t i = 0; i < 10; i++) {
        first[i / 5] += f->instance[i].first;
        sent[i / 5] += f->instance[i].sent;
    }
    check_between_u64(sent[0] * 1000 / first[0], 190, 201);
    check_between_u64(sent[1] * 1000 / first[1], 15, 22);
    fleet_close(f);
}

/* A machine that was stored and started twice: the copy has lost its connection, and has another name from then on. */
static void test_lease_fleet__a_copy_of_an_instance_spends_its_lease_twice_and_no_more(void **state)
{
    (void)state;
    struct fleet *f = fleet_open(20, 50);
    fleet_fails(f, 1000000);
    fleet_pass(f, 20);
    for (uint32_t i = 1; i < 20; i++) { /* nineteen copies of one, and none of them calls much */
        memcpy(f->instance[i].lease, f->instance[0].lease, becalm_lease_bytes(1));
        f->instance[i].calls = 5;
        instance_loses(f, &f->instance[i]);
    }
    fleet_pass(f, 60);
    told(f, "copied", 19, 40);
    check_between_u64(ratio(f, 20, 80), 170, 220); /* nineteen leases more, once */
    check_eq_u64(sum(f->degraded, 30, 80), 0);
    check_eq_u64(becalm_lease_live(f->instance[0].lease), 20);
    fleet_close(f);
}

static void test_lease_fleet__who_has_nothing_to_tell_asks_once_a_second(void **state)
{
    (void)state;
    struct fleet *f = fleet_open(2, 0);
    f->instance[0].calls = 20;
    fleet_pass(f, 5);
    uint64_t busy = f->instance[0].lease->last.number;
    uint64_t idle = f->instance[1].lease->last.number;
    fleet_pass(f, 60);
    check_between_u64(f->instance[0].lease->last.number - busy, 180, 220);
    check_between_u64(f->instance[1].lease->last.number - idle, 40, 65);
    check_eq_u64(sum(f->degraded, 5, 65), 0);
    check_eq_u64(becalm_lease_live(f->instance[0].lease), 2);
    fleet_close(f);
}

/* Answers take `late` for eight seconds. Retries that were granted meanwhile are not sent in one second. */
static void lateness(uint32_t size, becalm_ns late, uint64_t least)
{
    struct fleet *f = fleet_open(size, 1000 / size);
    fleet_fails(f, 1000000);
    fleet_pass(f, 20);
    f->late = late;
    fleet_pass(f, 8);
    f->late = 0;
    fleet_pass(f, 20);
    told(f, "late", 18, 40);
    check_between_u64(most(f->sent, 20, 48), 200, 270);
    check_between_u64(ratio(f, 22, 28), least, 204);
    check_between_u64(ratio(f, 20, 40), least, 204);
    check_between_u64(ratio(f, 38, 48), 190, 212); /* delayed retries are sent little by little */
    check_between_u64(ratio(f, 20, 48), least, 204);
    check_eq_u64(sum(f->degraded, 20, 48) > 0, late > 600 * BECALM_MS); /* which is nearly as long as a lease */
    fleet_close(f);
}

static void test_lease_fleet__answers_that_are_in_time_again_bring_no_second_above_the_budget(void **state)
{
    (void)state;
    lateness(8, 300 * BECALM_MS, 180);
    lateness(20, 300 * BECALM_MS, 180);
    lateness(8, 500 * BECALM_MS, 170);
    lateness(20, 500 * BECALM_MS, 170);
    lateness(100, 500 * BECALM_MS, 160);
    lateness(20, 800 * BECALM_MS, 110);
}

/* An instance that is always far from its store: calls that begin to fail have their retries as soon as these are
 * granted. */
static void test_lease_fleet__who_is_far_from_the_store_has_what_it_needs_in_an_outage(void **state)
{
    (void)state;
    struct fleet *f = fleet_open(20, 50);
    f->late = 300 * BECALM_MS;
    fleet_pass(f, 20);
    fleet_fails(f, 1000000);
    fleet_pass(f, 20);
    told(f, "far", 18, 40);
    check_between_u64(f->sent[20], 150, 330);
    check_between_u64(ratio(f, 20, 40), 190, 220);
    fleet_close(f);
}

static void test_lease_fleet__thousands_ask_less_often(void **state)
{
    (void)state;
    struct fleet *f = fleet_open(1000, 1);
    fleet_pass(f, 10);
    uint64_t before = f->instance[7].lease->last.number;
    fleet_pass(f, 60);
    check_between_u64(f->instance[7].lease->last.number - before, 50, 125);
    check_between_u64(becalm_lease_live(f->instance[7].lease), 950, 1000);
    check_between_u64(f->instance[7].lease->next, 475 * BECALM_MS, 500 * BECALM_MS);
    check_eq_u64(sum(f->degraded, 10, 70), 0);
    fleet_close(f);
}

BECALM_TESTS(cmocka_unit_test(test_lease_fleet__an_outage_finds_half_a_second_in_the_pot_and_the_leases),
             cmocka_unit_test(test_lease_fleet__a_thousand_small_instances_hold_no_more_than_a_few_large_ones),
             cmocka_unit_test(test_lease_fleet__one_that_needs_more_has_what_the_others_leave),
             cmocka_unit_test(test_lease_fleet__a_killed_store_leaves_everybody_the_own_share_at_once),
             cmocka_unit_test(test_lease_fleet__a_hung_store_costs_one_second),
             cmocka_unit_test(test_lease_fleet__what_was_not_told_is_earned_once_and_not_in_one_second),
             cmocka_unit_test(test_lease_fleet__a_store_that_comes_and_goes_costs_little),
             cmocka_unit_test(test_lease_fleet__a_store_that_is_an_older_copy_of_itself_is_believed_at_once),
             cmocka_unit_test(test_lease_fleet__an_emptied_store_costs_a_second),
             cmocka_unit_test(test_lease_fleet__who_finds_a_store_again_takes_nothing_from_who_was_faster),
             cmocka_unit_test(test_lease_fleet__what_was_wanted_is_there_for_the_next_call),
             cmocka_unit_test(test_lease_fleet__each_percentage_has_its_own_pot),
             cmocka_unit_test(test_lease_fleet__a_copy_of_an_instance_spends_its_lease_twice_and_no_more),
             cmocka_unit_test(test_lease_fleet__who_has_nothing_to_tell_asks_once_a_second),
             cmocka_unit_test(test_lease_fleet__answers_that_are_in_time_again_bring_no_second_above_the_budget),
             cmocka_unit_test(test_lease_fleet__who_is_far_from_the_store_has_what_it_needs_in_an_outage),
             cmocka_unit_test(test_lease_fleet__thousands_ask_less_often))
