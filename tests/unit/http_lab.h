/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TESTS_HTTP_LAB_H
#define BECALM_TESTS_HTTP_LAB_H

/* The common part of the tests of src/http: texts from literals, lists from a line, and copies without a zero byte
 * behind them, so that the sanitizers see a parser that reads too far. */

#include <becalm/http.h>

#include <limits.h>
#include <stdio.h>

#include "check.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Of a NULL: absent. */
static inline struct becalm_text text(const char *literal)
{
    return (struct becalm_text){literal, literal == NULL ? 0 : strlen(literal)};
}

/* Memory of exactly this length; free it as text.at. */
static inline struct becalm_text text_bare(const char *literal)
{
    size_t length = strlen(literal);
    char *copy = malloc(length == 0 ? 1 : length);
    assert_non_null(copy);
    memcpy(copy, literal, length);
    return (struct becalm_text){copy, length};
}

static inline void text_drop(struct becalm_text copy)
{
    free((void *)(uintptr_t)copy.at);
}

/* A list of tokens with single spaces between them. */
static inline struct becalm_retry_on retry_on(const char *tokens)
{
    struct becalm_retry_on on = {0};
    while (*tokens != '\0') {
        size_t length = strcspn(tokens, " ");
        assert_int_equal(becalm_retry_on_add(&on, (struct becalm_text){tokens, length}), 0);
        tokens += length;
        tokens += strspn(tokens, " ");
    }
    return on;
}

static inline struct becalm_outcome classify(const char *tokens, struct becalm_http_answer answer)
{
    struct becalm_retry_on on = retry_on(tokens);
    struct becalm_outcome outcome;
    memset(&outcome, 0xa5, sizeof outcome); /* so that a field that was not filled shows */
    becalm_http_classify(&on, &answer, &outcome);
    return outcome;
}

static inline struct becalm_outcome classify_status(const char *tokens, uint32_t status)
{
    return classify(tokens, (struct becalm_http_answer){.status = status, .grpc_status = BECALM_GRPC_NONE});
}

#define DEFAULTS "connect-failure refused-stream reset timeout gateway-error 429 unavailable"

#endif
