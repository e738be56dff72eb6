/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "loop/wheel.h"

#include <becalm/rand.h>

#define COUNT 300u

struct alarm {
    struct timer timer; /* first */
    struct fixture *fixture;
    becalm_ns want;
    unsigned fired;
};

struct fixture {
    struct wheel wheel;
    becalm_ns now;
    uint64_t seed;
    struct alarm alarm[COUNT];
};

static void fire(struct timer *timer)
{
    struct alarm *alarm = (struct alarm *)timer;
    alarm->fired++;
    assert_false(timer_armed(timer));
    assert_true(alarm->fixture->now >= alarm->want); /* never early */
}

static void start(struct fixture *f, uint64_t seed)
{
    f->seed = seed;
    f->now = becalm_rand_below(becalm_rand_next(&f->seed), 1000000 * BECALM_S);
    wheel_init(&f->wheel, f->now);
    for (unsigned i = 0; i < COUNT; i++) {
        f->alarm[i] = (struct alarm){.timer = {.fire = fire}, .fixture = f};
    }
}

static becalm_ns earliest(const struct fixture *f)
{
    becalm_ns first = BECALM_NEVER;
    for (unsigned i = 0; i < COUNT; i++) {
        if (timer_armed(&f->alarm[i].timer)) {
            first = becalm_ns_min(first, f->alarm[i].want);
        }
    }
    return first;
}

static void test_wheel__an_empty_one_has_nothing_to_do(void **state)
{
    (void)state;
    static struct fixture f;
    start(&f, 1);
    check_eq_u64(wheel_next(&f.wheel), BECALM_NEVER);
    wheel_run(&f.wheel, f.now + 3600 * BECALM_S);
    check_eq_u64(wheel_next(&f.wheel), BECALM_NEVER);
}

static void test_wheel__every_timer_fires_once_and_within_a_millisecond_of_its_time(void **state)
{
    (void)state;
    static struct fixture f;
    for (uint64_t round = 0; round < RUNS_OF(60); round++) {
        start(&f, round);
        for (unsigned i = 0; i < COUNT; i++) { /* from now to more than a day */
            uint64_t bits = 20 + becalm_rand_below(becalm_rand_next(&f.seed), 28);
            f.alarm[i].want = f.now + becalm_rand_below(becalm_rand_next(&f.seed), UINT64_C(1) << bits);
            wheel_arm(&f.wheel, &f.alarm[i].timer, f.alarm[i].want);
        }
        for (unsigned i = 0; i < COUNT; i += 5) {
            timer_disarm(&f.alarm[i].timer);
        }
        while (earliest(&f) != BECALM_NEVER) {
            becalm_ns next = wheel_next(&f.wheel);
            assert_true(next <= earliest(&f) + BECALM_MS);
            f.now = becalm_ns_max(next, f.now + 1);
            wheel_run(&f.wheel, f.now);
            assert_true(earliest(&f) == BECALM_NEVER || earliest(&f) + BECALM_MS > f.now);
        }
        for (unsigned i = 0; i < COUNT; i++) {
            check_eq_u64(f.alarm[i].fired, i % 5 == 0 ? 0 : 1);
        }
        check_eq_u64(wheel_next(&f.wheel), BECALM_NEVER);
    }
}

static void test_wheel__what_has_passed_fires_at_the_next_run(void **state)
{
    (void)state;
    static struct fixture f;
    start(&f, 2);
    wheel_run(&f.wheel, f.now + 10 * BECALM_S);
    f.now += 10 * BECALM_S;
    wheel_arm(&f.wheel, &f.alarm[0].timer, 1);
    f.now += BECALM_MS;
    wheel_run(&f.wheel, f.now);
    check_eq_u64(f.alarm[0].fired, 1);
}

static void test_wheel__arming_again_moves_and_never_disarms(void **state)
{
    (void)state;
    static struct fixture f;
    start(&f, 3);
    f.alarm[0].want = f.now + 5 * BECALM_S;
    wheel_arm(&f.wheel, &f.alarm[0].timer, f.now + BECALM_MS);
    wheel_arm(&f.wheel, &f.alarm[0].timer, f.alarm[0].want);
    wheel_arm(&f.wheel, &f.alarm[1].timer, f.now + BECALM_MS);
    wheel_arm(&f.wheel, &f.alarm[1].timer, BECALM_NEVER);
    assert_false(timer_armed(&f.alarm[1].timer));
    f.now += 4 * BECALM_S;
    wheel_run(&f.wheel, f.now);
    check_eq_u64(f.alarm[0].fired + f.alarm[1].fired, 0);
    f.now += 2 * BECALM_S;
    wheel_run(&f.wheel, f.now);
    check_eq_u64(f.alarm[0].fired, 1);
    check_eq_u64(f.alarm[1].fired, 0);
}

static void fire_and_disarm(struct timer *timer)
{
    struct alarm *alarm = (struct alarm *)timer;
    alarm->fired++;
    for (unsigned i = 0; i < COUNT; i++) {
        timer_disarm(&alarm->fixture->alarm[i].timer);
    }
}

static void test_wheel__one_that_fires_may_disarm_the_others(void **state)
{
    (void)state;
    static struct fixture f;
    start(&f, 4);
    unsigned fired = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        f.alarm[i].timer.fire = fire_and_disarm;
        wheel_arm(&f.wheel, &f.alarm[i].timer, f.now + BECALM_MS);
    }
    wheel_run(&f.wheel, f.now + 10 * BECALM_MS);
    for (unsigned i = 0; i < COUNT; i++) {
        fired += f.alarm[i].fired;
    }
    check_eq_u64(fired, 1);
}

BECALM_TESTS(cmocka_unit_test(test_wheel__an_empty_one_has_nothing_to_do),
             cmocka_unit_test(test_wheel__every_timer_fires_once_and_within_a_millisecond_of_its_time),
             cmocka_unit_test(test_wheel__what_has_passed_fires_at_the_next_run),
             cmocka_unit_test(test_wheel__arming_again_moves_and_never_disarms),
             cmocka_unit_test(test_wheel__one_that_fires_may_disarm_the_others))
