/* SPDX-License-Identifier: MIT */
#include "site.h"

#include "container.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

struct site *site_make(const char *operation)
{
    struct site *site = aligned_alloc(64, sizeof *site);
    if (site != NULL) {
        memset(site, 0, sizeof *site);
        site->operation = operation;
    }
    return site;
}

void sites_free(struct site *first)
{
    while (first != NULL) {
        struct site *next = first->next;
        free(first);
        first = next;
    }
}

struct meter *site_take(struct site *site, uint32_t hint)
{
    for (uint32_t i = 0;; i++) {
        struct site_lane *lane = &site->lane[(hint + i) % SITE_LANES];
        /* acquire: pairs with the release of the thread that had it before, whose additions are then seen */
        if (!atomic_exchange_explicit(&lane->taken, true, memory_order_acquire)) {
            return &lane->meter;
        }
        if (i % SITE_LANES == SITE_LANES - 1) {
            (void)sched_yield(); /* a thread holds one for nanoseconds, unless it was interrupted */
        }
    }
}

void site_give(struct meter *meter)
{
    struct site_lane *lane = CONTAINER_OF(meter, struct site_lane, meter);
    atomic_store_explicit(&lane->taken, false, memory_order_release);
}
