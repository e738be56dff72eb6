/* SPDX-License-Identifier: MIT */
#include "page.h"

#include "chart/chart.h"
#include "page_chart.h"
#include "verdict.h"

#include <inttypes.h>
#include <string.h>

/* ---- the head ---- */

static void put_style(FILE *out)
{
    fputs("<style>\n", out);
    plot_style(out, ":root");
    fputs(
        ":root{color-scheme:light dark}\n"
        "*{box-sizing:border-box}\n"
        "body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,-apple-system,\"Segoe "
        "UI\",Roboto,sans-serif}\n"
        "header,main,footer{max-width:76rem;margin:0 auto;padding:0 1rem}\n"
        "header{padding-top:1.5rem}\n"
        "h1{margin:0;font-size:1.75rem;line-height:1.2}\n"
        "h2{margin:0 0 .25rem;font-size:1.2rem}\n"
        "p{margin:.25rem 0;max-width:46rem}\n"
        ".dim,figcaption span,footer{color:var(--dim)}\n"
        ".verdict{border-left:.25rem solid var(--curve);padding:.25rem 0 .25rem .9rem;margin:1rem 0;"
        "font-size:1.1rem}\n"
        "section{margin:2rem 0}\n"
        ".panels{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,20rem),1fr));gap:1rem;"
        "margin-top:.75rem}\n"
        ".few{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr));gap:0 2rem}\n"
        ".few>.wide{grid-column:1/-1}\n"
        "figure{margin:0;padding:.6rem .6rem .3rem;background:var(--card);border:1px solid var(--rule);"
        "border-radius:.5rem;min-width:0}\n"
        "figcaption{display:flex;flex-wrap:wrap;justify-content:space-between;gap:0 .75rem;font-size:.9rem;"
        "overflow-wrap:anywhere}\n"
        "figcaption .yes{color:var(--good)}\n"
        "figcaption .no{color:var(--bad)}\n"
        "figure svg,.key svg{display:block;width:100%;height:auto}\n"
        ".key{display:flex;flex-wrap:wrap;gap:0 1.25rem;font-size:.9rem;margin:.25rem 0 0;padding:0;list-style:none}\n"
        ".key li{display:flex;align-items:center;gap:.4rem}\n"
        ".key svg{width:30px;height:12px}\n"
        "table{border-collapse:collapse;width:100%;font-size:.9rem;margin-top:.75rem;"
        "font-variant-numeric:tabular-nums}\n"
        "th,td{padding:.3rem .5rem;border-bottom:1px solid var(--rule);text-align:right;vertical-align:top}\n"
        "th:first-child,.words{text-align:left;overflow-wrap:break-word}\n"
        "thead th{color:var(--dim);font-weight:500;vertical-align:bottom}\n"
        "td small{display:block;color:var(--dim)}\n"
        "footer{padding-bottom:2rem;font-size:.85rem}\n"
        "@media(max-width:46rem){\n"
        "thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}\n"
        "table,tbody,tr,th,td{display:block}\n"
        "tr{border:1px solid var(--rule);border-radius:.5rem;background:var(--card);margin:.6rem 0;padding:.3rem "
        ".6rem}\n"
        "th,td{border:0;padding:.15rem 0}\n"
        "td,td.words{display:flex;justify-content:space-between;gap:1rem;text-align:right}\n"
        "td::before{content:attr(data-name);color:var(--dim);text-align:left}\n"
        "}\n"
        "@media print{figure,tr{break-inside:avoid}}\n"
        "</style>\n",
        out);
}

/* The legend of the numbers in the charts, which stand for faults where there is no room for names. */
static void put_faults(FILE *out, const struct scenario *plan)
{
    for (uint32_t i = 0; i < plan->fault_count; i++) {
        const struct scenario_fault *fault = &plan->faults[i];
        fprintf(out, "%s%" PRIu32 " ", i == 0 ? " Faults: " : ", ", i + 1);
        svg_escape(out, fault->name);
        fprintf(out, " at %" PRIu64 ".%" PRIu64 " s", fault->at / BECALM_S, fault->at % BECALM_S / (100 * BECALM_MS));
    }
    fputs(".", out);
}

