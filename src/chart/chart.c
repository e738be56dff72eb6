/* SPDX-License-Identifier: MIT */
#include "chart.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LEVELS 8u

/* snprintf returns the length that it would have written, not the length that it wrote. */
static size_t written(int length, size_t size)
{
    if (length < 0 || size == 0) {
        return 0;
    }
    return (size_t)length < size ? (size_t)length : size - 1;
}

size_t chart_count(uint64_t count, char *text, size_t size)
{
    char digits[24];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, count);
    size_t at = 0;
    for (size_t i = 0; i < length && at + 2 < size; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            text[at++] = ',';
        }
        text[at++] = digits[i];
    }
    text[at] = '\0';
    return at;
}

/* Fewer decimals for larger figures: the zeroes of 512.000x say nothing. */
size_t chart_factor(uint64_t ppm, char *text, size_t size)
{
    if (ppm == CHART_NONE) {
        return written(snprintf(text, size, "-"), size);
    }
    uint64_t thousandths = (ppm + 500) / 1000;
    if (thousandths < 10000) {
        return written(snprintf(text, size, "%" PRIu64 ".%03" PRIu64 "x", thousandths / 1000, thousandths % 1000),
                       size);
    }
    uint64_t tenths = (ppm + CHART_PPM / 20) / (CHART_PPM / 10);
    if (tenths < 1000) {
        return written(snprintf(text, size, "%" PRIu64 ".%" PRIu64 "x", tenths / 10, tenths % 10), size);
    }
    char whole[CHART_FIGURE_MAX];
    chart_count((ppm + CHART_PPM / 2) / CHART_PPM, whole, sizeof whole);
    return written(snprintf(text, size, "%sx", whole), size);
}

size_t chart_share(uint64_t ppm, char *text, size_t size)
{
    if (ppm == CHART_NONE) {
        return written(snprintf(text, size, "-"), size);
    }
    if (ppm % CHART_PPM == 0) {
        return written(snprintf(text, size, "%" PRIu64 " %%", ppm / CHART_PPM * 100), size);
    }
    uint64_t hundredths = ppm / 100;
    return written(snprintf(text, size, "%" PRIu64 ".%02" PRIu64 " %%", hundredths / 100, hundredths % 100), size);
}

size_t chart_rate(uint64_t milli, char *text, size_t size)
{
    char whole[CHART_FIGURE_MAX];
    chart_count(milli / 1000, whole, sizeof whole);
    if (milli % 1000 == 0) {
        return written(snprintf(text, size, "%s/s", whole), size);
    }
    return written(snprintf(text, size, "%s.%03" PRIu64 "/s", whole, milli % 1000), size);
}

size_t chart_latency(uint64_t us, char *text, size_t size)
{
    char whole[CHART_FIGURE_MAX];
    chart_count(us / 1000, whole, sizeof whole);
    return written(snprintf(text, size, "%s.%03" PRIu64 " ms", whole, us % 1000), size);
}

uint32_t chart_bin(uint32_t count, uint32_t width)
{
    return count == 0 ? 1 : (count + width - 1) / width;
}

uint32_t chart_columns(uint32_t count, uint32_t width)
{
    uint32_t bin = chart_bin(count, width);
    return (count + bin - 1) / bin;
}

static uint32_t level(uint64_t value, uint64_t top)
{
    if (value == 0) {
        return 0;
    }
    if (value >= top) {
        return LEVELS;
    }
    uint64_t rounded = (value * LEVELS + top / 2) / top;
    return rounded == 0 ? 1 : (uint32_t)rounded; /* a value above 0 is at least one step high */
}

size_t chart_spark(const uint64_t *value, uint32_t count, uint64_t top, bool utf8, char *text, size_t size)
{
    static const char *const block[LEVELS + 1] = {
        " ", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588",
    };
    static const char *const ascii[LEVELS + 1] = {" ", ".", ":", "-", "=", "+", "*", "%", "#"};
    size_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        const char *glyph = (utf8 ? block : ascii)[level(value[i], top)];
        size_t bytes = strlen(glyph);
        if (at + bytes + 1 > size) {
            break;
        }
        memcpy(text + at, glyph, bytes);
        at += bytes;
    }
    text[at] = '\0';
    return at;
}
