/* SPDX-License-Identifier: MIT */
#ifndef BECALM_LEASE_H
#define BECALM_LEASE_H

/* The shared budget: the retries of all instances together stay within a share of all their first attempts, through a
 * store that they all reach, such as Redis. Instances share the budget, never a breaker's state, so one sick instance
 * can't stop the calls of healthy instances.
 *
 * No call asks the store about a single retry. Every 200 to 400 ms an instance reports its first attempts to the store
 * and asks for a *lease*: as many retries as it may soon need. It spends them without asking, and returns those that it
 * does not need. There are two halves, both pure:
 *
 *   becalm_lease        the instance's half. It spends retries, makes the requests to the store (ask) and reads its
 *                       answers (answer). While no answer comes, and before the first, it is *degraded*: it lives on
 *                       the share of its own traffic, and its part of the floor. So all instances together stay within
 *                       the same share even while the store fails, and no call ever waits for the store.
 *   becalm_lease_store  the store's half: it answers requests. A script in Redis does the same, step by step: integers
 *                       of at most 15 digits, no clock but the store's own, in milliseconds, and as much work for one
 *                       instance as for a thousand. docs/shared-budget.md has the rules.
 *
 * Both halves exchange totals, not differences, and requests are numbered. So a request or an answer that is lost, late
 * or doubled never creates a retry, and the next exchange corrects the totals: see docs/shared-budget.md for the proof.
 * Each half bounds every number that it receives, because the sender may be wrong. */

#include <becalm/ns.h>

BECALM_BEGIN_DECLS

#define BECALM_LEASE_INSTANCES_MAX 4096u             /* that one store of this kind remembers */
#define BECALM_LEASE_LEVEL_MAX     1000000u          /* retries that one instance may hold */
#define BECALM_LEASE_LIVE_MAX      1000000u          /* instances that an answer may report */
#define BECALM_LEASE_NEXT_MIN      (100 * BECALM_MS) /* between two requests, on average: the least that is accepted */
#define BECALM_LEASE_NEXT          (300 * BECALM_MS) /* the store's value for fewer than 600 instances */
#define BECALM_LEASE_NEXT_MAX      BECALM_S
#define BECALM_LEASE_TIMEOUT       BECALM_S        /* a request without an answer is made again */
#define BECALM_LEASE_TTL           BECALM_S        /* the store's least ttl; after it the instance is degraded */
#define BECALM_LEASE_TTL_MAX       (10 * BECALM_S) /* the most that an instance accepts */
#define BECALM_LEASE_TURN          (10 * BECALM_S) /* while there is not one retry for every instance */

struct becalm_lease_policy {
    bool enabled;       /* false */
    uint32_t share_ppm; /* retries per first attempt of all instances together, 200,000; at most 1,000,000 */
    uint32_t floor;     /* retries that are earned without any traffic: millionths of a retry a second, 100,000 (one in
                           10 s); at most 100,000,000 */
};

/* The stock of earned retries: each first attempt adds its share, and time adds the floor. It holds at most half of the
 * retries that the busiest of the last ten seconds earned, or two: a storm finds no more than that and the leases. The
 * store has one for all instances, and a degraded instance has one of its own. Times are in milliseconds, so that a
 * store whose numbers are doubles counts the same. */
struct becalm_lease_pot {
    uint64_t stock;       /* millionths of a retry */
    uint64_t floor_at;    /* the floor has been paid up to this time */
    uint64_t second;      /* the latest second in which first attempts were reported */
    uint64_t told;        /* first attempts in that second */
    uint64_t ten;         /* the period of ten seconds that `second` is in */
    uint64_t peak;        /* first attempts of the busiest second in this period */
    uint64_t peak_before; /* and in the period before */
};

/* A request of an instance to the store. Everything but `level` is a total since the instance began. */
struct becalm_lease_request {
    uint64_t instance; /* the instance that asks; a random number, never 0 */
    uint64_t number;   /* of the request: the n-th of this instance, from 1 */
    uint64_t answered; /* the last request whose answer has arrived; 0: none. It shows a store that it lost writes */
    uint64_t first;    /* first attempts, without those made while it was degraded */
    uint64_t granted;  /* retries granted by answers that have arrived */
    uint64_t spent;
    uint64_t returned; /* unspent, and not to be spent any more */
    uint64_t level;    /* how many retries it wants to hold */
    uint64_t era;      /* the store's era in the last answer to this process, under any name; 0: never */
    bool leaving;      /* the last request: it holds nothing any more */
};

