/* SPDX-License-Identifier: MIT */
#include "view.h"

#include <string.h>

#define SPARK_COLUMNS 60u

/* ---- troubles and trends ---- */

static void draw_troubles(struct screen *s, const struct table_row *row)
{
    screen_put(s, SCREEN_STRONG, "%s", row->name);
    if (row->troubles == 0) {
        screen_put(s, SCREEN_GOOD, "  no trouble");
    }
    screen_line(s);
    for (uint32_t i = 0; i < TROUBLE_COUNT; i++) {
        if ((row->troubles >> i & 1) != 0) {
            enum trouble_weight weight = trouble_weight((enum trouble)i);
            screen_field(s, view_mark(weight), 3, view_sign(weight));
            screen_field(s, view_mark(weight), 16, trouble_word((enum trouble)i));
            screen_put(s, SCREEN_PLAIN, "%s", trouble_sentence((enum trouble)i));
            screen_line(s);
        }
    }
}

static void draw_trend(struct screen *s, const char *label, uint64_t rate, const uint64_t *value, uint32_t count)
{
    char text[SCREEN_FIGURE_MAX];
    screen_field(s, SCREEN_STRONG, 12, label);
    screen_field(s, SCREEN_PLAIN, -6, screen_rate(rate, text));
    screen_put(s, SCREEN_PLAIN, "/s ");
    view_spark(s, value, count, SPARK_COLUMNS);
    screen_line(s);
}

static void draw_success(struct screen *s, const struct table_figures *figures)
{
    char text[SCREEN_FIGURE_MAX];
    screen_field(s, SCREEN_STRONG, 12, "success");
    screen_put(s, SCREEN_PLAIN, "%s at once", screen_share(figures->success_first, text));
    screen_put(s, SCREEN_PLAIN, ", %s after retries", screen_share(figures->success, text));
    screen_put(s, SCREEN_PLAIN, ", amplification %s", screen_factor(figures->amplification, text));
    screen_line(s);
}

static void put_spoken(struct screen *s, const char *side, const uint64_t rate[STATE_PROTOCOLS])
{
    static const char *const words[STATE_PROTOCOLS] = {"HTTP/1", "HTTP/2", "gRPC"};
    char text[SCREEN_FIGURE_MAX];
    bool any = false;
    screen_put(s, SCREEN_PLAIN, "%s ", side);
    for (uint32_t i = 0; i < STATE_PROTOCOLS; i++) {
        if (rate[i] > 0) {
            screen_put(s, SCREEN_PLAIN, "%s%s %s/s", any ? ", " : "", words[i], screen_rate(rate[i], text));
            any = true;
        }
    }
    screen_put(s, SCREEN_PLAIN, any ? "" : "none");
}

static void draw_spoken(struct screen *s, const struct table_figures *figures)
{
    screen_field(s, SCREEN_STRONG, 12, "spoken");
    put_spoken(s, "clients", &figures->rate[STATE_CLIENTS]);
    put_spoken(s, "; hosts", &figures->rate[STATE_HOSTS]);
    screen_line(s);
}

/* ---- endpoints ---- */

struct column {
    const char *title;
    int width;
};

static const struct column endpoint_columns[] = {
    {"ENDPOINT", 14}, {"BREAKER", 11}, {"REQ/S", -6}, {"RETRY/S", -7}, {"1ST", -5},
    {"OK", -5},       {"AMPL", -5},    {"P50", -6},   {"P99", -6},     {"BUDGET", -6},
};

/* A column that does not fit is left out, in the titles as in the rows. */
static void draw_field(struct screen *s, enum screen_mark mark, const struct column *column, const char *text)
{
    uint32_t width = (uint32_t)(column->width < 0 ? -column->width : column->width);
    if (s->column + width <= s->width) {
        screen_field(s, mark, column->width, text);
        screen_put(s, SCREEN_PLAIN, " ");
    }
}

static void draw_titles(struct screen *s, const struct column *column, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        draw_field(s, SCREEN_STRONG, &column[i], column[i].title);
    }
    screen_line(s);
}

static void draw_cell(struct screen *s, const struct column *column, const char *text)
{
    draw_field(s, SCREEN_PLAIN, column, text);
}

static void draw_endpoint(struct screen *s, const struct state_endpoint *endpoint, const struct table_figures *figures)
{
    const struct column *column = endpoint_columns;
    char text[SCREEN_FIGURE_MAX];
    draw_cell(s, column++, endpoint->name);
    draw_cell(s, column++, endpoint->breaker.state);
    draw_cell(s, column++, screen_rate(figures->rate[STATE_ARRIVALS], text));
    draw_cell(s, column++, screen_rate(figures->rate[STATE_RETRIES], text));
    draw_cell(s, column++, screen_share(figures->success_first, text));
    draw_cell(s, column++, screen_share(figures->success, text));
    draw_cell(s, column++, screen_factor(figures->amplification, text));
    draw_cell(s, column++, screen_time(endpoint->latency.p50, text));
    draw_cell(s, column++, screen_time(endpoint->latency.p99, text));
    draw_cell(s, column, screen_tokens(endpoint->budget.left, text));
    screen_line(s);
}

static void draw_endpoints(const struct view *view, struct screen *s, const struct table_row *row)
{
    screen_line(s);
    draw_titles(s, endpoint_columns, sizeof endpoint_columns / sizeof endpoint_columns[0]);
    for (uint32_t i = 0; i < row->service->endpoint_count; i++) {
        struct table_figures figures;
        table_endpoint(&view->table, row, &row->service->endpoint[i], &figures);
        draw_endpoint(s, &row->service->endpoint[i], &figures);
    }
}

/* ---- hosts ---- */

