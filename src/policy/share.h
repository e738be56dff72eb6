/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_SHARE_H
#define BECALM_POLICY_SHARE_H

/* Which parts of its service an endpoint shares: the hosts and their marks always; the limit and its gate unless it
 * writes its own; the budget, and the lease of the one that all instances share, where `level` says so. The endpoint's
 * own budget, limit and gate were allocated before, and are ignored where it shares its service's. */

#include <becalm/config.h>
#include <becalm/target.h>

/* A target and the policy that it was made for. */
struct share {
    struct becalm_target *target;
    const struct becalm_policy *policy;
};

void share_with_service(struct share endpoint, struct share service, enum becalm_budget_level);

#endif