struct becalm_lease_answer {
    uint64_t number;  /* of the request */
    uint64_t granted; /* in total, as above */
    uint64_t live;    /* instances, this one too */
    uint64_t room;    /* retries that all instances without a present need may hold together */
    uint64_t era;     /* how often the store has noticed that it lost writes */
    becalm_ns next;   /* between two requests, on average */
    becalm_ns ttl;    /* of the lease, from the arrival of the answer */
};

/* The instance's half. Shared; lives in becalm_lease_bytes() of memory, aligned to 64. begin, take, give and the
 * functions for display are safe from any thread; tend, ask, answer, lost and leave belong to one thread at a time. */
struct becalm_lease {
    BECALM_ATOMIC(uint64_t) left;     /* retries that may be made now */
    BECALM_ATOMIC(uint64_t) degraded; /* 1: it lives on its own share */
    BECALM_ATOMIC(uint64_t) live;     /* instances, as the store last said; 0: never heard */
    /* From here on only tend, ask, answer, lost and leave. */
    struct becalm_lease_request last; /* the last request; its totals are continued */
    uint64_t told_first;              /* first attempts in a request that was made, and retries returned by one */
    uint64_t told_returned;
    uint64_t issued;     /* retries ever put into `left`, without those taken out again unspent */
    uint64_t level_max;  /* the most that was asked for since the last answer */
    uint64_t seen_first; /* the counts at the last request */
    uint64_t seen_refused;
    uint64_t seen_taken;
    BECALM_ATOMIC(uint64_t) told_ever; /* for display: see becalm_lease_totals() */
    BECALM_ATOMIC(uint64_t) granted_ever;
    BECALM_ATOMIC(uint64_t) spent_ever;
    BECALM_ATOMIC(uint64_t) returned_ever;
    uint64_t spent_counted; /* of the totals under this name */
    uint64_t wanted_most;   /* retries wanted between two looks, the most of the last two seconds */
    becalm_ns wanted_at;
    uint64_t room;        /* as the store last said */
    bool waiting;         /* a request is out, and its answer may still come */
    becalm_ns asked_at;   /* when that request was made */
    becalm_ns expires_at; /* when the lease ends */
    becalm_ns ttl;        /* of the lease, as the store gave it */
    becalm_ns next;       /* as the store last said; 0: never */
    becalm_ns next_at;
    /* Answers that come late: see docs/shared-budget.md. */
    uint64_t back;      /* granted retries that are held back: not in `left` yet */
    uint64_t pace;      /* thousandths of a retry a second, as they were granted lately */
    becalm_ns heard_at; /* the last answer; 0: never */
    becalm_ns let_at;   /* retries held back have been released up to this time */
    bool late;          /* answers come late, so granted retries are released slowly, at `pace` */
    uint32_t cells;
    struct becalm_lease_pot own; /* the instance's own stock while it is degraded */
    /* A line for each cell follows: first attempts sent, and takes refused. */
};

BECALM_API void becalm_lease_defaults(struct becalm_lease_policy *);

/* 0, or BECALM_EINVAL with a sentence in *why (if why is not NULL) that names the field. */
BECALM_API int becalm_lease_check(const struct becalm_lease_policy *, const char **why);

/* Bytes for one lease, a multiple of 64. `cells` is the number of threads; it is cut to 64, and 0 is 1. */
BECALM_API size_t becalm_lease_bytes(uint32_t cells);
BECALM_API struct becalm_lease *becalm_lease_init(void *memory, uint32_t cells);

/* Does this memory hold a valid lease of so many cells? For memory that another process may have damaged, such as a
 * file that processes share. It checks each word on its own, so another process may use the lease meanwhile. */
BECALM_API bool becalm_lease_sound(const void *memory, uint32_t cells, becalm_ns now);

/* A first attempt is sent. It never waits and is never refused. */
BECALM_API void becalm_lease_begin(struct becalm_lease *, const struct becalm_moment *);

