/* SPDX-License-Identifier: MIT */
#ifndef BECALM_REDIS_ROSTER_H
#define BECALM_REDIS_ROSTER_H

/* Who is in the fleet: tells about this process every two seconds, and reads what all of them have told while somebody
 * wants to see it. Nothing is decided by it. What others tell is hostile input: it is read field by field. */

#include "redis.h"

#define ROSTER_EVERY (2 * BECALM_S)
#define ROSTER_WORD  64u

/* One process. Its words have letters, digits and . _ - : alone. */
struct roster_entry {
    char id[ROSTER_WORD];
    char name[ROSTER_WORD]; /* of its machine */
    char version[ROSTER_WORD];
    char policy[ROSTER_WORD]; /* a hash of what is in force */
    uint64_t calls_milli;     /* a second, in thousandths */
    uint64_t retries_milli;
    uint64_t budgets;  /* that it shares */
    uint64_t degraded; /* of these, without a lease */
    uint64_t up_seconds;
    uint64_t shared_calls_milli; /* of those above, what the shared budgets are about */
    uint64_t shared_retries_milli;
    uint64_t age_ms; /* how long ago it has told */
};

/* Totals that only grow. */
struct roster_totals {
    uint64_t calls;
    uint64_t retries;
    uint64_t shared_calls; /* of these, by targets that share a budget */
    uint64_t shared_retries;
};
void roster_count(struct roster_totals *, uint64_t calls, uint64_t retries, bool shared);

/* What was counted when it was last told, and when. */
struct roster_rates {
    struct roster_totals told;
    becalm_ns told_at;
    becalm_ns begun_at;
};
/* From here on: another policy may count other targets, and what they counted before is not of this moment. */
void roster_rates_begin(struct roster_rates *, becalm_ns now, const struct roster_totals *);
/* Fills in what each process says of itself: version, machine, how long it has been there, and the rates since the last
 * time. */
void roster_rates(struct roster_rates *, becalm_ns now, const struct roster_totals *, struct roster_entry *);

struct roster;
struct roster_options {
    struct loop *loop;
    struct redis *redis;
    const char *fleet; /* as in keys */
    void (*tell)(void *self, struct roster_entry *);
    void *self;
};

struct roster *roster_make(const struct roster_options *); /* NULL: no memory */
/* Takes leave, as far as the socket takes it at once. Then its redis is freed, and then it. */
void roster_leave(struct roster *);
void roster_free(struct roster *);

/* What all have told, as last read; somebody wants to see it, so it is read for ten seconds more. `read_at` is when;
 * 0: never. Returns how many. */
uint32_t roster_look(struct roster *, const struct roster_entry **, becalm_ns *read_at);
const char *roster_error(const struct roster *); /* what the store said to it; "": nothing is wrong */

/* One line of who.lua's answer. False: it is none. What a newer version tells at its end is not looked at, and an older
 * one tells nothing of shared budgets: then all of its calls count as such. */
bool roster_parse(const char *line, size_t length, struct roster_entry *);

#endif
