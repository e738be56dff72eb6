/* SPDX-License-Identifier: MIT */
#include "date.h"

#include <string.h>

static void two_digits(char *text, int64_t number)
{
    text[0] = (char)('0' + number / 10 % 10);
    text[1] = (char)('0' + number % 10);
}

void date_write(char text[30], int64_t seconds)
{
    enum { DAY = 86400, ERA_DAYS = 146097, FROM_MARCH_0 = 719468 };
    static const char weekdays[] = "ThuFriSatSunMonTueWed"; /* 1 January 1970 was a Thursday */
    static const char months[] = "MarAprMayJunJulAugSepOctNovDecJanFeb";
    /* From 1970 on; the year 9999 is the last that the format can write. */
    seconds = seconds < 0 ? 0 : seconds > INT64_C(253402300799) ? INT64_C(253402300799) : seconds;
    int64_t days = seconds / DAY;
    int64_t left = seconds % DAY;
    /* Years that begin in March have their leap day at the end; eras of 400 such years are all alike. */
    int64_t era = (days + FROM_MARCH_0) / ERA_DAYS;
    int64_t day_of_era = (days + FROM_MARCH_0) % ERA_DAYS;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153; /* from March, 0 */
    int64_t year = era * 400 + year_of_era + (month >= 10);
    memcpy(text, "Xxx, 00 Xxx 0000 00:00:00 GMT", 30);
    memcpy(text, weekdays + 3 * (days % 7), 3);
    two_digits(text + 5, day_of_year - (153 * month + 2) / 5 + 1);
    memcpy(text + 8, months + 3 * month, 3);
    two_digits(text + 12, year / 100);
    two_digits(text + 14, year % 100);
    two_digits(text + 17, left / 3600);
    two_digits(text + 20, left / 60 % 60);
    two_digits(text + 23, left % 60);
}
