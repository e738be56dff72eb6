/* SPDX-License-Identifier: MIT */
/* Lists of exit codes: read or refused, and a refusal leaves the set alone. */
#include "exec/codes.h"

#include <becalm/base.h>

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[256];
    struct codes codes = {{1, 2, 3, 4}};
    const struct codes before = codes;
    size_t length = size < sizeof text - 1 ? size : sizeof text - 1;
    memcpy(text, data, length);
    text[length] = '\0';
    if (!codes_parse(&codes, text)) {
        BECALM_ASSERT(memcmp(&codes, &before, sizeof codes) == 0);
        return 0;
    }
    bool any = false;
    for (int code = 0; code < 256; code++) {
        any = any || codes_has(&codes, code);
    }
    BECALM_ASSERT(any);
    return 0;
}
