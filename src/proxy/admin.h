/* SPDX-License-Identifier: MIT */
#ifndef BECALM_PROXY_ADMIN_H
#define BECALM_PROXY_ADMIN_H

/* The admin address: health, metrics, state, decisions, the policy, reload, breakers. A small HTTP/1.1 server on the
 * control thread's loop, so that it answers when all workers are busy, and when the process is out of descriptors. On
 * loopback it needs nothing; elsewhere a bearer token from adminTokenFile. Writes from other sites are refused. */

#include "log.h"
#include "loop.h"

#include <becalm/config.h>

struct admin;
struct gateway;

/* 0; or BECALM_EIO or BECALM_ENOMEM, with a diagnostic where there is something to say. */
int admin_make(struct admin **, struct gateway *, struct loop *, struct log_source *, struct becalm_diags *);
void admin_free(struct admin *);

#endif
