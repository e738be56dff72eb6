/* SPDX-License-Identifier: MIT */
#ifndef BECALM_GATEWAY_BUFFERED_DEFAULT_H
#define BECALM_GATEWAY_BUFFERED_DEFAULT_H

#include <stdint.h>

/* The default of maxBuffered: a quarter of the memory that the cgroups of this process allow. `root` is put before all
 * paths, for tests; "" otherwise. */
uint64_t buffered_default(const char *root);

/* All of it; UINT64_MAX: there is no limit. */
uint64_t memory_allowed(const char *root);

#endif
