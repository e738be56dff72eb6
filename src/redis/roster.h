/* SPDX-License-Identifier: MIT */
#ifndef BECALM_REDIS_ROSTER_H
#define BECALM_REDIS_ROSTER_H

/* The list of the fleet's processes: writes an entry for this process every two seconds, and reads the entries of all
 * processes while a page shows them. No decision depends on it. Entries of other processes are untrusted input: they
 * are parsed field by field. */

#include "redis.h"

#define ROSTER_EVERY (2 * BECALM_S)
#define ROSTER_WORD  64u

/* One process. Its words have letters, digits and . _ - : alone. */
struct roster_entry {
    char id[ROSTER_WORD];
    char name[ROSTER_WORD]; /* of its machine */
    char version[ROSTER_WORD];
    char policy[ROSTER_WORD]; /* a hash of the policy in force */
    uint64_t calls_milli;     /* a second, in thousandths */
    uint64_t retries_milli;
    uint64_t budgets;  /* that it shares */
    uint64_t degraded; /* of these, without a lease */
    uint64_t up_seconds;
    uint64_t shared_calls_milli; /* of the numbers above, the part that shared budgets cover */
    uint64_t shared_retries_milli;
    uint64_t age_ms; /* the age of its entry */
};

/* Totals that only grow. */
struct roster_totals {
    uint64_t calls;
    uint64_t retries;
    uint64_t shared_calls; /* of these, by targets that share a budget */
    uint64_t shared_retries;
};
void roster_count(struct roster_totals *, uint64_t calls, uint64_t retries, bool shared);

/* The counts in the last entry, and its time. */
struct roster_rates {
    struct roster_totals told;
    becalm_ns told_at;
    becalm_ns begun_at;
};
/* Starts the rates anew: a new policy may have other targets, and their counts from before must not look like new
 * calls. */
void roster_rates_begin(struct roster_rates *, becalm_ns now, const struct roster_totals *);
/* Fills in the entry of this process: version, machine, uptime, and the rates since the last entry. */
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
/* Removes the entry from the store, if the socket accepts that at once. After this, free the redis, then the roster. */
void roster_leave(struct roster *);
void roster_free(struct roster *);

/* The entries of all processes, as last read. Each call keeps the reading going for ten seconds more. `read_at` is the
 * time of the last reading; 0: never. Returns the number of entries. */
uint32_t roster_look(struct roster *, const struct roster_entry **, becalm_ns *read_at);
const char *roster_error(const struct roster *); /* the store's error; "": none */

/* Parses one line of who.lua's answer. False: the line is invalid. Fields that a newer version appends are ignored. An
 * older version has no fields for shared budgets: then all of its calls count as covered by them. */
bool roster_parse(const char *line, size_t length, struct roster_entry *);

#endif
