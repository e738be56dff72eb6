/* SPDX-License-Identifier: MIT */
#include "figures.h"

#include "chart/chart.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_faulty(const struct scenario *plan)
{
    return plan->fault_count > 0;
}

static bool is_healthy(const struct scenario *plan)
{
    return !is_faulty(plan);
}

bool figures_has_after(const struct scenario *plan)
{
    struct fault_span span;
    return scenario_fault_span(plan, &span) && span.over_at < plan->length;
}

bool figures_has_before(const struct scenario *plan)
{
    struct fault_span span;
    return scenario_fault_span(plan, &span) && span.at > 0;
}

bool figures_has_connections(const struct scenario *plan)
{
    for (uint32_t i = 0; i < plan->client_count; i++) {
        if (plan->clients[i].connections > 0) {
            return true;
        }
    }
    return false;
}

bool figures_has_effects(const struct scenario *plan)
{
    for (uint32_t i = 0; i < plan->service_count; i++) {
        if (plan->services[i].effect) {
            return true;
        }
    }
    return false;
}

bool figures_has_load(const struct scenario *plan)
{
    return !measure_is_bounded(plan) && !figures_has_connections(plan);
}

uint32_t figures_focus(const struct scenario *plan)
{
    struct fault_span span;
    return scenario_fault_span(plan, &span) ? scenario_find(plan, plan->faults[span.first].service)
                                            : plan->service_count - 1;
}

/* 80 columns are not enough for all figures: the worst load is left out if the scenario is about something else. */

static bool has_worst(const struct scenario *plan)
{
    return figures_has_load(plan) && !figures_has_effects(plan);
}

static bool has_endpoints(const struct scenario *plan)
{
    return is_healthy(plan) && plan->services[figures_focus(plan)].endpoint_count > 0;
}

static bool has_room(const struct scenario *plan)
{
    return has_worst(plan) && !has_endpoints(plan);
}

bool figures_has_latency(const struct scenario *plan)
{
    return is_healthy(plan) && figures_has_load(plan) && !has_endpoints(plan) && !figures_has_effects(plan);
}

#define FAULTS_NAMED 8u /* more names would not be read */

static size_t say_seconds(becalm_ns at, char *text, size_t size)
{
    uint64_t ms = at / BECALM_MS;
    return (size_t)(ms % 1000 == 0 ? snprintf(text, size, "%" PRIu64 " s", ms / 1000)
                                   : snprintf(text, size, "%" PRIu64 ".%03" PRIu64 " s", ms / 1000, ms % 1000));
}

/* "dead, slow and 3 more": the faults that are part of the span, or those that are not. */
static size_t say_faults(const struct scenario *plan, const struct fault_span *span, bool part, char *text, size_t size)
{
    uint32_t count = part ? span->count : plan->fault_count - span->count;
    uint32_t shown = 0;
    size_t at = 0;
    for (uint32_t i = 0; i < plan->fault_count && shown < count && at < size; i++) {
        if (fault_span_has(span, &plan->faults[i]) != part) {
            continue;
        }
        const char *between = shown == 0 ? "" : shown + 1 == count || shown == FAULTS_NAMED ? " and " : ", ";
        if (shown == FAULTS_NAMED) {
            at += (size_t)snprintf(text + at, size - at, "%s%" PRIu32 " more", between, count - shown);
            break;
        }
        at += (size_t)snprintf(text + at, size - at, "%s%.64s", between, plan->faults[i].name);
        shown++;
    }
    return at < size ? at : size - 1;
}

bool figures_fault_text(const struct scenario *plan, char *text, size_t size)
{
    struct fault_span span;
    if (!scenario_fault_span(plan, &span) || plan->fault_count < 2) {
        return false;
    }
    char from[CHART_FIGURE_MAX];
    char to[CHART_FIGURE_MAX];
    (void)say_seconds(span.at, from, sizeof from);
    (void)say_seconds(becalm_ns_min(span.over_at, plan->length), to, sizeof to);
    size_t at = (size_t)snprintf(text, size, "\"The fault\" is ");
    at += say_faults(plan, &span, true, text + at, size - at);
    at += (size_t)snprintf(text + at, size - at, ", from %s to %s", from, to);
    if (span.count < plan->fault_count) {
        at += (size_t)snprintf(text + at, size - at, "; figures of it leave out ");
        at += say_faults(plan, &span, false, text + at, size - at);
    }
    (void)snprintf(text + at, size - at, ".");
    return true;
}

