/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PLAN_FIGURE_H
#define BECALM_PLAN_FIGURE_H

/* Figures as people read them: 51,200 and 155.1 and 0.0076, durations to three digits, and bars. Half is rounded away
 * from zero. Texts are zero-terminated and cut at `size`; the written length is returned. */

#include <becalm/ns.h>

/* To the nearest whole number, of 0 up to below 2^63. llround() would need libm, whose 300 KB every process that runs
 * the command would load. */
static inline uint64_t figure_round(double value)
{
    uint64_t whole = (uint64_t)value;
    return whole + (value - (double)whole >= 0.5);
}

#define FIGURE_MAX 56u /* enough for every figure and duration */

/* At most `decimals` (0 to 3) of them, without trailing zeros; from 10^15 on as 1.267e+30. */
size_t figure_write(double value, uint32_t decimals, char *text, size_t size);

/* Decimals by size: one from 10 on, two from 0.1 on, else two digits that are not 0. */
size_t figure_write_fine(double value, char *text, size_t size);

/* A measured duration, rounded to three significant digits: 376ms, 1.25s. */
size_t figure_write_duration(becalm_ns duration, char *text, size_t size);

/* The least duration of `digits` significant digits that is not below this one: 412ms -> 420ms with two. */
becalm_ns figure_round_up(becalm_ns duration, uint32_t digits);

/* A bar of `fraction` (0 to 1) of `width` columns; a fraction above 0 shows at least a sliver. Eighths of blocks, or
 * `#` without UTF-8. */
size_t figure_bar(double fraction, uint32_t width, bool utf8, char *text, size_t size);

#endif
