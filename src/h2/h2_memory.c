/* SPDX-License-Identifier: MIT */
#include "h2_memory.h"

#include <stdalign.h>
#include <string.h>

/* nghttp2 frees memory without its size, so the size is stored before each block. */
struct block {
    alignas(max_align_t) size_t size; /* with this */
};

static void *take(size_t size, void *user)
{
    size_t all = sizeof(struct block) + size;
    if (all < size) {
        return NULL;
    }
    struct block *block = blocks_take(user, all);
    if (block == NULL) {
        return NULL;
    }
    block->size = all;
    return block + 1;
}

static void give(void *memory, void *user)
{
    struct block *block = memory;
    if (block == NULL) {
        return;
    }
    block--;
    blocks_give(user, block, block->size);
}

static void *take_zeroed(size_t count, size_t size, void *user)
{
    size_t all;
    void *memory = __builtin_mul_overflow(count, size, &all) ? NULL : take(all, user);
    return memory == NULL ? NULL : memset(memory, 0, all);
}

static void *take_again(void *memory, size_t size, void *user)
{
    void *larger = take(size, user);
    if (larger != NULL && memory != NULL) {
        size_t had = ((struct block *)memory - 1)->size - sizeof(struct block);
        memcpy(larger, memory, had < size ? had : size);
        give(memory, user);
    }
    return larger;
}

nghttp2_mem h2_memory(struct blocks *blocks)
{
    return (nghttp2_mem){
        .mem_user_data = blocks, .malloc = take, .free = give, .calloc = take_zeroed, .realloc = take_again};
}
