/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_WORKER_THREAD_H
#define BECALM_PROXY_WORKER_THREAD_H

/* The start of a worker, its thread, which carries out orders, and its end. This file knows all parts of a worker; the
 * parts know only worker.h. */

#include "worker.h"

/* 0, BECALM_ENOMEM, or BECALM_EIO with errno. */
int worker_init(struct worker *, struct gateway *, uint32_t number, struct log_source *);
int worker_start(struct worker *);
void worker_join(struct worker *);
void worker_free(struct worker *);

#endif
