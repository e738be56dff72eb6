/* SPDX-License-Identifier: MIT */
#include "page_chart.h"

#include "chart/chart.h"
#include "verdict.h"

#include <inttypes.h>
#include <string.h>

/* Tenths of a pixel. */
#define PANEL_WIDTH  3600u
#define PANEL_HEIGHT 1600u
#define PANEL_BINS   310u
#define BAR_HEIGHT   120u
#define BAR_PITCH    200u
#define BAR_NAME     900u /* the column of names */
#define BAR_LENGTH   1950u
#define NAME_SHOWN   14u /* of a longer name the end is shown, because that is where names differ */

static const struct svg_box curves = {.x = 480, .y = 180, .width = 3020, .height = 1200};

/* The values of one panel's curve. */
struct view {
    bool known; /* the policy has the part that the chart shows */
    uint64_t most;
    uint64_t least; /* of a budget */
    struct bins bins;
};

/* ---- the texts of each chart ---- */

static const struct about {
    const char *heading; /* before " at SERVICE" where there is one service */
    const char *sentence;
    const char *nothing; /* shown in place of curves that are all 0 */
    const char *missing; /* the text before the names of policies without this part */
    enum plot_unit unit;
    bool of_clients; /* and not of a service */
} abouts[PAGE_CHARTS] = {
    [PAGE_SUCCESS] = {"Success", "The share of the calls that clients began in each second and that succeeded.", "", "",
                      PLOT_SHARE, true},
    [PAGE_LOAD] = {"Load", "Attempts that arrive, relative to the offered load: 1x is one attempt for each call.", "",
                   "", PLOT_FACTOR, false},
    [PAGE_ATTEMPTS] = {"Attempts", "Attempts that arrive in each second.", "", "", PLOT_COUNT, false},
    [PAGE_QUEUE] = {"Queue", "Requests that wait in the service's own queue, and in its gate if there is one.",
                    "No request waited at the end of any second.", "", PLOT_COUNT, false},
    [PAGE_BUDGET] = {"Retry budget", "How full the callers' budgets are, as a mean. An empty budget pays for no retry.",
                     "All budgets were full all the time.", "Without a budget: ", PLOT_SHARE, false},
    [PAGE_BREAKER] = {"Breaker",
                      "The share of the callers whose breaker is open or half-open, and so holds calls "
                      "back.",
                      "None opened.", "Without a breaker: ", PLOT_SHARE, false},
    [PAGE_AMPLIFICATION] = {"Amplification", "", "", "", PLOT_FACTOR, true},
};

static const struct becalm_policy *policy_of(const struct page_panel *panel)
{
    const struct world_options *options = panel->run->options;
    const struct becalm_policy *own = options->policy_to == NULL ? NULL : options->policy_to[panel->service];
    return own == NULL ? options->policy : own;
}

/* Does the policy of a panel have the part that the chart shows? */
static bool has_it(const struct page_panel *panel, enum page_chart chart)
{
    const struct becalm_policy *policy = policy_of(panel);
    return chart == PAGE_BUDGET    ? policy->budget.kind != BECALM_BUDGET_NONE
           : chart == PAGE_BREAKER ? policy->breaker.enabled
                                   : true;
}

/* A curve of means; but the most and the least are those of a second, as in every other figure. */
static void view_mean(struct view *view, const uint64_t *by_second, uint32_t seconds)
{
    bins_mean(&view->bins, by_second, seconds, PANEL_BINS);
    view->most = 0;
    view->least = UINT64_MAX;
    for (uint32_t s = 0; s < seconds; s++) {
        view->most = by_second[s] > view->most ? by_second[s] : view->most;
        view->least = by_second[s] < view->least ? by_second[s] : view->least;
    }
}

