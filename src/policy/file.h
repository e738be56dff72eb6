/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_FILE_H
#define BECALM_POLICY_FILE_H

/* The text of a file, for the loader. It stops a byte behind the loader's cap, YAML_BYTES_MAX: enough to know that a
 * file is too long. */

#include <becalm/config.h>

#include <stddef.h>
#include <stdio.h>

/* The content of a file, with a zero byte after it; free it. NULL with errno. It may block until the program at the
 * other end of a FIFO writes: `becalm check <(...)`. */
char *file_read(const char *path, size_t *length);
char *file_read_open(FILE *, size_t *length); /* the same, of standard input */

/* The same with a cap of its own. */
char *file_read_most(FILE *, size_t most, size_t *length);

/* The same for a program that must not block: anything but a regular file is refused. NULL: *why has the reason. */
char *file_read_regular(const char *path, size_t *length, const char **why);
/* Where a file is that once was relative to the working directory: there, if the policy's folder has none. */
const char *file_found(const struct becalm_file *);
/* The descriptor of a regular file, or -1. */
int file_open_regular(const char *path, const char **why);

#endif
