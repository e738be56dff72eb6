/* SPDX-License-Identifier: MIT */
#ifndef BECALM_HTTP_UTF8_H
#define BECALM_HTTP_UTF8_H

/* UTF-8, for code that writes text of clients, hosts or files. */

#include <stddef.h>

/* The length of the UTF-8 sequence at `text`, which has `left` bytes and at least one; 0 if there is none: overlong
 * forms, surrogates and values beyond U+10FFFF are none. A zero byte continues nothing, so with a zero-terminated
 * text `left` may be 4. */
static inline size_t utf8_length(const char *text, size_t left)
{
    const unsigned char *at = (const unsigned char *)text;
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    size_t length = 0;
    if (at[0] < 0x80) {
        return 1;
    }
    if (at[0] >= 0xc2 && at[0] <= 0xdf) {
        length = 2;
    } else if (at[0] >= 0xe0 && at[0] <= 0xef) {
        length = 3;
        low = at[0] == 0xe0 ? 0xa0 : low;
        high = at[0] == 0xed ? 0x9f : high;
    } else if (at[0] >= 0xf0 && at[0] <= 0xf4) {
        length = 4;
        low = at[0] == 0xf0 ? 0x90 : low;
        high = at[0] == 0xf4 ? 0x8f : high;
    } else {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if (i >= left || at[i] < low || at[i] > high) {
            return 0;
        }
        low = 0x80;
        high = 0xbf;
    }
    return length;
}

#endif
