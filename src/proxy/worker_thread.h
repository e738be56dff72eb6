/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_WORKER_THREAD_H
#define BECALM_PROXY_WORKER_THREAD_H

/* A worker's beginning, its thread that does what it is ordered to, and its end. It knows all that a worker has; they
 * know of the worker what worker.h says. */

#include "worker.h"

/* 0, BECALM_ENOMEM, or BECALM_EIO with errno. */
int worker_init(struct worker *, struct gateway *, uint32_t number, struct log_source *);
int worker_start(struct worker *);
void worker_join(struct worker *);
void worker_free(struct worker *);

#endif
