/* SPDX-License-Identifier: MIT */
/* grpc-retry-pushback-ms: a wait of at most 2^31 - 1 ms, or a stop without one. */
#include <becalm/http.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct becalm_pushback pushback = becalm_pushback_parse((struct becalm_text){(const char *)data, size});
    BECALM_ASSERT(pushback.stop ? pushback.wait == 0 : pushback.wait <= INT32_MAX * BECALM_MS);
    return 0;
}
