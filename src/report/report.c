/* SPDX-License-Identifier: MIT */
#include "report.h"

#include "bins.h"
#include "chart/chart.h"
#include "sim/reference.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LINE             80u
#define RECOVERIES_SHOWN 8u
#define NAME             14u /* the column of names */
#define CHART            54u /* columns of a chart */
#define CHART_BYTES      (CHART * 3 + 1)
#define LOAD_TOP         (2 * CHART_PPM) /* charts of a load reach at least this high, so that 1x is in the middle */

struct page {
    FILE *out;
    const struct report_style *style;
    const struct scenario *plan;
};

/* ---- text ---- */

static void put_plain(FILE *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        bool c1 = c == 0xc2 && i + 1 < length && (unsigned char)text[i + 1] <= 0x9f;
        putc(c < 0x20 || c == 0x7f || c1 ? '?' : c, out);
        i += c1;
    }
}

void report_plain(FILE *out, const char *text)
{
    put_plain(out, text, strlen(text));
}

/* The part of a name that fits its column: the end of a long name, because that is where names and paths differ. */
static const char *name_tail(const char *name)
{
    size_t length = strlen(name);
    return length > NAME - 1 ? name + length - (NAME - 2) : name;
}

/* A name in its column. */
static void put_name(FILE *out, const char *name)
{
    const char *from = name_tail(name);
    bool cut = from != name;
    fputs(cut ? "~" : "", out);
    report_plain(out, from);
    fprintf(out, "%*s", (int)(NAME - strlen(from) - cut), "");
}

/* Puts words on lines of 80 columns; `column` is where the cursor is and `indent` where a new line begins. */
static void put_wrapped(FILE *out, const char *text, size_t column, size_t indent)
{
    bool first = true;
    while (*(text += strspn(text, " \t\n")) != '\0') {
        size_t length = strcspn(text, " \t\n");
        if (!first && column + 1 + length > LINE) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
            first = true;
        }
        fputs(first ? "" : " ", out);
        put_plain(out, text, length);
        column += length + !first;
        first = false;
        text += length;
    }
    putc('\n', out);
}

void report_term(FILE *out, const struct report_style *style, const char *word, const char *sentence)
{
    size_t length = strlen(word);
    fprintf(out, "  %s%s%s", style->bold, word, style->reset);
    fprintf(out, "%*s", length < 17 ? (int)(18 - length) : 1, "");
    put_wrapped(out, sentence, length < 17 ? 20 : length + 3, 20);
}

static void put_heading(const struct page *page, const char *text)
{
    fprintf(page->out, "%s%s%s", page->style->bold, text, page->style->reset);
}

/* ---- the planned faults ---- */

static uint32_t seconds(const struct scenario *plan)
{
    return (uint32_t)(plan->length / BECALM_S);
}

static bool is_faulty(const struct scenario *plan)
{
    return plan->fault_count > 0;
}

static void put_about(const struct page *page)
{
    const struct scenario *plan = page->plan;
    fputs(page->style->bold, page->out);
    report_plain(page->out, plan->name);
    fputs(page->style->reset, page->out);
    if (plan->about != NULL && plan->about[0] != '\0') {
        fputs(": ", page->out);
        put_wrapped(page->out, plan->about, strlen(plan->name) + 2, 0);
    } else {
        putc('\n', page->out);
    }
}

/* The overrides of this run, in as many lines as needed. */
static void put_set(const struct page *page, const char *const *set)
{
    size_t column = 4;
    if (set[0] == NULL) {
        return;
    }
    fputs("with", page->out);
    for (; *set != NULL; set++) {
        size_t length = strlen(" --set ") + strlen(*set);
        bool wraps = column > 4 && column + length > LINE;
        fputs(wraps ? "\n    " : "", page->out);
        column = wraps ? 4 + length : column + length;
        fputs(" --set ", page->out);
        report_plain(page->out, *set);
    }
    putc('\n', page->out);
}

/* ---- the summary of one run ---- */

