/* SPDX-License-Identifier: MIT */
/* Retry-After and Date: any bytes, against any wall clock. The first line is the Date, the rest the Retry-After. */
#include <becalm/http.h>

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t wall;
    if (size < sizeof wall) {
        return 0;
    }
    memcpy(&wall, data, sizeof wall);
    const char *text = (const char *)data + sizeof wall;
    size -= sizeof wall;
    const char *line = memchr(text, '\n', size);
    size_t first = line == NULL ? 0 : (size_t)(line - text) + 1;
    struct becalm_text date = {text, first == 0 ? 0 : first - 1};
    struct becalm_text value = {text + first, size - first};
    becalm_ns wait = 0;
    int64_t seconds = 0;
    if (becalm_retry_after_parse(value, date, wall, &wait)) {
        BECALM_ASSERT(wait <= 365 * 86400 * BECALM_S && wait % BECALM_S == 0);
    }
    if (becalm_http_date_parse(value, wall, &seconds)) {
        BECALM_ASSERT(seconds >= INT64_C(-62135596800) && seconds <= INT64_C(253402300800));
        BECALM_ASSERT(becalm_retry_after_parse(value, date, wall, &wait));
    }
    return 0;
}
