/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TOP_VIEW_H
#define BECALM_TOP_VIEW_H

/* The contents of the screen, and the effect of keys: the list of services, one service, or help. */

#include "keys.h"
#include "screen.h"
#include "table.h"

#define VIEW_FILTER_MAX 64u
#define VIEW_WHY_MAX    256u

enum view_page { VIEW_LIST, VIEW_SERVICE, VIEW_HELP };

struct view {
    const char *admin; /* as messages name it */
    struct table table;
    struct state_decision decision[STATE_DECISIONS_MAX]; /* of the chosen service */
    uint32_t decision_count;
    char decisions_of[STATE_NAME_MAX]; /* "": none were read yet */

    enum view_page page;
    enum view_page below_help;   /* where help goes back to */
    char chosen[STATE_NAME_MAX]; /* a service; "": the first */
    char filter[VIEW_FILTER_MAX];
    bool typing; /* the filter */
    bool paused;
    uint32_t scroll; /* lines of VIEW_SERVICE; its bound is that of the last time it was drawn */
    uint32_t scroll_max;

    char why[VIEW_WHY_MAX]; /* why the gateway does not answer; "": it does */
    becalm_ns again;        /* in how long it is asked again */
    becalm_ns age;          /* of the state on the screen */
};

/* The loop's reaction to a key. */
enum view_wish { VIEW_STAY, VIEW_QUIT, VIEW_ASK };

void view_free(struct view *);

/* Draws everything. */
void view_draw(struct view *, struct screen *);

enum view_wish view_key(struct view *, struct key);

/* The first row that passes the filter, if `after` is NULL, or the next one; NULL after the last. */
const struct table_row *view_next(const struct view *, const struct table_row *after);

/* The row of the service that is chosen, or of the first in the list; NULL: none is there. */
const struct table_row *view_chosen(const struct view *);

/* ---- its parts ---- */

void view_list_draw(struct view *, struct screen *);
void view_service_draw(struct view *, struct screen *);

/* Breaker, budget, limit, queue, hosts and refusals of a service, a line each. */
#define VIEW_FACTS 7u
void view_facts_draw(const struct table_row *, struct screen *);

/* "!!" with its word, "! ", or "". */
const char *view_sign(enum trouble_weight);
enum screen_mark view_mark(enum trouble_weight);

/* The end of a trend in at most so many columns, and no more than the line has left. */
void view_spark(struct screen *, const uint64_t *value, uint32_t count, uint32_t columns);

#endif
