/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_WAITING_H
#define BECALM_PROXY_WAITING_H

/* A worker's calls that wait: in the queues of gates, of which struct waiting (snapshot.h) is one, and in lines for a
 * host to accept connections. Those whose turn has come go to worker->serve. */

#include "worker.h"

void waiting_init(struct worker *);

/* A slot may be free for a call that waits at the gate of this state, or a call came or went there: serves this
 * worker's queue, then wakes others if it is their turn. */
void waiting_serve(struct worker *, struct state *);
/* Another worker left a slot that one of ours may wait for. */
void waiting_serve_all(struct worker *);

/* A call was parked, or a host is back: sees to this worker's lines, when the events of this turn are done. */
void waiting_serve_lines(struct worker *);

#endif
