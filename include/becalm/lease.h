/* SPDX-License-Identifier: MIT */
#ifndef BECALM_LEASE_H
#define BECALM_LEASE_H

/* The shared budget: the retries of all instances together stay within a share of all their first attempts, through a
 * store that they all reach, such as Redis. What is shared is what may be spent, never a breaker's state, so one sick
 * instance can't silence the others.
 *
 * Nobody asks the store about a retry. Every 100 to 500 ms an instance tells it of its first attempts and asks for a
 * *lease*, as many retries as it may soon need; it spends them on its own. What it does not need it returns. There are
 * two halves, both pure:
 *
 *   the instance's  becalm_lease: spends, and says what to ask the store (ask) and what an answer means (answer). While
 *                   no answer comes, and before the first, it is *degraded*: it lives on the share of its own traffic,
 *                   and its part of the floor. So all together stay within the same share, whatever the store does, and
 *                   no call ever waits for it.
 *   the store's     becalm_lease_store: what a store does with a request, in steps that a script in Redis can state as
 *                   well: integers below 2^53, and no other clock than the store's own.
 *
 * Both halves tell each other totals and not differences, and number their requests. So a request or an answer that is
 * lost, late or doubled changes nothing that the next one does not put right, and no token is ever made by it: see
 * docs/shared-budget.md for the proof. Neither half trusts the other: every number is bounded where it comes in. */

#include <becalm/ns.h>

BECALM_BEGIN_DECLS

#define BECALM_LEASE_INSTANCES_MAX 1024u    /* that one store of this kind remembers */
#define BECALM_LEASE_LEVEL_MAX     1000000u /* retries that one instance may hold */
#define BECALM_LEASE_LIVE_MAX      1000000u /* instances that an answer may speak of */
#define BECALM_LEASE_ASK_MIN       (100 * BECALM_MS)
#define BECALM_LEASE_ASK_MAX       (500 * BECALM_MS)
#define BECALM_LEASE_TIMEOUT       BECALM_S        /* a request without an answer is made again */
#define BECALM_LEASE_TTL           (2 * BECALM_S)  /* what the store gives; then the instance is degraded */
#define BECALM_LEASE_TTL_MAX       (10 * BECALM_S) /* what an instance believes */

struct becalm_lease_policy {
    bool enabled;       /* false */
    uint32_t share_ppm; /* retries per first attempt of all instances together, 200,000; at most 1,000,000 */
    uint32_t floor; /* what they always have, also when nothing is sent: millionths of a retry a second, 100,000 (one
                       in 10 s); at most 100,000,000 */
};

/* What first attempts earn, and retries are drawn from: the share of each, and the floor. It holds at most what the
 * busiest of the last ten seconds earned, or two retries: a storm finds no more than that saved up. The store has one
 * for all instances, and a degraded instance one of its own. */
#define BECALM_LEASE_SLICES 10u
struct becalm_lease_pot {
    uint64_t stock;     /* millionths of a retry */
    becalm_ns floor_at; /* until when the floor was paid */
    uint64_t second[BECALM_LEASE_SLICES];
    uint64_t first[BECALM_LEASE_SLICES]; /* first attempts that were told in that second */
};

/* What an instance tells the store. Everything but `level` is a total since the instance began. */
struct becalm_lease_request {
    uint64_t instance; /* who; a random number, never 0 */
    uint64_t number;   /* of the request: the n-th of this instance, from 1 */
    uint64_t first;    /* first attempts, without those made while it was degraded */
    uint64_t granted;  /* retries that it has heard to be granted */
    uint64_t spent;
    uint64_t returned; /* unspent, and not to be spent any more */
    uint64_t level;    /* how many it wants to hold */
    bool leaving;      /* the last request: it holds nothing any more */
};

struct becalm_lease_answer {
    uint64_t number;  /* of the request */
    uint64_t granted; /* in total, as above */
    uint64_t live;    /* instances, this one too */
    becalm_ns ttl;    /* of the lease, from when the request was sent */
};

/* The instance's half. Shared; lives in becalm_lease_bytes() of memory, aligned to 64. begin, take, give and the
 * functions for display are safe from any thread; ask, answer and leave belong to one thread at a time. */
