/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TOP_WATCH_H
#define BECALM_TOP_WATCH_H

/* Watches a gateway: asks, draws, and listens to keys. */

#include "link.h"
#include "view.h"

/* How it looks; the rest of struct screen is left alone. */
struct watch {
    const struct link_place *place;
    const char *token_file; /* may be NULL */
    becalm_ns interval;     /* between questions */
    struct screen look;
};

/* Runs on the terminal until the user or a signal ends it. Returns 0, or the number of the signal; -1: this is no
 * terminal; -2: out of memory. */
int watch_live(const struct watch *);

/* Two questions, an interval apart, so that there are rates; the view is then to be drawn. False: why not. The view
 * must be freed in both cases. */
bool watch_once(const struct watch *, struct view *, char why[LINK_WHY_MAX]);

#endif
