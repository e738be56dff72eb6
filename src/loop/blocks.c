/* SPDX-License-Identifier: MIT */
#include "blocks.h"

#include <stdlib.h>

static size_t class_of(size_t size)
{
    return size == 0 ? 0 : (size - 1) / BLOCKS_STEP;
}

void *blocks_take(struct blocks *blocks, size_t size)
{
    size_t class = class_of(size);
    if (!BLOCKS_KEEPS || blocks == NULL || size > BLOCKS_LARGEST) {
        return malloc(size);
    }
    void *memory = blocks->free[class];
    if (memory == NULL) {
        return malloc((class + 1) * BLOCKS_STEP);
    }
    blocks->free[class] = *(void **)memory;
    blocks->count[class]--;
    return memory;
}

void blocks_give(struct blocks *blocks, void *memory, size_t size)
{
    size_t class = class_of(size);
    if (memory == NULL) {
        return;
    }
    if (!BLOCKS_KEEPS || blocks == NULL || size > BLOCKS_LARGEST ||
        blocks->count[class] >= BLOCKS_KEPT / BLOCKS_STEP / (class + 1)) {
        free(memory);
        return;
    }
    *(void **)memory = blocks->free[class];
    blocks->free[class] = memory;
    blocks->count[class]++;
}

void blocks_empty(struct blocks *blocks)
{
    for (size_t class = 0; class < BLOCKS_LARGEST / BLOCKS_STEP; class ++) {
        while (blocks->free[class] != NULL) {
            void *memory = blocks->free[class];
            blocks->free[class] = *(void **)memory;
            free(memory);
        }
        blocks->count[class] = 0;
    }
}
