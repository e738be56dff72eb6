/* SPDX-License-Identifier: MIT */
#include "grpc_text.h"

#include "text_internal.h"

#include <string.h>

/* Apart from grpc.c: libbecalm-curl.a has a copy of this file, which must not bring public names along. */

bool becalm__grpc_is_type(struct becalm_text content_type)
{
    return text_take_word(&content_type, "application/grpc") &&
           (text_ended(content_type) || memchr("+; \t", content_type.at[0], 4) != NULL);
}

uint32_t becalm__grpc_status_read(struct becalm_text field)
{
    uint64_t number = 0;
    if (field.at == NULL) {
        return BECALM_GRPC_NONE;
    }
    bool fine = text_take_number(&field, &number) > 0 && text_ended(field) && number < BECALM_GRPC_COUNT;
    return fine ? (uint32_t)number : BECALM_GRPC_UNKNOWN;
}

uint32_t becalm__grpc_status_both(uint32_t one, uint32_t other)
{
    if (one == BECALM_GRPC_NONE || one == other) {
        return other;
    }
    return other == BECALM_GRPC_NONE ? one : BECALM_GRPC_UNKNOWN;
}
