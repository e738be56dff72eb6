/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CLI_REPLACE_H
#define BECALM_CLI_REPLACE_H

/* A file that is written whole or not at all: into a new file beside it, which then replaces it. A pipe or /dev/stdout,
 * which is no plain file, is written directly. */

#include <stdbool.h>
#include <stdio.h>

struct replace {
    FILE *out;
    char *path;      /* where it ends up, links followed */
    char *temporary; /* NULL: written directly */
};

/* 0, or -1 with errno: nothing is open then. */
int replace_open(struct replace *, const char *path);

/* Puts the file in its place; 0, or -1 with errno: all is as it was before. */
int replace_commit(struct replace *);

/* Forgets it, if it has not been committed. Takes a zeroed struct as well. */
void replace_close(struct replace *);

#endif
