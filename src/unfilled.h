/* SPDX-License-Identifier: MIT */
#ifndef BECALM_UNFILLED_H
#define BECALM_UNFILLED_H

/* Hardened builds zero every local (cmake/harden.cmake). A local that is marked with this is left alone: it is large,
 * every request has one, and it is written before it is read. */
#if defined(__has_attribute)
#if __has_attribute(uninitialized)
#define UNFILLED __attribute__((uninitialized))
#endif
#endif
#ifndef UNFILLED
#define UNFILLED
#endif

#endif