static void put_title(const struct page *page, const struct report_run *run)
{
    char calls[CHART_FIGURE_MAX];
    char events[CHART_FIGURE_MAX];
    bool calling = run->measure->calls > 0 || run->measure->connections == 0;
    chart_count(calling ? run->measure->calls : run->measure->connections, calls, sizeof calls);
    chart_count(run->result->events, events, sizeof events);
    put_about(page);
    fputs("policy ", page->out);
    report_plain(page->out, run->policy);
    fprintf(page->out, ", seed %" PRIu64 ": %" PRIu32 " s, %s %s, %s events\n", run->seed, seconds(page->plan), calls,
            calling ? "calls" : "connections", events);
    put_set(page, run->set);
}

static void put_share(const struct page *page, uint64_t ppm)
{
    char text[CHART_FIGURE_MAX];
    chart_share(ppm, text, sizeof text);
    fprintf(page->out, "%14s", text);
}

static void put_success(const struct page *page, const struct measure *measure)
{
    const struct scenario *plan = page->plan;
    putc('\n', page->out);
    put_heading(page, figures_has_connections(plan) ? "Connected     " : "Success       ");
    if (is_faulty(plan)) {
        fprintf(page->out, "%14s%14s%14s", "before", "in the fault", "60 s after");
    }
    fprintf(page->out, "%14s\n%*s", figures_has_connections(plan) ? "all the time" : "all calls", (int)NAME, "");
    if (is_faulty(plan)) {
        put_share(page, measure->success_before_ppm);
        put_share(page, measure->success_in_fault_ppm);
        put_share(page, measure->success_after_ppm);
    }
    put_share(page, measure->success_ppm);
    putc('\n', page->out);
}

/* Which of several faults the figures are of. */
static void put_fault(const struct page *page)
{
    char text[FIGURES_FAULT_MAX];
    if (figures_fault_text(page->plan, text, sizeof text)) {
        put_wrapped(page->out, text, 0, 0);
    }
}

static void put_recovered(const struct page *page, uint32_t after)
{
    const struct report_style *style = page->style;
    const char *well = figures_has_connections(page->plan) ? "connected" : "success";
    if (after == MEASURE_TOO_SHORT) {
        fputs("Recovered? Calls succeed at the end, but the run ends less than ten seconds after the recovery.\n",
              page->out);
    } else if (after == MEASURE_NEVER) {
        fprintf(page->out, "%sNot recovered%s within this run: no ten seconds in a row with 99 %% %s.\n", style->red,
                style->reset, well);
    } else {
        fprintf(page->out, "%sRecovered%s %" PRIu32 " s after the fault's end: 99 %% %s for ten seconds.\n",
                style->green, style->reset, after, well);
    }
}

static void put_recovery(const struct page *page, const struct measure *measure)
{
    if (!is_faulty(page->plan)) {
        return;
    }
    put_fault(page);
    if (!figures_has_after(page->plan)) {
        fputs("The fault lasts until the end of the run.\n", page->out);
        return;
    }
    put_recovered(page, measure->recovered_after_s);
    if (!figures_has_load(page->plan)) {
        return;
    }
    if (measure->retries_stop_after_s == MEASURE_NEVER) {
        fputs("Retries did not return to their usual share within this run.\n", page->out);
    } else if (measure->retries_stop_after_s == 0) {
        fputs("No more retries than usual from the fault's end on.\n", page->out);
    } else {
        fprintf(page->out, "No more retries than usual from %" PRIu32 " s after the fault's end on.\n",
                measure->retries_stop_after_s);
    }
}

static void put_latency(const struct page *page, const struct measure *measure)
{
    const uint64_t us[] = {measure->latency_mean_us, measure->latency_p50_us, measure->latency_p99_us,
                           measure->latency_p999_us};
    char text[sizeof us / sizeof *us][CHART_FIGURE_MAX];
    if (measure->latency_mean_us == 0) {
        return;
    }
    for (size_t i = 0; i < sizeof us / sizeof *us; i++) {
        chart_latency(us[i], text[i], sizeof text[i]);
    }
    fprintf(page->out,
            "Calls that succeeded took %s on average;\nhalf took up to %s, 99 %% up to %s, 99.9 %% up to %s.\n",
            text[0], text[1], text[2], text[3]);
}

