/* SPDX-License-Identifier: MIT */
#include "arena.h"

#include <stdlib.h>
#include <string.h>

struct arena_block {
    struct arena_block *next;
    size_t used;
    size_t size;
    max_align_t memory[];
};

#define BLOCK_BYTES 16384u

void *arena_take(struct arena *arena, size_t bytes)
{
    size_t need = (bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    struct arena_block *block = arena->blocks;
    if (block == NULL || block->size - block->used < need) {
        size_t size = need > BLOCK_BYTES ? need : BLOCK_BYTES;
        block = calloc(1, sizeof *block + size);
        if (block == NULL) {
            return NULL;
        }
        block->size = size;
        block->next = arena->blocks;
        arena->blocks = block;
    }
    void *memory = (unsigned char *)block->memory + block->used;
    block->used += need;
    return memory;
}

char *arena_text(struct arena *arena, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = arena_take(arena, bytes);
    return copy == NULL ? NULL : memcpy(copy, text, bytes);
}

void arena_free(struct arena *arena)
{
    for (struct arena_block *block = arena->blocks, *next; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    arena->blocks = NULL;
}
