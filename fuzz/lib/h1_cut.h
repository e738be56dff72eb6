/* SPDX-License-Identifier: MIT */
#ifndef BECALM_FUZZ_H1_CUT_H
#define BECALM_FUZZ_H1_CUT_H

/* Rules for both directions of the HTTP/1 codec: bytes give the same result however they are cut into reads, and a head
 * that is parsed and written means the same as the original head. */

#include <becalm/rand.h>

#include <stdlib.h>
#include <string.h>

#include "h1/h1.h"

enum { HEAD_BYTES = 1 << 16 };

static const struct h1_limits limits = {.head_bytes = HEAD_BYTES};

/* A copy of its own for each read, so that the sanitizers see one that goes too far. */
static char *bytes_copy(const char *bytes, size_t length)
{
    char *copy = malloc(length + 1);
    BECALM_ASSERT(copy != NULL);
    memcpy(copy, bytes, length);
    return realloc(copy, length == 0 ? 1 : length);
}

/* How long the next read is. */
static size_t cut(uint64_t *random, size_t left)
{
    return 1 + (size_t)becalm_rand_below(becalm_rand_next(random), left < 40 ? left : 40);
}

static size_t head_end_cut(const char *bytes, size_t length, uint64_t random)
{
    size_t seen = 0;
    while (seen < length) {
        size_t next = seen + cut(&random, length - seen);
        size_t end = h1_head_end(bytes, next, seen);
        if (end != 0) {
            return end;
        }
        seen = next;
    }
    return 0;
}

/* Where the head ends: 0 if nowhere. */
static size_t head_end(const char *bytes, size_t length, uint64_t random)
{
    size_t end = h1_head_end(bytes, length, 0);
    BECALM_ASSERT(head_end_cut(bytes, length, random) == end);
    BECALM_ASSERT(end <= length && (end == 0 || bytes[end - 1] == '\n'));
    return end;
}

static void check_head(const char *bytes, size_t length, const struct head *head)
{
    BECALM_ASSERT(head->length == length && head->field_count <= HEAD_FIELDS_MAX);
    for (uint32_t i = 0; i < head->field_count; i++) {
        struct becalm_text name = field_name(head, &head->field[i]);
        struct becalm_text value = field_value(head, &head->field[i]);
        BECALM_ASSERT(name.length > 0 && name.at + name.length < value.at);
        BECALM_ASSERT(value.at + value.length + 4 <= bytes + length);
        for (size_t j = 0; j < value.length; j++) {
            unsigned char c = (unsigned char)value.at[j];
            BECALM_ASSERT((c >= ' ' || c == '\t') && c != 0x7f);
        }
    }
}

static bool same_text(struct becalm_text a, struct becalm_text b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.at, b.at, a.length) == 0);
}

/* Of the fields that are passed on, `copy` has all, in order, and none besides but Transfer-Encoding. */
static void check_same_fields(const struct head *head, const struct head *copy)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (!head->field[i].hop) {
            BECALM_ASSERT(next < copy->field_count);
            BECALM_ASSERT(same_text(field_name(head, &head->field[i]), field_name(copy, &copy->field[next])));
            BECALM_ASSERT(same_text(field_value(head, &head->field[i]), field_value(copy, &copy->field[next])));
            next++;
        }
    }
    BECALM_ASSERT(copy->field_count == next + (copy->framing == BODY_OPEN));
}

/* The head that is passed on: `line`, the fields, the framing. The caller frees the bytes. */
static char *rebuild(const char *line, const struct head *head, size_t *length)
{
    size_t size = 2 * (size_t)head->length + strlen(line) + 64; /* ": " and CR LF where ":" and CR LF were */
    char *copy = malloc(size);
    BECALM_ASSERT(copy != NULL);
    struct text_sink out = {.at = copy, .size = size};
    text_put_chars(&out, line);
    h1_put_fields(&out, head, 0);
    if (head->framing == BODY_OPEN) {
        h1_put_field(&out, "Transfer-Encoding", (struct becalm_text){"chunked", 7});
    }
    text_put_chars(&out, "\r\n");
    BECALM_ASSERT(!out.full);
    *length = out.length;
    return copy;
}

/* ---- bodies ---- */

struct decoded {
    uint64_t data_hash;
    uint64_t data_length;
    size_t used;
    enum h1_piece_kind last;
    size_t trailers_length;
    char trailers[H1_TRAILER_BYTES];
};

static void decoded_add(struct decoded *d, const struct h1_piece *piece)
{
    BECALM_ASSERT(piece->length > 0);
    if (piece->kind == H1_PIECE_TRAILER) {
        BECALM_ASSERT(d->trailers_length + piece->length <= sizeof d->trailers);
        memcpy(d->trailers + d->trailers_length, piece->at, piece->length);
        d->trailers_length += piece->length;
        return;
    }
    for (size_t i = 0; i < piece->length; i++) {
        d->data_hash = (d->data_hash ^ (unsigned char)piece->at[i]) * UINT64_C(1099511628211);
    }
    d->data_length += piece->length;
}

static void decode_read(struct decoded *d, struct h1_body *body, const char *bytes, size_t length)
{
    char *copy = bytes_copy(bytes, length);
    const char *at = copy;
    for (;;) {
        struct h1_piece piece = h1_body_next(body, &at, copy + length);
        if (piece.kind != H1_PIECE_DATA && piece.kind != H1_PIECE_TRAILER) {
            d->last = piece.kind;
            break;
        }
        decoded_add(d, &piece);
    }
    d->used += (size_t)(at - copy);
    free(copy);
}

/* All at once if there is no random number. */
static void decode(struct decoded *d, const struct head *head, const char *bytes, size_t length, uint64_t *random)
{
    struct h1_body body;
    h1_body_init(&body, head);
    d->data_hash = d->data_length = d->used = d->trailers_length = 0;
    d->last = H1_PIECE_NONE;
    while (d->used < length && d->last == H1_PIECE_NONE) {
        decode_read(d, &body, bytes + d->used, random == NULL ? length : cut(random, length - d->used));
    }
}

static void check_body(const struct head *head, const char *bytes, size_t length, uint64_t random)
{
    static struct decoded once;
    static struct decoded twice;
    static struct head trailers;
    decode(&once, head, bytes, length, NULL);
    decode(&twice, head, bytes, length, &random);
    BECALM_ASSERT(once.last == twice.last && once.used == twice.used);
    BECALM_ASSERT(once.data_length == twice.data_length && once.data_hash == twice.data_hash);
    BECALM_ASSERT(once.trailers_length == twice.trailers_length);
    BECALM_ASSERT(memcmp(once.trailers, twice.trailers, once.trailers_length) == 0);
    if (once.last == H1_PIECE_END && once.trailers_length > 0 &&
        h1_parse_trailers(once.trailers, once.trailers_length, &trailers).kind == H1_OK) {
        check_head(once.trailers, once.trailers_length, &trailers);
    }
}

#endif
