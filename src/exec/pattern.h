/* SPDX-License-Identifier: MIT */
#ifndef BECALM_EXEC_PATTERN_H
#define BECALM_EXEC_PATTERN_H

/* Patterns for a command's output: POSIX extended regular expressions, matched against one line at a time, byte by
 * byte, because output may be in any encoding, or in none. */

#include <locale.h>
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#define PATTERN_LINE_MAX 4096 /* a longer line is asked in pieces of this size, which overlap by half */

/* The use of a pattern. */
enum pattern_use {
    PATTERN_RETRY_IF, /* a failure with it is worth a retry */
    PATTERN_FAIL_IF,  /* an attempt that prints it has failed, with any exit code */
    PATTERN_STOP_IF,  /* a failure with it is never retried */
    PATTERN_USES
};

struct patterns {
    bool set[PATTERN_USES];
    regex_t regex[PATTERN_USES];
    locale_t bytes; /* the locale "C", once one is set */
};

/* Compiles a pattern. False: it is invalid, and `why` has the error. */
bool patterns_set(struct patterns *, enum pattern_use, const char *text, char *why, size_t size);
bool patterns_any(const struct patterns *);
void patterns_free(struct patterns *);

/* One stream of one attempt. Zeroed: nothing has come yet. */
struct matcher {
    char line[PATTERN_LINE_MAX + 1];
    size_t length;
    bool continues; /* its first byte is not the line's */
};

/* A new attempt. */
void matcher_begin(struct matcher *);

/* Takes output, and its end, which may lack a newline. found[use] becomes true when a line matches. */
void matcher_feed(struct matcher *, const struct patterns *, const char *bytes, size_t length, bool *found);
void matcher_end(struct matcher *, const struct patterns *, bool *found);

#endif
