/* SPDX-License-Identifier: MIT */
#ifndef BECALM_EXEC_CODES_H
#define BECALM_EXEC_CODES_H

/* A set of exit codes, as a shell sees them: 0 to 255, where 124 stands for an attempt that was cut at its timeout and
 * 128+n for one that died of signal n. */

#include <stdbool.h>
#include <stdint.h>

#define CODE_TIMED_OUT   124 /* as timeout(1) */
#define CODE_OWN_FAILURE 125
#define CODE_NOT_RUN     126 /* found, but it could not be run: as env(1) */
#define CODE_NOT_FOUND   127
#define CODE_SIGNAL      128 /* plus its number */

struct codes {
    uint64_t bit[4]; /* code n is bit n % 64 of word n / 64 */
};

/* "0", "1,75", "1-99,130", "success" or "true" (0), "fail" or "false" (1-255). False, and the set as it was, for
 * anything else. */
bool codes_parse(struct codes *, const char *text);

bool codes_has(const struct codes *, int code);
void codes_add(struct codes *, int first, int last);
void codes_remove(struct codes *, int code);

#endif
