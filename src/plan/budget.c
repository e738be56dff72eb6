/* SPDX-License-Identifier: MIT */
#include "budget.h"

/* The next whole percent. A share within rounding noise of a whole percent is that percent. */
static uint32_t round_up_percent(double share)
{
    double percent = share * 100 - 1e-9;
    if (!(percent < PLAN_BUDGET_STORM_PERCENT)) {
        return PLAN_BUDGET_STORM_PERCENT;
    }
    uint32_t below = percent < 1 ? 0 : (uint32_t)percent;
    return below + (percent > below || below == 0);
}

void plan_budget(const struct plan_traffic *traffic, struct plan_budget *out)
{
    *out = (struct plan_budget){.share = traffic->retries / traffic->requests};
    out->percent = round_up_percent(out->share);
    out->storm = out->share * 100 > PLAN_BUDGET_STORM_PERCENT;

    double each = traffic->requests / traffic->instances;
    out->window_each = each * (double)PLAN_BUDGET_WINDOW / (double)BECALM_S * out->percent / 100;
    out->sparse = out->window_each < 1;

    out->active = traffic->requests * (double)traffic->latency / (double)BECALM_S;
    out->active_each = out->active / traffic->instances;
    out->allowed = out->active * out->percent / 100;
    out->allowed_each = out->active_each * out->percent / 100;
    out->low = traffic->latency > 0 && out->allowed_each < 1;
    out->minimum = out->low ? 1 : 0;
    out->minimum_total = (uint64_t)traffic->instances * out->minimum;
}
