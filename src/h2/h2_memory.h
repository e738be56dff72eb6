/* SPDX-License-Identifier: MIT */
#ifndef BECALM_H2_H2_MEMORY_H
#define BECALM_H2_H2_MEMORY_H

/* The memory of HPACK's tables. What comes and goes with heads is the worker's, which keeps it for the next ones. */

#include "loop/blocks.h"

#include <nghttp2/nghttp2.h>

/* HPACK points to it: it and the blocks must outlive the session. */
nghttp2_mem h2_memory(struct blocks *);

#endif
