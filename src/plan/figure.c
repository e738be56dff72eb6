/* SPDX-License-Identifier: MIT */
#include "figure.h"

#include "policy/value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FIGURE_HUGE 1e15 /* beyond it digits are noise, and the integer arithmetic below would overflow */

static const uint64_t power_of_ten[] = {1, 10, 100, 1000, 10000, 100000, 1000000};

/* snprintf returns the length that it would have written, not the length that it wrote. */
static size_t written(int length, size_t size)
{
    if (length < 0 || size == 0) {
        return 0;
    }
    return (size_t)length < size ? (size_t)length : size - 1;
}

/* "51200" -> "51,200" */
static void group(uint64_t whole, char *text, size_t size)
{
    char digits[24];
    size_t count = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, whole);
    size_t at = 0;
    for (size_t i = 0; i < count && at + 2 < size; i++) {
        if (i > 0 && (count - i) % 3 == 0) {
            text[at++] = ',';
        }
        text[at++] = digits[i];
    }
    text[at] = '\0';
}

/* Up to six decimals, trailing zeros dropped. The nudge makes 0.5 of a decimal fraction that has no exact double round
 * away from zero as it would on paper. */
static size_t write_decimals(double value, uint32_t decimals, char *text, size_t size)
{
    double magnitude = fabs(value);
    while (decimals > 0 && magnitude * (double)power_of_ten[decimals] >= FIGURE_HUGE) {
        decimals--; /* a double has no more digits than that */
    }
    uint64_t scale = power_of_ten[decimals];
    double exact = magnitude * (double)scale;
    uint64_t scaled = figure_round(exact < 1e9 ? exact * (1 + 1e-12) : exact);
    uint64_t fraction = scaled % scale;
    char whole[32];
    group(scaled / scale, whole, sizeof(whole));
    const char *sign = value < 0 && scaled > 0 ? "-" : "";
    while (decimals > 0 && fraction % 10 == 0) {
        fraction /= 10;
        decimals--;
    }
    if (decimals == 0) {
        return written(snprintf(text, size, "%s%s", sign, whole), size);
    }
    return written(snprintf(text, size, "%s%s.%0*" PRIu64, sign, whole, (int)decimals, fraction), size);
}

size_t figure_write(double value, uint32_t decimals, char *text, size_t size)
{
    if (!isfinite(value)) {
        return written(snprintf(text, size, "-"), size);
    }
    if (fabs(value) >= FIGURE_HUGE) {
        return written(snprintf(text, size, "%.3e", value), size);
    }
    return write_decimals(value, decimals < 3 ? decimals : 3, text, size);
}

size_t figure_write_fine(double value, char *text, size_t size)
{
    double magnitude = fabs(value);
    if (magnitude >= 10 || !isfinite(value)) {
        return figure_write(value, 1, text, size);
    }
    uint32_t decimals = 2;
    while (decimals < 6 && magnitude > 0 && magnitude * (double)power_of_ten[decimals] < 10) {
        decimals++;
    }
    return write_decimals(value, decimals, text, size);
}

size_t figure_write_duration(becalm_ns duration, char *text, size_t size)
{
    becalm_ns unit = 1;
    while (duration / unit >= 1000) {
        unit *= 10;
    }
    becalm_ns rest = duration % unit;
    becalm_ns rounded = duration - rest;
    if (rest * 2 >= unit && unit > 1) {
        rounded += unit;
    }
    static const struct {
        const char *name;
        becalm_ns ns;
    } units[] = {{"s", BECALM_S}, {"ms", BECALM_MS}, {"us", BECALM_US}};
    for (size_t i = 0; i < sizeof(units) / sizeof(*units) && rounded < 1000 * BECALM_S; i++) {
        if (rounded >= units[i].ns) {
            char number[FIGURE_MAX];
            write_decimals((double)rounded / (double)units[i].ns, 2, number, sizeof(number));
            return written(snprintf(text, size, "%s%s", number, units[i].name), size);
        }
    }
    return value_write_duration(rounded, text, size);
}

becalm_ns figure_round_up(becalm_ns duration, uint32_t digits)
{
    becalm_ns limit = 1;
    for (uint32_t i = 0; i < digits; i++) {
        limit *= 10;
    }
    becalm_ns unit = 1;
    while (duration / unit >= limit) {
        unit *= 10;
    }
    becalm_ns rest = duration % unit;
    return rest == 0 ? duration : becalm_ns_after(duration, unit - rest);
}

size_t figure_bar(double fraction, uint32_t width, bool utf8, char *text, size_t size)
{
    static const char *const eighth[] = {"", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589"};
    uint32_t steps = utf8 ? 8 : 1;
    double bounded = fraction < 0 ? 0 : fraction > 1 ? 1 : fraction;
    uint32_t parts = (uint32_t)figure_round(bounded * width * steps);
    if (parts == 0 && fraction > 0) {
        parts = 1;
    }
    size_t at = 0;
    for (; parts >= steps; parts -= steps) {
        const char *full = utf8 ? "\u2588" : "#";
        if (at + strlen(full) + 1 > size) {
            break;
        }
        memcpy(text + at, full, strlen(full));
        at += strlen(full);
    }
    if (parts > 0 && parts < steps && at + strlen(eighth[parts]) + 1 <= size) {
        memcpy(text + at, eighth[parts], strlen(eighth[parts]));
        at += strlen(eighth[parts]);
    }
    if (size > 0) {
        text[at] = '\0';
    }
    return at;
}
