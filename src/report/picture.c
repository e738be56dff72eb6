/* SPDX-License-Identifier: MIT */
#include "picture.h"

#include "plot.h"
#include "verdict.h"

#include <string.h>

/* Tenths of a pixel. A panel is a name, a word on the outcome, and the chart below them. */
#define COLUMNS      4u
#define MARGIN       160u
#define HEAD         560u
#define PANEL_WIDTH  2140u
#define PANEL_HEIGHT 1560u
#define PANEL_BINS   170u
#define NAME_SHOWN   26u /* of a longer name the end is shown: that is where paths differ */

static const struct svg_box curves = {.x = 370, .y = 420, .width = 1650, .height = 820};

static void put_panel(FILE *out, const struct scenario *plan, const struct report_run *run)
{
    const struct plot plot = {plan, curves, plot_scale(PLOT_SHARE, 0)};
    struct bins bins;
    char text[64];
    char line[80];
    bool fine = verdict_short(plan, run->measure, text, sizeof text);
    (void)snprintf(line, sizeof line, "%s %s", fine ? "\u2713" : "\u2717", text);
    size_t length = strlen(run->policy);
    svg_text(out, "name", curves.x, 130, SVG_START,
             length > NAME_SHOWN ? run->policy + length - NAME_SHOWN : run->policy);
    svg_text(out, fine ? "good" : "bad", curves.x, 270, SVG_START, line);
    plot_frame(out, &plot);
    bins_success(&bins, plan, run->result, PANEL_BINS);
    plot_curve(out, &plot, "area", &bins, true);
    plot_curve(out, &plot, "real", &bins, false);
}

void picture_write(FILE *out, const struct scenario *plan, const struct report_run *run, uint32_t count)
{
    uint32_t columns = count < COLUMNS ? count : COLUMNS;
    uint32_t rows = (count + COLUMNS - 1) / COLUMNS;
    char title[256];
    (void)snprintf(title, sizeof title, "%.200s: success over time", plan->name);
    const struct svg_frame frame = {
        .width = 2 * MARGIN + (columns < 2 ? 2 : columns) * PANEL_WIDTH,
        .height = HEAD + rows * PANEL_HEIGHT + MARGIN,
        .id = "picture",
        .title = title,
        .desc = plan->about == NULL ? "" : plan->about,
        .standalone = true,
    };
    const struct svg_box ground = {.width = frame.width, .height = frame.height};
    svg_open(out, &frame);
    fputs("<style>\n", out);
    plot_style(out, "svg");
    fputs(".ground{fill:var(--ground)}\n.title{font-size:15px;font-weight:600}\n</style>\n", out);
    svg_rect(out, "ground", &ground);
    svg_text(out, "title", MARGIN + 210, 250, SVG_START, title);
    svg_text(out, "tick", MARGIN + 210, 420, SVG_START, frame.desc);
    for (uint32_t i = 0; i < count; i++) {
        svg_group_open(out, MARGIN + i % COLUMNS * PANEL_WIDTH, HEAD + i / COLUMNS * PANEL_HEIGHT);
        put_panel(out, plan, &run[i]);
        svg_group_close(out);
    }
    svg_close(out);
}
