/* SPDX-License-Identifier: MIT */
/* Random bytes as every kind of value; a value that was read can be written, and is read again as the same value. */
#include "policy/value.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_duration(const char *text)
{
    becalm_ns value = 0;
    becalm_ns again = 1;
    char written[64];
    if (value_duration(text, &value)) {
        BECALM_ASSERT(value <= UINT64_C(315360000) * BECALM_S);
        BECALM_ASSERT(value_write_duration(value, written, sizeof written) == strlen(written));
        BECALM_ASSERT(value_duration(written, &again) && again == value);
    }
}

static void check_numbers(const char *text)
{
    uint64_t value = 0;
    uint64_t scaled = 0;
    uint32_t ppm = 0;
    bool truth;
    BECALM_ASSERT(!value_percent(text, &ppm) || ppm <= 1000000);
    BECALM_ASSERT(!value_size(text, &value) || value <= INT64_MAX);
    BECALM_ASSERT(!value_rate(text, &value) || value <= UINT64_C(1000000000000));
    if (value_integer(text, &value) && value <= UINT64_MAX / 1000) {
        BECALM_ASSERT(value_decimal(text, 1000, &scaled) && scaled == value * 1000);
        BECALM_ASSERT(!value_boolean(text, &truth));
    }
    (void)value_decimal(text, 1000000, &scaled);
    (void)value_address(text);
    (void)value_cidr(text);
    (void)value_redis(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"maxRetries", "initialDelay", "k", "", "connect-failure", "of"};
    char *text = malloc(size + 1);
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = 0;
    check_duration(text);
    check_numbers(text);
    const char *near = value_nearest(text, names, sizeof names / sizeof *names);
    BECALM_ASSERT(near == NULL || near[0] != 0);
    free(text);
    return 0;
}
