/* SPDX-License-Identifier: MIT */
/* The simulator's clock: events come by instant and, at the same instant, in the order in which they were planned, in
 * whichever structure they are kept. */
#include "sim/world_internal.h"

#include <becalm/rand.h>

#include "check.h"

#define END (3600 * BECALM_S)

static struct clock clock_new(void)
{
    struct clock clock;
    check_true(clock_make(&clock, END));
    return clock;
}

static void plan(struct clock *clock, becalm_ns at, uint32_t id)
{
    clock_plan(clock, (struct event){.at = at, .kind = ATTEMPT_SERVED, .id = id});
}

static void check_next(struct clock *clock, becalm_ns at, uint32_t id)
{
    struct event event;
    check_true(clock_next(clock, &event));
    check_eq_u64(event.at, at);
    check_eq_u64(event.id, id);
    check_eq_u64(clock->now, at);
}

static void check_empty(struct clock *clock)
{
    struct event event;
    check_true(!clock_next(clock, &event));
}

static void test_clock__has_nothing_at_first(void **state)
{
    (void)state;
    struct clock clock = clock_new();
    check_empty(&clock);
    clock_expect(&clock, BECALM_S);
    check_empty(&clock);
    clock_free(&clock);
}

static void test_clock__events_at_one_instant_come_as_they_were_planned(void **state)
{
    (void)state;
    struct clock clock = clock_new();
    clock_expect(&clock, 5 * BECALM_S);
    plan(&clock, 2 * BECALM_S, 0);
    plan(&clock, 5 * BECALM_S, 1); /* in the ring */
    check_next(&clock, 2 * BECALM_S, 0);
    plan(&clock, 5 * BECALM_S, 2); /* in the wheel */
    plan(&clock, 5 * BECALM_S, 3);
    plan(&clock, 7 * BECALM_S, 4); /* in the ring */
    plan(&clock, 2 * BECALM_S, 5); /* at once */
    check_next(&clock, 2 * BECALM_S, 5);
    check_next(&clock, 5 * BECALM_S, 1);
    check_next(&clock, 5 * BECALM_S, 2);
    check_next(&clock, 5 * BECALM_S, 3);
    check_next(&clock, 7 * BECALM_S, 4);
    check_empty(&clock);
    clock_free(&clock);
}

static void test_clock__what_lies_beyond_the_end_is_forgotten(void **state)
{
    (void)state;
    struct clock clock = clock_new();
    clock_expect(&clock, END);
    clock_expect(&clock, END - 1);
    plan(&clock, END, 0);
    plan(&clock, END + 1, 1);
    plan(&clock, BECALM_NEVER, 2);
    plan(&clock, END - 1, 3);
    check_next(&clock, END - 1, 3);
    check_empty(&clock);
    clock_free(&clock);
}

static void test_clock__a_gap_of_an_hour_is_crossed(void **state)
{
    (void)state;
    struct clock clock = clock_new();
    clock_expect(&clock, BECALM_MS);
    plan(&clock, END - BECALM_S, 0);
    check_next(&clock, END - BECALM_S, 0);
    plan(&clock, END - BECALM_S + BECALM_MS, 1); /* in the ring */
    plan(&clock, END - BECALM_S + 1, 2);
    check_next(&clock, END - BECALM_S + 1, 2);
    check_next(&clock, END - BECALM_S + BECALM_MS, 1);
    check_empty(&clock);
    clock_free(&clock);
}

/* The same without any cleverness: all events in a row, and a look at each of them to find the next one. */
#define PENDING_MAX 300u

struct simple {
    struct event event[PENDING_MAX];
    uint32_t count;
};

static struct event simple_next(struct simple *simple)
{
    uint32_t next = 0;
    for (uint32_t i = 1; i < simple->count; i++) {
        const struct event *a = &simple->event[i];
        const struct event *b = &simple->event[next];
        next = a->at < b->at || (a->at == b->at && a->id < b->id) ? i : next;
    }
    struct event event = simple->event[next];
    simple->event[next] = simple->event[--simple->count];
    return event;
}

/* Mostly constant ones, and others of any length: none, within a slot, within a second, minutes. */
static becalm_ns ahead_draw(uint64_t *state)
{
    static const becalm_ns constant[] = {0, 500 * BECALM_US, BECALM_S, BECALM_S, 40 * BECALM_S};
    uint64_t draw = becalm_rand_next(state);
    if (draw % 2 == 0) {
        return constant[draw / 2 % 5];
    }
    return becalm_rand_next(state) % (UINT64_C(1) << draw / 2 % 38);
}

static void random_run(uint64_t seed, bool expects)
{
    struct clock clock = clock_new();
    struct simple simple = {.count = 0};
    uint64_t state = seed;
    uint32_t id = 0;
    for (uint32_t i = 0; expects && i < 2; i++) { /* two of the four constants have a ring */
        clock_expect(&clock, i == 0 ? 500 * BECALM_US : BECALM_S);
    }
    for (uint32_t step = 0; step < 5000; step++) {
        bool plans = becalm_rand_next(&state) % 100 < (step / 1000 % 2 == 0 ? 55u : 45u); /* it fills and empties */
        if (plans && simple.count < PENDING_MAX) {
            becalm_ns at = clock.now + ahead_draw(&state);
            plan(&clock, at, id);
            if (at < END) {
                simple.event[simple.count++] = (struct event){.at = at, .id = id};
            }
            id++;
        } else if (simple.count > 0) {
            struct event event = simple_next(&simple);
            check_next(&clock, event.at, event.id);
        }
    }
    while (simple.count > 0) {
        struct event event = simple_next(&simple);
        check_next(&clock, event.at, event.id);
    }
    check_empty(&clock);
    clock_free(&clock);
}

static void test_clock__keeps_the_order_of_any_plan(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        print_message("seed %" PRIu64 "\n", seed);
        random_run(seed, false);
        random_run(seed, true);
    }
}

BECALM_TESTS(cmocka_unit_test(test_clock__has_nothing_at_first),
             cmocka_unit_test(test_clock__events_at_one_instant_come_as_they_were_planned),
             cmocka_unit_test(test_clock__what_lies_beyond_the_end_is_forgotten),
             cmocka_unit_test(test_clock__a_gap_of_an_hour_is_crossed),
             cmocka_unit_test(test_clock__keeps_the_order_of_any_plan))
