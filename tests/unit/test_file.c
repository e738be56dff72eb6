/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "policy/file.h"

#include "check.h"

#include <errno.h>
#include <malloc.h>

/* Reads a file of `size` bytes with a cap. */
static char *read_of(size_t size, size_t most, size_t *length)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    for (size_t i = 0; i < size; i++) {
        check_true(fputc('a' + (int)(i % 23), file) != EOF);
    }
    rewind(file);
    char *text = file_read_most(file, most, length);
    (void)fclose(file);
    assert_non_null(text);
    return text;
}

static void test_file__is_read_as_it_is_and_ends_with_a_zero(void **state)
{
    static const size_t sizes[] = {0, 1, 8191, 8192, 8193, 16384, 16385, 99999, 100000};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t length;
        char *text = read_of(sizes[i], 100000, &length);
        check_eq_u64(length, sizes[i]);
        check_eq_u64(strlen(text), sizes[i]);
        for (size_t k = 0; k < length; k++) {
            assert_int_equal(text[k], 'a' + (int)(k % 23));
        }
        free(text);
    }
}

static void test_file__stops_one_byte_behind_the_cap(void **state)
{
    (void)state;
    size_t length;
    free(read_of(100002, 100000, &length));
    check_eq_u64(length, 100001);
    free(read_of(9, 4, &length));
    check_eq_u64(length, 5);
}

static void test_file__a_small_one_takes_little_memory(void **state)
{
    (void)state;
    size_t length;
    char *text = read_of(100, 1 << 20, &length);
    check_between_u64(malloc_usable_size(text), 101, 16384);
    free(text);
}

static void test_file__an_error_is_told(void **state)
{
    (void)state;
    size_t length;
    assert_null(file_read("/", &length)); /* a directory can be opened, and not read */
    check_eq_u64((uint64_t)errno, EISDIR);
    check_eq_u64(length, 0);
}

BECALM_TESTS(cmocka_unit_test(test_file__is_read_as_it_is_and_ends_with_a_zero),
             cmocka_unit_test(test_file__stops_one_byte_behind_the_cap),
             cmocka_unit_test(test_file__a_small_one_takes_little_memory),
             cmocka_unit_test(test_file__an_error_is_told))
