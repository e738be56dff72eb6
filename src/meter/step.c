/* SPDX-License-Identifier: MIT */
#include "step.h"

static void note_wait(struct meter *meter, struct meter_steps *steps, const struct becalm_action *action, becalm_ns now)
{
    meter_add(&meter->active_retries, steps->retries ? 0 : 1);
    steps->retries = true;
    steps->due = true;
    steps->why = action->why;
    steps->wait = action->wait;
    steps->since = now;
}

static void note_sent(struct meter *meter, struct meter_steps *steps, const struct becalm_action *action, becalm_ns now)
{
    if (!steps->due) { /* no wait was before it */
        steps->why = BECALM_WHY_HEDGE;
        steps->wait = action->wait;
        steps->since = now;
    }
    steps->due = false;
    steps->sent = action->attempt;
    steps->waited = becalm_ns_since(now, steps->since);
    meter_retry(meter, action->attempt, steps->waited);
}

void meter_step(struct meter *meter, struct meter_steps *steps, unsigned means, const struct becalm_action *action,
                becalm_ns now)
{
    meter_breaker(meter, action->breaker_from, action->breaker_to);
    if ((means & METER_STEP_WAITS) != 0) {
        note_wait(meter, steps, action, now);
    }
    if ((means & METER_STEP_SENDS) != 0) {
        note_sent(meter, steps, action, now);
    }
}

void meter_end(struct meter *meter, const struct meter_steps *steps, const struct becalm_record *record,
               uint32_t status)
{
    meter_end_untold(meter, steps, record);
    meter_code(meter, status);
}

void meter_end_untold(struct meter *meter, const struct meter_steps *steps, const struct becalm_record *record)
{
    meter_call(meter, record);
    meter_add(&meter->active, UINT64_MAX);
    meter_add(&meter->active_retries, steps->retries ? UINT64_MAX : 0);
}
