/* SPDX-License-Identifier: MIT */
#ifndef BECALM_APART_INTERNAL_H
#define BECALM_APART_INTERNAL_H

/* Code that most calls do not run is kept out of line. If it were inlined, the function around it would save registers
 * for it on every path; those are stores, and an atomic add waits for every store before it.
 *
 *   INLINE   code that a healthy call always runs: inlined even where a compiler would rather share it
 *   OUTLINE  a part that a policy may have switched on
 *   COLD     code that a healthy call never runs: it is also placed away from the hot code */
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