static void view_take(const struct page_panels *panels, const struct page_panel *panel, enum page_chart chart,
                      struct view *view)
{
    const struct world_result *result = panel->run->result;
    const struct world_service *service = &result->service[panel->service];
    view->known = has_it(panel, chart);
    switch (chart) {
    case PAGE_SUCCESS:
        view->most = bins_success(&view->bins, panels->plan, result, PANEL_BINS);
        break;
    case PAGE_LOAD:
        view->most = bins_load(&view->bins, result, panel->run->measure, panel->service, PANEL_BINS);
        break;
    case PAGE_ATTEMPTS:
        view_mean(view, service->arrivals, result->seconds);
        break;
    case PAGE_QUEUE:
        view_mean(view, service->queue, result->seconds);
        break;
    case PAGE_BUDGET:
        view_mean(view, service->budget_ppm, result->seconds);
        break;
    case PAGE_BREAKER:
        view_mean(view, service->breaker_open_ppm, result->seconds);
        break;
    case PAGE_AMPLIFICATION:
    case PAGE_CHARTS:
        BECALM_UNREACHABLE();
    }
}

/* A few words on a panel; *mark is "yes" or "no" where it is a verdict. */
static void panel_words(const struct page_panels *panels, const struct page_panel *panel, enum page_chart chart,
                        const struct view *view, char *text, size_t size, const char **mark)
{
    char figure[CHART_FIGURE_MAX];
    *mark = NULL;
    switch (chart) {
    case PAGE_SUCCESS:
        *mark = verdict_short(panels->plan, panel->run->measure, text, size) ? "yes" : "no";
        *mark = figures_has_after(panels->plan) ? *mark : NULL;
        return;
    case PAGE_LOAD:
        chart_factor(panel->run->measure->service[panel->service].peak_5s_ppm, figure, sizeof figure);
        (void)snprintf(text, size, "%s in the worst 5 s", figure);
        return;
    case PAGE_ATTEMPTS:
    case PAGE_QUEUE:
        chart_count(view->most, figure, sizeof figure);
        (void)snprintf(text, size, "up to %s", figure);
        return;
    case PAGE_BUDGET:
        chart_share(view->least, figure, sizeof figure);
        (void)snprintf(text, size, "down to %s", figure);
        return;
    case PAGE_BREAKER:
        chart_share(view->most, figure, sizeof figure);
        (void)snprintf(text, size, "up to %s", figure);
        return;
    case PAGE_AMPLIFICATION:
        chart_factor(panel->run->measure->service[figures_focus(panels->plan)].mean_ppm, figure, sizeof figure);
        (void)snprintf(text, size, panels->plan->fault_count > 0 ? "%s at the fault" : "%s in the mean", figure);
        return;
    case PAGE_CHARTS:
        break;
    }
    BECALM_UNREACHABLE();
}

/* ---- a panel ---- */

static void figure_open(FILE *out, const char *label, const char *words, const char *mark)
{
    fputs("<figure>\n<figcaption><strong>", out);
    svg_escape(out, label);
    if (mark == NULL) {
        fprintf(out, "</strong><span>%s</span>", words);
    } else {
        fprintf(out, "</strong><span class=\"%s\">%s %s</span>", mark, mark[0] == 'y' ? "\u2713" : "\u2717", words);
    }
    fputs("</figcaption>\n", out);
}

static void frame_open(FILE *out, const char *heading, const char *label, const char *desc, const char *id,
                       uint32_t height)
{
    char title[256];
    (void)snprintf(title, sizeof title, "%s: %.160s", heading, label);
    svg_open(out, &(struct svg_frame){PANEL_WIDTH, height, id, title, desc, false});
}

static void put_panel(FILE *out, const struct page_panels *panels, uint32_t index, enum page_chart chart,
                      const struct plot *plot)
{
    const struct page_panel *panel = &panels->panel[index];
    struct view view;
    char words[96];
    char id[32];
    const char *mark;
    view_take(panels, panel, chart, &view);
    if (!view.known) {
        return;
    }
    panel_words(panels, panel, chart, &view, words, sizeof words, &mark);
    (void)snprintf(id, sizeof id, "c%d-%" PRIu32, (int)chart, index);
    figure_open(out, chart == PAGE_SUCCESS ? panel->run->policy : panel->label, words, mark);
    frame_open(out, abouts[chart].heading, panel->label, words, id, PANEL_HEIGHT);
    plot_frame(out, plot);
    plot_curve(out, plot, "area", &view.bins, true);
    if (chart == PAGE_LOAD) {
        struct bins offered;
        bins_offered(&offered, panel->run->result, panel->run->measure, panel->service, PANEL_BINS);
        plot_curve(out, plot, "offered", &offered, false);
    }
    plot_curve(out, plot, "real", &view.bins, false);
    svg_close(out);
    fputs("</figure>\n", out);
}

