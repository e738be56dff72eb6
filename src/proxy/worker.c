/* SPDX-License-Identifier: MIT */
#include "worker.h"

#include "message/date.h"

void worker_order(struct worker *worker, unsigned orders)
{
    uint32_t before = atomic_fetch_or_explicit(&worker->orders, orders, memory_order_release);
    if ((before & orders) != orders) {
        loop_wake(&worker->loop);
    }
}

struct becalm_moment worker_moment(struct worker *worker)
{
    return (struct becalm_moment){
        .now = worker->loop.now,
        .random = becalm_rand_next(&worker->loop.random),
        .cell = worker->number,
    };
}

struct becalm_text worker_date(struct worker *worker)
{
    int64_t second = (int64_t)(worker->loop.wall / BECALM_S);
    if (second != worker->date_second) {
        worker->date_second = second;
        date_write(worker->date, second);
    }
    return (struct becalm_text){worker->date, 29};
}
