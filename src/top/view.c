/* SPDX-License-Identifier: MIT */
#include "view.h"

#include "chart/chart.h"

#include <string.h>
#include <strings.h>

void view_free(struct view *view)
{
    table_free(&view->table);
}

/* ---- rows ---- */

static bool passes(const struct view *view, const char *name)
{
    size_t length = strlen(view->filter);
    for (const char *at = name; *at != '\0' || length == 0; at++) {
        if (strncasecmp(at, view->filter, length) == 0) {
            return true;
        }
    }
    return false;
}

const struct table_row *view_next(const struct view *view, const struct table_row *after)
{
    uint32_t at = after == NULL ? 0 : (uint32_t)(after - view->table.row) + 1;
    while (at < view->table.row_count && !passes(view, view->table.row[at].name)) {
        at++;
    }
    return at < view->table.row_count ? &view->table.row[at] : NULL;
}

/* Where the chosen service stands among those that pass the filter; 0 if it does not. Says how many there are. */
static uint32_t chosen_index(const struct view *view, uint32_t *count)
{
    uint32_t chosen = 0;
    *count = 0;
    for (const struct table_row *row = view_next(view, NULL); row != NULL; row = view_next(view, row)) {
        if (strcmp(row->name, view->chosen) == 0) {
            chosen = *count;
        }
        ++*count;
    }
    return chosen;
}

static const struct table_row *row_at(const struct view *view, uint32_t index)
{
    const struct table_row *row = view_next(view, NULL);
    while (row != NULL && index-- > 0) {
        row = view_next(view, row);
    }
    return row;
}

const struct table_row *view_chosen(const struct view *view)
{
    uint32_t count;
    const struct table_row *row = row_at(view, chosen_index(view, &count));
    bool is_gone = view->page != VIEW_LIST && row != NULL && strcmp(row->name, view->chosen) != 0;
    return is_gone ? NULL : row;
}

/* At the top of the list no service is chosen, so that the cursor stays on the worst one. */
static void choose(struct view *view, uint32_t index)
{
    const struct table_row *row = index == 0 ? NULL : row_at(view, index);
    memcpy(view->chosen, row == NULL ? "" : row->name, row == NULL ? 1 : sizeof view->chosen);
}

/* ---- common parts of the pages ---- */

const char *view_sign(enum trouble_weight weight)
{
    switch (weight) {
    case TROUBLE_FINE:
        return "";
    case TROUBLE_WARNING:
        return "!";
    case TROUBLE_CRITICAL:
        return "!!";
    }
    return "";
}

enum screen_mark view_mark(enum trouble_weight weight)
{
    switch (weight) {
    case TROUBLE_FINE:
        return SCREEN_GOOD;
    case TROUBLE_WARNING:
        return SCREEN_WARN;
    case TROUBLE_CRITICAL:
        return SCREEN_BAD;
    }
    return SCREEN_PLAIN;
}

void view_spark(struct screen *s, const uint64_t *value, uint32_t count, uint32_t columns)
{
    char text[TABLE_TREND_MAX * 3 + 1];
    uint64_t top = 1;
    for (uint32_t i = 0; i < count; i++) {
        top = value[i] > top ? value[i] : top;
    }
    uint32_t room = s->width > s->column ? s->width - s->column : 0;
    uint32_t most = columns < room ? columns : room;
    uint32_t shown = count < most ? count : most;
    chart_spark(value + (count - shown), shown, top, s->utf8, text, sizeof text);
    screen_put(s, SCREEN_PLAIN, "%s", text);
}

/* ---- head and foot ---- */

static void draw_gateway(const struct view *view, struct screen *s)
{
    char text[SCREEN_FIGURE_MAX];
    const struct state *state = table_latest(&view->table);
    screen_put(s, SCREEN_STRONG, "becalm top");
    screen_put(s, SCREEN_PLAIN, "  %s", view->admin);
    if (state != NULL) {
        uint64_t requests = 0;
        for (uint32_t i = 0; i < view->table.row_count; i++) {
            requests += view->table.row[i].figures.rate[STATE_ARRIVALS];
        }
        screen_put(s, SCREEN_PLAIN, "  %s %s", state->role, state->version);
        screen_put(s, SCREEN_PLAIN, "  up %s", screen_time(state->uptime * 1000000, text));
        screen_put(s, SCREEN_PLAIN, "  %s requests/s", screen_rate(requests, text));
        screen_put(s, SCREEN_PLAIN, "  %s client%s", screen_count(state->connections, text),
                   state->connections == 1 ? "" : "s");
    }
    screen_line(s);
}