void figures_take(const struct scenario *plan, const struct measure *measure, struct figures *figures)
{
    const struct measure_service *service = &measure->service[figures_focus(plan)];
    *figures = (struct figures){
        .mean_ppm = service->mean_ppm,
        .peak_5s_ppm = service->peak_5s_ppm,
        .peak_1s_ppm = service->peak_1s_ppm,
        .success_ppm = measure->success_ppm,
        .before_ppm = measure->success_before_ppm,
        .in_fault_ppm = measure->success_in_fault_ppm,
        .after_ppm = measure->success_after_ppm,
        .recovered_after_s = measure->recovered_after_s,
        .attempts = service->attempts,
        .completed_us = measure->completed_us,
        .falls = service->falls,
        .worst_100ms = service->worst_100ms,
        .retried_ppm = service->retry_ratio_ppm,
        .endpoint_ppm = service->endpoint_ratio_ppm,
        .latency_mean_us = measure->latency_mean_us,
        .latency_p99_us = measure->latency_p99_us,
        .latency_p999_us = measure->latency_p999_us,
    };
    for (uint32_t i = 0; i < plan->service_count; i++) {
        figures->executed += measure->service[i].effects.executed;
        figures->repeated += measure->service[i].effects.repeated;
    }
}

#define RECOVERS 10

static const struct figures_column columns[] = {
    {"mean", 9, FIGURES_LOAD, offsetof(struct figures, mean_ppm), figures_has_load},
    {"worst 5 s", 10, FIGURES_LOAD, offsetof(struct figures, peak_5s_ppm), has_worst},
    {"worst 1 s", 10, FIGURES_LOAD, offsetof(struct figures, peak_1s_ppm), has_room},
    {"attempts", 11, FIGURES_COUNT, offsetof(struct figures, attempts), measure_is_bounded},
    {"done after", 14, FIGURES_TIME, offsetof(struct figures, completed_us), measure_is_bounded},
    {"worst 100 ms", 13, FIGURES_COUNT, offsetof(struct figures, worst_100ms), figures_has_connections},
    {"falls", 7, FIGURES_COUNT, offsetof(struct figures, falls), figures_has_connections},
    {"before", 9, FIGURES_SUCCESS, offsetof(struct figures, before_ppm), figures_has_before},
    {"in fault", 9, FIGURES_SUCCESS, offsetof(struct figures, in_fault_ppm), is_faulty},
    {"after", 9, FIGURES_SUCCESS, offsetof(struct figures, after_ppm), figures_has_after},
    {"success", 9, FIGURES_SUCCESS, offsetof(struct figures, success_ppm), is_healthy},
    {"recovers", RECOVERS, FIGURES_RECOVERY, 0, figures_has_after},
    {"retried", 9, FIGURES_RETRIES, offsetof(struct figures, retried_ppm), has_endpoints},
    {"worst endpoint", 15, FIGURES_RETRIES, offsetof(struct figures, endpoint_ppm), has_endpoints},
    {"mean", 9, FIGURES_LATENCY, offsetof(struct figures, latency_mean_us), figures_has_latency},
    {"p99", 9, FIGURES_LATENCY, offsetof(struct figures, latency_p99_us), figures_has_latency},
    {"p99.9", 10, FIGURES_LATENCY, offsetof(struct figures, latency_p999_us), figures_has_latency},
    {"executed", 10, FIGURES_COUNT, offsetof(struct figures, executed), figures_has_effects},
    {"repeated", 10, FIGURES_COUNT, offsetof(struct figures, repeated), figures_has_effects},
};

const struct figures_column *figures_column(const struct scenario *plan, uint32_t index)
{
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        if (columns[i].known(plan) && index-- == 0) {
            return &columns[i];
        }
    }
    return NULL;
}

static uint64_t figure(const struct figures *figures, size_t offset)
{
    uint64_t value;
    memcpy(&value, (const unsigned char *)figures + offset, sizeof value);
    return value;
}

static uint64_t spread_of(const struct figures *figures, uint32_t count, size_t offset, enum figures_spread spread)
{
    uint64_t sum = 0;
    uint64_t low = UINT64_MAX;
    uint64_t high = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t value = figure(&figures[i], offset);
        sum += value;
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    switch (spread) {
    case FIGURES_MEAN:
        return high == UINT64_MAX ? high : (sum + count / 2) / count;
    case FIGURES_LOWEST:
        return low;
    case FIGURES_HIGHEST:
        return high;
    }
    BECALM_UNREACHABLE();
}

