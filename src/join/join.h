/* SPDX-License-Identifier: MIT */
#ifndef BECALM_JOIN_JOIN_H
#define BECALM_JOIN_JOIN_H

/* Which calls of a program belong to which request that it got, though it passes on nothing but an id: a sidecar sees
 * both. A request that comes in is entered under its ids with its deadline; a call that goes out finds that, and leaves
 * there that it is not to be tried again, which the answer to the request then says.
 *
 * Ids are known by keyed hashes of 64 bits. The table has a fixed size: the oldest entry of a row makes room, and an
 * entry ends with its request, or with its deadline. All workers share it. A row is guarded by a word that nobody waits
 * for: who finds it taken does without, as if there were no entry. */

#include <becalm/http.h>
#include <becalm/mark.h>

#define JOIN_KEYS 4u

struct join_table;

struct join_table *join_table_make(void); /* NULL: no memory */
void join_table_free(struct join_table *);

/* What became of calls that went out, and of entries: how often, ever; any thread. */
enum join_count {
    JOIN_JOINED,     /* the call belongs to a request that came in */
    JOIN_UNKNOWN,    /* no request came in with any of its ids */
    JOIN_NO_ID,      /* it has none */
    JOIN_STRANGE,    /* peers that are not trusted have come with its id, so that it proves nothing */
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
    uint64_t peer; /* who asks */
    bool trusted;  /* else its ids count only as long as nobody else comes with one of them */
    becalm_ns deadline_at;
};
void join_enter(struct join_table *, const struct join_keys *, const struct join_request *, becalm_ns now);
void join_leave(struct join_table *, const struct join_keys *);

/* A call that goes out. The latest deadline of those who came in with one of its ids; BECALM_NEVER: there is none. */
becalm_ns join_deadline(struct join_table *, const struct join_keys *, becalm_ns now);
/* It has failed, and its answer has this mark. */
struct join_mark {
    enum becalm_mark_kind kind; /* BECALM_MARK_NONE: there is none */
    enum becalm_reason reason;
};
void join_note(struct join_table *, const struct join_keys *, struct join_mark, becalm_ns now);
/* What the answer to the request is to say. Nothing, if several have its ids: nobody knows whose call it was. */
struct join_mark join_mark(struct join_table *, const struct join_keys *, becalm_ns now);

/* What of a field's value is the id; absent: it has none. */
enum join_field { JOIN_TRACEPARENT, JOIN_B3, JOIN_CLOUD_TRACE, JOIN_REQUEST_ID };
struct becalm_text join_id(enum join_field, struct becalm_text value);

#endif
