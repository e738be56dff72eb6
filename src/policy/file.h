/* SPDX-License-Identifier: MIT */
#ifndef BECALM_POLICY_FILE_H
#define BECALM_POLICY_FILE_H

/* The text of a file, for the loader. It stops a byte behind the loader's cap, YAML_BYTES_MAX: enough to know that a
 * file is too long. */

#include <stddef.h>
#include <stdio.h>

/* NULL with errno; else free it. */
char *file_read(const char *path, size_t *length);
char *file_read_open(FILE *, size_t *length); /* likewise, of standard input */

#endif
