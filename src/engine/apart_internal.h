/* SPDX-License-Identifier: MIT */
#ifndef BECALM_APART_INTERNAL_H
#define BECALM_APART_INTERNAL_H

/* Code that most calls do not come by is kept apart from what they do: inlined, its registers would be saved on every
 * way through the function around it, which are stores, and an atomic add waits for every store before it.
 *
 *   DIRECT  what a healthy call always does, and others as well: inlined also where a compiler would rather share it
 *   APART   a part that a policy may have switched on
 *   SELDOM  what a healthy call never reaches: it also lies away from the code that is always read */
#if defined(__GNUC__)
#define BECALM__DIRECT __attribute__((always_inline)) inline
#define BECALM__APART  __attribute__((noinline))
#define BECALM__SELDOM __attribute__((noinline, cold))
#else
#define BECALM__DIRECT inline
#define BECALM__APART
#define BECALM__SELDOM
#endif

#endif
