/* SPDX-License-Identifier: MIT */
/* Tokens of retryOn, one per line, and the list's verdict on every status and code. */
#include <becalm/http.h>

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_status(const struct becalm_retry_on *on, uint32_t status)
{
    struct becalm_http_answer answer = {.status = status, .grpc_status = BECALM_GRPC_NONE};
    struct becalm_outcome outcome;
    becalm_http_classify(on, &answer, &outcome);
    BECALM_ASSERT((outcome.listed == BECALM_LISTED_YES) == becalm_retry_on_has_status(on, status));
    BECALM_ASSERT(outcome.listed == BECALM_LISTED_NO || outcome.kind != BECALM_OUTCOME_PERMANENT);
    BECALM_ASSERT((outcome.kind == BECALM_OUTCOME_OK) == (status < 400));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct becalm_retry_on on = {0};
    struct becalm_text rest = {(const char *)data, size};
    while (rest.length > 0) {
        const char *line = memchr(rest.at, '\n', rest.length);
        size_t length = line == NULL ? rest.length : (size_t)(line - rest.at);
        struct becalm_retry_on before = on;
        if (becalm_retry_on_add(&on, (struct becalm_text){rest.at, length}) != 0) {
            BECALM_ASSERT(memcmp(&before, &on, sizeof on) == 0);
        }
        rest.at += length + (line != NULL);
        rest.length -= length + (line != NULL);
    }
    for (uint32_t status = 100; status < 600; status++) {
        check_status(&on, status);
    }
    BECALM_ASSERT(becalm_retry_on_outcomes(&on) < BECALM_OUTCOME_BIT(BECALM_OUTCOME_COUNT));
    return 0;
}
