/* SPDX-License-Identifier: MIT */
#ifndef BECALM_MESSAGE_TEXT_SINK_H
#define BECALM_MESSAGE_TEXT_SINK_H

/* Text that grows in a buffer of fixed size; a text that does not fit sets `full` and is left out. */

#include <becalm/http.h>

#include <string.h>

struct text_sink {
    char *at;
    size_t length;
    size_t size;
    bool full;
};

void text_put(struct text_sink *, struct becalm_text);
void text_put_number(struct text_sink *, uint64_t);

/* Always inlined, so that a constant's length is known and its copy needs no call. */
static inline __attribute__((always_inline)) void text_put_chars(struct text_sink *out, const char *text)
{
    size_t length = strlen(text);
    if (length > out->size - out->length) {
        out->full = true;
        return;
    }
    if (length > 0) {
        memcpy(out->at + out->length, text, length);
        out->length += length;
    }
}

/* A number in decimal digits, somewhere in the array. */
#define TEXT_DIGITS_MAX 20u
struct becalm_text text_digits(char digits[TEXT_DIGITS_MAX], uint64_t number);

#endif
