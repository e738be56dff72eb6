/* SPDX-License-Identifier: MIT */
#include "plot.h"

#include "chart/chart.h"

#include <inttypes.h>
#include <string.h>

#define STEPS_MAX       5u
#define DOUBLINGS_ABOVE (16 * (uint64_t)CHART_PPM)
#define FLOOR_PPM       (CHART_PPM / 4) /* where a scale of doublings begins */
#define LOG_ONE         1024u           /* a doubling, in the units of log2_of() */
#define TICK_GAP        40u             /* between a tick's text and the axis */
#define TURNS_MAX       60u             /* of a fault that comes and goes, that can be told apart */
#define LETTER          58u             /* of a word above a fault, about */
#define FAULT_NAME_MAX  24u             /* characters of a fault's name in a chart */
#define TEXT_DROP       38u             /* from the middle of a digit to its base line */

/* ---- scales ---- */

/* The smallest of 1, 2, 5, 10, 20, 50 ... that needs at most so many steps. */
static uint64_t round_step(uint64_t most, uint32_t steps, uint64_t least)
{
    static const uint64_t factor[] = {1, 2, 5};
    for (uint64_t ten = least;; ten *= 10) {
        for (size_t i = 0; i < sizeof factor / sizeof *factor; i++) {
            if (ten * factor[i] * steps >= most || ten > UINT64_MAX / 100 / steps) {
                return ten * factor[i];
            }
        }
    }
}

/* The logarithm of a ratio to base 2, by squaring: the same on every machine. `value` is at least `floor`. */
static uint32_t log2_of(uint64_t value, uint64_t floor)
{
    uint32_t whole = 0;
    while (value / 2 >= floor) {
        value /= 2;
        whole++;
    }
    uint64_t mantissa = value * (UINT64_C(1) << 24) / floor; /* from 1 to 2, with 24 bits behind the point */
    uint32_t log = whole * LOG_ONE;
    for (uint32_t bit = LOG_ONE / 2; bit > 0; bit /= 2) {
        mantissa = (mantissa * mantissa) >> 24;
        if (mantissa >= UINT64_C(1) << 25) {
            mantissa >>= 1;
            log += bit;
        }
    }
    return log;
}

static struct plot_scale doublings(uint64_t most)
{
    struct plot_scale scale = {.unit = PLOT_FACTOR, .top = FLOOR_PPM, .doublings = true};
    uint32_t count = 0;
    while (scale.top < most) {
        scale.top *= 2;
        count++;
    }
    scale.step = (count + STEPS_MAX) / (STEPS_MAX + 1);
    return scale;
}

struct plot_scale plot_scale(enum plot_unit unit, uint64_t most)
{
    switch (unit) {
    case PLOT_SHARE:
        return (struct plot_scale){.unit = unit, .top = CHART_PPM, .step = CHART_PPM / 4};
    case PLOT_FACTOR:
        if (most > DOUBLINGS_ABOVE) {
            return doublings(most);
        }
        most = most < 2 * CHART_PPM ? 2 * CHART_PPM : most;
        break;
    case PLOT_COUNT:
        most = most < STEPS_MAX ? STEPS_MAX : most;
        break;
    }
    struct plot_scale scale = {.unit = unit, .step = round_step(most, STEPS_MAX, unit == PLOT_FACTOR ? 100000 : 1)};
    scale.top = (most + scale.step - 1) / scale.step * scale.step;
    return scale;
}

uint32_t plot_length(const struct plot_scale *scale, uint64_t value, uint32_t length)
{
    value = value < scale->top ? value : scale->top;
    if (!scale->doublings) {
        return (uint32_t)(value * length / scale->top);
    }
    if (value <= FLOOR_PPM) {
        return 0;
    }
    return (uint32_t)((uint64_t)log2_of(value, FLOOR_PPM) * length / log2_of(scale->top, FLOOR_PPM));
}

/* 500,000, then 1.5 M: there is no room for more beside an axis. */
static void tick_count(uint64_t value, char *text, size_t size)
{
    uint64_t tenths = value / 100000;
    if (value < 1000000) {
        chart_count(value, text, size);
    } else if (tenths % 10 == 0) {
        (void)snprintf(text, size, "%" PRIu64 " M", tenths / 10);
    } else {
        (void)snprintf(text, size, "%" PRIu64 ".%" PRIu64 " M", tenths / 10, tenths % 10);
    }
}

