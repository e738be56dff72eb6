/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "watch.h"

#include "console.h"

#include "run/entropy.h"

#include <becalm/backoff.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ESCAPE_WAIT  (50 * BECALM_MS) /* after which an escape is the key and no sequence, over a slow line too */
#define AWAY_CAP     (30 * BECALM_S)
#define STATE_PATH   "/api/state"
#define DECIDED_PATH "/api/decisions?limit=50&service="

static becalm_ns clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (becalm_ns)now.tv_sec * BECALM_S + (becalm_ns)now.tv_nsec;
}

enum asking { ASKING_NOTHING, ASKING_STATE, ASKING_DECISIONS };

struct live {
    const struct watch *watch;
    struct console terminal;
    struct link *link;
    struct view view;
    struct keys keys;
    becalm_ns escape_at; /* when an escape that stands alone is the key */
    enum asking asking;
    becalm_ns ask_at;
    uint32_t failures; /* in a row */
    becalm_ns waited;  /* before the latest of them */
    bool ends;
    int signal;
};

/* ---- asking ---- */

static void ask(struct live *live, enum asking what)
{
    live->asking = what;
    if (what == ASKING_STATE) {
        link_ask(live->link, STATE_PATH, NULL);
    } else {
        link_ask(live->link, DECIDED_PATH, live->view.chosen);
    }
}

static void rest(struct live *live, becalm_ns now, becalm_ns wait)
{
    live->asking = ASKING_NOTHING;
    live->ask_at = becalm_ns_after(now, wait);
}

/* Backs off, so that viewers do not hammer a gateway that does not answer. */
static void note_away(struct live *live, becalm_ns now, const char *why)
{
    struct becalm_backoff_policy policy;
    struct becalm_wait wait;
    struct becalm_backoff_draw draw = {
        .n = ++live->failures, .previous = live->waited, .hint = BECALM_NEVER, .random = entropy_seed()};
    becalm_backoff_defaults(&policy);
    policy.base = BECALM_S;
    policy.cap = AWAY_CAP;
    policy.jitter = BECALM_JITTER_EQUAL;
    becalm_backoff_wait(&policy, &draw, &wait);
    live->waited = wait.jittered;
    strcpy(live->view.why, why);
    table_break(&live->view.table);
    rest(live, now, wait.wait);
}

static void note_here(struct live *live)
{
    live->failures = 0;
    live->waited = 0;
    live->view.why[0] = '\0';
}

static void take_state(struct live *live, becalm_ns now)
{
    size_t length;
    const char *text = link_text(live->link, &length);
    struct state *state = state_read(text, length);
    if (state == NULL) {
        note_away(live, now, "this is not the state of a gateway");
        return;
    }
    state->at = now;
    note_here(live);
    if (!table_add(&live->view.table, state)) {
        note_away(live, now, "out of memory");
    } else if (live->view.page == VIEW_SERVICE) {
        ask(live, ASKING_DECISIONS);
    } else {
        rest(live, now, live->watch->interval);
    }
}

static void take_decisions(struct live *live, becalm_ns now)
{
    size_t length;
    const char *text = link_text(live->link, &length);
    int count = state_read_decisions(text, length, live->view.decision);
    live->view.decision_count = count < 0 ? 0 : (uint32_t)count;
    memcpy(live->view.decisions_of, live->view.chosen, sizeof live->view.chosen);
    rest(live, now, live->watch->interval);
}

/* Returns true if there is something new to show. */
static bool step_link(struct live *live, becalm_ns now)
{
    if (live->asking == ASKING_NOTHING) {
        if (now < live->ask_at || live->view.paused) {
            return false;
        }
        ask(live, ASKING_STATE);
    }
    switch (link_step(live->link)) {
    case LINK_IDLE:
    case LINK_BUSY:
        return false;
    case LINK_FAILED:
        note_away(live, now, link_why(live->link));
        return true;
    case LINK_DONE:
        if (live->asking == ASKING_STATE) {
            take_state(live, now);
        } else {
            take_decisions(live, now);
        }
        return true;
    }
    return false;
}

/* ---- keys and signals ---- */

static void press(struct live *live, struct key key, becalm_ns now)
{
    switch (view_key(&live->view, key)) {
    case VIEW_STAY:
        break;
    case VIEW_QUIT:
        live->ends = true;
        break;
    case VIEW_ASK:
        live->ask_at = live->asking == ASKING_NOTHING ? now : live->ask_at;
        break;
    }
}

