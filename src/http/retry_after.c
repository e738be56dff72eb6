/* SPDX-License-Identifier: MIT */
#include <becalm/http.h>

#include "text_internal.h"

#define DAY         INT64_C(86400)
#define FIFTY_YEARS ((50 * 365 + 13) * DAY) /* with the most leap days that 50 years can have */
#define WAIT_MAX    (365 * (uint64_t)DAY)   /* seconds */

struct civil {
    int64_t year;
    uint64_t month; /* from 1 */
    uint64_t day;   /* from 1 */
    uint64_t hour;
    uint64_t minute;
    uint64_t second;
};

static bool is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static uint64_t month_days(const struct civil *date)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[date->month - 1] + (uint64_t)(date->month == 2 && is_leap(date->year));
}

/* A second of 60 is a leap second, which the format allows; it reads as the first of the next minute. */
static bool civil_exists(const struct civil *date)
{
    return date->year >= 1 && date->day >= 1 && date->day <= month_days(date) && date->hour <= 23 &&
           date->minute <= 59 && date->second <= 60;
}

/* Days from the first day of the year 1 to the first day of this year. */
static int64_t days_before_year(int64_t year)
{
    int64_t full = year - 1;
    return full * 365 + full / 4 - full / 100 + full / 400;
}

/* Seconds since 1970, for a year of 1 or later. */
static int64_t civil_seconds(const struct civil *date)
{
    static const uint16_t before_month[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    int64_t days = days_before_year(date->year) - days_before_year(1970) + before_month[date->month - 1] +
                   (int64_t)(date->month > 2 && is_leap(date->year)) + (int64_t)date->day - 1;
    return days * DAY + (int64_t)(date->hour * 3600 + date->minute * 60 + date->second);
}

/* Exactly so many digits. */
static bool take_digits(struct becalm_text *text, size_t digits, uint64_t *number)
{
    return text_take_number(text, number) == digits;
}

static bool take_year(struct becalm_text *text, size_t digits, struct civil *date)
{
    uint64_t year;
    if (!take_digits(text, digits, &year)) {
        return false;
    }
    date->year = (int64_t)year;
    return true;
}

static bool take_month(struct becalm_text *text, struct civil *date)
{
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    for (size_t i = 0; i < sizeof months / sizeof *months; i++) {
        if (text_take_word(text, months[i])) {
            date->month = i + 1;
            return true;
        }
    }
    return false;
}

/* 08:49:37 */
static bool take_clock(struct becalm_text *text, struct civil *date)
{
    return take_digits(text, 2, &date->hour) && text_take(text, ':') && take_digits(text, 2, &date->minute) &&
           text_take(text, ':') && take_digits(text, 2, &date->second);
}

/* The day of the week says nothing that the date does not, so a wrong one is forgiven. */
static bool take_weekday(struct becalm_text *text, bool whole)
{
    static const char *const starts[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
    static const char *const rests[] = {"day", "sday", "nesday", "rsday", "day", "urday", "day"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        if (text_take_word(text, starts[i])) {
            return !whole || text_take_word(text, rests[i]);
        }
    }
    return false;
}

/* Sun, 06 Nov 1994 08:49:37 GMT */
static bool read_imf(struct becalm_text text, struct civil *date)
{
    return take_weekday(&text, false) && text_take_word(&text, ", ") && take_digits(&text, 2, &date->day) &&
           text_take(&text, ' ') && take_month(&text, date) && text_take(&text, ' ') && take_year(&text, 4, date) &&
           text_take(&text, ' ') && take_clock(&text, date) && text_take_word(&text, " GMT") && text_ended(text);
}

/* Sunday, 06-Nov-94 08:49:37 GMT; the century is missing. */
static bool read_rfc850(struct becalm_text text, struct civil *date)
{
    return take_weekday(&text, true) && text_take_word(&text, ", ") && take_digits(&text, 2, &date->day) &&
           text_take(&text, '-') && take_month(&text, date) && text_take(&text, '-') && take_year(&text, 2, date) &&
           text_take(&text, ' ') && take_clock(&text, date) && text_take_word(&text, " GMT") && text_ended(text);
}

/* Sun Nov  6 08:49:37 1994 */
static bool read_asctime(struct becalm_text text, struct civil *date)
{
    return take_weekday(&text, false) && text_take(&text, ' ') && take_month(&text, date) && text_take(&text, ' ') &&
           take_digits(&text, text_take(&text, ' ') ? 1 : 2, &date->day) && text_take(&text, ' ') &&
           take_clock(&text, date) && text_take(&text, ' ') && take_year(&text, 4, date) && text_ended(text);
}

/* The latest year with these two digits that is not more than 50 years ahead (RFC 9110, 5.6.7). */
static void add_century(struct civil *date, int64_t wall)
{
    int64_t latest = wall < INT64_MAX - FIFTY_YEARS ? wall + FIFTY_YEARS : INT64_MAX;
    date->year += 9900;
    while (date->year > 100 && civil_seconds(date) > latest) {
        date->year -= 100;
    }
}

bool becalm_http_date_parse(struct becalm_text text, int64_t wall, int64_t *seconds)
{
    struct civil date = {0};
    text = text_trim(text);
    if (read_rfc850(text, &date)) {
        add_century(&date, wall);
    } else if (!read_imf(text, &date) && !read_asctime(text, &date)) {
        return false;
    }
    if (!civil_exists(&date)) {
        return false;
    }
    *seconds = civil_seconds(&date);
    return true;
}

static becalm_ns wait_of(uint64_t seconds)
{
    return (seconds < WAIT_MAX ? seconds : WAIT_MAX) * BECALM_S;
}

bool becalm_retry_after_parse(struct becalm_text value, struct becalm_text date, int64_t wall, becalm_ns *wait)
{
    int64_t until;
    int64_t since;
    uint64_t seconds;
    value = text_trim(value);
    if (text_take_number(&value, &seconds) > 0) {
        *wait = wait_of(seconds);
        return text_ended(value);
    }
    if (!becalm_http_date_parse(date, wall, &since)) {
        since = wall;
    }
    if (!becalm_http_date_parse(value, since, &until)) {
        return false;
    }
    /* Unsigned, because the distance from a wall clock gone wild may not fit into a signed number. */
    *wait = until > since ? wait_of((uint64_t)until - (uint64_t)since) : 0;
    return true;
}

struct becalm_pushback becalm_pushback_parse(struct becalm_text text)
{
    struct becalm_pushback pushback = {.stop = true, .wait = 0};
    uint64_t milliseconds;
    text = text_trim(text);
    if (text_take_number(&text, &milliseconds) > 0 && text_ended(text) && milliseconds <= INT32_MAX) {
        pushback.stop = false;
        pushback.wait = milliseconds * BECALM_MS;
    }
    return pushback;
}