static void draw_away(const struct view *view, struct screen *s)
{
    char text[SCREEN_FIGURE_MAX];
    screen_put(s, SCREEN_BAD, "!! away");
    if (table_latest(&view->table) != NULL) {
        screen_put(s, SCREEN_PLAIN, ", this is %s old", screen_time(view->age / BECALM_S * 1000000, text));
    }
    screen_put(s, SCREEN_PLAIN, ": %s", view->why);
    if (s->live) { /* the next whole second, so that it does not say 0 for one */
        screen_put(s, SCREEN_PLAIN, "; again in %us", (unsigned)(view->again / BECALM_S + 1));
    }
}

static void draw_services_summary(const struct view *view, struct screen *s)
{
    uint32_t troubled = 0;
    enum trouble_weight worst = TROUBLE_FINE;
    for (uint32_t i = 0; i < view->table.row_count; i++) {
        enum trouble_weight weight = view->table.row[i].weight;
        troubled += weight != TROUBLE_FINE;
        worst = weight > worst ? weight : worst;
    }
    if (troubled > 0) {
        screen_put(s, view_mark(worst), "%s %u of %u services in trouble", view_sign(worst), troubled,
                   view->table.row_count);
    } else {
        screen_put(s, SCREEN_GOOD, "%u %s, no trouble", view->table.row_count,
                   view->table.row_count == 1 ? "service" : "services");
    }
}

static void draw_status(const struct view *view, struct screen *s)
{
    char text[SCREEN_FIGURE_MAX];
    const struct state *state = table_latest(&view->table);
    if (view->paused) {
        screen_put(s, SCREEN_WARN, "PAUSED (p goes on)  ");
    }
    if (view->why[0] != '\0') { /* the gateway does not answer, so its last state may be outdated */
        draw_away(view, s);
        screen_line(s);
        return;
    }
    if (state == NULL) {
        screen_put(s, SCREEN_PLAIN, "asking the gateway...");
    } else {
        draw_services_summary(view, s);
    }
    if (table_unrouted(&view->table) > 0) {
        screen_put(s, SCREEN_WARN, "  ! %s/s for no service", screen_rate(table_unrouted(&view->table), text));
    }
    if (state != NULL && state->draining) {
        screen_put(s, SCREEN_WARN, "  ! draining: shuts down");
    }
    if (state != NULL && state->faults > 0) {
        screen_put(s, SCREEN_WARN, "  ! %u fault%s on order", (unsigned)state->faults, state->faults == 1 ? "" : "s");
    }
    if (state != NULL && state->reload_failed) {
        screen_put(s, SCREEN_BAD, "  !! reload failed: ");
        screen_put(s, SCREEN_PLAIN, "%s", state->reload_why);
    }
    screen_line(s);
}

/* "bad_certificate 2, timeout 1" */
static void put_words(struct screen *s, const struct state_words *words)
{
    char text[SCREEN_FIGURE_MAX];
    for (uint32_t i = 0; i < words->words; i++) {
        screen_put(s, SCREEN_PLAIN, "%s%s %s", i == 0 ? "" : ", ", words->word[i], screen_count(words->count[i], text));
    }
}

/* Handshakes with one side, if there were any. */
static void draw_handshakes(struct screen *s, const char *side, const struct state_handshakes *handshakes)
{
    char text[SCREEN_FIGURE_MAX];
    if (handshakes->full + handshakes->resumed + handshakes->failed.words == 0) {
        return;
    }
    screen_put(s, SCREEN_STRONG, "TLS");
    screen_put(s, SCREEN_PLAIN, " %s: %s full", side, screen_count(handshakes->full, text));
    screen_put(s, SCREEN_PLAIN, ", %s resumed", screen_count(handshakes->resumed, text));
    if (handshakes->failed.words > 0) {
        screen_put(s, SCREEN_WARN, ", ! failed: ");
        put_words(s, &handshakes->failed);
    }
    screen_line(s);
}

