/* SPDX-License-Identifier: MIT */
/* Idempotency-Key: a key lies inside of its value, is not empty, not too long, and visible. */
#include <becalm/http.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct becalm_text value = {(const char *)data, size};
    struct becalm_text key;
    if (becalm_key_parse(value, &key)) {
        BECALM_ASSERT(key.length >= 1 && key.length <= BECALM_KEY_MAX);
        BECALM_ASSERT(key.at >= value.at && key.at + key.length <= value.at + value.length);
        for (size_t i = 0; i < key.length; i++) {
            BECALM_ASSERT(key.at[i] >= ' ' && key.at[i] <= '~');
        }
    }
    return 0;
}
