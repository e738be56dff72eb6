/* SPDX-License-Identifier: MIT */
#include "share.h"

#include <string.h>

void share_with_service(struct share endpoint, struct share service, enum becalm_budget_level level)
{
    const struct becalm_target *from = service.target;
    struct becalm_target *to = endpoint.target;
    to->hosts = from->hosts;
    to->mark = from->mark;
    to->restart = from->restart;
    if (memcmp(&endpoint.policy->limit, &service.policy->limit, sizeof endpoint.policy->limit) == 0 &&
        memcmp(&endpoint.policy->gate, &service.policy->gate, sizeof endpoint.policy->gate) == 0) {
        to->limit = from->limit;
        to->gate = from->gate;
    }
    if (level == BECALM_LEVEL_SERVICE) {
        to->budget = from->budget;
        to->losses = from->losses;
        to->lease = from->lease;
    } else if (level == BECALM_LEVEL_BOTH) {
        to->service_budget = from->budget;
        to->service_losses = from->losses;
        to->lease = from->lease;
    }
}
