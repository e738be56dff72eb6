/* SPDX-License-Identifier: MIT */
#include "request_id.h"

#include <becalm/rand.h>

#include <string.h>

#define EACH_BYTE UINT64_C(0x0101010101010101)

/* The eight digits of 32 bits: each half byte comes to stand in a byte of its own, the highest first in memory, and
 * becomes a digit or a letter there. */
static void put_hex(char text[8], uint32_t bits)
{
    uint64_t spread = __builtin_bswap32(bits);
    spread = (spread | spread << 16) & UINT64_C(0x0000ffff0000ffff);
    spread = (spread | spread << 8) & UINT64_C(0x00ff00ff00ff00ff);
    spread = (spread >> 4 & UINT64_C(0x000f000f000f000f)) | (spread & UINT64_C(0x000f000f000f000f)) << 8;
    uint64_t letter = (spread + 6 * EACH_BYTE) >> 4 & EACH_BYTE; /* 10 and more */
    spread += '0' * EACH_BYTE + letter * ('a' - '0' - 10);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    spread = __builtin_bswap64(spread);
#endif
    memcpy(text, &spread, sizeof spread);
}

void request_id_make(char text[REQUEST_ID_LENGTH], const char *gateway, uint64_t *state)
{
    uint64_t bits = becalm_rand_next(state);
    memcpy(text, gateway, REQUEST_ID_LENGTH / 2);
    put_hex(text + REQUEST_ID_LENGTH / 2, (uint32_t)(bits >> 32));
    put_hex(text + REQUEST_ID_LENGTH / 2 + 8, (uint32_t)bits);
}
