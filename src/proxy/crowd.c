/* SPDX-License-Identifier: MIT */
#include "crowd.h"

#include <stdlib.h>

void crowd_init(struct crowd *crowd, crowd_price_fn *price)
{
    *crowd = (struct crowd){.price = price};
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

static void append(struct crowd_member *member)
{
    struct crowd_group *group = member->group;
    member->next = NULL;
    member->link = group->last;
    *group->last = member;
    group->last = &member->next;
}

static void take_out(struct crowd_member *member)
{
    *member->link = member->next;
    if (member->next != NULL) {
        member->next->link = member->link;
    } else {
        member->group->last = member->link;
    }
}

bool crowd_join(struct crowd *crowd, struct crowd_member *member, uint64_t identity)
{
    struct crowd_group *group = (struct crowd_group *)hash_table_find(&crowd->groups, identity);
    if (group != NULL) {
        group_counts(crowd, group, group->count + 1);
    } else {
        group = group_make(crowd, identity);
    }
    member->group = group;
    if (group != NULL) {
        append(member);
    }
    return group != NULL;
}

void crowd_leave(struct crowd *crowd, struct crowd_member *member)
{
    struct crowd_group *group = member->group;
    take_out(member);
    member->group = NULL;
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
    crowd_price_fn *price_of;
    enum price most;
    uint32_t looks; /* left */
    struct crowd_member *best;
    enum price price; /* of the best */
    becalm_ns since;
};

/* False: all that were looked at are too dear. */
static bool search_group(struct search *search, struct crowd_group *group)
{
    bool found = false;
    uint32_t count = group->count;
    struct crowd_member *member = group->first;
    for (struct crowd_member *next; count > 0 && search->looks > 0; member = next, count--) {
        next = member->next;
        search->looks--;
        becalm_ns since;
        enum price price = search->price_of(member, &since);
        found |= price <= search->most;
        if (price > search->most) {
            take_out(member);
            append(member);
        } else if (search->best == NULL || price < search->price || (price == search->price && since < search->since)) {
            search->best = member;
            search->since = since;
            search->price = price;
        }
    }
    return found;
}

struct crowd_member *crowd_pick_of(struct crowd *crowd, struct crowd_group *group, enum price most)
{
    struct search search = {.price_of = crowd->price, .most = most, .looks = CROWD_LOOKS};
    search_group(&search, group);
    return search.best;
}

static struct crowd_member *pick_level(struct crowd *crowd, uint32_t level, enum price most)
{
    struct search search = {.price_of = crowd->price, .most = most, .looks = CROWD_LOOKS};
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

struct crowd_member *crowd_pick(struct crowd *crowd, enum price most, uint32_t lowest)
{
    for (uint32_t level = crowd_top(crowd); level > lowest; level--) {
        struct crowd_member *found = pick_level(crowd, level - 1, most);
        if (found != NULL) {
            return found;
        }
    }
    return NULL;
}