/* ---- amplification: a bar for each service ---- */

static void put_bar(FILE *out, const char *name, const struct measure_service *service, const struct plot_scale *scale,
                    uint32_t y)
{
    struct svg_box bar = {BAR_NAME + 60, y, plot_length(scale, service->peak_1s_ppm, BAR_LENGTH), BAR_HEIGHT};
    size_t length = strlen(name);
    char text[CHART_FIGURE_MAX];
    chart_factor(service->mean_ppm, text, sizeof text);
    svg_text(out, "tick", BAR_NAME, y + 95, SVG_END, length > NAME_SHOWN ? name + length - NAME_SHOWN : name);
    svg_rect(out, "peak", &bar);
    bar.width = service->mean_ppm == MEASURE_NO_MEAN ? 0 : plot_length(scale, service->mean_ppm, BAR_LENGTH);
    svg_rect(out, "bar", &bar);
    svg_text(out, "tick", PANEL_WIDTH - 40, y + 95, SVG_END, text);
}

static void put_bars(FILE *out, const struct page_panels *panels, uint32_t index, const struct plot_scale *scale)
{
    const struct scenario *plan = panels->plan;
    const struct page_panel *panel = &panels->panel[index];
    uint32_t count = plan->service_count < PAGE_PANELS_MAX ? plan->service_count : PAGE_PANELS_MAX;
    char words[96];
    char id[32];
    const char *mark;
    panel_words(panels, panel, PAGE_AMPLIFICATION, NULL, words, sizeof words, &mark);
    (void)snprintf(id, sizeof id, "c%d-%" PRIu32, (int)PAGE_AMPLIFICATION, index);
    figure_open(out, panel->run->policy, words, NULL);
    frame_open(out, "Amplification", panel->run->policy, words, id, BAR_PITCH * count + 60);
    for (uint32_t i = 0; i < count; i++) {
        put_bar(out, plan->services[i].name, &panel->run->measure->service[i], scale, 40 + i * BAR_PITCH);
    }
    uint32_t one = BAR_NAME + 60 + plot_length(scale, CHART_PPM, BAR_LENGTH);
    svg_line(out, "offered", one, 0, one, BAR_PITCH * count + 40);
    svg_close(out);
    fputs("</figure>\n", out);
}

/* ---- sections ---- */

static void put_key(FILE *out, const char *class, const char *word)
{
    bool box = class[0] == 'b' || class[0] == 'p';
    fprintf(out, "<li><svg viewBox=\"0 0 30 12\" aria-hidden=\"true\">");
    if (box) {
        fprintf(out, "<rect class=\"%s\" x=\"1\" y=\"1\" width=\"28\" height=\"10\"/>", class);
    } else {
        fprintf(out, "<line class=\"%s\" x1=\"0\" y1=\"6\" x2=\"30\" y2=\"6\"/>", class);
    }
    fprintf(out, "</svg>%s</li>", word);
}

static void section_open(FILE *out, const struct page_panels *panels, enum page_chart chart)
{
    const struct about *about = &abouts[chart];
    fprintf(out, "<section>\n<h2>%s", about->heading);
    fputs(chart == PAGE_AMPLIFICATION && panels->plan->service_count > 1 ? " along the chain" : "", out);
    if (panels->by_policy && !about->of_clients) {
        fputs(" at ", out);
        svg_escape(out, panels->plan->services[panels->panel[0].service].name);
    }
    bool connected = chart == PAGE_SUCCESS && figures_has_connections(panels->plan);
    fprintf(out, "</h2>\n<p>%s", connected ? "The share of the clients' connections that are open." : about->sentence);
}

/* Panels without a curve are named, not drawn. */
static void put_missing(FILE *out, const struct page_panels *panels, enum page_chart chart)
{
    bool first = true;
    for (uint32_t i = 0; i < panels->count; i++) {
        if (!has_it(&panels->panel[i], chart)) {
            fputs(first ? "<p class=\"dim\">" : ", ", out);
            fputs(first ? abouts[chart].missing : "", out);
            svg_escape(out, panels->panel[i].label);
            first = false;
        }
    }
    fputs(first ? "" : ".</p>\n", out);
}