/* Seconds, and how many never. A mean over runs of which some never recovered would be a lie. */
static void recovery_text(const struct figures *figures, uint32_t count, enum figures_spread spread, char *text,
                          size_t size)
{
    uint64_t sum = 0;
    uint32_t never = 0;
    uint32_t unknown = 0;
    uint32_t low = MEASURE_NEVER;
    uint32_t high = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t after = figures[i].recovered_after_s;
        never += after == MEASURE_NEVER;
        unknown += after == MEASURE_TOO_SHORT;
        sum += after >= MEASURE_TOO_SHORT ? 0 : after;
        low = after < low ? after : low;
        high = after > high ? after : high;
    }
    uint32_t one = spread == FIGURES_LOWEST ? low : spread == FIGURES_HIGHEST ? high : (uint32_t)(sum / count);
    if (spread == FIGURES_MEAN && never > 0 && never < count) {
        int wide = snprintf(text, size, "%" PRIu32 "/%" PRIu32 " never", never, count);
        if (wide >= RECOVERS) { /* the title says of how many */
            (void)snprintf(text, size, "%" PRIu32 " never", never);
        }
    } else if (one == MEASURE_TOO_SHORT || (spread == FIGURES_MEAN && unknown > 0)) {
        (void)snprintf(text, size, "-");
    } else if (never == count || one == MEASURE_NEVER) {
        (void)snprintf(text, size, "never");
    } else if (spread == FIGURES_MEAN && count > 1) {
        uint64_t tenths = (sum * 10 + count / 2) / count;
        (void)snprintf(text, size, "%" PRIu64 ".%" PRIu64 " s", tenths / 10, tenths % 10);
    } else {
        (void)snprintf(text, size, "%" PRIu32 " s", one);
    }
}

/* Milliseconds; never, if one of the runs did not get so far. */
static void time_text(const struct figures *figures, uint32_t count, enum figures_spread spread, char *text,
                      size_t size)
{
    char ms[CHART_FIGURE_MAX];
    size_t offset = offsetof(struct figures, completed_us);
    if (spread_of(figures, count, offset, FIGURES_HIGHEST) == MEASURE_NEVER_US) {
        (void)snprintf(text, size, "never");
        return;
    }
    chart_count((spread_of(figures, count, offset, spread) + 500) / 1000, ms, sizeof ms);
    (void)snprintf(text, size, "%s ms", ms);
}

static void latency_text(uint64_t us, char *text, size_t size)
{
    (void)snprintf(text, size, "%" PRIu64 ".%03" PRIu64, us / 1000, us % 1000);
}

void figures_text(const struct figures_column *column, const struct figures *figures, uint32_t count,
                  enum figures_spread spread, char *text, size_t size)
{
    switch (column->kind) {
    case FIGURES_LOAD:
        chart_factor(spread_of(figures, count, column->offset, spread), text, size);
        break;
    case FIGURES_SUCCESS:
        chart_share(spread_of(figures, count, column->offset, spread), text, size);
        break;
    case FIGURES_COUNT:
        chart_count(spread_of(figures, count, column->offset, spread), text, size);
        break;
    case FIGURES_TIME:
        time_text(figures, count, spread, text, size);
        break;
    case FIGURES_RECOVERY:
        recovery_text(figures, count, spread, text, size);
        break;
    case FIGURES_RETRIES:
        chart_share(spread_of(figures, count, column->offset, spread), text, size);
        break;
    case FIGURES_LATENCY:
        latency_text(spread_of(figures, count, column->offset, spread), text, size);
        break;
    case FIGURES_KINDS:
        BECALM_UNREACHABLE();
    }
}

bool figures_is_refusal(enum becalm_reason why)
{
    switch (why) {
    case BECALM_WHY_NONE:
    case BECALM_WHY_OK:
    case BECALM_WHY_BACKOFF:
    case BECALM_WHY_HINT:
    case BECALM_WHY_HEDGE:
    case BECALM_WHY_QUEUED:
    case BECALM_WHY_ATTEMPTS_SPENT:
    case BECALM_WHY_NOT_LISTED:
    case BECALM_WHY_PERMANENT:
    case BECALM_WHY_ANSWER_DELIVERED:
    case BECALM_WHY_CANCELLED:
    case BECALM_WHY_RETRIES_OFF:
        return false;
    case BECALM_WHY_RATE:
    case BECALM_WHY_BUDGET_EMPTY:
    case BECALM_WHY_BREAKER_OPEN:
    case BECALM_WHY_PROBE_FAILED:
    case BECALM_WHY_DEADLINE:
    case BECALM_WHY_NOT_IDEMPOTENT:
    case BECALM_WHY_NOT_REPLAYABLE:
    case BECALM_WHY_THROTTLED:
    case BECALM_WHY_SHED:
    case BECALM_WHY_LIMIT:
    case BECALM_WHY_ANSWERS:
    case BECALM_WHY_STOPPED:
    case BECALM_WHY_NO_HOST:
    case BECALM_WHY_NO_CONNECTION:
        return true;
    }
    BECALM_UNREACHABLE();
}

void figures_reasons(const uint64_t *ended, char *text, size_t size)
{
    size_t at = 0;
    (void)snprintf(text, size, "none");
    for (int why = 0; why < BECALM_REASON_COUNT && at < size; why++) {
        char count[CHART_FIGURE_MAX];
        if (why == BECALM_WHY_OK || ended[why] == 0) {
            continue;
        }
        chart_count(ended[why], count, sizeof count);
        at += (size_t)snprintf(text + at, size - at, "%s%s %s", at == 0 ? "" : ", ",
                               becalm_reason_word((enum becalm_reason)why), count);
    }
}