/* Of clients that make so many calls and no more. */
static void put_completion(const struct page *page, const struct measure *measure)
{
    char ms[CHART_FIGURE_MAX];
    if (!measure_is_bounded(page->plan)) {
        return;
    }
    if (measure->completed_us == MEASURE_NEVER_US) {
        fprintf(page->out, "%sNot all calls have ended%s in this time.\n", page->style->red, page->style->reset);
        return;
    }
    chart_count((measure->completed_us + 500) / 1000, ms, sizeof ms);
    uint32_t focus = figures_focus(page->plan);
    char attempts[CHART_FIGURE_MAX];
    chart_count(measure->service[focus].attempts, attempts, sizeof attempts);
    fprintf(page->out, "All calls had ended after %s ms, with %s attempts at ", ms, attempts);
    report_plain(page->out, page->plan->services[focus].name);
    fputs(".\n", page->out);
}

/* Operations that must be executed once, and how often they were. */
static void put_effects(const struct page *page, const struct measure *measure)
{
    if (!figures_has_effects(page->plan)) {
        return;
    }
    putc('\n', page->out);
    put_heading(page, "Done once?    ");
    fprintf(page->out, "%14s%14s%18s%18s\n", "operations", "executed", "more than once", "most often");
    for (uint32_t i = 0; i < page->plan->service_count; i++) {
        const struct world_effects *effects = &measure->service[i].effects;
        const uint64_t count[] = {effects->operations, effects->executed, effects->repeated, effects->most};
        static const int width[] = {14, 14, 18, 18};
        if (!page->plan->services[i].effect) {
            continue;
        }
        put_name(page->out, page->plan->services[i].name);
        fputs(effects->repeated > 0 ? page->style->red : page->style->green, page->out);
        for (size_t c = 0; c < sizeof count / sizeof *count; c++) {
            char text[CHART_FIGURE_MAX];
            chart_count(count[c], text, sizeof text);
            fprintf(page->out, "%*s", width[c], text);
        }
        fprintf(page->out, "%s\n", page->style->reset);
    }
}

static void put_recovery_row(const struct page *page, const struct scenario_service *service,
                             const struct world_recovery *recovery)
{
    const struct report_style *style = page->style;
    char worst[CHART_FIGURE_MAX];
    char most[CHART_FIGURE_MAX];
    chart_count(recovery->worst_100ms, worst, sizeof worst);
    chart_count(service->accept_max, most, sizeof most);
    put_name(page->out, service->name);
    fprintf(page->out, "%9" PRIu64 ".%" PRIu64 " s%17s%12s   ", recovery->at / BECALM_S,
            recovery->at % BECALM_S / (100 * BECALM_MS), worst, most);
    if (recovery->fell_at == BECALM_NEVER) {
        fprintf(page->out, "%sstayed up%s\n", style->green, style->reset);
    } else {
        becalm_ns after = becalm_ns_since(recovery->fell_at, recovery->at);
        fprintf(page->out, "%sfell over%s after %" PRIu64 ".%" PRIu64 " s\n", style->red, style->reset,
                after / BECALM_S, after % BECALM_S / (100 * BECALM_MS));
    }
}

/* The connects that arrived each time that a service was up again. */
static void put_recoveries(const struct page *page, const struct world_result *result)
{
    if (!figures_has_connections(page->plan)) {
        return;
    }
    putc('\n', page->out);
    put_heading(page, "Recoveries    ");
    fprintf(page->out, "%13s%17s%12s   %s\n", "up at", "in worst 100 ms", "bears", "then");
    for (uint32_t i = 0; i < page->plan->service_count; i++) {
        uint32_t count = result->service[i].recovery_count;
        for (uint32_t r = 0; r < count && r < RECOVERIES_SHOWN; r++) {
            put_recovery_row(page, &page->plan->services[i], &result->service[i].recovery[r]);
        }
        if (count > RECOVERIES_SHOWN) {
            put_name(page->out, page->plan->services[i].name);
            fprintf(page->out, "and %" PRIu32 " more\n", count - RECOVERIES_SHOWN);
        }
    }
}

