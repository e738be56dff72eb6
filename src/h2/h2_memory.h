/* SPDX-License-Identifier: MIT */
#ifndef BECALM_H2_H2_MEMORY_H
#define BECALM_H2_H2_MEMORY_H

/* The memory of HPACK's tables. Memory that is needed for each head comes from the worker, which keeps it for the next
 * head. */

#include "loop/blocks.h"

#include <nghttp2/nghttp2.h>

/* HPACK points to it: it and the blocks must outlive the session. */
nghttp2_mem h2_memory(struct blocks *);

#endif
