/* SPDX-License-Identifier: MIT */
#ifndef BECALM_REDIS_PROBE_H
#define BECALM_REDIS_PROBE_H

/* A visit to a Redis before it is needed: is it there, does it let us in, and may we do all that will be done? Waits
 * for the answers, a few seconds at most. */

#include "site.h"

#define PROBE_MISSING_MAX 24u

struct redis_probe {
    bool answers;
    char host[REDIS_HOST_MAX];
    char error[REPLY_TEXT]; /* the server's error; "": none */
    /* The permissions that the user lacks: "+evalsha", "~becalm:{default}:*". */
    char missing[PROBE_MISSING_MAX][96];
    uint32_t missing_count;
    char evicts[32]; /* with `keys`: the server's maxmemory-policy, if that is not noeviction; "": it is, or the user
                        may not read it */
};

/* `keys`: also tries the commands that idempotency keys need. False: out of memory or descriptors. */
bool redis_probe(const struct redis_site *, const char *fleet, bool keys, bool replicas, struct redis_probe *);

/* For programs that may block: an address of a host, by the system's resolver. As redis_options.find takes it. */
bool redis_find_waiting(void *self, const char *host, union address_socket *);

#endif
