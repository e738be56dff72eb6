/* SPDX-License-Identifier: MIT */
#include "map.h"

#include <becalm/base.h>

#include <stdlib.h>

static bool room_make(struct map *map)
{
    struct map larger = {.place_count = map->place_count == 0 ? 16 : 2 * map->place_count, .count = map->count};
    if (map->place_count > 2 * (map->count + 1)) {
        return true;
    }
    larger.place = calloc(larger.place_count, sizeof *larger.place);
    if (larger.place == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < map->place_count; i++) {
        if (map->place[i].key != NULL) {
            *map_place_of(&larger, map->place[i].key) = map->place[i];
        }
    }
    free(map->place);
    *map = larger;
    return true;
}

bool map_add(struct map *map, const void *key, void *value)
{
    if (!room_make(map)) {
        return false;
    }
    *map_place_of(map, key) = (struct map_place){key, value};
    map->count++;
    return true;
}

void map_remove(struct map *map, const void *key)
{
    uint32_t mask = map->place_count - 1;
    struct map_place *place = map_place_of(map, key);
    BECALM_ASSERT(place->key == key);
    *place = (struct map_place){0};
    map->count--;
    /* Those that stand behind it may have to move up. */
    for (uint32_t i = ((uint32_t)(place - map->place) + 1) & mask; map->place[i].key != NULL; i = (i + 1) & mask) {
        struct map_place moved = map->place[i];
        map->place[i] = (struct map_place){0};
        *map_place_of(map, moved.key) = moved;
    }
}

void *map_left(const struct map *map, uint32_t *at)
{
    if (map->count == 0) {
        return NULL;
    }
    while (map->place[*at].value == NULL) { /* around, if need be: one may have moved behind us */
        *at = (*at + 1) & (map->place_count - 1);
    }
    return map->place[*at].value;
}

void map_free(struct map *map)
{
    free(map->place);
    *map = (struct map){0};
}