/* Connections of HTTP/2 that had to be ended, if there were any. */
static void draw_ended(struct screen *s, const char *side, const struct state_words *ended)
{
    if (ended->words > 0) {
        screen_put(s, SCREEN_STRONG, "HTTP/2");
        screen_put(s, SCREEN_PLAIN, " %s ended: ", side);
        put_words(s, ended);
        screen_line(s);
    }
}

#define EXPIRES_SOON (7 * 24 * 3600) /* seconds: as the alert CertificateExpires */

static void draw_certificate(const struct state *state, struct screen *s)
{
    char text[SCREEN_FIGURE_MAX];
    if (state->certificate[0] == '\0' || state->expires_in > EXPIRES_SOON) {
        return;
    }
    if (state->expires_in <= 0) {
        screen_put(s, SCREEN_BAD, "!! certificate has expired: ");
    } else {
        screen_put(s, SCREEN_WARN,
                   "! certificate expires in %s: ", screen_time((uint64_t)state->expires_in * 1000000, text));
    }
    screen_put(s, SCREEN_PLAIN, "%s", state->certificate);
    screen_line(s);
}

static void draw_wire(const struct view *view, struct screen *s)
{
    const struct state *state = table_latest(&view->table);
    if (state == NULL || view->why[0] != '\0') {
        return;
    }
    draw_certificate(state, s);
    draw_handshakes(s, "clients", &state->clients);
    draw_handshakes(s, "hosts", &state->hosts);
    draw_ended(s, "clients", &state->clients_ended);
    draw_ended(s, "hosts", &state->hosts_ended);
}

static void draw_foot(const struct view *view, struct screen *s)
{
    if (view->typing) {
        screen_put(s, SCREEN_STRONG, "filter: %s_", view->filter);
        screen_put(s, SCREEN_FAINT, "   enter keeps it, esc drops it");
    } else if (view->page == VIEW_SERVICE) {
        screen_put(s, SCREEN_FAINT, "q back  j/k scroll  p pause  r ask now  ? help");
    } else if (view->page == VIEW_HELP) {
        screen_put(s, SCREEN_FAINT, "any key goes back");
    } else {
        if (view->filter[0] != '\0') {
            screen_put(s, SCREEN_STRONG, "filter: %s  ", view->filter);
        }
        screen_put(s, SCREEN_FAINT, "q quit  j/k choose  enter details  / filter  p pause  r ask now  ? help");
    }
    screen_line(s);
}

/* ---- help ---- */

static void draw_help(struct screen *s)
{
    static const char *const lines[] = {
        "  up, down, j, k    choose a service, or scroll; PgUp, PgDn by ten; g, G to the ends",
        "  enter, right      details: endpoints, hosts, recent decisions",
        "  q, esc, left      back; q in the list ends becalm top",
        "  /                 only services with this text in their name; esc clears it",
        "  p or space, r     pause and go on; ask now, also while the gateway is away",
        "",
        "  Rates are means of the last 10 s. 1ST: calls that succeed at once. OK: also",
        "  after retries. AMPL: attempts per call. Services are sorted by trouble:",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        screen_put(s, SCREEN_PLAIN, "%s", lines[i]);
        screen_line(s);
    }
    for (uint32_t i = 0; i < TROUBLE_COUNT; i++) {
        enum trouble_weight weight = trouble_weight((enum trouble)i);
        screen_put(s, SCREEN_PLAIN, "  ");
        screen_field(s, view_mark(weight), 3, view_sign(weight));
        screen_field(s, view_mark(weight), 16, trouble_word((enum trouble)i));
        screen_put(s, SCREEN_PLAIN, "%s", trouble_sentence((enum trouble)i));
        screen_line(s);
    }
}

/* ---- the whole ---- */

static void draw_page(struct view *view, struct screen *s)
{
    switch (view->page) {
    case VIEW_LIST:
        view_list_draw(view, s);
        break;
    case VIEW_SERVICE:
        view_service_draw(view, s);
        break;
    case VIEW_HELP:
        draw_help(s);
        break;
    }
}

void view_draw(struct view *view, struct screen *s)
{
    draw_gateway(view, s);
    draw_status(view, s);
    draw_wire(view, s);
    if (!s->live) {
        draw_page(view, s);
        return;
    }
    uint32_t height = s->height;
    s->height = height > 1 ? height - 1 : height; /* the last line is the foot's */
    draw_page(view, s);
    screen_down(s, s->height);
    s->height = height;
    draw_foot(view, s);
}