static void put_head(FILE *out, const struct page *page)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
          "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n"
          "<title>",
          out);
    svg_escape(out, page->plan->name);
    fputs(" - becalm sim</title>\n", out);
    put_style(out);
    fputs("</head>\n<body>\n<header>\n<h1>", out);
    svg_escape(out, page->plan->name);
    fputs("</h1>\n", out);
    if (page->plan->about != NULL) {
        fputs("<p>", out);
        svg_escape(out, page->plan->about);
        fputs("</p>\n", out);
    }
    fprintf(out, "<p class=\"dim\">%" PRIu64 " s of virtual time, seed %" PRIu64, page->plan->length / BECALM_S,
            page->table->first_seed);
    if (page->table->seeds > 1) {
        fprintf(out, " in words and charts, seeds %" PRIu64 " to %" PRIu64 " in the first table",
                page->table->first_seed, page->table->first_seed + page->table->seeds - 1);
    }
    for (const char *const *set = page->table->set; *set != NULL; set++) {
        fputs(set == page->table->set ? "; with --set " : ", --set ", out);
        svg_escape(out, *set);
    }
    fputs("</p>\n", out);
    char fault[FIGURES_FAULT_MAX];
    if (figures_fault_text(page->plan, fault, sizeof fault)) {
        fputs("<p class=\"dim\">", out);
        svg_escape(out, fault);
        put_faults(out, page->plan);
        fputs("</p>\n", out);
    }
    fputs("<p class=\"verdict\">", out);
    verdict_write(out, page->plan, page->run, page->table->policy_count);
    fputs("</p>\n</header>\n", out);
}

/* ---- tables: on a narrow screen each row becomes a card, and each cell says its column ---- */

static const char *const kind_word[] = {[FIGURES_LOAD] = "load, ",
                                        [FIGURES_COUNT] = "",
                                        [FIGURES_TIME] = "",
                                        [FIGURES_SUCCESS] = "success ",
                                        [FIGURES_RECOVERY] = "",
                                        [FIGURES_RETRIES] = "",
                                        [FIGURES_LATENCY] = "latency in ms, "};

static void column_name(const struct figures_column *column, char *text, size_t size)
{
    bool whole = column->kind == FIGURES_SUCCESS && strcmp(column->title, "success") == 0;
    (void)snprintf(text, size, "%s%s", whole ? "" : kind_word[column->kind], column->title);
}

/* Those beside the figures that all tables have. */
static bool has_latency_cells(const struct scenario *plan)
{
    return !figures_has_connections(plan) && !figures_has_latency(plan);
}

static void put_figures_head(FILE *out, const struct page *page)
{
    const struct figures_column *column;
    fputs("<thead><tr><th scope=\"col\">policy</th>", out);
    for (uint32_t c = 0; (column = figures_column(page->plan, c)) != NULL; c++) {
        char name[64];
        column_name(column, name, sizeof name);
        fprintf(out, "<th scope=\"col\">%s</th>", name);
    }
    if (has_latency_cells(page->plan)) {
        fputs("<th scope=\"col\">latency, median</th><th scope=\"col\">latency, p99</th>", out);
    }
    fputs("</tr></thead>\n", out);
}

static void put_latency(FILE *out, const struct measure *measure)
{
    char text[CHART_FIGURE_MAX];
    chart_latency(measure->latency_p50_us, text, sizeof text);
    fprintf(out, "<td data-name=\"latency, median\">%s</td>", text);
    chart_latency(measure->latency_p99_us, text, sizeof text);
    fprintf(out, "<td data-name=\"latency, p99\">%s</td>", text);
}

static void put_figures_row(FILE *out, const struct page *page, uint32_t policy)
{
    const struct figures *figures = &page->table->figures[(size_t)policy * page->table->seeds];
    const struct figures_column *column;
    fputs("<tr><th scope=\"row\">", out);
    svg_escape(out, page->table->policy[policy]);
    fputs("</th>", out);
    for (uint32_t c = 0; (column = figures_column(page->plan, c)) != NULL; c++) {
        char name[64];
        char text[3][CHART_FIGURE_MAX];
        column_name(column, name, sizeof name);
        for (int spread = FIGURES_MEAN; spread <= FIGURES_HIGHEST; spread++) {
            figures_text(column, figures, page->table->seeds, (enum figures_spread)spread, text[spread],
                         sizeof text[spread]);
        }
        fprintf(out, "<td data-name=\"%s\"><span>%s", name, text[FIGURES_MEAN]);
        if (page->table->seeds > 1) {
            fprintf(out, "<small>%s to %s</small>", text[FIGURES_LOWEST], text[FIGURES_HIGHEST]);
        }
        fputs("</span></td>", out);
    }
    if (has_latency_cells(page->plan)) {
        put_latency(out, page->run[policy].measure);
    }
    fputs("</tr>\n", out);
}

