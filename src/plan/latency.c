/* SPDX-License-Identifier: MIT */
#include "latency.h"

#include "figure.h"

#include "policy/value.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 128

static int compare_points(const void *left, const void *right)
{
    const struct plan_point *a = left;
    const struct plan_point *b = right;
    return (a->at > b->at) - (a->at < b->at);
}

static int compare_buckets(const void *left, const void *right)
{
    const struct plan_bucket *a = left;
    const struct plan_bucket *b = right;
    return (a->le > b->le) - (a->le < b->le);
}

/* Cuts the comment, and the space around the rest. */
static char *trim(char *line)
{
    line[strcspn(line, "#\r\n")] = '\0';
    line += strspn(line, " \t");
    size_t length = strlen(line);
    while (length > 0 && (line[length - 1] == ' ' || line[length - 1] == '\t')) {
        line[--length] = '\0';
    }
    return line;
}

/* Programs print more decimals than there are nanoseconds: drops those of a number in seconds, milliseconds (as is one
 * without unit) or microseconds. */
static void drop_decimals(char *text)
{
    char *dot = strchr(text, '.');
    if (dot == NULL) {
        return;
    }
    size_t digits = strspn(dot + 1, "0123456789");
    char *unit = dot + 1 + digits;
    size_t keep = strcmp(unit, "s") == 0 ? 9 : strcmp(unit, "us") == 0 ? 3 : 6;
    if (digits > keep) {
        memmove(dot + 1 + keep, unit, strlen(unit) + 1);
    }
}

static bool parse_line(char *text, becalm_ns *out)
{
    uint64_t ns = 0;
    drop_decimals(text);
    if (!value_decimal(text, (uint32_t)BECALM_MS, &ns) && !value_duration(text, &ns)) {
        return false;
    }
    *out = ns;
    return ns <= PLAN_LATENCY_MAX;
}

static bool add_point(struct plan_latency *latency, size_t *room, becalm_ns at)
{
    if (latency->count == *room) {
        size_t more = *room == 0 ? 1024 : *room * 2;
        struct plan_point *point = realloc(latency->point, more * sizeof(*point));
        if (point == NULL) {
            return false;
        }
        latency->point = point;
        *room = more;
    }
    latency->point[latency->count++].at = (double)at;
    return true;
}

static bool read_lines(struct plan_latency *latency, FILE *in, const char *name, char why[PLAN_WHY_MAX])
{
    char buffer[LINE_MAX_BYTES];
    size_t room = 0;
    for (uint64_t line = 1; fgets(buffer, sizeof(buffer), in) != NULL; line++) {
        if (strchr(buffer, '\n') == NULL && !feof(in)) {
            snprintf(why, PLAN_WHY_MAX, "%s:%" PRIu64 ": the line is too long; one latency per line", name, line);
            return false;
        }
        char *text = trim(buffer);
        becalm_ns at = 0;
        if (*text == '\0') {
            continue;
        }
        if (!parse_line(text, &at)) {
            snprintf(why, PLAN_WHY_MAX, "%s:%" PRIu64 ": not a latency; write 12.5ms, or 12.5 for milliseconds", name,
                     line);
            return false;
        }
        if (latency->count == PLAN_LATENCIES_MAX) {
            snprintf(why, PLAN_WHY_MAX, "%s: more than %u latencies; take a sample of them", name, PLAN_LATENCIES_MAX);
            return false;
        }
        if (!add_point(latency, &room, at)) {
            snprintf(why, PLAN_WHY_MAX, "%s: out of memory", name);
            return false;
        }
    }
    return true;
}

bool plan_latency_read(struct plan_latency *latency, FILE *in, const char *name, char why[PLAN_WHY_MAX])
{
    *latency = (struct plan_latency){.single = true};
    if (!read_lines(latency, in, name, why)) {
        return false;
    }
    if (ferror(in)) {
        snprintf(why, PLAN_WHY_MAX, "%s: cannot be read", name);
        return false;
    }
    if (latency->count == 0) {
        snprintf(why, PLAN_WHY_MAX, "%s: no latency in it", name);
        return false;
    }
    qsort(latency->point, latency->count, sizeof(*latency->point), compare_points);
    latency->answers = latency->count;
    for (size_t i = 0; i < latency->count; i++) {
        latency->point[i].share = (double)(i + 1) / (double)latency->count;
    }
    return true;
}

