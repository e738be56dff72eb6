/* SPDX-License-Identifier: MIT */
#include "decisions.h"

#include <stdlib.h>

#define SAMPLE 64u

int decisions_init(struct decisions *decisions)
{
    *decisions = (struct decisions){.ring = calloc(DECISIONS, sizeof *decisions->ring)};
    return decisions->ring != NULL && pthread_mutex_init(&decisions->lock, NULL) == 0 ? 0 : BECALM_ENOMEM;
}

void decisions_free(struct decisions *decisions)
{
    if (decisions->ring != NULL) {
        pthread_mutex_destroy(&decisions->lock);
        free(decisions->ring);
        decisions->ring = NULL;
    }
}

bool decisions_want(struct decisions *decisions, const struct becalm_record *record)
{
    return decisions->calls++ % SAMPLE == 0 || record->reason != BECALM_WHY_OK || record->attempts > 1;
}

void decisions_keep(struct decisions *decisions, const struct decision *decision)
{
    pthread_mutex_lock(&decisions->lock);
    struct decision *place = &decisions->ring[decisions->count++ % DECISIONS];
    *place = *decision;
    place->number = decisions->count;
    pthread_mutex_unlock(&decisions->lock);
}

uint32_t decisions_read(struct decisions *decisions, struct decision *list, uint32_t size)
{
    uint32_t count = 0;
    pthread_mutex_lock(&decisions->lock);
    for (; count < size && count < DECISIONS && count < decisions->count; count++) {
        list[count] = decisions->ring[(decisions->count - 1 - count) % DECISIONS];
    }
    pthread_mutex_unlock(&decisions->lock);
    return count;
}
