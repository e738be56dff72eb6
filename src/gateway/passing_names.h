/* SPDX-License-Identifier: MIT */
#ifndef BECALM_GATEWAY_PASSING_NAMES_H
#define BECALM_GATEWAY_PASSING_NAMES_H

/* The names of hosts that no service names (proxy/passing.h), resolved in the control thread while they are in use. */

#include "resolve.h"

#include "proxy/gateway_shared.h"

struct passing_names;

struct passing_names *passing_names_make(struct gateway *, struct resolver *); /* NULL: no memory */
void passing_names_free(struct passing_names *);
void passing_names_ask(struct passing_names *, becalm_ns now);   /* starts resolving new names */
void passing_names_sweep(struct passing_names *, becalm_ns now); /* forgets names that are not in use */

#endif
