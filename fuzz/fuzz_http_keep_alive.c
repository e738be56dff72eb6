/* SPDX-License-Identifier: MIT */
/* Keep-Alive: for all values the time is in bounds, and a malformed value changes nothing. */
#include "http/keep_alive.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct becalm__keep_alive keep = {.has_timeout = true, .timeout = 7};
    bool fine = becalm__keep_alive_read((struct becalm_text){(const char *)data, size}, &keep);
    BECALM_ASSERT(keep.has_timeout && keep.timeout <= 7);
    BECALM_ASSERT(fine || (keep.timeout == 7 && !keep.spent));
    return 0;
}
