/* SPDX-License-Identifier: MIT */
/* grpc-timeout and the headers in milliseconds: a value that was read is written and read again without growing. */
#include <becalm/http.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static becalm_ns again(enum becalm_deadline_dialect dialect, becalm_ns left)
{
    char text[24];
    struct becalm_text value = {text, becalm_deadline_write(dialect, left, text, sizeof text)};
    struct becalm_deadline_headers headers = {0};
    unsigned dialects;
    if (dialect == BECALM_DEADLINE_GRPC) {
        headers.grpc_timeout = value;
    } else {
        headers.request_deadline_ms = value;
    }
    becalm_ns read = becalm_deadline_read(&headers, &dialects);
    BECALM_ASSERT(dialects == (unsigned)dialect);
    return read;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct becalm_text value = {(const char *)data, size};
    struct becalm_deadline_headers grpc = {.grpc_timeout = value};
    struct becalm_deadline_headers other = {.request_deadline_ms = value, .envoy_expected_ms = value};
    unsigned dialects;
    becalm_ns left = becalm_deadline_read(&grpc, &dialects);
    BECALM_ASSERT(dialects == BECALM_DEADLINE_GRPC || (dialects == 0 && left == BECALM_NEVER));
    if (dialects != 0) {
        /* Writing takes another unit at most, and loses less than one in a hundred thousand. */
        becalm_ns read = again(BECALM_DEADLINE_GRPC, left);
        BECALM_ASSERT(read <= left && left - read <= left / 100000);
    }
    left = becalm_deadline_read(&other, &dialects);
    BECALM_ASSERT(dialects == (BECALM_DEADLINE_REQUEST | BECALM_DEADLINE_ENVOY) ||
                  (dialects == 0 && left == BECALM_NEVER));
    if (dialects != 0 && left < BECALM_NEVER) {
        BECALM_ASSERT(again(BECALM_DEADLINE_REQUEST, left) == left);
    }
    return 0;
}
