/* SPDX-License-Identifier: MIT */
#ifndef BECALM_APART_INTERNAL_H
#define BECALM_APART_INTERNAL_H

/* Code that most calls do not come by is kept apart from what they do: inlined, its registers would be saved on every
 * way through the function around it, which are stores, and an atomic add waits for every store before it.
 *
 *   INLINE   what a healthy call always does, and others as well: inlined also where a compiler would rather share it
 *   OUTLINE  a part that a policy may have switched on
 *   COLD     what a healthy call never reaches: it also lies away from the code that is always read */
#if defined(__GNUC__)
#define BECALM__INLINE  __attribute__((always_inline)) inline
#define BECALM__OUTLINE __attribute__((noinline))
#define BECALM__COLD    __attribute__((noinline, cold))
#else
#define BECALM__INLINE inline
#define BECALM__OUTLINE
#define BECALM__COLD
#endif

#endif
