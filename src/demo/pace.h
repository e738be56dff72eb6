/* SPDX-License-Identifier: MIT */
#ifndef BECALM_DEMO_PACE_H
#define BECALM_DEMO_PACE_H

/* Does the machine keep up with the demonstration? A beat is due every PACE_BEAT. All services and users of both lanes
 * run on this thread, so they stood still for as long as a beat is late. A call passes the thread about ten times and
 * has 1 s for each attempt. If beats are late by a tenth of that, calls fail in both lanes with any policy, and the
 * page must say so. */

#include <becalm/ns.h>

#include <stdbool.h>
#include <stdint.h>

#define PACE_BEAT (20 * BECALM_MS)
#define PACE_SLOW (100 * BECALM_MS) /* a tick with a beat this late is slow */
#define PACE_FEW  3u                /* slow ticks: of fewer nothing is seen in the figures */
#define PACE_LOST (500 * BECALM_MS) /* half of an attempt's time: one beat this late is enough for the warning */

struct pace_span {
    becalm_ns worst;
    uint32_t slow; /* ticks, of so many */
    uint32_t ticks;
};

struct pace {
    becalm_ns late;         /* at worst, in the running tick */
    struct pace_span all;   /* from the start */
    struct pace_span storm; /* from the latest fault on */
};

void pace_beat(struct pace *, becalm_ns late);
void pace_tick(struct pace *);
void pace_anew(struct pace *); /* a fault begins */

/* Is it worth saying? A slow tick here and there is not seen in the figures; a tenth of them is. */
bool pace_is_slow(const struct pace_span *);

#endif
