/* SPDX-License-Identifier: MIT */
#ifndef BECALM_GATEWAY_RELOAD_H
#define BECALM_GATEWAY_RELOAD_H

/* How a policy comes into force: it is loaded, its certificates and listeners are opened, a snapshot of it is made, and
 * only when nothing can fail any more it is published to the workers. All of this is the control thread's, but for the
 * first policy, which comes before any thread. */

#include "fleet.h"
#include "health.h"

#include "admin/admin.h"
#include "proxy/gateway_shared.h"

/* The parts of the gateway that a new policy affects. */
struct reload_place {
    struct gateway *gateway;
    struct snapshot_names names; /* the addresses of names; starts resolving new names */
    /* Waits a little for the answers. True: some name has new addresses. */
    bool (*names_await)(void *self, const struct becalm_settings *);
    struct fleet *fleet;
    struct health *health;
    struct admin *admin;
};

/* Reads and checks the policy of a gateway. 0; BECALM_EPARSE, BECALM_EIO or BECALM_EINVAL with diagnostics; or
 * BECALM_ENOMEM. */
int reload_load(const struct gateway *, struct becalm_config **, struct becalm_diags *);

/* The first policy of a gateway. The config stays the caller's. Errors as reload_load(). */
int reload_first(const struct reload_place *, struct shared_config *, struct becalm_diags *);
/* Loads the policy again and publishes it, or keeps the old one and says why. `wall` is nanoseconds since 1970. */
int reload_now(const struct reload_place *, struct becalm_diags *, becalm_ns now, uint64_t wall);
/* Publishes the same config with new addresses of its names. */
int reload_readdress(const struct reload_place *, becalm_ns now);

/* Does every worker use the latest snapshot? And: notes that it does, or that the policy was refused, so the orders up
 * to this one are answered. */
bool reload_in_force(const struct gateway *);
void reload_over(struct gateway *, uint64_t ordered);

/* Applies a policy to the gateway's parts that outlive it. */
struct log_settings reload_log_settings(const struct gateway *, const struct becalm_settings *);
struct store_settings reload_store_settings(const struct becalm_settings *);
void reload_max_buffered(struct gateway *, const struct becalm_settings *);

#endif
