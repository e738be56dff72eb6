/* SPDX-License-Identifier: MIT */
#include "crowd.h"

#include "client.h"

#include <stdlib.h>

void crowd_init(struct crowd *crowd)
{
    *crowd = (struct crowd){0};
    for (uint32_t i = 0; i < CROWD_LEVELS; i++) {
        crowd->level_last[i] = &crowd->level[i];
    }
}

void crowd_free(struct crowd *crowd)
{
    BECALM_ASSERT(crowd->groups.count == 0);
    hash_table_free(&crowd->groups);
}

/* Levels. */

static uint32_t level_of(uint32_t count)
{
    uint32_t level = 31u - (uint32_t)__builtin_clz(count);
    return level < CROWD_LEVELS ? level : CROWD_LEVELS - 1;
}

static void level_leave(struct crowd *crowd, struct crowd_group *group)
{
    *group->level_link = group->level_next;
    if (group->level_next != NULL) {
        group->level_next->level_link = group->level_link;
    } else {
        crowd->level_last[group->level] = group->level_link;
    }
    if (crowd->level[group->level] == NULL) {
        crowd->used &= ~(1u << group->level);
    }
}

static void level_enter(struct crowd *crowd, struct crowd_group *group)
{
    group->level = level_of(group->count);
    group->level_next = NULL;
    group->level_link = crowd->level_last[group->level];
    *group->level_link = group;
    crowd->level_last[group->level] = &group->level_next;
    crowd->used |= 1u << group->level;
}

static void group_counts(struct crowd *crowd, struct crowd_group *group, uint32_t count)
{
    group->count = count;
    if (level_of(count) != group->level) {
        level_leave(crowd, group);
        level_enter(crowd, group);
    }
}

/* Groups. */

/* NULL: no memory. */
static struct crowd_group *group_make(struct crowd *crowd, uint64_t peer)
{
    struct crowd_group *group = calloc(1, sizeof *group);
    if (group == NULL) {
        return NULL;
    }
    group->node.key = peer;
    group->last = &group->first;
    group->count = 1;
    if (!hash_table_put(&crowd->groups, &group->node)) {
        free(group);
        return NULL;
    }
    level_enter(crowd, group);
    return group;
}

static void append(struct client *client)
{
    struct crowd_group *group = client->group;
    client->group_next = NULL;
    client->group_link = group->last;
    *group->last = client;
    group->last = &client->group_next;
}

static void take_out(struct client *client)
{
    *client->group_link = client->group_next;
    if (client->group_next != NULL) {
        client->group_next->group_link = client->group_link;
    } else {
        client->group->last = client->group_link;
    }
}

bool crowd_join(struct crowd *crowd, struct client *client, uint64_t identity)
{
    struct crowd_group *group = (struct crowd_group *)hash_table_find(&crowd->groups, identity);
    if (group != NULL) {
        group_counts(crowd, group, group->count + 1);
    } else {
        group = group_make(crowd, identity);
    }
    client->group = group;
    if (group != NULL) {
        append(client);
    }
    return group != NULL;
}

void crowd_leave(struct crowd *crowd, struct client *client)
{
    struct crowd_group *group = client->group;
    take_out(client);
    client->group = NULL;
    if (group->count > 1) {
        group_counts(crowd, group, group->count - 1);
        return;
    }
    hash_table_remove(&crowd->groups, &group->node);
    level_leave(crowd, group);
    free(group);
}

/* Choosing. */

struct search {
    enum price most;
    uint32_t looks; /* left */
    struct client *best;
    enum price price; /* of the best */
};

/* False: all that were looked at are too dear. */
static bool search_group(struct search *search, struct crowd_group *group)
{
    bool found = false;
    uint32_t count = group->count;
    struct client *client = group->first;
    for (struct client *next; count > 0 && search->looks > 0; client = next, count--) {
        next = client->group_next;
        search->looks--;
        enum price price = client_price(client);
        found |= price <= search->most;
        if (price > search->most) {
            take_out(client);
            append(client);
        } else if (search->best == NULL || price < search->price ||
                   (price == search->price && client->since < search->best->since)) {
            search->best = client;
            search->price = price;
        }
    }
    return found;
}

struct client *crowd_pick_of(struct crowd_group *group, enum price most)
{
    struct search search = {.most = most, .looks = CROWD_LOOKS};
    search_group(&search, group);
    return search.best;
}

static struct client *pick_level(struct crowd *crowd, uint32_t level, enum price most)
{
    struct search search = {.most = most, .looks = CROWD_LOOKS};
    struct crowd_group *group = crowd->level[level];
    struct crowd_group *last = NULL;
    for (struct crowd_group *next; group != NULL && group != last && search.looks > 0; group = next) {
        next = group->level_next;
        if (!search_group(&search, group)) { /* others are looked at first the next time */
            last = last == NULL ? group : last;
            level_leave(crowd, group);
            level_enter(crowd, group);
        }
    }
    return search.best;
}

struct client *crowd_pick(struct crowd *crowd, enum price most, uint32_t lowest)
{
    for (uint32_t level = crowd_top(crowd); level > lowest; level--) {
        struct client *found = pick_level(crowd, level - 1, most);
        if (found != NULL) {
            return found;
        }
    }
    return NULL;
}