static void put_ms(FILE *out, becalm_ns time)
{
    fprintf(out, "%" PRIu64 " ms", time / BECALM_MS);
}

static void put_timeout(const struct page *page, const char *policy, const char *service,
                        const struct becalm_policy *own)
{
    report_plain(page->out, policy);
    if (service != NULL) {
        fputs(" towards ", page->out);
        report_plain(page->out, service);
    }
    switch (own->timeout_kind) {
    case BECALM_TIMEOUT_EXACT:
        fputs(" has its own timeout of an attempt, ", page->out);
        put_ms(page->out, own->attempt_timeout);
        break;
    case BECALM_TIMEOUT_LEARNED:
        fputs(" learns the timeout of an attempt", page->out);
        break;
    case BECALM_TIMEOUT_NONE:
        fputs(" has no timeout of an attempt", page->out);
        break;
    }
    if (page->plan->timeout == BECALM_NEVER) {
        fputs("; the scenario has none.\n", page->out);
        return;
    }
    fputs(", instead of the scenario's ", page->out);
    put_ms(page->out, reference_timeout(page->plan));
    fputs(".\n", page->out);
}

static bool same_timeout(const struct becalm_policy *a, const struct becalm_policy *b)
{
    return a->timeout_kind == b->timeout_kind && a->attempt_timeout == b->attempt_timeout;
}

/* A policy with another timeout than the scenario's is not compared in the same world. */
static void put_timeouts(const struct page *page, const char *policy, const struct world_options *options)
{
    const struct becalm_policy usual = {.attempt_timeout = reference_timeout(page->plan)};
    if (!same_timeout(options->policy, &usual)) {
        put_timeout(page, policy, NULL, options->policy);
    }
    for (uint32_t i = 0; options->policy_to != NULL && i < page->plan->service_count; i++) {
        const struct becalm_policy *own = options->policy_to[world_target(page->plan, i, 0)];
        if (own != NULL && !same_timeout(own, options->policy)) {
            put_timeout(page, policy, page->plan->services[i].name, own);
        }
    }
}

/* The mean counts attempts of calls that began in the fault, the worst counts arrivals. So in a short fault the mean
 * can be above the worst. */
static void put_mean_note(const struct page *page, bool above)
{
    if (above) {
        fputs("The mean is above the worst: the mean counts all attempts of calls that began in the fault,\n"
              "whenever they arrive; the worst counts attempts that arrive in that time.\n",
              page->out);
    }
}

static bool is_mean_above(uint64_t mean_ppm, uint64_t worst_ppm)
{
    return mean_ppm != MEASURE_NO_MEAN && mean_ppm > worst_ppm;
}

static void put_load(const struct page *page, const struct measure *measure)
{
    if (!figures_has_load(page->plan)) {
        return;
    }
    bool above = false;
    putc('\n', page->out);
    put_heading(page, "Load          ");
    fprintf(page->out, "%12s%14s%12s%14s%14s\n", "offered", is_faulty(page->plan) ? "mean in fault" : "mean",
            "worst 5 s", "worst second", "longest queue");
    for (uint32_t i = 0; i < page->plan->service_count; i++) {
        const struct measure_service *service = &measure->service[i];
        char text[CHART_FIGURE_MAX];
        put_name(page->out, page->plan->services[i].name);
        chart_rate(service->offered_milli, text, sizeof text);
        fprintf(page->out, "%12s", text);
        chart_factor(service->mean_ppm, text, sizeof text);
        fprintf(page->out, "%14s", text);
        chart_factor(service->peak_5s_ppm, text, sizeof text);
        fprintf(page->out, "%12s", text);
        chart_factor(service->peak_1s_ppm, text, sizeof text);
        fprintf(page->out, "%14s", text);
        chart_count(service->queue_most, text, sizeof text);
        fprintf(page->out, "%14s\n", text);
        above |= is_mean_above(service->mean_ppm, service->peak_1s_ppm);
    }
    put_mean_note(page, above);
}

