/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_ROOM_H
#define BECALM_PROXY_ROOM_H

/* Places for connections: at most maxConnections of all clients, and maxConnectionsPerClient of one. When all places
 * are taken, an idle connection of the client with the most is closed for the new one; see crowd.h for which. A worker
 * that has none, or only of smaller clients than another worker has, asks the others, and the new connection waits
 * unread until they have looked. A connection that gets no place is answered 503, and there are at most
 * ROOM_TURNED_AWAY of those, so that refusals need a bounded number of descriptors as well. */

#include <stdbool.h>

#define ROOM_WAITING     64u  /* of one worker, at once */
#define ROOM_TURNED_AWAY 256u /* of one worker; more are closed without an answer */

struct worker;

/* Makes the worker's, and its `places`. False: no memory. */
bool room_make(struct worker *);
void room_free(struct worker *);

/* Another worker has asked; the others have looked. */
void room_asked(struct worker *);
void room_answered(struct worker *);

/* maxConnections may have become smaller. */
void room_trim(struct worker *);

#endif
