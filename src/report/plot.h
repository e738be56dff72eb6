/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_PLOT_H
#define BECALM_SIM_PLOT_H

/* A chart over the time of a run, as part of an SVG: axes, the faults as shaded spans, curves. A style sheet that
 * knows these classes comes with it. */

#include "bins.h"
#include "svg.h"

enum plot_unit { PLOT_SHARE, PLOT_FACTOR, PLOT_COUNT };

/* From 0 to a round top. Factors that reach far are drawn by doublings, from a quarter on, or else one storm would
 * flatten all that stands beside it. */
struct plot_scale {
    enum plot_unit unit;
    uint64_t top;
    uint64_t step; /* between two ticks; by doublings: how many doublings */
    bool doublings;
};

struct plot_scale plot_scale(enum plot_unit, uint64_t most);

/* A value as a part of `length`, at most all of it. */
uint32_t plot_length(const struct plot_scale *, uint64_t value, uint32_t length);

/* How the axis writes a value. */
void plot_tick(const struct plot_scale *, uint64_t value, char *text, size_t size);

struct plot {
    const struct scenario *plan;
    struct svg_box box; /* of the curves; ticks stand to the left of it and below it, "fault" above */
    struct plot_scale scale;
};

void plot_frame(FILE *, const struct plot *);
void plot_curve(FILE *, const struct plot *, const char *class, const struct bins *, bool area);

/* The CSS of the classes, for light and dark pages, to be put into a style element. Its colours are variables of
 * `scope`. */
void plot_style(FILE *, const char *scope);

#endif
