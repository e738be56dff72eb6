/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TESTS_H1_LAB_H
#define BECALM_TESTS_H1_LAB_H

/* The common part of the tests of the HTTP/1 codec: heads in memory of exactly their length, so that the sanitizers see
 * a parser that reads too far, and their ends found byte by byte as well as at once. */

#include "h1/h1.h"
#include "http_lab.h"

/* Bytes with their length: they may hold zero bytes. */
#define BYTES(literal)               \
    {                                \
        literal, sizeof(literal) - 1 \
    }

static const struct h1_limits limits = {.head_bytes = 65536};

static inline struct becalm_text bytes_bare(struct becalm_text bytes)
{
    char *copy = malloc(bytes.length == 0 ? 1 : bytes.length);
    assert_non_null(copy);
    memcpy(copy, bytes.at, bytes.length);
    return (struct becalm_text){copy, bytes.length};
}

/* Where the head ends, which must not depend on how it came. */
static inline size_t head_end(struct becalm_text bytes)
{
    size_t at_once = h1_head_end(bytes.at, bytes.length, 0);
    size_t by_bytes = 0;
    for (size_t length = 1; length <= bytes.length && by_bytes == 0; length++) {
        by_bytes = h1_head_end(bytes.at, length, length - 1);
        check_true(by_bytes == 0 || by_bytes == length);
    }
    check_eq_u64(by_bytes, at_once);
    return at_once;
}

static inline void check_text(struct becalm_text actual, const char *expected)
{
    if (expected == NULL) {
        check_true(actual.at == NULL);
        return;
    }
    if (actual.at == NULL || actual.length != strlen(expected) || memcmp(actual.at, expected, actual.length) != 0) {
        fail_msg("\"%.*s\", expected \"%s\"", (int)actual.length, actual.at == NULL ? "" : actual.at, expected);
    }
}

/* A head as it is after h1_parse_*(), with its bytes. */
struct lab {
    struct becalm_text bytes;
    struct head head;
    struct h1_verdict verdict;
};

static inline void lab_request(struct lab *lab, struct becalm_text text)
{
    lab->bytes = bytes_bare(text);
    memset(&lab->head, 0xa5, sizeof lab->head); /* so that a field that was not filled shows */
    lab->verdict = h1_parse_request(lab->bytes.at, head_end(lab->bytes), &limits, &lab->head);
}

static inline void lab_answer_to(struct lab *lab, struct becalm_text text, bool to_head, bool to_connect)
{
    lab->bytes = bytes_bare(text);
    memset(&lab->head, 0xa5, sizeof lab->head);
    lab->verdict = h1_parse_answer(lab->bytes.at, head_end(lab->bytes), &limits, to_head, to_connect, &lab->head);
}

static inline void lab_drop(struct lab *lab)
{
    text_drop(lab->bytes);
}

/* It must be good. */
static inline void request_of(struct lab *lab, const char *literal)
{
    lab_request(lab, text(literal));
    if (lab->verdict.kind != H1_OK) {
        fail_msg("%u %s: %s", lab->verdict.status, lab->verdict.what, literal);
    }
}

static inline void answer_of(struct lab *lab, const char *literal)
{
    lab_answer_to(lab, text(literal), false, false);
    if (lab->verdict.kind != H1_OK) {
        fail_msg("%s: %s", lab->verdict.what, literal);
    }
}

#endif
