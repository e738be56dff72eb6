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

static bool bytes_put(struct bytes *to, uint64_t number, uint32_t bytes)
{
    char text[8];
    for (uint32_t i = 0; i < bytes; i++) {
        text[i] = (char)(number >> 8 * i & 0xff);
    }
    return bytes_add(to, text, bytes);
}

static uint64_t bytes_take(const char **from, uint32_t bytes)
{
    uint64_t number = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        number |= (uint64_t)(unsigned char)*(*from)++ << 8 * i;
    }
    return number;
}

/* Identifies the budget of the record at this index: another budget may have used the index before. */
static uint32_t guard_of(const struct script_part *part)
{
    char terms[32];
    snprintf(terms, sizeof terms, ":%u:%u", part->policy.share_ppm, part->policy.floor);
    return (uint32_t)hash_of(hash_of(UINT64_C(14695981039346656037), part->name), terms) | 1;
}

/* TOLD in store.lua. */
static bool part_put(struct bytes *to, const struct script_part *part)
{
    const struct becalm_lease_request *request = &part->request;
    const uint32_t words[] = {part->policy.share_ppm, part->policy.floor, part->index, guard_of(part)};
    const uint64_t totals[] = {request->number, request->answered, request->first, request->granted,
                               request->spent,  request->returned, request->level, request->era};
    bool added = true;
    for (size_t n = 0; n < sizeof words / sizeof *words; n++) {
        added = added && bytes_put(to, words[n], 4);
    }
    for (size_t n = 0; n < sizeof totals / sizeof *totals; n++) {
        added = added && bytes_put(to, totals[n], 8);
    }
    return added && bytes_put(to, request->leaving, 1);
}

bool script_fill(const struct script_run *run, struct redis_command *command)
{
    char key[KEY_MAX];
    int length = snprintf(key, sizeof key, "becalm:{%s}:r:%016" PRIx64 ":%u", run->fleet, run->part[0].request.instance,
                          run->chunk);
    bool added = redis_number(command, run->count + 1) && redis_word(command, key, (size_t)length);
    for (uint32_t i = 0; i < run->count; i++) {
        const struct script_part *part = &run->part[i];
        length = snprintf(key, sizeof key, "becalm:{%s}:p:%s:%u:%u", run->fleet, part->name, part->policy.share_ppm,
                          part->policy.floor);
        added = added && redis_word(command, key, (size_t)length);
    }
    struct bytes told = {.at = NULL};
    for (uint32_t i = 0; i < run->count; i++) {
        added = added && part_put(&told, &run->part[i]);
    }
    added = added && redis_word(command, bytes_at(&told), bytes_left(&told));
    bytes_free(&told);
    return added;
}

bool script_answers(const struct reply *reply, uint32_t count)
{
    return reply->kind == REPLY_WORD && reply->item[0].text != NULL &&
           reply->item[0].length == (size_t)count * SCRIPT_ANSWER;
}

/* ANSWER in store.lua. Nonsense is dropped by becalm_lease_answer(). */
struct becalm_lease_answer script_answer(const struct reply *reply, uint32_t number)
{
    const char *at = reply->item[0].text + (size_t)number * SCRIPT_ANSWER;
    struct becalm_lease_answer answer;
    answer.number = bytes_take(&at, 8);
    answer.granted = bytes_take(&at, 8);
    answer.live = bytes_take(&at, 4);
    answer.room = bytes_take(&at, 4);
    answer.next = bytes_take(&at, 4) * BECALM_MS;
    answer.ttl = bytes_take(&at, 4) * BECALM_MS;
    answer.era = bytes_take(&at, 8);
    return answer;
}
