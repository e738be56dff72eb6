/* SPDX-License-Identifier: MIT */
#include "h2_room.h"

#include "proxy/worker.h"

#include <stdlib.h>

struct h2_room *h2_room(struct worker *worker)
{
    size_t heads = WORKER_OUT; /* enough for any maxHeaderBytes after a reload */
    if (worker->h2 == NULL) {
        struct h2_room *room = malloc(sizeof *room + heads);
        if (room != NULL) {
            room->told_at = 0;
            room->scratch = (struct h2_scratch){.bytes = room->heads, .size = heads, .blocks = &worker->loop.blocks};
        }
        worker->h2 = room;
    }
    return worker->h2;
}
