/* SPDX-License-Identifier: MIT */
/* W3C Trace Context: valid and invalid traceparents, written ones, and sampled traces. */
#include "h1_lab.h"
#include "origin/trace_context.h"

#include <becalm/rand.h>

#define ID   "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"
#define GOOD "00-" ID "-" SPAN "-01"

static bool reads(const char *text, struct trace_parent *parent)
{
    struct becalm_text bare = bytes_bare((struct becalm_text){text, strlen(text)});
    bool is = trace_parent_read(bare, parent);
    free((void *)(uintptr_t)bare.at);
    return is;
}

static void test_trace_context__a_parent_is_read_and_written_again(void **state)
{
    (void)state;
    struct trace_parent parent;
    char text[TRACEPARENT_LENGTH + 1] = {0};
    check_true(!reads("", &parent));
    check_true(reads(GOOD, &parent));
    assert_memory_equal(parent.trace_id, ID, TRACE_ID_LENGTH);
    assert_memory_equal(parent.span_id, SPAN, SPAN_ID_LENGTH);
    check_eq_u64(parent.flags, TRACE_FLAG_SAMPLED);
    trace_parent_write(text, parent.trace_id, parent.span_id, parent.flags);
    check_eq_str(text, GOOD);
}

static void test_trace_context__flags_that_nobody_knows_are_not_passed_on(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned flags;
    } rows[] = {
        {"00-" ID "-" SPAN "-00", 0},
        {"00-" ID "-" SPAN "-02", TRACE_FLAG_RANDOM},
        {"00-" ID "-" SPAN "-03", TRACE_FLAG_RANDOM | TRACE_FLAG_SAMPLED},
        {"00-" ID "-" SPAN "-ff", TRACE_FLAG_RANDOM | TRACE_FLAG_SAMPLED},
        {"00-" ID "-" SPAN "-f8", 0},
        {"00-" ID "-" SPAN "-10", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct trace_parent parent;
        check_true(reads(rows[i].text, &parent));
        check_eq_u64(parent.flags, rows[i].flags);
    }
}

static void test_trace_context__a_later_version_is_read_as_far_as_it_is_known(void **state)
{
    (void)state;
    static const char *const good[] = {
        "01-" ID "-" SPAN "-01",
        "cc-" ID "-" SPAN "-01",
        "fe-" ID "-" SPAN "-01",
        "01-" ID "-" SPAN "-01-",
        "01-" ID "-" SPAN "-01-what-the-future-will-be-like",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct trace_parent parent;
        check_true(reads(good[i], &parent) && parent.flags == TRACE_FLAG_SAMPLED);
    }
}

/* The rows of the W3C's own test suite, and each place of a good one with a byte that may not stand there. */
static void test_trace_context__what_is_none(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "ff-" ID "-" SPAN "-01",
        "ff-" ID "-" SPAN "-01-more",
        GOOD ".",
        GOOD "-",
        GOOD "-what-the-future-will-be-like",
        "cc-" ID "-" SPAN "-01.what-the-future-will-not-be-like",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" ID "-0000000000000000-01",
        "0-" ID "-" SPAN "-01",
        "000-" ID "-" SPAN "-01",
        "00-" ID "-" SPAN "-1",
        "00-" ID "-" SPAN,
        "00-0af7651916cd43dd8448eb211c80319-" SPAN "-01",
        "00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
        " " GOOD,
    };
    struct trace_parent parent;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check_true(!reads(bad[i], &parent));
    }
    for (size_t i = 0; i < TRACEPARENT_LENGTH; i++) {
        static const char bytes[] = "gG.:_A \x80";
        for (size_t k = 0; k < sizeof bytes; k++) { /* with the zero at its end */
            char text[] = GOOD;
            text[i] = bytes[k];
            struct becalm_text value = {text, TRACEPARENT_LENGTH};
            check_true(!trace_parent_read(value, &parent));
        }
    }
}

static bool finds(const char *fields, struct trace_parent *parent)
{
    struct lab lab;
    char text[512];
    snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", fields);
    request_of(&lab, text);
    bool found = trace_parent_find(&lab.head, parent);
    lab_drop(&lab);
    return found;
}

static void test_trace_context__a_request_has_one_and_only_one(void **state)
{
    (void)state;
    struct trace_parent parent;
    check_true(!finds("", &parent));
    check_true(finds("TraceParent: \t" GOOD " \r\n", &parent));
    check_true(!finds("traceparent: " GOOD "\r\ntraceparent: " GOOD "\r\n", &parent));
    check_true(!finds("trace-parent: " GOOD "\r\n", &parent));
    check_true(!finds("connection: traceparent\r\ntraceparent: " GOOD "\r\n", &parent));
}

static void test_trace_context__spans_of_a_call_are_different_and_never_0(void **state)
{
    (void)state;
    uint64_t draws = 1;
    uint64_t zero = 0;
    for (int i = 0; i < 100; i++) {
        uint64_t seed = becalm_rand_next(&draws);
        for (uint32_t n = 0; n < 9; n++) {
            for (uint32_t k = 0; k < n; k++) {
                check_true(trace_span(seed, n) != trace_span(seed, k));
            }
        }
    }
    zero -= UINT64_C(0x9e3779b97f4a7c15); /* whose next value is 0 */
    check_true(trace_span(zero, 0) != 0);
}

static void test_trace_context__the_share_that_is_sampled_is_the_one_that_was_asked_for(void **state)
{
    (void)state;
    static const uint32_t shares[] = {0, 1, 10000, 500000, 999999, 1000000};
    check_eq_u64(trace_least(0), UINT64_C(1) << 56);
    check_eq_u64(trace_least(1000000), 0);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        uint64_t draws = 7;
        uint64_t sampled = 0;
        const uint64_t all = 1000000;
        for (uint64_t n = 0; n < all; n++) {
            sampled += trace_sampled(becalm_rand_next(&draws), trace_least(shares[i]));
        }
        uint64_t slack = shares[i] == 0 || shares[i] == all ? 0 : 2000;
        check_between_u64(sampled + slack, shares[i], shares[i] + 2 * slack);
    }
    /* The part of the id that others decide by is the same: its last 56 bits. */
    check_true(trace_sampled(UINT64_C(0x00ffffffffffffff), trace_least(1)));
    check_true(!trace_sampled(UINT64_C(0xff00000000000000), trace_least(999999)));
}

BECALM_TESTS(cmocka_unit_test(test_trace_context__a_parent_is_read_and_written_again),
             cmocka_unit_test(test_trace_context__flags_that_nobody_knows_are_not_passed_on),
             cmocka_unit_test(test_trace_context__a_later_version_is_read_as_far_as_it_is_known),
             cmocka_unit_test(test_trace_context__what_is_none),
             cmocka_unit_test(test_trace_context__a_request_has_one_and_only_one),
             cmocka_unit_test(test_trace_context__spans_of_a_call_are_different_and_never_0),
             cmocka_unit_test(test_trace_context__the_share_that_is_sampled_is_the_one_that_was_asked_for))
