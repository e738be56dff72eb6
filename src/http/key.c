/* SPDX-License-Identifier: MIT */
#include "key.h"

void becalm__key_write(const unsigned char random[BECALM__KEY_RANDOM], char text[BECALM__KEY_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < BECALM__KEY_RANDOM; i++) {
        unsigned byte = random[i];
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *text++ = '-';
        }
        byte = i == 6 ? (byte & 0x0f) | 0x40 : byte; /* the version */
        byte = i == 8 ? (byte & 0x3f) | 0x80 : byte; /* the variant */
        *text++ = digits[byte >> 4];
        *text++ = digits[byte & 0x0f];
    }
    *text = '\0';
}
