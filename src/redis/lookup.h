/* SPDX-License-Identifier: MIT */
#ifndef BECALM_REDIS_LOOKUP_H
#define BECALM_REDIS_LOOKUP_H

/* Addresses of hosts for programs without a resolver of their own. A name is looked up as libcurl looks up names: by
 * getaddrinfo() in a thread that ends with the answer, because no caller may block on it; addresses and paths need
 * none. Belongs to one thread at a time. */

#include "loop/address.h"

#define LOOKUP_NAMES 16u

struct lookup_job;
struct lookup {
    struct lookup_job *job[LOOKUP_NAMES]; /* NULL: free */
    uint64_t random;
};

/* One address of the host, as redis_options.find wants it. False: it is being looked up, or it has none. An answer is
 * used once, so that each new connection looks the name up again. */
bool lookup_find(struct lookup *, const char *host, union address_socket *);
/* Resets the lookup to all zeroes. Threads that still resolve a name keep the memory that they need. */
void lookup_clear(struct lookup *);

#endif
