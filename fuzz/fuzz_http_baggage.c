/* SPDX-License-Identifier: MIT */
/* The member deadline-ms of baggage, wherever it stands: a member put in front or behind is found, and the least wins.
 */
#include <becalm/http.h>

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static becalm_ns read_baggage(const char *text, size_t length, unsigned *dialects)
{
    struct becalm_deadline_headers headers = {.baggage = {text, length}};
    return becalm_deadline_read(&headers, dialects);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char member[] = "deadline-ms=5,";
    char text[1024 + sizeof member];
    unsigned dialects;
    becalm_ns left = read_baggage((const char *)data, size, &dialects);
    BECALM_ASSERT(dialects == BECALM_DEADLINE_BAGGAGE || (dialects == 0 && left == BECALM_NEVER));
    if (size <= 1024) {
        memcpy(text, member, sizeof member - 1);
        memcpy(text + sizeof member - 1, data, size);
        becalm_ns both = read_baggage(text, sizeof member - 1 + size, &dialects);
        BECALM_ASSERT(dialects == BECALM_DEADLINE_BAGGAGE && both == becalm_ns_min(left, 5 * BECALM_MS));
    }
    return 0;
}
