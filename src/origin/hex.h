/* SPDX-License-Identifier: MIT */
#ifndef BECALM_ORIGIN_HEX_H
#define BECALM_ORIGIN_HEX_H

/* Numbers as lower-case hexadecimal digits, for ids that every call has. */

#include <stdint.h>
#include <string.h>

#define HEX_EACH UINT64_C(0x0101010101010101)

/* The eight digits of 32 bits: each half byte comes to stand in a byte of its own, the highest first in memory, and
 * becomes a digit or a letter there. */
static inline void hex_put_half(char text[8], uint32_t bits)
{
    uint64_t spread = __builtin_bswap32(bits);
    spread = (spread | spread << 16) & UINT64_C(0x0000ffff0000ffff);
    spread = (spread | spread << 8) & UINT64_C(0x00ff00ff00ff00ff);
    spread = (spread >> 4 & UINT64_C(0x000f000f000f000f)) | (spread & UINT64_C(0x000f000f000f000f)) << 8;
    uint64_t letter = (spread + 6 * HEX_EACH) >> 4 & HEX_EACH; /* 10 and more */
    spread += '0' * HEX_EACH + letter * ('a' - '0' - 10);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    spread = __builtin_bswap64(spread);
#endif
    memcpy(text, &spread, sizeof spread);
}

/* All sixteen digits of 64 bits. */
static inline void hex_put(char text[16], uint64_t bits)
{
    hex_put_half(text, (uint32_t)(bits >> 32));
    hex_put_half(text + 8, (uint32_t)bits);
}

#endif
