/* SPDX-License-Identifier: MIT */
/* Any record of a call as the header Becalm-Explain, which is one line of visible characters within its bound, and as
 * JSON, which is one line. The numbers come from the input's beginning, names and the request's words from its rest. */
#include "journal/explain_header.h"

#include <stdlib.h>
#include <string.h>

#define JSON_MAX (64u * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        BECALM_ASSERT((unsigned char)line[i] >= ' ' && line[i] != '\x7f');
    }
}

static uint64_t number_take(const uint8_t **data, size_t *size)
{
    uint64_t number = 0;
    size_t length = *size < sizeof number ? *size : sizeof number;
    memcpy(&number, *data, length);
    *data += length;
    *size -= length;
    return number;
}

static struct becalm_record record_take(const uint8_t **data, size_t *size)
{
    uint64_t word = number_take(data, size);
    struct becalm_record record = {
        .reason = (enum becalm_reason)(word % BECALM_REASON_COUNT),
        .would = (enum becalm_reason)((word >> 8) % BECALM_REASON_COUNT),
        .attempts = (uint32_t)(word >> 16) % 1024,
        .hedges = (uint32_t)(word >> 26) % 16,
        .began_at = number_take(data, size),
        .ended_at = number_take(data, size),
        .gated = number_take(data, size),
        .have = number_take(data, size),
        .need = number_take(data, size),
    };
    for (uint32_t i = 0; i < BECALM_RECORD_MAX; i++) {
        uint64_t bits = number_take(data, size);
        record.attempt[i] = (struct becalm_record_attempt){
            .number = (uint32_t)bits,
            .host = (bits >> 32) % 4,
            .status = (bits >> 34) % 1000,
            .outcome = (enum becalm_outcome_kind)((bits >> 44) % BECALM_OUTCOME_COUNT),
            .open = (bits >> 50 & 1) != 0,
            .hedge = (bits >> 51 & 1) != 0,
            .waited = number_take(data, size),
            .sent_at = record.began_at,
            .took = bits,
        };
    }
    return record;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char json[JSON_MAX];
    char header[EXPLAIN_HEADER_MAX];
    struct becalm_record record = record_take(&data, &size);
    size = size < 1024 ? size : 1024;
    char *name = malloc(size + 1);
    BECALM_ASSERT(name != NULL);
    memcpy(name, data, size);
    name[size] = '\0';
    const char *const hosts[] = {name, "10.0.0.1:9001", ""};
    struct becalm_text text = {name, size};
    struct explain explain = {
        .record = &record,
        .hosts = hosts,
        .host_count = 3,
        .why = BECALM_WHY_OK,
        .now = record.ended_at,
        .wall = record.began_at,
        .service = text,
        .endpoint = text,
        .method = text,
        .target = text,
        .request_id = text,
        .status = record.attempt[0].status,
    };
    size_t length = explain_header(&explain, header);
    BECALM_ASSERT(length > 0 && length <= EXPLAIN_HEADER_MAX);
    check_line(header, length);
    struct buffer b = {.at = json, .size = sizeof json};
    record_json(&b, NULL, &explain);
    BECALM_ASSERT(!b.full);
    check_line(json, b.length);
    free(name);
    return 0;
}
