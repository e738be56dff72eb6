/* SPDX-License-Identifier: MIT */
#include "escape.h"

#include <becalm/base.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "http/utf8.h"

#define PIECE_BYTES 12u /* of \U000e0001, the longest escape, and the zero */

/* The character in `length` bytes of UTF-8. */
static uint32_t character_of(const unsigned char *at, size_t length)
{
    uint32_t character = length == 1 ? at[0] : at[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        character = character << 6 | (at[i] & 0x3fu);
    }
    return character;
}

/* Cc and Cf of Unicode, with the separators of lines. Arabic signs that have a shape of their own are not in here. */
static bool is_hidden(uint32_t c)
{
    static const struct {
        uint32_t first;
        uint32_t last;
    } hidden[] = {
        {0x0000, 0x001f}, {0x007f, 0x009f}, {0x00ad, 0x00ad}, {0x061c, 0x061c}, {0x180e, 0x180e},   {0x200b, 0x200f},
        {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
    };
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        if (c >= hidden[i].first && c <= hidden[i].last) {
            return true;
        }
    }
    return false;
}

/* Writes the character at `from` as it is to be shown, and its size to *taken. Returns the size of the piece. */
static size_t piece_write(char piece[PIECE_BYTES], const char *from, size_t *taken)
{
    size_t length = utf8_length(from, 4);
    *taken = length == 0 ? 1 : length;
    uint32_t character = length == 0 ? 0 : character_of((const unsigned char *)from, length);
    if (length == 0 || !is_hidden(character)) {
        memcpy(piece, from, *taken);
        return *taken;
    }
    const char *format = character < 0x80 ? "\\x%02x" : character < 0x10000 ? "\\u%04x" : "\\U%08x";
    return (size_t)snprintf(piece, PIECE_BYTES, format, (unsigned)character);
}

void escape_copy(char *to, size_t size, const char *from)
{
    BECALM_ASSERT(size >= 4);
    size_t used = 0;
    size_t dots_at = 0; /* the last end of a piece that leaves room for dots */
    while (*from != '\0') {
        char piece[PIECE_BYTES];
        size_t taken = 0;
        size_t length = piece_write(piece, from, &taken);
        if (used + length >= size) {
            memcpy(to + dots_at, "...", 4);
            return;
        }
        memcpy(to + used, piece, length);
        used += length;
        from += taken;
        dots_at = used + 4 <= size ? used : dots_at;
    }
    to[used] = '\0';
}

void escape_text(char *text, size_t size)
{
    char copy[ESCAPE_BYTES_MAX];
    BECALM_ASSERT(size <= sizeof copy);
    memcpy(copy, text, strlen(text) + 1);
    escape_copy(text, size, copy);
}