bool plan_latency_from_buckets(struct plan_latency *latency, struct plan_bucket *bucket, size_t count,
                               char why[PLAN_WHY_MAX])
{
    *latency = (struct plan_latency){.single = false};
    qsort(bucket, count, sizeof(*bucket), compare_buckets);
    double total = 0;
    for (size_t i = 0; i < count; i++) {
        /* Rates of buckets are extrapolated one by one, so a larger bucket may be smaller by a rounding error. */
        total = bucket[i].count > total ? bucket[i].count : total;
        bucket[i].count = total;
    }
    if (count < 2 || !(total > 0) || !isinf(bucket[count - 1].le)) {
        snprintf(why, PLAN_WHY_MAX, "no answers in the histogram");
        return false;
    }
    latency->point = calloc(count, sizeof(*latency->point));
    if (latency->point == NULL) {
        snprintf(why, PLAN_WHY_MAX, "out of memory");
        return false;
    }
    /* The first point is the origin; +Inf is no point: of latencies beyond the last bound nothing else is known. */
    latency->count = 1;
    for (size_t i = 0; i + 1 < count; i++) {
        if (bucket[i].le > 0 && bucket[i].le <= (double)(PLAN_LATENCY_MAX / BECALM_S)) {
            latency->point[latency->count].at = bucket[i].le * (double)BECALM_S;
            latency->point[latency->count++].share = bucket[i].count / total;
        }
    }
    latency->answers = total < 1e18 ? figure_round(total) : UINT64_C(1000000000000000000);
    return true;
}

void plan_latency_free(struct plan_latency *latency)
{
    free(latency->point);
    *latency = (struct plan_latency){0};
}

/* How many points lie at or before `at`: binary search. */
static size_t points_until(const struct plan_latency *latency, double at)
{
    size_t low = 0;
    size_t high = latency->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (latency->point[middle].at <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The share of answers that took at most `at`. */
static double share_until(const struct plan_latency *latency, double at)
{
    size_t after = points_until(latency, at);
    if (after == 0) {
        return 0;
    }
    const struct plan_point *left = &latency->point[after - 1];
    if (latency->single || after == latency->count) {
        return left->share;
    }
    const struct plan_point *right = left + 1;
    return left->share + (right->share - left->share) * (at - left->at) / (right->at - left->at);
}

bool plan_latency_quantile(const struct plan_latency *latency, double q, becalm_ns *out)
{
    const struct plan_point *last = &latency->point[latency->count - 1];
    for (size_t i = 0; i < latency->count; i++) {
        const struct plan_point *point = &latency->point[i];
        if (point->share < q - 1e-12) {
            continue;
        }
        double at = point->at;
        if (!latency->single && i > 0) {
            const struct plan_point *left = point - 1;
            at = left->at + (point->at - left->at) * (q - left->share) / (point->share - left->share);
        }
        *out = figure_round(at);
        return true;
    }
    *out = figure_round(last->at);
    return false;
}

bool plan_latency_hedged(const struct plan_latency *latency, becalm_ns delay, double q, becalm_ns *out)
{
    double low = 0;
    double high = latency->point[latency->count - 1].at;
    double slower = (1 - share_until(latency, high)) * (1 - share_until(latency, high - (double)delay));
    if (slower > 1 - q + 1e-12) {
        *out = figure_round(high);
        return false;
    }
    while (high - low > 0.5) { /* half a nanosecond; at most 48 rounds, since 24 h are 2^46 of them */
        double middle = low + (high - low) / 2;
        slower = (1 - share_until(latency, middle)) * (1 - share_until(latency, middle - (double)delay));
        if (slower > 1 - q + 1e-12) {
            low = middle;
        } else {
            high = middle;
        }
    }
    *out = figure_round(high);
    return true;
}
