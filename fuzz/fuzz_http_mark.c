/* SPDX-License-Identifier: MIT */
/* Becalm-Retry: a mark that was read is written and read again as the same mark. */
#include <becalm/http.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[96];
    enum becalm_mark_kind mark = becalm_mark_parse((struct becalm_text){(const char *)data, size});
    size_t length = becalm_mark_write(mark, BECALM_WHY_SHED, text, sizeof text);
    BECALM_ASSERT(becalm_mark_parse((struct becalm_text){text, length}) == mark);
    return 0;
}
