/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TOP_JSON_READER_H
#define BECALM_TOP_JSON_READER_H

/* Reads JSON (RFC 8259) from its beginning to its end, without a tree and without memory of its own: the caller says
 * which value it expects next. Policies are read by policy/yaml.h, whose bounds are too small for the state of a large
 * gateway.
 *
 * The first error stops the reader for good: all functions then return nothing, and `failed` is set. So check `failed`
 * once, at the end. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_READER_DEPTH 32u      /* objects and arrays inside each other */
#define JSON_READER_ONE   1000000u /* numbers are read in millionths */

struct json_reader {
    const char *at;
    const char *end;
    uint32_t depth;
    uint64_t begun; /* bit n: the object or array at depth n has a member already */
    bool failed;
};

void json_reader_init(struct json_reader *, const char *text, size_t length);

/* Steps into an object and over its members: while json_reader_key() is true, read or skip the value that follows.
 * Keys that do not fit are cut. */
void json_reader_object(struct json_reader *);
bool json_reader_key(struct json_reader *, char *key, size_t size);

/* The same for arrays: while json_reader_item() is true, read or skip one value. */
void json_reader_array(struct json_reader *);
bool json_reader_item(struct json_reader *);

/* A string, zero-terminated, cut between characters to fit. Control characters, and bytes that are not UTF-8, become
 * question marks. */
void json_reader_text(struct json_reader *, char *text, size_t size);

/* A number in millionths: further decimals are cut, a negative number is 0, a number that does not fit is the largest.
 */
uint64_t json_reader_number(struct json_reader *);

bool json_reader_bool(struct json_reader *);
void json_reader_skip(struct json_reader *); /* skips one value of any kind */

/* True if everything was read and nothing is left. */
bool json_reader_done(struct json_reader *);

/* For a caller whose memory is full, or that finds a value that makes no sense. */
void json_reader_fail(struct json_reader *);

#endif
