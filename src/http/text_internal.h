/* SPDX-License-Identifier: MIT */
#ifndef BECALM_HTTP_TEXT_INTERNAL_H
#define BECALM_HTTP_TEXT_INTERNAL_H

/* Reading text from its front, byte by byte and without a locale: a take function consumes the part that it found, and
 * leaves the text unchanged if it found none. Bytes are compared one at a time because an absent text is NULL, which
 * memcmp() does not allow.
 */

#include <becalm/http.h>

#include <string.h>

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline char to_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* tchar of RFC 9110, 5.6.2 */
static inline bool is_token_char(char c)
{
    return is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'z') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static inline bool text_ended(struct becalm_text text)
{
    return text.length == 0;
}

/* The first byte; 0 at the end. */
static inline char text_peek(struct becalm_text text)
{
    return text_ended(text) ? '\0' : text.at[0];
}

static inline void text_skip(struct becalm_text *text, size_t bytes)
{
    text->at += bytes;
    text->length -= bytes;
}

/* Spaces and tabs, as HTTP allows them around values. */
static inline void text_skip_blanks(struct becalm_text *text)
{
    while (text_peek(*text) == ' ' || text_peek(*text) == '\t') {
        text_skip(text, 1);
    }
}

static inline struct becalm_text text_trim(struct becalm_text text)
{
    text_skip_blanks(&text);
    while (!text_ended(text) && (text.at[text.length - 1] == ' ' || text.at[text.length - 1] == '\t')) {
        text.length--;
    }
    return text;
}

static inline bool text_take(struct becalm_text *text, char c)
{
    if (text_ended(*text) || text->at[0] != c) {
        return false;
    }
    text_skip(text, 1);
    return true;
}

/* A word, in upper or lower case. */
static inline bool text_take_word(struct becalm_text *text, const char *word)
{
    size_t length = strlen(word);
    if (text->length < length) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (to_lower(text->at[i]) != to_lower(word[i])) {
            return false;
        }
    }
    text_skip(text, length);
    return true;
}

/* The whole text is this word, in upper or lower case. */
static inline bool text_is_word(struct becalm_text text, const char *word)
{
    return text_take_word(&text, word) && text_ended(text);
}

/* Is a Content-Type of this type, with any parameters? */
static inline bool text_is_media_type(struct becalm_text text, const char *type)
{
    const char *end = text.length == 0 ? NULL : memchr(text.at, ';', text.length);
    text.length = end == NULL ? text.length : (size_t)(end - text.at);
    return text_is_word(text_trim(text), type);
}

/* The whole text is exactly this. Always inlined: the length of a constant is then no call, and most texts differ in
 * it. */
static inline __attribute__((always_inline)) bool text_is(struct becalm_text text, const char *word)
{
    return text.length == strlen(word) && text.length > 0 && memcmp(text.at, word, text.length) == 0;
}

/* All digits at the front; saturates, so that a number of any length is read. Returns how many digits there were. */
static inline size_t text_take_number(struct becalm_text *text, uint64_t *number)
{
    size_t digits = 0;
    uint64_t sum = 0;
    while (is_digit(text_peek(*text))) {
        uint64_t digit = (uint64_t)(text->at[0] - '0');
        sum = sum > (UINT64_MAX - digit) / 10 ? UINT64_MAX : sum * 10 + digit;
        text_skip(text, 1);
        digits++;
    }
    *number = sum;
    return digits;
}

/* A token of RFC 9110; false if there is none. */
static inline bool text_take_token(struct becalm_text *text, struct becalm_text *token)
{
    token->at = text->at;
    token->length = 0;
    while (!text_ended(*text) && is_token_char(text->at[0])) {
        text_skip(text, 1);
        token->length++;
    }
    return token->length > 0;
}

/* A quoted string of RFC 8941: visible ASCII and spaces, with \" and \\; *inside keeps the backslashes. */
static inline bool text_take_quoted(struct becalm_text *text, struct becalm_text *inside)
{
    struct becalm_text rest = *text;
    if (!text_take(&rest, '"')) {
        return false;
    }
    inside->at = rest.at;
    while (!text_ended(rest) && rest.at[0] >= ' ' && rest.at[0] <= '~') {
        if (rest.at[0] == '"') {
            inside->length = (size_t)(rest.at - inside->at);
            text_skip(&rest, 1);
            *text = rest;
            return true;
        }
        if (text_take(&rest, '\\') && text_peek(rest) != '"' && text_peek(rest) != '\\') {
            return false;
        }
        text_skip(&rest, 1);
    }
    return false;
}

/* Writing text into memory of a size that the public function has promised to be enough. */
struct text_out {
    char *text;
    size_t size;
    size_t length;
};

/* With the zero byte behind it. */
static inline void out_add_bytes(struct text_out *out, const char *text, size_t length)
{
    BECALM_ASSERT(length < out->size - out->length);
    memcpy(out->text + out->length, text, length + 1);
    out->length += length;
}

static inline void out_add(struct text_out *out, const char *text)
{
    out_add_bytes(out, text, strlen(text));
}

static inline void out_add_number(struct text_out *out, uint64_t number)
{
    char digits[21];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    out_add_bytes(out, digits + at, sizeof digits - 1 - at);
}

#endif
