/* SPDX-License-Identifier: MIT */
#include "metrics_redis.h"

#include <stdio.h>

static void sample(struct metrics_text *w, const struct metrics_redis *redis, const char *suffix)
{
    metrics_sample(w, suffix);
    metrics_label(w, "store", redis->store);
}

static void write_exchanges(struct metrics_text *w, const struct metrics_redis *redis, uint32_t count)
{
    metrics_family(w, "becalm_redis_exchanges_total", "counter",
                   "Requests to a store: answered, or dropped with their connection.");
    for (uint32_t i = 0; i < count; i++) {
        sample(w, &redis[i], "");
        metrics_label(w, "result", "ok");
        metrics_number(w, redis[i].answered);
        sample(w, &redis[i], "");
        metrics_label(w, "result", "dropped");
        metrics_number(w, redis[i].dropped);
    }
}

/* A count of 0 has no row. */
static void write_errors(struct metrics_text *w, const struct metrics_redis *redis, uint32_t count)
{
    metrics_family(w, "becalm_redis_errors_total", "counter",
                   "Connections to a store that ended, by the first word of the server's error, or a word of Becalm.");
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t why = 0; why < METRICS_REDIS_WHY; why++) {
            if (redis[i].why[why] != NULL && redis[i].lost[why] > 0) {
                sample(w, &redis[i], "");
                metrics_label(w, "error", redis[i].why[why]);
                metrics_number(w, redis[i].lost[why]);
            }
        }
    }
}

static void labelled(struct metrics_text *w, const char *store, const char *suffix)
{
    metrics_sample(w, suffix);
    if (store != NULL) {
        metrics_label(w, "store", store);
    }
}

void metrics_waits_write(struct metrics_text *w, const char *store, const struct metrics_waits *waits)
{
    for (uint32_t b = 0; b < METRICS_REDIS_BOUNDS; b++) {
        char bound[24];
        (void)snprintf(bound, sizeof bound, "%u.%03u", (unsigned)(waits->bound[b] / BECALM_S),
                       (unsigned)(waits->bound[b] % BECALM_S / BECALM_MS));
        labelled(w, store, "_bucket");
        metrics_label(w, "le", bound);
        metrics_number(w, waits->within[b]);
    }
    labelled(w, store, "_bucket");
    metrics_label(w, "le", "+Inf");
    metrics_number(w, waits->count);
    labelled(w, store, "_sum");
    metrics_decimal(w, waits->spent / BECALM_US, 6);
    labelled(w, store, "_count");
    metrics_number(w, waits->count);
}

static void write_seconds(struct metrics_text *w, const struct metrics_redis *redis, uint32_t count)
{
    metrics_family(w, "becalm_redis_seconds", "histogram", "How long a store took to answer.");
    for (uint32_t i = 0; i < count; i++) {
        metrics_waits_write(w, redis[i].store, &redis[i].waits);
    }
}

void metrics_redis_write(struct metrics_text *w, const struct metrics_redis *redis, uint32_t count)
{
    metrics_family(w, "becalm_redis_up", "gauge", "1 while a store answers; 0: instances live on their own share.");
    for (uint32_t i = 0; i < count; i++) {
        sample(w, &redis[i], "");
        metrics_number(w, redis[i].up);
    }
    metrics_family(w, "becalm_redis_answer_age_seconds", "gauge", "How long ago a store answered last.");
    for (uint32_t i = 0; i < count; i++) {
        if (redis[i].age != BECALM_NEVER) {
            sample(w, &redis[i], "");
            metrics_decimal(w, redis[i].age / BECALM_MS, 3);
        }
    }
    metrics_family(w, "becalm_redis_connects_total", "counter", "Connections to a store that were tried.");
    for (uint32_t i = 0; i < count; i++) {
        sample(w, &redis[i], "");
        metrics_number(w, redis[i].connects);
    }
    write_exchanges(w, redis, count);
    write_errors(w, redis, count);
    write_seconds(w, redis, count);
}
