/* SPDX-License-Identifier: MIT */
#include "loop/blocks.h"

#include "lib/check.h"

static void test_blocks__what_is_given_back_is_for_the_next_who_wants_as_much(void **state)
{
    (void)state;
    struct blocks blocks = {0};
    void *small = blocks_take(&blocks, 97);
    void *large = blocks_take(&blocks, BLOCKS_LARGEST);
    memset(small, 1, 97);
    memset(large, 2, BLOCKS_LARGEST);
    blocks_give(&blocks, small, 97);
    blocks_give(&blocks, large, BLOCKS_LARGEST);
    void *another = blocks_take(&blocks, 96);
    void *same = blocks_take(&blocks, 128); /* of the same step */
    check_true(another != NULL && another != small);
    check_true(!BLOCKS_KEEPS || same == small);
    memset(same, 3, 128);
    void *last = blocks_take(&blocks, BLOCKS_LARGEST - BLOCKS_STEP + 1);
    check_true(!BLOCKS_KEEPS || last == large);
    blocks_give(&blocks, another, 96);
    blocks_give(&blocks, same, 128);
    blocks_give(&blocks, last, BLOCKS_LARGEST - BLOCKS_STEP + 1);
    blocks_give(&blocks, NULL, 1);
    blocks_empty(&blocks);
    for (size_t i = 0; i < BLOCKS_LARGEST / BLOCKS_STEP; i++) {
        check_true(blocks.free[i] == NULL && blocks.count[i] == 0);
    }
}

static void test_blocks__it_keeps_no_more_than_it_may(void **state)
{
    (void)state;
    enum { MORE = BLOCKS_KEPT / 1024 + 10 };
    static void *taken[MORE];
    struct blocks blocks = {0};
    for (int i = 0; i < MORE; i++) {
        taken[i] = blocks_take(&blocks, 1024);
    }
    for (int i = 0; i < MORE; i++) {
        blocks_give(&blocks, taken[i], 1024);
    }
    check_eq_u64(blocks.count[1024 / BLOCKS_STEP - 1], BLOCKS_KEEPS ? BLOCKS_KEPT / 1024 : 0);
    blocks_empty(&blocks);
    void *huge = blocks_take(&blocks, BLOCKS_LARGEST + 1); /* malloc()'s */
    memset(huge, 1, BLOCKS_LARGEST + 1);
    blocks_give(&blocks, huge, BLOCKS_LARGEST + 1);
    for (size_t i = 0; i < BLOCKS_LARGEST / BLOCKS_STEP; i++) {
        check_true(blocks.count[i] == 0);
    }
}

BECALM_TESTS(cmocka_unit_test(test_blocks__what_is_given_back_is_for_the_next_who_wants_as_much),
             cmocka_unit_test(test_blocks__it_keeps_no_more_than_it_may))
