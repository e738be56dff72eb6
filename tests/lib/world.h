/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TESTS_WORLD_H
#define BECALM_TESTS_WORLD_H

/* A small world in virtual time for golden stories: calls with scripted replies run against one target, and every step
 * is written down in one line. No randomness beyond a fixed seed, so a story reads the same every time.
 *
 *   [  0ms] call 1 begins -> send 0
 *   [ 40ms] call 1 got rejected 503 on 0 -> wait 85ms (backoff)
 *   [125ms] call 1 wakes -> send 1
 */

#include <becalm/call.h>

#define WORLD_CALLS_MAX   64
#define WORLD_REPLIES_MAX 8
#define WORLD_TRACE_BYTES 16384

/* The callee's reply to one attempt: the attempt's end comes `after`; an attempt without a reply hangs for ever. */
struct reply {
    becalm_ns after;
    struct becalm_outcome outcome;
    bool head_first; /* the head comes `after`, the end `body` later */
    becalm_ns body;
    bool hangs;
};

struct plan {
    struct becalm_request request;
    struct reply reply[WORLD_REPLIES_MAX]; /* by attempt number */
    bool can_wait;                         /* in the gate's queue */
    bool can_park;                         /* in the line of those that wait for a host */
};

struct flight {
    bool busy;
    bool refused; /* no process listens at the address */
    bool headed;
    becalm_ns at;
    uint32_t attempt;
};

struct world_call {
    struct plan plan;
    struct becalm_call call;
    struct flight flight[BECALM_SLOTS];
    becalm_ns wake_at;
    unsigned sends;
    unsigned finishes;
};

struct world {
    becalm_ns now;
    uint64_t seed;
    struct becalm_policy policy; /* change it between world_begin and world_open */
    struct becalm_target target;
    struct becalm_queue queue;
    struct becalm_parking line;
    uint32_t refusing; /* bit n: host n refuses connections; without hosts bit 0 is the callee itself */
    void *memory;
    unsigned count;
    struct world_call *call[WORLD_CALLS_MAX];
    char trace[WORLD_TRACE_BYTES];
    size_t traced;
    bool quiet; /* do not write the story down */
};

void world_begin(struct world *);                /* default policy, no jitter */
void world_open(struct world *, uint32_t hosts); /* makes the target */
void world_close(struct world *);

/* A call begins now. Returns its number, from 1. */
unsigned world_call(struct world *, const struct plan *);

/* Lets time pass; all events that are due until then happen. */
void world_run(struct world *, becalm_ns until);

void world_cancel(struct world *, unsigned call);
void world_leave(struct world *, unsigned call); /* its caller closes its side */

/* Forgets the story so far. */
void world_forget(struct world *);

/* The story must be this, to the letter. Prints both on failure. */
void world_expect(struct world *, const char *story);

/* Replies in short. */
struct reply reply_ok(becalm_ns after);
struct reply reply_status(becalm_ns after, uint32_t status); /* 200, 404, 409, 429, 500, 502, 503, 504 */
struct reply reply_kind(becalm_ns after, enum becalm_outcome_kind kind);
struct reply reply_hint(becalm_ns after, uint32_t status, becalm_ns hint);
struct reply reply_mark(becalm_ns after, uint32_t status, enum becalm_mark_kind mark);

#endif
