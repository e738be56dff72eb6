/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "top_list.h"

#include "cli/json.h"
#include "exec/exec.h"
#include "top/console.h"
#include "top/link.h"

#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEP_MS   20
#define STATE_AT  26u /* columns of a line */
#define RATE_AT   62u /* on a wide screen, else 48 */
#define RATE_NEAR 48u
#define FIGURE    8
#define PPM       1000000u
#define UP_FIGURE 7

/* One gateway. */
struct member {
    struct link_place place;
    struct link *link;
    struct table table;
    char why[LINK_WHY_MAX]; /* why the gateway does not answer; "": it does */
};

/* The figures in a gateway's line. */
struct summary {
    const struct member *member;
    enum trouble_weight weight;
    uint32_t in_trouble;           /* services */
    const struct table_row *worst; /* of them; NULL: none */
    uint64_t requests;             /* a second, in thousandths */
    uint64_t retries;
    uint64_t success; /* ppm, or STATE_NONE */
};

struct list {
    const struct cli_command *command;
    const struct watch *watch;
    struct member *member;
    uint32_t count;
    struct summary *summary;
};

/* ---- the gateways ---- */

static bool member_add(struct list *list, const char *admin, char why[LINK_WHY_MAX])
{
    struct member *member = &list->member[list->count];
    if (list->count == TOP_LIST_MAX) {
        (void)snprintf(why, LINK_WHY_MAX, "more than %u gateways", TOP_LIST_MAX);
        return false;
    }
    if (!link_place_parse(admin, &member->place, why)) {
        return false;
    }
    list->count++;
    return true;
}

/* "name:9900", also behind a scheme, becomes one for each address of the name. */
static bool members_add_all(struct list *list, const char *admin, char why[LINK_WHY_MAX])
{
    char name[256];
    const char *scheme = strstr(admin, "://");
    const char *host = scheme == NULL ? admin : scheme + 3;
    const char *port = strrchr(host, ':');
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (strncmp(admin, "unix:", 5) == 0 || port == NULL ||
        snprintf(name, sizeof name, "%.*s", (int)(port - host), host) >= (int)sizeof name) {
        return member_add(list, admin, why);
    }
    int rc = getaddrinfo(name, port + 1, &hints, &found);
    if (rc != 0) {
        (void)snprintf(why, LINK_WHY_MAX, "%.150s: %s", name, gai_strerror(rc));
        return false;
    }
    bool fine = true;
    for (const struct addrinfo *at = found; fine && at != NULL; at = at->ai_next) {
        char ip[64];
        char whole[160];
        fine = getnameinfo(at->ai_addr, at->ai_addrlen, ip, sizeof ip, NULL, 0, NI_NUMERICHOST) == 0;
        bool six = at->ai_family == AF_INET6;
        (void)snprintf(whole, sizeof whole, "%.*s%s%s%s%s", scheme == NULL ? 0 : (int)(scheme + 3 - admin), admin,
                       six ? "[" : "", ip, six ? "]" : "", port);
        fine = fine && member_add(list, whole, why);
    }
    freeaddrinfo(found);
    return fine;
}

/* ---- their answers ---- */

static void take_answer(struct member *member)
{
    size_t length;
    const char *text = link_text(member->link, &length);
    struct state *state = state_read(text, length);
    member->why[0] = '\0';
    if (state == NULL) {
        (void)snprintf(member->why, sizeof member->why, "this is not the state of a gateway");
        return;
    }
    state->at = exec_now();
    if (!table_add(&member->table, state)) {
        (void)snprintf(member->why, sizeof member->why, "out of memory");
    }
}

