/* SPDX-License-Identifier: MIT */
#include "loop/bytes.h"

#include "lib/check.h"

/* A reader that never reaches the end of the written bytes does not make the buffer grow for ever. */
static void test_bytes__what_has_been_used_is_room_again(void **state)
{
    struct bytes bytes = {0};
    uint8_t wrote = 0;
    uint8_t read = 0;
    (void)state;
    for (int turn = 0; turn < 2000; turn++) {
        char piece[100];
        for (size_t i = 0; i < sizeof piece; i++) {
            piece[i] = (char)wrote++;
        }
        check_true(bytes_add(&bytes, piece, sizeof piece));
        while (bytes_left(&bytes) > 7) {
            check_true((uint8_t)*bytes_at(&bytes) == read++);
            bytes.from++;
        }
    }
    check_true(bytes.size <= 1024);
    bytes_free(&bytes);
}

BECALM_TESTS(cmocka_unit_test(test_bytes__what_has_been_used_is_room_again))