/* Pays for one retry. False: none is left; the wish is counted. */
BECALM_API bool becalm_lease_take(struct becalm_lease *, const struct becalm_moment *);

/* A retry that was paid for is never sent. */
BECALM_API void becalm_lease_give(struct becalm_lease *);

/* When to call ask again. At first: now. */
BECALM_API becalm_ns becalm_lease_ask_at(const struct becalm_lease *);

/* Maintains the lease; call one of these at becalm_lease_ask_at(). They end a lease whose time is over, and count the
 * share of a degraded instance. Use `tend` while the store can't be reached. `ask` also makes a request. True: send
 * *request. False: an answer may still come, or there is nothing to report and nothing to ask; *request is not set. To
 * send several leases of one store together, ask them with one moment: then their next times are the same too. */
BECALM_API void becalm_lease_tend(struct becalm_lease *, const struct becalm_lease_policy *,
                                  const struct becalm_moment *);
BECALM_API bool becalm_lease_ask(struct becalm_lease *, const struct becalm_lease_policy *,
                                 const struct becalm_moment *, struct becalm_lease_request *request);

/* An answer has come. False: it can't be right (late, doubled, or nonsense), and changes nothing. */
BECALM_API bool becalm_lease_answer(struct becalm_lease *, becalm_ns now, const struct becalm_lease_answer *);

/* The connection to the store is lost: the instance lives on its own share at once, and may spend the rest of the
 * lease. From now on the instance has another name: if it was copied (a machine that was suspended and started twice),
 * the copy has lost its connection, too. True: send *goodbye first when the store can be reached again; it needs no
 * answer. */
BECALM_API bool becalm_lease_lost(struct becalm_lease *, const struct becalm_lease_policy *,
                                  const struct becalm_moment *, struct becalm_lease_request *goodbye);

/* The instance ends, and asks no more: everything unspent is returned with *request, to which no answer is needed. */
BECALM_API void becalm_lease_leave(struct becalm_lease *, const struct becalm_moment *,
                                   struct becalm_lease_request *request);

/* For display: the retries that may be made now; whether the instance is degraded; the number of instances that the
 * store last reported, 0: the store has not answered yet. */
BECALM_API uint64_t becalm_lease_left(const struct becalm_lease *);
BECALM_API bool becalm_lease_degraded(const struct becalm_lease *);
BECALM_API uint32_t becalm_lease_live(const struct becalm_lease *);

/* For display: the totals of this process since it began, under all its names. Retries that were left when a lease
 * ended without the store count as spent. Over all instances, the budget bounds spent / told. */
struct becalm_lease_totals {
    uint64_t told; /* first attempts */
    uint64_t granted;
    uint64_t spent;
    uint64_t returned;
};
BECALM_API struct becalm_lease_totals becalm_lease_totals(const struct becalm_lease *);

/* A store's record of an instance. An instance that was silent for longer than its lease is not live any more, but its
 * totals are kept until another instance needs the record. */
struct becalm_lease_record {
    uint64_t instance; /* 0: the record is free */
    uint64_t seen_at;  /* on the store's clock */
    uint64_t number;
    uint64_t first;
    uint64_t granted;
    uint64_t spent;
    uint64_t returned;
    uint64_t window; /* 1 + the window in which the instance was counted as live; 0: never counted */
    bool hungry;     /* the instance wanted more retries than there were, and is counted so in that window */
};

/* The number of instances: each instance that sends a request is counted once in each window of two seconds. Kept for
 * this window and the one before. */
struct becalm_lease_census {
    uint64_t window;
    uint64_t live;
    uint64_t hungry; /* of these, the instances that wanted more retries than there were */
    uint64_t live_before;
    uint64_t hungry_before;
};

/* The store's half, of one budget and one policy: instances with another percentage have another store. Belongs to one
 * thread at a time, as a script in Redis does. */
struct becalm_lease_store {
    struct becalm_lease_pot pot; /* of a store that was never asked: one retry, from the floor */
    struct becalm_lease_census census;
    uint64_t era; /* incremented when the store notices that it has lost writes. The pot is emptied then, and only once,
                     even if several instances report the same loss */
    uint32_t size; /* records that follow */
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
