/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_VIEW_H
#define BECALM_PROXY_VIEW_H

/* A worker's views of snapshots (struct view is in worker.h): the present one, and older ones whose calls go on. */

#include "worker.h"

void view_enter(struct view *);                  /* a call begins */
void view_leave(struct worker *, struct view *); /* a call ends: an old view is freed with its last call */

/* Makes this snapshot the present one, and takes over one use of it. Without memory the old one stays. */
void view_change(struct worker *, struct snapshot *);
struct upstream_pool;
struct upstream_pool view_pool(const struct worker *, const struct becalm_settings *); /* to each host */
void views_free(struct worker *);

#endif
