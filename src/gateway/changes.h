/* SPDX-License-Identifier: MIT */
#ifndef BECALM_GATEWAY_CHANGES_H
#define BECALM_GATEWAY_CHANGES_H

/* Logs when a problem begins, now and then that it lasts, and when it is over: one line each, with the counts
 * meanwhile, instead of a line for every call or change. Checks once a second, on the control thread. */

#include "journal/log.h"
#include "proxy/snapshot.h"

struct changes;

struct changes *changes_make(void); /* NULL: no memory */
void changes_free(struct changes *);

/* A second is over. */
void changes_note(struct changes *, struct snapshot *, struct log_source *, becalm_ns now, uint64_t wall);

/* One problem that may begin, last and end. */
struct change {
    bool on;
    becalm_ns since;
    becalm_ns seen_at; /* when the problem was last seen */
    becalm_ns tell_at; /* when it is logged again */
    becalm_ns step;
    uint64_t count; /* the calls that it has cost since it began */
};

enum change_step { CHANGE_NONE, CHANGE_BEGINS, CHANGE_LASTS, CHANGE_ENDS };

/* The problem is there now, or not; or its state is unknown. `more` is its cost since the last check. */
enum change_seen { CHANGE_UNKNOWN, CHANGE_IS, CHANGE_IS_NOT };
enum change_step change_note(struct change *, enum change_seen, uint64_t more, becalm_ns now);

#endif
