/* SPDX-License-Identifier: MIT */
#include "verdict.h"

#include "chart/chart.h"
#include "svg.h"

#include <inttypes.h>

struct verdict {
    FILE *out;
    const struct scenario *plan;
    const struct report_run *run;
    uint32_t count;
};

bool verdict_short(const struct scenario *plan, const struct measure *measure, char *text, size_t size)
{
    char share[CHART_FIGURE_MAX];
    if (!figures_has_after(plan)) {
        bool faulty = plan->fault_count > 0;
        chart_share(faulty ? measure->success_in_fault_ppm : measure->success_ppm, share, sizeof share);
        (void)snprintf(text, size, faulty ? "%s in the fault" : "%s of all calls", share);
        return true;
    }
    if (measure->recovered_after_s == MEASURE_NEVER) {
        (void)snprintf(text, size, "not within this run");
        return false;
    }
    if (measure->recovered_after_s == MEASURE_TOO_SHORT) {
        (void)snprintf(text, size, "well so far; the run ends too soon");
        return true;
    }
    (void)snprintf(text, size, "recovers after %" PRIu32 " s", measure->recovered_after_s);
    return true;
}

/* The next run in the order of recovery, behind `last`, with NULL for the first; runs of the same second in the order
 * in which they were named. */
static const struct report_run *next_recovered(const struct verdict *v, const struct report_run *last)
{
    const struct report_run *next = NULL;
    for (const struct report_run *run = v->run; run < v->run + v->count; run++) {
        uint32_t after = run->measure->recovered_after_s;
        bool behind = last == NULL || after > last->measure->recovered_after_s ||
                      (after == last->measure->recovered_after_s && run > last);
        if (behind && (next == NULL || after < next->measure->recovered_after_s)) {
            next = run;
        }
    }
    return next;
}

/* The next that has the same to say; NULL: it was the last. */
static const struct report_run *next_alike(const struct verdict *v, const struct report_run *run)
{
    const struct report_run *next = next_recovered(v, run);
    return next != NULL && next->measure->recovered_after_s == run->measure->recovered_after_s ? next : NULL;
}

/* Writes the policies that do not recover, or whose run is too short to tell; returns the first run after them. */
static const struct report_run *put_alike(const struct verdict *v, const struct report_run *first)
{
    const struct report_run *last = first;
    for (const struct report_run *run = first; run != NULL; run = next_alike(v, run)) {
        const struct report_run *next = next_alike(v, run);
        svg_escape(v->out, run->policy);
        fputs(next == NULL ? "" : next_alike(v, next) == NULL ? " and " : ", ", v->out);
        last = run;
    }
    if (first->measure->recovered_after_s == MEASURE_NEVER) {
        fprintf(v->out, " do%s not recover within this run", last == first ? "es" : "");
    } else {
        fprintf(v->out, " do%s well, but the run ends too soon to say", last == first ? "es" : "");
    }
    return next_recovered(v, last);
}

static void put_recoveries(const struct verdict *v)
{
    const struct report_run *run = next_recovered(v, NULL);
    fputs("After the fault's end ", v->out);
    for (bool first = true; run != NULL; first = false) {
        if (run->measure->recovered_after_s >= MEASURE_TOO_SHORT) {
            fputs(first ? "" : "; ", v->out);
            run = put_alike(v, run);
            continue;
        }
        fputs(first ? "" : ", ", v->out);
        svg_escape(v->out, run->policy);
        fprintf(v->out, "%s in %" PRIu32 " s", first ? " recovers" : "", run->measure->recovered_after_s);
        run = next_recovered(v, run);
    }
    fputs(". ", v->out);
}

/* Policies that survive a fault are compared by their worst load; and a short fault has no mean. */
static bool is_by_peak(const struct verdict *v)
{
    return figures_has_after(v->plan) || v->run->measure->service[figures_focus(v->plan)].mean_ppm == MEASURE_NO_MEAN;
}

/* The load on the service with the fault, as a share of its offered load; or its attempts, if no load is offered. */
static uint64_t reach_of(const struct verdict *v, const struct report_run *run)
{
    const struct measure_service *service = &run->measure->service[figures_focus(v->plan)];
    return !figures_has_load(v->plan) ? service->attempts : is_by_peak(v) ? service->peak_5s_ppm : service->mean_ppm;
}

static void put_amount(const struct verdict *v, const struct report_run *run)
{
    char text[CHART_FIGURE_MAX];
    if (figures_has_load(v->plan)) {
        chart_factor(reach_of(v, run), text, sizeof text);
        fprintf(v->out, "%s the offered load", text);
    } else {
        chart_count(reach_of(v, run), text, sizeof text);
        fprintf(v->out, "%s attempts", text);
    }
    if (v->count > 1) {
        fputs(" with ", v->out);
        svg_escape(v->out, run->policy);
    }
}

