/* SPDX-License-Identifier: MIT */
#include "hash_table.h"

#include <stdlib.h>

#define SIZE_MIN 64u

static struct hash_table_node **place_of(const struct hash_table *table, uint64_t key)
{
    return &table->place[key & (table->size - 1)];
}

static void push(struct hash_table *table, struct hash_table_node *node)
{
    struct hash_table_node **place = place_of(table, node->key);
    node->next = *place;
    *place = node;
}

struct hash_table_node *hash_table_find(const struct hash_table *table, uint64_t key)
{
    struct hash_table_node *node = table->size == 0 ? NULL : *place_of(table, key);
    while (node != NULL && node->key != key) {
        node = node->next;
    }
    return node;
}

/* Without memory the table stays as it is, and its chains grow. */
static void grow(struct hash_table *table)
{
    struct hash_table old = *table;
    uint32_t size = old.size == 0 ? SIZE_MIN : old.size * 2;
    struct hash_table_node **place = calloc(size, sizeof(struct hash_table_node *));
    if (place == NULL) {
        return;
    }
    table->place = place;
    table->size = size;
    for (uint32_t i = 0; i < old.size; i++) {
        for (struct hash_table_node *node = old.place[i], *next; node != NULL; node = next) {
            next = node->next;
            push(table, node);
        }
    }
    free(old.place);
}

bool hash_table_put(struct hash_table *table, struct hash_table_node *node)
{
    if (table->count >= table->size) {
        grow(table);
    }
    if (table->size == 0) {
        return false;
    }
    push(table, node);
    table->count++;
    return true;
}

void hash_table_remove(struct hash_table *table, struct hash_table_node *node)
{
    struct hash_table_node **link = place_of(table, node->key);
    while (*link != node) {
        link = &(*link)->next;
    }
    *link = node->next;
    table->count--;
}

void hash_table_free(struct hash_table *table)
{
    free(table->place);
    *table = (struct hash_table){0};
}