/* ---- keys ---- */

/* By so many rows or lines, and no further than there are. */
static void move(struct view *view, int64_t by)
{
    bool in_list = view->page == VIEW_LIST;
    uint32_t rows;
    uint32_t chosen = chosen_index(view, &rows);
    int64_t at = (in_list ? chosen : view->scroll) + by;
    int64_t last = in_list ? (int64_t)rows - 1 : view->scroll_max;
    at = at > last ? last : at;
    at = at < 0 ? 0 : at;
    if (in_list) {
        choose(view, (uint32_t)at);
    } else {
        view->scroll = (uint32_t)at;
    }
}

static enum view_wish type_filter(struct view *view, struct key key)
{
    size_t length = strlen(view->filter);
    if (key.kind == KEY_ENTER) {
        view->typing = false;
    } else if (key.kind == KEY_ESCAPE) {
        view->typing = false;
        view->filter[0] = '\0';
    } else if (key.kind == KEY_BACKSPACE && length > 0) {
        view->filter[length - 1] = '\0';
    } else if (key.kind == KEY_CHARACTER && length + 1 < sizeof view->filter) {
        view->filter[length] = key.character;
        view->filter[length + 1] = '\0';
    }
    return VIEW_STAY;
}

static enum view_wish go_back(struct view *view, bool quits)
{
    if (view->page == VIEW_SERVICE) {
        view->page = VIEW_LIST;
        return VIEW_STAY;
    }
    if (!quits) {
        view->filter[0] = '\0';
        return VIEW_STAY;
    }
    return VIEW_QUIT;
}

static enum view_wish open_service(struct view *view)
{
    const struct table_row *row = view->page == VIEW_LIST ? view_chosen(view) : NULL;
    if (row != NULL) {
        memcpy(view->chosen, row->name, sizeof view->chosen);
        view->page = VIEW_SERVICE;
        view->scroll = 0;
        return view->paused ? VIEW_STAY : VIEW_ASK; /* its decisions */
    }
    return VIEW_STAY;
}

static enum view_wish press_character(struct view *view, char character)
{
    switch (character) {
    case 'q':
        return go_back(view, true);
    case 'j':
        move(view, 1);
        return VIEW_STAY;
    case 'k':
        move(view, -1);
        return VIEW_STAY;
    case 'g':
        move(view, INT32_MIN);
        return VIEW_STAY;
    case 'G':
        move(view, INT32_MAX);
        return VIEW_STAY;
    case 'r':
        return VIEW_ASK;
    case 'p':
    case ' ':
        view->paused = !view->paused;
        table_break(&view->table);
        return view->paused ? VIEW_STAY : VIEW_ASK;
    case '/':
        view->page = VIEW_LIST;
        view->typing = true;
        return VIEW_STAY;
    case '?':
        view->below_help = view->page;
        view->page = VIEW_HELP;
        return VIEW_STAY;
    default:
        return VIEW_STAY;
    }
}

enum view_wish view_key(struct view *view, struct key key)
{
    if (key.kind == KEY_NONE) {
        return VIEW_STAY;
    }
    if (view->page == VIEW_HELP) {
        view->page = view->below_help;
        return VIEW_STAY;
    }
    if (view->typing) {
        return type_filter(view, key);
    }
    switch (key.kind) {
    case KEY_CHARACTER:
        return press_character(view, key.character);
    case KEY_ENTER:
    case KEY_RIGHT:
        return open_service(view);
    case KEY_ESCAPE:
    case KEY_LEFT:
    case KEY_BACKSPACE:
        return go_back(view, false);
    case KEY_UP:
        move(view, -1);
        return VIEW_STAY;
    case KEY_DOWN:
        move(view, 1);
        return VIEW_STAY;
    case KEY_PAGE_UP:
        move(view, -10);
        return VIEW_STAY;
    case KEY_PAGE_DOWN:
        move(view, 10);
        return VIEW_STAY;
    case KEY_HOME:
        move(view, INT32_MIN);
        return VIEW_STAY;
    case KEY_END:
        move(view, INT32_MAX);
        return VIEW_STAY;
    case KEY_NONE:
        break;
    }
    return VIEW_STAY;
}
