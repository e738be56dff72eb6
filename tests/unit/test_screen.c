/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "top/screen.h"

static char figure[SCREEN_FIGURE_MAX];

static void test_screen__figures_are_short(void **state)
{
    (void)state;
    check_eq_str(screen_rate(0, figure), "0");
    check_eq_str(screen_rate(1, figure), "0.01");
    check_eq_str(screen_rate(400, figure), "0.4");
    check_eq_str(screen_rate(12345, figure), "12.3");
    check_eq_str(screen_rate(123456, figure), "123");
    check_eq_str(screen_rate(9999999, figure), "9999");
    check_eq_str(screen_rate(12345678, figure), "12.3k");
    check_eq_str(screen_rate(UINT64_MAX - 1, figure), "18.4P");
    check_eq_str(screen_rate(UINT64_MAX, figure), "-");
    check_eq_str(screen_count(9999, figure), "9999");
    check_eq_str(screen_count(10000, figure), "10.0k");
    check_eq_str(screen_tokens(9500000, figure), "9.5");
    check_eq_str(screen_factor(1102040, figure), "1.10x");
    check_eq_str(screen_factor(27000000, figure), "27.0x");
}

static void test_screen__only_all_of_them_are_a_hundred_per_cent(void **state)
{
    (void)state;
    check_eq_str(screen_share(1000000, figure), "100%");
    check_eq_str(screen_share(999999, figure), "99.9%");
    check_eq_str(screen_share(52000, figure), "5.2%");
    check_eq_str(screen_share(0, figure), "0%");
    check_eq_str(screen_share(UINT64_MAX, figure), "-");
}

static void test_screen__times_have_two_units_at_most(void **state)
{
    (void)state;
    check_eq_str(screen_time(0, figure), "0ms");
    check_eq_str(screen_time(450, figure), "0.4ms");
    check_eq_str(screen_time(120000, figure), "120ms");
    check_eq_str(screen_time(1250000, figure), "1.2s");
    check_eq_str(screen_time(192000000, figure), "3m12s");
    check_eq_str(screen_time(7500000000, figure), "2h05m");
    check_eq_str(screen_time(360000000000, figure), "4d04h");
    check_eq_str(screen_time(UINT64_MAX, figure), "-");
}

static void test_screen__cuts_at_its_edges_and_says_so(void **state)
{
    struct screen s = {.width = 10, .height = 2, .utf8 = true, .reset = ""};
    (void)state;
    screen_put(&s, SCREEN_PLAIN, "%s", "0123456789abc");
    screen_put(&s, SCREEN_PLAIN, "more");
    screen_line(&s);
    screen_field(&s, SCREEN_PLAIN, 4, "abcdef");
    screen_field(&s, SCREEN_PLAIN, -4, "xy");
    screen_to(&s, 9);
    screen_put(&s, SCREEN_PLAIN, "\u00e9\u00e9");
    screen_line(&s);
    screen_put(&s, SCREEN_PLAIN, "below");
    screen_line(&s);
    check_eq_str(s.text, "012345678\u2026\nabc\u2026  xy \u2026\n");
    check_eq_u64(s.lines, 3);
    free(s.text);
}

static void test_screen__a_line_that_just_fits_or_ends_in_blanks_is_not_cut(void **state)
{
    struct screen s = {.width = 5, .utf8 = true, .reset = "<", .mark = {[SCREEN_BAD] = ">"}};
    (void)state;
    screen_put(&s, SCREEN_PLAIN, "12345");
    screen_line(&s);
    screen_put(&s, SCREEN_PLAIN, "123     ");
    screen_line(&s);
    screen_put(&s, SCREEN_BAD, "12345");
    screen_put(&s, SCREEN_PLAIN, "6"); /* a complete screen may be incomplete after that */
    screen_line(&s);
    check_eq_str(s.text, "12345\n123  \n>1234\u2026<\n");
    free(s.text);
}

static void test_screen__without_utf8_there_is_ascii_only(void **state)
{
    struct screen s = {.width = 20, .reset = ""};
    (void)state;
    screen_field(&s, SCREEN_PLAIN, 4, "caf\u00e9s");
    screen_put(&s, SCREEN_PLAIN, "\u20ac|");
    screen_line(&s);
    check_eq_str(s.text, "caf~?|\n");
    free(s.text);
}

static void test_screen__marks_end_and_skipped_lines_leave_nothing(void **state)
{
    struct screen s = {.width = 20, .height = 5, .live = true, .skip = 1, .reset = "<0>"};
    (void)state;
    s.mark[SCREEN_BAD] = "<bad>";
    screen_put(&s, SCREEN_BAD, "unseen");
    screen_line(&s);
    screen_put(&s, SCREEN_BAD, "seen");
    screen_line(&s);
    check_eq_str(s.text, "<bad>seen<0>\033[K\r\n");
    screen_down(&s, 3);
    check_eq_u64(s.row, 3);
    free(s.text);
}

BECALM_TESTS(cmocka_unit_test(test_screen__figures_are_short),
             cmocka_unit_test(test_screen__only_all_of_them_are_a_hundred_per_cent),
             cmocka_unit_test(test_screen__times_have_two_units_at_most),
             cmocka_unit_test(test_screen__cuts_at_its_edges_and_says_so),
             cmocka_unit_test(test_screen__a_line_that_just_fits_or_ends_in_blanks_is_not_cut),
             cmocka_unit_test(test_screen__without_utf8_there_is_ascii_only),
             cmocka_unit_test(test_screen__marks_end_and_skipped_lines_leave_nothing))
