/* SPDX-License-Identifier: MIT */
#include "bins.h"

#include "chart/chart.h"

static void bins_init(struct bins *bins, uint32_t seconds, uint32_t width)
{
    BECALM_ASSERT(width <= BINS_MAX);
    bins->bin = chart_bin(seconds, width);
    bins->count = chart_columns(seconds, width);
}

/* The seconds of a bin; the last one may have fewer. */
static uint32_t first_of(const struct bins *bins, uint32_t i)
{
    return i * bins->bin;
}

static uint32_t end_of(const struct bins *bins, uint32_t i, uint32_t seconds)
{
    uint32_t end = (i + 1) * bins->bin;
    return end < seconds ? end : seconds;
}

static uint64_t most_of(const struct bins *bins)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < bins->count; i++) {
        most = bins->value[i] > most ? bins->value[i] : most;
    }
    return most;
}

uint64_t bins_success(struct bins *bins, const struct scenario *plan, const struct world_result *result, uint32_t width)
{
    uint64_t last = CHART_PPM;
    bins_init(bins, result->seconds, width);
    for (uint32_t i = 0; i < bins->count; i++) {
        uint64_t begun = 0;
        uint64_t good = 0;
        for (uint32_t s = first_of(bins, i); s < end_of(bins, i, result->seconds); s++) {
            for (uint32_t c = 0; c < plan->client_count; c++) {
                begun += result->client[c].begun[s];
                good += result->client[c].good[s];
            }
        }
        last = begun == 0 ? last : good * CHART_PPM / begun;
        bins->value[i] = last;
    }
    return most_of(bins);
}

static uint64_t sum_of(const uint64_t *by_second, uint32_t from, uint32_t to)
{
    uint64_t sum = 0;
    for (uint32_t s = from; s < to; s++) {
        sum += by_second[s];
    }
    return sum;
}

uint64_t bins_mean(struct bins *bins, const uint64_t *by_second, uint32_t seconds, uint32_t width)
{
    bins_init(bins, seconds, width);
    for (uint32_t i = 0; i < bins->count; i++) {
        uint32_t from = first_of(bins, i);
        uint32_t to = end_of(bins, i, seconds);
        bins->value[i] = sum_of(by_second, from, to) / (to - from);
    }
    return most_of(bins);
}

uint64_t bins_load(struct bins *bins, const struct world_result *result, const struct measure *measure,
                   uint32_t service, uint32_t width)
{
    uint64_t offered = measure->service[service].offered_milli;
    bins_init(bins, result->seconds, width);
    for (uint32_t i = 0; i < bins->count; i++) {
        uint32_t from = first_of(bins, i);
        uint32_t to = end_of(bins, i, result->seconds);
        uint64_t milli = sum_of(result->service[service].arrivals, from, to) * 1000;
        bins->value[i] = offered == 0 ? 0 : milli * CHART_PPM / ((to - from) * offered);
    }
    return most_of(bins);
}

uint64_t bins_offered(struct bins *bins, const struct world_result *result, const struct measure *measure,
                      uint32_t service, uint32_t width)
{
    uint64_t offered = measure->service[service].offered_milli;
    bins_init(bins, result->seconds, width);
    for (uint32_t i = 0; i < bins->count; i++) {
        uint32_t from = first_of(bins, i);
        uint32_t to = end_of(bins, i, result->seconds);
        uint64_t milli = measure_offered_milli(measure, service, from, to);
        bins->value[i] = offered == 0 ? 0 : milli * CHART_PPM / ((to - from) * offered);
    }
    return most_of(bins);
}
