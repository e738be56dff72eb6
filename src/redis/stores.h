/* SPDX-License-Identifier: MIT */
#ifndef BECALM_REDIS_STORES_H
#define BECALM_REDIS_STORES_H

/* All Redis servers that the policy of one process names, with a connection to each, on one loop: with the leases of
 * the budgets that are shared there, and with the process's entry in the fleet's list. The gateway and the library both
 * use it. */

#include "leases.h"
#include "roster.h"
#include "site.h"

struct redis_stores;

/* One Redis. */
struct store_site {
    struct store_site *next;
    struct redis_stores *stores;
    struct redis_site redis;
    char name[SCRIPT_FLEET_MAX + 1]; /* the name space in it */
    struct leases *leases;
    struct roster *roster; /* NULL: no memory */
    bool used;             /* by the policy that is in force */
};

struct redis_stores_options {
    struct loop *loop;
    bool (*find)(void *self, const char *host, union address_socket *);   /* as redis_options have it */
    void (*note)(void *self, const struct store_site *, const char *why); /* like redis_options; NULL: unused */
    void (*tell)(void *self, struct roster_entry *);
    void *self;
};

struct redis_stores {
    struct redis_stores_options options;
    struct store_site *first;
};

/* Sets the budgets in use: call begin, bind for each budget, then end. Budgets that were not bound again are left, and
 * so is a Redis without budgets. Rules without a shared budget are skipped. A budget for which memory runs out lives on
 * its own share. */
struct redis_stores_budget {
    const struct becalm_config *config;
    const struct becalm_rules *rules;
    const char *service;
    const char *endpoint; /* NULL: the service's own */
    struct becalm_lease *lease;
    const struct becalm_lease_policy *policy;
};
void redis_stores_bind_begin(struct redis_stores *);
void redis_stores_bind(struct redis_stores *, const struct redis_stores_budget *);
void redis_stores_bind_end(struct redis_stores *);

/* Returns all leases. Before the loop is closed. */
void redis_stores_free(struct redis_stores *);

/* The state of the connections, for display. Returns how many there are, at most `size`. */
struct metrics_redis;
uint32_t redis_stores_tell(const struct redis_stores *, struct metrics_redis *, uint32_t size);

/* Is each Redis that shared budgets of the policy name one that can be used? False: *diags says which is not. */
bool redis_stores_check(const struct becalm_config *, struct becalm_diags *);

/* A hash of the rules that are in force, however they are written, for roster_entry. */
void redis_stores_policy_hash(const struct becalm_config *, char *to, size_t size);

#endif
