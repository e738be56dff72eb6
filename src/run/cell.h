/* SPDX-License-Identifier: MIT */
#ifndef BECALM_RUN_CELL_H
#define BECALM_RUN_CELL_H

/* Which cell of a target's windows the calling thread counts in, for drivers that do not number their threads. The
 * address of a thread's stack is a good enough guess. Stacks are megabytes apart, so their low bits are equal; the bits
 * are mixed. */

#include <stdint.h>

#define CELL_BITS  4u
#define CELL_COUNT (1u << CELL_BITS)

static inline uint32_t cell_here(void)
{
    int here;
    return (uint32_t)((uintptr_t)&here >> 16) * UINT32_C(0x9e3779b1) >> (32u - CELL_BITS);
}

#endif
