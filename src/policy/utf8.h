/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_UTF8_H
#define BECALM_POLICY_UTF8_H

/* Text comes from files and from the command line, and not all of it is UTF-8. */

#include <stddef.h>

/* The length of the sequence at `text`, which ends with a zero; 0 if there is none: overlong forms, surrogates and what
 * lies beyond U+10FFFF are none. */
size_t utf8_sequence(const char *text);

#endif
