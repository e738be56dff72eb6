/* SPDX-License-Identifier: MIT */
#ifndef BECALM_JOIN_JOIN_H
#define BECALM_JOIN_JOIN_H

/* Joins the outgoing calls of a program to its incoming requests, although the program passes on nothing but an id: its
 * sidecar sees both. An incoming request is entered under its ids with its deadline. An outgoing call finds the entry
 * and its deadline. If the call fails with a "do not retry" mark, the mark is stored in the entry, and the answer to
 * the request gets it.
 *
 * Ids are known by keyed hashes of 64 bits. The table has a fixed size: the oldest entry of a row makes room, and an
 * entry ends with its request, or with its deadline. All workers share it. A row is guarded by a word without waiting:
 * a worker that finds it taken goes on as if there were no entry. */

#include <becalm/http.h>
#include <becalm/mark.h>

#define JOIN_KEYS 4u

struct join_table;

struct join_table *join_table_make(void); /* NULL: no memory */
void join_table_free(struct join_table *);

/* How lookups of outgoing calls ended, and what happened to entries: counts since the start, from any thread. */
enum join_count {
    JOIN_JOINED,     /* the call belongs to a request that came in */
    JOIN_UNKNOWN,    /* no request came in with any of its ids */
    JOIN_NO_ID,      /* the call has no id */
    JOIN_STRANGE,    /* peers that are not trusted have used its id, so the id proves nothing */
    JOIN_EXPIRED,    /* the entry of its request was over, by its deadline or its minute */
    JOIN_PUSHED_OUT, /* an entry of a request in progress made room for another: the table is full there */
    JOIN_COUNTS
};
uint64_t join_count(const struct join_table *, enum join_count);

/* The ids of one request. */
struct join_keys {
    uint32_t count;
    uint64_t key[JOIN_KEYS];
};

/* A request that comes in. */
struct join_request {
    uint64_t peer; /* the client of the request */
    bool trusted;  /* else its ids count only while no other peer uses one of them */
    becalm_ns deadline_at;
};
void join_enter(struct join_table *, const struct join_keys *, const struct join_request *, becalm_ns now);
void join_leave(struct join_table *, const struct join_keys *);

/* For an outgoing call: the latest deadline of the incoming requests with one of its ids; BECALM_NEVER: there is none.
 */
becalm_ns join_deadline(struct join_table *, const struct join_keys *, becalm_ns now);
/* An outgoing call has failed, and its answer has this mark. */
struct join_mark {
    enum becalm_mark_kind kind; /* BECALM_MARK_NONE: there is none */
    enum becalm_reason reason;
};
void join_note(struct join_table *, const struct join_keys *, struct join_mark, becalm_ns now);
/* The mark for the answer to the request. None, if several requests have its ids: then it is unknown which of them made
 * the call. */
struct join_mark join_mark(struct join_table *, const struct join_keys *, becalm_ns now);

/* The id in a field's value; absent: there is none. */
enum join_field { JOIN_TRACEPARENT, JOIN_B3, JOIN_CLOUD_TRACE, JOIN_REQUEST_ID };
struct becalm_text join_id(enum join_field, struct becalm_text value);

#endif