/* Asks all gateways at once: one that hangs delays the list only until its own timeout. */
static void ask_all(struct list *list)
{
    uint32_t busy = list->count;
    for (uint32_t i = 0; i < list->count; i++) {
        link_ask(list->member[i].link, "/api/state", NULL);
    }
    bool *ended = calloc(list->count, sizeof *ended);
    while (ended != NULL && busy > 0) {
        for (uint32_t i = 0; i < list->count; i++) {
            struct member *member = &list->member[i];
            enum link_state state = ended[i] ? LINK_IDLE : link_step(member->link);
            if (state == LINK_DONE) {
                take_answer(member);
            } else if (state == LINK_FAILED) {
                (void)snprintf(member->why, sizeof member->why, "%s", link_why(member->link));
                table_break(&member->table);
            }
            if (state == LINK_DONE || state == LINK_FAILED) {
                ended[i] = true;
                busy--;
            }
        }
        for (uint32_t i = 0; i < list->count; i++) {
            if (!ended[i]) {
                link_wait(list->member[i].link, NULL, 0, STEP_MS);
                break;
            }
        }
    }
    free(ended);
}

/* ---- how they are ---- */

static void summarize(struct summary *summary, const struct member *member)
{
    const struct state *state = table_latest(&member->table);
    uint64_t good = 0;
    uint64_t bad = 0;
    *summary = (struct summary){.member = member, .success = STATE_NONE};
    if (member->why[0] != '\0' || state == NULL) {
        summary->weight = TROUBLE_CRITICAL;
        return;
    }
    for (uint32_t i = 0; i < member->table.row_count; i++) {
        const struct table_row *row = &member->table.row[i]; /* the worst comes first */
        bool trouble = row->weight != TROUBLE_FINE;
        summary->worst = trouble && summary->worst == NULL ? row : summary->worst;
        summary->in_trouble += trouble;
        summary->weight = row->weight > summary->weight ? row->weight : summary->weight;
        summary->requests += row->figures.rate[STATE_ARRIVALS];
        summary->retries += row->figures.rate[STATE_RETRIES];
        good += row->figures.rate[STATE_FIRST_ATTEMPT] + row->figures.rate[STATE_AFTER_RETRY];
        bad += row->figures.rate[STATE_FAILED];
    }
    if ((state->draining || state->reload_failed) && summary->weight == TROUBLE_FINE) {
        summary->weight = TROUBLE_WARNING;
    }
    if (good + bad > 0) {
        summary->success = good * PPM / (good + bad);
    }
}

static int worst_first(const void *a, const void *b)
{
    const struct summary *x = a;
    const struct summary *y = b;
    bool x_away = x->member->why[0] != '\0';
    bool y_away = y->member->why[0] != '\0';
    if (x_away != y_away) {
        return x_away ? -1 : 1;
    }
    if (x->weight != y->weight) {
        return x->weight > y->weight ? -1 : 1;
    }
    if (x->in_trouble != y->in_trouble) {
        return x->in_trouble > y->in_trouble ? -1 : 1;
    }
    return x->member < y->member ? -1 : 1; /* as they were typed */
}

static void summarize_all(struct list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        summarize(&list->summary[i], &list->member[i]);
    }
    qsort(list->summary, list->count, sizeof *list->summary, worst_first);
}

static uint32_t away_count(const struct list *list)
{
    uint32_t away = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        away += list->member[i].why[0] != '\0';
    }
    return away;
}

/* ---- on the screen ---- */

static uint32_t figures_at(const struct screen *s)
{
    return s->width < RATE_AT + 4 * FIGURE ? RATE_NEAR : RATE_AT;
}

