/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_ROOM_H
#define BECALM_PROXY_ROOM_H

/* Places for connections: at most maxConnections of all clients, and maxConnectionsPerClient of one. When all places
 * are taken, an idle connection of the client with the most is closed for the new one; see crowd.h for which. A worker
 * that has none, or only of smaller clients than another worker has, asks the others, and the new connection waits
 * unread until they have looked. Whoever gets no place is answered 503 and has ROOM_TURNED_AWAY others beside it at
 * most, so that refusals need a bounded number of descriptors as well. */

#include <becalm/ns.h>

#define ROOM_WAITING     64u        /* of one worker, at once */
#define ROOM_TURNED_AWAY 256u       /* of one worker; more are closed without an answer */
#define ROOM_PATIENCE    (BECALM_S) /* for the others' answers */

struct client;
struct worker;

struct room {
    struct client *waiting[ROOM_WAITING]; /* in order */
    uint32_t waiting_count;
    uint32_t round;                /* the first so many of them take part in the round that is on; 0: none is */
    uint32_t turned_away;          /* connections without a place that are being told so */
    becalm_ns told_at;             /* the latest line in the log */
    BECALM_ATOMIC(uint64_t) asked; /* bit n: worker n has not looked yet */
    BECALM_ATOMIC(uint32_t) top;   /* crowd_top(), for the others */
};

/* A new connection: admits it, answers it, or lets it wait. */
void room_enter(struct client *);
/* It has waited ROOM_PATIENCE: admits or answers it. */
void room_late(struct client *);
/* A connection is being closed. */
void room_leave(struct client *);

/* Another worker has asked; the others have looked. */
void room_asked(struct worker *);
void room_answered(struct worker *);

/* maxConnections may have become smaller. */
void room_trim(struct worker *);

#endif
