/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_WAITING_H
#define BECALM_PROXY_WAITING_H

/* A worker's waiting calls: in the queues of gates (struct waiting in snapshot.h is one queue), and parked until a host
 * accepts connections. Calls whose turn has come are given to worker->serve. */

#include "worker.h"

void waiting_init(struct worker *);

/* A slot may be free for a call that waits at the gate of this state, or a call has entered or left the queue: serves
 * this worker's queue, then wakes other workers if it is their turn. */
void waiting_serve(struct worker *, struct state *);
/* Another worker has left a slot for which a call of this worker may wait. */
void waiting_serve_all(struct worker *);

/* A call was parked, or a host is back: serves this worker's parked calls when the events of this wake-up are done. */
void waiting_serve_lines(struct worker *);

#endif
