/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TESTS_OUTLIER_LAB_H
#define BECALM_TESTS_OUTLIER_LAB_H

/* The common part of the outlier's tests: hosts with a clock, and attempts that end in one way or another. */

#include <becalm/outlier.h>

#include "check.h"
#include "engine/outlier_internal.h"

/* Hosts under one policy, and the calls of a test that are not about time or cells. */
struct world {
    struct becalm_outlier_policy policy;
    struct becalm_hosts *hosts;
    becalm_ns now;
};

static inline struct becalm_hosts *hosts_new(const struct becalm_outlier_policy *policy, uint32_t count, uint32_t cells)
{
    void *memory = aligned_alloc(64, becalm_hosts_bytes(policy, count, cells));
    assert_non_null(memory);
    return becalm_hosts_init(memory, policy, count, cells);
}

static inline struct world world_rate(uint32_t count)
{
    struct world w = {.now = 0};
    becalm_outlier_defaults(&w.policy);
    w.hosts = hosts_new(&w.policy, count, 1);
    return w;
}

static inline struct world world_istio(uint32_t count)
{
    struct world w = {.now = 0};
    becalm_outlier_istio(&w.policy);
    w.hosts = hosts_new(&w.policy, count, 1);
    return w;
}

static inline void world_end(struct world *w)
{
    free(w->hosts);
}

static inline void note_outcome(struct world *w, uint32_t host, const struct becalm_outcome *outcome)
{
    struct becalm_moment at = {.now = w->now};
    becalm_hosts_note(w->hosts, &w->policy, &at, host, outcome);
}

/* One attempt from start to end. */
static inline void attempt(struct world *w, uint32_t host, const struct becalm_outcome *outcome)
{
    becalm_hosts_sent(w->hosts, host, w->now);
    note_outcome(w, host, outcome);
}

static inline void attempts(struct world *w, uint32_t host, uint32_t count, enum becalm_outcome_kind kind)
{
    struct becalm_outcome outcome = {.kind = kind};
    for (uint32_t i = 0; i < count; i++) {
        attempt(w, host, &outcome);
    }
}

static inline bool usable(const struct world *w, uint32_t host)
{
    return becalm_host_usable(w->hosts, &w->policy, host, w->now);
}

static inline uint32_t usable_count(const struct world *w)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->hosts->count; i++) {
        count += usable(w, i);
    }
    return count;
}

static inline uint64_t ejected_count(const struct becalm_hosts *hosts)
{
    return (uint32_t)atomic_load_explicit(&hosts->out, memory_order_relaxed);
}

#endif
