/* SPDX-License-Identifier: MIT */
/* Cookie: pairs lie inside of the line, in order and apart; a well-formed line is exactly its pairs joined. */
#include "http/cookie.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct becalm_text line = {(const char *)data, size};
    struct becalm_text name;
    struct becalm_text value;
    const char *end = line.at;
    for (;;) {
        switch (becalm__cookie_take(&line, &name, &value)) {
        case BECALM__COOKIE_PAIR:
            BECALM_ASSERT(name.at >= end && name.length > 0 && value.at == name.at + name.length + 1);
            end = value.at + value.length;
            BECALM_ASSERT(end <= line.at && (const uint8_t *)line.at + line.length == data + size);
            BECALM_ASSERT(value.length == 0 || memchr(value.at, ';', value.length) == NULL);
            BECALM_ASSERT(value.length == 0 || memchr(value.at, ',', value.length) == NULL);
            break;
        case BECALM__COOKIE_END:
            BECALM_ASSERT(end == (const char *)data + size);
            return 0;
        case BECALM__COOKIE_BAD:
            return 0;
        }
    }
}