/* Where there are several clients: how each of them fared, and how alike. */
static void put_clients(const struct page *page, const struct report_run *run)
{
    const struct scenario *plan = page->plan;
    char text[CHART_FIGURE_MAX];
    if (plan->client_count < 2 || run->measure->calls == 0) {
        return;
    }
    putc('\n', page->out);
    put_heading(page, "Clients       ");
    fprintf(page->out, "%12s%14s%12s%14s%14s\n", "calls", is_faulty(plan) ? "ok in fault" : "ok", "retries", "p50, ms",
            "p99, ms");
    for (uint32_t i = 0; i < plan->client_count; i++) {
        const struct world_client *client = &run->result->client[i];
        const struct world_tally *window = measure_client_window(plan, run->result, i);
        put_name(page->out, plan->clients[i].name);
        chart_count(client->calls, text, sizeof text);
        fprintf(page->out, "%12s", text);
        chart_share(window->begun == 0 ? MEASURE_NO_SHARE : window->good * 1000000 / window->begun, text, sizeof text);
        fprintf(page->out, "%14s", text);
        chart_count(client->sent.retries, text, sizeof text);
        fprintf(page->out, "%12s%14.3f%14.3f\n", text, (double)world_latency_us(&client->latency, 500000) / 1e3,
                (double)world_latency_us(&client->latency, 990000) / 1e3);
    }
    if (run->measure->fairness_ppm != MEASURE_NO_SHARE) {
        chart_share(run->measure->fairness_ppm, text, sizeof text);
        fprintf(page->out, "Fairness %s: the share of successes that a fair division gives to the same client.\n",
                text);
    }
}

/* The endpoints of a service have a row each, with their part of the service's figures. */
static void put_endpoints(const struct page *page, const struct scenario_service *service,
                          const struct world_service *counts)
{
    for (uint32_t i = 0; i < service->endpoint_count; i++) {
        char name[NAME + 1];
        char text[CHART_FIGURE_MAX];
        (void)snprintf(name, sizeof name, "  %.*s", (int)NAME - 3, service->endpoints[i].name);
        put_name(page->out, name);
        chart_count(counts->endpoint[i].retries, text, sizeof text);
        fprintf(page->out, "%14s", text);
        chart_share(measure_retry_ratio_ppm(&counts->endpoint[i]), text, sizeof text);
        fprintf(page->out, "%11s\n", text);
    }
}

static void put_refusals(const struct page *page, const struct report_run *run)
{
    putc('\n', page->out);
    put_heading(page, "Retries       ");
    bool calling = run->measure->calls > 0;
    fprintf(page->out, "%14s%11s%s\n", "allowed", "per first", calling ? "   calls without success, by reason" : "");
    for (uint32_t i = 0; i < page->plan->service_count; i++) {
        const struct world_service *service = &run->result->service[i];
        char reasons[FIGURES_REASONS_MAX];
        char text[CHART_FIGURE_MAX];
        put_name(page->out, page->plan->services[i].name);
        chart_count(service->retries, text, sizeof text);
        fprintf(page->out, "%14s", text);
        chart_share(run->measure->service[i].retry_ratio_ppm, text, sizeof text);
        fprintf(page->out, "%11s%s", text, calling ? "   " : "\n");
        if (calling) {
            figures_reasons(service->ended, reasons, sizeof reasons);
            put_wrapped(page->out, reasons, NAME + 28, NAME + 28);
        }
        put_endpoints(page, &page->plan->services[i], service);
        if (calling && page->plan->services[i].gate) {
            put_name(page->out, "  its gate");
            fprintf(page->out, "%28s", "");
            figures_reasons(service->gate_ended, reasons, sizeof reasons);
            put_wrapped(page->out, reasons, NAME + 28, NAME + 28);
        }
    }
}

