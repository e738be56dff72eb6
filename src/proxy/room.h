/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_ROOM_H
#define BECALM_PROXY_ROOM_H

/* Places for connections: at most maxConnections of all clients, and maxConnectionsPerClient of one. When all places
 * are taken, an idle connection of the client with the most is closed for the new one (crowd.h chooses it). If a worker
 * has no idle connection, or another worker has a larger client, it asks the other workers, and the new connection
 * waits unread for their reply. A connection that gets no place is answered with 503; at most ROOM_TURNED_AWAY
 * connections that were refused are open, so that refusals need a bounded number of descriptors as well. */

#include "worker.h"

#include <stdbool.h>

#define ROOM_WAITING     64u  /* of one worker, at once */
#define ROOM_TURNED_AWAY 256u /* of one worker; more are closed without an answer */

/* Sets up the worker's room, and its `places`. False: no memory. */
bool room_make(struct worker *);
void room_free(struct worker *);

/* asked: another worker needs a place for a connection. answered: all other workers have looked for one. */
void room_asked(struct worker *);
void room_answered(struct worker *);

/* No descriptor is left for a new connection, of a client or to a host: closes connections that it would close if all
 * places were taken, of the worker that has the client with the most. Call it when no connection's function is on the
 * stack. */
enum worker_squeeze room_squeeze(struct worker *);
/* Connections that have not sent their PROXY protocol header yet have come to the worker: they can be given up, too. */
void room_greets(struct worker *);
/* Another worker has asked for it. */
void room_squeeze_here(struct worker *);

/* maxConnections may have become smaller. */
void room_trim(struct worker *);

#endif
