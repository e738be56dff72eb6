/* SPDX-License-Identifier: MIT */
#include "h2_packer.h"

#include "h2_huffman.h"
#include "h2_static.h"

#include <becalm/base.h>

#include <string.h>

#define OVERHEAD 32u /* bytes that HPACK counts for an entry beside its name and its value */

struct hashes {
    uint32_t name;
    uint32_t both; /* of name and value */
};

/* An entry of the table. */
struct h2_packed {
    struct h2_packed *newer;
    struct h2_packed *chain; /* the next older one in its slot */
    struct hashes hashes;
    uint32_t number; /* how many were added before it */
    uint32_t name_length;
    uint32_t value_length;
    uint8_t name_id;
    char bytes[]; /* name and value */
};

static uint32_t bytes_of(const struct h2_packed *entry)
{
    return OVERHEAD + entry->name_length + entry->value_length;
}

static size_t memory_of(const struct h2_packed *entry)
{
    return sizeof *entry + entry->name_length + entry->value_length;
}

/* ---- how entries are found ---- */

static uint64_t eight_at(const char *at)
{
    uint64_t eight;
    memcpy(&eight, at, sizeof eight);
    return eight;
}

static uint64_t four_at(const char *at)
{
    uint32_t four;
    memcpy(&four, at, sizeof four);
    return four;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    return ((hash << 5 | hash >> 59) ^ word) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Fields that collide cost a look each, and there are at most some hundred: so the hash need not be unpredictable. The
 * last bytes may be counted twice. */
static uint64_t hash_text(uint64_t hash, struct becalm_text text)
{
    const char *at = text.at;
    const char *end = at + text.length;
    hash = mix(hash, text.length);
    if (text.length >= 8) {
        for (; end - at > 8; at += 8) {
            hash = mix(hash, eight_at(at));
        }
        return mix(hash, eight_at(end - 8));
    }
    if (text.length >= 4) {
        return mix(hash, four_at(at) << 32 | four_at(end - 4));
    }
    while (at < end) {
        hash = mix(hash, (unsigned char)*at++);
    }
    return hash;
}

/* Only of those that are remembered both are needed. */
static struct hashes hash_field(const struct h2_field *field)
{
    uint64_t name = field->name_id != 0 ? mix(0, field->name_id) : hash_text(0, field->name);
    uint64_t both = field->remembering == H2_REMEMBERED ? hash_text(name, field->value) : 0;
    return (struct hashes){(uint32_t)(name >> 32), (uint32_t)(both >> 32)};
}

static uint32_t slot_of(uint32_t hash)
{
    return hash % H2_PACKER_SLOTS;
}

static bool same_text(const char *bytes, uint32_t length, struct becalm_text text)
{
    return length == text.length && memcmp(bytes, text.at, length) == 0;
}

static bool has_name(const struct h2_packed *entry, const struct h2_field *field)
{
    bool both = entry->name_id != 0 && field->name_id != 0;
    return both ? entry->name_id == field->name_id : same_text(entry->bytes, entry->name_length, field->name);
}

/* A field's place in both tables of the peer. */
static uint32_t index_of(const struct h2_packer *packer, const struct h2_packed *entry)
{
    return H2_STATIC_COUNT + (packer->added - entry->number);
}

/* 0: it is not in the table. */
static uint32_t find_field(const struct h2_packer *packer, const struct h2_field *field, uint32_t hash)
{
    const struct h2_packed *entry = packer->slot[slot_of(hash)];
    while (entry != NULL && !(entry->hashes.both == hash && has_name(entry, field) &&
                              same_text(entry->bytes + entry->name_length, entry->value_length, field->value))) {
        entry = entry->chain;
    }
    return entry == NULL ? 0 : index_of(packer, entry);
}

static uint32_t find_name(const struct h2_packer *packer, const struct h2_field *field, uint32_t name_hash)
{
    const struct h2_packed *entry = packer->named[slot_of(name_hash)];
    return entry != NULL && has_name(entry, field) ? index_of(packer, entry) : 0;
}

/* ---- the table ---- */

void h2_packer_init(struct h2_packer *packer, struct blocks *blocks, uint32_t limit)
{
    *packer = (struct h2_packer){.blocks = blocks, .limit = limit};
}

/* The entry is the last one in its slot: all others there were added later. */
static void take_out(struct h2_packer *packer, struct h2_packed *entry)
{
    struct h2_packed **link = &packer->slot[slot_of(entry->hashes.both)];
    while (*link != entry) {
        link = &(*link)->chain;
    }
    *link = entry->chain;
    link = &packer->named[slot_of(entry->hashes.name)];
    *link = *link == entry ? NULL : *link;
}

static void drop_oldest(struct h2_packer *packer)
{
    struct h2_packed *entry = packer->oldest;
    take_out(packer, entry);
    packer->oldest = entry->newer;
    packer->newest = packer->oldest == NULL ? NULL : packer->newest;
    packer->bytes -= bytes_of(entry);
    blocks_give(packer->blocks, entry, memory_of(entry));
}

static void shrink_to(struct h2_packer *packer, uint32_t bytes)
{
    while (packer->bytes > bytes) {
        drop_oldest(packer);
    }
}

void h2_packer_free(struct h2_packer *packer)
{
    shrink_to(packer, 0);
}

void h2_packer_limit(struct h2_packer *packer, uint32_t bytes)
{
    packer->least = packer->changed && packer->least < bytes ? packer->least : bytes;
    packer->changed |= bytes != packer->limit;
    packer->limit = bytes;
    shrink_to(packer, bytes);
}

void h2_packer_forget(struct h2_packer *packer)
{
    shrink_to(packer, 0);
    packer->least = 0;
    packer->changed = true; /* also if the limit is 0: one of the heads may have said so */
}

/* NULL: it is not worth its place, or there is no memory. */
static struct h2_packed *entry_new(const struct h2_packer *packer, const struct h2_field *field)
{
    size_t length = field->name.length + field->value.length;
    if (length + OVERHEAD > packer->limit / 4 * 3) {
        return NULL;
    }
    struct h2_packed *entry = blocks_take(packer->blocks, sizeof *entry + length);
    if (entry == NULL) {
        return NULL;
    }
    entry->name_length = (uint32_t)field->name.length;
    entry->value_length = (uint32_t)field->value.length;
    entry->name_id = field->name_id;
    memcpy(entry->bytes, field->name.at, field->name.length);
    memcpy(entry->bytes + field->name.length, field->value.at, field->value.length);
    return entry;
}

static void put_in(struct h2_packer *packer, struct h2_packed *entry)
{
    struct h2_packed **slot = &packer->slot[slot_of(entry->hashes.both)];
    shrink_to(packer, packer->limit - bytes_of(entry));
    entry->number = packer->added++;
    entry->newer = NULL;
    entry->chain = *slot;
    *slot = entry;
    packer->named[slot_of(entry->hashes.name)] = entry;
    *(packer->newest == NULL ? &packer->oldest : &packer->newest->newer) = entry;
    packer->newest = entry;
    packer->bytes += bytes_of(entry);
}

/* ---- bytes ---- */

/* A number after the bits of its kind (RFC 7541, 5.1). `room` has all remaining bits of the byte set: a smaller number
 * fits there. */
static char *put_number(char *to, uint8_t what, uint32_t room, size_t number)
{
    if (number < room) {
        *to++ = (char)(what | number);
        return to;
    }
    *to++ = (char)(what | room);
    for (number -= room; number >= 128; number >>= 7) {
        *to++ = (char)(128 | number % 128);
    }
    *to++ = (char)number;
    return to;
}

enum { INDEXED = 0x80, REMEMBER = 0x40, RESIZE = 0x20, NEVER = 0x10, PLAIN = 0, HUFFMAN = 0x80 };
enum { ROOM_4 = 15, ROOM_5 = 31, ROOM_6 = 63, ROOM_7 = 127 };

static char *put_text(char *to, struct becalm_text text)
{
    if (text.length < ROOM_7) { /* the length takes one byte, whether the text is shortened or not */
        char *end = h2_huffman_put(to + 1, text);
        if (end != NULL) {
            *to = (char)(HUFFMAN | (end - to - 1));
            return end;
        }
    } else {
        size_t size = h2_huffman_size(text);
        if (size < text.length) {
            return h2_huffman_put(put_number(to, HUFFMAN, ROOM_7, size), text);
        }
    }
    to = put_number(to, 0, ROOM_7, text.length);
    memcpy(to, text.at, text.length);
    return to + text.length;
}

/* Writes the bits of the field's kind, and the number of its name. */
static char *put_kind(char *to, const struct h2_field *field, bool remembered, uint32_t name)
{
    if (remembered) {
        return put_number(to, REMEMBER, ROOM_6, name);
    }
    return put_number(to, field->remembering == H2_SECRET ? NEVER : PLAIN, ROOM_4, name);
}

/* A field as literal bytes; `name` is the number of its name, 0: the name is in no table. */
static char *put_literal(struct h2_packer *packer, const struct h2_field *field, struct hashes hashes, uint32_t name,
                         char *to)
{
    struct h2_packed *entry = field->remembering == H2_REMEMBERED ? entry_new(packer, field) : NULL;
    name = name != 0 ? name : find_name(packer, field, hashes.name);
    to = put_kind(to, field, entry != NULL, name);
    to = name == 0 ? put_text(to, field->name) : to;
    to = put_text(to, field->value);
    if (entry != NULL) {
        entry->hashes = hashes;
        put_in(packer, entry);
    }
    return to;
}

static uint32_t find_static(const struct h2_field *field, uint32_t *name)
{
    *name = h2_static_name(field->name);
    return *name == 0 || field->remembering == H2_SECRET ? 0 : h2_static_field(*name, field->value);
}

/* Most pseudo fields are in the static table, and hardly any other field. */
static char *put_field(struct h2_packer *packer, const struct h2_field *field, char *to)
{
    bool pseudo = field->name.length > 0 && field->name.at[0] == ':';
    uint32_t name = 0;
    uint32_t found = pseudo ? find_static(field, &name) : 0;
    struct hashes hashes = {0};
    if (found == 0) {
        hashes = hash_field(field);
        found = field->remembering == H2_REMEMBERED ? find_field(packer, field, hashes.both) : 0;
    }
    if (found == 0 && !pseudo) {
        found = find_static(field, &name);
    }
    return found != 0 ? put_number(to, INDEXED, ROOM_7, found) : put_literal(packer, field, hashes, name, to);
}

/* Before the fields of a head: changes of the table's size (RFC 7541, 4.2). */
static char *put_limits(struct h2_packer *packer, char *to)
{
    if (packer->changed) {
        if (packer->least < packer->limit) {
            to = put_number(to, RESIZE, ROOM_5, packer->least);
        }
        to = put_number(to, RESIZE, ROOM_5, packer->limit);
        packer->changed = false;
    }
    return to;
}

size_t h2_pack(struct h2_packer *packer, const struct h2_field *field, size_t count, char *to)
{
    char *at = put_limits(packer, to);
    for (size_t i = 0; i < count; i++) {
        at = put_field(packer, &field[i], at);
    }
    return (size_t)(at - to);
}
