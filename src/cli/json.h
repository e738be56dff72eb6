/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CLI_JSON_H
#define BECALM_CLI_JSON_H

/* Writes JSON to a stream: commas, quotes and indentation are its business. Members are written in the order of the
 * calls. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    uint32_t depth;
    bool first; /* nothing stands yet in the innermost object or array */
};

void json_begin(struct json *, FILE *out);
void json_end(struct json *); /* a newline; asserts that everything is closed */

/* `key` is NULL in an array and at the top. */
void json_object(struct json *, const char *key);
void json_object_end(struct json *);
void json_array(struct json *, const char *key);
void json_array_end(struct json *);
void json_text(struct json *, const char *key, const char *value); /* NULL value: null; invalid UTF-8 is replaced */
void json_integer(struct json *, const char *key, uint64_t value);
void json_number(struct json *, const char *key, double value,
                 int decimals); /* trailing zeros are dropped; not finite: null */
void json_boolean(struct json *, const char *key, bool value);
void json_null(struct json *, const char *key);

#endif
