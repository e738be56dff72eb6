/* SPDX-License-Identifier: MIT */
#include "view.h"

#include <stdio.h>

#define PANEL_HEIGHT 17u /* lower screens have the list alone */

/* The columns of a row, and the width from which each is shown: a narrow terminal shows fewer columns instead of cut
 * ones. The name comes first and takes the remaining width, up to a bound; the trend takes the rest. */
struct column {
    const char *title;
    int width;
    uint32_t from;
    const char *(*write)(const struct table_row *, char text[SCREEN_FIGURE_MAX]);
};

static const char *write_requests(const struct table_row *row, char text[SCREEN_FIGURE_MAX])
{
    return screen_rate(row->figures.rate[STATE_ARRIVALS], text);
}

static const char *write_retries(const struct table_row *row, char text[SCREEN_FIGURE_MAX])
{
    return screen_rate(row->figures.rate[STATE_RETRIES], text);
}

static const char *write_first(const struct table_row *row, char text[SCREEN_FIGURE_MAX])
{
    return screen_share(row->figures.success_first, text);
}

static const char *write_success(const struct table_row *row, char text[SCREEN_FIGURE_MAX])
{
    return screen_share(row->figures.success, text);
}

static const char *write_amplification(const struct table_row *row, char text[SCREEN_FIGURE_MAX])
{
    return screen_factor(row->figures.amplification, text);
}

static const char *write_refused(const struct table_row *row, char text[SCREEN_FIGURE_MAX])
{
    return screen_rate(row->figures.refused, text);
}

/* The slowest endpoint's, of those that have calls. */
static const char *write_p99(const struct table_row *row, char text[SCREEN_FIGURE_MAX])
{
    uint64_t worst = STATE_NONE;
    for (uint32_t i = 0; i < row->service->endpoint_count; i++) {
        uint64_t p99 = row->service->endpoint[i].latency.p99;
        worst = worst == STATE_NONE || (p99 != STATE_NONE && p99 > worst) ? p99 : worst;
    }
    return screen_time(worst, text);
}

static const char *write_queue(const struct table_row *row, char text[SCREEN_FIGURE_MAX])
{
    uint64_t waiting = 0;
    for (uint32_t i = 0; i < row->service->endpoint_count; i++) {
        const struct state_gate *gate = &row->service->endpoint[i].gate;
        waiting += gate->shared ? 0 : gate->waiting;
    }
    return screen_count(waiting, text);
}

static const char *write_hosts(const struct table_row *row, char text[SCREEN_FIGURE_MAX])
{
    uint32_t usable = 0;
    for (uint32_t i = 0; i < row->service->host_count; i++) {
        usable += row->service->host[i].usable;
    }
    snprintf(text, SCREEN_FIGURE_MAX, "%u/%u", usable, row->service->host_count);
    return text;
}

static const struct column columns[] = {
    {"REQ/S", -6, 34, write_requests}, {"RETRY/S", -7, 52, write_retries},    {"1ST", -5, 59, write_first},
    {"OK", -5, 42, write_success},     {"AMPL", -5, 67, write_amplification}, {"REFUSED/S", -9, 96, write_refused},
    {"P99", -6, 96, write_p99},        {"QUEUE", -5, 110, write_queue},       {"HOSTS", -5, 110, write_hosts},
};

#define COLUMNS (sizeof columns / sizeof columns[0])

#define SIGN_WIDTH  4u /* "> !!" */
#define STATE_WIDTH 14u
#define TREND_WIDTH 6u /* with the blank before it; narrower ones show nothing */

static uint32_t name_width(const struct screen *s)
{
    uint32_t width = s->width / 5;
    return width < 8 ? 8 : width > 32 ? 32 : width;
}

