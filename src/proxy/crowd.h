/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_CROWD_H
#define BECALM_PROXY_CROWD_H

/* The connections of one worker, grouped by client (peer.h), to find the connection to close among those of the client
 * with the most. Groups are in levels by the logarithm of their size: the first group of the highest level has at least
 * half as many connections as the largest group, and moving between levels costs a few instructions. Requests do not
 * touch this structure; only connections that come and go do. */

#include "loop/hash_table.h"

#include <becalm/ns.h>

#define CROWD_LEVELS 24u

/* A connection, which embeds this. */
struct crowd_member {
    struct crowd_group *group; /* its client's group; NULL: it has not joined */
    struct crowd_member *next;
    struct crowd_member **link;
};

/* One client's connections to this worker. */
struct crowd_group {
    struct hash_table_node node; /* first; its key is the client */
    struct crowd_member *first;  /* the oldest one, or the one that was examined the longest ago */
    struct crowd_member **last;
    uint32_t count;
    uint32_t level;
    uint32_t logins; /* idle connections to hosts that are its own: see login.h */
    struct crowd_group *level_next;
    struct crowd_group **level_link;
};

/* The loss to a client when its connection is closed, the smallest first. */
enum price {
    PRICE_NOTHING, /* the client has its last answer, or does not read any more */
    PRICE_IDLE,    /* between two requests, or its first one has not come in full */
    PRICE_SLOW,    /* in the middle of a request or an answer that hardly moves */
    PRICE_BUSY     /* never given up */
};

/* The price of one connection, and since when it waits. */
typedef enum price crowd_price_fn(struct crowd_member *, becalm_ns *since);

struct crowd {
    crowd_price_fn *price;
    struct hash_table groups;
    uint32_t used; /* bit n: level n has a group */
    struct crowd_group *level[CROWD_LEVELS];
    struct crowd_group **level_last[CROWD_LEVELS];
};

void crowd_init(struct crowd *, crowd_price_fn *);
void crowd_free(struct crowd *); /* when it has no members left */

/* False: no memory. */
bool crowd_join(struct crowd *, struct crowd_member *, uint64_t identity);
void crowd_leave(struct crowd *, struct crowd_member *);

/* The highest level that has a group, plus 1; 0: the crowd is empty. */
static inline uint32_t crowd_top(const struct crowd *crowd)
{
    return crowd->used == 0 ? 0 : 32u - (uint32_t)__builtin_clz(crowd->used);
}

/* The connection to close: in the highest level, not below `lowest`, that has one for at most this price, the cheapest,
 * then the longest idle. At most CROWD_LOOKS are examined in each level; those that are too dear go to the end, so that
 * the next search examines others. NULL: there is none. */
#define CROWD_LOOKS 64u
struct crowd_member *crowd_pick(struct crowd *, enum price most, uint32_t lowest);
/* The same among the connections of one client. */
struct crowd_member *crowd_pick_of(struct crowd *, struct crowd_group *, enum price most);

#endif