static void draw_head(const struct list *list, struct screen *s)
{
    char text[SCREEN_FIGURE_MAX];
    uint32_t away = away_count(list);
    uint32_t troubled = 0;
    uint64_t requests = 0;
    uint64_t retries = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        troubled += list->summary[i].member->why[0] == '\0' && list->summary[i].weight != TROUBLE_FINE;
        requests += list->summary[i].requests;
        retries += list->summary[i].retries;
    }
    screen_put(s, SCREEN_STRONG, "becalm top");
    screen_put(s, SCREEN_PLAIN, "  %u gateway%s", list->count, list->count == 1 ? "" : "s");
    screen_put(s, away > 0 ? SCREEN_BAD : SCREEN_PLAIN, "  %u away", away);
    screen_put(s, troubled > 0 ? SCREEN_WARN : SCREEN_PLAIN, "  %u in trouble", troubled);
    screen_put(s, SCREEN_PLAIN, "  %s requests/s", screen_rate(requests, text));
    screen_put(s, SCREEN_PLAIN, "  %s retries/s", screen_rate(retries, text));
    screen_line(s);
    screen_put(s, SCREEN_FAINT, "   GATEWAY");
    screen_to(s, STATE_AT);
    screen_put(s, SCREEN_FAINT, "STATE");
    screen_to(s, figures_at(s));
    screen_field(s, SCREEN_FAINT, -FIGURE, "REQ/S");
    screen_field(s, SCREEN_FAINT, -FIGURE, "RETRY/S");
    screen_field(s, SCREEN_FAINT, -UP_FIGURE, "OK");
    screen_field(s, SCREEN_FAINT, -FIGURE, "UP");
    screen_line(s);
}

static void state_words(const struct summary *summary, char *text, size_t size)
{
    const struct state *state = table_latest(&summary->member->table);
    if (summary->worst != NULL) {
        (void)snprintf(text, size, "%s: %s%s", summary->worst->name, trouble_word(table_worst(summary->worst)),
                       summary->in_trouble > 1 ? ", and more" : "");
    } else {
        (void)snprintf(text, size, "%s",
                       state->reload_failed ? "reload refused"
                       : state->draining    ? "draining"
                                            : "fine");
    }
}

static void draw_one(const struct summary *summary, struct screen *s)
{
    char text[SCREEN_FIGURE_MAX];
    char words[256];
    const struct member *member = summary->member;
    uint32_t figures = figures_at(s);
    screen_put(s, view_mark(summary->weight), "%-3s", view_sign(summary->weight));
    screen_field(s, SCREEN_PLAIN, (int)STATE_AT - 4, member->place.name);
    screen_to(s, STATE_AT);
    if (member->why[0] != '\0') {
        screen_put(s, SCREEN_BAD, "away: %s", member->why);
        screen_line(s);
        return;
    }
    state_words(summary, words, sizeof words);
    screen_field(s, view_mark(summary->weight), (int)(figures - STATE_AT) - 1, words);
    screen_to(s, figures);
    screen_field(s, SCREEN_PLAIN, -FIGURE, screen_rate(summary->requests, text));
    screen_field(s, SCREEN_PLAIN, -FIGURE, screen_rate(summary->retries, text));
    screen_field(s, SCREEN_PLAIN, -UP_FIGURE, screen_share(summary->success, text));
    screen_field(s, SCREEN_PLAIN, -FIGURE, screen_time(table_latest(&member->table)->uptime * PPM, text));
    screen_line(s);
}

static int draw(struct list *list, uint32_t width, uint32_t height, const char *before)
{
    struct screen s = list->watch->look;
    s.width = width;
    s.height = height;
    draw_head(list, &s);
    for (uint32_t i = 0; i < list->count; i++) {
        draw_one(&list->summary[i], &s);
    }
    printf("%s%s", before, s.full ? "" : s.text);
    (void)fflush(stdout);
    free(s.text);
    return s.full ? cli_fail(list->command, "out of memory") : 0;
}

/* ---- as JSON ---- */

static void write_services(struct json *json, const struct table *table)
{
    json_array(json, "inTrouble");
    for (uint32_t i = 0; i < table->row_count; i++) {
        if (table->row[i].weight != TROUBLE_FINE) {
            json_object(json, NULL);
            json_text(json, "name", table->row[i].name);
            json_text(json, "severity", trouble_weight_word(table->row[i].weight));
            json_text(json, "trouble", trouble_word(table_worst(&table->row[i])));
            json_object_end(json);
        }
    }
    json_array_end(json);
}

