/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "request.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#define KEY_MAX 256u

static uint64_t hash_of(uint64_t hash, const char *text)
{
    for (; *text != 0; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    }
    return hash;
}

/* Returns where it goes on, at most `end`. */
static char *name_add(char *to, const char *end, const char *text)
{
    for (; *text != 0 && to < end; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain = isalnum(c) || c == '.' || c == '_' || c == '-';
        if (!plain && end - to < 3) {
            return to + (end - to);
        }
        to += plain ? snprintf(to, 2, "%c", c) : snprintf(to, 4, "%%%02X", c);
    }
    return to;
}

void script_name(char *name, size_t size, const char *service, const char *endpoint)
{
    const char *end = name + size - 1;
    char *to = name_add(name, end, service);
    if (endpoint != NULL && to < end) {
        *to++ = '/';
        to = name_add(to, end, endpoint);
    }
    *to = 0;
    if (to >= end) {
        uint64_t hash = hash_of(hash_of(UINT64_C(14695981039346656037), service), endpoint == NULL ? "" : endpoint);
        snprintf(name + size - 1 - 17, 18, "~%016" PRIx64, hash);
    }
}

static bool numbers_add(struct redis_command *command, const struct script_part *part)
{
    const struct becalm_lease_request *request = &part->request;
    const uint64_t number[] = {
        part->policy.share_ppm, part->policy.floor, request->number, request->answered,
        request->first,         request->granted,   request->spent,  request->returned,
        request->level,         request->leaving,   request->era,
    };
    bool added = true;
    for (size_t n = 0; n < sizeof number / sizeof *number; n++) {
        added = added && redis_number(command, number[n]);
    }
    return added;
}

bool script_fill(const struct script_run *run, struct redis_command *command)
{
    char key[KEY_MAX];
    int length = snprintf(key, sizeof key, "becalm:{%s}:i:%016" PRIx64 ":%u", run->fleet, run->part[0].request.instance,
                          run->chunk);
    bool added = redis_number(command, run->count + 1) && redis_word(command, key, (size_t)length);
    for (uint32_t i = 0; i < run->count; i++) {
        const struct script_part *part = &run->part[i];
        length = snprintf(key, sizeof key, "becalm:{%s}:b:%s:%u:%u", run->fleet, part->name, part->policy.share_ppm,
                          part->policy.floor);
        added = added && redis_word(command, key, (size_t)length);
    }
    for (uint32_t i = 0; i < run->count; i++) {
        added = added && numbers_add(command, &run->part[i]);
    }
    return added;
}

/* What is not a number of the right size is nonsense, which becalm_lease_answer() drops. */
static uint64_t positive(long long number)
{
    return number < 0 ? 0 : (uint64_t)number;
}

static becalm_ns milliseconds(long long number)
{
    return number < 0 || number > 1000000 ? 0 : (becalm_ns)number * BECALM_MS;
}

struct becalm_lease_answer script_answer(const struct reply_item *item)
{
    return (struct becalm_lease_answer){
        .number = positive(item[0].number),
        .granted = positive(item[1].number),
        .live = positive(item[2].number),
        .room = positive(item[3].number),
        .next = milliseconds(item[4].number),
        .ttl = milliseconds(item[5].number),
        .era = positive(item[6].number),
    };
}
