/* SPDX-License-Identifier: MIT */
#ifndef BECALM_CURL_MAP_H
#define BECALM_CURL_MAP_H

/* A map from addresses to records: open addressing, at most half full. Zeroed: empty. The map owns neither the keys,
 * which are never dereferenced, nor the values. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_place {
    const void *key; /* NULL: free, and then so is the value */
    void *value;
};

struct map {
    struct map_place *place;
    uint32_t place_count; /* a power of two, or 0 */
    uint32_t count;       /* of them, in use */
};

/* Where the key is, or the free place where it would be. For the functions below. */
static inline struct map_place *map_place_of(const struct map *map, const void *key)
{
    uint64_t hash = (uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t mask = map->place_count - 1;
    uint32_t at = (uint32_t)(hash >> 32) & mask;
    while (map->place[at].key != NULL && map->place[at].key != key) {
        at = (at + 1) & mask;
    }
    return &map->place[at];
}

/* NULL: the key is not known. */
static inline void *map_find(const struct map *map, const void *key)
{
    return map->place_count == 0 ? NULL : map_place_of(map, key)->value;
}

/* The key must not be known yet, and neither may be NULL. False: no memory, and nothing has changed. After a
 * map_remove() there is room for one. */
bool map_add(struct map *, const void *key, void *value);

/* The key must be known. */
void map_remove(struct map *, const void *key);

/* Any value that is left; NULL: none. To take out all, `at` begins with 0 and each is removed before the next is asked
 * for. */
void *map_left(const struct map *, uint32_t *at);

void map_free(struct map *);

#endif
