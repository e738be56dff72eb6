/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TESTS_TRACE_STORY_H
#define BECALM_TESTS_TRACE_STORY_H

/* What the files of stories share: requests, and a beginning. */

#include "check.h"
#include "world.h"

#define MS BECALM_MS

static const struct becalm_request get = {.idempotent = true};
static const struct becalm_request post = {.idempotent = false};

/* One failed call opens the breaker; by 1030 ms its second of open time is over. */
static inline void open_breaker(struct world *w, uint32_t probes)
{
    world_begin(w);
    w->policy.breaker.mode = BECALM_BREAKER_RATE;
    w->policy.breaker.min_calls = 1;
    w->policy.breaker.probes = probes;
    w->policy.breaker.half_open_for = 2 * BECALM_S;
    world_open(w, 0);
    world_call(w, &(struct plan){.request = post, .reply = {reply_status(10 * MS, 503)}});
    world_run(w, 1030 * MS);
    world_expect(w,
                 "[  0ms] call 1 begins -> send 0\n"
                 "[ 10ms] call 1 got rejected 503 on 0 -> answer, finish (not_idempotent), breaker CLOSED to OPEN\n");
    world_forget(w);
}

#endif
