/* SPDX-License-Identifier: MIT */
/* For every request, the access log gets one line, within its bound, without control characters. */
#include "journal/log_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(const char *line, size_t length)
{
    BECALM_ASSERT(length > 0 && length <= LOG_LINE_MAX && line[length - 1] == '\n');
    for (size_t i = 0; i + 1 < length; i++) {
        BECALM_ASSERT((unsigned char)line[i] >= ' ' && line[i] != '\x7f');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char line[LOG_LINE_MAX];
    size_t half = size / 2;
    struct becalm_text one = {(const char *)data, half};
    struct becalm_text two = {(const char *)data + half, size - half};
    const struct log_pair pairs[] = {
        {"one", LOG_TEXT, one, 0}, {"two", LOG_TEXT, two, 0}, {"n", LOG_NUMBER, {0}, size}};
    struct log_access access = {.peer = two, .method = one, .target = two, .referer = one, .user_agent = two};
    check_line(line, log_text_line(line, BECALM_LOG_TEXT, BECALM_LOG_INFO, 0, "said", pairs, 3));
    check_line(line, log_text_line(line, BECALM_LOG_JSON, BECALM_LOG_INFO, 0, "said", pairs, 3));
    check_line(line, log_text_access(line, BECALM_ACCESS_JSON, &access));
    check_line(line, log_text_access(line, BECALM_ACCESS_COMBINED, &access));
    return 0;
}
