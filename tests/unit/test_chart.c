/* SPDX-License-Identifier: MIT */
#include "check.h"

#include "chart/chart.h"

static void test_chart__factors_have_fewer_decimals_the_larger_they_are(void **state)
{
    (void)state;
    static const struct {
        uint64_t ppm;
        const char *text;
    } cases[] = {
        {0, "0.000x"},
        {499, "0.000x"},
        {500, "0.001x"},
        {1000000, "1.000x"},
        {1551328, "1.551x"},
        {9999499, "9.999x"},
        {9999500, "10.0x"},
        {51250000, "51.3x"},
        {99949999, "99.9x"},
        {99950000, "100x"},
        {512000000, "512x"},
        {UINT64_C(51200400000), "51,200x"},
        {UINT64_C(1234567500000), "1,234,568x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[CHART_FIGURE_MAX];
        size_t length = chart_factor(cases[i].ppm, text, sizeof text);
        assert_string_equal(text, cases[i].text);
        assert_int_equal(length, strlen(text));
    }
}

static void test_chart__only_all_of_them_are_100_percent(void **state)
{
    (void)state;
    static const struct {
        uint64_t ppm;
        const char *text;
    } cases[] = {
        {0, "0 %"},          {1, "0.00 %"},      {99, "0.00 %"},        {100, "0.01 %"},    {226543, "22.65 %"},
        {999999, "99.99 %"}, {1000000, "100 %"}, {1000100, "100.01 %"}, {2000000, "200 %"}, {2696400, "269.64 %"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[CHART_FIGURE_MAX];
        chart_share(cases[i].ppm, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

static void test_chart__counts_and_rates_are_grouped(void **state)
{
    (void)state;
    char text[CHART_FIGURE_MAX];
    chart_count(0, text, sizeof text);
    assert_string_equal(text, "0");
    chart_count(999, text, sizeof text);
    assert_string_equal(text, "999");
    chart_count(1000, text, sizeof text);
    assert_string_equal(text, "1,000");
    chart_count(UINT64_MAX, text, sizeof text);
    assert_string_equal(text, "18,446,744,073,709,551,615");
    chart_rate(850000, text, sizeof text);
    assert_string_equal(text, "850/s");
    chart_rate(1000500, text, sizeof text);
    assert_string_equal(text, "1,000.500/s");
}

static void test_chart__columns_hold_whole_values_and_never_exceed_the_width(void **state)
{
    (void)state;
    assert_int_equal(chart_columns(0, 54), 0);
    assert_int_equal(chart_columns(54, 54), 54);
    assert_int_equal(chart_columns(55, 54), 28);
    for (uint32_t count = 1; count < 4000; count++) {
        uint32_t bin = chart_bin(count, 54);
        uint32_t columns = chart_columns(count, 54);
        assert_in_range(columns, 1, 54);
        assert_true((columns - 1) * bin < count && count <= columns * bin);
    }
}

static void test_chart__a_spark_shows_what_is_above_zero(void **state)
{
    (void)state;
    const uint64_t value[] = {0, 1, 125, 500, 937, 938, 1000, 5000};
    char text[64];
    chart_spark(value, 0, 1000, true, text, sizeof text);
    assert_string_equal(text, "");
    chart_spark(value, 8, 1000, true, text, sizeof text);
    assert_string_equal(text, " \u2581\u2581\u2584\u2587\u2588\u2588\u2588");
    chart_spark(value, 8, 1000, false, text, sizeof text);
    assert_string_equal(text, " ..=%###");
}

static void test_chart__a_spark_is_cut_between_characters(void **state)
{
    (void)state;
    const uint64_t value[] = {1000, 1000, 1000};
    char text[8];
    assert_int_equal(chart_spark(value, 3, 1000, true, text, sizeof text), 6);
    assert_string_equal(text, "\u2588\u2588");
}

BECALM_TESTS(cmocka_unit_test(test_chart__factors_have_fewer_decimals_the_larger_they_are),
             cmocka_unit_test(test_chart__only_all_of_them_are_100_percent),
             cmocka_unit_test(test_chart__counts_and_rates_are_grouped),
             cmocka_unit_test(test_chart__columns_hold_whole_values_and_never_exceed_the_width),
             cmocka_unit_test(test_chart__a_spark_shows_what_is_above_zero),
             cmocka_unit_test(test_chart__a_spark_is_cut_between_characters))
