/* SPDX-License-Identifier: MIT */
#ifndef BECALM_REDIS_REDIS_H
#define BECALM_REDIS_REDIS_H

/* One process's connection to the Redis in which shared budgets are: asks for the leases of all of them together, a few
 * times a second, on the loop of one thread. Nobody waits for it: workers only spend what the leases hold. A connection
 * that is lost, refused, silent for a second, or that says what no Redis says, is closed and made again after a backoff
 * with full jitter; meanwhile each lease lives on its own share. */

#include "loop/address.h"
#include "loop/loop.h"
#include "script.h"

#define REDIS_TIMEOUT BECALM_S /* to connect, to greet, to answer */

/* Where it is. */
struct redis_place {
    char host[ADDRESS_NAME_MAX + 8]; /* as address_parse() takes it: with its port, or unix:/path */
    char user[64];
    char password[256];
    uint32_t database;
};

/* redis://[user[:password]@]host[:port][/database], with %XX in user and password; or redis+unix:///path. NULL, or a
 * sentence about what is wrong. */
const char *redis_place_parse(const char *url, struct redis_place *);

enum redis_state {
    REDIS_AWAY, /* waits until it may connect again */
    REDIS_CONNECTING,
    REDIS_GREETING, /* says who it is; no budget is told before the server has answered to that */
    REDIS_UP
};

/* For display. */
struct redis_count {
    uint64_t connects;
    uint64_t exchanges; /* answered */
    uint64_t lost;      /* connections that ended */
    uint64_t reloads;   /* the server did not know the script */
};

struct redis_options {
    struct loop *loop;
    struct redis_place place;
    const char *fleet; /* NULL: "default" */
    /* An address of the host, asked for at each connection. False: there is none now. NULL: the host is an address. */
    bool (*find)(void *self, const struct redis_place *, union address_socket *);
    /* The connection is up (NULL), or lost and why: the first word of what the server says, or one of ours. Once each.
     */
    void (*note)(void *self, const char *why);
    void *self;
};

struct redis *redis_make(const struct redis_options *); /* NULL: no memory */
/* Says goodbye for all budgets as far as the socket takes it at once. */
void redis_free(struct redis *);

/* The budgets that there are: begin, bind each of them, end. Those that were not bound again are left. A lease must
 * live until then. False: no memory. */
void redis_bind_begin(struct redis *);
bool redis_bind(struct redis *, const char *name, struct becalm_lease *, const struct becalm_lease_policy *);
void redis_bind_end(struct redis *);

enum redis_state redis_state(const struct redis *);
const char *redis_error(const struct redis *); /* why it was last lost; "" before */
struct redis_count redis_count(const struct redis *);

#endif
