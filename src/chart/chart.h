/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CHART_H
#define BECALM_CHART_H

/* Figures and small charts as text. Integers only, so that the same run prints the same bytes on every machine. Texts
 * are zero-terminated and cut at `size`; the written length is returned. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHART_PPM        1000000u
#define CHART_FIGURE_MAX 40u /* enough for every figure */

#define CHART_NONE UINT64_MAX /* there is no figure: printed as "-" */

/* 1.551x, 51.2x, 512x, 51,200x: rounded; or CHART_NONE. */
size_t chart_factor(uint64_t ppm, char *text, size_t size);

/* 100 %, 99.99 %, 0 %: cut, not rounded, so that only all of them are 100 %; or CHART_NONE. */
size_t chart_share(uint64_t ppm, char *text, size_t size);

/* 51,200 */
size_t chart_count(uint64_t count, char *text, size_t size);

/* 850/s from thousandths. */
size_t chart_rate(uint64_t milli, char *text, size_t size);

/* 1,234.567 ms from microseconds. */
size_t chart_latency(uint64_t us, char *text, size_t size);

/* How many of `count` values stand in one of at most `width` columns; and how many columns that makes. */
uint32_t chart_bin(uint32_t count, uint32_t width);
uint32_t chart_columns(uint32_t count, uint32_t width);

/* One character per value, from a blank for 0 to a full block for `top` and above; without UTF-8 from a dot to a hash.
 * A character takes up to three bytes. */
size_t chart_spark(const uint64_t *value, uint32_t count, uint64_t top, bool utf8, char *text, size_t size);

#endif
