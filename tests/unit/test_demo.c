/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "demo/demo.h"

#include <stdlib.h>

/* Where a simulation of the demonstration begins. No lane is open: there are only its samples. */

#define MOST (uint32_t)(REHEARSAL_SECONDS_MAX * BECALM_S / LANE_TICK)

static struct demo *demo_after(uint32_t ticks)
{
    struct demo *demo = calloc(1, sizeof *demo);
    demo->ticks = ticks;
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        demo->lane[i].ticks = ticks;
        demo->lane[i].sample = calloc(LANE_TICKS, sizeof *demo->lane[i].sample);
    }
    return demo;
}

static void answer(struct demo *demo, uint32_t kind, uint32_t from, uint32_t to)
{
    for (uint32_t tick = from; tick < to; tick++) {
        demo->lane[kind].sample[tick % LANE_TICKS].good = 25;
    }
}

static void demo_forget(struct demo *demo)
{
    for (uint32_t i = 0; i < LANE_COUNT; i++) {
        free(demo->lane[i].sample);
    }
    free(demo);
}

static void test_demo__a_simulation_begins_with_the_demonstration_if_it_can(void **state)
{
    (void)state;
    struct demo *demo = demo_after(MOST);
    uint32_t tick = 7;
    demo->change[demo->changes++] = (struct demo_change){.tick = 0, .fault = SERVICE_DEAD};
    assert_true(demo_first_well(demo, &tick));
    check_eq_u64(tick, 0);
    demo_forget(demo);
}

static void test_demo__later_it_begins_where_both_lanes_answer_and_back_is_healthy(void **state)
{
    (void)state;
    struct demo *demo = demo_after(MOST + 100);
    uint32_t tick;
    assert_false(demo_first_well(demo, &tick)); /* no call has ended */
    answer(demo, LANE_BECALM, 0, MOST + 100);
    assert_false(demo_first_well(demo, &tick));
    answer(demo, LANE_NAIVE, 300, MOST);
    demo->change[demo->changes++] = (struct demo_change){20, 20 * LANE_TICK, SERVICE_DEAD};
    demo->change[demo->changes++] = (struct demo_change){400, 400 * LANE_TICK, SERVICE_HEALTHY};
    assert_true(demo_first_well(demo, &tick));
    check_eq_u64(tick, 400);
    demo->changes = 0;
    assert_true(demo_first_well(demo, &tick));
    check_eq_u64(tick, 301); /* by the one tick of four in which calls ended */
    demo_forget(demo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_demo__a_simulation_begins_with_the_demonstration_if_it_can),
        cmocka_unit_test(test_demo__later_it_begins_where_both_lanes_answer_and_back_is_healthy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
