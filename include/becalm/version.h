/* SPDX-License-Identifier: MIT */
#ifndef BECALM_VERSION_H
#define BECALM_VERSION_H

/* The version: the macros are the version that a program was compiled with, the function returns the one it runs with.
 * Before 1.0 the two must be equal: visible structs may change with every version, and then the library's SONAME
 * changes too. */

#include <becalm/base.h>

BECALM_BEGIN_DECLS

#define BECALM_VERSION       "0.1.0" /* the build takes it from here */
#define BECALM_VERSION_MAJOR 0
#define BECALM_VERSION_MINOR 1
#define BECALM_VERSION_PATCH 0

/* For comparisons by the preprocessor: 1.2.3 is 10203. */
#define BECALM_VERSION_NUMBER (BECALM_VERSION_MAJOR * 10000 + BECALM_VERSION_MINOR * 100 + BECALM_VERSION_PATCH)

/* "0.1.0". Never NULL. */
BECALM_API const char *becalm_version(void);

BECALM_END_DECLS

#endif