void plot_tick(const struct plot_scale *scale, uint64_t value, char *text, size_t size)
{
    switch (scale->unit) {
    case PLOT_SHARE:
        (void)snprintf(text, size, "%" PRIu64 " %%", value / (CHART_PPM / 100));
        break;
    case PLOT_FACTOR:
        if (value % CHART_PPM == 0) {
            (void)snprintf(text, size, "%" PRIu64 "x", value / CHART_PPM);
        } else {
            (void)snprintf(text, size, "%" PRIu64 ".%" PRIu64 "x", value / CHART_PPM,
                           value % CHART_PPM / (CHART_PPM / 10));
        }
        break;
    case PLOT_COUNT:
        tick_count(value, text, size);
        break;
    }
}

/* ---- the frame ---- */

static uint32_t at_second(const struct plot *plot, becalm_ns at)
{
    uint64_t ms = becalm_ns_min(at, plot->plan->length) / BECALM_MS;
    return plot->box.x + (uint32_t)(ms * plot->box.width / (plot->plan->length / BECALM_MS));
}

static void put_tick(FILE *out, const struct plot *plot, uint64_t value)
{
    const struct svg_box *box = &plot->box;
    uint32_t y = box->y + box->height - plot_length(&plot->scale, value, box->height);
    char text[CHART_FIGURE_MAX];
    plot_tick(&plot->scale, value, text, sizeof text);
    svg_line(out, "grid", box->x, y, box->x + box->width, y);
    svg_text(out, "tick", box->x - TICK_GAP, y + TEXT_DROP, SVG_END, text);
}

static void put_value_axis(FILE *out, const struct plot *plot)
{
    const struct plot_scale *scale = &plot->scale;
    if (!scale->doublings) {
        for (uint64_t value = 0; value <= scale->top; value += scale->step) {
            put_tick(out, plot, value);
        }
        return;
    }
    for (uint64_t value = CHART_PPM; value <= scale->top; value <<= scale->step) {
        put_tick(out, plot, value);
    }
}

static void put_time_axis(FILE *out, const struct plot *plot)
{
    const struct svg_box *box = &plot->box;
    uint64_t seconds = plot->plan->length / BECALM_S;
    uint64_t step = round_step(seconds, STEPS_MAX, 1);
    uint32_t bottom = box->y + box->height;
    for (uint64_t s = 0; s <= seconds; s += step) {
        char text[CHART_FIGURE_MAX];
        uint32_t x = at_second(plot, s * BECALM_S);
        bool last = s + step > seconds;
        (void)snprintf(text, sizeof text, last ? "%" PRIu64 " s" : "%" PRIu64, s);
        svg_line(out, "axis", x, bottom, x, bottom + 40);
        svg_text(out, "tick", x + (last ? TICK_GAP : 0), bottom + 150, last ? SVG_END : SVG_MIDDLE, text);
    }
    svg_line(out, "axis", box->x, bottom, box->x + box->width, bottom);
}

static void put_span(FILE *out, const struct plot *plot, becalm_ns at, becalm_ns length)
{
    const struct svg_box *box = &plot->box;
    uint32_t from = at_second(plot, at);
    uint32_t to = at_second(plot, becalm_ns_after(at, length));
    const struct svg_box span = {from, box->y, to - from, box->height};
    svg_rect(out, "fault", &span);
    svg_line(out, "fault-edge", from, box->y, from, box->y + box->height);
    svg_line(out, "fault-edge", to, box->y, to, box->y + box->height);
}

/* Where the word above a fault begins, and where the next may: as far right as its end may be, and at the left of the
 * axis at most. */
struct word_place {
    uint32_t from;
    uint32_t to;
};

static struct word_place fault_word_place(const struct plot *plot, const struct scenario_fault *fault, size_t length)
{
    uint32_t from = at_second(plot, fault->at);
    uint32_t to = at_second(plot, becalm_ns_after(fault->at, fault->length));
    uint32_t half = (uint32_t)length * LETTER / 2;
    uint32_t middle = from + (to - from) / 2;
    uint32_t most = plot->box.x + plot->box.width - half;
    middle = middle > most ? most : middle;
    middle = middle < half ? half : middle;
    return (struct word_place){middle - half, middle + half};
}

/* One fault is called so; several have their names, or their numbers where there is no room for a name. A number that
 * would be on another is left out too. */
