/* SPDX-License-Identifier: MIT */
#include "utf8.h"

/* The zero byte at the end continues nothing, so this never reads past it. */
size_t utf8_sequence(const char *zero_ended)
{
    const unsigned char *text = (const unsigned char *)zero_ended;
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    size_t length = 0;
    if (text[0] < 0x80) {
        return 1;
    }
    if (text[0] >= 0xc2 && text[0] <= 0xdf) {
        length = 2;
    } else if (text[0] >= 0xe0 && text[0] <= 0xef) {
        length = 3;
        low = text[0] == 0xe0 ? 0xa0 : low;
        high = text[0] == 0xed ? 0x9f : high;
    } else if (text[0] >= 0xf0 && text[0] <= 0xf4) {
        length = 4;
        low = text[0] == 0xf0 ? 0x90 : low;
        high = text[0] == 0xf4 ? 0x8f : high;
    } else {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if (text[i] < low || text[i] > high) {
            return 0;
        }
        low = 0x80;
        high = 0xbf;
    }
    return length;
}
