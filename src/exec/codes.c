/* SPDX-License-Identifier: MIT */
#include "codes.h"

#include <becalm/base.h>

#include <string.h>

#define CODE_MAX 255

bool codes_has(const struct codes *codes, int code)
{
    return code >= 0 && code <= CODE_MAX && (codes->bit[code / 64] >> code % 64 & 1) != 0;
}

void codes_add(struct codes *codes, int first, int last)
{
    BECALM_ASSERT(first >= 0 && last <= CODE_MAX);
    for (int code = first; code <= last; code++) {
        codes->bit[code / 64] |= UINT64_C(1) << code % 64;
    }
}

void codes_remove(struct codes *codes, int code)
{
    BECALM_ASSERT(code >= 0 && code <= CODE_MAX);
    codes->bit[code / 64] &= ~(UINT64_C(1) << code % 64);
}

/* Reads a number up to CODE_MAX. Returns the text after it, or NULL if there is no number. */
static const char *number(const char *text, int *out)
{
    const char *at = text;
    int value = 0;
    while (*at >= '0' && *at <= '9') {
        value = value * 10 + (*at++ - '0');
        if (value > CODE_MAX) {
            return NULL;
        }
    }
    *out = value;
    return at == text ? NULL : at;
}

static bool is_word(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

/* Reads one member of the list. Returns the text after it, or NULL. */
static const char *member(struct codes *codes, const char *text)
{
    size_t length = strcspn(text, ",");
    int first = 0;
    int last = CODE_MAX;
    if (is_word(text, length, "fail") || is_word(text, length, "false")) {
        codes_add(codes, 1, CODE_MAX);
        return text + length;
    }
    if (is_word(text, length, "success") || is_word(text, length, "true")) {
        codes_add(codes, 0, 0);
        return text + length;
    }
    const char *at = number(text, &first);
    if (at == NULL) {
        return NULL;
    }
    last = first;
    if (*at == '-') {
        at = number(at + 1, &last);
    }
    if (at == NULL || at != text + length || last < first) {
        return NULL;
    }
    codes_add(codes, first, last);
    return at;
}

bool codes_parse(struct codes *codes, const char *text)
{
    struct codes read = {{0}};
    for (;;) {
        text = member(&read, text);
        if (text == NULL) {
            return false;
        }
        if (*text == '\0') {
            *codes = read;
            return true;
        }
        text++;
    }
}
