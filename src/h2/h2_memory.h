/* SPDX-License-Identifier: MIT */
#ifndef BECALM_H2_H2_MEMORY_H
#define BECALM_H2_H2_MEMORY_H

/* The memory of nghttp2's sessions. What comes and goes with a stream is the worker's, which keeps it for the next
 * ones. The buffer of a session in which frames are made is as large as the largest frame, and nearly all frames are
 * small: it has pages of its own, of which only those count that were written. */

#include "loop/blocks.h"

#include <nghttp2/nghttp2.h>

/* nghttp2 copies this; the blocks must outlive the session. */
nghttp2_mem h2_memory(struct blocks *);

#endif
