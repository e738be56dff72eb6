/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "script.h"

#include "embedded.h"

#include <ctype.h>
#include <hiredis.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS   10u /* of a request, for each budget */
#define WORD    24u /* of digits, with its zero */
#define KEY_MAX 256u
#define ARGS    (3u + 1 + SCRIPT_BUDGETS + SCRIPT_BUDGETS * WORDS)

extern const struct embedded embedded_redis[];

const char *script_text(size_t *length)
{
    *length = embedded_redis[0].length;
    return (const char *)embedded_redis[0].text;
}

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

/* The name that Redis knows the script by: the SHA-1 of its text, so that two versions never meet. */
static void digest_write(char text[41])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    size_t length;
    const char *script = script_text(&length);
    if (EVP_Digest(script, length, digest, &size, EVP_sha1(), NULL) != 1) {
        size = 0; /* no such script, so that the whole of it is sent */
    }
    memset(text, '0', 40);
    text[40] = 0;
    for (unsigned int i = 0; i < size && i < 20; i++) {
        snprintf(text + (size_t)2 * i, 3, "%02x", digest[i]);
    }
}

/* The command's words, and the room for those that are made here. */
struct words {
    const char *at[ARGS];
    size_t length[ARGS];
    int count;
    char sha[41];
    char keys[WORD];
    char key[1 + SCRIPT_BUDGETS][KEY_MAX];
    char number[SCRIPT_BUDGETS * WORDS][WORD];
};

static void add(struct words *words, const char *text, size_t length)
{
    words->at[words->count] = text;
    words->length[words->count++] = length;
}

static void add_numbers(struct words *words, uint32_t i, const struct script_part *part)
{
    const struct becalm_lease_request *request = &part->request;
    const uint64_t number[WORDS] = {
        part->policy.share_ppm, part->policy.floor, request->number,   request->answered, request->first,
        request->granted,       request->spent,     request->returned, request->level,    request->leaving,
    };
    for (uint32_t n = 0; n < WORDS; n++) {
        char *text = words->number[i * WORDS + n];
        int length = snprintf(text, WORD, "%" PRIu64, number[n]);
        add(words, text, (size_t)length);
    }
}

static void fill(struct words *words, const struct script_run *run, bool whole)
{
    size_t length;
    const char *text = script_text(&length);
    words->count = 0;
    digest_write(words->sha);
    add(words, whole ? "EVAL" : "EVALSHA", whole ? 4 : 7);
    add(words, whole ? text : words->sha, whole ? length : 40);
    add(words, words->keys, (size_t)snprintf(words->keys, WORD, "%u", run->count + 1));
    length = (size_t)snprintf(words->key[0], KEY_MAX, "becalm:{%s}:i:%016" PRIx64 ":%u", run->fleet,
                              run->part[0].request.instance, run->chunk);
    add(words, words->key[0], length);
    for (uint32_t i = 0; i < run->count; i++) {
        const struct script_part *part = &run->part[i];
        length = (size_t)snprintf(words->key[1 + i], KEY_MAX, "becalm:{%s}:b:%s:%u:%u", run->fleet, part->name,
                                  part->policy.share_ppm, part->policy.floor);
        add(words, words->key[1 + i], length);
    }
    for (uint32_t i = 0; i < run->count; i++) {
        add_numbers(words, i, &run->part[i]);
    }
}

bool script_write(const struct script_run *run, bool whole, struct bytes *out)
{
    struct words *words = malloc(sizeof *words);
    char *command = NULL;
    if (words == NULL) {
        return false;
    }
    fill(words, run, whole);
    int length = redisFormatCommandArgv(&command, words->count, words->at, words->length);
    free(words);
    bool done = length > 0 && bytes_add(out, command, (size_t)length);
    redisFreeCommand(command);
    return done;
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

struct becalm_lease_answer script_answer(const long long *number)
{
    return (struct becalm_lease_answer){
        .number = positive(number[0]),
        .granted = positive(number[1]),
        .live = positive(number[2]),
        .room = positive(number[3]),
        .next = milliseconds(number[4]),
        .ttl = milliseconds(number[5]),
    };
}
