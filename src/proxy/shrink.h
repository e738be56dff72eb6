/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_SHRINK_H
#define BECALM_PROXY_SHRINK_H

/* What happens beyond maxBuffered (buffered.h): each worker's connections with the largest buffers are cut, the largest
 * of all first, until a little less is waiting. */

struct worker;
struct task;

/* This worker found that too much is waiting; or another one did, and the largest buffer is here. */
void shrink(struct worker *);
/* shrink() as the worker's task. */
void shrink_task(struct task *);

#endif
