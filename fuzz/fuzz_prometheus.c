/* SPDX-License-Identifier: MIT */
/* The answer of a Prometheus: samples within the room, or one sentence without control characters; and the samples give
 * a distribution, or another such sentence. */
#define _GNU_SOURCE
#include "plan/prometheus.h"

#include <stdlib.h>
#include <string.h>

#define ROOM 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sentence(const char why[PLAN_WHY_MAX])
{
    size_t length = strnlen(why, PLAN_WHY_MAX);
    BECALM_ASSERT(length > 0 && length < PLAN_WHY_MAX);
    for (size_t i = 0; i < length; i++) {
        BECALM_ASSERT((unsigned char)why[i] >= ' ' && why[i] != '\x7f');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plan_bucket sample[ROOM];
    struct plan_latency latency = {0};
    char why[PLAN_WHY_MAX] = "";
    char *text = malloc(size + 1); /* as it comes from the network, with a zero behind it */
    BECALM_ASSERT(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    int count = prometheus_parse(text, size, sample, ROOM, why);
    BECALM_ASSERT(count >= -1 && count <= (int)ROOM);
    if (count < 0) {
        check_sentence(why);
    } else if (!plan_latency_from_buckets(&latency, sample, (size_t)count, why)) {
        check_sentence(why);
    }
    plan_latency_free(&latency);
    free(text);
    return 0;
}
