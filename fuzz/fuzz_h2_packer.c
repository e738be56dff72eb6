/* SPDX-License-Identifier: MIT */
/* Heads that our encoder packs and nghttp2 unpacks, one after the other: for all heads and all sizes of the tables, the
 * same fields come out. The bytes choose the steps: a head with a number of fields, each new or one of the latest 64;
 * another limit of the table, or several before a head; a head that the peer never sees. */
#include "h2_unpacked.h"

#include <becalm/base.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define KNOWN      64u
#define FIELDS_MAX 15u
#define LIMIT_MAX  8192u

struct script {
    const uint8_t *at;
    const uint8_t *end;
    struct h2_packer packer;
    nghttp2_hd_inflater *peer;
    struct h2_field known[KNOWN];
    uint32_t known_count; /* since the beginning */
};

static uint32_t next(struct script *script)
{
    return script->at < script->end ? *script->at++ : 0;
}

static struct becalm_text next_text(struct script *script, size_t length)
{
    size_t left = (size_t)(script->end - script->at);
    struct becalm_text text = {(const char *)script->at, length < left ? length : left};
    script->at += text.length;
    return text;
}

#define LENT 200u /* bytes: a value that long is made of one byte, so that a short script can fill a table */

static struct becalm_text next_value(struct script *script)
{
    static char filled[LIMIT_MAX];
    uint32_t length = next(script);
    if (length < LENT) {
        return next_text(script, length);
    }
    memset(filled, (int)next(script), sizeof filled);
    return (struct becalm_text){filled, (length - LENT + 2) * 128};
}

/* A new one is known from now on, unless its value's memory is needed again. */
static struct h2_field next_field(struct script *script)
{
    static const char *const names[] = {"via",        "x-a",     ":path",         ":status",         "cookie",
                                        "set-cookie", ":method", "x-longer-name", "accept-encoding", "date"};
    uint32_t what = next(script);
    if (what >= 128 && script->known_count > 0) {
        uint32_t count = script->known_count < KNOWN ? script->known_count : KNOWN;
        return script->known[what % count];
    }
    struct h2_field field = {.remembering = (uint8_t)(what / 16 % 3)};
    if (what % 16 < sizeof names / sizeof *names) {
        field.name = (struct becalm_text){names[what % 16], strlen(names[what % 16])};
        field.name_id = what < 96 ? (uint8_t)(1 + what % 16) : 0;
    } else {
        field.name = next_text(script, 1 + what % 16);
    }
    field.value = next_value(script);
    if (field.value.length < LENT) {
        script->known[script->known_count++ % KNOWN] = field;
    }
    return field;
}

static void say_head(struct script *script, size_t count, bool lost)
{
    struct h2_field fields[FIELDS_MAX];
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        fields[i] = next_field(script);
        if (fields[i].value.length > LENT && i + 1 < count) { /* another one could have it, too */
            fields[i].value.length = 0;
        }
        bytes += fields[i].name.length + fields[i].value.length;
    }
    size_t bound = h2_pack_bound(count, bytes);
    char *packed = malloc(bound);
    BECALM_ASSERT(packed != NULL);
    size_t length = h2_pack(&script->packer, fields, count, packed);
    BECALM_ASSERT(length <= bound && script->packer.bytes <= script->packer.limit);
    if (lost) {
        h2_packer_forget(&script->packer);
    } else {
        BECALM_ASSERT(h2_unpacked(script->peer, packed, length, fields, count) == NULL);
        BECALM_ASSERT(nghttp2_hd_inflate_get_dynamic_table_size(script->peer) == script->packer.bytes);
    }
    free(packed);
}

static void say_limit(struct script *script)
{
    uint32_t limit = (next(script) << 8 | next(script)) % (LIMIT_MAX + 1);
    BECALM_ASSERT(nghttp2_hd_inflate_change_table_size(script->peer, limit) == 0);
    h2_packer_limit(&script->packer, limit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct blocks blocks;
    static struct script script;
    script = (struct script){.at = data, .end = data + size};
    h2_packer_init(&script.packer, (size & 1) != 0 ? &blocks : NULL, 4096);
    BECALM_ASSERT(nghttp2_hd_inflate_new(&script.peer) == 0);
    while (script.at < script.end) {
        uint32_t what = next(&script);
        if (what < 32) {
            say_limit(&script);
        } else {
            say_head(&script, what % 16, what < 48);
        }
    }
    h2_packer_free(&script.packer);
    nghttp2_hd_inflate_del(script.peer);
    return 0;
}