static void put_figures(FILE *out, const struct page *page)
{
    const char *focus = page->plan->services[figures_focus(page->plan)].name;
    fputs("<section class=\"wide\">\n<h2>In figures</h2>\n<p>", out);
    fputs(figures_has_load(page->plan) ? "Load is the number of attempts that reached " : "Attempts are those at ",
          out);
    svg_escape(out, focus);
    fputs(figures_has_load(page->plan) ? ", divided by the number of calls. " : ". ", out);
    fputs(figures_has_connections(page->plan)
              ? "Success is the share of the clients' connections that are open."
              : "Success is the share of the clients' calls that succeeded, by the time of their start. "
                "Latency is that of successful calls.",
          out);
    fputs("</p>\n<table>\n", out);
    put_figures_head(out, page);
    fputs("<tbody>\n", out);
    for (uint32_t i = 0; i < page->table->policy_count; i++) {
        put_figures_row(out, page, i);
    }
    fputs("</tbody>\n</table>\n</section>\n", out);
}

static void put_refusals_row(FILE *out, const struct page_panel *panel, bool gated)
{
    const struct world_service *service = &panel->run->result->service[panel->service];
    char text[CHART_FIGURE_MAX];
    char reasons[FIGURES_REASONS_MAX];
    fputs("<tr><th scope=\"row\">", out);
    svg_escape(out, panel->label);
    uint64_t calls = 0;
    for (int why = 0; why < BECALM_REASON_COUNT; why++) {
        calls += service->ended[why];
    }
    chart_count(calls, text, sizeof text);
    fprintf(out, "</th><td data-name=\"calls\">%s</td>", text);
    chart_count(service->retries, text, sizeof text);
    fprintf(out, "<td data-name=\"retries sent\">%s</td>", text);
    chart_share(panel->run->measure->service[panel->service].retry_ratio_ppm, text, sizeof text);
    fprintf(out, "<td data-name=\"per first attempt\">%s</td>", text);
    figures_reasons(service->ended, reasons, sizeof reasons);
    fprintf(out, "<td class=\"words\" data-name=\"calls without success\"><span>%s", reasons);
    if (gated) {
        figures_reasons(service->gate_ended, reasons, sizeof reasons);
        fprintf(out, "; at its gate: %s", reasons);
    }
    fputs("</span></td></tr>\n", out);
}

static void put_refusals(FILE *out, const struct page_panels *panels)
{
    fputs("<section class=\"wide\">\n<h2>Retries, and why calls ended without success</h2>\n"
          "<p>Of all calls to the service, those of other services included. A call that its gate ends is told of at "
          "the gate "
          "and at its caller. The words are the engine's reasons.</p>\n<table>\n<thead><tr><th scope=\"col\">",
          out);
    fprintf(out,
            "%s</th><th scope=\"col\">calls</th><th scope=\"col\">retries sent</th>"
            "<th scope=\"col\">per first attempt</th><th scope=\"col\" class=\"words\">calls without success, by "
            "reason</th>"
            "</tr></thead>\n<tbody>\n",
            panels->by_policy ? "policy" : "service");
    for (uint32_t i = 0; i < panels->count; i++) {
        put_refusals_row(out, &panels->panel[i], panels->plan->services[panels->panel[i].service].gate);
    }
    fputs("</tbody>\n</table>\n</section>\n", out);
}

/* ---- panels ---- */

/* One run: all its services. Several: the service where the trouble is, of each. */
static void panels_take(const struct page *page, struct page_panels *panels)
{
    const struct scenario *plan = page->plan;
    uint32_t focus = figures_focus(plan);
    panels->by_policy = page->table->policy_count > 1;
    if (panels->by_policy) {
        for (uint32_t i = 0; i < page->table->policy_count && i < PAGE_PANELS_MAX; i++) {
            panels->panel[panels->count++] = (struct page_panel){page->run[i].policy, &page->run[i], focus};
        }
        return;
    }
    for (uint32_t i = 0; i < plan->service_count; i++) {
        if (panels->count + (focus > i) < PAGE_SERVICES_MAX || i == focus) { /* there is always room for the focus */
            panels->panel[panels->count++] = (struct page_panel){plan->services[i].name, &page->run[0], i};
        }
    }
}

void page_write(FILE *out, const struct page *page)
{
    struct page_panels panels = {.plan = page->plan};
    panels_take(page, &panels);
    put_head(out, page);
    fprintf(out, "<main%s>\n", panels.count == 1 ? " class=\"few\"" : "");
    put_figures(out, page);
    for (int chart = 0; chart < PAGE_CHARTS; chart++) {
        page_chart(out, &panels, (enum page_chart)chart);
    }
    put_refusals(out, &panels);
    fputs("</main>\n<footer><p>", out);
    if (!panels.by_policy && panels.count < page->plan->service_count) {
        fprintf(out, "%" PRIu32 " of %" PRIu32 " services are shown. ", panels.count, page->plan->service_count);
    }
    fputs("Drawn by becalm sim in virtual time; a point of a curve is the mean of its seconds. The same seed gives the "
          "same page.</p></footer>\n</body>\n</html>\n",
          out);
}
