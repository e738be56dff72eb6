/* SPDX-License-Identifier: MIT */
#ifndef BECALM_SIM_BINS_H
#define BECALM_SIM_BINS_H

/* Counts over time, gathered into bins of whole seconds, one for each column of a chart. */

#include "sim/measure.h"

#define BINS_MAX 400u

struct bins {
    uint32_t bin;   /* seconds in one */
    uint32_t count; /* at most BINS_MAX */
    uint64_t value[BINS_MAX];
};

/* Each fills at most `width` bins and returns the largest value. A bin in which no call began has the success of the
 * one before it. */
uint64_t bins_success(struct bins *, const struct scenario *, const struct world_result *, uint32_t width);
uint64_t bins_mean(struct bins *, const uint64_t *by_second, uint32_t seconds, uint32_t width);

/* Arrivals at a service, and its offered load, both as a share of the planned load, in parts per million. */
uint64_t bins_load(struct bins *, const struct world_result *, const struct measure *, uint32_t service,
                   uint32_t width);
uint64_t bins_offered(struct bins *, const struct world_result *, const struct measure *, uint32_t service,
                      uint32_t width);

#endif
