/* SPDX-License-Identifier: MIT */
#ifndef BECALM_WIDE_INTERNAL_H
#define BECALM_WIDE_INTERNAL_H

/* 64-bit products that need more than 64 bits. 128-bit multiplication is one instruction; 128-bit division would be a
 * call into the compiler's library, so there is none. */

#include <stdint.h>

__extension__ typedef unsigned __int128 becalm__wide;

/* The upper 64 bits of a * b. */
static inline uint64_t becalm__wide_high(uint64_t a, uint64_t b)
{
    return (uint64_t)(((becalm__wide)a * b) >> 64);
}

#endif
