/* SPDX-License-Identifier: MIT */
#include "tally.h"

#include <stdlib.h>

struct entry {
    struct hash_table_node node; /* first */
    uint32_t count;
};

void tally_init(struct tally *tally)
{
    *tally = (struct tally){0};
    pthread_mutex_init(&tally->lock, NULL);
}

void tally_free(struct tally *tally)
{
    BECALM_ASSERT(tally->table.count == 0); /* all that was taken has been given back */
    hash_table_free(&tally->table);
    pthread_mutex_destroy(&tally->lock);
}

static struct entry *find(struct tally *tally, uint64_t key)
{
    return (struct entry *)hash_table_find(&tally->table, key);
}

static bool begin(struct tally *tally, uint64_t key)
{
    struct entry *entry = malloc(sizeof *entry);
    if (entry == NULL) {
        return false;
    }
    *entry = (struct entry){.node.key = key, .count = 1};
    if (!hash_table_put(&tally->table, &entry->node)) {
        free(entry);
        return false;
    }
    return true;
}

bool tally_take(struct tally *tally, uint64_t key, uint32_t max)
{
    pthread_mutex_lock(&tally->lock);
    struct entry *entry = find(tally, key);
    bool taken = entry != NULL ? entry->count < max : max > 0 && begin(tally, key);
    if (entry != NULL) {
        entry->count += taken;
    }
    pthread_mutex_unlock(&tally->lock);
    return taken;
}

void tally_give(struct tally *tally, uint64_t key)
{
    pthread_mutex_lock(&tally->lock);
    struct entry *entry = find(tally, key);
    BECALM_ASSERT(entry != NULL); /* else it was given back more often than taken */
    entry->count--;
    if (entry->count == 0) {
        hash_table_remove(&tally->table, &entry->node);
        free(entry);
    }
    pthread_mutex_unlock(&tally->lock);
}
