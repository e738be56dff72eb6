/* SPDX-License-Identifier: MIT */
#include "world_internal.h"

#include <stdlib.h>

/* The event queue: a heap with four children to a node, which is shallower and kinder to caches than two. */

static bool sooner(const struct event *a, const struct event *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

void clock_plan(struct clock *c, struct event event)
{
    if (event.at >= c->end_at) {
        return; /* long timeouts would only fill the heap */
    }
    if (c->count == c->size) {
        size_t larger = c->size == 0 ? 4096 : c->size * 2;
        struct event *moved = realloc(c->heap, larger * sizeof *moved);
        if (moved == NULL) {
            c->no_memory = true;
            return;
        }
        c->heap = moved;
        c->size = larger;
    }
    event.order = c->order++;
    size_t i = c->count++;
    for (; i > 0 && sooner(&event, &c->heap[(i - 1) / 4]); i = (i - 1) / 4) {
        c->heap[i] = c->heap[(i - 1) / 4];
    }
    c->heap[i] = event;
}

bool clock_next(struct clock *c, struct event *event)
{
    if (c->count == 0) {
        return false;
    }
    *event = c->heap[0];
    c->now = event->at;
    struct event last = c->heap[--c->count];
    size_t i = 0;
    for (size_t child; (child = 4 * i + 1) < c->count; i = child) {
        size_t end = child + 4 < c->count ? child + 4 : c->count;
        for (size_t k = child + 1; k < end; k++) {
            child = sooner(&c->heap[k], &c->heap[child]) ? k : child;
        }
        if (!sooner(&c->heap[child], &last)) {
            break;
        }
        c->heap[i] = c->heap[child];
    }
    c->heap[i] = last;
    return true;
}

void clock_free(struct clock *c)
{
    free(c->heap);
}