static bool has_store_fault(const struct scenario *plan)
{
    bool has = false;
    for (uint32_t i = 0; i < plan->fault_count; i++) {
        enum fault_kind kind = plan->faults[i].kind;
        has |= kind == FAULT_STORE || kind == FAULT_KILL_STORE || kind == FAULT_HANG_STORE || kind == FAULT_EMPTY_STORE;
    }
    return has;
}

static void put_shared_row(const struct page *page, const char *name, const struct world_shared *shared)
{
    char instances[CHART_FIGURE_MAX];
    char asked[CHART_FIGURE_MAX];
    char answered[CHART_FIGURE_MAX];
    chart_count(shared->instances, instances, sizeof instances);
    chart_count(shared->asked, asked, sizeof asked);
    chart_count(shared->answered, answered, sizeof answered);
    becalm_ns each = shared->degraded / shared->instances;
    put_name(page->out, name);
    fprintf(page->out, "%14s%12" PRIu64 ".%" PRIu64 " s each%14s%14s\n", instances, each / BECALM_S,
            each % BECALM_S / (100 * BECALM_MS), asked, answered);
}

/* The retries that callers leased from shared budgets, and how long they were without a lease. */
static void put_shared(const struct page *page, const struct world_result *result)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < page->plan->service_count; i++) {
        const struct world_shared *shared = &result->service[i].shared;
        if (shared->instances == 0) {
            continue;
        }
        if (rows++ == 0) {
            putc('\n', page->out);
            put_heading(page, "Shared budget ");
            fprintf(page->out, "%14s%21s%14s%14s\n", "instances", "degraded", "requests", "answered");
        }
        put_shared_row(page, page->plan->services[i].name, shared);
    }
    if (rows == 0 && has_store_fault(page->plan)) {
        fputs("The policy has no shared budget: faults of its store change nothing.\n", page->out);
    }
}

/* ---- charts ---- */

static void put_spark(const struct page *page, const char *name, const struct bins *bins, uint64_t top,
                      const char *top_text)
{
    char spark[CHART_BYTES];
    put_name(page->out, name);
    chart_spark(bins->value, bins->count, top, page->style->utf8, spark, sizeof spark);
    fprintf(page->out, "%s  %sto %s%s\n", spark, page->style->dim, top_text, page->style->reset);
}

static void put_scale(const struct page *page, uint32_t columns)
{
    char end[24];
    int length = snprintf(end, sizeof end, "%" PRIu32 " s", seconds(page->plan));
    int left = (int)columns - length;
    putc('\n', page->out);
    put_heading(page, "By the second ");
    fprintf(page->out, "0%*s%s\n", left > 2 ? left - 1 : 1, "", end);
}

static void put_faults(const struct page *page, const struct bins *bins)
{
    char marks[CHART + 1];
    memset(marks, ' ', bins->count);
    uint32_t end = 0;
    for (uint32_t f = 0; f < page->plan->fault_count; f++) {
        const struct scenario_fault *fault = &page->plan->faults[f];
        for (uint32_t i = 0; i < bins->count; i++) {
            becalm_ns from = (becalm_ns)i * bins->bin * BECALM_S;
            if (from + bins->bin * BECALM_S > fault->at && from < becalm_ns_after(fault->at, fault->length)) {
                marks[i] = '=';
                end = i + 1 > end ? i + 1 : end;
            }
        }
    }
    marks[end] = '\0';
    if (end > 0) {
        put_name(page->out, page->plan->fault_count == 1 ? "fault" : "faults");
        fprintf(page->out, "%s%s%s\n", page->style->red, marks, page->style->reset);
    }
}

/* Answers whose bodies take time. */
static void put_answers(const struct page *page, const struct world_result *result)
{
    for (uint32_t i = 0; i < page->plan->service_count; i++) {
        if (scenario_streams(&page->plan->services[i])) {
            char most[CHART_FIGURE_MAX];
            chart_count(result->service[i].answers_most, most, sizeof most);
            fputs("Answers in progress of ", page->out);
            report_plain(page->out, page->plan->services[i].name);
            fprintf(page->out, ", at once: at most %s.\n", most);
        }
    }
}