static void put_fault_words(FILE *out, const struct plot *plot)
{
    uint32_t count = plot->plan->fault_count;
    uint32_t free_from = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct scenario_fault *fault = &plot->plan->faults[i];
        char number[16];
        const char *word = count == 1 ? "fault" : fault->name;
        struct word_place place = fault_word_place(plot, fault, strlen(word));
        if (count > 1 && (place.from < free_from || strlen(word) > FAULT_NAME_MAX)) {
            (void)snprintf(number, sizeof number, "%" PRIu32, i + 1);
            word = number;
            place = fault_word_place(plot, fault, strlen(word));
        }
        if (place.from >= free_from) {
            svg_text(out, "fault-word", place.from + (place.to - place.from) / 2, plot->box.y - 40, SVG_MIDDLE, word);
            free_from = place.to + LETTER;
        }
    }
}

/* Shaded, with lines at both ends and the word above, so that it is seen without colours too. One that comes and goes
 * is shaded where it is there, unless there would be nothing but lines. */
static void put_faults(FILE *out, const struct plot *plot)
{
    for (uint32_t i = 0; i < plot->plan->fault_count; i++) {
        const struct scenario_fault *fault = &plot->plan->faults[i];
        becalm_ns turn = fault->on == 0 ? fault->length : fault->on + fault->off;
        if (fault->on == 0 || fault->length / turn > TURNS_MAX) {
            put_span(out, plot, fault->at, fault->length);
        } else {
            for (becalm_ns past = 0; past < fault->length; past += turn) {
                put_span(out, plot, becalm_ns_after(fault->at, past), becalm_ns_min(fault->on, fault->length - past));
            }
        }
    }
    put_fault_words(out, plot);
}

void plot_frame(FILE *out, const struct plot *plot)
{
    put_faults(out, plot);
    put_value_axis(out, plot);
    put_time_axis(out, plot);
}

void plot_curve(FILE *out, const struct plot *plot, const char *class, const struct bins *bins, bool area)
{
    uint32_t height[BINS_MAX];
    if (bins->count == 0) {
        return;
    }
    for (uint32_t i = 0; i < bins->count; i++) {
        height[i] = plot_length(&plot->scale, bins->value[i], plot->box.height);
    }
    svg_steps(out, class, &plot->box, height, bins->count, area);
}

/* ---- the style sheet ---- */

/* Contrast of words against the ground is at least 4.5 in both. Curves differ by their dashes too. */
void plot_style(FILE *out, const char *scope)
{
    fprintf(out,
            "%s{--ground:#ffffff;--card:#f6f7f9;--ink:#1b2129;--dim:#57616e;--rule:#dde1e6;--good:#0f6b46;"
            "--bad:#b3261e;--curve:#1d5fa8;--wash:#1d5fa826;--fault:#b3261e1f}\n",
            scope);
    fprintf(out,
            "@media(prefers-color-scheme:dark){%s{--ground:#11151a;--card:#1a2027;--ink:#e6e9ed;--dim:#a3adb9;"
            "--rule:#303943;--good:#5fd3a0;--bad:#ff8f85;--curve:#7db7f5;--wash:#7db7f52e;--fault:#ff8f852b}}\n",
            scope);
    fputs("svg{font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,sans-serif}\n"
          "text{fill:var(--ink);font-size:11px}\n"
          ".tick{fill:var(--dim);font-size:10px}\n"
          ".grid{stroke:var(--rule);stroke-width:.7}\n"
          ".axis{stroke:var(--dim);stroke-width:1}\n"
          ".fault{fill:var(--fault)}\n"
          ".fault-edge{stroke:var(--bad);stroke-width:.8;stroke-dasharray:2 2}\n"
          ".fault-word{fill:var(--bad);font-size:10px}\n"
          ".area{fill:var(--wash)}\n"
          ".real,.offered{fill:none;stroke-linejoin:round}\n"
          ".real{stroke:var(--curve);stroke-width:1.4}\n"
          ".offered{stroke:var(--ink);stroke-width:1;stroke-dasharray:4 3}\n"
          ".bar{fill:var(--curve)}\n"
          ".peak{fill:var(--wash);stroke:var(--curve);stroke-width:.8;stroke-dasharray:2 2}\n"
          ".name{font-size:12px;font-weight:600}\n"
          ".good{fill:var(--good)}\n"
          ".bad{fill:var(--bad)}\n",
          out);
}