static void draw_titles(struct screen *s)
{
    screen_to(s, SIGN_WIDTH + 1);
    screen_field(s, SCREEN_STRONG, (int)name_width(s), "SERVICE");
    screen_put(s, SCREEN_PLAIN, " ");
    screen_field(s, SCREEN_STRONG, (int)STATE_WIDTH, "STATE");
    for (size_t i = 0; i < COLUMNS; i++) {
        if (s->width >= columns[i].from) {
            screen_put(s, SCREEN_PLAIN, " ");
            screen_field(s, SCREEN_STRONG, columns[i].width, columns[i].title);
        }
    }
    if (s->live && s->column + TREND_WIDTH <= s->width) { /* otherwise there is one value of it, or no room */
        screen_put(s, SCREEN_STRONG, " TREND");
    }
    screen_line(s);
}

static const char *state_word(const struct table_row *row)
{
    enum trouble worst = table_worst(row);
    if (worst != TROUBLE_COUNT) {
        return trouble_word(worst);
    }
    return row->figures.rate[STATE_ARRIVALS] == 0 ? "idle" : "fine";
}

static void draw_row(struct screen *s, const struct table_row *row, bool chosen)
{
    char text[SCREEN_FIGURE_MAX];
    enum screen_mark mark = row->weight == TROUBLE_FINE ? SCREEN_PLAIN : view_mark(row->weight);
    screen_field(s, SCREEN_PLAIN, 2, chosen ? ">" : "");
    screen_field(s, mark, 3, view_sign(row->weight));
    screen_field(s, chosen ? SCREEN_CHOSEN : SCREEN_PLAIN, (int)name_width(s), row->name);
    screen_put(s, SCREEN_PLAIN, " ");
    screen_field(s, mark, (int)STATE_WIDTH, state_word(row));
    for (size_t i = 0; i < COLUMNS; i++) {
        if (s->width >= columns[i].from) {
            screen_put(s, SCREEN_PLAIN, " ");
            screen_field(s, SCREEN_PLAIN, columns[i].width, columns[i].write(row, text));
        }
    }
    if (s->live && s->column + TREND_WIDTH <= s->width) {
        screen_put(s, SCREEN_PLAIN, " ");
        view_spark(s, row->trend.requests, row->trend.count, TABLE_TREND_MAX);
    }
    screen_line(s);
}

static void draw_panel(struct screen *s, const struct table_row *row)
{
    screen_put(s, SCREEN_FAINT, "--");
    screen_put(s, SCREEN_STRONG, " %s ", row->name);
    while (s->column < s->width && screen_has_room(s)) {
        screen_put(s, SCREEN_FAINT, "-");
    }
    screen_line(s);
    view_facts_draw(row, s);
}

/* So many rows that the chosen one is among them: the cursor stays in the middle of a long list. */
static uint32_t first_shown(const struct view *view, const struct table_row *chosen, uint32_t room)
{
    uint32_t above = 0;
    uint32_t count = 0;
    for (const struct table_row *row = view_next(view, NULL); row != NULL; row = view_next(view, row)) {
        above = row == chosen ? count : above;
        count++;
    }
    if (count <= room || above < room / 2) {
        return 0;
    }
    uint32_t first = above - room / 2;
    return first > count - room ? count - room : first;
}

void view_list_draw(struct view *view, struct screen *s)
{
    const struct table_row *chosen = view_chosen(view);
    bool panel = chosen != NULL && (s->height == 0 || s->height >= PANEL_HEIGHT);
    uint32_t below = panel ? VIEW_FACTS + 1 : 0;
    draw_titles(s);
    uint32_t end = s->height > below ? s->height - below : s->height;
    uint32_t room = end > s->row ? end - s->row : 0;
    s->skip = s->height == 0 ? 0 : first_shown(view, chosen, room);
    for (const struct table_row *row = view_next(view, NULL); row != NULL && (s->height == 0 || s->row < end);
         row = view_next(view, row)) {
        draw_row(s, row, row == chosen && s->live);
    }
    s->skip = 0;
    if (chosen == NULL && table_latest(&view->table) != NULL) {
        screen_put(s, SCREEN_PLAIN, "     no service %s", view->filter[0] == '\0' ? "" : "has this in its name");
        screen_line(s);
    }
    screen_down(s, s->height == 0 ? 0 : end);
    if (panel) {
        draw_panel(s, chosen);
    }
}
