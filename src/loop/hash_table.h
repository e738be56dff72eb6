/* SPDX-License-Identifier: MIT */
#ifndef BECALM_LOOP_HASH_TABLE_H
#define BECALM_LOOP_HASH_TABLE_H

/* A hash table of nodes by keys that are random already, such as peer.h's. Owners embed the node as their first member
 * and allocate it. Zeroed: empty. */

#include <becalm/base.h>

struct hash_table_node {
    struct hash_table_node *next;
    uint64_t key;
};

struct hash_table {
    struct hash_table_node **place; /* NULL until the first node */
    uint32_t size;                  /* a power of two */
    uint32_t count;
};

struct hash_table_node *hash_table_find(const struct hash_table *, uint64_t key); /* NULL: it is not there */
/* Adds a node whose key is not in the table yet. False: no memory, and nothing has changed. */
bool hash_table_put(struct hash_table *, struct hash_table_node *);
void hash_table_remove(struct hash_table *, struct hash_table_node *);
void hash_table_free(struct hash_table *); /* not the nodes */

#endif