static void write_one(struct json *json, const struct summary *summary)
{
    const struct member *member = summary->member;
    const struct state *state = table_latest(&member->table);
    json_object(json, NULL);
    json_text(json, "admin", member->place.name);
    if (member->why[0] != '\0') {
        json_text(json, "error", member->why);
        json_object_end(json);
        return;
    }
    json_text(json, "severity", trouble_weight_word(summary->weight));
    json_text(json, "version", state->version);
    json_text(json, "id", state->id);
    json_integer(json, "uptimeSeconds", state->uptime);
    json_boolean(json, "draining", state->draining);
    json_boolean(json, "reloadFailed", state->reload_failed);
    json_integer(json, "services", member->table.row_count);
    write_services(json, &member->table);
    json_number(json, "requestsPerSecond", (double)summary->requests / 1e3, 3);
    json_number(json, "retriesPerSecond", (double)summary->retries / 1e3, 3);
    if (summary->success != STATE_NONE) {
        json_number(json, "success", (double)summary->success / 1e6, 6);
    }
    json_object_end(json);
}

static void write_all(const struct list *list)
{
    struct json json;
    json_begin(&json, stdout);
    json_object(&json, NULL);
    json_array(&json, "gateways");
    for (uint32_t i = 0; i < list->count; i++) {
        write_one(&json, &list->summary[i]);
    }
    json_array_end(&json);
    json_object_end(&json);
    json_end(&json);
}

/* ---- the whole ---- */

static void pause_for(becalm_ns interval)
{
    (void)poll(NULL, 0, (int)(interval / BECALM_MS));
}

static int show_once(struct list *list, bool as_json, uint32_t width)
{
    ask_all(list);
    pause_for(list->watch->interval);
    ask_all(list);
    summarize_all(list);
    int rc = 0;
    if (as_json) {
        write_all(list);
    } else {
        rc = draw(list, width, 0, "");
    }
    return rc != 0 ? rc : away_count(list) > 0;
}

static int show_live(struct list *list)
{
    int rc = 0;
    while (rc == 0) {
        uint32_t columns;
        uint32_t lines;
        ask_all(list);
        summarize_all(list);
        console_size(&columns, &lines);
        rc = draw(list, columns, lines, "\033[H\033[J");
        pause_for(list->watch->interval);
    }
    return rc;
}

static bool list_make(struct list *list, const struct top_list_options *options, char why[LINK_WHY_MAX])
{
    list->member = calloc(TOP_LIST_MAX, sizeof *list->member);
    (void)snprintf(why, LINK_WHY_MAX, "out of memory");
    bool fine = list->member != NULL;
    for (uint32_t i = 0; fine && i < options->count; i++) {
        fine = options->all ? members_add_all(list, options->admin[i], why) : member_add(list, options->admin[i], why);
    }
    list->summary = fine ? calloc(list->count, sizeof *list->summary) : NULL;
    fine = fine && list->summary != NULL;
    for (uint32_t i = 0; fine && i < list->count; i++) {
        list->member[i].link = link_new(&list->member[i].place, list->watch->token_file);
        fine = list->member[i].link != NULL;
    }
    return fine;
}

static void list_free(struct list *list)
{
    for (uint32_t i = 0; list->member != NULL && i < list->count; i++) {
        link_free(list->member[i].link);
        table_free(&list->member[i].table);
    }
    free(list->member);
    free(list->summary);
}

int top_list(const struct cli_command *self, const struct watch *watch, const struct top_list_options *options)
{
    char why[LINK_WHY_MAX];
    struct list list = {.command = self, .watch = watch};
    int rc = 0;
    if (!list_make(&list, options, why)) {
        rc = cli_usage(self, "%s", why);
    } else if (options->once) {
        rc = show_once(&list, options->as_json, watch->look.width);
    } else if (isatty(STDOUT_FILENO) != 1) {
        rc = cli_usage(self, "this is no terminal; use --once");
    } else {
        rc = show_live(&list);
    }
    list_free(&list);
    return rc;
}
