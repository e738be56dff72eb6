/* SPDX-License-Identifier: MIT */
#ifndef BECALM_METER_BUFFER_H
#define BECALM_METER_BUFFER_H

/* Text that is put together piece by piece: in memory of a fixed size, for a line or a header; or in memory that grows,
 * for a page. Text that does not fit (or finds no memory) sets `full`, and from then on nothing more is added, so that
 * one check at the end is enough. The text is not zero-terminated.
 *
 *   struct buffer page = {.bytes_max = PAGE_MAX};          grows; buffer_free() it
 *   struct buffer line = {.at = memory, .size = sizeof memory};  fixed */

#include <becalm/http.h>

#include <string.h>

/* A zero-terminated text as a text; NULL: absent. */
static inline struct becalm_text text_of(const char *text)
{
    return (struct becalm_text){text, text == NULL ? 0 : strlen(text)};
}

struct buffer {
    char *at;
    size_t length;
    size_t size;
    size_t bytes_max; /* how far it may grow; 0: it is fixed */
    bool full;
};

void buffer_free(struct buffer *); /* of one that grows */

/* How much may still be added to a fixed one. */
static inline size_t buffer_room(const struct buffer *b)
{
    return b->full ? 0 : b->size - b->length;
}

/* All or nothing. */
void buffer_bytes(struct buffer *, const void *bytes, size_t length);
void buffer_chars(struct buffer *, const char *text); /* zero-terminated */
void buffer_number(struct buffer *, uint64_t);
void buffer_padded(struct buffer *, uint64_t, unsigned digits); /* at least so many digits, with zeros in front */

/* value / 10^decimals with all its decimals: (1234, 3) is 1.234. */
void buffer_decimal(struct buffer *, uint64_t value, unsigned decimals);

/* How many bytes at the front of a text stand for themselves in every format: visible ASCII and blanks, without " and
 * \. At most `most`. */
size_t buffer_plain_run(struct becalm_text, size_t most);

/* A JSON string with its quotes, of any bytes: control characters, line and paragraph separators and marks that change
 * the direction of writing are escaped, invalid UTF-8 becomes \ufffd. A string that would take more than `room` bytes
 * with its quotes is cut and ends with "..."; `room` is at least 8. */
void buffer_json_text(struct buffer *, struct becalm_text, size_t room);

/* JSON members and elements; the comma before them is added where one is needed. `key` is a constant without anything
 * to escape, or NULL in an array. Brackets: buffer_json_open(b, "attempts", '['). An absent text is left out. */
void buffer_json_open(struct buffer *, const char *key, char bracket);
void buffer_json_close(struct buffer *, char bracket);
void buffer_json_string(struct buffer *, const char *key, struct becalm_text);
void buffer_json_chars(struct buffer *, const char *key, const char *text); /* NULL: left out */
void buffer_json_number(struct buffer *, const char *key, uint64_t);
void buffer_json_decimal(struct buffer *, const char *key, uint64_t value, unsigned decimals);
void buffer_json_bool(struct buffer *, const char *key, bool);
void buffer_json_null(struct buffer *, const char *key);

#endif
