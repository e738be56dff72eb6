/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TESTS_CHECK_H
#define BECALM_TESTS_CHECK_H

/* The common header of unit tests: cmocka with the headers that it needs before it, checks that print both numbers in
 * decimal and the failed expression, and a main(). */

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The whole of a test program: BECALM_TESTS(cmocka_unit_test(test_a__b), ...). cmocka returns the number of failures,
 * and an exit status of 256 would pass for 0. */
#define BECALM_TESTS(...)                                             \
    int main(void)                                                    \
    {                                                                 \
        const struct CMUnitTest becalm_tests[] = {__VA_ARGS__};       \
        return cmocka_run_group_tests(becalm_tests, NULL, NULL) != 0; \
    }

#define check_eq_u64(actual, expected) check_eq_u64_at((actual), (expected), #actual, __FILE__, __LINE__)
#define check_eq_str(actual, expected) check_eq_str_at((actual), (expected), #actual, __FILE__, __LINE__)
#define check_true(claim)              check_true_at((claim), #claim, __FILE__, __LINE__)

/* The number of random runs, steps or rounds of threads; a quarter of it under a sanitizer, which makes each slow:
 * tests/CMakeLists.txt. */
#if defined(BECALM_FEW_RUNS)
#define RUNS_OF(count) ((count) / 4)
#else
#define RUNS_OF(count) (count)
#endif

/* low <= value <= high */
#define check_between_u64(value, low, high) check_between_u64_at((value), (low), (high), #value, __FILE__, __LINE__)

/* Not inlined: a test has hundreds of them, and to optimise them all was most of the time that it took to compile. */
#define CHECK_FUNCTION static __attribute__((noinline, unused)) void

CHECK_FUNCTION check_eq_u64_at(uint64_t actual, uint64_t expected, const char *what, const char *file, int line)
{
    if (actual != expected) {
        print_error("%s is %" PRIu64 ", expected %" PRIu64 "\n", what, actual, expected);
        _fail(file, line);
    }
}

CHECK_FUNCTION check_eq_str_at(const char *actual, const char *expected, const char *what, const char *file, int line)
{
    if (actual == NULL || strcmp(actual, expected) != 0) {
        print_error("%s is \"%s\", expected \"%s\"\n", what, actual == NULL ? "(NULL)" : actual, expected);
        _fail(file, line);
    }
}

CHECK_FUNCTION check_between_u64_at(uint64_t value, uint64_t low, uint64_t high, const char *what, const char *file,
                                    int line)
{
    if (value < low || value > high) {
        print_error("%s is %" PRIu64 ", expected %" PRIu64 " to %" PRIu64 "\n", what, value, low, high);
        _fail(file, line);
    }
}

CHECK_FUNCTION check_true_at(bool claim, const char *what, const char *file, int line)
{
    if (!claim) {
        print_error("not so: %s\n", what);
        _fail(file, line);
    }
}

#endif