static bool step_keys(struct live *live, becalm_ns now)
{
    char bytes[64];
    fd_set ready;
    struct timeval none = {0, 0};
    FD_ZERO(&ready);
    FD_SET(live->terminal.keys, &ready);
    if (select(live->terminal.keys + 1, &ready, NULL, NULL, &none) != 1) {
        if (keys_pending(&live->keys) && now >= live->escape_at) {
            press(live, keys_end(&live->keys), now);
            return true;
        }
        return false;
    }
    ssize_t count = read(live->terminal.keys, bytes, sizeof bytes);
    live->ends = live->ends || count <= 0; /* the terminal has gone */
    for (ssize_t i = 0; i < count && !live->ends; i++) {
        press(live, keys_byte(&live->keys, bytes[i]), now);
    }
    live->escape_at = becalm_ns_after(now, ESCAPE_WAIT);
    return count > 0;
}

static bool step_signals(struct live *live)
{
    bool any = false;
    int number;
    while ((number = console_signal(&live->terminal)) != 0) {
        any = true;
        if (number == SIGTSTP) {
            console_stop(&live->terminal);
        } else if (number != SIGWINCH && number != SIGCONT) {
            live->ends = true;
            live->signal = number;
        }
    }
    return any;
}

/* ---- the loop ---- */

static void draw(struct live *live, becalm_ns now)
{
    struct screen screen = live->watch->look;
    const struct state *state = table_latest(&live->view.table);
    live->view.again = live->ask_at > now ? live->ask_at - now : 0;
    live->view.age = state == NULL ? 0 : becalm_ns_since(now, state->at);
    console_size(&screen.width, &screen.height);
    screen.live = true;
    view_draw(&live->view, &screen);
    if (screen.length >= 2) {
        screen.length -= 2; /* a newline at the end of the last line would scroll */
    }
    live->ends = live->ends || !console_write("\033[H", 3) || !console_write(screen.text, screen.length) ||
                 !console_write("\033[J", 3);
    free(screen.text);
}

static int wait_ms(const struct live *live, becalm_ns now)
{
    becalm_ns until = becalm_ns_after(now, BECALM_S); /* redraws the countdown, and the age of the state */
    if (live->asking == ASKING_NOTHING && !live->view.paused && live->ask_at < until) {
        until = live->ask_at;
    }
    if (keys_pending(&live->keys) && live->escape_at < until) {
        until = live->escape_at;
    }
    return until > now ? (int)((until - now + BECALM_MS - 1) / BECALM_MS) : 0;
}

static void run(struct live *live)
{
    const int fds[] = {live->terminal.keys, live->terminal.signals};
    becalm_ns drawn_at = 0;
    while (!live->ends) {
        becalm_ns now = clock_now();
        bool stale = step_link(live, now);
        stale = step_keys(live, now) || stale;
        stale = step_signals(live) || stale;
        if (!live->ends && (stale || becalm_ns_since(now, drawn_at) >= BECALM_S)) {
            draw(live, now);
            drawn_at = now;
        }
        if (!live->ends) {
            link_wait(live->link, fds, 2, wait_ms(live, clock_now()));
        }
    }
}

int watch_live(const struct watch *watch)
{
    int rc = -2;
    struct live *live = calloc(1, sizeof *live); /* too large for a stack */
    if (live == NULL) {
        return rc;
    }
    live->watch = watch;
    live->view.admin = watch->place->name;
    live->link = link_new(watch->place, watch->token_file);
    if (live->link == NULL) {
        goto out;
    }
    rc = -1;
    if (!console_open(&live->terminal)) {
        goto out;
    }
    run(live);
    console_close(&live->terminal);
    rc = live->signal;
out:
    view_free(&live->view);
    link_free(live->link);
    free(live);
    return rc;
}

/* ---- once ---- */

static bool fetch(struct link *link, struct view *view, char why[LINK_WHY_MAX])
{
    size_t length;
    link_ask(link, STATE_PATH, NULL);
    while (link_step(link) == LINK_BUSY) {
        link_wait(link, NULL, 0, 1000);
    }
    if (link_step(link) == LINK_FAILED) {
        strcpy(why, link_why(link));
        return false;
    }
    const char *text = link_text(link, &length);
    struct state *state = state_read(text, length);
    if (state == NULL) {
        strcpy(why, "this is not the state of a gateway");
        return false;
    }
    state->at = clock_now();
    strcpy(why, "out of memory");
    return table_add(&view->table, state);
}

bool watch_once(const struct watch *watch, struct view *view, char why[LINK_WHY_MAX])
{
    struct timespec pause = {(time_t)(watch->interval / BECALM_S), (long)(watch->interval % BECALM_S)};
    struct link *link = link_new(watch->place, watch->token_file);
    *view = (struct view){.admin = watch->place->name};
    strcpy(why, "out of memory");
    bool done = link != NULL && fetch(link, view, why);
    if (done) {
        nanosleep(&pause, NULL);
        done = fetch(link, view, why);
    }
    link_free(link);
    return done;
}