static void put_charts(const struct page *page, const struct report_run *run)
{
    const struct scenario *plan = page->plan;
    struct bins bins;
    bins_success(&bins, plan, run->result, CHART);
    put_scale(page, bins.count);
    put_faults(page, &bins);
    put_spark(page, figures_has_connections(plan) ? "connected" : "success", &bins, CHART_PPM, "100 %");
    for (uint32_t i = 0; figures_has_load(plan) && i < plan->service_count; i++) {
        char text[CHART_FIGURE_MAX];
        uint64_t most = bins_load(&bins, run->result, run->measure, i, CHART);
        uint64_t top = most > LOAD_TOP ? most : LOAD_TOP;
        chart_factor(top, text, sizeof text);
        put_spark(page, plan->services[i].name, &bins, top, most > LOAD_TOP ? text : "2x");
    }
    fprintf(page->out, "%sA column is %" PRIu32 " s%s.%s\n", page->style->dim, bins.bin,
            figures_has_load(plan) ? "; below success is the load on each service" : "", page->style->reset);
}

void report_summary(FILE *out, const struct report_style *style, const struct scenario *plan,
                    const struct report_run *run)
{
    const struct page page = {out, style, plan};
    put_title(&page, run);
    put_success(&page, run->measure);
    put_recovery(&page, run->measure);
    put_latency(&page, run->measure);
    put_completion(&page, run->measure);
    put_effects(&page, run->measure);
    put_recoveries(&page, run->result);
    put_load(&page, run->measure);
    put_answers(&page, run->result);
    put_clients(&page, run);
    put_timeouts(&page, run->policy, run->options);
    put_refusals(&page, run);
    put_shared(&page, run->result);
    if (!measure_is_bounded(plan)) { /* else it is over in the first seconds */
        put_charts(&page, run);
    }
}

void report_timeline_title(FILE *out, const struct report_style *style, const struct scenario *plan, const char *policy,
                           becalm_ns from)
{
    const struct page page = {out, style, plan};
    put_about(&page);
    fputs("policy ", out);
    report_plain(out, policy);
    fprintf(out, ": calls that begin from %" PRIu64 ".%03" PRIu64 " s on\n", from / BECALM_S,
            from % BECALM_S / BECALM_MS);
    struct fault_span span;
    if (scenario_fault_span(plan, &span)) {
        becalm_ns length = span.over_at - span.at;
        fprintf(out, "fault from %" PRIu64 ".%03" PRIu64 " s, for %" PRIu64 ".%03" PRIu64 " s\n", span.at / BECALM_S,
                span.at % BECALM_S / BECALM_MS, length / BECALM_S, length % BECALM_S / BECALM_MS);
    }
    putc('\n', out);
}

/* ---- the table of many ---- */

static void put_row(const struct page *page, const struct figures *figures, uint32_t count, enum figures_spread spread)
{
    const struct figures_column *column;
    for (uint32_t c = 0; (column = figures_column(page->plan, c)) != NULL; c++) {
        char text[CHART_FIGURE_MAX];
        figures_text(column, figures, count, spread, text, sizeof text);
        fprintf(page->out, "%*s", column->width, text);
    }
    putc('\n', page->out);
}

static void put_compare_title(const struct page *page, const struct report_table *table)
{
    const struct scenario *plan = page->plan;
    const char *focus = plan->services[figures_focus(plan)].name;
    put_about(page);
    fprintf(page->out, "%" PRIu32 " s, %s ", seconds(plan), figures_has_load(plan) ? "load on" : "attempts at");
    report_plain(page->out, focus);
    if (table->seeds == 1) {
        fprintf(page->out, ", seed %" PRIu64 "\n", table->first_seed);
    } else {
        fprintf(page->out, ", seeds %" PRIu64 " to %" PRIu64 "\n", table->first_seed,
                table->first_seed + table->seeds - 1);
    }
    put_fault(page);
    put_set(page, table->set);
    putc('\n', page->out);
}

