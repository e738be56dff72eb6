/* SPDX-License-Identifier: MIT */
#include "text_sink.h"

#include "unfilled.h"

void text_put(struct text_sink *out, struct becalm_text text)
{
    if (text.length > out->size - out->length) {
        out->full = true;
        return;
    }
    if (text.length > 0) {
        memcpy(out->at + out->length, text.at, text.length);
        out->length += text.length;
    }
}

struct becalm_text text_digits(char digits[TEXT_DIGITS_MAX], uint64_t number)
{
    char *end = digits + TEXT_DIGITS_MAX;
    char *at = end;
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return (struct becalm_text){at, (size_t)(end - at)};
}

void text_put_number(struct text_sink *out, uint64_t number)
{
    UNFILLED char digits[TEXT_DIGITS_MAX];
    text_put(out, text_digits(digits, number));
}
