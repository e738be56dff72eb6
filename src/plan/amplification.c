/* SPDX-License-Identifier: MIT */
#include "amplification.h"

/* The loads down the chain when each hop multiplies by `per_hop`; returns their sum. */
static struct plan_load series(const struct plan_chain *chain, double per_hop, struct plan_load *load)
{
    struct plan_load total = {0, 0};
    double factor = 1;
    for (uint32_t i = 0; i < chain->services; i++) {
        load[i].factor = factor;
        load[i].rps = factor * chain->rps;
        total.factor += factor;
        factor *= per_hop;
    }
    total.rps = total.factor * chain->rps;
    return total;
}

void plan_amplify(const struct plan_chain *chain, struct plan_amplification *out)
{
    double attempts = chain->attempts;
    double paid = chain->budgeted ? 1 + chain->budget_ppm / 1e6 : attempts;
    if (paid > attempts) {
        paid = attempts; /* a budget allows retries, it does not make them */
    }
    out->bare_total = series(chain, attempts, out->bare);
    out->paid_total = series(chain, paid, out->paid);
    out->marked.factor = chain->services > 1 ? paid : 1;
    out->marked.rps = out->marked.factor * chain->rps;
}