/* Does a panel's curve show anything? */
static bool is_eventful(const struct view *view, enum page_chart chart)
{
    return chart == PAGE_BUDGET                           ? view->least < CHART_PPM
           : chart == PAGE_QUEUE || chart == PAGE_BREAKER ? view->most > 0
                                                          : true;
}

static void put_grid(FILE *out, const struct page_panels *panels, uint32_t count, enum page_chart chart,
                     const struct plot *plot)
{
    if (chart == PAGE_LOAD) {
        fputs("<ul class=\"key\">", out);
        put_key(out, "real", "arrives");
        put_key(out, "offered", "is offered");
        fputs("</ul>\n", out);
    }
    fputs("<div class=\"panels\">\n", out);
    for (uint32_t i = 0; i < count; i++) {
        put_panel(out, panels, i, chart, plot);
    }
    fputs("</div>\n", out);
}

static void put_curves(FILE *out, const struct page_panels *panels, enum page_chart chart)
{
    uint32_t count = chart == PAGE_SUCCESS && !panels->by_policy ? 1 : panels->count;
    uint64_t most = 0;
    bool known = false;
    bool eventful = false;
    for (uint32_t i = 0; i < count; i++) {
        struct view view;
        view_take(panels, &panels->panel[i], chart, &view);
        most = view.most > most ? view.most : most;
        known |= view.known;
        eventful |= view.known && is_eventful(&view, chart);
    }
    if (!known) {
        return;
    }
    const struct plot plot = {panels->plan, curves, plot_scale(abouts[chart].unit, most)};
    section_open(out, panels, chart);
    if (eventful) {
        fputs(plot.scale.doublings ? " Each step of the scale is a doubling or more.</p>\n" : "</p>\n", out);
        put_grid(out, panels, count, chart, &plot);
    } else {
        fprintf(out, "</p>\n<p><strong>%s</strong></p>\n", abouts[chart].nothing);
    }
    put_missing(out, panels, chart);
    fputs("</section>\n", out);
}

static void put_amplification(FILE *out, const struct page_panels *panels)
{
    const struct scenario *plan = panels->plan;
    uint32_t count = panels->by_policy ? panels->count : 1;
    uint64_t most = 0;
    for (uint32_t p = 0; p < count; p++) {
        for (uint32_t i = 0; i < plan->service_count; i++) {
            uint64_t peak = panels->panel[p].run->measure->service[i].peak_1s_ppm;
            most = peak > most ? peak : most;
        }
    }
    const struct plot_scale scale = plot_scale(PLOT_FACTOR, most);
    section_open(out, panels, PAGE_AMPLIFICATION);
    fprintf(out, "Attempts that reach each service, relative to the offered load%s.%s</p>\n<ul class=\"key\">",
            plan->fault_count > 0 ? ", because of calls begun in the fault" : "",
            scale.doublings ? " Bars grow by doublings, from a quarter on." : "");
    put_key(out, "bar", "mean, and its figure");
    put_key(out, "peak", "worst second of the run");
    put_key(out, "offered", "1x: the offered load");
    fputs("</ul>\n<div class=\"panels\">\n", out);
    for (uint32_t i = 0; i < count; i++) {
        put_bars(out, panels, i, &scale);
    }
    fputs("</div>\n</section>\n", out);
}

void page_chart(FILE *out, const struct page_panels *panels, enum page_chart chart)
{
    bool load = figures_has_load(panels->plan);
    bool asks = chart == PAGE_QUEUE || chart == PAGE_BUDGET || chart == PAGE_BREAKER;
    if (asks && panels->panel[0].run->measure->calls == 0) {
        return; /* connections do not wait in a queue, and need no budget */
    }
    if (load ? chart == PAGE_ATTEMPTS : chart == PAGE_LOAD || chart == PAGE_AMPLIFICATION) {
        return;
    }
    if (chart == PAGE_AMPLIFICATION) {
        put_amplification(out, panels);
    } else {
        put_curves(out, panels, chart);
    }
}