/* "  ------- load -------" */
static void put_group(FILE *out, const char *title, int width)
{
    int dashes = width - 4 - (int)strlen(title);
    if (dashes < 2) {
        fprintf(out, "%*s", width, title);
        return;
    }
    fputs("  ", out);
    for (int i = 0; i < dashes; i++) {
        if (i == dashes / 2) {
            fprintf(out, " %s ", title);
        }
        putc('-', out);
    }
}

static void put_compare_head(const struct page *page)
{
    int width[FIGURES_KINDS] = {0};
    const struct figures_column *column;
    for (uint32_t c = 0; (column = figures_column(page->plan, c)) != NULL; c++) {
        width[column->kind] += column->width;
    }
    if (figures_has_load(page->plan)) { /* else the columns speak for themselves */
        fprintf(page->out, "%*s", (int)NAME, "");
        put_group(page->out, "load", width[FIGURES_LOAD]);
        if (is_faulty(page->plan)) { /* else there is one column, and no room for a word above it */
            put_group(page->out, "success", width[FIGURES_SUCCESS]);
        } else if (width[FIGURES_LATENCY] > 0) {
            fprintf(page->out, "%*s", width[FIGURES_SUCCESS], "");
            put_group(page->out, "latency, ms", width[FIGURES_LATENCY]);
        }
        putc('\n', page->out);
    }
    put_heading(page, "policy        ");
    for (uint32_t c = 0; (column = figures_column(page->plan, c)) != NULL; c++) {
        fprintf(page->out, "%*s", column->width, column->title);
    }
    putc('\n', page->out);
}

/* Does the name of another policy look the same? */
static bool is_ambiguous(const struct report_table *table, uint32_t policy)
{
    for (uint32_t i = 0; i < table->policy_count; i++) {
        if (i != policy && strcmp(name_tail(table->policy[i]), name_tail(table->policy[policy])) == 0) {
            return true;
        }
    }
    return false;
}

/* Files of the same name have a number, and a line below the table. */
static void put_policy(const struct page *page, const struct report_table *table, uint32_t policy)
{
    if (!is_ambiguous(table, policy)) {
        put_name(page->out, table->policy[policy]);
        return;
    }
    int number = fprintf(page->out, "%" PRIu32 ":", policy + 1);
    const char *tail = name_tail(table->policy[policy]);
    size_t length = strlen(tail);
    size_t room = NAME - 1 - (size_t)number;
    report_plain(page->out, length > room ? tail + length - room : tail);
    fprintf(page->out, "%*s", (int)(NAME - (size_t)number - (length > room ? room : length)), "");
}

static void put_table_notes(const struct page *page, const struct report_table *table)
{
    bool above = false;
    for (uint32_t p = 0; p < table->policy_count; p++) {
        const struct figures *first = &table->figures[(size_t)p * table->seeds];
        above |= figures_has_load(page->plan) && is_mean_above(first->mean_ppm, first->peak_1s_ppm);
        if (is_ambiguous(table, p)) {
            fprintf(page->out, "%" PRIu32 ": ", p + 1);
            report_plain(page->out, table->policy[p]);
            putc('\n', page->out);
        }
    }
    for (uint32_t p = 0; p < table->policy_count; p++) {
        put_timeouts(page, table->policy[p], table->options[p]);
    }
    put_mean_note(page, above);
}

void report_compare(FILE *out, const struct report_style *style, const struct scenario *plan,
                    const struct report_table *table)
{
    const struct page page = {out, style, plan};
    put_compare_title(&page, table);
    put_compare_head(&page);
    for (uint32_t p = 0; p < table->policy_count; p++) {
        const struct figures *figures = &table->figures[(size_t)p * table->seeds];
        put_policy(&page, table, p);
        put_row(&page, figures, table->seeds, FIGURES_MEAN);
        if (table->seeds > 1) {
            put_name(out, "  lowest");
            put_row(&page, figures, table->seeds, FIGURES_LOWEST);
            put_name(out, "  highest");
            put_row(&page, figures, table->seeds, FIGURES_HIGHEST);
        }
    }
    put_table_notes(&page, table);
}
