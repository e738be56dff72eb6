/* SPDX-License-Identifier: MIT */
#include "pace.h"

void pace_beat(struct pace *pace, becalm_ns late)
{
    pace->late = late > pace->late ? late : pace->late;
}

static void span_tick(struct pace_span *span, becalm_ns late)
{
    span->ticks++;
    span->slow += late >= PACE_SLOW;
    span->worst = late > span->worst ? late : span->worst;
}

void pace_tick(struct pace *pace)
{
    span_tick(&pace->all, pace->late);
    span_tick(&pace->storm, pace->late);
    pace->late = 0;
}

void pace_anew(struct pace *pace)
{
    pace->storm = (struct pace_span){0};
}

bool pace_is_slow(const struct pace_span *span)
{
    return span->worst >= PACE_LOST || (span->slow >= PACE_FEW && span->slow >= span->ticks / 10);
}
