/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_SHRINK_H
#define BECALM_PROXY_SHRINK_H

/* Above maxBuffered (buffered.h) the workers cut the connections with the largest buffers, the largest of all first,
 * until the sum is a little below the bound. */

struct worker;
struct task;

/* This worker found that the sum is above the bound; or another worker did, and this one has the largest buffer. */
void shrink(struct worker *);
/* shrink() as the worker's task. */
void shrink_task(struct task *);

#endif
