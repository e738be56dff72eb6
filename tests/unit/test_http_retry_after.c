/* SPDX-License-Identifier: MIT */
#include "http_lab.h"

#define YEAR (365 * UINT64_C(86400))

static const int64_t NOW = 784111777; /* Sun, 06 Nov 1994 08:49:37 GMT */

static void check_date(const char *literal, int64_t wall, bool readable, int64_t expected)
{
    struct becalm_text date = text_bare(literal);
    int64_t seconds = -1;
    bool read = becalm_http_date_parse(date, wall, &seconds);
    text_drop(date);
    if (read != readable || (readable && seconds != expected)) {
        fail_msg("\"%s\" is %s %" PRId64 ", expected %s %" PRId64, literal, read ? "read" : "unreadable", seconds,
                 readable ? "read" : "unreadable", expected);
    }
}

static void test_date__nothing_is_no_date(void **state)
{
    int64_t seconds;
    (void)state;
    check_true(!becalm_http_date_parse(text(NULL), NOW, &seconds));
    check_date("", NOW, false, 0);
    check_date(" ", NOW, false, 0);
}

static void test_date__the_three_formats_say_the_same(void **state)
{
    (void)state;
    check_date("Sun, 06 Nov 1994 08:49:37 GMT", NOW, true, NOW);
    check_date("Sunday, 06-Nov-94 08:49:37 GMT", NOW, true, NOW);
    check_date("Sun Nov  6 08:49:37 1994", NOW, true, NOW);
    check_date("Wed Nov 16 08:49:37 1994", NOW, true, NOW + 10 * 86400);
    check_date(" \tsun, 06 nov 1994 08:49:37 gmt ", NOW, true, NOW);
    check_date("Fri, 06 Nov 1994 08:49:37 GMT", NOW, true, NOW); /* a wrong day of the week is forgiven */
}

static void test_date__known_instants(void **state)
{
    (void)state;
    check_date("Thu, 01 Jan 1970 00:00:00 GMT", NOW, true, 0);
    check_date("Wed, 31 Dec 1969 23:59:59 GMT", NOW, true, -1);
    check_date("Tue, 29 Feb 2000 12:00:00 GMT", NOW, true, 951825600);
    check_date("Wed, 01 Mar 2000 00:00:00 GMT", NOW, true, 951868800);
    check_date("Wed, 21 Oct 2026 07:28:00 GMT", NOW, true, 1792567680);
    check_date("Tue, 19 Jan 2038 03:14:08 GMT", NOW, true, INT64_C(2147483648));
    check_date("Fri, 31 Dec 9999 23:59:59 GMT", NOW, true, INT64_C(253402300799));
    check_date("Mon, 01 Jan 0001 00:00:00 GMT", NOW, true, INT64_C(-62135596800));
    check_date("Sat, 31 Dec 2016 23:59:60 GMT", NOW, true, 1483228800); /* a leap second is the next one */
}

static void test_date__leap_years_and_the_ends_of_months(void **state)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    static const struct {
        int year;
        bool leap;
    } years[] = {{1900, false}, {1996, true}, {1999, false}, {2000, true}, {2023, false}, {2024, true}, {2100, false}};
    (void)state;
    for (size_t y = 0; y < COUNT(years); y++) {
        for (unsigned m = 0; m < 12; m++) {
            unsigned last = days[m] + (m == 1 && years[y].leap ? 1u : 0u);
            for (unsigned day = 0; day <= 32; day++) {
                char date[64];
                int64_t seconds;
                (void)snprintf(date, sizeof date, "Mon, %02u %s %d 00:00:00 GMT", day, months[m], years[y].year);
                if (becalm_http_date_parse(text(date), NOW, &seconds) != (day >= 1 && day <= last)) {
                    fail_msg("%s", date);
                }
            }
        }
    }
}

/* Every day of eight centuries is one day after the day before it. */
static void test_date__days_follow_each_other(void **state)
{
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    int64_t expected = INT64_C(-11676096000); /* 1600-01-01 */
    (void)state;
    for (int year = 1600; year < 2400; year++) {
        for (unsigned m = 0; m < 12; m++) {
            for (unsigned day = 1; day <= 31; day++) {
                char date[64];
                int64_t seconds;
                (void)snprintf(date, sizeof date, "Mon, %02u %s %d 00:00:00 GMT", day, months[m], year);
                if (becalm_http_date_parse(text(date), NOW, &seconds)) {
                    assert_int_equal(seconds, expected);
                    expected += 86400;
                }
            }
        }
    }
    assert_int_equal(expected, INT64_C(13569465600)); /* 2400-01-01 */
}

