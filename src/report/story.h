/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_STORY_H
#define BECALM_SIM_STORY_H

/* The story of a call, one line for each step: the time, the event, and the engine's action with its reason. Golden
 * stories in the tests and the timelines of `becalm sim --trace` use the same words. */

#include <becalm/call.h>

/* One step of it. */
struct story {
    const struct becalm_event *event;
    uint32_t attempt; /* HEAD, DONE, SENT: which one it is about */
    const struct becalm_action *action;
    bool line; /* SERVE: by the line of those that wait for a host, not by the gate */
};

/* The event and the actions of one step: "got rejected 503 on 0 -> wait 85ms (backoff)". Cut at `size`; returns the
 * length. */
size_t story_tell(const struct story *, char *text, size_t size);

#endif