static const struct column host_columns[] = {{"HOST", 28}, {"ADDRESS", 22}, {"IN FLIGHT", -9}, {"STATE", 5}};

/* A host that fails is shown as failing, whether it is ejected or still used because too many hosts fail. */
static void draw_host_state(struct screen *s, const struct state_host *host, bool ejections_ignored)
{
    char text[SCREEN_FIGURE_MAX];
    bool failing = host->attempts > 0 && host->failed * 2 >= host->attempts;
    if (failing && (ejections_ignored || !host->ejected)) {
        screen_put(s, SCREEN_BAD, "!! failing: %s of ", screen_share(host->failed * 1000000 / host->attempts, text));
        screen_put(s, SCREEN_BAD, "%s", screen_count(host->attempts, text));
    } else if (host->unhealthy) {
        screen_put(s, SCREEN_WARN, "! fails its health checks%s", host->usable ? ", still used" : "");
    } else if (host->ejected) {
        screen_put(s, SCREEN_WARN, "! ejected for %s", screen_time(host->ejected_for, text));
        screen_put(s, SCREEN_PLAIN, ", times %s", screen_count(host->times_ejected, text));
    } else if (host->address[0] == '\0') {
        screen_put(s, SCREEN_WARN, "! not resolved");
    } else if (host->quiet > 0) {
        screen_put(s, SCREEN_WARN, "! Retry-After, %s left", screen_time(host->quiet, text));
    } else {
        screen_put(s, host->usable ? SCREEN_GOOD : SCREEN_WARN, host->usable ? "usable" : "! not usable");
    }
    screen_line(s);
}

static void draw_hosts(struct screen *s, const struct state_service *service)
{
    char text[SCREEN_FIGURE_MAX];
    screen_line(s);
    draw_titles(s, host_columns, sizeof host_columns / sizeof host_columns[0]);
    for (uint32_t i = 0; i < service->host_count; i++) {
        draw_cell(s, &host_columns[0], service->host[i].name);
        draw_cell(s, &host_columns[1], service->host[i].address);
        draw_cell(s, &host_columns[2], screen_count(service->host[i].in_flight, text));
        draw_host_state(s, &service->host[i], service->ejections_ignored);
    }
}

/* ---- decisions ---- */

static const struct column decision_columns[] = {
    {"TIME (UTC)", 12}, {"REASON", 16}, {"STATUS", -6}, {"TRIES", -5}, {"TOOK", -6}, {"REQUEST", 7},
};

/* 14:03:22.123 out of 2026-01-02T14:03:22.123Z. */
static void draw_clock(struct screen *s, const char *time)
{
    char text[32];
    const char *clock = strchr(time, 'T');
    strcpy(text, clock == NULL ? time : clock + 1);
    text[strcspn(text, "Z")] = '\0';
    draw_cell(s, &decision_columns[0], text);
}

static void draw_decision(struct screen *s, const struct state_decision *decision)
{
    char text[SCREEN_FIGURE_MAX];
    draw_clock(s, decision->time);
    draw_cell(s, &decision_columns[1], decision->reason);
    draw_cell(s, &decision_columns[2], decision->status == 0 ? "-" : screen_count(decision->status, text));
    draw_cell(s, &decision_columns[3], screen_count(decision->attempts, text));
    draw_cell(s, &decision_columns[4], screen_time(decision->took, text));
    screen_put(s, SCREEN_PLAIN, "%s %s", decision->method, decision->target);
    screen_line(s);
    if (decision->change[0] != '\0') {
        screen_put(s, SCREEN_FAINT, "             %s", decision->change);
        screen_line(s);
    }
}

static void draw_decisions(const struct view *view, struct screen *s)
{
    screen_line(s);
    screen_put(s, SCREEN_STRONG, "RECENT DECISIONS, and the change that would decide otherwise");
    screen_line(s);
    if (strcmp(view->decisions_of, view->chosen) != 0) {
        screen_put(s, SCREEN_PLAIN, "asking the gateway...");
        screen_line(s);
        return;
    }
    if (view->decision_count == 0) {
        screen_put(s, SCREEN_PLAIN, "none: no call was retried, refused or failed");
        screen_line(s);
        return;
    }
    draw_titles(s, decision_columns, sizeof decision_columns / sizeof decision_columns[0]);
    for (uint32_t i = 0; i < view->decision_count; i++) {
        draw_decision(s, &view->decision[i]);
    }
}

/* ---- the page ---- */

static void draw_all(const struct view *view, struct screen *s, const struct table_row *row)
{
    draw_troubles(s, row);
    draw_trend(s, "requests", row->figures.rate[STATE_ARRIVALS], row->trend.requests, row->trend.count);
    draw_trend(s, "retries", row->figures.rate[STATE_RETRIES], row->trend.retries, row->trend.count);
    draw_success(s, &row->figures);
    draw_spoken(s, &row->figures);
    view_facts_draw(row, s);
    draw_endpoints(view, s, row);
    draw_hosts(s, row->service);
    draw_decisions(view, s);
}

void view_service_draw(struct view *view, struct screen *s)
{
    const struct table_row *row = view_chosen(view);
    if (row == NULL) {
        screen_put(s, SCREEN_PLAIN, "%s is no longer among the services.", view->chosen);
        screen_line(s);
        return;
    }
    uint32_t room = s->height > s->row ? s->height - s->row : 0;
    uint32_t above = s->lines;
    s->skip = view->scroll;
    draw_all(view, s, row);
    s->skip = 0;
    uint32_t lines = s->lines - above;
    view->scroll_max = lines > room ? lines - room : 0;
    view->scroll = view->scroll < view->scroll_max ? view->scroll : view->scroll_max;
}