static void put_reach(const struct verdict *v)
{
    const struct report_run *least = v->run;
    const struct report_run *most = v->run;
    for (const struct report_run *run = v->run; run < v->run + v->count; run++) {
        least = reach_of(v, run) <= reach_of(v, least) ? run : least;
        most = reach_of(v, run) > reach_of(v, most) ? run : most;
    }
    fputs(!figures_has_load(v->plan) ? "In all "
          : is_by_peak(v)            ? "In its worst five seconds "
          : v->plan->fault_count > 0 ? "In the fault, in the mean, "
                                     : "In the mean ",
          v->out);
    svg_escape(v->out, v->plan->services[figures_focus(v->plan)].name);
    fputs(" gets ", v->out);
    put_amount(v, most);
    if (reach_of(v, most) > reach_of(v, least)) {
        fputs(" and ", v->out);
        put_amount(v, least);
    }
    fputs(".", v->out);
}

static uint64_t success_of(const struct verdict *v, const struct report_run *run)
{
    return v->plan->fault_count > 0 ? run->measure->success_in_fault_ppm : run->measure->success_ppm;
}

static void put_success(const struct verdict *v)
{
    const struct report_run *best = v->run;
    bool differs = false;
    char text[CHART_FIGURE_MAX];
    for (const struct report_run *run = v->run; run < v->run + v->count; run++) {
        differs |= success_of(v, run) != success_of(v, v->run);
        best = success_of(v, run) > success_of(v, best) ? run : best;
    }
    if (success_of(v, best) == MEASURE_NO_SHARE) {
        return;
    }
    fputs(v->plan->fault_count > 0 ? "In the fault " : "In all ", v->out);
    if (success_of(v, best) == 0) {
        fputs(figures_has_connections(v->plan) ? "no client is connected. " : "no call succeeds. ", v->out);
        return;
    }
    chart_share(success_of(v, best), text, sizeof text);
    fprintf(v->out, figures_has_connections(v->plan) ? "%s of the connections are open" : "%s of the calls succeed",
            text);
    if (differs) {
        fputs(" at best, with ", v->out);
        svg_escape(v->out, best->policy);
    }
    fputs(". ", v->out);
}

static uint64_t repeated_of(const struct verdict *v, const struct report_run *run)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < v->plan->service_count; i++) {
        sum += run->measure->service[i].effects.repeated;
    }
    return sum;
}

/* Operations that must not be executed twice. */
static void put_effects(const struct verdict *v)
{
    const struct report_run *least = v->run;
    const struct report_run *most = v->run;
    char text[CHART_FIGURE_MAX];
    for (const struct report_run *run = v->run; run < v->run + v->count; run++) {
        least = repeated_of(v, run) < repeated_of(v, least) ? run : least;
        most = repeated_of(v, run) > repeated_of(v, most) ? run : most;
    }
    chart_count(repeated_of(v, most), text, sizeof text);
    fprintf(v->out, " %s operations that must be executed once were executed more often", text);
    if (repeated_of(v, most) > repeated_of(v, least)) {
        chart_count(repeated_of(v, least), text, sizeof text);
        fputs(" with ", v->out);
        svg_escape(v->out, most->policy);
        fprintf(v->out, ", and %s with ", text);
        svg_escape(v->out, least->policy);
    }
    fputs(".", v->out);
}

/* In a scenario without faults, policies differ in the latency of calls. */
static void put_tail(const struct verdict *v)
{
    const struct report_run *best = v->run;
    const struct report_run *worst = v->run;
    char text[CHART_FIGURE_MAX];
    for (const struct report_run *run = v->run; run < v->run + v->count; run++) {
        best = run->measure->latency_p999_us < best->measure->latency_p999_us ? run : best;
        worst = run->measure->latency_p999_us > worst->measure->latency_p999_us ? run : worst;
    }
    chart_latency(worst->measure->latency_p999_us, text, sizeof text);
    fprintf(v->out, " Of 1,000 calls 999 take up to %s", text);
    if (worst->measure->latency_p999_us > best->measure->latency_p999_us) {
        chart_latency(best->measure->latency_p999_us, text, sizeof text);
        fputs(" with ", v->out);
        svg_escape(v->out, worst->policy);
        fprintf(v->out, ", and up to %s with ", text);
        svg_escape(v->out, best->policy);
    }
    fputs(".", v->out);
}

void verdict_write(FILE *out, const struct scenario *plan, const struct report_run *run, uint32_t count)
{
    const struct verdict v = {out, plan, run, count};
    if (figures_has_after(plan)) {
        put_recoveries(&v);
    }
    put_success(&v);
    put_reach(&v);
    if (figures_has_effects(plan)) {
        put_effects(&v);
    }
    if (figures_has_latency(plan)) {
        put_tail(&v);
    }
}
