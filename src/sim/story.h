/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_STORY_H
#define BECALM_SIM_STORY_H

/* What happens to a call, one step a line: when, what came, and what the engine said and why. Golden stories in the
 * tests and the timelines of `becalm sim --trace` are told in the same words. */

#include <becalm/call.h>

/* What came: "got rejected 503 on 0". Cut at `size`; both return the length. */
size_t story_event(const struct becalm_event *, uint32_t attempt, char *text, size_t size);

/* What is done about it: " -> wait 85ms (backoff)". */
size_t story_action(const struct becalm_action *, char *text, size_t size);

#endif
