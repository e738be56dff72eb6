/* SPDX-License-Identifier: MIT */
#ifndef BECALM_EMBEDDED_H
#define BECALM_EMBEDDED_H

/* Files that are built into the program, so that it needs no files at run time. becalm_embed(target table name=file...)
 * in a CMakeLists.txt turns them, at build time, into these variables, which the user declares:
 *
 *     extern const struct embedded embedded_TABLE[];
 *     extern const char embedded_TABLE_words[]; // all names, separated by spaces: for shells */

#include <stddef.h>

struct embedded {
    const char *name; /* NULL ends the table */
    const unsigned char *text;
    size_t length;
    const char *hash; /* 16 hex digits of its SHA-256, by which files of one name in two programs differ */
    const char *sha1; /* 40 hex digits of its SHA-1, by which Redis names a script */
};

#endif