struct becalm_lease {
    BECALM_ATOMIC(uint64_t) left;     /* retries that may be made now */
    BECALM_ATOMIC(uint64_t) degraded; /* 1: it lives on its own share */
    BECALM_ATOMIC(uint64_t) live;     /* instances, as the store last said; 0: never heard */
    /* From here on only ask, answer and leave. */
    struct becalm_lease_request last; /* as it was last asked; the totals go on from there */
    uint64_t issued;                  /* retries ever put into `left`, without those taken out again unspent */
    uint64_t level_max;               /* the most that was asked for since the last answer */
    uint64_t seen_first;              /* what was counted when it was last asked */
    uint64_t seen_refused;
    uint64_t seen_taken;
    bool waiting;         /* an answer may still come */
    becalm_ns asked_at;   /* the request that it would answer */
    becalm_ns expires_at; /* the lease */
    becalm_ns next_at;
    uint32_t cells;
    struct becalm_lease_pot own; /* while degraded */
    /* A line for each cell follows: first attempts sent, and takes refused. */
};

BECALM_API void becalm_lease_defaults(struct becalm_lease_policy *);

/* 0, or BECALM_EINVAL with a sentence in *why (if why is not NULL) that names the field. */
BECALM_API int becalm_lease_check(const struct becalm_lease_policy *, const char **why);

/* Bytes for one lease, a multiple of 64. `cells` is the number of threads; it is cut to 64, and 0 is 1. */
BECALM_API size_t becalm_lease_bytes(uint32_t cells);
BECALM_API struct becalm_lease *becalm_lease_init(void *memory, uint32_t cells);

/* A first attempt is sent. It never waits and is never refused. */
BECALM_API void becalm_lease_begin(struct becalm_lease *, const struct becalm_moment *);

/* Pays for one retry. False: nothing is left, and that it was wanted is counted. */
BECALM_API bool becalm_lease_take(struct becalm_lease *, const struct becalm_moment *);

/* A retry that was paid for is never sent. */
BECALM_API void becalm_lease_give(struct becalm_lease *);

/* When to call ask again. At first: now. */
BECALM_API becalm_ns becalm_lease_ask_at(const struct becalm_lease *);

/* Looks after the lease; call it at becalm_lease_ask_at(), also if the store can't be reached: a lease that is over
 * ends here, and the share of a degraded instance is counted here. True: send *request. False: an answer may still
 * come, and *request is not set. */
BECALM_API bool becalm_lease_ask(struct becalm_lease *, const struct becalm_lease_policy *,
                                 const struct becalm_moment *, struct becalm_lease_request *request);

/* An answer has come. False: it is not one that could be right (late, doubled, or nonsense), and changes nothing. */
BECALM_API bool becalm_lease_answer(struct becalm_lease *, becalm_ns now, const struct becalm_lease_answer *);

/* The instance ends, and asks no more: everything unspent is returned with *request, to which no answer is needed. */
BECALM_API void becalm_lease_leave(struct becalm_lease *, const struct becalm_moment *,
                                   struct becalm_lease_request *request);

/* For display: retries that may be made now; whether it lives on its own share; instances as last heard, 0: never. */
BECALM_API uint64_t becalm_lease_left(const struct becalm_lease *);
BECALM_API bool becalm_lease_degraded(const struct becalm_lease *);
BECALM_API uint32_t becalm_lease_live(const struct becalm_lease *);

/* What a store remembers of an instance. One that was silent for longer than its lease is not live any more, but its
 * totals are kept until somebody else needs the place. */
struct becalm_lease_record {
    uint64_t instance;    /* 0: nobody's */
    becalm_ns live_until; /* on the store's clock */
    uint64_t number;
    uint64_t first;
    uint64_t granted;
    uint64_t spent;
    uint64_t returned;
    bool hungry; /* it wanted more than there was */
};

/* The store's half, of one budget. Belongs to one thread at a time, as a script in Redis does. */
struct becalm_lease_store {
    struct becalm_lease_pot pot; /* of a store that was never asked: one retry, from the floor */
    uint32_t size;               /* records that follow */
};

/* Bytes for a store of so many instances, at most BECALM_LEASE_INSTANCES_MAX. */
BECALM_API size_t becalm_lease_store_bytes(uint32_t instances);
BECALM_API struct becalm_lease_store *becalm_lease_store_init(void *memory, uint32_t instances);

/* One request and its answer. `now` is the store's clock, which may step. False: the request is nonsense, or there are
 * too many instances; there is no answer. */
BECALM_API bool becalm_lease_store_exchange(struct becalm_lease_store *, const struct becalm_lease_policy *,
                                            becalm_ns now, const struct becalm_lease_request *,
                                            struct becalm_lease_answer *);

BECALM_END_DECLS

#endif
