/* SPDX-License-Identifier: MIT */
#ifndef BECALM_KEYS_KEYRING_H
#define BECALM_KEYS_KEYRING_H

/* The settings that gateways must have in common to share idempotency keys: their Redis, their name space in it, the
 * secret of their hashes, and the keys with which answers are encrypted; and the keys that this process has ended.
 * Immutable but for the latter, shared by threads. */

#include "key_memory.h"
#include "seal.h"
#include "store.h"

#include "redis/request.h"
#include "redis/site.h"

struct keyring {
    BECALM_ATOMIC(uint32_t) users;
    BECALM_ATOMIC(bool) listed; /* by this process on its present connection: the store has noted its own clock */
    struct redis_site site;
    char fleet[SCRIPT_FLEET_MAX + 1]; /* script_name() */
    struct store_secret secret;
    struct store_secret older; /* the one before, by which keys are still looked for */
    bool has_older;
    struct seals seals;
    struct key_memory *memory; /* outlives changes of all but place, name space and secret */
    becalm_ns ttl;
    becalm_ns timeout;
    becalm_ns lease; /* the gateway that holds a key renews it at least three times in it */
    uint64_t max_answer;
    uint32_t replicas; /* the number of replicas that must have an enforced key before its call is made */
    bool fence;        /* each beginning of a key gets a number that is higher than all before */
    enum becalm_keys_away away;
};

/* Makes the keyring of a policy: NULL in *made if its keys are not shared. If nothing has changed, it is `before`,
 * which may be NULL. 0, BECALM_ENOMEM, or BECALM_EINVAL with the errors in *diags. */
int keyring_make(struct keyring **made, const struct becalm_config *, struct keyring *before, struct becalm_diags *);
struct keyring *keyring_use(struct keyring *); /* takes NULL, as the next */
void keyring_drop(struct keyring *);           /* frees it with its last user; any thread */

#endif