static void test_date__a_two_digit_year_is_at_most_fifty_years_ahead(void **state)
{
    const int64_t in_2024 = 1704067200; /* 1 January */
    (void)state;
    check_date("Saturday, 01-Jan-72 00:00:00 GMT", in_2024, true, INT64_C(3218832000)); /* 2072 */
    check_date("Saturday, 01-Jan-75 00:00:00 GMT", in_2024, true, 157766400);           /* 1975 */
    check_date("Monday, 01-Jan-74 00:00:00 GMT", in_2024, true, INT64_C(3281990400));   /* 2074: just not too far */
    check_date("Friday, 02-Feb-74 00:00:00 GMT", in_2024, true, 128995200);             /* 1974 */
    check_date("Monday, 01-Jan-24 00:00:00 GMT", in_2024, true, in_2024);
    check_date("Sunday, 31-Dec-23 23:59:59 GMT", in_2024, true, in_2024 - 1);
    check_date("Tuesday, 29-Feb-00 00:00:00 GMT", in_2024, true, 951782400); /* 2000 */
    check_date("Tuesday, 29-Feb-01 00:00:00 GMT", in_2024, false, 0);
    check_date("Thursday, 01-Jan-01 00:00:00 GMT", INT64_C(4070908800), true, INT64_C(4133980800)); /* in 2099: 2101 */
    check_date("Monday, 01-Jan-24 00:00:00 GMT", INT64_MAX, true, INT64_C(251003923200));           /* 9924 */
    check_date("Monday, 01-Jan-24 00:00:00 GMT", INT64_MIN, true, INT64_C(-61409836800)); /* the earliest there is */
}

static void test_date__what_is_no_date_is_refused(void **state)
{
    static const char *const wrong[] = {
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 GMTT",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT",
        "Sun, 006 Nov 1994 08:49:37 GMT",
        "Sun,06 Nov 1994 08:49:37 GMT",
        "Sun, 06  Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 19940 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 06 Nov 0000 08:49:37 GMT",
        "Sun, 06 Nox 1994 08:49:37 GMT",
        "Sux, 06 Nov 1994 08:49:37 GMT",
        "06 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun, -6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sundax, 06-Nov-94 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov   6 08:49:37 1994",
        "Sun Nov  06 08:49:37 1994",
        "Sun Nov  6 08:49:37 1994 GMT",
        "Sun Nov  6 08:49:37 94",
        "Sun Nov  0 08:49:37 1994",
        "1994-11-06T08:49:37Z",
        "784111777",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        check_date(wrong[i], NOW, false, 0);
    }
}

static void test_date__every_beginning_of_a_date_is_refused(void **state)
{
    static const char *const dates[] = {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                                        "Sun Nov  6 08:49:37 1994"};
    (void)state;
    for (size_t i = 0; i < COUNT(dates); i++) {
        for (size_t length = 0; length < strlen(dates[i]); length++) {
            char start[64] = {0};
            memcpy(start, dates[i], length);
            check_date(start, NOW, false, 0);
        }
    }
}

static void test_retry_after__nothing_says_nothing(void **state)
{
    becalm_ns wait;
    (void)state;
    check_true(!becalm_retry_after_parse(text(NULL), text(NULL), NOW, &wait));
    check_true(!becalm_retry_after_parse(text(""), text(""), NOW, &wait));
    check_true(!becalm_retry_after_parse(text("  "), text(NULL), NOW, &wait));
}

