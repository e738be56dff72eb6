/* SPDX-License-Identifier: MIT */
#include "request_id.h"

#include "hex.h"

#include <becalm/rand.h>

#include <string.h>

uint64_t request_id_make(char text[REQUEST_ID_LENGTH], const char *gateway, uint64_t *state)
{
    uint64_t bits = becalm_rand_next(state);
    memcpy(text, gateway, REQUEST_ID_LENGTH / 2);
    hex_put(text + REQUEST_ID_LENGTH / 2, bits);
    return bits;
}
