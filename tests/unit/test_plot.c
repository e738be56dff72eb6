/* SPDX-License-Identifier: MIT */
#include "check.h"

#include "report/plot.h"

#define X UINT64_C(1000000) /* a factor of one, and all of a share */

static void test_plot__tops_are_round_and_reach_over_everything(void **state)
{
    (void)state;
    static const struct {
        enum plot_unit unit;
        uint64_t most;
        uint64_t top;
        uint64_t step;
    } cases[] = {
        {PLOT_SHARE, 0, X, X / 4},
        {PLOT_FACTOR, 0, 2 * X, X / 2},
        {PLOT_FACTOR, 4228000, 5 * X, X},
        {PLOT_FACTOR, 16 * X, 20 * X, 5 * X},
        {PLOT_COUNT, 0, 5, 1},
        {PLOT_COUNT, 5, 5, 1},
        {PLOT_COUNT, 981, 1000, 200},
        {PLOT_COUNT, 1322199, 1500000, 500000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plot_scale scale = plot_scale(cases[i].unit, cases[i].most);
        assert_false(scale.doublings);
        check_eq_u64(scale.top, cases[i].top);
        check_eq_u64(scale.step, cases[i].step);
    }
}

static void test_plot__values_are_parts_of_a_length(void **state)
{
    (void)state;
    const struct plot_scale scale = plot_scale(PLOT_SHARE, X);
    check_eq_u64(plot_length(&scale, 0, 1200), 0);
    check_eq_u64(plot_length(&scale, X / 4, 1200), 300);
    check_eq_u64(plot_length(&scale, X, 1200), 1200);
    check_eq_u64(plot_length(&scale, 9 * X, 1200), 1200); /* values beyond the top stay in the picture */
}

static void test_plot__a_storm_is_drawn_by_doublings(void **state)
{
    (void)state;
    const struct plot_scale scale = plot_scale(PLOT_FACTOR, 557 * X);
    assert_true(scale.doublings);
    check_eq_u64(scale.top, 1024 * X); /* twelve doublings above a quarter */
    for (uint32_t doubling = 0; doubling <= 12; doubling++) {
        check_eq_u64(plot_length(&scale, (X / 4) << doubling, 1200), doubling * 100);
    }
    check_eq_u64(plot_length(&scale, 0, 1200), 0);
    check_eq_u64(plot_length(&scale, X / 5, 1200), 0);
    /* The square root of two is half a doubling, to the resolution of a picture. */
    check_between_u64(plot_length(&scale, 1414214, 12000), 2490, 2510);
    uint32_t last = 0;
    for (uint64_t value = X / 4; value < 1024 * X; value += value / 50) {
        uint32_t length = plot_length(&scale, value, 12000);
        assert_true(length >= last);
        last = length;
    }
}

static void test_plot__ticks_are_short(void **state)
{
    (void)state;
    static const struct {
        enum plot_unit unit;
        uint64_t value;
        const char *text;
    } cases[] = {
        {PLOT_SHARE, X / 4, "25 %"},    {PLOT_SHARE, X, "100 %"},        {PLOT_FACTOR, X / 2, "0.5x"},
        {PLOT_FACTOR, 512 * X, "512x"}, {PLOT_COUNT, 500000, "500,000"}, {PLOT_COUNT, 1500000, "1.5 M"},
        {PLOT_COUNT, 20000000, "20 M"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct plot_scale scale = {.unit = cases[i].unit};
        char text[40];
        plot_tick(&scale, cases[i].value, text, sizeof text);
        check_eq_str(text, cases[i].text);
    }
}

BECALM_TESTS(cmocka_unit_test(test_plot__tops_are_round_and_reach_over_everything),
             cmocka_unit_test(test_plot__values_are_parts_of_a_length),
             cmocka_unit_test(test_plot__a_storm_is_drawn_by_doublings), cmocka_unit_test(test_plot__ticks_are_short), )