static void test_retry_after__seconds_and_dates(void **state)
{
    static const struct {
        const char *value;
        const char *date;
        bool readable;
        uint64_t seconds;
    } rows[] = {
        {"0", NULL, true, 0},
        {"120", NULL, true, 120},
        {" 120\t", NULL, true, 120},
        {"0005", NULL, true, 5},
        {"31536000", NULL, true, YEAR},
        {"31536001", NULL, true, YEAR},
        {"9999999999", NULL, true, YEAR},
        {"99999999999999999999999999", NULL, true, YEAR},
        {"-1", NULL, false, 0},
        {"+1", NULL, false, 0},
        {"1.5", NULL, false, 0},
        {"1 2", NULL, false, 0},
        {"5s", NULL, false, 0},
        {"soon", NULL, false, 0},
        {"Sun, 06 Nov 1994 08:49:37 GMT", NULL, true, 0},
        {"Sun, 06 Nov 1994 08:49:36 GMT", NULL, true, 0}, /* past */
        {"Sun, 06 Nov 1994 08:49:39 GMT", NULL, true, 2},
        {"Sunday, 06-Nov-94 08:50:37 GMT", NULL, true, 60},
        {"Sun Nov  6 09:49:37 1994", NULL, true, 3600},
        {"Sun, 06 Nov 2094 08:49:37 GMT", NULL, true, YEAR},
        {"Sun, 06 Nov 1994 08:49:39 GMT", "Sun, 06 Nov 1994 08:49:30 GMT", true, 9},
        {"Sun, 06 Nov 1994 08:49:39 GMT", "Sunday, 06-Nov-94 08:49:40 GMT", true, 0},
        {"Sunday, 06-Nov-94 08:49:39 GMT", "Sun Nov  6 08:49:30 1994", true, 9},
        {"Sun, 06 Nov 1994 08:49:39 GMT", "yesterday", true, 2}, /* a Date that can't be read: our clock */
        {"7", "yesterday", true, 7},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct becalm_text value = text_bare(rows[i].value);
        becalm_ns wait = 0;
        bool read = becalm_retry_after_parse(value, text(rows[i].date), NOW, &wait);
        text_drop(value);
        if (read != rows[i].readable || (read && wait != rows[i].seconds * BECALM_S)) {
            fail_msg("\"%s\" is %d %" PRIu64, rows[i].value, read, wait);
        }
    }
}

static void test_retry_after__survives_any_wall_clock(void **state)
{
    becalm_ns wait;
    (void)state;
    check_true(becalm_retry_after_parse(text("Sun, 06 Nov 1994 08:49:37 GMT"), text(NULL), INT64_MAX, &wait));
    check_eq_u64(wait, 0);
    check_true(becalm_retry_after_parse(text("Sun, 06 Nov 1994 08:49:37 GMT"), text(NULL), INT64_MIN, &wait));
    check_eq_u64(wait, YEAR * BECALM_S);
}

static void test_pushback__a_number_waits_and_everything_else_stops(void **state)
{
    static const struct {
        const char *value;
        bool stop;
        uint64_t milliseconds;
    } rows[] = {
        {"0", false, 0},
        {"1", false, 1},
        {" 250 ", false, 250},
        {"2147483647", false, 2147483647},
        {"2147483648", true, 0},
        {"99999999999999999999", true, 0},
        {"-1", true, 0},
        {"-0", true, 0},
        {"-2147483648", true, 0},
        {"+1", true, 0},
        {"", true, 0},
        {"1.5", true, 0},
        {"1 ms", true, 0},
        {"never", true, 0},
        {"0x10", true, 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct becalm_text value = text_bare(rows[i].value);
        struct becalm_pushback pushback = becalm_pushback_parse(value);
        text_drop(value);
        if (pushback.stop != rows[i].stop || pushback.wait != rows[i].milliseconds * BECALM_MS) {
            fail_msg("\"%s\" is %d %" PRIu64, rows[i].value, pushback.stop, pushback.wait);
        }
    }
    check_true(becalm_pushback_parse(text(NULL)).stop);
}

BECALM_TESTS(cmocka_unit_test(test_date__nothing_is_no_date),
             cmocka_unit_test(test_date__the_three_formats_say_the_same), cmocka_unit_test(test_date__known_instants),
             cmocka_unit_test(test_date__leap_years_and_the_ends_of_months),
             cmocka_unit_test(test_date__days_follow_each_other),
             cmocka_unit_test(test_date__a_two_digit_year_is_at_most_fifty_years_ahead),
             cmocka_unit_test(test_date__what_is_no_date_is_refused),
             cmocka_unit_test(test_date__every_beginning_of_a_date_is_refused),
             cmocka_unit_test(test_retry_after__nothing_says_nothing),
             cmocka_unit_test(test_retry_after__seconds_and_dates),
             cmocka_unit_test(test_retry_after__survives_any_wall_clock),
             cmocka_unit_test(test_pushback__a_number_waits_and_everything_else_stops))
