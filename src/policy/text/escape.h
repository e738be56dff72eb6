/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_TEXT_ESCAPE_H
#define BECALM_POLICY_TEXT_ESCAPE_H

/* Text of a file, of a command line or of a server, made safe for a terminal. A character that the reader can't see, or
 * that changes how the text around it looks, becomes an escape as in double-quoted YAML: \x1b, \u202e. These are
 * control characters, marks of the writing direction, separators of lines, and characters without a width. Bytes that
 * are no UTF-8 stay as they are: the name of a file may have any. */

#include <stddef.h>

/* Copies `from` to `to`, with escapes. A text without enough room ends with dots, and never inside of a character or an
 * escape. `size` is at least 4. */
void escape_copy(char *to, size_t size, const char *from);

/* The same in place, for a buffer of at most ESCAPE_BYTES_MAX. */
#define ESCAPE_BYTES_MAX 2048u
void escape_text(char *text, size_t size);

#endif
